"""Recipes: a config of another shape, fitted to this one.

A config may be impossible here (a rule forbids it), or possible and yet cut for the other shape: 16
rows a tile are right for M = 16, and read B twice at M = 24. `fitted` gives the nearest possible
config, and the one that the recipes below make of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from, power_of_two_to
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Choice, Config, Knob, Space
from tftune.tuner.search.pools import TILE

STEPS = 400
"""Changed configs that are looked at for the nearest possible one."""
LARGEST_TILE = 64
"""Rows up to which one row tile takes all of M: above, two tiles of half the rows are as good."""
DEAR = 3
"""A step of a knob that decides the tile counts as so many of another knob."""
SPLIT_TOKENS = 64
"""Tokens that a split of a cache costs beside its own: its partial results are written and added
up."""


@dataclass(frozen=True)
class Recipe:
    """How a knob follows from the shape. `value`: of shape, knobs and chip; None where it stays as
    it is."""

    op: str
    knob: str
    value: Callable[[Any, Mapping[str, Any], Chip], int | None]


def _row_tile(shape: Any, knobs: Mapping[str, Any], chip: Chip) -> int | None:
    """M rounded up to a power of two, 16 at least; above 64 as it is."""
    return max(16, power_of_two_from(int(shape.m))) if shape.m <= LARGEST_TILE else None


def _parts(shape: Any, knobs: Mapping[str, Any], chip: Chip) -> int | None:
    """So many parts that every unit which computes has one."""
    tiles = -(-shape.m // knobs["block_m"]) * -(-shape.n // knobs["block_n"])
    parts = (chip.units - knobs["comm_programs"]) // tiles
    return power_of_two_to(int(parts)) if parts > 0 else 1


def _chunk_rows(shape: Any, knobs: Mapping[str, Any], chip: Chip) -> int | None:
    """Every program that communicates has a chunk."""
    if not knobs["comm_programs"]:
        return None
    columns = -(-shape.shard_columns // knobs["k_per_flag"]) * max(shape.world - 1, 1)
    chunks = -(-knobs["comm_programs"] // columns)
    return int(max(16, shape.shard_rows // chunks))


def _splits(shape: Any, knobs: Mapping[str, Any], chip: Chip) -> int | None:
    """The busiest program attends to as few tokens as can be."""
    groups = shape.batch * shape.kv_heads

    def busiest(splits: int) -> int:
        tokens = -(-shape.kv_len // splits) + SPLIT_TOKENS
        return int(-(-groups * splits // chip.units) * tokens)

    if shape.kv_len >= 1 << 16:
        return None
    return min(range(1, max(2, shape.kv_len // 16)), key=busiest)


RECIPES = (
    Recipe("all_gather_gemm", "block_m", _row_tile),
    Recipe("all_gather_gemm", "split_k", _parts),
    Recipe("all_gather_gemm", "rows_per_flag", _chunk_rows),
    Recipe("flash_decode", "kv_splits", _splits),
)


def fitted(space: Space, shape: Shape, chip: Chip, config: Config) -> list[Config]:
    """What is worth a try here of another shape's config: the nearest possible one, the one by the
    first recipe of the operation, and the one by all of them; each once.

    Empty for a config with a knob or value that the space no longer has, or that nothing possible
    is near to.
    """
    try:
        complete = space.complete(config)
    except ValueError:
        return []
    recipes = [recipe for recipe in RECIPES if recipe.op == space.op]
    wanted = [
        complete,
        *(by_recipe(space, shape, chip, complete, some) for some in (recipes[:1], recipes)),
    ]
    made = (nearest(space, shape, chip, each) for each in dict.fromkeys(wanted))
    return list(dict.fromkeys(each for each in made if each is not None))


def by_recipe(
    space: Space, shape: Shape, chip: Chip, config: Config, recipes: Sequence[Recipe]
) -> Config:
    """The config with the knobs that these recipes state, each at the greatest of its values that
    does not exceed the recipe's."""
    knobs, choices = dict(config.knobs), _choices(space, config)
    for recipe in recipes:
        if recipe.knob in knobs and "block_n" in knobs:
            wanted = recipe.value(shape, knobs, chip)
            if wanted is not None:
                values = choices[recipe.knob].on(chip).values
                sizes = [value for value in values if isinstance(value, int)]
                fits = (value for value in sizes if value <= wanted)
                knobs[recipe.knob] = max(fits, default=min(sizes))
    return Config(config.variant, **knobs)


def nearest(space: Space, shape: Shape, chip: Chip, config: Config) -> Config | None:
    """The possible config that differs by the fewest steps along the values of knobs, of those that
    a broken rule reads; None where none is near."""
    waiting, seen = [(0, 0, config)], {config}
    for number in range(1, STEPS):
        if not waiting:
            return None
        steps, _, tried = heappop(waiting)
        broken = _broken(space, shape, chip, tried)
        if broken is None:
            return tried
        for more, changed in _changed(space, chip, tried, broken):
            if changed not in seen:
                seen.add(changed)
                heappush(waiting, (steps + more, number * len(space.rules) + len(seen), changed))
    return None


class _Reads(dict[str, Knob]):
    """Knobs by name that note which of them are read."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.knobs)
        self.read = set[str]()

    def __getitem__(self, name: str) -> Knob:
        self.read.add(name)
        return super().__getitem__(name)


def _broken(space: Space, shape: Shape, chip: Chip, config: Config) -> set[str] | None:
    """The knobs that the first broken rule reads, or the first that this chip does not have; None
    where the config is possible."""
    for choice in space.choices(config.variant):
        if config[choice.name] not in choice.on(chip).values:
            return {choice.name}
    for rule in space.rules:
        knobs = _Reads(config)
        if rule.applies(config.variant) and not rule.holds(shape, knobs, chip):
            return knobs.read
    return None


def _changed(
    space: Space, chip: Chip, config: Config, names: set[str]
) -> Sequence[tuple[int, Config]]:
    """The config with one of these knobs at another value, and how many steps along its values that
    is."""
    changes, choices = [], _choices(space, config)
    for name in sorted(names):
        values = choices[name].values
        here = values.index(config[name])
        for value in choices[name].on(chip).values:
            if value != config[name]:
                changed = Config(config.variant, **dict(config.knobs) | {name: value})
                steps = abs(values.index(value) - here)
                changes.append((steps * (DEAR if name in TILE else 1), changed))
    return changes


def _choices(space: Space, config: Config) -> dict[str, Choice]:
    return {choice.name: choice for choice in space.choices(config.variant)}
