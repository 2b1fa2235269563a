"""Pools: so many possible configs of a variant, spread over its tiles, and the same for all shapes
that allow them.

A config is built knob by knob, the tile first. Which value of a knob is tried first is fixed by the
tile and by how many configs it has already, never by the shape: two shapes of one layer get the
same config unless a rule forbids it to one of them, and kernels compiled for one serve the other. A
value that breaks a rule ends its branch at once, so a pool costs about as much where one config in
300 is possible as where all are.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from random import Random
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Knob, Rule, Space

TILE = ("block_m", "block_n", "split_k", "kv_splits")
"""The knobs that decide a tile. A pool has every possible combination once before any twice."""
REPEATS = 12
"""Configs of one tile that are drawn again, one after another, before the tile counts as
exhausted."""


def pool(
    space: Space, shape: Shape, chip: Chip, variant: str, count: int, until: float = inf
) -> list[Config]:
    """At most `count` possible configs of a variant, each once; all of them where there are no
    more, and what was drawn until then (of `time.monotonic`).

    The same call gives the same list. A larger `count`, or a later `until`, begins with the smaller
    one's list.
    """
    builder = _Builder(space, shape, chip, variant)
    configs = dict.fromkeys(_before(until, _in_turn(builder, count)))
    if len(configs) < count:  # every tile is exhausted: few are left, and they are listed
        configs |= dict.fromkeys(_before(until, space.configs(shape, chip, (variant,))))
    return list(configs)[:count]


def _before(until: float, configs: Iterable[Config]) -> Iterator[Config]:
    """These configs, as long as there is time."""
    return (
        iter(configs)
        if until == inf
        else itertools.takewhile(lambda _: time.monotonic() < until, configs)
    )


def _in_turn(builder: _Builder, count: int) -> Iterator[Config]:
    """One config of each tile, then another of each, until there are so many or all tiles are
    exhausted."""
    seen = set[tuple[Knob, ...]]()
    waiting = [(tile, itertools.count()) for tile in builder.tiles()]
    while waiting:
        going = []
        for tile, numbers in waiting:
            values = builder.another(tile, numbers, seen)
            if values is not None:
                seen.add(values)
                yield builder.config(values)
                going.append((tile, numbers))
            if len(seen) == count:
                return
        waiting = going


class _Noting:
    """Knob values by name, as far as they are chosen, that note which of them a rule reads."""

    def __init__(self, places: dict[str, int], values: Sequence[Knob]) -> None:
        self._places, self._values, self.read = places, values, set[int]()

    def __getitem__(self, name: str) -> Knob:
        place = self._places[name]
        self.read.add(place)
        return self._values[place]  # IndexError: not chosen yet


class _Judge:
    """Whether one rule holds for one shape, asked once for all values of the knobs that it reads.

    `last` is the place of the last knob that it is known to read: before that is chosen it is not
    asked. A rule that turns out to read a later knob waits for that one from then on, and is asked
    there, so that none is passed over.
    """

    def __init__(self, rule: Rule, shape: Shape, chip: Chip | None, places: dict[str, int]) -> None:
        self._rule, self._shape, self._chip, self._places = rule, shape, chip, places
        self._reads: tuple[int, ...] = ()
        self._known: dict[Any, bool] = {}
        self.last = 0

    def holds(self, values: Sequence[Knob]) -> bool:
        key = tuple([values[place] for place in self._reads])
        known = self._known.get(key)
        return self._ask(values) if known is None else known

    def _ask(self, values: Sequence[Knob]) -> bool:
        knobs = _Noting(self._places, values)
        try:
            holds = bool(self._rule.holds(self._shape, knobs, self._chip))
        except IndexError:
            self._learn(knobs.read)
            return True  # until `last` is chosen
        if not knobs.read <= set(self._reads):
            self._learn(knobs.read)
        self._known[tuple([values[place] for place in self._reads])] = holds
        return holds

    def _learn(self, read: set[int]) -> None:
        self._reads = tuple(sorted({*self._reads, *read}))
        self._known.clear()
        self.last = self._reads[-1]


class _Builder:
    """Builds possible configs of one variant for one shape."""

    def __init__(self, space: Space, shape: Shape, chip: Chip, variant: str) -> None:
        self._variant, self._seed = variant, f"{space.op}/{variant}"
        choices = sorted(
            (choice.on(chip) for choice in space.choices(variant)),
            key=lambda choice: choice.name not in TILE,
        )
        self._names = [choice.name for choice in choices]
        self._values = [choice.values for choice in choices]
        self._wide = sum(name in TILE for name in self._names)
        places = {name: place for place, name in enumerate(self._names)}
        self._judges = [
            _Judge(rule, shape, chip, places) for rule in space.rules if rule.applies(variant)
        ]

    def config(self, values: Sequence[Knob]) -> Config:
        return Config(self._variant, **dict(zip(self._names, values, strict=True)))

    def tiles(self) -> list[tuple[Knob, ...]]:
        """The tiles that no rule forbids whatever the other knobs are, in an order that is the same
        for all shapes."""
        every = list(itertools.product(*self._values[: self._wide]))
        Random(self._seed).shuffle(every)
        return [
            tile
            for tile in every
            if all(self._allowed(tile[: place + 1]) for place in range(self._wide))
        ]

    def another(
        self, tile: tuple[Knob, ...], numbers: Iterator[int], seen: set[tuple[Knob, ...]]
    ) -> tuple[Knob, ...] | None:
        """The next config of this tile that is new; None where the tile allows none, or has been
        exhausted."""
        for number in itertools.islice(numbers, REPEATS):
            values = self._build(tile, number)
            if values is None or values not in seen:
                return values
        return None

    def _build(self, tile: tuple[Knob, ...], number: int) -> tuple[Knob, ...] | None:
        """The config of this tile and number; None where the tile allows none."""
        random = Random(f"{self._seed}/{tile}/{number}")
        orders = [random.sample(values, len(values)) for values in self._values[self._wide :]]
        return self._complete(list(tile), orders)

    def _complete(self, values: list[Knob], orders: list[list[Knob]]) -> tuple[Knob, ...] | None:
        if len(values) == len(self._names):
            return tuple(values) if self._wide < len(values) or self._allowed(values) else None
        for value in orders[len(values) - self._wide]:
            values.append(value)
            if self._allowed(values) and (completed := self._complete(values, orders)):
                return completed
            values.pop()
        return None

    def _allowed(self, values: Sequence[Knob]) -> bool:
        """Whether all rules hold that read the knob chosen last and none that is not chosen yet."""
        last = len(values) - 1
        return all(judge.holds(values) for judge in self._judges if judge.last == last)
