"""A GPU that kernels/core/chips.py does not have goes the whole way: found, searched on emulated
ranks, trained, exported, served; and what it is travels to processes that have no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_gpu
import pytest
import synthetic
from command_line import Tftune, run
from fake_gpu import torch_with
from push_artifact import push_everywhere
from synthetic import decodes

import tftune
from tftune.db import target as machines
from tftune.db.calibration_file import calibrated, write_chip
from tftune.db.store import Store, read_rows
from tftune.db.target import Target, detect
from tftune.db.trial import Run
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core import chips
from tftune.kernels.core.chip import NAMES
from tftune.kernels.core.chips import CHIPS
from tftune.pipeline import training_job as fitting
from tftune.pipeline.bench_factory import former_rows
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import Deadlines, Rounds
from tftune.tuner.search.search import EFFORTS, Effort

OP, NAME = "all_gather_gemm", "nvidia-l40sx2"
SHAPES = [AllGatherGemm(m, 40, 64, 2) for m in (2, 7, 16)]
NODE = torch_with(*[fake_gpu.L40S] * 2)
BUILD = {"triton": "3.7.1", "torch": "2.13.0"}


def alone(*line: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, that sees no GPU and was told of none."""
    command = [sys.executable, "-m", "tftune", *line]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


pytestmark = pytest.mark.thorough
"""All that follows stands on one search of a GPU that tftune does not know."""


