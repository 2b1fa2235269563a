"""The SQLite file: opened so that nothing is lost, and what SQLite says of it as a sentence that
names the file and the next step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlite_utils import Database

from tftune.db import patience, schema
from tftune.db.files import refuse_special
from tftune.db.lock import DamagedError, StoreError
from tftune.db.patience import PatientConnection, code, is_locked

if TYPE_CHECKING:
    import optuna


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Turn what SQLite says into a StoreError that names the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise unusable(path, error) from error


def unusable(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    """What SQLite says of a file, and what to do about it. Python raises UnicodeDecodeError for
    what SQLite says with damaged names."""
    if isinstance(error, UnicodeDecodeError):
        return DamagedError(
            f"{path} is damaged: a text in it is no UTF-8 ({error}); bring back a backup, or give "
            "another file with --db"
        )
    if code(error) == sqlite3.SQLITE_FULL:
        return StoreError(
            f"cannot write {path}: {error}; what finished is stored; free space there, and the "
            "same command goes on"
        )
    if code(error) in patience.BUSY:
        return StoreError(
            f"{path} is locked by another program, and stayed so for {patience.LIMIT_S:g} s; end "
            "that program, or give another file with --db"
        )
    if code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode" in str(error):
        return DamagedError(
            f"SQLite cannot use {path}: {error}; bring back a backup, or give another file with "
            "--db"
        )
    return StoreError(
        f"SQLite cannot use {path}: {error}; look at the file and its disk, or give another file "
        "with --db"
    )


def of_sqlite(error: BaseException | None) -> sqlite3.Error | None:
    """The error of SQLite that another one was raised from, if any."""
    while error is not None and not isinstance(error, sqlite3.Error):
        error = error.__cause__ if error.__suppress_context__ else error.__context__
    return error


def place_of(path: Path) -> Path:
    """The absolute path of a database that is a file or not there yet."""
    try:
        refuse_special(path)
        return path.resolve()
    except OSError as error:
        raise StoreError(
            f"{path} is no database: {error.strerror}; give a file with --db"
        ) from error


def open_to_read(path: Path) -> Database:
    if not path.exists():
        raise StoreError(
            f"there is no database {path}; `tftune search` makes one, `tftune trials import` "
            "fills one from a file"
        )
    db = _look(path)
    with sentences(path):
        is_empty = schema.version(db) is None
    if is_empty:
        db.close()
        raise StoreError(
            f"{path} has no trials; `tftune search` or `tftune trials import` fills it"
        )
    return db


def open_to_write(path: Path) -> Database:
    if path.exists():
        _look(path).close()
    with sentences(path):
        db = Database(sqlite3.connect(path, factory=PatientConnection))
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
        db.enable_wal()
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        if schema.version(db) is None:
            schema.create(db)
    return db


INDEXES = (
    "UPDATE studies SET study_name = study_name || ' (' || study_id || ')' "
    "WHERE study_id NOT IN (SELECT min(study_id) FROM studies GROUP BY study_name)",
    "CREATE UNIQUE INDEX IF NOT EXISTS ix_studies_study_name ON studies (study_name)",
    "CREATE INDEX IF NOT EXISTS ix_trials_study_id ON trials (study_id)",
)
"""Optuna makes a table and its index in two steps, and never the index alone. A process that was
killed in between left a file in which each start made another study of the same name, and none
could be found."""


def open_optuna(path: Path) -> optuna.storages.RDBStorage:
    """Optuna's storage in the file, with this store's journal and timeout."""
    import optuna
    import sqlalchemy

    url = sqlalchemy.URL.create("sqlite", database=str(path)).render_as_string()
    storage = optuna.storages.RDBStorage(
        url, engine_kwargs={"connect_args": {"factory": PatientConnection}}
    )

    @sqlalchemy.event.listens_for(storage.engine, "connect")
    def _connected(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")

    @sqlalchemy.event.listens_for(storage.engine, "handle_error")
    def _given_up(context: sqlalchemy.ExceptionContext) -> None:
        """Optuna would begin anew five times what has waited its time."""
        error = context.original_exception
        if isinstance(error, sqlite3.Error) and is_locked(error):
            raise unusable(path, error) from error

    storage.engine.dispose()  # connections made before the listener was there
    with storage.engine.begin() as connection:
        for statement in INDEXES:
            connection.exec_driver_sql(statement)
    return storage


def _look(path: Path) -> Database:
    """The database opened so that not a byte of it can change; raises StoreError where its schema
    is not this tftune's, or where it is another program's."""
    with sentences(path):
        db = _connected_to_read(path)
        version, foreign = schema.version(db), schema.foreign(db)
    if foreign:
        db.close()
        raise StoreError(
            f"{path} is no database of searches: it has {foreign} and no tft_meta; give another "
            "file with --db"
        )
    if version not in (None, schema.SCHEMA):
        db.close()
        raise StoreError(_other_schema(path, version))
    return db


def _other_schema(path: Path, found: int) -> str:
    if found > schema.SCHEMA:
        return (
            f"{path} has schema {found}, newer than this tftune's {schema.SCHEMA}; upgrade "
            "tftune, or give another file with --db"
        )
    return (
        f"{path} has schema {found}, older than this tftune's {schema.SCHEMA}; give another file "
        f"with --db; to keep the rows, run `tftune trials export rows.jsonl --db {path}` with the "
        "tftune that wrote them, then `tftune trials import rows.jsonl`"
    )


def _connected_to_read(path: Path) -> Database:
    """A connection that cannot write. In a folder that cannot be written, where SQLite cannot make
    the memory that its journal needs, the file is read as it is; raises StoreError where rows lie
    beside it in an unread journal."""
    uri = f"{path.as_uri()}?mode=ro"
    db = Database(sqlite3.connect(uri, uri=True, factory=PatientConnection))
    try:
        db.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError as error:
        db.close()
        journal = Path(f"{path}-wal")
        if code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        if journal.exists() and journal.stat().st_size:
            raise StoreError(
                f"{path.parent} cannot be written, and {journal.name} there holds rows that "
                f"SQLite must put into {path.name} first; "
                "copy both files to another folder, and give the copy with --db"
            ) from error
        db = Database(sqlite3.connect(f"{uri}&immutable=1", uri=True))
    return db
