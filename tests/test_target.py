"""Targets parse and are found; versions and clocks are read from tools that may be absent, slow or
silent."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import fake_gpu
import pytest
from fake_gpu import torch_with

from tftune.db import target
from tftune.db.target import Target
from tftune.kernels.core.chips import CHIPS, H200, MI300X


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """The only tool that can be found is `name`."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("text", "chip", "gpus"),
    [("h200x8", H200, 8), ("mi300x8", MI300X, 8), ("mi300x1", MI300X, 1), ("h200x16", H200, 16)],
)
def test_parse(text: str, chip: object, gpus: int) -> None:
    parsed = Target.parse(text)
    assert (parsed.name, parsed.chip, parsed.gpus) == (text, chip, gpus)
    assert str(parsed) == text


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("", ""),
        ("h200", "h200x8"),
        ("h200x", "h200x8"),
        ("h200x0", "h200x8"),
        ("h200x-1", "h200x1"),
        ("h200x08", "h200x8"),
        ("b300x8", "b200x8"),
        ("gb300x72", ""),
        ("mi300xx8", "mi300x8"),
        ("xh200x8", "h200x8"),
        ("h200x8 ", "h200x8"),
    ],
)
def test_parse_lists_the_chips(text: str, near: str) -> None:
    suggestion = rf"; did you mean '{near}'\?" if near else ""
    with pytest.raises(
        ValueError,
        match=f"^{re.escape(repr(text))} is no target that is known here; .* as in h200x8 "
        f".*--chip.* describe it, and none read here does; .* the chips are {', '.join(CHIPS)}"
        f"{suggestion}$",
    ):
        Target.parse(text)


@pytest.mark.parametrize("chip", CHIPS.values(), ids=str)
def test_every_chip_parses_back(chip: object) -> None:
    assert isinstance(chip, type(H200))
    assert Target.parse(Target.of(chip, 4).name) == Target.of(chip, 4)


def test_no_gpus_make_no_target() -> None:
    with pytest.raises(ValueError, match="at least 1 GPU, not 0"):
        Target.of(H200, 0)


@pytest.mark.parametrize(
    ("gpus", "sentence"),
    [
        ([], "torch 2.13.0 sees no GPU .* --on model"),
        (
            [fake_gpu.H200, fake_gpu.ampere("NVIDIA A100-SXM4-80GB")],
            r"GPUs of 2 kinds .NVIDIA A100-SXM4-80GB \(sm_80, 108 units\), NVIDIA H200 "
            r".*CUDA_VISIBLE_DEVICES",
        ),
        (
            [fake_gpu.MI300X, fake_gpu.cdna3("AMD Instinct MI300X", 38)],
            r"GPUs of 2 kinds .AMD Instinct MI300X \(gfx942, 304 units\), AMD .*38 units",
        ),
    ],
)
def test_detect_says_why_not(
    monkeypatch: pytest.MonkeyPatch,
    gpus: list[fake_gpu.Gpu],
    sentence: str,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with(*gpus))
    with pytest.raises(ValueError, match=sentence):
        target.detect()


def test_detect_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match="torch is not installed; install it, or without a GPU: search --on model"
    ):
        target.detect()


def test_build_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, "nvidia-smi", "exit 9")
    monkeypatch.setattr(target, "_driver", lambda: None)
    found = target.build()
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert re.match(r"\d+\.\d+", found["tftune"])
    assert "driver" not in found and "cuda" not in found


def test_build_names_driver_and_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, "nvidia-smi", "echo 580.65.06; echo 580.65.06")
    monkeypatch.setitem(sys.modules, "torch", torch_with(fake_gpu.H200))
    assert target.build().items() >= {"driver": "580.65.06", "cuda": "13.0"}.items()


def test_build_finds_each_of_several_names(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"triton-rocm": "3.7.1", "iris": "0.2", "torch": "2.13.0+rocm7.2"}
    monkeypatch.setattr(target, "version_of", installed.get)
    monkeypatch.setattr(target, "_driver", lambda: "6.16.6")
    monkeypatch.setitem(sys.modules, "torch", torch_with(fake_gpu.MI300X))
    found = target.build()
    assert found.pop("python")
    assert found == {
        "triton": "3.7.1", "iris": "0.2", "torch": "2.13.0+rocm7.2", "driver": "6.16.6",
        "rocm": "7.2", "multicast": "off",
    }  # fmt: skip


def test_build_imports_no_torch_without_a_driver(tmp_path: Path) -> None:
    code = (
        "import sys; from tftune.db.target import build, _driver; build(); print(_driver() is "
        "not None or 'torch' not in sys.modules)"
    )
    command, alone = [sys.executable, "-c", code], {"PATH": str(tmp_path)}
    assert subprocess.check_output(command, env=alone, text=True) == "True\n"


@pytest.fixture
def all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    for runtime in ("CUDA", "HIP", "ROCR"):
        monkeypatch.delenv(f"{runtime}_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("all_visible")
def test_clocks_of_nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "0, GPU-0a1, 1980, 3201, 1980, 31, 75.21, 700.00",
        "1, GPU-1b2, 345, 3201, 1980, 29, [N/A], 700.00",
    )
    tool(tmp_path, monkeypatch, "nvidia-smi", "; ".join(f"echo '{line}'" for line in lines))
    read = target.clocks()
    assert list(read) == ["0", "1"]
    assert read["0"] == {
        "sm_mhz": 1980, "memory_mhz": 3201, "max_sm_mhz": 1980, "celsius": 31, "watts": 75.21,
        "limit_watts": 700,
    }  # fmt: skip
    assert read["1"]["watts"] is None
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")  # nothing to NVIDIA's
    both = ["0", "1"]
    for visible, numbers in {
        "1": ["1"], "GPU-0a, 1": both, "GPU-0a1": ["0"], "0,-1,1": ["0"], "GPU-": both, "": both,
        "MIG-7": both,
    }.items():  # fmt: skip
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert list(target.clocks()) == numbers


@pytest.mark.usefixtures("all_visible")
@pytest.mark.parametrize("wrapped", ['{"gpu_data": %s}', "%s"])
def test_clocks_of_amd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrapped: str) -> None:
    gpus = (
        '[{"gpu": 0, "clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}}}, "usage": '
        '"N/A"}, {"gpu": 1, "power": "N/A"}]'
    )
    tool(tmp_path, monkeypatch, "amd-smi", f"echo '{wrapped % gpus}'")
    assert target.clocks() == {
        "0": {"clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}}}},
        "1": {"power": "N/A"},
    }
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert list(target.clocks()) == ["0"]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    assert list(target.clocks()) == ["1"]
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "1,0")  # of these HIP's is the second
    assert list(target.clocks()) == ["0"]


@pytest.mark.parametrize("script", ["exit 1", "echo not json", "sleep 5"])
def test_clocks_of_a_tool_that_does_not_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
) -> None:
    monkeypatch.setattr(target, "SMI_TIMEOUT_S", 0.2)
    tool(tmp_path, monkeypatch, "amd-smi", script.replace("sleep", "/bin/sleep"))
    assert target.clocks() == {}


def test_clocks_without_any_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert target.clocks() == {}
