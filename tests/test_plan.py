"""What operations share on the host: a workspace's chip and its rules, the order of a launch's
arguments, one plan for a config."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import fake_gpu
import pytest
import torch
from lone import lone

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm import host as gemm
from tftune.kernels.all_gather_gemm.space import SPACE as GEMM
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import chips
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.devices import Seen
from tftune.kernels.core.space import CONTROL_BYTES, Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode import host as decode
from tftune.kernels.flash_decode.space import SPACE as DECODE
from tftune.kernels.runtime import plan
from tftune.kernels.runtime.compile import KernelSource

DECODED = FlashDecode(1, 64, 8, 128, 8192, 8)
WORDS = Config("persistent_ll", kv_splits=16, heads_per_program=1)
TILED = Config("push", block_m=16, block_n=32, group_m=1, num_warps=4, rows_per_flag=16)


def workspace(chip: Chip | None, world: int, generation_bytes: int = 1 << 30) -> Workspace:
    arch, units = (chip.can.backend, chip.units) if chip else ("interpreter", 16)
    bases = torch.zeros(world, dtype=torch.int64)
    return lone(world, generation_bytes, arch, units, bases=bases, chip=chip)


def compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Launches are noted from here on."""
    launches: list[tuple[Any, ...]] = []
    resources = SimpleNamespace(shared_memory_per_multiprocessor=1 << 20)

    class Compiled:
        n_regs, metadata = 32, SimpleNamespace(shared=1024)

        def __getitem__(self, grid: Any) -> Any:
            return lambda *arguments: launches.append(arguments)

    monkeypatch.setattr(KernelSource, "compile", lambda self: Compiled())
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: resources)
    return launches


def test_what_needs_one_die_is_refused_by_its_rule_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiles_nothing(monkeypatch)
    with pytest.raises(
        ValueError, match=r"persistent_ll\(.*\) cannot run .*: persistent_ll must run on one die"
    ):
        decode.prepare(DECODED, WORDS, workspace(MI300X, 8))
    decode.prepare(DECODED, WORDS, workspace(H200, 8))


@pytest.mark.parametrize(("units", "refused"), [(15, True), (16, False)])
def test_parts_of_a_tile_that_cannot_run_at_once_are_refused_by_their_rule(
    monkeypatch: pytest.MonkeyPatch, units: int, refused: bool
) -> None:
    compiles_nothing(monkeypatch)
    shape = AllGatherGemm(16, 32, 4096, 2)
    config = Config("push", **dict(TILED.knobs), comm_programs=8, split_k=8, k_per_flag=256)
    here = workspace(replace(H200, units=units), 2)
    sentence = "split_k must not exceed the programs that compute: all parts of a tile run at once"
    with pytest.raises(ValueError, match=sentence) if refused else nullcontext():
        gemm.prepare(shape, config, here)


def test_rules_of_a_chip_that_only_say_what_is_slow_refuse_no_launch() -> None:
    """BSP that every rank names alike, whether it knows its chip or not, runs on any chip."""
    small = replace(H200, shared_bytes=65_536)
    (first, *_) = DECODE.fallbacks(DECODED)
    assert "shared memory" in (DECODE.why_invalid(DECODED, first, small) or "")
    assert DECODE.why_refused(DECODED, first, small) is None
    copied = Config("push_ce", **dict(TILED.knobs))
    tiny = AllGatherGemm(16, 32, 512, 2)
    assert "256 KB" in (GEMM.why_invalid(tiny, copied, H200) or "")
    assert GEMM.why_refused(tiny, copied, H200) is None
    refused = GEMM.why_refused(tiny, Config("push", block_m=64), H200)
    assert "block_m must not exceed M" in (refused or "")


@pytest.mark.parametrize("space", [GEMM, DECODE], ids=lambda space: space.op)
def test_required_rules_ask_for_the_chip_and_pass_where_it_is_not_known(space: Any) -> None:
    required = [rule for rule in space.rules if rule.required]
    assert required and all(rule.holds(None, {}, None) for rule in required)


@pytest.mark.parametrize(
    ("host", "shape", "config"),
    [
        (gemm, AllGatherGemm(16, 64, 512, 2), TILED),
        (decode, replace(DECODED, world=2), Config("fused")),
    ],
)
def test_a_workspace_that_is_too_small_is_refused_with_the_size_it_needs(
    host: Any, shape: Any, config: Config
) -> None:
    needed = host.payload_bytes(shape)
    sentence = (
        rf"gathers {needed} bytes .* has {needed - 1}; create it with "
        rf"Workspace.create\(group, {needed}\)"
    )
    with pytest.raises(ValueError, match=sentence):
        host.prepare(shape, config, workspace(None, 2, needed - 1))


def test_operands_come_first_and_the_rest_in_the_kernels_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launches = compiles_nothing(monkeypatch)
    kernel = SimpleNamespace(arg_names=["x", "y", "size", "BLOCK"])
    types = {"x": "*fp16", "y": "*fp16", "size": "i32"}
    source = KernelSource(kernel, types, {"BLOCK": 64}, (), {})
    plan.launcher(source, (1, 1, 1), ("x", "y"), {"size": 7}, "cuda")(1, 2)
    assert launches == [(1, 2, 7, 64)]
    sentence = r"the first arguments of the kernel are \('x', 'y'\), not \('y', 'x'\)"
    with pytest.raises(ValueError, match=sentence):
        plan.arguments_after(source, ("y", "x"), {"size": 7})


@pytest.mark.parametrize("gpu", [fake_gpu.H200, fake_gpu.L40S], ids=lambda gpu: gpu.name)
def test_a_workspace_on_gpus_has_the_chip_that_its_driver_tells(
    monkeypatch: pytest.MonkeyPatch, gpu: fake_gpu.Gpu
) -> None:
    """And leaves what this process knows by name as it was: an artifact may describe that chip
    otherwise."""
    from tftune.kernels.comm import iris_heap as heap

    described = chips.described()
    seen = fake_gpu.torch_with(gpu)
    heap_bases = torch.zeros(1, dtype=torch.int64)
    context = SimpleNamespace(
        empty=torch.zeros, zeros=torch.zeros, get_heap_bases=lambda: heap_bases
    )
    monkeypatch.setitem(sys.modules, "iris", SimpleNamespace(iris=lambda size, **options: context))
    for name in ("get_device_properties", "get_device_name"):
        monkeypatch.setattr(torch.cuda, name, getattr(seen.cuda, name))
    for name, value in (("current_device", 0), ("synchronize", None)):
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    for name, value in (("get_rank", 0), ("barrier", None)):
        monkeypatch.setattr(torch.distributed, name, lambda value=value: value)
    made = heap.workspace(Workspace, None, [0], 4096)
    assert made.chip == Seen.of(seen, 0).chip and made.chip is not None
    assert (made.chip.arch, made.units, made.arch) == (gpu.arch, gpu.units, "cuda")
    assert made.generation_bytes == 4096 and made.owner[1].numel() == CONTROL_BYTES
    assert chips.described() == described
