"""What may be tried: the possible configs of a shape, all or a pool of them, numbered for the samplers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import islice

import numpy as np

from tftune.kernels.chips import Chip
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config, Space

DRAWS = 400
"""Draws for each config of a pool, before its variant's configs are listed: a decoding shape allows one draw in 300."""


class Feasible:
    """Configs that are possible, numbered, with the matrix that a model of them is fitted on.

    `matrix` is float32 [configs, columns]: one column for each variant (0 or 1) and for each knob name, shared by the variants that
    have it: its value, or its place among the values where they are words, and -1 where the variant lacks it.
    """

    def __init__(self, space: Space, configs: Iterable[Config]) -> None:
        self.space, self.configs = space, tuple(configs)
        self.index = {config: number for number, config in enumerate(self.configs)}

    @classmethod
    def of(
        cls,
        space: Space,
        shape: Shape,
        chip: Chip,
        variants: tuple[str, ...] = (),
        pool: int | None = None,
        always: Sequence[Config] = (),
    ) -> Feasible:
        """Every possible config of one shape on one chip.

        `pool` keeps that many configs of each variant, a fixed random part that shapes share, so that kernels compiled for one serve
        the others; and the configs of `always`, which must be possible.
        """
        if pool is None:
            return cls(space, space.configs(shape, chip, variants))
        parts = [_part(space, shape, chip, variant, pool) for variant in variants or space.variants]
        return cls(space, dict.fromkeys([*(config for part in parts for config in part), *always]))

    def __len__(self) -> int:
        return len(self.configs)

    def __contains__(self, config: Config) -> bool:
        return config in self.index

    @cached_property
    def matrix(self) -> np.ndarray:
        return self._encoded(self.configs)

    def _encoded(self, configs: Sequence[Config]) -> np.ndarray:
        choices = [choice for variant in self.space.variants for choice in self.space.choices(variant)]
        words = {choice.name: choice.values for choice in choices if isinstance(choice.values[0], str)}
        columns = {name: place for place, name in enumerate([*self.space.variants, *dict.fromkeys(choice.name for choice in choices)])}
        matrix = np.full((len(configs), len(columns)), -1, dtype=np.float32)
        matrix[:, : len(self.space.variants)] = 0
        for row, config in zip(matrix, configs, strict=True):
            row[columns[config.variant]] = 1
            for name, value in config.knobs:
                row[columns[name]] = words[name].index(value) if name in words else value
        return matrix

    def nearest(self, config: Config, numbers: np.ndarray) -> np.ndarray:
        """Those of these numbers whose configs differ from this one, which need not be feasible, in the fewest columns."""
        differing = (self.matrix[numbers] != self._encoded([config])).sum(axis=1)
        fewest: np.ndarray = numbers[differing == differing.min()]
        return fewest


def _part(space: Space, shape: Shape, chip: Chip, variant: str, pool: int) -> list[Config]:
    """At most `pool` possible configs of a variant. Drawn, since listing hundreds of thousands takes seconds for each shape; listed
    where so few of the draws are possible that there cannot be many."""
    found = list(islice(space.drawn(shape, chip, variant, DRAWS * pool), pool))
    if len(found) < pool:
        rest = set(space.configs(shape, chip, (variant,))) - set(found)
        found += sorted(rest, key=lambda config: sha256(str(config.knobs).encode()).digest())[: pool - len(found)]
    return found
