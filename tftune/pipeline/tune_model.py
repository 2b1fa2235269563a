"""Everything between a model and its artifacts, on a node or on the analytic model."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tftune.confirm import relatives
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Trial
from tftune.kernels.core.registry import operation, payload_bytes
from tftune.models.timeline.simulator import ordering, predict
from tftune.pipeline.answers import Answer, Step, answers, steps
from tftune.pipeline.artifacts import write_artifacts
from tftune.pipeline.bench_factory import world_of
from tftune.pipeline.measure import Measuring
from tftune.pipeline.model_shapes import Model
from tftune.pipeline.places import Stake, stakes
from tftune.pipeline.proposals import Proposals
from tftune.pipeline.ranks import ModelRanks, NodeRanks, Ranks
from tftune.tuner.bench.benches import Bench, ModelBench
from tftune.tuner.bench.sandbox import Broken
from tftune.tuner.search.session import Rows

Told = Callable[[Trial], None]


@dataclass(frozen=True)
class Job:
    """What is tuned, where, and where its artifacts go."""

    model: Model
    modes: tuple[str, ...]
    on: str
    target: Target
    budget_s: float
    folder: Path

    @property
    def ops(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(shape.op for shape in self.model.shapes))

    @property
    def stakes(self) -> list[Stake]:
        return stakes(self.model.layers, self.modes, self.target.chip)


@dataclass(frozen=True)
class Tuned:
    """What came of a job."""

    artifacts: tuple[Path, ...]
    answers: tuple[Answer, ...]
    steps: tuple[Step, ...]
    unmeasured: int
    """Layers, by size and mode, that no rows answer for."""
    stopped: BaseException | None
    """What ended the measuring before its budget; None where nothing did."""
    spent_s: Mapping[str, float]


def tune(job: Job, store: Store, told: Told, doing: Callable[[str], None]) -> Tuned:
    """Measure within the budget, then write artifacts of all that is measured, whatever ended it:
    Ctrl-C, SIGTERM, or a node on which no ranks start. `told` hears of every row, `doing` of what
    takes a while."""
    began, stopped = time.monotonic(), None
    try:
        with _terminated_as_interrupted():
            measured(job, store, told, doing)
    except (KeyboardInterrupt, Broken) as error:
        stopped = error
    middle = time.monotonic()
    doing("artifacts")
    paths = write_artifacts(store, job.ops, job.target, job.on, job.folder)
    answered = answers(job.model.layers, job.modes, paths, job.folder, job.target)
    lacking = len(job.model.layers) * len(job.modes) - len(answered)
    spent_s = {"measuring": middle - began, "artifacts": time.monotonic() - middle}
    tables = tuple(answered), tuple(steps(job.model.layers, answered))
    return Tuned(tuple(paths), *tables, lacking, stopped, spent_s)


def measured(job: Job, store: Store, told: Told, doing: Callable[[str], None]) -> None:
    """The rows of a job, in one world of ranks. Raises Broken where none starts."""
    order = ordering(job.target.chip, world_of(*job.model.shapes))
    with ExitStack() as stack:
        bench, ranks = _where(job, stack)
        rows = {op: Rows(operation(op), bench, store, told) for op in job.ops}
        seeds = {op: relatives.proposals(relatives.artifacts(op, job.target)) for op in job.ops}
        proposals = {op: Proposals(rows[op], order, seeds[op]) for op in job.ops}
        doing("starting ranks, and compilers beside them")
        save = partial(write_artifacts, store, job.ops, job.target, job.on, job.folder)
        try:
            Measuring(rows, proposals, ranks, bench, save).run(job.stakes, job.budget_s)
        finally:
            for each in rows.values():
                each.end()


def _where(job: Job, stack: ExitStack) -> tuple[Bench, Ranks]:
    """What compiles and names the target, and what carries out orders."""
    if job.on == "model":
        return ModelBench(job.target, predict), ModelRanks(job.target, predict)
    from tftune.tuner.bench.node import NodeBench

    shapes = job.model.shapes
    payload = payload_bytes(*shapes)
    bench = stack.enter_context(closing(NodeBench(job.target, payload)))
    return bench, stack.enter_context(closing(NodeRanks(job.target, world_of(*shapes), payload)))


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends the measuring as Ctrl-C does; only a main thread may say so."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before: Any = signal.SIG_DFL
    with suppress(ValueError):
        before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, before)
