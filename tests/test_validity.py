"""Where an artifact's times do not hold: another machine, GPU or Triton disables all that is fused;
another driver is a warning, once."""

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
from command_line import Tftune
from fake_gpu import torch_with

import tftune
from tftune import doctor
from tftune.db import target as machines
from tftune.db.target import Machine
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.models import compatibility as validity
from tftune.models.artifact import Mode, parse_artifact
from tftune.models.export import Provenance, document, stamped
from tftune.models.formula.formula import Formula
from tftune.models.layout import Known, LayoutModel
from tftune.models.selector import Selector
from tftune.models.tree.tree import Leaf, Split

OP = "all_gather_gemm"
BUILD = {
    "driver": "580.1",
    "cuda": "13.0",
    "torch": "2.11.0",
    "triton": "3.6.0",
    "iris": "0.1",
    "python": "3.12.3",
}
HERE = Machine("h200x8", "sm_90", BUILD)
LARGE = AllGatherGemm(m=4096, n=3584, k=8192, world=8)


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    """An artifact of three measured shapes, M = 16, 1024 and 4096, of one family, and three leaves
    for all others: in both BSP answers up to M = 64, then pull, and from M = 2048 on push, each in
    half of BSP's time."""
    kernels = {variant: installed(OP, variant) for variant in SPACE.variants}
    fused = [SPACE.complete(Config(variant, block_m=16)) for variant in ("pull", "push")]
    flat = [Formula((us, 0, 0, 0, 0, 0, 0), (), 16, 4096) for us in (100.0, 50.0, 50.0)]
    root = Split(
        "m",
        64.0,
        Leaf((0,), 1, 0.1, ()),
        Split("m", 2048.0, Leaf((0, 1), 1, 0.1, ()), Leaf((0, 2), 1, 0.1, ())),
    )
    known = [Known((16, 3584, 8192), 0, None, ((0, 100.0),))]
    known += [
        Known((m, 3584, 8192), best, (1.9, 2.1), ((0, 100.0), (best, 50.0)))
        for m, best in ((1024, 1), (4096, 2))
    ]
    model = LayoutModel(
        OP, "graph", LARGE.layout, (Config("bsp", form="local_transpose"), *fused),
        ("", kernels["pull"], kernels["push"]), tuple(flat),
        tuple(known), root, True, 0.1,
    )  # fmt: skip
    return document(
        {"graph": Mode({model.layout: model}, {})},
        Provenance(OP, "h200x8", "node", BUILD, kernels, 5, "0" * 16),
    )


def variants(content: dict[str, Any], machine: Machine | None) -> list[str]:
    """What is answered at each measured shape; in its leaf it is the same, for a family that was
    not measured."""
    selector = Selector(parse_artifact(content), machine=machine)
    found, leaves = (
        [selector.select(replace(LARGE, m=m, n=n)).config.variant for m in (16, 1024, 4096)]
        for n in (3584, 3072)
    )
    assert found == leaves
    return found


def here(**build: str) -> Machine:
    return replace(HERE, build=BUILD | build)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (
            replace(HERE, target="h200x4"),
            "the artifact is for h200x8, and this machine is h200x4; measure here with `tftune "
            "search",
        ),
        (replace(HERE, target="8 x NVIDIA B200", arch="sm_100"), "this machine is 8 x NVIDIA B200"),
        (replace(HERE, arch="sm_100"), "the artifact is for sm_90, and this GPU is sm_100"),
        (
            here(triton="3.7.1"),
            "timed as Triton 3.6.0 compiles them, and Triton 3.7.1 is installed; run `tftune "
            "verify all_gather_gemm`",
        ),
        (replace(HERE, build={"torch": "2.11.0"}), "and no Triton is installed"),
    ],
)
def test_another_machine_gpu_or_triton_disables_all_that_is_fused_and_nothing_else(
    content: dict[str, Any], machine: Machine, reason: str
) -> None:
    selector = Selector(parse_artifact(content), machine=machine)
    assert variants(content, machine) == ["bsp", "bsp", "bsp"]
    assert selector.select(replace(LARGE, m=16)).source == "measured"
    for n in (3584, 3072):
        pull, push = (selector.select(replace(LARGE, m=m, n=n)) for m in (1024, 4096))
        assert pull.source == push.source == "interpolated"
        assert pull.interval is push.interval is None
        assert pull.reason.startswith("pull would be the fastest: ")
        assert push.reason.startswith("push would be the fastest: ")
        assert reason in pull.reason and reason in push.reason
    assert list(selector.disabled()) == ["all_gather_gemm/pull", "all_gather_gemm/push"]
    assert list(selector.warnings()) == []


