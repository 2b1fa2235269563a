"""tftune's tables in the database, as a list of migrations that only grows. Optuna owns the other
tables of the same file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from sqlite_utils import Database

from tftune.db.lock import DamagedError

_TABLES = (
    "CREATE TABLE tft_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE tft_runs (
        id TEXT PRIMARY KEY, target TEXT NOT NULL, bench TEXT NOT NULL, build TEXT NOT NULL, started TEXT NOT NULL, clocks TEXT NOT NULL
    )""",  # noqa: E501 (a released statement is what every database holds)
    # `number` keeps the order of insertion, which a bare rowid loses at VACUUM. `check_error` has
    # no type, so that SQLite gives back the very number that the digest was taken of (a REAL column
    # turns 0 into 0.0).
    """CREATE TABLE tft_trials (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        op TEXT NOT NULL, shape TEXT NOT NULL, variant TEXT NOT NULL, config TEXT NOT NULL, mode TEXT NOT NULL,
        target TEXT NOT NULL, bench TEXT NOT NULL, run TEXT NOT NULL REFERENCES tft_runs(id), kernel TEXT NOT NULL,
        stage TEXT NOT NULL, created TEXT NOT NULL,
        failure TEXT, text TEXT, samples_us TEXT, bsp_samples_us TEXT, check_error, stopped_early INTEGER
    )""",  # noqa: E501
    "CREATE INDEX tft_trials_lookup ON tft_trials (op, target, bench, mode, shape)",
)

_RUNS_END = ("ALTER TABLE tft_runs ADD COLUMN ended TEXT NOT NULL DEFAULT '{}'",)

_RUNS_ROLE = ("ALTER TABLE tft_runs ADD COLUMN role TEXT NOT NULL DEFAULT 'evidence'",)

_FINDINGS = (
    """CREATE TABLE tft_findings (
        id TEXT PRIMARY KEY, op TEXT NOT NULL, shape TEXT NOT NULL, mode TEXT NOT NULL,
        target TEXT NOT NULL, config TEXT NOT NULL, kernel TEXT NOT NULL, opened TEXT NOT NULL,
        ratio REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, checks INTEGER NOT NULL,
        text TEXT NOT NULL, state TEXT NOT NULL, changed TEXT NOT NULL, note TEXT NOT NULL
    )""",
)

_CONDITION = ("ALTER TABLE tft_trials ADD COLUMN condition TEXT NOT NULL DEFAULT ''",)

OPTUNA = frozenset(
    (
        "alembic_version",
        "studies",
        "study_directions",
        "study_system_attributes",
        "study_user_attributes",
        "trial_heartbeats",
        "trial_intermediate_values",
        "trial_params",
        "trial_system_attributes",
        "trial_user_attributes",
        "trial_values",
        "trials",
        "version_info",
    )
)
"""Optuna's tables (optuna/storages/_rdb/models.py, 4.x): a file with no others is taken over."""

SERVICE = frozenset(("placements", "rows", "runs", "tokens"))
"""Some of the tables of a fleet's service (tftune/serve/tables.py), which has its own database."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _TABLES,
    _RUNS_END,
    _RUNS_ROLE,
    _FINDINGS,
    _CONDITION,
)
"""Migration i brings schema i to schema i+1. Never change a released one: append the next, and add
its fixture under tests/fixtures."""


def newest() -> int:
    """The schema that this tftune writes."""
    return len(MIGRATIONS)


def version(db: Database) -> int:
    """The schema of an open database; 0 where tftune has no tables yet. Raises StoreError where it
    says none."""
    if "tft_meta" not in db.table_names():
        return 0
    row = db.execute("SELECT value FROM tft_meta WHERE name = 'schema'").fetchone()
    text = str(row[0]) if row else "0"
    if not text.isdecimal() or len(text) > 9:
        file = db.execute("PRAGMA database_list").fetchone()[2]
        raise DamagedError(
            f"{file} has schema {text!r:.60}, which is no number; bring back a backup, or give "
            "another file with --db"
        )
    return int(text)


def foreign(db: Database) -> str:
    """The tables of another program, in words, where tftune has none; "" where it is tftune's or
    empty, or where only Optuna used it."""
    found = {*db.table_names(), *db.view_names()}
    names = sorted(name for name in found - OPTUNA if not name.startswith("sqlite_"))
    if not names or "tft_meta" in found:
        return ""
    if found >= SERVICE:
        return "the tables of `tftune serve`"
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def migrate(db: Database) -> None:
    """Bring an open database to the newest schema in one transaction: afterwards it is wholly new
    or wholly as before."""
    with db.atomic():
        for statement in (
            statement for migration in MIGRATIONS[version(db) :] for statement in migration
        ):
            db.execute(statement)
        db.execute(
            "INSERT OR REPLACE INTO tft_meta (name, value) VALUES ('schema', ?)", (str(newest()),)
        )


def backup(db: Database, path: Path) -> Path:
    """Copy the database at `path` to `<path>.backup-<schema>`, whole or not at all; returns the
    copy's path.

    An earlier backup of the same schema gives way: rows are only ever added, so the newer one holds
    all of it.
    """
    target = path.with_name(f"{path.name}.backup-{version(db)}")
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    copy = sqlite3.connect(unfinished)
    try:
        db.conn.backup(copy)
    finally:
        copy.close()
    os.replace(unfinished, target)
    return target
