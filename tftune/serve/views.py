"""What the pages show, as values: coverage, speed-ups, an artifact, a shape's story, nodes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.shape import Shape
from tftune.models.artifact import Artifact
from tftune.pipeline.training_job import Source, choose, sources
from tftune.report.results_table import config_text
from tftune.report.series import Series, all_series, layout_title
from tftune.report.tables import BENCH_WORDS, label, lines
from tftune.report.tree_list import leaf_count, tree_list
from tftune.serve import artifacts, gate, rows
from tftune.serve.database import Database
from tftune.serve.refusal import Refusal, unknown
from tftune.serve.tables import FINDINGS, JOBS, PLACEMENTS, REPORTS, ROWS, RUNS

KEPT = 8
"""Operations whose rows are kept as series: reading tens of thousands takes seconds."""


@dataclass(frozen=True)
class Covered:
    """One operation on one target, of one bench and build."""

    op: str
    target: str
    bench: str
    build: str
    rows: int
    shapes: int
    nodes: int
    newest: str
    stages: Mapping[str, str]
    """The digest of each stage."""

    @property
    def times(self) -> str:
        return BENCH_WORDS[self.bench]


def coverage(database: Database) -> list[Covered]:
    """Every operation, target, bench and build that has rows."""
    keys = ROWS.c.op, ROWS.c.target, ROWS.c.bench, ROWS.c.build
    shapes, nodes = (sa.func.count(sa.distinct(column)) for column in (ROWS.c.shape, ROWS.c.node))
    query = sa.select(*keys, sa.func.count(), shapes, nodes, sa.func.max(ROWS.c.created))
    with database.reading() as connection:
        found = connection.execute(query.group_by(*keys).order_by(*keys)).all()
        stages = _stages(connection)
    return [
        Covered(
            op, target, bench, build, count, of_shapes, of_nodes, newest,
            stages.get((op, target, build), {}),
        )
        for op, target, bench, build, count, of_shapes, of_nodes, newest in found
    ]  # fmt: skip


def _stages(connection: sa.Connection) -> dict[tuple[str, str, str], dict[str, str]]:
    """The digest that has each stage, by operation, target and build."""
    names = [PLACEMENTS.c[name] for name in ("op", "target", "build", "stage", "digest")]
    found: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for op, target, build, stage, digest in connection.execute(
        sa.select(*names).order_by(PLACEMENTS.c.number)
    ):
        found[op, target, build][stage] = digest
    return found


def open_findings(database: Database) -> int:
    with database.reading() as connection:
        query = sa.select(sa.func.count()).where(FINDINGS.c.state == "open")
        return int(connection.execute(query).scalar_one())


def newest_jobs(database: Database, most: int = 8) -> list[dict[str, Any]]:
    with database.reading() as connection:
        query = sa.select(JOBS).order_by(JOBS.c.created.desc()).limit(most)
        return [dict(row) for row in connection.execute(query).mappings()]


@dataclass(frozen=True)
class Measured:
    """The rows of an operation that count, as tables and plots show them."""

    source: Source
    series: Sequence[Series]
    nodes: Mapping[str, int]


def measured(database: Database, op: str, target: str, bench: str | None) -> Measured:
    """The same rows that a build would train on. Raises Refusal 404 where there are none."""
    newest = sa.select(sa.func.max(ROWS.c.number), sa.func.count()).where(
        ROWS.c.op == op, ROWS.c.target == target
    )
    with database.reading() as connection:
        number, count = connection.execute(newest).one()
        ended = connection.execute(sa.select(RUNS.c.id, RUNS.c.role)).all()
    if not count:
        raise unknown(f"row of {op} on {target}", "push some to /v1/rows")
    return _measured(database, op, target, bench, (number, hash(tuple(ended))))


@lru_cache(maxsize=KEPT)
def _measured(
    database: Database, op: str, target: str, bench: str | None, version: tuple[int, int]
) -> Measured:
    """`version`: another one where rows came, or a run took another role."""
    groups = sources(rows.trials_of(database, op, target), rows.runs_of(database, target))
    try:
        source = choose(groups, op, None, bench, "the service")
    except ValueError as error:
        raise Refusal(404, str(error)) from error
    with database.reading() as connection:
        query = sa.select(ROWS.c.node, sa.func.count()).where(
            ROWS.c.op == op, ROWS.c.target == target
        )
        nodes = {
            node: count for node, count in connection.execute(query.group_by(ROWS.c.node)).all()
        }
    return Measured(source, all_series(lines(source.current)), nodes)


@dataclass(frozen=True)
class Layout:
    """One layout of an artifact: how it does held out, and its tree."""

    mode: str
    title: str
    shapes: int
    report: Mapping[str, Any] | None
    regret: tuple[float, float] | None
    leaves: int
    tree: str
    """As HTML; "" without one."""


def layouts(artifact: Artifact) -> list[Layout]:
    """In the order of the artifact."""
    lost = gate.regrets(artifact)
    held_out = artifact.document.get("held_out", {})
    return [
        Layout(
            model.mode,
            layout_title(artifact.op, model.layout),
            len(model.known),
            held_out.get(model.mode, {}).get(model.title),
            lost.get(f"{model.mode}, {model.title}"),
            leaf_count(model),
            tree_list(model) if model.root is not None else "",
        )
        for model in artifact.models()
    ]


def reports(database: Database, digest: str) -> list[dict[str, Any]]:
    """The verify reports of an artifact, newest first, with what each lacks to confirm."""
    query = sa.select(REPORTS).where(REPORTS.c.digest == digest).order_by(REPORTS.c.at.desc())
    with database.reading() as connection:
        found = connection.execute(query).mappings().all()
    made = []
    for row in found:
        report = gate.Report.of(json.loads(row["record"]))
        made.append(
            {"node": row["node"], "at": row["at"], "by": row["by"], "checks": len(report.checks),
             "agreement": report.agreement, "why": report.why_not()}
        )  # fmt: skip
    return made


@dataclass(frozen=True)
class Measure:
    """One row of a shape's story."""

    mode: str
    config: str
    stage: str
    times: str
    node: str
    build: str
    us: float | None
    speedup: float | None
    interval: tuple[float, float] | None
    said: str
    """Why there is no time, or why the time is doubtful."""
    created: str


