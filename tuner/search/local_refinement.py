"""Local refinement: configs around a good one, which a pool of a few hundred of a hundred thousand
seldom holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Knob, Space
from tftune.tuner.search.pools import TILE
from tftune.tuner.search.recipes import nearest

if TYPE_CHECKING:  # it needs Optuna, and a server that warms up has none
    from tftune.tuner.search.feasible_sampler import Hint

DONORS = 2
"""Configs, of different tiles, whose other knobs are tried with every tile."""
STARTS, STEPS = 8, 6
"""Tiles from whose best config a descent starts, and steps of each at most."""


def around(
    space: Space, shape: Shape, chip: Chip, config: Config, repaired: bool = True
) -> list[Config]:
    """The possible configs that differ from this one in one knob; another tile may need other knobs
    changed, too, and gets them where it is to be `repaired`."""
    neighbours = []
    for choice in space.choices(config.variant):
        for value in choice.on(chip).values:
            if value != config[choice.name]:
                changed = Config(config.variant, **dict(config.knobs) | {choice.name: value})
                if space.why_invalid(shape, changed, chip) is None:
                    neighbours.append(changed)
                elif (
                    repaired
                    and choice.name in TILE
                    and (possible := nearest(space, shape, chip, changed))
                ):
                    neighbours.append(possible)
    return [each for each in dict.fromkeys(neighbours) if each != config]


def transplanted(space: Space, shape: Shape, chip: Chip, ranked: Sequence[Config]) -> list[Config]:
    """The first configs with the tile of every other config of their variant: a pool has a tile's
    best tile with few of the other knobs."""
    tiles = {(config.variant, _tile(config)) for config in ranked}
    donors = best_of_tiles(ranked)[:DONORS]
    made = [
        nearest(space, shape, chip, Config(variant, **dict(donor.knobs) | dict(tile)))
        for donor in donors for variant, tile in sorted(tiles) if variant == donor.variant
    ]  # fmt: skip
    return [config for config in dict.fromkeys(made) if config is not None]


def best_of_tiles(ranked: Sequence[Config]) -> list[Config]:
    """The first config of each of the first tiles: starts that are not all in one valley."""
    by_tile: dict[tuple[object, ...], Config] = {}
    for config in ranked:
        by_tile.setdefault((config.variant, _tile(config)), config)
    return list(by_tile.values())[:STARTS]


def _tile(config: Config) -> tuple[tuple[str, Knob], ...]:
    return tuple(knob for knob in config.knobs if knob[0] in TILE)


def descend(
    space: Space, shape: Shape, chip: Chip, starts: Sequence[Config], hint: Hint
) -> list[Config]:
    """Every config that is looked at on the way down from these by the hint, one knob at a time."""
    seen = dict(zip(starts, map(float, hint(starts)), strict=True)) if starts else {}
    for start in starts:
        here = start
        for _ in range(STEPS):
            fresh = [
                config
                for config in around(space, shape, chip, here, repaired=False)
                if config not in seen
            ]
            seen |= zip(fresh, map(float, np.asarray(hint(fresh))), strict=True)
            best = min([here, *fresh], key=seen.__getitem__)
            if best == here:
                break
            here = best
    return list(seen)
