"""The two databases: the migrations make what the code asks for, and what cannot be opened is said
in one sentence."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from command_line import Tftune, refused
from serving import Served

from tftune.db.lock import StoreError
from tftune.serve.database import Database
from tftune.serve.tables import METADATA


def test_the_migrations_make_the_tables_that_the_code_knows(served: Served) -> None:
    with served.database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_a_released_schema_is_frozen(root: Path) -> None:
    """A migration that follows `tables` would make another schema of the same number."""
    is_released = "## [0.1.0] - unreleased" not in (root / "CHANGELOG.md").read_text()
    first = (root / "tftune/serve/migrations/versions/v1_first.py").read_text()
    assert not (is_released and "METADATA" in first), "write the released tables into v1_first.py"


def test_opening_again_changes_nothing(served: Served) -> None:
    served.database.migrate()
    with served.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM rows").scalar() == 0


def test_services_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        for database in pool.map(Database.open, [str(tmp_path / "t.db")] * 6):
            database.close()


def test_what_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    torn = tmp_path / "torn.db"
    torn.write_bytes(b"no database" * 1000)
    for place in (str(torn), str(tmp_path), str(tmp_path / "no/folder.db")):
        with pytest.raises(StoreError, match="check --db"):
            Database.open(place)
    with pytest.raises(StoreError, match="keeps SQLite files"):
        Database.open("mysql://root@host/name")
    with pytest.raises(StoreError, match="secret") as error:
        Database.open("postgresql://user:hidden@127.0.0.1:1/secret?connect_timeout=2")
    assert "hidden" not in str(error.value)


def test_a_database_that_another_process_writes_is_opened_or_named(
    tftune: Tftune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.patience.SAID_S", 0.05)
    monkeypatch.setattr("tftune.db.patience.LIMIT_S", 0.2)
    made, new = tmp_path / "made.db", tmp_path / "new.db"
    Database.open(str(made)).close()
    for place in (made, new):
        with sqlite3.connect(place, isolation_level=None) as other:
            other.execute("PRAGMA journal_mode = WAL")
            other.execute("BEGIN IMMEDIATE")
            if place == made:
                Database.open(str(place)).close()
                made_token = tftune(f"tokens create me --scope read --db {place}")
                assert refused(made_token, "locked; end the process", "fuser")
            else:
                with pytest.raises(StoreError, match=r"locked; end the process .*fuser"):
                    Database.open(str(place))


def test_a_newer_schema_is_refused(served: Served) -> None:
    with served.database.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '999'"))
    with pytest.raises(StoreError, match=r"999.*upgrade tftune"):
        served.database.migrate()