@pytest.fixture(scope="module")
def node() -> Iterator[pytest.MonkeyPatch]:
    """This process on a machine of two L40S, whose ranks are emulated."""

    def emulated(target: Target, payload_bytes: int, **options: Any) -> NodeBench:
        deadlines, rounds = Deadlines(check=30.0), Rounds(2, 2, 5)
        return NodeBench(target, 1 << 20, emulated=True, deadlines=deadlines, rounds=rounds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", NODE)
        found = detect()
        patch.undo()
        patch.setattr("tftune.pipeline.bench_factory.detect", lambda: found)
        patch.setattr("tftune.tuner.bench.node.NodeBench", emulated)
        patch.setattr("tftune.db.target.build", lambda: BUILD)
        patch.setitem(EFFORTS, "quick", Effort(5, 1, "for tests"))
        yield patch


@pytest.fixture(scope="module")
def db(node: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a search of three shapes on that machine."""
    path = tmp_path_factory.mktemp("l40s") / "l40s.db"
    shapes = ";".join(map(str, SHAPES))
    few = "--mode graph --effort quick --variant push --pool 4"
    assert run(f"search {OP} --shapes {shapes} {few} --db {path}") == 0
    return path


@pytest.fixture(scope="module")
def artifact(db: Path) -> Path:
    """Exported by a process without a GPU."""
    path = db.with_name("l40s.json")
    done = alone("export", OP, "--db", str(db), "--out", str(path))
    assert done.returncode == 0, done.stderr
    return path


def test_a_search_needs_no_model_and_says_so(
    node: pytest.MonkeyPatch,
    db: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        run(f"search {OP} --shapes {SHAPES[0]} --mode graph --effort quick --pool 4 --db {db}") == 0
    )
    err = capsys.readouterr().err
    assert "without the model's proposals: the analytic model is off for nvidia-l40s" in err
    assert "run `tftune calibrate`" in err and f"{OP} on {NAME}, measured" in err


def test_rows_say_what_gpu_they_are_of(db: Path) -> None:
    with pytest.raises(ValueError, match="is no target that is known here"):
        Target.parse(NAME)
    with Store.open(db, write=False) as store:
        runs = store.runs()
        rows = store.trials(target=NAME, bench="node")
    assert {run.target for run in runs} == {NAME} and {row.shape for row in rows} == {*SHAPES}
    chip = Target.parse(NAME).chip
    assert (chip.arch, chip.units, chip.shared_bytes) == ("sm_89", 142, 99 * 1024)
    assert all(run.described == chip.description() for run in runs)


def test_rows_carry_it_as_text(db: Path, tmp_path: Path) -> None:
    rows, copy = tmp_path / "rows.jsonl", tmp_path / "copy.db"
    asked = ("trials", "export", str(rows), "--db", str(db), "--target", NAME)
    assert alone(*asked).returncode == 0
    assert read_rows(rows)[0] and Target.parse(NAME).gpus == 2
    assert alone("trials", "import", str(rows), "--db", str(copy)).returncode == 0
    done = alone("train", OP, "--target", NAME, "--db", str(copy), "--verbose")
    assert done.returncode == 0, done.stderr
    assert f"{OP} on {NAME}, mode graph: 3 shapes" in done.stdout
    assert alone("db", "check", "--db", str(copy)).stdout.strip().endswith("is sound")


def test_an_artifact_answers_without_the_gpu(artifact: Path) -> None:
    document = json.loads(artifact.read_text())
    assert document["target"] == NAME and document["chip"]["gpu_name"] == "NVIDIA L40S"
    asked = ("select", OP, str(SHAPES[1]), "--artifact", str(artifact), "--json")
    done = alone(*asked)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["target"], answer["source"]) == (NAME, "measured")
    told = alone("explain", OP, str(SHAPES[1]), "--artifact", str(artifact))
    assert told.returncode == 0 and "artifact: " in told.stdout, told.stderr


def test_the_report_knows_it(db: Path, tmp_path: Path) -> None:
    done = alone("report", "--target", NAME, "--db", str(db), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{OP}__{NAME}__node.html").exists()


def test_it_serves_on_its_machine_and_nowhere_else(
    artifact: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """An artifact of a relative may seed a search; it never serves. (Emulated ranks make BSP the
    fastest: here push answers for one shape.)"""
    monkeypatch.setattr(machines, "_DEVICES", (str(tmp_path),))
    monkeypatch.setattr(machines, "build", lambda: BUILD)
    path = push_everywhere(artifact, tmp_path / "push.json", SHAPES[2])
    for gpus, why in (
        ([fake_gpu.L40S] * 2, None),
        ([fake_gpu.L40S] * 4, f"is for {NAME}, and this machine is nvidia-l40sx4"),
        ([fake_gpu.H200] * 2, f"is for {NAME}, and this machine is h200x2"),
    ):
        monkeypatch.setitem(sys.modules, "torch", torch_with(*gpus))
        selection = tftune.load(path).select(SHAPES[2])
        assert selection.config.variant == ("push" if why is None else "bsp")
        assert (why or "push was measured") in selection.reason


def test_doctor_says_what_is_on_and_what_is_off(
    node: pytest.MonkeyPatch,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", NODE)
        found = detect()
    monkeypatch.setattr(machines, "detect", lambda: found)
    assert run("doctor") == 0
    out = capsys.readouterr().out
    assert f"target: {NAME}" in out
    assert "constants: NVIDIA L40S is not in kernels/core/chips.py: its driver described it" in out
    assert "model: the analytic model is off for nvidia-l40s" in out and "tftune calibrate" in out


@pytest.mark.parametrize("target", [NAME, "a100x8"])
def test_without_rates_there_is_no_modelled_time(
    target: str,
    db: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = f"search {OP} --shapes {SHAPES[0]} --on model --target {target} --db {db}"
    assert run(line) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: --on model --target {target}: the analytic model is off for ")
    assert "run `tftune calibrate` on such a machine and give its file with --chip" in err


def test_rows_replay_where_the_gpu_is_not(db: Path, tmp_path: Path) -> None:
    line = ("search", OP, "--shapes", str(SHAPES[1]), "--on", "replay", "--mode", "graph")
    done = alone(*line, "--target", NAME, "--db", str(db), "--effort", "quick")
    assert done.returncode == 0 and f"{OP} on {NAME}, replayed" in done.stderr, done.stderr
    unknown = alone(*line, "--target", NAME, "--db", str(tmp_path / "none.db"))
    assert unknown.returncode == 2 and "is no target that is known here" in unknown.stderr


def test_a_calibration_is_rehearsed_and_describes_it(
    db: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Store.open(db, write=False) as store:
        store.runs()
    path = tmp_path / "l40s.chip.json"
    assert run(f"calibrate --emulated {NAME} --out {path}") == 0
    out = capsys.readouterr().out
    assert "memory: hbm_bytes_per_us = " in out and "(kernels/core/chips.py: unknown)" in out
    assert "assumed: shared_bytes_per_us = 1.28e+05 (128 bytes for each clock of a unit" in out
    assert "copy_engines: " in out and "large_collective: " in out
    assert "a rehearsal: nothing was measured" in out
    document = json.loads(path.read_text())
    assert document["chip"]["units"] == 142 and document["constants"] == document["assumed"] == {}
    searched = alone("search", OP, "--on", "model", "--target", NAME, "--chip", str(path))
    assert searched.returncode == 2
    assert "the analytic model is off for nvidia-l40s" in searched.stderr


def test_a_whole_calibration_turns_the_model_on(db: Path, tmp_path: Path) -> None:
    """In a process that knows the GPU by the chip file alone."""
    with Store.open(db, write=False) as store:
        store.runs()
    target, path = Target.parse(NAME), tmp_path / "l40s.chip.json"
    values = {name: CHIPS["h200"].known(name) for name in NAMES if name != "fabric_bytes_per_us"}
    assumed = {name: values.pop(name) for name in ("load_us", "skew_us", "triton_share")}
    write_chip(path, target, values, {}, {}, "2026-11-22", assumed)
    chip = calibrated(target, path).chip
    assert not chip.missing(2)
    assert chip.assumptions == "3 of the 26 constants of nvidia-l40s are assumed"
    line = ("search", OP, "--shapes", str(SHAPES[1]), "--on", "model", "--target", NAME)
    done = alone(*line, "--chip", str(path), "--effort", "quick", "--db", str(tmp_path / "m.db"))
    assert done.returncode == 0, done.stderr
    assert "modelled: 3 of the 26 constants of nvidia-l40s are assumed" in done.stderr


def test_rows_of_relatives_seed_a_search(
    db: Path,
    tmp_path: Path,
    make_rows: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GPUs of one architecture, however many; those that nobody knows by name describe
    themselves."""
    from tftune.db.store import write_rows

    folders = tmp_path / "trials"
    for target in ("h200x8", "mi300x8"):
        (folders / target).mkdir(parents=True)
        rows = make_rows((AllGatherGemm(16, 3584, 8192, 8),), target=target)
        write_rows(folders / target / f"{OP}-1.jsonl", [], rows)
    (folders / NAME).mkdir()
    with Store.open(db, write=False) as store:
        store.export_rows(folders / NAME / f"{OP}-1.jsonl")
    monkeypatch.setattr(chips, "_DESCRIBED", {})
    monkeypatch.setattr("tftune.db.committed.FOLDER", tmp_path / "trials")
    heard = {
        asked: {row.target for row in former_rows(OP, Target.parse(asked), SHAPES)}
        for asked in ("h100x4", "gh200x1", "mi325x8", "a100x8", "b200x8", f"{NAME[:-1]}8")
    }
    assert heard == {
        "h100x4": {"h200x8"}, "gh200x1": {"h200x8"}, "mi325x8": {"mi300x8"}, "a100x8": set(),
        "b200x8": set(), "nvidia-l40sx8": {NAME},
    }  # fmt: skip


def test_a_gpu_that_nobody_knows_is_trained_for_in_processes_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each process hears of the GPUs that this one met."""
    chip = chips.learn(chips.H200.description() | {"name": "acme-gpu", "gpu_name": "ACME GPU"})
    trials = [replace(trial, target=f"{chip.name}x2") for trial in decodes(48)]
    monkeypatch.setattr(fitting, "MANY", 1)
    run = Run(trials[0].run, f"{chip.name}x2", "node", {}, "2026-11-22", {})
    parts = fitting.sources(trials, [run])
    found = fitting.fit(fitting.choose(parts, "flash_decode", f"{chip.name}x2", "node", "rows"))
    assert [evaluation.shapes for evaluation in found.evaluations["graph"].values()] == [48]


def test_rows_of_a_gpu_that_nothing_describes_are_listed_and_refused_for_training(
    tmp_path: Path, tftune: Tftune
) -> None:
    """`trials` needs the name alone. `train` needs the GPU, and says what describes it."""
    with Store.open(tmp_path / "gb.db") as store:
        store.add_run(Run("run", "gb300x72", "node", {}, "2026-11-22", {}))
        for row in synthetic.rows(synthetic.SHAPES[:2]):
            store.add_trial(replace(row, run="run", target="gb300x72"))
    named = "--target gb300x72 --db gb.db"
    for words in ("trials list", "trials export rows.jsonl", "report"):
        done = tftune(f"{words} {named}")
        assert not done.code and ("gb300x72" in done.out or words != "trials list")
    assert (tmp_path / "rows.jsonl").stat().st_size
    for words in (named, "--db gb.db"):
        done = tftune(f"train all_gather_gemm {words}")
        assert done.code == 2 and "describe it, and none read here does" in done.err
        assert "`tftune search` and `tftune calibrate` on that GPU write descriptions" in done.err
    assert tftune("trials list --target gb400x72 --db gb.db").code == 2
