"""A database that is damaged, or lies in a folder that cannot be written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy
import synthetic
from command_line import Tftune
from stored import RUN, TRIALS, filled, raw, trial
from unprivileged import read_only

from tftune.db.lock import DamagedError
from tftune.db.store import Store, StoreError, read_rows, write_rows


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        opened.add_run(RUN)
        yield opened


DEEP = "[" * 100_000
DAMAGES = [
    ("tft_trials SET samples_us = '[9.0, 12.5]'", "was changed: id is "),
    ("tft_trials SET variant = 'pull'", "was changed: variant is pull, its content says push"),
    ("tft_trials SET samples_us = '[9.0,'", "cannot be read: samples_us is no JSON"),
    ("tft_trials SET samples_us = NULL", "cannot be read: samples_us is no JSON"),
    (f"tft_trials SET samples_us = '[{10**400}, 1.0]'", "cannot be read: us has 1000000"),
    ("tft_trials SET shape = 'm=64'", " lacks n, k, world"),
    ("tft_trials SET mode = 'jit'", "cannot be read: mode='jit'"),
    ("tft_trials SET failure = 'slow', text = ''", "cannot be read: 'slow' is no kind"),
    ("tft_trials SET config = '{}'", "it lacks 'variant'"),
    (
        """tft_trials SET config = '{"variant": "push", "kv_splits": [1]}'""",
        "cannot be read: the knob 'kv_splits' is [1]",
    ),
    (f"tft_trials SET config = '{DEEP}'", "config is no JSON: maximum recursion depth"),
    ("tft_trials SET check_error = 'abc'", "check_error='abc'"),
    ("tft_trials SET target = '../px8'", "target='../px8'"),
    ("tft_trials SET target = x'00ff'", r"target=b'\x00\xff'"),
    ("tft_runs SET build = 'torch'", "cannot be read: build is no JSON"),
    ("tft_runs SET build = '\"x\"'", "cannot be read: build='x'"),
    ("tft_runs SET clocks = '5'", "clocks=5"),
    (f"tft_runs SET ended = '{DEEP}'", "ended is no JSON: maximum recursion depth"),
]
"""What may become of the first row, or of the first run, and what is said of it."""


class TestCheck:
    def test_a_sound_database_has_no_problems(self, store: Store) -> None:
        assert filled(store).check() == []

    def test_another_schema_is_a_sentence(self, store: Store, path: Path) -> None:
        with raw(path) as db:
            db.execute("UPDATE tft_meta SET value = '0'")
        assert store.check() == [f"{path} has schema 0, this tftune has schema 5"]

    def test_a_missing_run_is_named(self, store: Store, path: Path) -> None:
        store.add_trial(trial())
        with raw(path) as db:
            db.execute("DELETE FROM tft_runs")
        assert store.check() == [
            f"trial {trial().id} (row 1) names run 'r1', which is not in the database"
        ]

    @pytest.mark.parametrize(("change", "sentence"), DAMAGES, ids=[said for _, said in DAMAGES])
    def test_what_is_wrong_is_named_and_set_aside_until_it_is_dropped(
        self,
        store: Store,
        path: Path,
        caplog: pytest.LogCaptureFixture,
        change: str,
        sentence: str,
    ) -> None:
        """The rest goes on: once no command could use, or repair, a database with one such row.
        A trial without a run that can be read does not count."""
        other = replace(RUN, id="other")
        store.add_run(other)
        rows = [*filled(store).trials(), replace(TRIALS[0], run="other")]
        store.add_trial(rows[-1])
        of_run = "tft_runs" in change
        with raw(path) as db:
            db.execute(f"UPDATE {change} WHERE {f'id = {RUN.id!r}' if of_run else 'number = 1'}")
        runs = [other] if of_run else [RUN, other]
        kept = store.trials()
        assert kept == (rows[-1:] if of_run else rows[1:]) and store.runs() == runs
        assert store.trials() == kept
        (problem,) = store.check()
        assert problem.startswith(f"run {RUN.id} " if of_run else f"trial {TRIALS[0].id} (row 1) ")
        assert sentence in problem
        hint = f"`tftune db check --db {path}` says all, and takes such rows out with --drop"
        assert caplog.messages == [f"{problem}; it is left out: {hint}"], "said once"
        store.export_rows(path.with_name("rows.jsonl"))
        assert read_rows(path.with_name("rows.jsonl")) == (runs, kept)
        count, place = store.drop()
        assert count == (len(TRIALS) + 1 if of_run else 1)
        assert len(place.read_text().splitlines()) == count
        assert store.check() == [] and store.trials() == kept and store.drop()[0] == 0

    def test_of_several_problems_the_first_is_said(
        self, store: Store, path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        filled(store)
        with raw(path) as db:
            db.execute("UPDATE tft_trials SET samples_us = '[9.0,' WHERE number < 3")
        assert store.trials() == TRIALS[2:]
        (said,) = caplog.messages
        assert "(row 1) cannot be read: samples_us is no JSON" in said and "(and 1 more)" in said

    def test_a_damaged_file(self, store: Store, path: Path) -> None:
        filled(store).close()
        with open(path, "r+b") as file:
            file.seek(3 * 4096)
            file.write(b"\xff" * 4096)
        with Store.open(path) as damaged:
            assert any("SQLite" in problem for problem in damaged.check())

    def test_a_text_that_is_no_utf_8_is_named_with_its_file(self, store: Store, path: Path) -> None:
        """Python raises UnicodeDecodeError where SQLite's own sentence holds the damaged text."""
        filled(store).close()
        with raw(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        content = path.read_bytes()
        entry, damaged = b"tabletft_runstft_runs", b"tabletft_ru\x96stft_runs"
        assert content.count(entry) == content.count(b"CREATE TABLE tft_runs") == 1
        made = content.replace(b"CREATE TABLE tft_runs", b"CREATE TABLE (ft_runs")
        path.write_bytes(made.replace(entry, damaged))
        for write in (True, False):
            with pytest.raises(
                DamagedError, match=f"^{path} is damaged: a text in it is no UTF-8"
            ) as refused:
                Store.open(path, write=write)
            assert "give another file with --db" in str(refused.value)


def test_commands_go_on_without_a_damaged_row_and_say_how_to_drop_it(
    tftune: Tftune, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = synthetic.rows(synthetic.SHAPES[:6], bench="model")
    write_rows(tmp_path / "a.jsonl", [replace(RUN, id="run", target="h200x2", bench="model")], rows)
    tftune("trials import a.jsonl --db a.db")
    with raw(tmp_path / "a.db") as db:
        db.execute("UPDATE tft_trials SET samples_us = bsp_samples_us WHERE number = 2")
    commands = "train all_gather_gemm", "export all_gather_gemm", "report", "trials export b.jsonl"
    for line in (*commands, "trials list", "trials stats"):
        done = tftune(f"{line} --db a.db")
        assert not done.code and done.out, done.err
        (said,) = [text for text in caplog.messages if "(row 2)" in text]
        assert "(row 2) was changed: id is" in said and f"db check --db {tmp_path}/a.db" in said
        caplog.clear()
    assert len(read_rows(tmp_path / "b.jsonl")[1]) == len(rows) - 1
    moved = f"1 rows moved to {tmp_path}/a.db.dropped\n"
    assert tftune("db check --drop --db a.db") == (0, "a.db is sound\n", moved)
    tftune("trials stats --db a.db")
    assert caplog.messages == []


class TestReadOnlyFolder:
    def test_is_read_and_stays_as_it_was(self, store: Store, path: Path) -> None:
        filled(store).close()
        before = {file: file.read_bytes() for file in path.parent.iterdir()}
        with read_only(path.parent), Store.open(path, write=False) as reader:
            assert reader.trials() == TRIALS and reader.runs() == [RUN] and reader.check() == []
        assert {file: file.read_bytes() for file in path.parent.iterdir()} == before

    def test_cannot_be_written(self, store: Store, path: Path) -> None:
        store.close()
        path.with_name("t.db.lock").unlink()
        said = f"^cannot write {path}: Permission denied; give a file in a folder"
        with read_only(path.parent), pytest.raises(StoreError, match=said):
            Store.open(path)

    def test_rows_in_a_journal_that_nobody_read_are_told_of(
        self, store: Store, path: Path, tmp_path: Path
    ) -> None:
        """As a copy of a database is that was made while a search wrote it."""
        filled(store)
        (tmp_path / "copy").mkdir()
        for name in ("t.db", "t.db-wal"):
            shutil.copy(path.with_name(name), tmp_path / "copy" / name)
        with (
            read_only(tmp_path / "copy"),
            pytest.raises(StoreError, match=r"and t\.db-wal there holds rows .*; copy both files"),
        ):
            Store.open(tmp_path / "copy/t.db", write=False)
        with Store.open(tmp_path / "copy/t.db", write=False) as reader:
            assert reader.trials() == TRIALS


def stopped_after(path: Path, statements: int) -> bool:
    """Whether Optuna's tables needed more statements than these, behind which their making ends,
    as at a kill."""
    made = 0

    def count(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        nonlocal made
        made += statement.lstrip().startswith("CREATE")
        if made > statements:
            raise KeyboardInterrupt

    engine = sqlalchemy.engine.Engine
    sqlalchemy.event.listen(engine, "before_cursor_execute", count)
    try:
        optuna.storages.RDBStorage(f"sqlite:///{path}")
    except KeyboardInterrupt:
        return True
    finally:
        sqlalchemy.event.remove(engine, "before_cursor_execute", count)
    return False


def studies(path: Path) -> list[str]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with Store.open(path) as store:
        optuna.create_study(
            storage=store.optuna_storage(), study_name="a search", load_if_exists=True
        )
    with Store.open(path) as store:
        return sorted(study.study_name for study in store.optuna_storage().get_all_studies())


def test_a_kill_while_optuna_makes_its_tables_leaves_one_study_of_a_name(path: Path) -> None:
    made = 0
    while stopped_after(path, made):
        Store.open(path).close()
        assert studies(path) == studies(path) == ["a search"], made
        path.unlink()
        made += 1
    assert made > 10


def test_studies_that_share_a_name_are_told_apart_again(path: Path) -> None:
    """What a kill before 2026-11-27 left behind, and every start since had made worse."""
    assert studies(path) == ["a search"]
    with raw(path) as db:
        db.execute("DROP INDEX ix_studies_study_name")
        for _ in range(2):
            db.execute("INSERT INTO studies (study_name) VALUES ('a search')")
    assert studies(path) == studies(path) == ["a search", "a search (2)", "a search (3)"]
