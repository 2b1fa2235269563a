"""Rows of a fleet: an upload is checked line by line as it arrives, and stored whole or not at
all."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import islice
from typing import IO, Any

import sqlalchemy as sa

from tftune.db.row_files import reason, row_of
from tftune.db.trial import Measurement, Run, Trial
from tftune.serve.database import WRITING_ROWS, Database, now
from tftune.serve.refusal import Refusal
from tftune.serve.settings import MB, Limits
from tftune.serve.tables import ROWS, RUNS, WORD, build_of

BATCH = 500
"""Rows of one statement."""
STEP = 1 << 20
"""Bytes that are unpacked at once: a small body may unpack to a large one."""
MOST_RUNS = 5000
"""The most runs of one upload."""
GZIP = b"\x1f\x8b"


class Intake:
    """One upload on its way in. Checked rows wait in a file without a name until all are there,
    so that a slow sender holds no transaction."""

    def __init__(self, limits: Limits, node: str) -> None:
        self._limits, self._node = limits, node
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115
        self._unpack: Any = None
        self._left, self._lines, self._taken, self._unpacked = bytearray(), 0, 0, 0
        self._runs: dict[str, Run] = {}
        self._first_line: dict[str, int] = {}
        """The line where each run that trials name is named first."""

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def feed(self, part: bytes) -> None:
        """The next part of the body, plain or gzip. Raises Refusal 413 beyond a limit, 422 for a
        line that is no whole row, with its number."""
        if not self._taken and part:
            self._unpack = zlib.decompressobj(31) if part.startswith(GZIP[: len(part)]) else None
        self._taken += len(part)
        self._check_size(self._taken)
        for text in self._unpacked_parts(part):
            self._unpacked += len(text)
            self._check_size(self._unpacked)
            self._left += text
            if ends := text.count(b"\n"):
                self._check_lines(self._lines + ends)
                *lines, self._left = self._left.split(b"\n")
                for line in lines:
                    self._take(line)
            if len(self._left) > self._limits.line_bytes:
                raise Refusal(
                    413,
                    f"line {self._lines + 1} has more than {len(self._left):,} bytes, and a row "
                    f"may have {self._limits.line_bytes:,}",
                )

    def finish(self, database: Database) -> dict[str, int]:
        """Store what came, in one transaction: how many trials are new, and how many were known.
        Raises Refusal where the body was cut off, or a run is stored with other content."""
        if self._unpack is not None and not self._unpack.eof:
            raise Refusal(422, "the gzip body was cut off; send it again, nothing was stored")
        if self._left:
            self._take(self._left)
        self._spool.seek(0)
        stored = total = 0
        insert = database.insert(ROWS).on_conflict_do_nothing(index_elements=["id"])
        with database.writing(lock=WRITING_ROWS) as connection:
            builds = self._store_runs(connection)
            while lines := list(islice(self._spool, BATCH)):
                values = [json.loads(line) for line in lines]
                for value in values:
                    value["build"] = builds[value["run"]]
                options = {"preserve_rowcount": True}
                stored += connection.execute(insert, values, execution_options=options).rowcount
                total += len(values)
        return {"stored": stored, "known": total - stored}

    def _check_size(self, found: int) -> None:
        if found > (most := self._limits.rows_bytes):
            raise Refusal(
                413,
                f"an upload of rows may have {most // MB} MB, as sent and unpacked, and this one "
                f"has more than {found / MB:.0f} MB; send it in parts",
            )

    def _check_lines(self, found: int) -> None:
        if found > (most := self._limits.lines):
            raise Refusal(
                413,
                f"an upload of rows may have {most:,} lines, and this one has {found:,} or more; "
                "send it in parts",
            )

    def _unpacked_parts(self, part: bytes) -> Iterator[bytes]:
        if self._unpack is None:
            yield part
            return
        try:
            while part:
                yield self._unpack.decompress(part, STEP)
                part = self._unpack.unconsumed_tail
                if self._unpack.eof and (rest := self._unpack.unused_data):
                    self._unpack, part = zlib.decompressobj(31), rest  # gzip may have members
        except zlib.error as error:
            raise Refusal(422, f"the body is no whole gzip ({error}); send it again") from error

    def _take(self, line: bytes | bytearray) -> None:
        self._lines += 1
        if not line.strip():
            return
        try:
            row = row_of(bytes(line))
            if isinstance(row, Run):
                _check_words(row.id, row.target, row.started)
                held = self._runs.setdefault(row.id, row)
                self._runs[row.id] = merged(held, row)
            else:
                self._first_line.setdefault(row.run, self._lines)
                self._spool.write(json.dumps(_trial_values(row, self._node)) + "\n")
        except (KeyError, RecursionError, ValueError) as error:
            status = error.status if isinstance(error, Refusal) else 422
            raise Refusal(
                status, f"line {self._lines} is no whole row ({reason(error)}); nothing was stored"
            ) from error

    def _store_runs(self, connection: sa.Connection) -> dict[str, str]:
        """Store the runs of the body; returns the build of every run that its trials name."""
        names = self._runs.keys() | self._first_line.keys()
        if len(names) > MOST_RUNS:
            raise Refusal(
                413, f"the rows are of {len(names):,} runs, and {MOST_RUNS:,} may be sent at once"
            )
        stored = connection.execute(
            sa.select(RUNS.c.id, RUNS.c.build, RUNS.c.record).where(RUNS.c.id.in_(names))
        )
        known = {row.id: row for row in stored}
        for name, run in self._runs.items():
            if name in known:
                full = merged(Run.from_dict(json.loads(known[name].record)), run)
                values = {"role": full.role, "record": _record(asdict(full))}
                connection.execute(sa.update(RUNS).where(RUNS.c.id == name).values(values))
            else:
                connection.execute(sa.insert(RUNS).values(_run_values(run, self._node)))
        for name, line in self._first_line.items():
            if name not in known and name not in self._runs:
                raise Refusal(
                    422,
                    f"line {line} names run {name!r:.40}, which is neither in the body nor stored; "
                    "export rows with their runs; nothing was stored",
                )
        return {name: known[name].build for name in known} | {
            name: _build(run) for name, run in self._runs.items()
        }


def merged(held: Run, given: Run) -> Run:
    """A run that is told again, as `db.store` takes it: one without an end takes it once, evidence
    takes another role. Raises Refusal 409 where the id stands for another run."""
    same = replace(given, ended=held.ended, role=held.role)
    if same != held or (given.ended and held.ended and given.ended != held.ended):
        raise Refusal(409, f"run {held.id} is stored with other content; give it its own id")
    role = held.role if given.role == "evidence" else given.role
    return replace(held, ended=held.ended or given.ended, role=role)


def _build(run: Run) -> str:
    return build_of(run.build.get("triton", ""))


def _record(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _check_words(*words: str) -> None:
    for word in words:
        if len(word) > WORD or "\x00" in word:
            raise ValueError(f"{word!r:.40} must be text of {WORD} characters at most, without NUL")


def _run_values(run: Run, node: str) -> dict[str, Any]:
    return {
        "id": run.id, "target": run.target, "bench": run.bench, "build": _build(run),
        "node": node, "started": run.started, "role": run.role, "received": now(),
        "record": _record(asdict(run)),
    }  # fmt: skip


def _trial_values(trial: Trial, node: str) -> dict[str, Any]:
    """The columns of a row, but its build."""
    outcome = trial.outcome
    _check_words(trial.target, trial.run, trial.created, trial.config.variant)
    return {
        "id": trial.id, "run": trial.run, "op": trial.op, "target": trial.target,
        "bench": trial.bench, "mode": trial.mode, "stage": trial.stage, "shape": str(trial.shape),
        "variant": trial.config.variant, "node": node, "created": trial.created,
        "median_us": outcome.median_us if isinstance(outcome, Measurement) else None,
        "record": _record(trial.to_dict()),
    }  # fmt: skip


def page(
    database: Database, asked: Mapping[str, str | None], after: int, limit: int
) -> dict[str, Any]:
    """Rows in the order in which they were stored, and the runs that they name, as an export has
    them. `next` is the `after` of the next page; None at the end."""
    given = {name: value for name, value in asked.items() if value is not None}
    columns = ROWS.c["number", "id", "run", "node", "build", "record"]
    query = sa.select(*columns).filter_by(**given).where(ROWS.c.number > after)
    with database.reading() as connection:
        rows = connection.execute(query.order_by(ROWS.c.number).limit(limit + 1)).all()
        runs = connection.execute(
            sa.select(RUNS.c.record).where(RUNS.c.id.in_({row.run for row in rows[:limit]}))
        )
        return {
            "runs": [json.loads(run.record) for run in runs],
            "rows": [
                {"id": row.id, "node": row.node, "build": row.build}
                | {"trial": json.loads(row.record)}
                for row in rows[:limit]
            ],
            "next": str(rows[limit - 1].number) if len(rows) > limit else None,
        }


def trials_of(database: Database, op: str, target: str) -> list[Trial]:
    """Every trial of an operation on a target, in the order in which they came."""
    query = sa.select(ROWS.c.record).filter_by(op=op, target=target).order_by(ROWS.c.number)
    with database.reading() as connection:
        return [Trial.from_dict(json.loads(row.record)) for row in connection.execute(query)]


def runs_of(database: Database, target: str) -> list[Run]:
    """Every run on a target, in the order of its start."""
    query = sa.select(RUNS.c.record).where(RUNS.c.target == target).order_by(RUNS.c.started)
    with database.reading() as connection:
        return [Run.from_dict(json.loads(row.record)) for row in connection.execute(query)]
