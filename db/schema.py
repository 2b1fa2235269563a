"""tftune's tables in the database. Optuna owns the other tables of the same file."""

from __future__ import annotations

from sqlite_utils import Database

from tftune.db.lock import DamagedError

SCHEMA = 5
"""The version of these tables; a file of another version is refused."""
TABLES = (
    "CREATE TABLE tft_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE tft_runs (
        id TEXT PRIMARY KEY, target TEXT NOT NULL, bench TEXT NOT NULL, build TEXT NOT NULL,
        started TEXT NOT NULL, clocks TEXT NOT NULL, ended TEXT NOT NULL DEFAULT '{}',
        role TEXT NOT NULL DEFAULT 'evidence'
    )""",
    # `number` keeps the order of insertion, which a bare rowid loses at VACUUM. `check_error` has
    # no type, so that SQLite gives back the very number that the digest was taken of (a REAL column
    # turns 0 into 0.0).
    """CREATE TABLE tft_trials (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        op TEXT NOT NULL, shape TEXT NOT NULL, variant TEXT NOT NULL, config TEXT NOT NULL,
        mode TEXT NOT NULL, target TEXT NOT NULL, bench TEXT NOT NULL,
        run TEXT NOT NULL REFERENCES tft_runs(id), kernel TEXT NOT NULL,
        stage TEXT NOT NULL, created TEXT NOT NULL, failure TEXT, text TEXT, samples_us TEXT,
        bsp_samples_us TEXT, check_error, stopped_early INTEGER, condition TEXT NOT NULL DEFAULT ''
    )""",
    "CREATE INDEX tft_trials_lookup ON tft_trials (op, target, bench, mode, shape)",
    """CREATE TABLE tft_findings (
        id TEXT PRIMARY KEY, op TEXT NOT NULL, shape TEXT NOT NULL, mode TEXT NOT NULL,
        target TEXT NOT NULL, config TEXT NOT NULL, kernel TEXT NOT NULL, opened TEXT NOT NULL,
        ratio REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, checks INTEGER NOT NULL,
        text TEXT NOT NULL, state TEXT NOT NULL, changed TEXT NOT NULL, note TEXT NOT NULL
    )""",
    f"INSERT INTO tft_meta (name, value) VALUES ('schema', '{SCHEMA}')",
)

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


def version(db: Database) -> int | None:
    """The schema of an open database; None where tftune has no tables yet. Raises StoreError where
    it says none."""
    if "tft_meta" not in db.table_names():
        return None
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
    tables = {*db.table_names(), *db.view_names()}
    names = sorted(name for name in tables - OPTUNA if not name.startswith("sqlite_"))
    if not names or "tft_meta" in tables:
        return ""
    if tables >= SERVICE:
        return "the tables of `tftune serve`"
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def create(db: Database) -> None:
    """Make the tables in one transaction."""
    with db.atomic():
        for statement in TABLES:
            db.execute(statement)
