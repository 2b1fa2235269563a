"""The final stage: the winners of a search again, in a fresh world and in the same rounds, and what
may be called the best of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from tftune.db.evidence import BSP, Place, tied
from tftune.db.trial import Measurement, Trial
from tftune.db.verdict import Best, standing
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.search.session import Rows
from tftune.tuner.search.stats import greedy_cover

RIVALS = 4
"""Configs that the search could not tell from its winner and that are compared with it."""


def portfolio(rows: Rows, places: Sequence[Place], limit: int) -> dict[str, tuple[Config, ...]]:
    """For each mode, at most `limit` configs that come near the best of each variant at most
    shapes."""
    chosen = {}
    for mode in dict.fromkeys(mode for _, mode in places):
        times: dict[tuple[Shape, str], dict[Config, float]] = {}
        for place in places:
            if place[1] == mode:
                for config, value in rows.ratios(place).items():
                    if config.variant != BSP:
                        times.setdefault((place[0], config.variant), {})[config] = value
        chosen[mode] = greedy_cover(times, limit)
    return chosen


def final_stage(
    rows: Rows,
    places: Sequence[Place],
    finalists: int,
    until: float,
    starting: Callable[[int], None] = lambda total: None,
) -> int:
    """Measure in a fresh world, while there is time: at each place BSP and its own winners; then
    the portfolio at every place. Returns how many trials there was no time for.

    The portfolio is measured everywhere so that the regret of each of its configs is defined at
    every shape. Where the bench has rounds to share, all finalists of a place, and the winner's
    rivals, are in them. A place's own winners are measured together or not at all: BSP alone would
    count as the best there. `starting` hears how many trials are to come.
    """
    own, everything = _wanted(rows, places, finalists)
    if time.monotonic() < until:
        starting(_to_come(rows, own, everything))
    fresh = False
    for part, wanted in enumerate((own, everything)):
        for place, configs in wanted.items():
            if time.monotonic() >= until:
                return _to_come(rows, own, everything)
            for measure in _steps(rows, place, configs):
                if part and time.monotonic() >= until:
                    return _to_come(rows, own, everything)
                if not fresh:
                    rows.bench.restart()
                    fresh = True
                measure()
    return 0


def planned(rows: Rows, places: Sequence[Place], finalists: int, variants: int) -> int:
    """About how many trials the final stage makes, with so many variants, before the search stage
    has said which: a place's own winners are mostly among the finalists of all."""
    each = 1 + max(variants, finalists) + (1 + variants if rows.bench.compare else 0)
    return sum(max(0, each - len(rows.finals(place))) for place in places)


def to_come(rows: Rows, places: Sequence[Place], finalists: int) -> int:
    """Trials that the final stage makes where nothing more is searched."""
    return _to_come(rows, *_wanted(rows, places, finalists))


def _wanted(
    rows: Rows, places: Sequence[Place], finalists: int
) -> tuple[dict[Place, list[Config]], dict[Place, list[Config]]]:
    """Each place's own winners, and all that is measured there."""
    chosen = portfolio(rows, places, finalists)
    own = {place: rows.winners(place) for place in places}
    everything = {}
    for place in places:
        shared = [config for config in chosen[place[1]] if rows.can(place, config)]
        rivals = rows.rivals(place, RIVALS) if rows.bench.compare else []
        everything[place] = list(dict.fromkeys([*own[place], *rivals, *shared]))
    return own, everything


def _to_come(
    rows: Rows, own: Mapping[Place, list[Config]], everything: Mapping[Place, list[Config]]
) -> int:
    """Trials that the final stage still makes, if none of BSP fails: shared rounds measure all
    configs of a place where one is missing."""
    count = 0
    for place, configs in everything.items():
        if (bsp := rows.bsp(place)) is None:
            continue
        known = rows.finals(place)
        first = [config for config in (bsp.config, *own[place]) if config not in known]
        rest = [c for c in configs if c not in known and c not in own[place]]
        if rows.bench.compare is None:
            count += len(first) + len(rest)
        else:
            count += bool(first) * (1 + len(own[place])) + bool(rest) * (1 + len(configs))
    return count


def _steps(rows: Rows, place: Place, configs: Sequence[Config]) -> Iterator[Callable[[], object]]:
    """What is to be measured at a place: one config at a time; or all in the same rounds, where one
    of them is missing."""
    missing = _missing(rows, place, configs)
    if rows.bench.compare is None:
        yield from (
            partial(rows.measure, place, config, baseline, "final") for config, baseline in missing
        )
    elif next(missing, None) and (bsp := rows.bsp(place)):
        yield partial(rows.compare, place, configs, bsp.config)


def _missing(
    rows: Rows, place: Place, configs: Sequence[Config]
) -> Iterator[tuple[Config, Config | None]]:
    """What has no final row yet, with its baseline: BSP before all, and nothing beside it where BSP
    fails."""
    bsp = rows.bsp(place)
    if bsp is None:
        return
    for config in (bsp.config, *configs):
        known = rows.finals(place)
        if config != bsp.config and not _measured(known.get(bsp.config)):
            return
        if config not in known or (config == bsp.config and not _measured(known[config])):
            yield config, None if config == bsp.config else bsp.config


def _measured(trial: Trial | None) -> bool:
    return trial is not None and isinstance(trial.outcome, Measurement)


def conclude(rows: Rows, place: Place, bsp: Trial, feasible: int) -> Best:
    """The fastest by the final rows, or by the search's own where BSP has no final one."""
    return best_of(rows, place, rows.finals(place), bsp, feasible)


def best_of(
    rows: Rows, place: Place, again: Mapping[Config, Trial], bsp: Trial, feasible: int
) -> Best:
    """The fastest of what was measured again, or of the search's own where BSP was not."""
    measured = again.get(bsp.config)
    trials, bsp = (
        (again, measured)
        if measured is not None and _measured(measured)
        else (rows.searched(place), bsp)
    )
    searched = rows.searched(place)
    won = standing(trials, [*searched.items(), *trials.items()], place[1])
    tie_set = tuple(config for config in won.ranked if tied(trials[config], won.winner))
    return Best(
        *place, won.winner, won.bsp or bsp, won.by_variant, won.verdicts, len(searched), feasible,
        tie_set,
    )  # fmt: skip
