"""A full matrix: the same few configs measured on every shape, so that what each loses is known everywhere and nothing is guessed.

Which configs, the caller says: `Pick` is handed over by the command line, since what covers the shapes is for `models` to know.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

from tftune.db.store import Store
from tftune.db.trial import Failure, Trial
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.tuner.benches import Bench
from tftune.tuner.finals import TIE, Best, best_of
from tftune.tuner.rows import BSP, Place, Rows
from tftune.tuner.search import COMPILE_S, Progress

T = TypeVar("T")
Pick = Callable[[Sequence[Trial], str], Sequence[Config]]
"""Rows of the search stage and a mode to the configs that cover their shapes."""


@dataclass(frozen=True)
class Matrix:
    """What is known of every shape and mode once the portfolio was measured."""

    portfolio: tuple[Config, ...]
    pairs: int
    """A shape, a mode and a config that is possible there."""
    invalid: Mapping[str, int]
    """Pairs that a rule forbids, by its sentence: a known outcome."""
    failed: tuple[Trial, ...]
    """Pairs that were tried and gave no time: data."""
    missing: tuple[tuple[Place, Config], ...]
    """Pairs never tried: regret is not defined until they are."""
    best: tuple[Best, ...]

    def sentences(self) -> list[str]:
        """What became of the pairs."""
        known = self.pairs - len(self.failed) - len(self.missing)
        found = [f"{len(self.portfolio)} configs on every shape: {known:,} pairs measured, {len(self.failed):,} failed"]
        found += [f"{count:,} pairs are impossible: {sentence}" for sentence, count in self.invalid.items()]
        found += [f"failed: {trial.config} at {trial.shape}, {trial.mode}: {trial.outcome.text}"
                  for trial in self.failed if isinstance(trial.outcome, Failure)]  # fmt: skip
        lacking = Counter(place for place, _ in self.missing)
        return found + [f"missing: {count} configs at {shape}, {mode}" for (shape, mode), count in lacking.items()]


def fill(
    op: str,
    shapes: Iterable[Shape],
    modes: Iterable[str],
    bench: Bench,
    store: Store,
    pick: Pick,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
) -> Matrix:
    """Measure the portfolio and each shape's own best on every shape, and the default configs on their own, in rounds that all configs of
    a shape share.

    The portfolio is chosen from rows of the search stage alone, which this does not add to: the same command goes on with the same
    pairs. What has a row of this stage, of the kernels as they are, is not measured again. Raises ValueError where a shape was never
    searched.
    """
    shapes, modes = tuple(dict.fromkeys(shapes)), tuple(dict.fromkeys(modes))
    until = time.monotonic() + (inf if budget_s is None else budget_s)
    rows = Rows(operation(op), bench, store, progress.advance if progress else None)
    places = [(shape, mode) for shape in shapes for mode in modes]
    _refuse_unsearched(rows, places)
    searched = [trial for place in places for trial in rows.searched(place).values()]
    portfolio = _with_own(rows, places, dict.fromkeys(config for mode in modes for config in pick(searched, mode)))
    wanted = _wanted(rows, places, portfolio)
    if progress:
        progress.start(sum(len(_missing(rows, place, configs)) for place, configs in wanted.items()))
    try:
        _measure(rows, wanted, until)
        rows.end()
    finally:
        if progress:
            progress.finish()
    return _matrix(rows, wanted, tuple(portfolio))


def _refuse_unsearched(rows: Rows, places: Sequence[Place]) -> None:
    lacking = [place for place in places if rows.bsp(place) is None]
    if lacking:
        shape, mode = lacking[0]
        raise ValueError(
            f"{len(lacking)} of {len(places)} shapes and modes have no measured BSP of the kernels as they are, {shape} in mode {mode} "
            f"for one, so that no portfolio can be chosen; run `tftune search {rows.op.name} --effort scout` with these shapes"
        )


def _with_own(rows: Rows, places: Sequence[Place], portfolio: Iterable[Config]) -> list[Config]:
    """The portfolio, and the best config of each place that none of it ties with there."""
    listed = list(portfolio)
    for place in places:
        ratios = {config: value for config, value in rows.ratios(place).items() if config.variant != BSP}
        best = min(ratios, key=ratios.__getitem__, default=None)
        if best is not None and all(ratios.get(config, inf) > TIE * ratios[best] for config in listed):
            listed.append(best)
    return listed


def _wanted(rows: Rows, places: Sequence[Place], portfolio: Sequence[Config]) -> dict[Place, list[Config]]:
    """For each place the baseline first, then the defaults, and the portfolio; impossible ones among them."""
    space, chip = rows.op.space, rows.bench.target.chip
    defaults = {shape: [space.complete(config) for config in space.defaults(shape, chip)] for shape, _ in places}
    baselines = [(place, bsp.config) for place in places if (bsp := rows.bsp(place))]
    return {place: list(dict.fromkeys([baseline, *defaults[place[0]], *portfolio])) for place, baseline in baselines}


def _missing(rows: Rows, place: Place, configs: Sequence[Config]) -> list[Config]:
    known = rows.matrix(place)
    return [config for config in configs if config not in known and rows.can(place, config)]


def _measure(rows: Rows, wanted: Mapping[Place, Sequence[Config]], until: float) -> None:
    """Everything is compiled ahead; the modes of a shape follow each other, so that a node prepares and checks a config once. Whole
    families, one far from those before it: where the time does not suffice, what is measured says something of all of the grid."""
    missing = {place: left for place, configs in wanted.items() if (left := _missing(rows, place, configs))}
    for (shape, _), configs in missing.items():
        rows.bench.ahead(shape, configs)
    if missing:
        rows.bench.settle(min(COMPILE_S, max(1.0, until - time.monotonic())))
        rows.bench.restart()
    families: dict[object, list[Place]] = {}
    for place in wanted:
        families.setdefault(place[0].family, []).append(place)
    for place in (place for family in spread(families.values()) for place in family if place in missing):
        if time.monotonic() >= until:
            return
        _measure_at(rows, place, wanted[place][0], missing[place])


def spread(items: Iterable[T]) -> list[T]:
    """The items in an order of which every beginning is spread over all of them (van der Corput's: by their number's bits, reversed).

    >>> spread("abcdefgh")
    ['a', 'e', 'c', 'g', 'b', 'f', 'd', 'h']
    """
    listed = list(items)
    bits = len(listed).bit_length()
    return [listed[number] for number in sorted(range(len(listed)), key=lambda number: f"{number:0{bits}b}"[::-1])]


def _measure_at(rows: Rows, place: Place, baseline: Config, configs: Sequence[Config]) -> None:
    """The missing configs of a place, and the baseline, in the same rounds where the bench has rounds."""
    others = [config for config in configs if config != baseline]
    if rows.bench.compare is not None:
        return rows.compare(place, others, baseline, "matrix")
    for config in configs:
        rows.measure(place, config, None if config == baseline else baseline, "matrix")


def _matrix(rows: Rows, wanted: Mapping[Place, Sequence[Config]], portfolio: tuple[Config, ...]) -> Matrix:
    chip, invalid = rows.bench.target.chip, dict[str, int]()
    pairs, failed, missing = 0, list[Trial](), list[tuple[Place, Config]]()
    for place, configs in wanted.items():
        for config in configs:
            if sentence := rows.op.space.why_invalid(place[0], config, chip):
                invalid[sentence] = invalid.get(sentence, 0) + 1
                continue
            pairs += 1
            trial = rows.matrix(place).get(config)
            if trial is None:
                missing.append((place, config))
            elif isinstance(trial.outcome, Failure):
                failed.append(trial)
    best = [
        replace(best_of(rows, place, tried, bsp, sum(rows.can(place, config) for config in configs)), evaluations=len(tried))
        for place, configs in wanted.items()
        if (bsp := rows.bsp(place))
        and (tried := {config: rows.matrix(place)[config] for config in configs if config in rows.matrix(place)})
    ]
    return Matrix(portfolio, pairs, invalid, tuple(failed), tuple(missing), tuple(best))
