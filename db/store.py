"""Where trials are kept: one SQLite file with one writer. `row_files` has the same rows as JSON
lines, and `database` opens the file."""

from __future__ import annotations

import json
import logging
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sqlite_utils import Database

from tftune.db import lock, schema
from tftune.db.columns import difference, run_of, run_row, trial_of, trial_row
from tftune.db.database import (
    of_sqlite,
    open_optuna,
    open_to_read,
    open_to_write,
    place_of,
    sentences,
    unusable,
)
from tftune.db.lock import StoreError
from tftune.db.row_files import learned, read_rows, read_trials_of, reason, write_rows
from tftune.db.trial import BENCHES, MODES, STAGES, Run, Trial
from tftune.kernels.core.shape import Shape, check_word

if TYPE_CHECKING:
    import optuna

__all__ = ["Store", "StoreError", "read_rows", "read_trials_of", "write_rows"]

logger = logging.getLogger(__name__)


class _Transaction:
    """Committed at its end, or rolled back; what SQLite says becomes a StoreError. What an
    interrupt left open, between the beginning and the first statement, the next one rolls back.
    (A generator that was left there would roll back whenever it is freed.)"""

    def __init__(self, path: Path, db: Database) -> None:
        self._path, self._db = path, db

    def __enter__(self) -> None:
        with sentences(self._path):
            self._db.conn.rollback()
            self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            with sentences(self._path):
                if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                    raise error
                if error is None:
                    self._db.execute("COMMIT")
        finally:
            self._db.conn.rollback()


