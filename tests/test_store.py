"""The store keeps every committed row, travels as lines, finds what was changed, and shares its
file with Optuna."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored import ENDED, RUN, SHAPE, TRIALS, filled, raw, trial

from tftune.db.store import Store, StoreError, read_rows, write_rows
from tftune.db.trial import Measurement
from tftune.kernels.core.space import Config


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        opened.add_run(RUN)
        yield opened


class TestRows:
    def test_come_back_as_they_went(self, store: Store, path: Path) -> None:
        filled(store)
        assert store.trials() == TRIALS
        assert store.runs() == [RUN]
        store.close()
        with Store.open(path, write=False) as again:
            assert again.trials() == TRIALS
            assert [each.id for each in again.trials()] == [each.id for each in TRIALS]

    @pytest.mark.parametrize(
        ("filters", "numbers"),
        [
            ({"op": "all_gather_gemm"}, [0, 1, 2, 3, 4, 5]),
            ({"op": "flash_decode"}, []),
            ({"target": "mi300x8"}, [5]),
            ({"bench": "model"}, [3]),
            ({"mode": "eager"}, [2]),
            ({"stage": "final"}, [4]),
            ({"shape": SHAPE}, [0, 1, 2, 3, 5]),
            ({"shape": SHAPE, "mode": "graph", "target": "h200x8", "bench": "node"}, [0, 1]),
        ],
    )
    def test_are_filtered(self, store: Store, filters: dict[str, Any], numbers: list[int]) -> None:
        assert filled(store).trials(**filters) == [TRIALS[number] for number in numbers]

    def test_a_shape_of_another_operation_is_a_mistake(self, store: Store) -> None:
        with pytest.raises(ValueError, match="is of all_gather_gemm, not of flash_decode"):
            store.trials(op="flash_decode", shape=SHAPE)

    @pytest.mark.parametrize(
        ("word", "known"),
        [
            ("bench", "node, model, replay, drill"),
            ("mode", r"graph, eager; did you mean 'graph'\?"),
            ("stage", "search, warm_up, watch, tax, final, matrix"),
        ],
    )
    def test_a_filter_that_no_trial_can_have_is_a_mistake(
        self, store: Store, word: str, known: str
    ) -> None:
        with pytest.raises(ValueError, match=f"^{word}='cuda_graph' is not one of {known}$"):
            store.trials(**{word: "cuda_graph"})

    def test_measuring_again_adds_a_row_and_the_same_trial_twice_is_one(self, store: Store) -> None:
        again = trial(created="2026-11-22T01:00:01Z")
        for each in (trial(), trial(), again):
            store.add_trial(each)
        assert store.trials(shape=SHAPE) == [trial(), again]

    def test_the_order_survives_vacuum(self, store: Store, path: Path) -> None:
        filled(store).close()
        with raw(path) as db:
            db.execute("DELETE FROM tft_trials WHERE number = 2")
            db.commit()
            db.execute("VACUUM")
        with Store.open(path) as again:
            again.add_trial(TRIALS[1])
            assert again.trials() == [TRIALS[0], *TRIALS[2:], TRIALS[1]]

    def test_a_run_comes_before_its_trials(self, store: Store) -> None:
        with pytest.raises(
            StoreError, match=r"names run 'r9', which is neither in .*t\.db nor among the rows"
        ):
            store.add_trial(trial(run="r9"))
        assert store.trials() == []

    def test_a_run_keeps_its_id(self, store: Store) -> None:
        store.add_run(RUN)
        with pytest.raises(
            StoreError,
            match=r"run r1 is in .* with target=h200x8, not mi300x8; give the new run its own id",
        ):
            store.add_run(replace(RUN, target="mi300x8"))
        assert store.runs() == [RUN]

    def test_a_run_takes_its_end_once(self, store: Store) -> None:
        store.add_run(ENDED)
        store.add_run(RUN)
        store.add_run(ENDED)
        assert store.runs() == [ENDED]
        with pytest.raises(
            StoreError, match=r"with ended=.*1965.0.*, not .*1200.0.*; give the new run its own id"
        ):
            store.add_run(replace(RUN, ended={"0": {"sm_mhz": 1200.0}}))
        with pytest.raises(StoreError, match="target=h200x8"):
            store.add_run(replace(RUN, id="r1", target="h200x4", ended={}))
        assert store.runs() == [ENDED]

    @pytest.mark.parametrize("error", [float("nan"), float("inf")])
    def test_a_wrong_result_is_no_measurement(self, store: Store, error: float) -> None:
        with pytest.raises(StoreError, match=r"check_error=(nan|inf): store it as Failure"):
            store.add_trial(trial(outcome=Measurement((1.0,), check_error=error)))

    def test_what_would_not_read_back_is_refused(self, store: Store) -> None:
        """A time that rounds to 0.00 us, in the row's two decimals, would make the whole database
        unreadable."""
        with pytest.raises(ValueError, match="positive and at most"):
            store.add_trial(trial(outcome=Measurement((0.001,))))
        assert store.check() == []

    def test_an_unknown_knob_of_an_old_row_is_read(self, store: Store) -> None:
        old = trial(config=Config("push", forgotten_knob="fast"))
        store.add_trial(old)
        assert store.trials() == [old]

    def test_the_lookup_uses_the_index(self, store: Store, path: Path) -> None:
        query = (
            "SELECT * FROM tft_trials WHERE op = 'a' AND target = 'b' AND bench = 'c' AND "
            "mode = 'd' AND shape = 'e'"
        )
        with raw(path) as db:
            assert "tft_trials_lookup" in db.execute(f"EXPLAIN QUERY PLAN {query}").fetchone()[3]


class TestFiles:
    def test_export_and_import_again(self, store: Store, tmp_path: Path) -> None:
        rows = tmp_path / "rows.jsonl"
        assert filled(store).export_rows(rows) == len(TRIALS)
        assert read_rows(rows) == ([RUN], TRIALS)
        with Store.open(tmp_path / "new.db") as new:
            assert new.import_rows(rows) == (len(TRIALS), 0)
            assert new.import_rows(rows) == (0, len(TRIALS))
            assert (new.runs(), new.trials()) == ([RUN], TRIALS)
            assert new.export_rows(tmp_path / "again.jsonl") == len(TRIALS)
        assert (tmp_path / "again.jsonl").read_bytes() == rows.read_bytes()

    def test_export_takes_only_the_runs_it_needs(self, store: Store, tmp_path: Path) -> None:
        store.add_run(replace(RUN, id="r2"))
        assert filled(store).export_rows(tmp_path / "rows.jsonl", mode="eager") == 1
        assert read_rows(tmp_path / "rows.jsonl") == ([RUN], [TRIALS[2]])

    def test_rows_are_short_and_sorted(self, tmp_path: Path) -> None:
        write_rows(tmp_path / "rows.jsonl", [RUN], [trial()])
        first, second = (tmp_path / "rows.jsonl").read_text().splitlines()
        assert first.startswith('{"run":{"bench":"node","build":{"torch":"2.13.0"},"clocks"')
        assert second.startswith(
            '{"trial":{"bench":"node","bsp_us":[20.0,25.0],"check_error":0.0004,"config":{"block_m":16'
        )

    @pytest.mark.parametrize("cut", [1, 2, 20, 200])
    def test_a_half_written_line_imports_nothing(
        self, store: Store, tmp_path: Path, cut: int
    ) -> None:
        rows = tmp_path / "rows.jsonl"
        write_rows(rows, [RUN, replace(RUN, id="r2")], TRIALS)
        rows.write_bytes(rows.read_bytes()[: -1 - cut])
        said = f"line {2 + len(TRIALS)} of {rows} is no whole row"
        then = "delete that line, then run the command again"
        with pytest.raises(StoreError, match=f"^{said} .*; {then}$"):
            store.import_rows(rows)
        assert (store.trials(), store.runs()) == ([], [RUN])
        rows.write_bytes(b"\n".join(rows.read_bytes().split(b"\n")[:-1]))
        assert store.import_rows(rows) == (len(TRIALS) - 1, 0)

    def test_rows_without_their_run_import_nothing(self, store: Store, tmp_path: Path) -> None:
        write_rows(tmp_path / "rows.jsonl", [], [trial(), trial(1, run="r9")])
        with pytest.raises(StoreError, match="names run 'r9', which is neither"):
            store.import_rows(tmp_path / "rows.jsonl")
        assert store.trials() == []

    def test_a_missing_file_is_named(self, store: Store) -> None:
        with pytest.raises(StoreError, match=r"cannot read /no/rows\.jsonl: No such file"):
            store.import_rows(Path("/no/rows.jsonl"))


class TestOptuna:
    def test_shares_the_file(self, store: Store, path: Path) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(storage=store.optuna_storage(), study_name="s")
        for number in range(5):
            asked = study.ask({"x": optuna.distributions.CategoricalDistribution((1, 2, 3))})
            store.add_trial(trial(number))
            study.tell(asked, float(number))
        assert store.optuna_storage() is store.optuna_storage()
        store.close()
        with Store.open(path) as again:
            assert len(again.trials()) == 5
            assert (
                len(optuna.load_study(study_name="s", storage=again.optuna_storage()).trials) == 5
            )
            assert again.check() == []
        with raw(path) as db:
            assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_keeps_the_journal_and_waits(self, store: Store, path: Path) -> None:
        storage: Any = store.optuna_storage()
        with storage.engine.connect() as connection:
            answers = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "busy_timeout")
            ]
        assert answers == ["wal", 1, 2_000], "then it says that it waits"

    def test_a_path_with_odd_characters(self, tmp_path: Path) -> None:
        odd = tmp_path / "a {b} %20 #c?.db"
        with Store.open(odd) as store:
            store.optuna_storage()
            assert {"studies", "tft_trials"} <= set(store._db.table_names())
        with Store.open(odd, write=False) as store:
            assert store.trials() == []
        assert all(file.name.startswith(odd.name) for file in tmp_path.iterdir())


def test_our_connection_is_set_up(store: Store, path: Path) -> None:
    answers = [
        store._db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
    ]
    assert answers == ["wal", 1, 2_000, 1]


def test_json_columns_are_json(store: Store, path: Path) -> None:
    """Other programs read the tables too."""
    store.add_trial(trial())
    with raw(path) as db:
        (samples, config) = db.execute("SELECT samples_us, config FROM tft_trials").fetchone()
    assert json.loads(samples) == [10.0, 12.5]
    assert json.loads(config) == {"variant": "push", "block_m": 16, "k_per_flag": 256}


@pytest.mark.parametrize("when", ["BEGIN IMMEDIATE", "COMMIT"])
def test_an_interrupt_at_either_end_of_a_transaction_leaves_none_open(
    store: Store, path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C comes: behind the statement, and before what would roll it back. The next rows are
    stored, and those of the transaction all or not at all."""
    execute = type(store._db).execute

    def interrupted(db: Any, sql: str, *values: Any) -> Any:
        found = execute(db, sql, *values)
        if sql == when:
            raise KeyboardInterrupt
        return found

    first, second, *_ = TRIALS
    with monkeypatch.context() as patch:
        patch.setattr(type(store._db), "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.add_trial(first)
    store.add_trial(second)
    with Store.open(path, write=False) as reader:
        assert reader.trials() == ([first] if when == "COMMIT" else []) + [second]


def test_a_row_that_comes_while_rows_are_read_has_its_run(
    store: Store, path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process stores a run and its trial between two questions of a reader."""
    with Store.open(path, write=False) as reader:
        query, later = reader.query, replace(RUN, id="later")

        def interleaved(sql: str, values: Any = None) -> Any:
            found = query(sql, values)
            if later:
                store.add_run(later)
                store.add_trial(replace(trial(10), run=later.id))
            return found

        monkeypatch.setattr(reader, "query", interleaved)
        reader.trials()
    assert "names run" not in caplog.text
