"""From rows to answers: which rows are meant, then what each layout learns and how it does held
out, for train, export and report."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from operator import attrgetter
from time import monotonic
from typing import Any

from tftune.db.evidence import counting, other_build, set_aside
from tftune.db.target import Target
from tftune.db.trial import EVIDENCE, MODES, Run, Trial
from tftune.kernels.core.grouping import groups
from tftune.models.artifact import Artifact, Layout, Mode
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import Each, Evaluation, evaluate
from tftune.models.lending import lent
from tftune.models.tree.trainer import train_layout
from tftune.tuner.bench.processes import Helpers

logger = logging.getLogger(__name__)

Say = Callable[[str], None]
SAID_S = 10.0
"""Between two sentences on how many folds are judged."""
MANY = 24
"""Measured shapes from which on the work is shared among processes, which take some seconds to
start."""


@dataclass(frozen=True)
class Source:
    """The rows of one operation, target and bench, and their runs in order."""

    op: str
    target: str
    bench: str
    trials: Sequence[Trial]
    runs: Sequence[Run]
    under_lengths: Sequence[Trial] = ()
    """Rows of ragged sequences, which the trees over facts are fitted to."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.op, self.target, self.bench

    @property
    def modes(self) -> list[str]:
        return [mode for mode in MODES if any(trial.mode == mode for trial in self.current)]

    @cached_property
    def current(self) -> Sequence[Trial]:
        """The rows that one tree may be made of: another minor version of Triton than the newest
        run's compiles other kernels, and with multicast NCCL is another BSP."""
        if self.bench == "model":
            return self.trials
        newest = newest_build(self)
        others = other_build(self.runs, newest, unknown=True)
        kept = [trial for trial in self.trials if trial.run not in others]
        if left := len(self.trials) - len(kept):
            versions = newest.get("triton") or "unknown", newest.get("multicast", "off")
            logger.warning(
                "%d of %d rows of %s on %s are left out: the newest run has Triton %s and "
                "multicast %s, and they were measured with another",
                *(left, len(self.trials), self.op, self.target, *versions),
            )
        return kept


