"""A matrix: few configs measured on every shape of a layout, so that formulas of their times can be
learned.

Which configs, the caller says: `Pick` is handed over by the command line, since what covers the
shapes is for `models` to know.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

from tftune.db.evidence import BSP, TIE, Place, strongest_bsp
from tftune.db.store import Store
from tftune.db.trial import MODES, Failure, Trial
from tftune.db.verdict import Best
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, check_word, size_of
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Bench
from tftune.tuner.search.final_stage import best_of
from tftune.tuner.search.search import SILENT, Progress
from tftune.tuner.search.search_stage import COMPILE_S
from tftune.tuner.search.session import Rows

FEW = 4
"""With fewer searches at sizes alike, those of the whole layout choose."""
HOPELESS = 1.5
"""Times over the fastest: a variant that took longer in every search nearby is not measured."""
T = TypeVar("T")
Pick = Callable[[Sequence[Trial], str], Sequence[Config]]
"""Rows of the search stage and a mode to the configs that cover their shapes."""


@dataclass(frozen=True)
class Matrix:
    """What is known of every shape and mode once the portfolio was measured."""

    configs: tuple[Config, ...]
    """All that were wanted at some place."""
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
        lines = [
            f"{len(self.configs)} configs: {known:,} pairs measured, {len(self.failed):,} failed"
        ]
        lines += [
            f"{count:,} pairs are impossible: {sentence}"
            for sentence, count in self.invalid.items()
        ]
        lines += [f"failed: {trial.config} at {trial.shape}, {trial.mode}: {trial.outcome.text}"
                  for trial in self.failed if isinstance(trial.outcome, Failure)]  # fmt: skip
        lacking = Counter(place for place, _ in self.missing)
        return lines + [
            f"missing: {count} configs at {shape}, {mode}"
            for (shape, mode), count in lacking.items()
        ]


def fill(
    op: str,
    shapes: Iterable[Shape],
    modes: Iterable[str],
    bench: Bench,
    store: Store,
    pick: Pick,
    *,
    budget_s: float | None = None,
    progress: Progress = SILENT,
) -> Matrix:
    """Measure the portfolio on every shape, and each shape's own best and default configs there, in
    rounds that all configs of a shape share.

    What covers the shapes of a layout at sizes alike is chosen from all rows of the search stage
    there, which this does not add to: the same command goes on with the same pairs. What has a row
    of this stage, of the kernels as they are, is not measured again. A shape that was never
    searched stands beside the form of BSP that is the likeliest to be its fastest. Raises
    ValueError where a layout was never searched.
    """
    shapes, modes = tuple(dict.fromkeys(shapes)), tuple(dict.fromkeys(modes))
    for mode in modes:
        check_word("mode", mode, MODES)
    until = _until(budget_s)
    rows = Rows(operation(op), bench, store, progress.advance)
    places = [(shape, mode) for shape in shapes for mode in modes]
    return _filled(rows, _portfolios(rows, places, pick), until, progress)


def fill_with(
    op: str,
    wanted: Mapping[Place, Sequence[Config]],
    bench: Bench,
    store: Store,
    *,
    budget_s: float | None = None,
    progress: Progress = SILENT,
) -> Matrix:
    """Measure these configs at each place, the first of them the baseline, in rounds that all
    configs of a place share. What has a row of this stage, of the kernels as they are and under the
    bench's condition, is not measured again."""
    until = _until(budget_s)
    rows = Rows(operation(op), bench, store, progress.advance)
    listed = {place: list(configs) for place, configs in wanted.items()}
    return _filled(rows, listed, until, progress)


def _until(budget_s: float | None) -> float:
    """The end of a budget that begins now."""
    return time.monotonic() + (inf if budget_s is None else budget_s)


def _filled(
    rows: Rows, wanted: Mapping[Place, list[Config]], until: float, progress: Progress
) -> Matrix:
    progress.start(sum(len(_missing(rows, place, configs)) for place, configs in wanted.items()))
    try:
        _measure(rows, wanted, until)
        rows.end()
    finally:
        progress.finish()
    return _matrix(rows, wanted)


def _portfolios(rows: Rows, places: Sequence[Place], pick: Pick) -> dict[Place, list[Config]]:
    """What to measure at each place."""
    modes = tuple(dict.fromkeys(mode for _, mode in places))
    chosen, wanted = dict[tuple[Place, ...], list[Config]](), {}
    for place in places:
        nearby = _searched_near(rows, place[0], modes)
        if nearby not in chosen:
            searched = [trial for near in nearby for trial in rows.searched(near).values()]
            asked = dict.fromkeys(mode for _, mode in nearby)
            chosen[nearby] = [config for mode in asked for config in pick(searched, mode)]
        wanted[place] = _wanted(rows, place, chosen[nearby], _worth_it(rows, nearby))
    return wanted


def _searched_near(rows: Rows, shape: Shape, modes: Sequence[str]) -> tuple[Place, ...]:
    """The places of this layout that were searched at sizes like this one, in the sense of
    `_bounds`; all of the layout where there are few. Raises ValueError where the layout was never
    searched."""
    least, most = _bounds(size_of(shape))
    alike = [
        place
        for mode in modes
        for place in rows.places(mode)
        if place[0].layout == shape.layout and rows.bsp(place)
    ]
    near = [place for place in alike if least <= size_of(place[0]) <= most]
    if not alike:
        raise ValueError(
            f"no shape of the layout of {shape} was searched in mode {' or '.join(modes)} with "
            "the kernels as they are, so that no "
            f"portfolio can be chosen; run `tftune search {rows.op.name}` with some of these shapes"
        )
    return tuple(near if len(near) >= FEW else alike)


