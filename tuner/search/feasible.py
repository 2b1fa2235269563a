"""What may be tried: the possible configs of a shape, all or a pool of them, numbered for the
samplers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import inf

import numpy as np

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space
from tftune.tuner.search.pools import pool as pool_of

LACKING = -1.0
"""Stands in the matrix for a knob that a variant does not have."""
DOUBLINGS = 4
"""A knob whose values span so many times or more is seen by its logarithm."""


class Feasible:
    """Configs that are possible, numbered, with the matrix that a model of them is fitted on.

    `matrix` is float32 [configs, columns]: one column for each variant (0 or 1) and for each knob
    name, shared by the variants that have it: its value, or its place among the values where they
    are words, and -1 where the variant lacks it.
    """

    def __init__(self, space: Space, configs: Iterable[Config]) -> None:
        self.space, self.configs = space, tuple(configs)
        self.index = {config: number for number, config in enumerate(self.configs)}

    def grow(self, configs: Iterable[Config]) -> int:
        """Take in those of these configs that are new, which must be possible; they get the next
        numbers. Returns how many there are."""
        new = [config for config in dict.fromkeys(configs) if config not in self.index]
        self.index |= {config: len(self) + number for number, config in enumerate(new)}
        self.configs += tuple(new)
        for name in ("matrix", "divisors", "units"):
            self.__dict__.pop(name, None)
        return len(new)

    @classmethod
    def of(
        cls,
        space: Space,
        shape: Shape,
        chip: Chip,
        variants: tuple[str, ...] = (),
        pool: int | None = None,
        until: float = inf,
    ) -> Feasible:
        """Every possible config of one shape on one chip.

        `pool` keeps that many configs of each variant (see `pools`), which shapes share, so that
        kernels compiled for one serve the others, as many as can be drawn until then (of
        `time.monotonic`).
        """
        if pool is None:
            return cls(space, space.configs(shape, chip, variants))
        names, configs = variants or tuple(space.variants), list[Config]()
        for done, variant in enumerate(names):
            now = time.monotonic()
            share = now + (until - now) / (len(names) - done)
            configs += pool_of(space, shape, chip, variant, pool, share)
        return cls(space, configs)

    def __len__(self) -> int:
        return len(self.configs)

    def __contains__(self, config: Config) -> bool:
        return config in self.index

    @cached_property
    def matrix(self) -> np.ndarray:
        return self._encoded(self.configs)

    @cached_property
    def divisors(self) -> np.ndarray:
        """float32 [configs, columns]: for each knob with a value that is no power of two, the
        logarithm of the largest power of two that divides its value."""
        per_knob = [_divisor(values) for values in self.matrix.T[len(self.space.variants) :]]
        columns = [column for column in per_knob if column is not None]
        return np.column_stack(columns) if columns else np.empty((len(self), 0), dtype=np.float32)

    @cached_property
    def units(self) -> np.ndarray:
        """float64 [configs, columns] between 0 and 1: every column of the matrix that differs among
        these configs, wide ones by their logarithm; a knob that a variant lacks is in the
        middle."""
        scaled = [_unit(values) for values in self.matrix.T.astype(np.float64)]
        columns = [column for column in scaled if column is not None]
        return np.column_stack(columns) if columns else np.zeros((len(self), 1))

    def _encoded(self, configs: Sequence[Config]) -> np.ndarray:
        choices = [
            choice for variant in self.space.variants for choice in self.space.choices(variant)
        ]
        words = {
            choice.name: choice.values for choice in choices if isinstance(choice.values[0], str)
        }
        columns = {
            name: place
            for place, name in enumerate(
                [*self.space.variants, *dict.fromkeys(choice.name for choice in choices)]
            )
        }
        matrix = np.full((len(configs), len(columns)), -1, dtype=np.float32)
        matrix[:, : len(self.space.variants)] = 0
        for row, config in zip(matrix, configs, strict=True):
            row[columns[config.variant]] = 1
            for name, value in config.knobs:
                row[columns[name]] = words[name].index(value) if name in words else value
        return matrix

    def nearest(self, config: Config, numbers: np.ndarray) -> np.ndarray:
        """Those of these numbers whose configs differ from this one, which need not be feasible, in
        the fewest columns."""
        differing = (self.matrix[numbers] != self._encoded([config])).sum(axis=1)
        fewest: np.ndarray = numbers[differing == differing.min()]
        return fewest


def _divisor(values: np.ndarray) -> np.ndarray | None:
    whole = np.maximum(values.astype(np.int64), 1)
    powers = whole & -whole
    return None if (powers == whole).all() else np.log2(powers).astype(np.float32)


def _unit(values: np.ndarray) -> np.ndarray | None:
    lacking = values == LACKING
    if lacking.all():
        return None
    there = values[~lacking]
    if there.max() >= DOUBLINGS * max(there.min(), 1.0):
        values, there = np.log2(np.maximum(values, 0.0) + 1), np.log2(there + 1)
    if there.max() == there.min() and not lacking.any():
        return None
    scaled = (values - there.min()) / max(there.max() - there.min(), 1.0)
    return np.where(lacking, 0.5, scaled)
