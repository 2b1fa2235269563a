"""A search over many nodes of one target: shapes are dealt to nodes, and each is searched there as
`tftune search` of that shape alone would search it.

What a search begins with, the rows of the driver's database, is frozen when it starts: which node
searches a shape, and when, decides nothing. The nodes themselves are in ray_nodes.py.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tftune.db.store import Store
from tftune.db.trial import Measurement
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.report.tables import Line

if TYPE_CHECKING:
    from tftune.tuner.bench.benches import Bench

APART = 1.03
"""A node whose times differ from the other nodes' by more is named."""
SAMPLED, CONFIGS = 3, 3
"""Shapes, and configs of each beside BSP, that every node measures before the search."""

Node = TypeVar("Node")
AnyNode = TypeVar("AnyNode", contravariant=True)


class Lost(Exception):
    """A node is gone, and what it was doing is not done."""


class Nodes(Protocol[AnyNode]):
    """Machines that do one thing each at a time."""

    def start(self, node: AnyNode, what: str, *given: Any) -> object:
        """Begin to do something there; returns its name."""

    def first(self, names: Collection[object]) -> object:
        """Wait until one of these is done, or its node is gone."""

    def result(self, name: object) -> Any:
        """What came of it; raises Lost where its node is gone."""


def _made(job: Job, shapes: Sequence[Shape], store: Store) -> Bench:
    """The bench that a job names, on this machine."""
    from tftune.pipeline.bench_factory import find_target, make_bench

    return make_bench(job.on, operation(job.op), find_target(job.on, job.target), shapes, store)


@dataclass(frozen=True)
class Job:
    """What a node needs to know to search shapes of one operation."""

    op: str
    target: str
    on: str
    modes: tuple[str, ...]
    options: Mapping[str, Any]
    """Options of `tftune.tuner.search.search.search`."""
    budget_s: float | None
    """For each shape."""
    rows: bytes
    """The driver's rows of the operation when the search started, a compressed file of rows."""
    bench: Callable[[Job, Sequence[Shape], Store], Bench] = _made
    """Makes the bench on a node."""


@dataclass(frozen=True)
class Found:
    """What a node found at one shape."""

    node: str
    shape: Shape
    rows: bytes
    """New rows, a compressed file."""
    lines: tuple[Line, ...]


@dataclass
class Dealer(Generic[Node]):
    """Deals shapes to nodes, the next one to whoever is idle; a lost node's shape goes to
    another."""

    nodes: Nodes[Node]
    idle: list[Node]
    told: Callable[[str], None]

    def deal(self, job: object, shapes: Sequence[Shape], take: Callable[[Found], None]) -> None:
        """Have every shape searched; `take` hears of each once. Raises ValueError where no node is
        left before all are done."""
        waiting, doing = deque(shapes), dict[object, tuple[Node, Shape]]()
        while waiting or doing:
            while self.idle and waiting:
                node, shape = self.idle.pop(0), waiting.popleft()
                doing[self.nodes.start(node, "search", job, shape)] = node, shape
            if not doing:
                raise ValueError(
                    f"no node is left, and {len(waiting)} of {len(shapes)} shapes are not "
                    "searched; what finished is stored, and the same command goes on"
                )
            name = self.nodes.first(doing)
            node, shape = doing.pop(name)
            try:
                found = self.nodes.result(name)
            except Lost as lost:
                waiting.appendleft(shape)
                self.told(f"{lost}; {shape} goes to another node")
                continue
            take(found)
            self.idle.append(node)

    def ask_all(self, what: str, *given: Any) -> list[tuple[Node, Any]]:
        """What every node answers; one that is lost meanwhile is left out from here on."""
        asked = [(node, self.nodes.start(node, what, *given)) for node in self.idle]
        answers = []
        for node, name in asked:
            try:
                answers.append((node, self.nodes.result(name)))
            except Lost as lost:
                self.told(str(lost))
        self.idle = [node for node, _ in answers]
        return answers


Times = Mapping[str, float]
"""Microseconds by a text for the shape, mode and config."""