def _bounds(size: int) -> tuple[float, float]:
    """What is measured for a size is chosen from searches between these sizes: its window, and a
    doubling on either side. Windows are of two doublings, so that shapes share their choice."""
    window = 4.0 ** (max(size, 1).bit_length() // 2)
    return window / 4, window * 4


def _worth_it(rows: Rows, nearby: Sequence[Place]) -> set[str]:
    """The variants that came within HOPELESS of the fastest in some search nearby, and BSP."""
    variants = {BSP}
    for place in nearby:
        ratios = rows.ratios(place)
        least = min(ratios.values(), default=inf)
        variants |= {
            config.variant for config, ratio in ratios.items() if ratio <= HOPELESS * least
        }
    return variants


def _wanted(
    rows: Rows, place: Place, portfolio: Sequence[Config], variants: Collection[str]
) -> list[Config]:
    """The baseline first, then the default configs of these variants, the portfolio, and the
    fastest that was searched here where none of these ties with it; impossible ones among them."""
    space, chip, (shape, _) = rows.op.space, rows.bench.target.chip, place
    bsp = rows.bsp(place)
    baseline = bsp.config if bsp else space.complete(space.fallbacks(shape, chip)[0])
    defaults = (
        space.complete(config)
        for config in space.defaults(shape, chip)
        if config.variant in variants
    )
    listed = dict.fromkeys([baseline, *defaults, *portfolio])
    ratios = {
        config: value for config, value in rows.ratios(place).items() if config.variant != BSP
    }
    best = min(ratios, key=ratios.__getitem__, default=None)
    if best is not None and all(ratios.get(config, inf) > TIE * ratios[best] for config in listed):
        listed[best] = None
    return list(listed)


def _missing(rows: Rows, place: Place, configs: Sequence[Config]) -> list[Config]:
    known = rows.matrix(place)
    return [config for config in configs if config not in known and rows.can(place, config)]


def _measure(rows: Rows, wanted: Mapping[Place, Sequence[Config]], until: float) -> None:
    """Everything is compiled ahead; the modes of a shape follow each other, so that a node prepares
    and checks a config once. Whole families, one far from those before it: where the time does not
    suffice, what is measured says something of all of the grid."""
    missing = {
        place: left for place, configs in wanted.items() if (left := _missing(rows, place, configs))
    }
    for (shape, _), configs in missing.items():
        rows.bench.ahead(shape, configs)
    if missing:
        rows.bench.settle(min(COMPILE_S, max(1.0, until - time.monotonic())))
        rows.bench.restart()
    families = groups(wanted, lambda place: place[0].family)
    spread_out = [place for family in spread(families.values()) for place in family]
    for place in (place for place in spread_out if place in missing):
        if time.monotonic() >= until:
            return
        _measure_at(rows, place, wanted[place][0], missing[place])


def spread(items: Iterable[T]) -> list[T]:
    """The items in an order of which every beginning is spread over all of them (van der Corput's:
    by their number's bits, reversed).

    >>> spread("abcdefgh")
    ['a', 'e', 'c', 'g', 'b', 'f', 'd', 'h']
    """
    listed = list(items)
    bits = len(listed).bit_length()
    return [
        listed[number]
        for number in sorted(range(len(listed)), key=lambda number: f"{number:0{bits}b}"[::-1])
    ]


def _measure_at(rows: Rows, place: Place, baseline: Config, configs: Sequence[Config]) -> None:
    """The missing configs of a place, and the baseline, in the same rounds where the bench has
    rounds."""
    others = [config for config in configs if config != baseline]
    if rows.bench.compare is not None:
        return rows.compare(place, others, baseline, "matrix")
    for config in configs:
        rows.measure(place, config, None if config == baseline else baseline, "matrix")


def _matrix(rows: Rows, wanted: Mapping[Place, Sequence[Config]]) -> Matrix:
    chip, invalid = rows.bench.target.chip, dict[str, int]()
    pairs, failed, missing, best = 0, list[Trial](), list[tuple[Place, Config]](), list[Best]()
    for place, configs in wanted.items():
        known = rows.matrix(place)
        tried = {config: known[config] for config in configs if config in known}
        if bsp := strongest_bsp(tried.values()):
            possible = sum(rows.can(place, config) for config in configs)
            winner = best_of(rows, place, tried, bsp, possible)
            best.append(replace(winner, evaluations=len(tried)))
        for config in configs:
            if sentence := rows.op.space.why_invalid(place[0], config, chip):
                invalid[sentence] = invalid.get(sentence, 0) + 1
                continue
            pairs += 1
            trial = tried.get(config)
            if trial is None:
                missing.append((place, config))
            elif isinstance(trial.outcome, Failure):
                failed.append(trial)
    everywhere = tuple(dict.fromkeys(config for configs in wanted.values() for config in configs))
    return Matrix(everywhere, pairs, invalid, tuple(failed), tuple(missing), tuple(best))
