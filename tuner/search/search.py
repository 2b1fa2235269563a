"""The search: BSP first, then what is likely to be fast, then what the sampler proposes; last the
winners again, in a fresh world.

Our rows are the truth. Each outcome is committed before any study hears of it, and a search reads
them back first: the same command goes on where it was stopped and measures nothing twice. The live
study is in memory, made from the rows at each start; the study in the database is a copy of them
for Optuna's tools.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Protocol

import optuna
from threadpoolctl import threadpool_limits

from tftune.db.evidence import Place
from tftune.db.store import Store
from tftune.db.trial import MODES, Trial
from tftune.db.verdict import Best
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.tuner.bench.benches import Bench
from tftune.tuner.search.efforts import EFFORTS, Effort
from tftune.tuner.search.final_stage import conclude, final_stage, planned, to_come
from tftune.tuner.search.opening import NOTHING_KNOWN, Knowledge
from tftune.tuner.search.samplers import SAMPLERS
from tftune.tuner.search.search_stage import SearchStage, study_name
from tftune.tuner.search.session import Rows

__all__ = ["EFFORTS", "Best", "Effort", "Progress", "search", "study_name"]

FINAL_SHARE, FINAL_S, FINAL_MOST = 0.2, 1.3, 0.5
"""What is kept of a wall-clock budget for the final stage: this share, or so many seconds for each
shape and mode where ranks measure it (110 s over 88 of them on 8x H200), but at most that share."""


logger = logging.getLogger(__name__)


class Progress(Protocol):
    """What is told while a search runs."""

    def start(self, total: int | None, stage: str = "") -> None:
        """A stage begins, and so many trials are to come, in it and in those behind it, as far as
        is known; None: not counted. `stage`: a word for all but the first."""

    def doing(self, what: str) -> None:
        """This may take a while, and no trial comes meanwhile."""

    def advance(self, trial: Trial) -> None:
        """This trial is committed."""

    def finish(self) -> None:
        """No more trials come, whether the search ended well or not."""


class Silent:
    """Progress that nobody watches."""

    def start(self, total: int | None, stage: str = "") -> None: ...

    def doing(self, what: str) -> None: ...

    def advance(self, trial: Trial) -> None: ...

    def finish(self) -> None: ...


SILENT = Silent()


def search(
    op: str,
    shapes: Iterable[Shape],
    modes: Iterable[str],
    bench: Bench,
    store: Store,
    *,
    effort: str = "default",
    budget_s: float | None = None,
    sampler: str = "mixed",
    variants: tuple[str, ...] = (),
    seed: int = 0,
    pool: int | None = None,
    progress: Progress = SILENT,
    knowledge: Knowledge = NOTHING_KNOWN,
) -> list[Best]:
    """Search each shape in each mode, then measure the winners again; every outcome is a committed
    row of `store`.

    `budget_s` is wall-clock time; BSP and the default configs of every shape are measured whatever
    it says, since without them there is no answer. `variants` limits the search (BSP is always
    among them); `pool` limits it to that many configs of each variant, which are all compiled
    ahead; a replay is limited by its rows instead. `knowledge`: what is known before the first
    trial. A shape and mode where no BSP form could be measured is left out. Raises ValueError for
    an unknown name, a shape that the target is too small for, or if nothing at all could be
    measured.
    """
    shapes, modes = tuple(dict.fromkeys(shapes)), tuple(dict.fromkeys(modes))
    _check(op, shapes, modes, bench, effort, sampler)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    started, budget = time.monotonic(), inf if budget_s is None else budget_s
    rows = Rows(operation(op), bench, store, progress.advance)
    how = EFFORTS[effort], sampler, variants, seed, pool, knowledge
    stage = SearchStage(rows, *how, progress.doing)
    places, unfinished = [(shape, mode) for shape in shapes for mode in modes], 0
    progress.start(_planned(stage, places))
    try:
        kept = _for_finals(budget, len(places), bench) if stage.effort.sampled else 0.0
        # Compilers need the other cores, and matrices of 64 rows gain nothing.
        with threadpool_limits(1):
            stage.run(shapes, modes, started + budget - kept)
        rows.refuse_nothing(places)
        if stage.effort.sampled:
            starting = partial(progress.start, stage="final")
            unfinished = final_stage(
                rows, places, stage.effort.finalists, started + budget, starting
            )
        rows.end()
    finally:
        progress.finish()
    if stage.stopped or unfinished:
        logger.warning(
            "stopped by the budget: %s%s; the same command goes on",
            _tried(stage, places),
            f", {unfinished:,} final ones left" if unfinished else "",
        )
    winners = [
        conclude(rows, place, bsp, stage.feasible[place])
        for place in places
        if (bsp := rows.bsp(place))
    ]
    return [replace(best, off_by=stage.off_by.get((best.shape, best.mode))) for best in winners]


def _planned(stage: SearchStage, places: Sequence[Place]) -> int | None:
    """Trials to come in both stages, at most; None where each config is one, since to count them
    takes minutes."""
    rows, effort = stage.rows, stage.effort
    if effort.trials is None:
        return None
    searched = sum(max(0, effort.trials - len(rows.searched(place))) for place in places)
    if not effort.sampled:
        return searched
    if not searched:
        return to_come(rows, places, effort.finalists)
    return searched + planned(rows, places, effort.finalists, len(stage.variants) - 1)


def _tried(stage: SearchStage, places: Sequence[Place]) -> str:
    """How many trials of all that there would be without a budget, in words."""
    tried = [len(stage.rows.searched(place)) for place in places]
    if stage.effort.trials is None:
        return f"{sum(tried):,} trials, and every feasible config is wanted"
    wanted = sum(max(count, stage.effort.trials) for count in tried)
    return f"{sum(tried):,} of {wanted:,} trials"


def _for_finals(budget_s: float, places: int, bench: Bench) -> float:
    """Seconds of a budget that the search stage leaves."""
    if budget_s == inf:
        return 0.0
    needed = FINAL_S * places if bench.compare is not None else 0.0
    return max(FINAL_SHARE * budget_s, min(needed, FINAL_MOST * budget_s))


def _check(
    op: str, shapes: Sequence[Shape], modes: Sequence[str], bench: Bench, effort: str, sampler: str
) -> None:
    for what, names, known in (
        ("mode", modes, MODES),
        ("effort", (effort,), EFFORTS),
        ("sampler", (sampler,), SAMPLERS),
    ):
        if wrong := [name for name in names if name not in known]:
            raise ValueError(f"there is no {what} {wrong[0]!r}; there are {', '.join(known)}")
    if not shapes or not modes:
        raise ValueError(
            f"a search needs a shape and a mode: {len(shapes)} shapes and {len(modes)} modes were "
            "given"
        )
    for shape in shapes:
        if shape.op != op:
            raise ValueError(f"the shape {shape} is of {shape.op}, not of {op}")
        if (world := shape.to_dict().get("world", 1)) > bench.target.gpus:
            raise ValueError(
                f"the shape {shape} needs world={world} GPUs and {bench.target.name} has "
                f"{bench.target.gpus}; give another --target"
            )
        if not any(
            known is None or known for known in (bench.known(shape, mode) for mode in modes)
        ):
            raise ValueError(
                f"there are no rows of {shape} on {bench.target.name} in mode "
                f"{' or '.join(modes)} to replay; "
                "leave it out, or add rows with `tftune trials import`"
            )
