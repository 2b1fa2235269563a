"""One database behind the service: an SQLite file by default, PostgreSQL for a team, the same
migrations and statements on both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql, sqlite

from tftune.db.lock import StoreError, refuse_network
from tftune.db.patience import PatientConnection

MIGRATIONS = Path(__file__).parent / "migrations"
STATEMENT_MS = 60_000
"""After which PostgreSQL ends a statement."""
MIGRATING, WRITING_ROWS = 7_100_001, 7_100_002
"""Numbers of PostgreSQL's advisory locks: one process migrates, one upload writes at a time."""


def now() -> str:
    """This instant, UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Database:
    """Connections to one database. Reading and writing are transactions; SQLite has one writer."""

    def __init__(self, place: str) -> None:
        """`place`: a path, or a URL of PostgreSQL. Raises StoreError where it is neither, or a
        path on a network file system."""
        self.engine = _engine(place)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._writer = threading.Lock() if self.is_sqlite else None

    @classmethod
    def open(cls, place: str) -> Database:
        """The database at its newest schema. Raises StoreError where it cannot be opened, or a
        newer tftune made it."""
        database = cls(place)
        try:
            database.migrate()
        except sa.exc.DBAPIError as error:
            database.close()
            raise database.refusal(error) from error
        return database

    def refusal(self, error: sa.exc.DBAPIError) -> StoreError:
        """What to raise for what the database said, with the next step."""
        said = " ".join(str(error.orig).split())
        next_step = "check --db"
        if "locked" in said:
            place = self.engine.url.database
            next_step = f"end the process that writes it, which `fuser {place}` names"
        return StoreError(f"{self} cannot be used: {said}; {next_step}")

    def __str__(self) -> str:
        """Without a password."""
        return self.engine.url.render_as_string(hide_password=True)

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the database."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self, lock: int | None = None) -> Iterator[sa.Connection]:
        """A transaction that is committed at its end, or not at all. `lock`: on PostgreSQL, the
        advisory lock that it holds until then."""
        with self._writer or nullcontext(), self.engine.connect() as plain:
            connection = plain.execution_options(writes=True)
            with connection.begin():
                if lock is not None and not self.is_sqlite:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))
                yield connection

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """An INSERT that may say what becomes of a conflict."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def migrate(self) -> None:
        """Bring the schema to the newest; two processes that start at once take turns."""
        script = ScriptDirectory(str(MIGRATIONS))
        head = str(script.get_current_head())
        with self.reading() as connection:  # whatever another process writes meanwhile
            if MigrationContext.configure(connection).get_current_revision() == head:
                return
        with self.writing(lock=MIGRATING) as connection:
            stamp = MigrationContext.configure(connection).get_current_revision()
            known = {each.revision for each in script.walk_revisions()}
            if sa.inspect(connection).has_table("tft_meta"):
                raise StoreError(
                    f"{self} has the rows of searches (`tftune search`), and the service keeps its "
                    "own database; give another one with --db"
                )
            if stamp is not None and stamp not in known:
                raise StoreError(
                    f"{self} has schema {stamp}, and this tftune knows up to {head}; upgrade tftune"
                )

            def steps(revision: Any, _: Any) -> Any:
                return script._upgrade_revs(head, revision)

            environment = EnvironmentContext(Config(), script, fn=steps, destination_rev=head)
            environment.configure(connection=connection)
            environment.run_migrations()


def _engine(place: str) -> sa.Engine:
    if "://" not in place:
        path = Path(place).absolute()
        refuse_network(path)
        url = sa.URL.create("sqlite", database=str(path))
        engine = sa.create_engine(
            url,
            connect_args={"factory": PatientConnection, "check_same_thread": False},
            pool_size=40,
        )
        sa.event.listen(engine, "connect", _prepared)
        sa.event.listen(engine, "begin", _begun)
        return engine
    try:
        url = sa.make_url(place)
    except sa.exc.ArgumentError as error:
        raise StoreError("--db is no URL; give a path, or postgresql://user@host/name") from error
    if url.get_backend_name() != "postgresql":
        raise StoreError(
            f"--db names {url.get_backend_name()}; the service keeps SQLite files (a path) and "
            "PostgreSQL (postgresql://user@host/name)"
        )
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=20,
        max_overflow=20,
        pool_pre_ping=True,
        connect_args={"options": f"-c statement_timeout={STATEMENT_MS}"},
    )


def _prepared(connection: Any, _: Any) -> None:
    """Prepare each new connection: SQLAlchemy begins transactions, not the driver; a commit is on
    the disk when it returns."""
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begun(connection: sa.Connection) -> None:
    """A writer takes SQLite's lock at once: one that began by reading could only fail later."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
