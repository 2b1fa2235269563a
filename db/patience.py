"""Connections to SQLite files that other programs write, too: who waits for a lock says so, and
gives up in time. Standard library only."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

LIMIT_S = 25.0
"""How long a statement waits for another program's commit; a command has started up before. The
default of 5 s has lost trials of Optuna."""
SAID_S = 2.0
"""After which it says that it waits."""
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


def code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where the error is not from SQLite itself."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_locked(error: BaseException) -> bool:
    """Whether it says that another program holds a lock, for which one may wait. A snapshot that
    another commit has outdated stays so."""
    return (
        isinstance(error, sqlite3.Error)
        and code(error) in BUSY
        and getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_BUSY_SNAPSHOT
    )


class PatientConnection(sqlite3.Connection):
    """For `sqlite3.connect(path, factory=PatientConnection)`, which SQLAlchemy passes on, too.

    A statement that finds the file locked is said after SAID_S, tried again, and given up after
    LIMIT_S with SQLite's own error.
    """

    def __init__(self, database: str, **options: Any) -> None:
        super().__init__(database, **(options | {"timeout": SAID_S}))

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _PatientCursor)

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.cursor().execute(statement, values)
        return cursor

    def executemany(self, statement: str, rows: Iterable[Any]) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.cursor().executemany(statement, rows)
        return cursor

    def commit(self) -> None:
        self.patiently(super().commit)

    def patiently(self, act: Callable[[], Result]) -> Result:
        """What `act` returns; it changes nothing where it finds the file locked."""
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not is_locked(error):
                raise
        ((_, _, path),) = super().cursor().execute("PRAGMA database_list").fetchmany(1)
        logger.warning(
            "%s is locked by another program: waits for its commit; gives up after %g s",
            path,
            LIMIT_S,
        )
        try:
            self._wait_at_most(LIMIT_S - SAID_S)
            return act()
        finally:
            self._wait_at_most(SAID_S)

    def _wait_at_most(self, seconds: float) -> None:
        super().cursor().execute(f"PRAGMA busy_timeout = {max(0, round(1000 * seconds))}")


class _PatientCursor(sqlite3.Cursor):
    connection: PatientConnection

    def execute(self, statement: str, values: Any = ()) -> Self:
        run = super().execute
        return self.connection.patiently(lambda: run(statement, values))

    def executemany(self, statement: str, rows: Iterable[Any]) -> Self:
        run, all_rows = super().executemany, list(rows)
        return self.connection.patiently(lambda: run(statement, all_rows))