def story(database: Database, target: str, shape: Shape) -> list[Measure]:
    """Every row of a shape on a target: captured ones first, the fastest first, failures last."""
    where = ROWS.c.op == shape.op, ROWS.c.shape == str(shape), ROWS.c.target == target
    query = sa.select(ROWS.c.record, ROWS.c.node, ROWS.c.build).where(*where)
    query = query.order_by(
        ROWS.c.mode.desc(), ROWS.c.median_us.is_(None), ROWS.c.median_us, ROWS.c.number
    )
    with database.reading() as connection:
        found = connection.execute(query).all()
    return [_measure(Trial.from_dict(json.loads(row[0])), row[1], row[2]) for row in found]


def _measure(trial: Trial, node: str, build: str) -> Measure:
    outcome, same = trial.outcome, (node, build)
    ran = " ".join(filter(None, (config_text(trial.op, trial.config), trial.condition)))
    named = ran, trial.stage, BENCH_WORDS[trial.bench]
    if not isinstance(outcome, Measurement):
        said = f"failed ({outcome.kind}): {outcome.text}"
        return Measure(trial.mode, *named, *same, None, None, None, said, trial.created)
    return Measure(
        trial.mode, *named, *same, outcome.median_us, outcome.speedup, outcome.speedup_interval,
        outcome.why_unstable() or "", trial.created,
    )  # fmt: skip


@dataclass(frozen=True)
class Node:
    """What one node gave."""

    name: str
    rows: int
    runs: int
    targets: Sequence[str]
    builds: Sequence[str]
    last: str
    findings: int


def nodes(database: Database) -> list[Node]:
    """Every node that sent rows, by name."""
    counts = sa.select(ROWS.c.node, sa.func.count()).group_by(ROWS.c.node)
    names = [RUNS.c[name] for name in ("node", "target", "build", "received")]
    opened = sa.select(FINDINGS.c.node, sa.func.count()).where(FINDINGS.c.state == "open")
    with database.reading() as connection:
        by_node = {node: count for node, count in connection.execute(counts).all()}
        runs = connection.execute(sa.select(*names)).all()
        doubts = {
            node: count
            for node, count in connection.execute(opened.group_by(FINDINGS.c.node)).all()
        }
    made = []
    for name in sorted({*by_node, *(run.node for run in runs), *doubts}):
        mine = [run for run in runs if run.node == name]
        made.append(
            Node(
                name,
                by_node.get(name, 0),
                len(mine),
                sorted({run.target for run in mine}),
                sorted({run.build for run in mine}),
                max((run.received for run in mine), default=""),
                doubts.get(name, 0),
            )
        )
    return made


def variants(source: Source) -> list[tuple[str, int]]:
    """The shapes that each variant wins, after the discount on modelled times; the most first."""
    won: dict[str, int] = defaultdict(int)
    for line in lines(source.current):
        won[label(line.answer.config.variant)] += 1
    return sorted(won.items(), key=lambda pair: (-pair[1], pair[0]))


def staged(database: Database, op: str, target: str) -> list[dict[str, Any]]:
    """What has which stage now, of each build: stable first."""
    current: dict[tuple[str, str], dict[str, Any]] = {}
    for row in artifacts.history(database, op, target):  # newest first
        current.setdefault((row["stage"], row["build"]), row)
    order = list(reversed(gate.STAGES))
    return sorted(current.values(), key=lambda row: (row["build"], order.index(row["stage"])))
