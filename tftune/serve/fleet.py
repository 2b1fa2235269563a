"""What nodes say beside rows: verify reports, counts of the shapes that they run, and findings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from tftune.models.selector import Selector
from tftune.serve import artifacts, bodies, gate
from tftune.serve.database import Database, now
from tftune.serve.refusal import Refusal, unknown
from tftune.serve.selection import parsed_shapes, stable_selector
from tftune.serve.tables import CAPTURES, FINDINGS, REPORTS, RUNS

STATES = {"acknowledge": "acknowledged", "close": "closed"}
"""What becomes of a finding, by the action."""
COUNTS = ("calls", "replays", "selections")
"""What a capture counts."""
MOST = 500
"""Findings of one list."""


def add_report(
    database: Database, given: bodies.VerifyReport, node: str, by: str
) -> dict[str, Any]:
    """Store a verify report; the same one twice is one. Raises Refusal 404 for an unknown
    artifact."""
    digest = artifacts.known_digest(database, given.digest)
    record = given.model_dump() | {"node": node, "digest": digest}
    text = json.dumps(record, sort_keys=True)
    row = {
        "id": sha256(text.encode()).hexdigest(), "digest": digest, "node": node, "by": by,
        "at": now(), "record": text,
    }  # fmt: skip
    with database.writing() as connection:
        new = database.insert(REPORTS).values(row)
        connection.execute(new.on_conflict_do_nothing(index_elements=["id"]))
    report = gate.Report.of(record)
    return {"report": row["id"], "confirms": report.why_not() is None, "why": report.why_not()}


def add_capture(database: Database, given: bodies.Capture, node: str) -> dict[str, int]:
    """Store counts; a capture sent again replaces its earlier counts. Raises Refusal 422 for what
    is no shape, and where nothing says which target it is of."""
    number = given.id or sha256(given.model_dump_json().encode()).hexdigest()
    target = given.target or _target_of(database, node)
    same = {"capture": number, "target": target, "node": node, "at": now()}
    sums: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for place, each in enumerate(given.shapes):
        shape = str(parsed_shapes(each.op, [each.shape], place)[0])
        of = sums[each.op, shape, each.mode]
        of[:] = [min(had + getattr(each, name), bodies.LARGEST)
                 for had, name in zip(of, COUNTS, strict=True)]  # fmt: skip
    values = [
        {**same, "op": op, "shape": shape, "mode": mode, **dict(zip(COUNTS, of, strict=True))}
        for (op, shape, mode), of in sorted(sums.items())
    ]
    insert = database.insert(CAPTURES)
    changed = {name: insert.excluded[name] for name in ("node", "at", *COUNTS)}
    keys = ["capture", "op", "target", "mode", "shape"]
    with database.writing() as connection:
        if values:
            upsert = insert.on_conflict_do_update(index_elements=keys, set_=changed)
            connection.execute(upsert, values)
    return {"shapes": len(values)}


def _target_of(database: Database, node: str) -> str:
    """What a node's newest run was measured on. Raises Refusal 422 where it sent none."""
    query = sa.select(RUNS.c.target).where(RUNS.c.node == node).order_by(RUNS.c.started.desc())
    with database.reading() as connection:
        target = connection.execute(query.limit(1)).scalar()
    if target is None:
        raise Refusal(422, f"node {node} has sent no rows that say its target; send `target`, too")
    return str(target)


@dataclass(frozen=True)
class Run:
    """A shape as the fleet runs it."""

    shape: str
    mode: str
    counts: Mapping[str, int]
    """By what was counted; without zeros."""
    nodes: int
    source: str
    """What a selection of it rests on; "none" without an artifact."""
    time_us: float | None
    """The time of all runs, at the expected time of one; None where it is unknown."""

    @property
    def runs(self) -> int:
        """How often it ran at least: calls, and replays of graphs. Selections count where there
        is neither: code that launches by itself made them."""
        launched = self.counts.get("calls", 0) + self.counts.get("replays", 0)
        return launched or self.counts.get("selections", 0)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "runs": self.runs}


