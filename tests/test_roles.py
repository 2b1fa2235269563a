"""What the rows of a run count for: its role, in files, in the database, and for who reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from stored import ENDED, RUN, TRIALS, trial

from tftune.db.committed import files_of, read_trials
from tftune.db.evidence import counting
from tftune.db.store import Store, StoreError, read_rows, write_rows
from tftune.db.target import Target
from tftune.db.trial import ROLES, Run
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import predict
from tftune.pipeline.bench_factory import stored_or_committed
from tftune.pipeline.training_job import sources
from tftune.tuner.bench.benches import ModelBench
from tftune.tuner.search.session import Rows

OLD = replace(RUN, id="old", role="superseded")
NEW = [trial(7), trial(8)]
OUTDATED = [trial(7, run="old"), trial(9, run="old")]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_kept_in_files_and_in_the_database(tmp_path: Path, role: str) -> None:
    run = replace(RUN, role=role)
    write_rows(tmp_path / "rows.jsonl.xz", [run], TRIALS)
    with Store.open(tmp_path / "t.db") as store:
        store.import_rows(tmp_path / "rows.jsonl.xz")
        store.export_rows(tmp_path / "again.jsonl")
    assert read_rows(tmp_path / "again.jsonl") == ([run], TRIALS)


def test_a_run_has_a_known_role(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^role='old' is not one of evidence, superseded, repeat$"
    ):
        replace(RUN, role="old")
    for wrong in (["superseded"], None, 1):
        with pytest.raises(ValueError, match=r"^role="):
            Run.from_dict(vars(RUN) | {"role": wrong})


def test_a_role_that_is_set_later_is_taken_and_no_other_change_is(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        store.add_run(ENDED)
        store.add_run(replace(ENDED, role="superseded"))
        assert store.runs() == [replace(ENDED, role="superseded")]
        store.add_run(RUN)  # an older export, which has neither the end nor the role
        assert store.runs() == [replace(ENDED, role="superseded")]
        with pytest.raises(StoreError, match=r"run r1 is in .* with target="):
            store.add_run(replace(ENDED, target="h200x2", role="repeat"))
        assert store.runs() == [replace(ENDED, role="superseded")]


def test_rows_that_do_not_count_are_left_out_of_training_replay_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, rows = [OLD, RUN], [*OUTDATED, *NEW]
    assert counting(rows, runs) == NEW and counting(rows, []) == rows
    (source,) = sources(rows, runs)
    assert (source.trials, source.runs) == (NEW, [RUN])
    monkeypatch.setattr("tftune.db.committed.FOLDER", tmp_path / "trials")
    folder = tmp_path / "trials/h200x8"
    folder.mkdir(parents=True)
    write_rows(folder / "all_gather_gemm-2026-11-21.jsonl.xz", [OLD], OUTDATED)
    write_rows(folder / "all_gather_gemm-2026-11-22.jsonl.xz", [RUN], NEW)
    files, mine = files_of("all_gather_gemm", "h200x8"), ("all_gather_gemm", "h200x8", "node")
    assert len(files) == 2 and files_of("flash_decode") == files_of(target="h200x2") == []
    assert read_trials(files) == NEW == stored_or_committed(None, *mine)
    assert read_trials(files, every=True) == rows
    with Store.open(tmp_path / "t.db") as store:
        store.import_rows(files[0])
        assert stored_or_committed(store, *mine) == NEW, "none of its own counts"
        store.add_run(replace(RUN, id="m", bench="model"))
        store.add_trial(replace(NEW[0], run="m", bench="model"))
        assert stored_or_committed(store, *mine) == NEW, "modelled rows shadow no measured ones"
        store.import_rows(files[1])
        assert stored_or_committed(store, *mine) == NEW


def test_a_search_does_not_go_on_from_a_superseded_session(tmp_path: Path) -> None:
    op, bench = operation("all_gather_gemm"), ModelBench(Target.parse("h200x8"), predict)
    config = op.space.complete(Config("push", block_m=64))
    one = replace(NEW[0], config=config, bench="model", revision=installed(op.name, "push"))
    with Store.open(tmp_path / "t.db") as store:
        for run in (OLD, RUN):
            store.add_run(replace(run, bench="model"))
        store.add_trial(replace(one, run="old"))
        assert Rows(op, bench, store).searched((one.shape, "graph")) == {}
        store.add_trial(one)
        assert Rows(op, bench, store).searched((one.shape, "graph")) == {config: one}
