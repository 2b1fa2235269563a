"""The command line refuses in one sentence, and what it refuses changes nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import OP, SEARCH, SMALL, Tftune, refused

from tftune.cli import app as cli
from tftune.db.store import Store, write_rows
from tftune.db.target import Target
from tftune.db.trial import Run, Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.kernels.core.registry import operation


def test_doctor_always_answers(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tftune("doctor")
    monkeypatch.setattr("tftune.doctor.IMPORTED", ())  # each is imported by a new process
    assert ran.code == 0 and ran.out.startswith("python 3.")
    assert "optuna" in ran.out and "import iris: " in ran.out
    found = json.loads(tftune("doctor --json").out)
    assert set(found["packages"]) == {"tune", "cuda"} and all(found["packages"]["tune"].values())
    assert bool(found["target"]) != bool(found["why_no_target"])


def test_doctor_says_why_an_artifact_does_not_apply(
    tftune: Tftune, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tftune(f"export {OP} --db {db} --out shipped/good.json")
    (tmp_path / "shipped/broken.json").write_text('{"schema": 1')
    monkeypatch.setattr("tftune.models.artifact.SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr("tftune.doctor.IMPORTED", ())
    broken, good = json.loads(tftune("doctor --json").out)["artifacts"]
    assert not broken["applies"] and "cut off" in broken["why_not"][0]
    assert (good["target"], good["times"], good["applies"]) == ("mi300x8", "modelled", False)
    assert "artifact good.json: does not apply here: " in tftune("doctor").out


def test_a_node_search_without_a_gpu_names_the_model(
    tftune: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.target.find_spec", lambda name: None)
    assert refused(tftune(f"search {OP}"), "no GPU", "--on model")
    assert not Path("tftune.db").exists()


def test_a_rehearsal_without_torch_says_what_it_needs(
    tftune: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.target.find_spec", lambda name: None)
    needs = "tftune calibrate --emulated needs torch and triton"
    assert refused(tftune("calibrate --emulated h200x2"), needs, "`tftune doctor`")


def test_a_target_that_is_not_this_machine(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: Target.parse("h200x4"))
    assert refused(tftune(f"search {OP} --target h200x8"), "h200x8", "h200x4")
    assert refused(tftune(f"search {OP} --shapes paper:world=8"), "world=8", "4 GPUs of h200x4")


def test_a_node_bench_is_sized_for_the_largest_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    from tftune.kernels.all_gather_gemm.host import payload_bytes
    from tftune.pipeline.bench_factory import make_bench
    from tftune.tuner.bench.rounds import MATRIX, Rounds

    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "tftune.tuner.bench.node.NodeBench",
        lambda *arguments, rounds, lengths: made.append((*arguments, rounds, lengths)),
    )
    target, shapes = Target.parse("h200x8"), paper()
    make_bench("node", operation(OP), target, shapes, store=None)
    make_bench("node", operation(OP), target, shapes, store=None, matrix=True, lengths="chat/1")
    size = payload_bytes(shapes[-1])
    assert made == [(target, size, Rounds(), ""), (target, size, MATRIX, "chat/1")]
    assert size >= shapes[-1].gathered_bytes


def test_rows_of_a_drill_are_not_trained_on(
    tftune: Tftune, tmp_path: Path, make_rows: Callable[..., list[Trial]]
) -> None:
    drilled = [replace(row, bench="drill") for row in make_rows(paper()[:2], bench="node")]
    run = Run("run", "h200x8", "drill", {}, "2026-11-20", {})
    write_rows(tmp_path / "drill.jsonl", [run], drilled)
    tftune("trials import drill.jsonl --db d.db")
    for command in (f"train {OP}", f"export {OP} --out a.json"):
        ran = tftune(f"{command} --db d.db")
        assert refused(ran, "rows of a drill are not trained on", "without --inject")
    clean = [replace(row, bench="node", run="clean") for row in drilled]
    write_rows(tmp_path / "clean.jsonl", [replace(run, id="clean", bench="node")], clean)
    tftune("trials import clean.jsonl --db d.db")
    found = json.loads(tftune(f"train {OP} --db d.db --json").out)
    assert found["bench"] == "node"
    lines = tftune("report --db d.db").out.splitlines()
    pages = [Path(line) for line in lines if line.endswith(".html")]
    assert ["drill" in page.name for page in pages] == [True, False]
    assert ["measured in a drill" in page.read_text() for page in pages] == [True, False]


def test_rows_of_several_targets_must_be_told_apart(tftune: Tftune, db: Path) -> None:
    with Store.open(db) as store:
        store.add_run(Run("other", "h200x8", "model", {}, "2026-11-20", {}))
        store.add_trial(replace(store.trials()[0], target="h200x8", run="other"))
    assert refused(tftune(f"train {OP} --db {db}"), "h200x8, mi300x8", "--target")
    ran = tftune(f"train {OP} --db {db} --target h200x4")
    assert refused(ran, "no rows of all_gather_gemm on h200x4", "mi300x8 (model)")
    assert refused(tftune(f"train {OP} --db {db} --bench node"), "from the node bench")


def unchanged(db: Path, act: Callable[[], Any]) -> bool:
    """Whether the file is the same to the byte after an act."""
    before = db.read_bytes()
    act()
    return db.read_bytes() == before


def test_a_search_over_a_database_that_its_own_process_writes_is_refused_at_once(
    tftune: Tftune, db: Path
) -> None:
    said = str(db), "is being written by process"
    with Store.open(db):
        assert unchanged(db, lambda: refused(tftune(f"{SEARCH} --db {db}"), *said))


def test_a_database_of_a_newer_schema_is_left_alone(tftune: Tftune, db: Path) -> None:
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE tft_meta SET value = '99' WHERE name = 'schema'")
    connection.close()
    said = "schema 99", "upgrade tftune"
    assert unchanged(db, lambda: refused(tftune(f"{SEARCH} --db {db}"), *said))
    assert refused(tftune(f"train {OP} --db {db}"), "schema 99")


def test_a_half_written_line_adds_nothing(tftune: Tftune, db: Path) -> None:
    tftune(f"trials export rows.jsonl --db {db}")
    Path("half.jsonl").write_text(Path("rows.jsonl").read_text()[:-40])
    with Store.open(db, write=False) as store:
        count = len(store.trials()) + len(store.runs())
    ran = tftune("trials import half.jsonl --db empty.db")
    assert refused(ran, f"line {count} of half.jsonl is no whole row")
    assert list(Path().glob("empty.db*")) == []


def test_a_traceback_only_when_asked_for(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTUNE_DEBUG", "1")
    with pytest.raises(ValueError, match="there is no operation"):
        cli.main(["search", "foo"])


def test_no_arguments_show_the_help(tftune: Tftune) -> None:
    ran = tftune("")
    assert ran.code == 0 and all(name in ran.out for name in ("search", "doctor", "trials", "db"))


def test_a_refused_search_leaves_no_database(tftune: Tftune) -> None:
    """Where it made one; what was there stays, and so does a file that got a row."""
    words = f"search {OP} --shapes {SMALL} --on replay --target h200x3"
    assert refused(tftune(f"{words} --db new.db"), "no measured rows of all_gather_gemm on h200x3")
    assert list(Path().glob("new.db*")) == []
    with Store.open(Path("there.db")):
        pass
    assert refused(tftune(f"{words} --db there.db"), "fill")
    assert Path("there.db").exists()
    with pytest.raises(RuntimeError), Store.open(Path("used.db")) as store:
        store.add_run(Run("run", "h200x2", "model", {}, "2026-11-23", {}))
        raise RuntimeError("after a row")
    with Store.open(Path("used.db"), write=False) as store:
        assert [run.id for run in store.runs()] == ["run"]
