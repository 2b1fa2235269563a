"""The rows of one layout as arrays: what formulas and trees are fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tftune.db.target import Target
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.dataset import Dataset
from tftune.models.features import vector
from tftune.models.formula.formula import curves
from tftune.models.tree.tree import Sizes


class _Kept(dict[Sizes, np.ndarray]):
    """What was worked out for sizes: folds ask for the same ones many times."""

    def __init__(self, of: Callable[[Sizes], np.ndarray]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, sizes: Sizes) -> np.ndarray:
        self[sizes] = self._of(sizes)
        return self[sizes]


@dataclass(frozen=True, eq=False)
class Times:
    """Times of some configs at the shapes of one layout."""

    data: Dataset
    configs: tuple[Config, ...]

    @cached_property
    def logs(self) -> np.ndarray:
        """[shapes, configs]: logarithms of microseconds; NaN where not measured, or not
        possible."""

        def logs_us(shape: Shape) -> list[float]:
            times, concrete = self.data.times_us[shape], self.data.possible(shape).concrete
            return [math.log(times.get(concrete(config), math.nan)) for config in self.configs]

        return np.where(self.possible, np.array([*map(logs_us, self.data.shapes)]), np.nan)

    @cached_property
    def possible(self) -> np.ndarray:
        """[shapes, configs]."""
        return self.possible_at(self.data.shapes)

    def possible_at(self, shapes: Sequence[Shape]) -> np.ndarray:
        """[shapes, configs]: what the rules allow."""

        def possible(shape: Shape) -> list[bool]:
            why = self.data.possible(shape).why_invalid
            return [why(config) is None for config in self.configs]

        return np.array([*map(possible, shapes)])

    @cached_property
    def terms(self) -> np.ndarray:
        """[shapes, configs, terms]."""
        return self.terms_at(self.sizes)

    @cached_property
    def curves(self) -> np.ndarray:
        """[shapes, curves]."""
        return self.curves_at(self.sizes)

    @cached_property
    def sizes(self) -> list[Sizes]:
        return [shape.sizes_key for shape in self.data.shapes]

    def terms_at(self, sizes: Sequence[Sizes]) -> np.ndarray:
        """[shapes, configs, terms]; of a recipe without a default at a shape all are NaN."""
        return np.array([self._terms[one] for one in sizes])

    def curves_at(self, sizes: Sequence[Sizes]) -> np.ndarray:
        """[shapes, curves]."""
        return np.array([self._curves[one] for one in sizes])

    @cached_property
    def _terms(self) -> _Kept:
        """[configs, terms] by sizes."""
        space, first = operation(self.data.op).space, self.data.shapes[0]
        features = operation(self.data.op).module("features")
        units = Target.parse(self.data.target).chip.units
        timings = [
            None if space.is_recipe(config) else features.timing(config, units)
            for config in self.configs
        ]
        none = (math.nan,) * len(features.TERMS)

        def of_recipe(shape: Shape, config: Config) -> Sequence[float]:
            own = self.data.possible(shape).concrete(config)
            known = not space.is_recipe(own)
            return features.timing(own, units)(*shape.sizes_key) if known else none

        def terms(sizes: Sizes) -> np.ndarray:
            shape = first if all(timings) else self._shape(sizes)  # of recipes alone
            pairs = zip(self.configs, timings, strict=True)
            return np.array(
                [timing(*sizes) if timing else of_recipe(shape, one) for one, timing in pairs],
                dtype=float,
            )

        return _Kept(terms)

    def _shape(self, sizes: Sizes) -> Shape:
        first = self.data.shapes[0]
        return type(first)(**first.to_dict() | dict(zip(first.coordinates(), sizes, strict=True)))

    @cached_property
    def _curves(self) -> _Kept:
        scales = operation(self.data.op).module("features").scales
        return _Kept(lambda sizes: np.array(curves(scales(*sizes)), dtype=float))

    @cached_property
    def features(self) -> np.ndarray:
        """[shapes, features]: what the tree may look at."""
        return np.array([vector(self.data.op, shape) for shape in self.data.shapes])

    @cached_property
    def place(self) -> int:
        """Where the size that grows is among `sizes`."""
        shape = self.data.shapes[0]
        return shape.coordinates().index(shape.SIZE)

    @cached_property
    def best(self) -> np.ndarray:
        """[shapes]: logarithm of the fastest time known."""
        return np.array([math.log(self.data.oracle(shape).us) for shape in self.data.shapes])

    @cached_property
    def is_bsp(self) -> np.ndarray:
        """[configs]."""
        return np.array([config.variant == "bsp" for config in self.configs])
