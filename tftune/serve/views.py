"""What the pages show, as values: coverage, speed-ups, an artifact, a shape's story, nodes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
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


def coverage(database: Database) -> list[dict[str, Any]]:
    """How much each operation, target, bench and build has, and the digest of each stage there."""
    keys = ROWS.c["op", "target", "bench", "build"]
    counts = (
        sa.func.count().label("rows"),
        sa.func.count(sa.distinct(ROWS.c.shape)).label("shapes"),
        sa.func.count(sa.distinct(ROWS.c.node)).label("nodes"),
        sa.func.max(ROWS.c.created).label("newest"),
    )
    query = sa.select(*keys, *counts).group_by(*keys).order_by(*keys)
    with database.reading() as connection:
        groups = connection.execute(query).mappings().all()
        stages = _stages(connection)
    return [
        {
            **row,
            "times": BENCH_WORDS[row["bench"]],
            "stages": stages.get((row["op"], row["target"], row["build"]), {}),
        }
        for row in groups
    ]


def _stages(connection: sa.Connection) -> dict[tuple[str, str, str], dict[str, str]]:
    """The digest that has each stage, by operation, target and build."""
    columns = PLACEMENTS.c["op", "target", "build", "stage", "digest"]
    query = sa.select(*columns).order_by(PLACEMENTS.c.number)
    digests: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for op, target, build, stage, digest in connection.execute(query):
        digests[op, target, build][stage] = digest
    return digests


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
    where = ROWS.c.op == op, ROWS.c.target == target
    newest = sa.select(sa.func.max(ROWS.c.number), sa.func.count()).where(*where)
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
        nodes = _by_node(connection, ROWS, op=op, target=target)
    return Measured(source, all_series(lines(source.current)), nodes)


def _by_node(connection: sa.Connection, table: sa.Table, **where: str) -> dict[str, int]:
    """How many such rows of a table each node has."""
    query = sa.select(table.c.node, sa.func.count()).filter_by(**where).group_by(table.c.node)
    return {node: count for node, count in connection.execute(query)}


def layouts(artifact: Artifact) -> list[dict[str, Any]]:
    """Each layout of an artifact in its order: how it does held out, and its tree as HTML."""
    lost = gate.regrets(artifact)
    held_out = artifact.document.get("held_out", {})
    return [
        {
            "mode": model.mode,
            "title": layout_title(artifact.op, model.layout),
            "shapes": len(model.known),
            "report": held_out.get(model.mode, {}).get(model.title),
            "regret": lost.get(f"{model.mode}, {model.title}"),
            "leaves": leaf_count(model),
            "tree": tree_list(model) if model.root is not None else "",
        }
        for model in artifact.models()
    ]


def reports(database: Database, digest: str) -> list[dict[str, Any]]:
    """The verify reports of an artifact, newest first, with what each lacks to confirm."""
    query = sa.select(REPORTS).where(REPORTS.c.digest == digest).order_by(REPORTS.c.at.desc())
    with database.reading() as connection:
        stored = connection.execute(query).mappings().all()
    made = []
    for row in stored:
        report = gate.Report.of(json.loads(row["record"]))
        made.append(
            {"node": row["node"], "at": row["at"], "by": row["by"], "checks": len(report.checks),
             "agreement": report.agreement, "why": report.why_not()}
        )  # fmt: skip
    return made


def story(database: Database, target: str, shape: Shape) -> list[dict[str, Any]]:
    """Every row of a shape on a target: captured ones first, the fastest first, failures last."""
    same = {"op": shape.op, "shape": str(shape), "target": target}
    order = ROWS.c.mode.desc(), ROWS.c.median_us.is_(None), ROWS.c.median_us, ROWS.c.number
    query = sa.select(*ROWS.c["record", "node", "build"]).filter_by(**same).order_by(*order)
    with database.reading() as connection:
        records = connection.execute(query).all()
    return [
        {"node": node, "build": build, **_measure(Trial.from_dict(json.loads(record)))}
        for record, node, build in records
    ]


def _measure(trial: Trial) -> dict[str, Any]:
    """`said`: why there is no time, or why the time is doubtful."""
    outcome = trial.outcome
    shown: dict[str, Any] = {
        "mode": trial.mode,
        "config": " ".join(filter(None, (config_text(trial.op, trial.config), trial.condition))),
        "stage": trial.stage,
        "times": BENCH_WORDS[trial.bench],
        "created": trial.created,
    }
    if not isinstance(outcome, Measurement):
        said = f"failed ({outcome.kind}): {outcome.text}"
        return shown | {"us": None, "speedup": None, "interval": None, "said": said}
    return shown | {
        "us": outcome.median_us,
        "speedup": outcome.speedup,
        "interval": outcome.speedup_interval,
        "said": outcome.why_unstable() or "",
    }


def nodes(database: Database) -> list[dict[str, Any]]:
    """What every node gave that sent rows, or of which a finding is open; by name."""
    columns = RUNS.c["node", "target", "build", "received"]
    with database.reading() as connection:
        rows_of = _by_node(connection, ROWS)
        doubts = _by_node(connection, FINDINGS, state="open")
        runs = connection.execute(sa.select(*columns)).all()
    made = []
    for name in sorted({*rows_of, *(run.node for run in runs), *doubts}):
        mine = [run for run in runs if run.node == name]
        made.append(
            {
                "name": name,
                "rows": rows_of.get(name, 0),
                "runs": len(mine),
                "targets": sorted({run.target for run in mine}),
                "builds": sorted({run.build for run in mine}),
                "last": max((run.received for run in mine), default=""),
                "findings": doubts.get(name, 0),
            }
        )
    return made


def variants(source: Source) -> list[tuple[str, int]]:
    """The shapes that each variant wins, after the discount on modelled times; the most first."""
    won = Counter(label(line.answer.config.variant) for line in lines(source.current))
    return sorted(won.items(), key=lambda pair: (-pair[1], pair[0]))


def staged(database: Database, op: str, target: str) -> list[dict[str, Any]]:
    """What has which stage now, of each build: stable first."""
    current: dict[tuple[str, str], dict[str, Any]] = {}
    for row in artifacts.history(database, op, target):  # newest first
        current.setdefault((row["stage"], row["build"]), row)
    order = list(reversed(gate.STAGES))
    return sorted(current.values(), key=lambda row: (row["build"], order.index(row["stage"])))
