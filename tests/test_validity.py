"""Where an artifact's times do not hold: another machine, GPU or Triton disables its fused leaves; another driver is a warning, once."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_gpu
import pytest
from fake_gpu import torch_with

import tftune
from tftune import cli, doctor
from tftune.db import target as machines
from tftune.db.target import Machine
from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.space import Config
from tftune.models import validity
from tftune.models.dataset import load
from tftune.models.export import document, provenance, stamped
from tftune.models.selector import Selector, parse_artifact
from tftune.models.train import train
from tftune.models.tree import Leaf, Split, Tree

OP = "all_gather_gemm"
BUILD = {"driver": "580.1", "cuda": "13.0", "torch": "2.11.0", "triton": "3.6.0", "iris": "0.1", "python": "3.12.3"}
HERE = Machine("h200x8", "sm_90", BUILD)
LARGE = AllGatherGemm(m=4096, n=3584, k=8192, world=8)


@pytest.fixture(scope="module")
def content(make_rows: Callable[..., list[Trial]]) -> dict[str, Any]:
    """An artifact of three leaves: BSP up to M = 64, pull up to 2048, push above."""
    dataset = load(make_rows(paper(), bench="node"), OP, "h200x8", "graph", "node")
    origin = provenance({"graph": dataset}, {}, BUILD)
    trained = train(dataset)
    leaf = next(leaf for leaf in trained.leaves() if leaf.config.variant == "push")
    bsp = Leaf(leaf.bsp, leaf.bsp, 1, 1.0, None, "BSP is measured to be the fastest", origin.kernels["bsp"])
    pull, push = (replace(leaf, config=Config(v, block_m=64), kernel_hash=origin.kernels[v]) for v in ("pull", "push"))
    root = Split("m", 64.0, bsp, Split("m", 2048.0, pull, push))
    return document({"graph": Tree(OP, "graph", root, trained.measured)}, origin)


def variants(content: dict[str, Any], machine: Machine | None) -> list[str]:
    """What is answered in each leaf."""
    selector = Selector(parse_artifact(content), machine=machine)
    return [selector.select(replace(LARGE, m=m)).config.variant for m in (16, 1024, 4096)]


def here(**build: str) -> Machine:
    return replace(HERE, build=BUILD | build)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (replace(HERE, target="h200x4"), "the artifact is for h200x8, and this machine is h200x4; measure here with `tftune search"),
        (replace(HERE, target="8 x NVIDIA B200", arch="sm_100"), "this machine is 8 x NVIDIA B200"),
        (replace(HERE, arch="sm_100"), "the artifact is for sm_90, and this GPU is sm_100"),
        (here(triton="3.7.1"), "timed as Triton 3.6.0 compiles them, and Triton 3.7.1 is installed; run `tftune verify all_gather_gemm`"),
        (replace(HERE, build={"torch": "2.11.0"}), "and no Triton is installed"),
    ],
)
def test_another_machine_gpu_or_triton_disables_the_fused_leaves_and_no_other(
    content: dict[str, Any], machine: Machine, reason: str
) -> None:
    selector = Selector(parse_artifact(content), machine=machine)
    assert variants(content, machine) == ["bsp", "bsp", "bsp"]
    measured, pull, push = (selector.select(replace(LARGE, m=m)) for m in (16, 1024, 4096))
    assert measured.source == "measured" and pull.source == push.source == "fallback"
    assert reason in pull.reason and reason in push.reason
    assert list(selector.disabled()) == ["all_gather_gemm/pull", "all_gather_gemm/push"]
    assert list(selector.warnings()) == []


@pytest.mark.parametrize("machine", [None, HERE, here(triton="3.6.9"), here(triton="3.6.0+rocm7.1"), here(driver="590.2")])
def test_what_compiles_the_same_kernels_serves(content: dict[str, Any], machine: Machine | None) -> None:
    assert variants(content, machine) == ["bsp", "pull", "push"]


def test_another_kernel_disables_its_own_leaf_only(content: dict[str, Any]) -> None:
    content = json.loads(json.dumps(content).replace(content["kernels"]["pull"], "0" * 12))
    assert variants(content, HERE) == ["bsp", "bsp", "push"]


def test_a_verified_artifact_holds_for_the_triton_that_verified_it(content: dict[str, Any]) -> None:
    again = stamped(content, BUILD | {"triton": "3.7.1"}, 3)
    assert variants(again, here(triton="3.7.1")) == ["bsp", "pull", "push"] and variants(again, HERE) == ["bsp", "bsp", "bsp"]
    assert again["build"] == content["build"] and again["sha256"] != content["sha256"] and again["verified"]["leaves"] == 3


@pytest.mark.parametrize("build", [{}, {"triton": ""}, {"torch": "2.11.0"}])
def test_measured_times_that_do_not_say_their_triton_are_not_served(content: dict[str, Any], build: dict[str, str]) -> None:
    """Neither those of the rows nor those of a verification; modelled ones are of no Triton, and without a GPU nothing can run."""
    for unstamped in (content | {"build": build}, stamped(content, build, 3)):
        assert variants(unstamped, HERE) == ["bsp", "bsp", "bsp"] and variants(unstamped, None) == ["bsp", "pull", "push"]
        why = validity.why_elsewhere(unstamped, HERE)
        assert why and why.endswith("does not say with which Triton its times were taken; run `tftune verify all_gather_gemm`")
    for verified in ({}, {"at": "2026-11-22"}):
        assert "run `tftune verify" in (validity.why_elsewhere(content | {"verified": verified}, HERE) or "")
    modelled = parse_artifact(content | {"build": build, "bench": "model", "modelled": True})
    assert Selector(modelled, allow_modelled=True, machine=HERE).select(LARGE).config.variant == "push"


@pytest.fixture
def loaded(content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """loaded(machine, **arguments): the warnings of loading the artifact twice there."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    monkeypatch.setattr(tftune, "_default", None)

    def run(machine: Machine | None, **arguments: Any) -> list[str]:
        monkeypatch.setattr(machines, "here", lambda: machine)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(2):
                tftune.load(path, **arguments)
                tftune.select_kernel(LARGE)
        return [str(warning.message) for warning in caught]

    yield run


