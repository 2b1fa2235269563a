"""`tftune doctor` and `tftune select` on the base install, and what an issue needs to know."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command_line import Tftune
from test_style import link_tree

from tftune import doctor
from tftune.db.target import Machine, Target
from tftune.models.artifact import read_artifact

Command = Callable[..., subprocess.CompletedProcess[str]]
read_once = cache(read_artifact)
ASKED = ("select", "all_gather_gemm", "m=64,n=3584,k=8192,world=8")


@pytest.fixture
def base(root: Path, tmp_path: Path) -> Command:
    """base(*words, **environment): the command where nothing but the standard library is."""
    link_tree(root, tmp_path)

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-m", "tftune", *words]
        known = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), **environment}
        return subprocess.run(command, cwd=tmp_path, env=known, text=True, capture_output=True)

    return run


def test_doctor_needs_the_standard_library_only(base: Command) -> None:
    done = base("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert "[tune] not installed: optuna, " in done.stdout
    assert "[cuda] not installed: torch, triton, tokenspeed-iris" in done.stdout
    assert "target: none (no GPU can be seen, as torch is not installed" in done.stdout
    assert "all_gather_gemm__h200x8.json" in done.stdout


def test_select_needs_the_standard_library_only(base: Command) -> None:
    done = base(*ASKED, "--target", "h200x8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("push(") and "measured, on this very shape" in done.stdout
    found = json.loads(base(*ASKED, "--target", "h200x8", "--mode", "eager", "--json").stdout)
    assert (found["mode"], found["target"], found["source"]) == ("eager", "h200x8", "measured")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("search",), "in a clone, pip install '.[tune]'"),
        ((*ASKED, "--target", "h200x3"), "no artifact is shipped for h200x3"),
        ((*ASKED, "--mode", "cuda_graph"), "cuda_graph"),
        (("select", "nothing", "m=1"), "there is no operation 'nothing'"),
        (("select",), "OP, SHAPE"),
    ],
)
def test_wrong_words_are_one_sentence(base: Command, words: tuple[str, ...], sentence: str) -> None:
    done = base(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert sentence in done.stderr


def test_the_base_install_answers_as_the_whole_one_does(base: Command, tmp_path: Path) -> None:
    words = (*ASKED, "--target", "mi300x8", "--allow-modelled")
    whole = subprocess.run(
        [sys.executable, "-m", "tftune", *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert base(*words).stdout == whole.stdout != ""


def test_a_broken_artifact_is_exit_code_1(base: Command, tmp_path: Path) -> None:
    words = list[str]()
    for number, content in enumerate(["", '{"schema": 1', "[]", '{"schema": 4, "sha256": "0"}']):
        (tmp_path / f"broken-{number}.json").write_text(content)
        words += "--artifact", f"broken-{number}.json"
    done = base("doctor", *words)
    assert done.returncode == 1
    assert all(f"problem: {name}: " in done.stdout for name in words[1::2])


def test_a_missing_artifact_is_exit_code_1(
    base: Command, tftune: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the base install, and of the whole command line."""
    monkeypatch.setattr(doctor, "IMPORTED", ())
    done = base("doctor", "--artifact", "missing.json", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and "missing.json" in found["problems"][0]
    assert [a["file"] for a in found["artifacts"] if a["broken"]] == ["missing.json"]
    assert tftune("doctor --artifact missing.json").code == 1 and tftune("doctor").code == 0


def test_json_is_what_an_issue_needs(base: Command) -> None:
    done = base("doctor", "--json", NCCL_NVLS_ENABLE="0", TFTUNE_DB="a.db", SECRET="do not show")
    found = json.loads(done.stdout)
    assert found["python"] == ".".join(map(str, sys.version_info[:3])) and found["system"]
    assert set(found["packages"]["cuda"]) == {"torch", "triton", "tokenspeed-iris"}
    assert {"build", "gpus", "target", "chip", "rocm", "problems"} <= set(found)
    assert found["environment"] == {"NCCL_NVLS_ENABLE": "0", "TFTUNE_DB": "a.db"}
    assert "do not show" not in done.stdout
    (artifact,) = [a for a in found["artifacts"] if a["file"] == "all_gather_gemm__h200x8.json"]
    assert artifact["target"] == "h200x8" and len(artifact["digest"]) == 64
    assert "dtype=fp16,shard=k,b_layout=kn,world=8" in artifact["layouts"]["graph"]


@pytest.fixture
def on_node(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """on_node(target, triton): the examination of such a node."""

    def examined(target: str, triton: str) -> dict[str, Any]:
        machine = Machine(target, Target.parse(target).chip.arch, {"triton": triton})
        monkeypatch.setattr("tftune.db.target.here", lambda: machine)
        monkeypatch.setattr("tftune.db.target.detect", lambda: Target.parse(target))
        monkeypatch.setattr(doctor, "_gpus", lambda: {"names": [], "peer_pairs": 0, "pairs": 0})
        monkeypatch.setattr(doctor, "IMPORTED", ())
        monkeypatch.setattr("tftune.models.artifact.read_artifact", read_once)
        return doctor.examine()

    return examined


def test_what_costs_performance_is_a_problem(on_node: Callable[..., dict[str, Any]]) -> None:
    sound = on_node("h200x8", "3.6.0")
    assert sound["problems"] == [] and sound["chip"] == {"name": "h200", "arch": "sm_90"}
    lines = "\n".join(doctor.sentences(sound))
    assert "all_gather_gemm, graph: layouts other than dtype=bf16,shard=m" in lines
    other = on_node("h200x8", "3.9.0")["problems"]
    assert len(other) == 5 and "no Triton" not in other[0]  # one for each artifact
    assert "timed as Triton 3.6" in other[0] and "run `tftune verify all_gather_gemm`" in other[0]
    (nothing,) = on_node("h200x6", "3.6.0")["problems"]
    assert nothing == "no artifact is for h200x6: BSP runs; search here with `tftune tune`"


def test_a_kernel_that_changed_is_a_problem(
    on_node: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.models.chain.installed", lambda op, variant: "r99")
    problems = on_node("h200x8", "3.6.0")["problems"]
    assert any("all_gather_gemm/push has changed: its revision here is r99" in p for p in problems)
