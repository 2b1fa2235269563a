"""The rows of one layout as arrays: what formulas and trees are fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

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

        def log_us(config: Config, shape: Shape) -> float:
            us = self.data.time_us(shape, config)
            known = us is not None and self.data.why_invalid(shape, config) is None
            return math.log(us) if us is not None and known else math.nan

        columns = [self.data.column(("log us", one), partial(log_us, one)) for one in self.configs]
        return np.stack(columns, axis=1)

    def possible_at(self, shapes: Sequence[Shape]) -> np.ndarray:
        """[shapes, configs]: what the rules allow."""

        def possible(shape: Shape) -> list[bool]:
            why = self.data.possible(shape).why_invalid
            return [why(config) is None for config in self.configs]

        return np.array([*map(possible, shapes)])

    @cached_property
    def terms(self) -> np.ndarray:
        """[shapes, configs, terms]."""

        def terms(config: Config) -> np.ndarray:
            at = self._timing(config)
            return self.data.column(("terms", config), lambda shape: at(shape.sizes_key, shape))

        return np.stack([*map(terms, self.configs)], axis=1)

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
        timings, first = [*map(self._timing, self.configs)], self.data.shapes[0]
        fixed = not any(map(operation(self.data.op).space.is_recipe, self.configs))

        def terms(sizes: Sizes) -> np.ndarray:
            shape = first if fixed else self._shape(sizes)
            return np.array([timing(sizes, shape) for timing in timings], dtype=float)

        kept = _Kept(terms)
        kept.update(zip(self.sizes, self.terms, strict=True))
        return kept

    def _timing(self, config: Config) -> Callable[[Sizes, Shape], Sequence[float]]:
        """A config's terms at some sizes, which are those of the shape; only a recipe looks at
        it."""
        space, features = operation(self.data.op).space, operation(self.data.op).module("features")
        units = Target.parse(self.data.target).chip.units
        if not space.is_recipe(config):
            of_config = features.timing(config, units)
            return lambda sizes, shape: of_config(*sizes)

        none = (math.nan,) * len(features.TERMS)

        def of_recipe(sizes: Sizes, shape: Shape) -> Sequence[float]:
            own = self.data.possible(shape).concrete(config)
            known = not space.is_recipe(own)
            terms: Sequence[float] = features.timing(own, units)(*sizes) if known else none
            return terms

        return of_recipe

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
