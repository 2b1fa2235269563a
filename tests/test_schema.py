"""A new database has the schema of the fixture; one of another schema is left as it is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from stored import ENDED, TRIALS, raw

from tftune.db.schema import SCHEMA
from tftune.db.store import Store, StoreError

FIXTURE = Path(__file__).parent / f"fixtures/schema-{SCHEMA}.sql"
"""A database as tftune wrote it, with a run and six trials."""


class TestSchema:
    @pytest.fixture
    def released(self, path: Path) -> Path:
        with raw(path) as db:
            db.executescript(FIXTURE.read_text())
        return path

    def test_a_new_file_has_the_columns_of_the_fixture(self, released: Path) -> None:
        new = released.with_name("new.db")
        Store.open(new).close()
        query = """
            SELECT tables.name, columns.name, columns.type, "notnull", dflt_value, pk
            FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
            WHERE tables.name LIKE 'tft_%' ORDER BY 1, 2
        """
        with raw(released) as old, raw(new) as made:
            assert old.execute(query).fetchall() == made.execute(query).fetchall() != []

    def test_rows_of_the_fixture_are_read(self, released: Path) -> None:
        with Store.open(released) as store:
            run = replace(ENDED, role="repeat")
            assert (store.runs(), store.trials(), store.check()) == ([run], TRIALS, [])

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
            match=f"^{path} is no database of searches: it has {holds} and no tft_meta; give "
            "another file with --db$",
        ):
            Store.open(path, write=write)
        assert path.read_bytes() == before

    def test_an_empty_database_is_taken(self, path: Path) -> None:
        with raw(path) as db:
            db.executescript("CREATE TABLE gone (x); DROP TABLE gone")
        assert path.stat().st_size
        with Store.open(path) as store:
            assert store.check() == []

    @pytest.mark.parametrize("write", [True, False])
    @pytest.mark.parametrize(
        ("number", "sentence"),
        [
            (
                SCHEMA + 3,
                f"newer than this tftune's {SCHEMA}; upgrade tftune, or give another file with "
                "--db",
            ),
            (
                SCHEMA - 1,
                f"older than this tftune's {SCHEMA}; give another file with --db; to keep the "
                "rows, run `tftune trials export rows.jsonl --db PATH` with the tftune that wrote "
                "them, then `tftune trials import rows.jsonl`",
            ),
            (
                0,
                f"older than this tftune's {SCHEMA}; ",
            ),
        ],
    )
    def test_another_schema_is_left_as_it_is(
        self, released: Path, number: int, sentence: str, write: bool
    ) -> None:
        with raw(released) as db:
            db.execute(f"UPDATE tft_meta SET value = '{number}'")
        before = released.read_bytes()
        expected = f"{released} has schema {number}, {sentence}".replace("PATH", str(released))
        with pytest.raises(StoreError, match=re.escape(expected)):
            Store.open(released, write=write)
        assert released.read_bytes() == before

    @pytest.mark.parametrize("value", ["abc", "", "-1", "1.5", "9" * 5000])
    def test_a_schema_that_is_no_number_is_named(self, released: Path, value: str) -> None:
        with Store.open(released, write=False) as opened:
            with raw(released) as db:
                db.execute("UPDATE tft_meta SET value = ?", (value,))
            (problem,) = opened.check()
        assert problem.startswith(f"{released} has schema '{value[:50]}")
        assert "which is no number; " in problem
        assert len(problem) < 300
        for write in (True, False):
            with pytest.raises(StoreError, match=re.escape(problem)):
                Store.open(released, write=write)

    def test_a_file_that_only_optuna_used_is_taken_over(self, path: Path) -> None:
        with raw(path) as db:
            db.execute("CREATE TABLE studies (name TEXT)")
        with Store.open(path) as store:
            assert {"studies", "tft_trials"} <= set(store._db.table_names())
