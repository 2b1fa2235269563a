"""From rows to trees: which rows are meant, then dataset, tree and held-out evaluation of each mode, for train, export and report."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil
from typing import Any

from tftune.db.target import Target, minor
from tftune.db.trial import MODES, Run, Trial
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import Evaluation, evaluate
from tftune.models.train import train
from tftune.models.tree import Tree
from tftune.tuner.processes import Helpers

logger = logging.getLogger(__name__)

MANY = 24
"""Measured shapes from which on the work is shared among processes, which take some seconds to start."""


@dataclass(frozen=True)
class Source:
    """The rows of one operation, target and bench, and their runs in order."""

    op: str
    target: str
    bench: str
    trials: Sequence[Trial]
    runs: Sequence[Run]

    @property
    def modes(self) -> list[str]:
        return [mode for mode in MODES if any(trial.mode == mode for trial in self.current)]

    @cached_property
    def current(self) -> Sequence[Trial]:
        """The rows that one tree may be made of: another minor version of Triton than the newest run's compiles other kernels."""
        if self.bench == "model":
            return self.trials
        versions, newest = {run.id: run.build.get("triton", "") for run in self.runs}, newest_build(self).get("triton", "")
        kept = [trial for trial in self.trials if minor(versions.get(trial.run, newest)) == minor(newest)]
        if left := len(self.trials) - len(kept):
            logger.warning(
                "%d of %d rows of %s on %s are left out: the newest run has Triton %s, and they were measured with another",
                left, len(self.trials), self.op, self.target, newest or "unknown",
            )  # fmt: skip
        return kept


@dataclass(frozen=True)
class Fit:
    """What was learned from a source, by mode."""

    source: Source
    datasets: Mapping[str, Dataset]
    trees: Mapping[str, Tree]
    evaluations: Mapping[str, Evaluation]


def sources(trials: Sequence[Trial], runs: Sequence[Run]) -> list[Source]:
    """The rows apart by operation, target and bench, in the order in which each first appears."""
    groups: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.op, trial.target, trial.bench), []).append(trial)
    used = {key: {trial.run for trial in rows} for key, rows in groups.items()}
    return [Source(*key, rows, [run for run in runs if run.id in used[key]]) for key, rows in groups.items()]


def choose(found: Sequence[Source], op: str, target: str | None, bench: str | None, place: str) -> Source:
    """The one source that is meant: of this target and bench where given; node before the others where no bench is given.

    Raises ValueError where there is none, or where several targets are left to choose from.
    """
    wanted = Target.parse(target).name if target else None
    left = [s for s in found if s.op == op and wanted in (None, s.target) and bench in (None, s.bench)]
    asked = " ".join([op, *(["on " + wanted] if wanted else []), *([f"from the {bench} bench"] if bench else [])])
    if not left:
        there = ", ".join(f"{s.op} on {s.target} ({s.bench})" for s in found) or "nothing"
        raise ValueError(f"{place} has no rows of {asked}; it has {there}; run `tftune search {op}`")
    if len(targets := sorted({source.target for source in left})) > 1:
        raise ValueError(f"{place} has rows of {asked} on {', '.join(targets)}; choose one with --target")
    return min(left, key=lambda source: ("node", "replay", "model", "drill").index(source.bench))


def fit(source: Source) -> Fit:
    """Train a tree for each mode that the source has, and judge it on shapes held out; raises ValueError for a matrix with gaps.

    Many measured shapes take seconds for each group held out: then each mode has processes of its own, which remember what a config is
    predicted to take, and get the rows once.
    """
    datasets = {mode: load(source.current, source.op, source.target, mode, source.bench) for mode in source.modes}
    for dataset in datasets.values():
        dataset.refuse_missing()
    if source.bench != "model" and any(len(dataset.shapes) >= MANY for dataset in datasets.values()):
        workers = max(1, (os.cpu_count() or 1) // len(datasets))
        with ThreadPoolExecutor(len(datasets)) as threads, ExitStack() as stack:
            pools = [stack.enter_context(Helpers(workers)) for _ in datasets]
            found = list(threads.map(partial(_shared, workers), pools, datasets.values()))
    else:
        found = [(train(dataset), evaluate(dataset)) for dataset in datasets.values()]
    trees = {mode: tree for mode, (tree, _) in zip(datasets, found, strict=True)}
    return Fit(source, datasets, trees, {mode: evaluation for mode, (_, evaluation) in zip(datasets, found, strict=True)})


def _shared(workers: int, pool: Helpers, dataset: Dataset) -> tuple[Tree, Evaluation]:
    """The tree and the evaluation of one mode, the work shared among the processes of a pool."""

    def each(work: Callable[[Any], Any], groups: Iterable[Any]) -> Iterable[Any]:
        groups = list(groups)
        return pool.map(work, groups, chunksize=ceil(len(groups) / workers))

    tree = pool.submit(train, dataset)
    return tree.result(), evaluate(dataset, each=each)


def trees_or_reasons(source: Source) -> dict[str, Tree | str]:
    """The tree of each mode, or the sentence that says why it cannot be trained: a report is worth having without it."""
    made: dict[str, Tree | str] = {}
    for mode in source.modes:
        try:
            made[mode] = train(load(source.current, source.op, source.target, mode, source.bench))
        except ValueError as error:
            made[mode] = str(error)
    return made


def newest_build(source: Source) -> dict[str, str]:
    """The versions that the newest run was made with; empty where no run is known."""
    return dict(max(source.runs, key=lambda run: run.started).build) if source.runs else {}
