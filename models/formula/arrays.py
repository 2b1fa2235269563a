"""The rows of one layout as arrays: what formulas and trees are fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True, eq=False)
class Times:
    """Times of some configs at the shapes of one layout."""

    data: Dataset
    configs: tuple[Config, ...]

    @cached_property
    def logs(self) -> np.ndarray:
        """[shapes, configs]: logarithms of microseconds; NaN where not measured, or not
        possible."""

        def log_us(shape: Shape, config: Config) -> float:
            us = self.data.time_us(shape, config)
            return math.nan if us is None else math.log(us)

        found = [[log_us(shape, each) for each in self.configs] for shape in self.data.shapes]
        return np.where(self.possible, np.array(found), np.nan)

    @cached_property
    def possible(self) -> np.ndarray:
        """[shapes, configs]."""
        return self.possible_at(self.data.shapes)

    def possible_at(self, shapes: Sequence[Shape]) -> np.ndarray:
        """[shapes, configs]: what the rules allow."""
        why = self.data.why_invalid
        return np.array([[why(shape, each) is None for each in self.configs] for shape in shapes])

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
        is_recipe = operation(self.data.op).space.is_recipe
        timing = operation(self.data.op).module("features").timing
        units = Target.parse(self.data.target).chip.units
        fixed = {config: timing(config, units) for config in self.configs if not is_recipe(config)}
        none = (math.nan,) * len(operation(self.data.op).module("features").TERMS)

        def terms(one: Sizes) -> Iterator[Sequence[float]]:
            shape = self._shape(one) if len(fixed) < len(self.configs) else None
            for config in self.configs:
                if shape is None or config in fixed:
                    yield fixed[config](*one)
                else:
                    own = self.data.concrete(shape, config)
                    yield timing(own, units)(*one) if not is_recipe(own) else none

        return np.array([list(terms(one)) for one in sizes], dtype=float)

    def _shape(self, sizes: Sizes) -> Shape:
        first = self.data.shapes[0]
        return type(first)(**first.to_dict() | dict(zip(first.coordinates(), sizes, strict=True)))

    def curves_at(self, sizes: Sequence[Sizes]) -> np.ndarray:
        scales = operation(self.data.op).module("features").scales
        return np.array([curves(scales(*one)) for one in sizes], dtype=float)

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