@dataclass(frozen=True)
class Fit:
    """What was learned from a source, by mode."""

    source: Source
    datasets: Mapping[str, Dataset]
    modes: Mapping[str, Mode]
    evaluations: Mapping[str, Mapping[str, Evaluation]]
    """By mode and layout (`LayoutModel.title`), of the layouts that have enough shapes to hold some
    out."""

    @property
    def reports(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The evaluations as an artifact has them."""
        return {
            mode: {title: evaluation.to_dict() for title, evaluation in each.items()}
            for mode, each in self.evaluations.items()
        }


def sources(trials: Sequence[Trial], runs: Sequence[Run]) -> list[Source]:
    """The rows apart by operation, target and bench, in the order in which each first appears.

    Rows that do not count (`evidence.counting`) are left out, and those of `tftune.warm_up`, with
    their runs, whose build would count as the newest.
    """
    others, key_of = set_aside(runs), attrgetter("op", "target", "bench")
    usual = groups((row for row in counting(trials, runs) if row.stage in EVIDENCE), key_of)
    under_lengths = (row for row in trials if row.condition.startswith("lengths="))
    ragged = groups((row for row in under_lengths if row.run not in others), key_of)

    def runs_of(rows: Sequence[Trial]) -> list[Run]:
        named = {trial.run for trial in rows}
        return [run for run in runs if run.id in named]

    return [Source(*key, rows, runs_of(rows), ragged.get(key, [])) for key, rows in usual.items()]


def choose(
    found: Sequence[Source], op: str, target: str | None, bench: str | None, place: str
) -> Source:
    """The one source that is meant: of this target and bench where given; node before the others
    where no bench is given.

    Raises ValueError where there is none, or where several targets are left to choose from.
    """
    wanted = Target.parse(target).name if target else None
    left = [
        s for s in found if s.op == op and wanted in (None, s.target) and bench in (None, s.bench)
    ]
    asked = " ".join(
        [op, *(["on " + wanted] if wanted else []), *([f"from the {bench} bench"] if bench else [])]
    )
    if not left:
        there = ", ".join(f"{s.op} on {s.target} ({s.bench})" for s in found) or "nothing"
        raise ValueError(
            f"{place} has no rows of {asked}; it has {there}; run `tftune search {op}`"
        )
    if len(targets := sorted({source.target for source in left})) > 1:
        raise ValueError(
            f"{place} has rows of {asked} on {', '.join(targets)}; choose one with --target"
        )
    return min(left, key=lambda source: ("node", "replay", "model", "drill").index(source.bench))


def fit(
    source: Source,
    judged: bool = True,
    say: Say = lambda sentence: None,
    spanning: bool = True,
) -> Fit:
    """Learn what each layout of each mode answers, and judge it on shapes held out.

    `judged` False: nothing is held out. Layouts with many shapes are shared among processes. `say`
    hears what is being done. `spanning`: as in `train_layout`.
    """
    say(f"{source.op} on {source.target}: {len(source.trials):,} rows of the {source.bench} bench")
    datasets = {
        mode: load(source.current, source.op, source.target, mode, source.bench)
        for mode in source.modes
    }
    parts = {mode: dataset.by_layout() for mode, dataset in datasets.items()}
    large = (
        judged
        and source.bench != "model"
        and max(len(part.shapes) for each in parts.values() for part in each.values()) >= MANY
    )
    with ExitStack() as stack:
        each: Each = stack.enter_context(_sharing()) if large else map
        if judged:
            each = _counting(each, say)
        by_mode = {
            mode: _learned(layouts, judged, each, say, spanning) for mode, layouts in parts.items()
        }
    return Fit(
        source,
        datasets,
        {mode: _with_facts(source, mode, one, say) for mode, (one, _) in by_mode.items()},
        {mode: each for mode, (_, each) in by_mode.items()},
    )


def _with_facts(source: Source, mode: str, served: Mode, say: Say) -> Mode:
    """What a mode answers, with the trees over facts where there are rows of ragged sequences."""
    if not source.under_lengths:
        return served
    from tftune.pipeline.facts_job import learned

    target = Target.parse(source.target)
    artifact = Artifact(source.op, target, source.bench, {mode: served})
    model = learned(artifact, mode, source.under_lengths)
    if model is None:
        say(f"mode {mode}: rows of ragged sequences suffice for no trees; see `tftune facts`")
        return served
    say(f"learned mode {mode}, facts: {model.cases} cases of {len(model.lengths)} distributions")
    return replace(served, facts=model)


@contextmanager
def _sharing() -> Iterator[Each]:
    """A `map` over processes."""
    workers = os.cpu_count() or 1

    def each(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        listed = list(items)
        size = ceil(len(listed) / workers)  # what is sent with the work is sent once a chunk
        return pool.map(work, listed, chunksize=size)

    with Helpers(workers) as pool:
        yield each


def _counting(each: Each, say: Say, clock: Callable[[], float] = monotonic) -> Each:
    """The same `map`, which says every `SAID_S` how many folds are judged."""

    def counted(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        listed, spoke = list(items), clock()
        for number, judgement in enumerate(each(work, listed), start=1):
            if clock() - spoke >= SAID_S:
                say(f"judged {number} of {len(listed)} folds")
                spoke = clock()
            yield judgement

    return counted


def _learned(
    parts: Mapping[Layout, Dataset],
    judged: bool,
    each: Each,
    say: Say = lambda sentence: None,
    spanning: bool = True,
) -> tuple[Mode, dict[str, Evaluation]]:
    """What one mode answers, and the evaluations by layout."""
    models = {}
    for layout, part in parts.items():
        models[layout] = train_layout(part, spanning)
        say(f"learned mode {part.mode}, {models[layout].title}: {len(part.shapes)} shapes")
    evaluations: dict[str, Evaluation] = {}
    for layout, part in parts.items() if judged else ():
        if (evaluation := evaluate(part, each=each)) is not None:
            evaluations[models[layout].title] = evaluation
    return Mode(models, lent(parts, models)), evaluations


def modes_or_reasons(source: Source) -> dict[str, Mode | str]:
    """What each mode answers, or the sentence that says why nothing can be learned: a report is
    worth having without it."""
    made: dict[str, Mode | str] = {}
    for mode in source.modes:
        try:
            parts = load(source.current, source.op, source.target, mode, source.bench).by_layout()
            made[mode] = _learned(parts, False, map)[0]
        except ValueError as error:
            made[mode] = str(error)
    return made


def newest_build(source: Source) -> dict[str, str]:
    """The versions that the newest run was made with; empty where no run is known."""
    return dict(max(source.runs, key=lambda run: run.started).build) if source.runs else {}