def captured(database: Database, op: str, target: str) -> list[Run]:
    """All captures together: a shape's counts over all nodes, by time at stake. Times are those
    that the stable artifact expects."""
    selector = stable_selector(database, op, target)
    totals = [sa.func.sum(CAPTURES.c[name]) for name in COUNTS]
    nodes = sa.func.count(sa.distinct(CAPTURES.c.node))
    keys = CAPTURES.c.shape, CAPTURES.c.mode
    query = sa.select(*keys, nodes, *totals).filter_by(op=op, target=target).group_by(*keys)
    with database.reading() as connection:
        rows = connection.execute(query).all()
    made = [
        _timed(op, Run(shape, mode, _counts(totals_of), of, "none", None), selector)
        for shape, mode, of, *totals_of in rows
    ]
    return sorted(made, key=lambda run: (-(run.time_us or 0.0), run.shape, run.mode))


def _counts(totals: Sequence[Any]) -> dict[str, int]:
    """PostgreSQL adds big integers up to decimals."""
    return {name: int(total) for name, total in zip(COUNTS, totals, strict=True) if total}


def _timed(op: str, run: Run, selector: Selector | None) -> Run:
    if selector is None:
        return run
    selection = selector.select(parsed_shapes(op, [run.shape])[0], run.mode)
    us = selection.expected_us or selection.bsp_us
    return replace(run, source=selection.source, time_us=None if us is None else us * run.runs)


def share_measured(runs: Sequence[Run]) -> dict[str, Any]:
    """The share of the fleet's time that runs on measured shapes. Shapes without an expected time
    are in `unknown` counts alone."""
    timed = [run for run in runs if run.time_us is not None]
    total = sum(run.time_us or 0.0 for run in timed)
    measured = sum(run.time_us or 0.0 for run in timed if run.source == "measured")
    return {
        "measured_share": measured / total if total else None,
        "time_us": total,
        "unknown": sum(run.runs for run in runs if run.time_us is None),
    }


def add_finding(database: Database, given: bodies.Finding, node: str, by: str) -> dict[str, str]:
    """Open a finding; the same one twice is one. Its state stays where it is known."""
    record = given.model_dump() | {"node": node}
    text = json.dumps(record, sort_keys=True)
    number, at = sha256(text.encode()).hexdigest()[:16], now()
    row = {
        "id": number, "op": given.op, "target": given.target, "node": node, "state": "open",
        "opened": at, "changed": at, "by": by, "record": text,
    }  # fmt: skip
    with database.writing() as connection:
        new = database.insert(FINDINGS).values(row)
        connection.execute(new.on_conflict_do_nothing(index_elements=["id"]))
        query = sa.select(FINDINGS.c.state).where(FINDINGS.c.id == number)
        return {"id": number, "state": connection.execute(query).scalar_one()}


def findings(database: Database, state: str | None = None) -> list[dict[str, Any]]:
    """Findings, newest first, `MOST` at most."""
    where = [] if state is None else [FINDINGS.c.state == state]
    query = sa.select(FINDINGS).where(*where).order_by(FINDINGS.c.opened.desc(), FINDINGS.c.id)
    with database.reading() as connection:
        return [_finding(row) for row in connection.execute(query.limit(MOST)).mappings()]


def _finding(row: sa.RowMapping) -> dict[str, Any]:
    known = dict(row)
    record = json.loads(known.pop("record"))
    return known | {name: record.get(name) for name in ("shape", "mode", "text", "at")}


def change_finding(database: Database, number: str, action: str, by: str) -> dict[str, str]:
    """Acknowledge or close a finding. Raises Refusal 404 where there is none, 409 where it is
    closed already."""
    state = STATES[action]
    with database.writing() as connection:
        query = sa.select(FINDINGS.c.state).where(FINDINGS.c.id == number)
        if (before := connection.execute(query).scalar()) is None:
            raise unknown(f"finding {number[:64]!r}", "GET /v1/findings lists them")
        if before == "closed":
            raise Refusal(409, f"finding {number} is closed; a new one has an id of its own")
        change = sa.update(FINDINGS).where(FINDINGS.c.id == number)
        connection.execute(change.values(state=state, changed=now(), by=by))
    return {"id": number, "state": state}
