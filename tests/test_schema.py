"""Databases of every released schema are read and upgraded, beside a backup; a newer one is left as
it is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from stored import ENDED, RUN, TRIALS, raw

from tftune.db import schema
from tftune.db.store import Store, StoreError

FIXTURES = Path(__file__).parent / "fixtures"
RELEASED = {1: RUN, 2: ENDED} | dict.fromkeys((3, 4, 5), replace(ENDED, role="repeat"))
"""The run that the fixture of each released schema holds."""
NEWEST = max(RELEASED)


class TestSchema:
    def fixture(self, path: Path, number: int) -> Path:
        """A database as the release of that schema left it."""
        with raw(path) as db:
            db.executescript((FIXTURES / f"schema-{number}.sql").read_text())
        return path

    @pytest.fixture
    def released(self, path: Path) -> Path:
        """A database of the newest schema."""
        return self.fixture(path, schema.newest())

    def upgrade(self, monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
        """Let this tftune have one schema more."""
        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, statements))

    def test_a_new_file_has_the_released_schema(self, released: Path) -> None:
        new = released.with_name("new.db")
        Store.open(new).close()
        query = "SELECT name, sql FROM sqlite_master WHERE name LIKE 'tft_%' ORDER BY name"
        with raw(released) as old, raw(new) as made:
            assert old.execute(query).fetchall() == made.execute(query).fetchall()

    def test_every_released_schema_has_a_fixture(self) -> None:
        assert [
            FIXTURES / f"schema-{number}.sql" for number in range(1, schema.newest() + 1)
        ] == sorted(FIXTURES.glob("schema-*.sql"))

    @pytest.mark.parametrize("number", RELEASED)
    def test_rows_of_every_released_schema_are_read(self, path: Path, number: int) -> None:
        with Store.open(self.fixture(path, number)) as store:
            assert (store.runs(), store.trials(), store.check()) == ([RELEASED[number]], TRIALS, [])
        backups = [path.with_name(f"t.db.backup-{number}")] if number < schema.newest() else []
        assert list(path.parent.glob("*.backup-*")) == backups

    @pytest.mark.parametrize("write", [True, False])
    @pytest.mark.parametrize(
        ("statements", "holds"),
        [
            ("CREATE TABLE urls (id INTEGER); INSERT INTO urls VALUES (1)", "urls"),
            (
                "CREATE TABLE c (x); CREATE VIEW a AS SELECT 1; CREATE INDEX b ON c (x); CREATE "
                "TABLE d (x); CREATE TABLE e (x)",
                "a, c, d and 1 more",
            ),
        ],
    )
    def test_a_database_of_another_program_is_left_as_it_is(
        self, path: Path, statements: str, holds: str, write: bool
    ) -> None:
        with raw(path) as db:
            db.executescript(statements)
        before = path.read_bytes()
        with pytest.raises(
            StoreError,
            match=f"^{path} is not tftune's: it has {holds} and no tft_meta; give another file "
            "with --db$",
        ):
            Store.open(path, write=write)
        assert path.read_bytes() == before

    def test_an_empty_database_is_taken(self, path: Path) -> None:
        with raw(path) as db:
            db.executescript("CREATE TABLE gone (x); DROP TABLE gone")
        assert path.stat().st_size
        with Store.open(path) as store:
            assert store.check() == []

    def test_migration_keeps_rows_and_makes_a_backup(
        self, released: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.upgrade(
            monkeypatch,
            "CREATE TABLE tft_notes (text TEXT)",
            "UPDATE tft_runs SET role = 'repeat'",
        )
        with Store.open(released) as store:
            assert store.trials() == TRIALS and store.runs()[0].role == "repeat"
            assert schema.version(store._db) == NEWEST + 1
        monkeypatch.undo()
        with Store.open(released.with_name(f"t.db.backup-{NEWEST}"), write=False) as backup:
            assert (backup.runs(), backup.trials(), backup.check()) == (
                [RELEASED[NEWEST]],
                TRIALS,
                [],
            )

    def test_a_migration_that_fails_changes_nothing(
        self, released: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.upgrade(
            monkeypatch, "CREATE TABLE tft_notes (text TEXT)", "UPDATE no_such_table SET text = ''"
        )
        with pytest.raises(StoreError, match="no such table"):
            Store.open(released)
        monkeypatch.undo()
        with Store.open(released) as store:
            assert store.trials() == TRIALS
            assert "tft_notes" not in store._db.table_names()

    def test_a_reader_does_not_migrate(
        self, released: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.upgrade(monkeypatch, "CREATE TABLE tft_notes (text TEXT)")
        before = released.read_bytes()
        with pytest.raises(
            StoreError,
            match=rf"has schema {NEWEST}, this tftune reads {NEWEST + 1}; .* upgrades it",
        ):
            Store.open(released, write=False)
        assert released.read_bytes() == before

    @pytest.mark.parametrize("write", [True, False])
    def test_a_newer_schema_is_left_as_it_is(self, released: Path, write: bool) -> None:
        with raw(released) as db:
            db.execute(f"UPDATE tft_meta SET value = '{NEWEST + 3}'")
        before = released.read_bytes()
        with pytest.raises(
            StoreError,
            match=rf"t\.db has schema {NEWEST + 3}, newer than this tftune's {NEWEST}; upgrade "
            r"tftune, or give another file with --db",
        ):
            Store.open(released, write=write)
        assert released.read_bytes() == before

    @pytest.mark.parametrize("value", ["abc", "", "-1", "1.5", "9" * 5000])
    def test_a_schema_that_is_no_number_is_named(self, released: Path, value: str) -> None:
        with Store.open(released, write=False) as opened:
            with raw(released) as db:
                db.execute("UPDATE tft_meta SET value = ?", (value,))
            (problem,) = opened.check()
        assert (
            problem.startswith(f"{released} has schema '{value[:50]}")
            and "which is no number; " in problem
            and len(problem) < 300
        )
        for write in (True, False):
            with pytest.raises(StoreError, match=re.escape(problem)):
                Store.open(released, write=write)

    def test_a_file_that_only_optuna_used_is_taken_over(self, path: Path) -> None:
        with raw(path) as db:
            db.execute("CREATE TABLE studies (name TEXT)")
        with Store.open(path) as store:
            assert {"studies", "tft_trials"} <= set(store._db.table_names())