@pytest.mark.parametrize(
    "machine",
    [None, HERE, here(triton="3.6.9"), here(triton="3.6.0+rocm7.1"), here(driver="590.2")],
)
def test_what_compiles_the_same_kernels_serves(
    content: dict[str, Any], machine: Machine | None
) -> None:
    assert variants(content, machine) == ["bsp", "pull", "push"]
    selector = Selector(parse_artifact(content), machine=machine)
    assert [selector.select(replace(LARGE, n=n)).source for n in (3584, 3072)] == [
        "measured",
        "interpolated",
    ]
    assert selector.disabled() == {}


def of_another_pull(content: dict[str, Any]) -> dict[str, Any]:
    """The artifact, but its times of pull are of an earlier revision."""
    changed: dict[str, Any] = json.loads(json.dumps(content))
    changed["kernels"]["pull"] = "r0"
    for mode in changed["modes"].values():
        for group in (group for layout in mode["layouts"] for group in layout["configs"]):
            if group["variant"] == "pull":
                group["kernel"] = "r0"
    return changed


def test_another_kernel_disables_its_own_answers_only(content: dict[str, Any]) -> None:
    content = of_another_pull(content)
    assert variants(content, HERE) == ["bsp", "bsp", "push"]


def test_a_verified_artifact_holds_for_the_triton_that_verified_it(content: dict[str, Any]) -> None:
    again = stamped(content, BUILD | {"triton": "3.7.1"}, 3)
    assert variants(again, here(triton="3.7.1")) == ["bsp", "pull", "push"]
    assert variants(again, HERE) == ["bsp", "bsp", "bsp"]
    assert again["build"] == content["build"]
    assert again["sha256"] != content["sha256"]
    assert again["verified"]["leaves"] == 3


@pytest.mark.parametrize("build", [{}, {"triton": ""}, {"torch": "2.11.0"}])
def test_measured_times_that_do_not_say_their_triton_are_not_served(
    content: dict[str, Any], build: dict[str, str]
) -> None:
    """Neither those of the rows nor those of a verification; modelled ones are of no Triton, and
    without a GPU nothing can run."""
    for unstamped in (content | {"build": build}, stamped(content, build, 3)):
        assert variants(unstamped, HERE) == ["bsp", "bsp", "bsp"] and variants(unstamped, None) == [
            "bsp",
            "pull",
            "push",
        ]
        why = validity.why_elsewhere(unstamped, HERE)
        assert why and why.endswith(
            "does not say with which Triton its times were taken; run `tftune verify "
            "all_gather_gemm`"
        )
    for verified in ({}, {"at": "2026-11-22"}):
        assert "run `tftune verify" in (
            validity.why_elsewhere(content | {"verified": verified}, HERE) or ""
        )
    modelled = parse_artifact(content | {"build": build, "bench": "model", "modelled": True})
    assert (
        Selector(modelled, allow_modelled=True, machine=HERE).select(LARGE).config.variant == "push"
    )


@pytest.fixture
def loaded(
    content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., list[str]]]:
    """loaded(machine, **arguments): the warnings of loading the artifact twice there."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))

    def run(machine: Machine | None, **arguments: Any) -> list[str]:
        monkeypatch.setattr(machines, "here", lambda: machine)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(2):
                tftune.use(tftune.load(path, **arguments))
                tftune.select_kernel(LARGE)
        return [str(warning.message) for warning in caught]

    yield run


def test_another_driver_or_torch_is_one_warning_and_serves(
    loaded: Callable[..., list[str]],
) -> None:
    (told,) = loaded(here(driver="590.2", torch="2.12.0"))
    assert (
        "driver 590.2 (timed with 580.1), torch 2.12.0 (timed with 2.11.0); check with `tftune "
        "verify`" in told
    )
    assert tftune.select_kernel(LARGE).config.variant == "push"
    assert loaded(HERE) == [] and loaded(None) == []


def test_the_target_given_counts_where_a_process_sees_some_of_the_gpus(
    loaded: Callable[..., list[str]],
) -> None:
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
    found = doctor._artifact(path, machine, "there is no GPU to be seen")
    said = " ".join(found["why_not"] + found["warnings"])
    lines = list(doctor._artifact_sentences([found]))
    assert found["applies"] == applies
    assert [part for part in told if part not in said] == []
    assert bool(said) == bool(told)
    assert ("applies here" in lines[0]) == applies
    assert [line[:19] for line in lines[1:]] == ["  warning: a.json: "] * len(found["warnings"])


def test_the_command_line_answers_for_the_artifact_s_machine_and_says_what_happens_here(
    content: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tftune: Tftune,
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(content))
    monkeypatch.setattr(machines, "here", lambda: replace(HERE, target="h200x4"))
    for command in ("select", "explain"):
        shown = tftune(f"{command} {OP} {LARGE} --artifact a.json")
        assert not shown.code, shown.err
        assert shown.out.startswith("push(")
        assert shown.err.startswith(
            "on this machine it answers BSP: the artifact is for h200x8, and this machine is h200x4"
        )


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
