"""Times of a layout's configs at sizes that were not measured: by formulas, and between two
measured sizes. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.formula.formula import curves
from tftune.models.layout import Known, LayoutModel
from tftune.models.tree.tree import Sizes

RECIPES_KEPT = 64
"""Defaults that are kept: those of the shape that is asked for, and of its neighbours."""
MONOTONE_FROM = 8
"""From this size on a captured config takes no less time as the size grows: violated by more than 2
% in 0.1 % of 7,494 steps of the rows of H200, 2026-11-22; below 8, by up to 33 %. Between closer
sizes of 2 H100 kernels with a GEMM violate it in 13 to 23 % of 3,372 steps (docs/selection.md)."""


class ConfigTimes:
    """Estimated times of a model's configs, by their numbers, on one chip."""

    def __init__(self, model: LayoutModel, chip: Chip) -> None:
        op = operation(model.op)
        features = op.module("features")
        self._model, self._chip, self._space = model, chip, op.space
        self._timing, self._scales = features.timing, features.scales
        self._shape, self._fixed = op.shape, op.shape.named(model.layout)
        self._names = op.shape.coordinates()
        self._place = self._names.index(op.shape.SIZE)
        self._default = lru_cache(RECIPES_KEPT)(self._default_of)
        self._timing_of = cache(self._timing_by)
        self._gaps: dict[tuple[Sizes, Sizes], list[tuple[int, float, float, float, float]]] = {}

    def between(
        self, sizes: Sizes, curve: Sequence[float], below: Known, above: Known
    ) -> dict[int, float]:
        """Times of the configs kept at both ends, by number: each one's formula, corrected by what
        it missed there; where times grow with the size, never below the time at the smaller one or
        above that at the larger one."""
        least, most, size = below.sizes[self._place], above.sizes[self._place], sizes[self._place]
        share, times = math.log(size / least) / math.log(most / least), {}
        for number, us_below, us_above, log_below, log_above in self._gap(below, above):
            us = self.us(number, sizes, curve) * math.exp(
                (1 - share) * log_below + share * log_above
            )
            if least >= MONOTONE_FROM and us_below <= us_above:
                us = min(max(us, us_below), us_above)
            times[number] = us
        return times

    def _gap(self, below: Known, above: Known) -> list[tuple[int, float, float, float, float]]:
        """For each config kept at both ends its number, times, and logarithms of time over
        formula."""
        key = below.sizes, above.sizes
        if key not in self._gaps:
            there = dict(above.times_us)
            ends = [(sizes, self.curve(sizes)) for sizes in key]
            both = [(number, us, there[number]) for number, us in below.times_us if number in there]
            self._gaps[key] = [
                (number, one, other, math.log(one / first), math.log(other / last))
                for number, one, other in both
                for first, last in [[self.us(number, *end) for end in ends]]
                if max(first, last) < math.inf
            ]
        return self._gaps[key]

    def curve(self, sizes: Sizes) -> Sequence[float]:
        """The functions of the sizes by which every formula's smooth correction is weighted."""
        return curves(self._scales(*sizes))

    def us(self, number: int, sizes: Sizes, curve: Sequence[float]) -> float:
        """The time of a config by its formula, in microseconds; infinite where a recipe names
        nothing. `curve`: of these sizes."""
        formula, size = self._model.formulas[number], sizes[self._place]
        if size < formula.least:
            curve = curves(
                self._scales(*sizes[: self._place], formula.least, *sizes[self._place + 1 :])
            )
        terms = self._timing_of(number)(*sizes)
        return formula.us(terms, curve) if terms else math.inf

    def _timing_by(self, number: int) -> Callable[..., tuple[float, ...]]:
        """The terms of a config as a function of the sizes; of a recipe, those of what it names
        there, () where it names nothing."""
        config, units = self._model.configs[number], self._chip.units
        if not self._space.is_recipe(config):
            fixed: Callable[..., tuple[float, ...]] = self._timing(config, units)
            return fixed

        def terms(*sizes: int) -> tuple[float, ...]:
            own = self._default(sizes, config)
            return () if own is None else self._timing(own, units)(*sizes)

        return terms

    def _default_of(self, sizes: Sizes, recipe: Config) -> Config | None:
        """What a recipe names at these sizes; the last few are kept, since one answer asks
        often."""
        shape = self._shape(**self._fixed, **dict(zip(self._names, sizes, strict=True)))
        return self._space.concrete(shape, recipe, self._chip)

    def concrete(self, shape: Shape, number: int) -> Config:
        """The config of this number, or what a recipe names for the shape."""
        config = self._model.configs[number]
        if not self._space.is_recipe(config):
            return config
        return self._default(shape.sizes_key, config) or config