def apart(times: Mapping[str, Times]) -> dict[str, float]:
    """How many times as long as the other nodes each node takes: the median over what they all
    measured of its time over the median of the others'. Empty for one node, and where they measured
    nothing alike.

    >>> apart({"a": {"x": 10.0}, "b": {"x": 10.2}, "c": {"x": 11.0}})["c"]
    1.0891089108910892
    """
    shared = sorted(set.intersection(*map(set, times.values()))) if len(times) > 1 else []
    return {
        node: statistics.median(
            own[pair] / statistics.median(times[other][pair] for other in times if other != node)
            for pair in shared
        )
        for node, own in times.items()
        if shared
    }


def disagreement(times: Mapping[str, Times]) -> Iterator[str]:
    """How far the nodes agree, in sentences; who is off by more than 3 % is named."""
    ratios = apart(times)
    if not ratios:
        yield "the nodes measured nothing alike: whether they agree is not known"
        return
    worst = max(max(ratio, 1 / ratio) for ratio in ratios.values())
    count = len(set.intersection(*map(set, times.values())))
    yield f"{len(ratios)} nodes agree within {worst - 1:.1%} on {count} times that all measured"
    for node, ratio in ratios.items():
        if max(ratio, 1 / ratio) > APART:
            yield (
                f"node {node} takes {ratio:.3f} times as long as the others: look at its clocks "
                "and links before its rows are trusted"
            )


# What a node does.


def search_shape(job: Job, shape: Shape, node: str) -> Found:
    """Search one shape here; the driver tells of whole shapes, so that nothing says more."""
    from tftune.cli.search_job import find
    from tftune.tuner.search.search import SILENT

    with _bench_here(job, [shape]) as (store, bench):
        before = {trial.id for trial in store.trials(op=job.op, condition=None)}
        how = store, SILENT, job.options, job.budget_s
        lines = find(job.op, [shape], job.modes, bench, *how)
        return Found(node, shape, packed_rows(store, job.op, before), tuple(lines))


def measure_sample(job: Job, shapes: Sequence[Shape]) -> dict[str, float]:
    """Times of BSP and of a few default configs of these shapes here: what nodes are compared
    by."""
    from tftune.models.selector import fallback

    space = operation(job.op).space
    times: dict[str, float] = {}
    with _bench_here(job, shapes) as (_, bench):
        for shape in shapes:
            bsp = fallback(shape, bench.target)
            for config in (bsp, *_defaults(space, shape, bench.target)):
                baseline = None if config == bsp else bsp
                outcome = bench.measure(shape, config, job.modes[0], baseline)
                if isinstance(outcome, Measurement):
                    times[f"{shape} {job.modes[0]} {config}"] = outcome.median_us
    return times


@contextmanager
def _bench_here(job: Job, shapes: Sequence[Shape]) -> Iterator[tuple[Store, Bench]]:
    """A database that begins with the driver's rows, and the job's bench over it."""
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "node.db") as store:
        take_rows(store, job.rows)
        with closing(job.bench(job, shapes, store)) as bench:
            yield store, bench


def _defaults(space: Any, shape: Shape, target: Any) -> list[Config]:
    configs = [
        config
        for config in space.defaults(shape, target.chip)
        if config.variant != "bsp" and space.why_invalid(shape, config, target.chip) is None
    ]
    return configs[:CONFIGS]


# Rows on their way.


def packed_rows(store: Store, op: str, known: Collection[str] = ()) -> bytes:
    """The rows of an operation in a database, as a job carries them. `known`: ids of trials that
    are left out."""
    from tftune.db.row_files import write_rows

    every = store.trials(op=op, condition=None)
    trials = [trial for trial in every if trial.id not in known]
    named = {trial.run for trial in trials}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl.xz"
        write_rows(path, [run for run in store.runs() if run.id in named], trials)
        return path.read_bytes()


def take_rows(store: Store, rows: bytes) -> tuple[int, int]:
    """Store what came packed, all of it or none; returns trials (added, already there)."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl.xz"
        path.write_bytes(rows)
        return store.import_rows(path)