def test_another_driver_or_torch_is_one_warning_and_serves(loaded: Callable[..., list[str]]) -> None:
    (told,) = loaded(here(driver="590.2", torch="2.12.0"))
    assert "driver 590.2 (timed with 580.1), torch 2.12.0 (timed with 2.11.0); check with `tftune verify`" in told
    assert tftune.select_kernel(LARGE).config.variant == "push"
    assert loaded(HERE) == [] and loaded(None) == []


def test_the_target_given_counts_where_a_process_sees_some_of_the_gpus(loaded: Callable[..., list[str]]) -> None:
    loaded(replace(HERE, target="h200x1"))
    assert tftune.select_kernel(LARGE).config.variant == "bsp"
    loaded(replace(HERE, target="h200x1"), target="h200x8")
    assert tftune.select_kernel(LARGE).config.variant == "push"


@pytest.mark.parametrize(
    ("machine", "applies", "told"),
    [
        (HERE, True, []),
        (here(driver="590.2"), True, ["driver 590.2 (timed with 580.1)"]),
        (here(triton="3.7.1"), False, ["run `tftune verify all_gather_gemm`"]),
        (replace(HERE, target="h200x4"), False, ["this machine is h200x4"]),
        (None, False, ["there is no GPU to be seen"]),
    ],
)
def test_doctor_says_what_the_selector_would_do(
    content: dict[str, Any], tmp_path: Path, machine: Machine | None, applies: bool, told: list[str]
) -> None:
    (path := tmp_path / "a.json").write_text(json.dumps(content))
    path.with_suffix(".py").write_text("# Written by tftune from another")
    found = doctor._artifact(path, machine, "there is no GPU to be seen")
    assert found["applies"] == applies and "a.py beside it was not written from it" in found["warnings"][-1]
    said, lines = " ".join(found["why_not"] + found["warnings"][:-1]), list(doctor._artifact_sentences([found]))
    assert [part for part in told if part not in said] == [] and bool(said) == bool(told)
    assert ("applies here" in lines[0]) == applies and lines[1].startswith("  warning: ")


def test_the_command_line_answers_for_the_artifact_s_machine_and_says_what_happens_here(
    content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "a.json").write_text(json.dumps(content))
    monkeypatch.setattr(machines, "here", lambda: replace(HERE, target="h200x4"))
    monkeypatch.setattr(tftune, "_default", None)
    for command in ("select", "explain"):
        with pytest.raises(SystemExit) as ended:
            cli.main([command, OP, str(LARGE), "--artifact", str(path)])
        shown = capsys.readouterr()
        assert not ended.value.code and shown.out.startswith("push(")
        assert shown.err.startswith("on this machine it answers BSP: the artifact is for h200x8, and this machine is h200x4")


@pytest.mark.parametrize(
    ("torch", "found"),
    [
        (torch_with(), None),
        (torch_with(*[fake_gpu.H200] * 4), ("h200x4", "sm_90")),
        (torch_with(*[fake_gpu.MI300X] * 8), ("mi300x8", "gfx942")),
        (torch_with(*[fake_gpu.L40S] * 2), ("nvidia-l40sx2", "sm_89")),
        (torch_with(fake_gpu.H200, fake_gpu.L40S), ("2 x NVIDIA H200", "sm_90")),
    ],
)
def test_this_machine_is_what_torch_sees(
    torch: Any, found: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machines, "build", lambda: BUILD)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(machines, "_DEVICES", (str(tmp_path),))
    machine = machines.here()
    assert (machine and (machine.target, machine.arch)) == found
    monkeypatch.setattr(machines, "_DEVICES", (str(tmp_path / "none"),))
    assert machines.here() is None
