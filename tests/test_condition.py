"""Rows under a condition: they read back, and nobody takes them for rows of usual calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from stored import RUN, TRIALS, filled, trial

from tftune.db import committed
from tftune.db.evidence import counting
from tftune.db.row_files import read_rows, read_trials_of, write_rows
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.registry import operation
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.space import SPACE
from tftune.models.dataset import load
from tftune.models.timeline.simulator import predict
from tftune.pipeline.bench_factory import lengths_of
from tftune.pipeline.training_job import sources
from tftune.tuner.bench.benches import ModelBench, ReplayBench
from tftune.tuner.search.search import search
from tftune.tuner.search.search_stage import study_name

SHAPE = FlashDecode(4, 8, 2, 64, 512, 8, "bf16", "heads", 16)
TARGET = Target.parse("h200x8")
FAST = 0.01
"""Microseconds with which a planted row would win anywhere."""


def ragged(**changes: object) -> Trial:
    """A row that would win, were it of a usual call."""
    config = next(c for c in SPACE.defaults(SHAPE, TARGET.chip) if c.variant != "bsp")
    outcome = Measurement((FAST,) * 3, (1.0,) * 3, check_error=0.0)
    return replace(
        trial(shape=SHAPE, config=config, condition="lengths=uniform/1", outcome=outcome),
        **changes,
    )  # type: ignore[arg-type]


def test_a_condition_is_part_of_a_row_and_an_absent_one_is_not() -> None:
    row = ragged().to_dict()
    assert row["condition"] == "lengths=uniform/1" and Trial.from_dict(row) == ragged()
    assert "condition" not in trial().to_dict()
    assert ragged().id != ragged(condition="").id != ragged(condition="lengths=uniform/2").id


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("lengths=even/1", "not one of full, uniform"),
        ("lengths=uniform", "is written lengths=uniform/0"),
        ("lengths", "then = and a value"),
        ("weather=fine", "must be one of lengths, tax"),
    ],
)
def test_a_condition_that_no_row_has_is_refused(condition: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ragged(condition=condition)


def test_an_operation_without_lengths_has_no_such_rows() -> None:
    with pytest.raises(ValueError, match="all_gather_gemm has no lengths"):
        trial(condition="lengths=uniform/1")
    row = trial().to_dict() | {"condition": 3}
    with pytest.raises(ValueError, match="condition=3 must be text"):
        Trial.from_dict(row)


def test_a_store_gives_them_to_who_asks(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        store.add_run(RUN)
        filled(store).add_trial(ragged())
        assert store.trials() == TRIALS
        assert store.trials(condition="lengths=uniform/1") == [ragged()]
        assert store.trials(condition=None) == [*TRIALS, ragged()]
        assert store.check() == []
        store.export_rows(tmp_path / "rows.jsonl")
    assert read_rows(tmp_path / "rows.jsonl")[1] == [*TRIALS, ragged()]
    with Store.open(tmp_path / "u.db") as store:
        assert store.import_rows(tmp_path / "rows.jsonl") == (7, 0)
        assert store.import_rows(tmp_path / "rows.jsonl") == (0, 7)


def test_a_changed_condition_is_found(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        store.add_run(RUN)
        store.add_trial(ragged())
        store.execute("UPDATE tft_trials SET condition = :to", {"to": "lengths=uniform/9"})
        assert "was changed" in store.check()[0]
        store.execute("UPDATE tft_trials SET condition = :to", {"to": "lengths=none/9"})
        assert "cannot be read" in store.check()[0]
        assert store.trials(condition=None) == [], "it is set aside"


def searched(tmp_path: Path, lengths: str = "") -> list[Trial]:
    """The rows of a short search on the model."""
    with Store.open(tmp_path / "s.db") as store:
        bench = ModelBench(TARGET, predict, lengths)
        search("flash_decode", [SHAPE], ["graph"], bench, store, effort="quick", pool=12)
        return store.trials(condition=None)


def test_trees_have_rows_of_their_own(tmp_path: Path) -> None:
    usual = searched(tmp_path)
    run = replace(RUN, id="ragged", target="h200x8")
    planted = ragged(bench="model", run=run.id, target="h200x8")
    (source,) = sources([*usual, planted], [RUN, run])
    assert source.under_lengths == [planted] and run not in source.runs


def test_nobody_takes_them_for_usual_rows(tmp_path: Path) -> None:
    usual = searched(tmp_path)
    planted = ragged(bench="model", run=usual[0].run, target="h200x8")
    rows = [*usual, planted]
    assert counting(rows, []) == usual
    (source,) = sources(rows, [])
    assert list(source.trials) == usual
    write_rows(tmp_path / "flash_decode-x.jsonl", [], rows)
    paths = [tmp_path / "flash_decode-x.jsonl"]
    assert committed.read_trials(paths) == committed.read_trials(paths, every=True) == usual
    assert read_trials_of(paths, lambda shapes: shapes) == usual
    replayed = ReplayBench(TARGET, rows)
    assert planted.config in replayed.known(SHAPE, "graph")
    assert replayed.measure(SHAPE, planted.config, "graph", None).samples_us[0] > 1  # type: ignore[union-attr]
    told = ReplayBench(TARGET, rows, condition="lengths=uniform/1")
    assert told.known(SHAPE, "graph") == {planted.config}
    found = load(counting(rows, []), "flash_decode", "h200x8", "graph", "model")
    assert found.time_us(SHAPE, planted.config) != FAST


def test_a_search_stands_on_rows_of_its_own_lengths(tmp_path: Path) -> None:
    """Full and ragged, one after another in one database; resuming either measures nothing."""
    full = searched(tmp_path)
    both = searched(tmp_path, "uniform/1")
    mine = [row for row in both if row.condition]
    assert both[: len(full)] == full and {row.condition for row in mine} == {"lengths=uniform/1"}
    assert searched(tmp_path, "uniform/1") == both and searched(tmp_path) == both
    outcome = {row.config: row.outcome for row in full}
    shared = [row for row in mine if row.config in outcome]
    assert shared and all(
        row.outcome.median_us <= outcome[row.config].median_us  # type: ignore[union-attr]
        for row in shared
    )
    op = operation("flash_decode")
    benches = [ModelBench(TARGET, predict, x) for x in ("", "chat/1")]
    names = {study_name(op, SHAPE, "graph", bench) for bench in benches}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("full", [""]),
        ("uniform/1,full,chat", ["uniform/1", "", "chat/0"]),
        ("uniform/1,uniform/1", ["uniform/1"]),
    ],
)
def test_lengths_as_the_command_line_takes_them(text: str, found: list[str]) -> None:
    assert lengths_of(operation("flash_decode"), text) == found


def test_wrong_lengths_are_refused_before_anything_is_measured(tmp_path: Path) -> None:
    for op, text, words in (
        ("flash_decode", "uniform/1,,", "not one of"),
        ("all_reduce", "uniform/1", "all_reduce has no lengths"),
    ):
        with pytest.raises(ValueError, match=words):
            lengths_of(operation(op), text)
    assert lengths_of(operation("all_reduce"), "full") == [""]
