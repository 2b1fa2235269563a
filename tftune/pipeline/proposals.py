"""Which configs to try at a place: what each variant does by default, what won nearby, then small
changes of what won here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from tftune.confirm import guesses
from tftune.db.evidence import BSP, Place
from tftune.kernels.core.chip import Chip
from tftune.kernels.core.distance import distance
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space
from tftune.tuner.bench.benches import Predict
from tftune.tuner.search.recipes import fitted
from tftune.tuner.search.session import Rows

NEIGHBOURS = 3
"""Measured shapes whose winners are tried, the nearest ones."""
CHANGED = 24
"""Small changes of a winner that are tried at most."""
Seeds = Callable[[Shape, str], Sequence[Config]]
"""What was fast elsewhere, for a shape and mode: of other machines, worlds and layouts."""


def nothing(shape: Shape, mode: str) -> Sequence[Config]:
    """Seeds where nothing is known of other machines."""
    return ()


class Proposals:
    """The configs to try of one operation."""

    def __init__(self, rows: Rows, predict: Predict | None, seeds: Seeds = nothing) -> None:
        """`predict`: what puts them in an order, as the analytic model does; None: nothing does."""
        self._rows, self._predict, self._seeds = rows, predict, seeds
        self._space: Space = rows.op.space
        self._chip: Chip = rows.bench.target.chip
        self._tried: dict[Place, set[Config]] = {}
        self._opening: dict[Place, list[Config]] = {}

    def first(self, place: Place) -> list[Config]:
        """What the sizes suggest and what was fast elsewhere, by turns."""
        if place not in self._opening:
            self._opening[place] = self._listed(place)
        return self._opening[place]

    def _listed(self, place: Place) -> list[Config]:
        shape, mode = place
        own = guesses.defaults(shape, mode, self._chip)
        other = [
            made for config in self._seeds(shape, mode) for made in self._fitted(place, config)
        ]
        turns = zip_longest(own, self._ranked(place, dict.fromkeys(other)))
        return list(dict.fromkeys(each for turn in turns for each in turn if each is not None))

    def more(self, place: Place, count: int) -> list[Config]:
        """So many that were not tried there: the rest of the first, the winners of measured shapes
        nearby, then changes of one knob of the winner. Empty where nothing is left."""
        tried = self._rows.searched(place).keys() | self._tried.setdefault(place, set())
        configs: list[Config] = []
        for config in self._all(place):
            if len(configs) == count:
                break
            if config not in tried and config not in configs:
                configs.append(config)
        self._tried[place] |= set(configs)
        return configs

    def _all(self, place: Place) -> Iterator[Config]:
        yield from self.first(place)
        yield from self._nearby(place)
        winners = self._rows.winners(place)[:1]
        for winner in winners:
            changed = guesses.changes(*place, winner, self._chip)
            yield from [config for config in changed if self._rows.can(place, config)][:CHANGED]

    def _nearby(self, place: Place) -> list[Config]:
        shape, mode = place
        measured = [
            other
            for other, _ in self._rows.places(mode)
            if other.layout == shape.layout and other != shape
        ]
        near = sorted(measured, key=lambda other: distance(shape, other))[:NEIGHBOURS]
        winners = [config for other in near for config in self._rows.winners((other, mode))[:2]]
        return [made for config in winners for made in self._fitted(place, config)]

    def _fitted(self, place: Place, config: Config) -> list[Config]:
        if config.variant == BSP:
            return []
        made = fitted(self._space, place[0], self._chip, config)
        return [each for each in made if self._rows.can(place, each)]

    def _ranked(self, place: Place, configs: Iterable[Config]) -> list[Config]:
        shape, mode = place
        if self._predict is None:
            return list(configs)
        predict = self._predict
        return sorted(configs, key=lambda config: predict(shape, config, mode, self._chip))