class Store:
    """An open database of runs and trials; every write is committed before its method returns. A
    context manager: a block that makes the file, and fails before a run is stored, leaves none."""

    def __init__(self, path: Path, db: Database, held: int | None) -> None:
        self.path = path
        self._db = db
        self._lock = held
        self._is_new = False
        self._said: set[str] = set()
        self._optuna: optuna.storages.RDBStorage | None = None

    @classmethod
    def open(cls, path: Path, *, write: bool = True) -> Self:
        """The store at `path`. Writing takes the lock, and makes the file.

        Raises StoreError where another process keeps writing it, its schema is not this tftune's,
        it is no database or another program's, it is a pipe, a device or a folder, it
        lies on a network file system, or its folder cannot be written; the file is then as it was.
        """
        path = place_of(Path(path))
        lock.refuse_network(path)
        if not write:
            return cls(path, open_to_read(path), None)
        held = lock.take(path)
        try:
            is_new, store = not path.exists(), cls(path, open_to_write(path), held)
            store._is_new = is_new
            return store
        except BaseException:
            lock.release(held)
            raise

    def close(self) -> None:
        """Close the connections and give the lock back. Closing twice is harmless."""
        if self._optuna is not None:
            self._optuna.remove_session()
            self._optuna.engine.dispose()
        self._optuna = None
        self._db.close()
        lock.release(self._lock)
        self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        unused = error is not None and self._is_new and not self._db["tft_runs"].count
        held, self._lock = self._lock, None
        self.close()
        if unused:
            lock.remove(self.path)
        lock.release(held)
        if (
            isinstance(error, Exception)
            and not isinstance(error, StoreError)
            and (cause := of_sqlite(error))
        ):
            # Optuna wraps what SQLite says of the same file.
            raise unusable(self.path, cause) from error

    def add_run(self, run: Run) -> None:
        """Store a run; the same run twice is one, one without an end takes it once, and one that
        was evidence takes another role. Raises StoreError where its id stands for another run."""
        with self._writing():
            self._add_run(run)

    def add_trial(self, trial: Trial) -> None:
        """Store a trial and commit; the same trial twice is one. Raises StoreError where its run is
        not stored."""
        with self._writing():
            self._add_trial(trial)

    def runs(self) -> list[Run]:
        """Every run that can be read, in order of insertion; the others are logged. The GPUs that
        they describe are known to this process from here on."""
        judged = list(self._judged_runs())
        self._set_aside([problem for *_, problem in judged if problem])
        return learned(self.path, [run for _, run, problem in judged if run and not problem])

    def trials(
        self,
        *,
        op: str | None = None,
        target: str | None = None,
        bench: str | None = None,
        mode: str | None = None,
        shape: Shape | None = None,
        stage: str | None = None,
        condition: str | None = "",
    ) -> list[Trial]:
        """The trials that agree with every filter given, in order of insertion; times as stored,
        with two decimals. Those of usual calls, unless a condition is asked for; None: every one.

        Those that cannot be read, were changed by hand, or are of such a run are left out and
        logged: `check` names each.

        Raises ValueError for a bench, mode or stage that no trial can have.
        """
        same = {"op": op, "target": target, "bench": bench, "mode": mode, "stage": stage}
        for name, known in (("bench", BENCHES), ("mode", MODES), ("stage", STAGES)):
            if (word := same[name]) is not None:
                check_word(name, word, known)
        if shape is not None:
            if op not in (None, shape.op):
                raise ValueError(f"the shape {shape} is of {shape.op}, not of {op}")
            same |= {"op": shape.op, "shape": str(shape)}
        same["condition"] = condition
        asked = {name: value for name, value in same.items() if value is not None}
        where = " AND ".join(f"{name} = :{name}" for name in asked) or "true"
        judged = list(self._judged_trials(f"WHERE {where}", asked))
        self._set_aside([problem for *_, problem in (*self._judged_runs(), *judged) if problem])
        return [trial for _, trial, problem in judged if trial and not problem]

    def import_rows(self, path: Path) -> tuple[int, int]:
        """Add the rows of a JSONL file in one transaction: all of them or none. Returns trials
        (added, already there)."""
        runs, trials = read_rows(path)
        with self._writing():
            for run in runs:
                self._add_run(run)
            added = sum(self._add_trial(trial) for trial in trials)
        return added, len(trials) - added

    def export_rows(self, path: Path, **filters: Any) -> int:
        """Write the trials that agree with every filter of `trials`, whatever their condition, and
        the runs they belong to, as JSONL; returns how many trials.

        Raises StoreError where none agrees and the file holds something: nothing never replaces
        rows.
        """
        trials = self.trials(**filters, condition=None)
        if not trials and Path(path).is_file() and (kept := Path(path).stat().st_size):
            raise StoreError(f"{path} keeps its {kept:,} bytes: {self._none_agrees(filters)}")
        named = {trial.run for trial in trials}
        write_rows(path, [run for run in self.runs() if run.id in named], trials)
        return len(trials)

    def _none_agrees(self, filters: Mapping[str, str | Shape | None]) -> str:
        """The sentence for filters that no trial agrees with: what was asked for, what there is,
        and the next step."""
        asked = ", ".join(f"{name} {value}" for name, value in filters.items() if value is not None)
        rows = self.query(
            "SELECT op, target, bench, mode, count(*) AS n FROM tft_trials GROUP BY op, target, "
            "bench, mode"
        )
        if not rows:
            return f"{self.path} has no trials; `tftune search` or `tftune trials import` fills it"
        text = "{n:,} of {op} on {target} ({bench}, {mode})"
        there = ", ".join(text.format(**row) for row in rows)
        return (
            f"no trial in {self.path} is of {asked}; it has {there}; `tftune trials export` with "
            "filters of those, or a new file"
        )

    def check(self) -> list[str]:
        """What is wrong with the database, a sentence each; empty where it is sound."""
        try:
            judged = *self._judged_runs(), *self._judged_trials()
            return [*self._file_problems(), *(problem for *_, problem in judged if problem)]
        except StoreError as error:
            return [str(error)]
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return [f"{self.path}: SQLite cannot read it to the end: {error}"]

    def optuna_storage(self) -> optuna.storages.BaseStorage:
        """Optuna's storage in the same file, with this store's journal and timeout; closed with the
        store."""
        if self._lock is None:
            raise StoreError(
                f"{self.path} was opened for reading; Optuna's storage needs it opened for writing"
            )
        if self._optuna is None:
            self._optuna = open_optuna(self.path)
        return self._optuna

    def _writing(self) -> AbstractContextManager[None]:
        """One transaction, committed at the end: Optuna deadlocks with this very process where one
        is held open."""
        if self._lock is None:
            raise StoreError(f"{self.path} was opened for reading; open it for writing to add rows")
        return _Transaction(self.path, self._db)

    def insert(self, table: str, row: dict[str, Any]) -> bool:
        """Add a row in a transaction of its own; returns whether its id is new."""
        with self._writing():
            return self._insert(table, row)

    def execute(self, sql: str, values: dict[str, Any]) -> int:
        """Run a statement in a transaction of its own; returns how many rows it changed."""
        with self._writing():
            return int(self._db.execute(sql, values).rowcount)

    def query(self, sql: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows that a statement gives. Raises StoreError with what SQLite says."""
        with sentences(self.path):
            return list(self._db.query(sql, values or {}))

    def _insert(self, table: str, row: dict[str, Any]) -> bool:
        """Whether the row is new. (`INSERT OR IGNORE` would drop a row with a missing value in
        silence.)"""
        marks = ", ".join(f":{name}" for name in row)
        sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING"
        return self._db.execute(sql, row).rowcount == 1

    def _add_run(self, run: Run) -> None:
        row = run_row(run)
        run_of(row)  # what would not read back is refused
        if self._insert("tft_runs", row):
            return
        self._db.execute("UPDATE tft_runs SET ended = :ended WHERE id = :id AND ended = '{}'", row)
        if run.role != "evidence":  # what became of a session is known only later
            self._db.execute("UPDATE tft_runs SET role = :role WHERE id = :id", row)
        stored = self.query("SELECT * FROM tft_runs WHERE id = :id", row)[0]
        unsaid = ("ended", "{}"), ("role", "evidence")
        for name in row:
            if row[name] != stored[name] and (name, row[name]) not in unsaid:
                raise StoreError(
                    f"run {run.id} is in {self.path} with {name}={stored[name]}, not {row[name]}; "
                    "give the new run its own id"
                )

    def _add_trial(self, trial: Trial) -> bool:
        row = trial_row(trial)
        if row["check_error"] is not None and not math.isfinite(row["check_error"]):
            raise StoreError(
                f"{trial.config} has check_error={row['check_error']}: store it as "
                "Failure('wrong', ...), it is no measurement"
            )
        if trial_of(row).id != row["id"]:
            raise StoreError(
                f"{trial.config} for {trial.shape} would read back as another trial; its knobs "
                "must be integers or text"
            )
        try:
            return self._insert("tft_trials", row)
        except sqlite3.IntegrityError as error:
            raise StoreError(
                f"trial {trial.id} names run {trial.run!r}, which is neither in {self.path} nor "
                "among the rows given; give rows with their runs, as `tftune trials export` does"
            ) from error

    def _file_problems(self) -> Iterator[str]:
        for (answer,) in self._db.execute("PRAGMA integrity_check").fetchall():
            if answer != "ok":
                yield f"{self.path}: SQLite's integrity check says: {answer}"
        if (version := schema.version(self._db)) != schema.SCHEMA:
            yield f"{self.path} has schema {version}, this tftune has schema {schema.SCHEMA}"

    def _judged_runs(self) -> Iterator[tuple[str, Run | None, str]]:
        """The id of every run, the run where it can be read, and what is wrong with it."""
        for row in self.query("SELECT * FROM tft_runs ORDER BY rowid"):
            try:
                yield row["id"], run_of(row), ""
            except (KeyError, ValueError) as error:
                yield row["id"], None, f"run {row['id']} cannot be read: {reason(error)}"

    def _judged_trials(
        self, where: str = "", values: dict[str, Any] | None = None
    ) -> Iterator[tuple[int, Trial | None, str]]:
        """The number of every trial that agrees, the trial where it and its run can be read, and
        what is wrong with it."""
        rows = self.query(f"SELECT * FROM tft_trials {where} ORDER BY number", values)
        # Afterwards, since another process stores a run before its trials.
        sound = {name: not problem for name, _, problem in self._judged_runs()}
        for row in rows:
            number, trial, problem = row.pop("number"), None, ""
            try:
                trial = trial_of(row)
            except (KeyError, ValueError) as error:
                problem = f"cannot be read: {reason(error)}"
            else:
                if (expected := trial_row(trial)) != row:
                    problem = difference(row, expected)
            if row["run"] not in sound:
                problem = f"names run {row['run']!r}, which is not in the database"
            elif not sound[row["run"]]:
                trial = None
            yield number, trial, problem and f"trial {row['id']} (row {number}) {problem}"

    def _set_aside(self, problems: list[str]) -> None:
        """Log what is left out, once."""
        if problems and problems[0] not in self._said:
            self._said.add(problems[0])
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            logger.warning(
                "%s%s; it is left out: `tftune db check --db %s` says all, and takes such rows out "
                "with --drop",
                problems[0],
                more,
                self.path,
            )

    def drop(self) -> tuple[int, Path]:
        """Move the runs and trials that `check` finds fault with to the end of `PATH.dropped`, as
        JSON lines; returns how many, and that file."""
        place = Path(f"{self.path}.dropped")
        runs = [name for name, _, problem in self._judged_runs() if problem]
        judged = self._judged_trials()
        trials = [number for number, trial, problem in judged if problem or trial is None]
        faulty: list[tuple[str, str, int | str]] = [
            *(("tft_trials", "number", number) for number in trials),
            *(("tft_runs", "id", name) for name in runs),
        ]
        with self._writing(), open(place, "a") as file:
            for table, column, key in faulty:
                where = f"FROM {table} WHERE {column} = ?"
                for row in self._db.query(f"SELECT * {where}", [key]):
                    file.write(json.dumps({table: row}, default=bytes.hex) + "\n")
                self._db.execute(f"DELETE {where}", [key])
            file.flush()
            os.fsync(file.fileno())  # before the rows leave the database
        return len(faulty), place
