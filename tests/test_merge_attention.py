"""merge_attention beside its contract: what it refuses, what operands it takes, its order of memory
in the code, its operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from assembly import (
    assemble,
    early_loads,
    is_hip,
    line_of,
    narrow,
    signal_faults,
    wait_faults,
)
from mutant import mutant
from test_compile import spilled_bytes

import tftune
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.space import Config
from tftune.kernels.merge_attention import MergeAttention, host, reference
from tftune.kernels.merge_attention.space import SPACE
from tftune.kernels.merge_attention.workloads import SHAPE_SETS
from tftune.kernels.runtime.compile import KernelSource, gpu_target
from tftune.models.selection import Selection

OP = "merge_attention"
CONFIG = Config("one_shot", rows_per_piece=2, programs=8)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "batch=4,heads=64,head_dim=96,world=2",
            "not one of 64, 128, 256, 512; pad rows of o",
        ),
        ("batch=4,heads=9,head_dim=64,world=2", "heads=9 must be divisible by world=2"),
        ("batch=4,heads=64,head_dim=64,world=2,base=10", "base='10' is not one of e, 2"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        MergeAttention.parse(text)


@pytest.mark.parametrize("chip", [H200, MI300X], ids=lambda chip: chip.name)
@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_every_shape_has_a_fused_default(world: int, chip: Any) -> None:
    for make in SHAPE_SETS.values():
        for shape in (*make(world=world), *make(world=world, output="all")):
            configs = SPACE.defaults(shape, chip)
            assert [SPACE.why_invalid(shape, config, chip) for config in configs] == [
                None for _ in configs
            ], shape
            assert {"bsp", "one_shot"} <= {config.variant for config in configs}, shape


def strided(workspace: Workspace) -> dict[str, Any]:
    """The result for o and lse as slices of larger tensors, beside that of copies; and what cannot
    be taken."""
    import torch

    shape = MergeAttention(3, 4, 64, 2)
    o, lse = reference.make_inputs(shape, workspace.rank, 0)
    wide = torch.zeros(3, 6, 72, dtype=o.dtype)[:, 1:5, :64]
    late = torch.zeros(4, 3).t()
    wide.copy_(o), late.copy_(lse)
    assert not wide.is_contiguous() and not late.is_contiguous()
    found: dict[str, Any] = {
        variant: torch.equal(
            host.merge_attention(o, lse, workspace, config),
            host.merge_attention(wide, late, workspace, config),
        )
        for variant, config in (("bsp", Config("bsp")), ("one_shot", CONFIG))
    }
    bad = {
        "columns apart": (torch.zeros(3, 4, 128, dtype=o.dtype)[:, :, ::2], lse),
        "off by an element": (torch.zeros(3 * 4 * 64 + 1, dtype=o.dtype)[1:].view(3, 4, 64), lse),
        "lse of other heads": (o, lse[:, :3]),
        "lse in half": (o, lse.half()),
        "two dimensions": (o[0], lse),
    }
    for name, (given, its_lse) in bad.items():
        try:
            host.merge_attention(given, its_lse, workspace, CONFIG)
        except ValueError as error:
            found[name] = str(error)
    return found


def test_operands_may_have_strides_and_wrong_ones_are_named() -> None:
    found, _ = emulated.run(2, strided)
    assert found.pop("bsp") and found.pop("one_shot")
    assert "begin at a multiple of 16 bytes" in found["columns apart"]
    assert "begins 2 bytes behind" in found["off by an element"]
    assert found["lse of other heads"] == "lse is [3, 3] but must be [3, 4]"
    assert "lse is torch.float16" in found["lse in half"]
    assert found["two dimensions"] == "o must have 3 dimensions, not 2"


def layer(workspace: Workspace) -> dict[str, Any]:
    """The operator, eagerly and traced."""
    import torch

    o, lse = reference.make_inputs(MergeAttention(3, 4, 64, 2), workspace.rank, 0)
    told = Selection(CONFIG, "fallback", "as told")
    tftune.select_kernel = lambda shape, mode: told  # type: ignore[assignment]
    eager = tftune.ops.merge_attention(o, lse, workspace)

    def call(o: Any, lse: Any) -> Any:
        return tftune.ops.merge_attention(2 * o, lse, workspace) / 2

    traced = torch.compile(call, backend="aot_eager", fullgraph=True)(o, lse)
    given = (o, lse, workspace.handle, "heads", "e", "graph")
    torch.library.opcheck(torch.ops.tftune.merge_attention.default, given)
    return {"same": torch.equal(eager, traced), "size": tuple(eager.shape)}


def test_operator_is_traced() -> None:
    assert emulated.run(2, layer) == [{"same": True, "size": (3, 2, 64)}] * 2


LARGE = MergeAttention(64, 64, 128, 8)
DEVICE = Path(host.__file__).parents[1] / "device" / "merge.py"
LOAD = "o = tl.load(o_at[:, None] + dims[None, :], mask=known"


def kernel_of(arch: str) -> KernelSource:
    chip = MI300X if is_hip(arch) else H200
    config = Config("one_shot", rows_per_piece=16, num_warps=4)
    (source,) = host.kernel_sources(LARGE, config, chip)
    return source


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_order_of_memory_and_width_of_accesses(arch: str) -> None:
    """Flags are released after the stores of a piece and acquired before its loads; 16 bytes move
    at a time."""
    source = kernel_of(arch)
    code = assemble(source, arch)
    assert signal_faults(code, is_hip(arch)) + wait_faults(code, is_hip(arch)) == []
    lines = ("o = tl.load(own_at[:, None]", "tl.store(o_at[:, None] +", LOAD)
    assert narrow(code, is_hip(arch), *(line_of(DEVICE, line) for line in lines)) == []
    text = source.compile(gpu_target(arch)).asm["ttgir"]
    assert early_loads(text, DEVICE, (LOAD,)) == []


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_defaults_compile_without_spills(tmp_path: Path, arch: str) -> None:
    chip = MI300X if is_hip(arch) else H200
    for shape in (
        LARGE,
        MergeAttention(1, 64, 128, 8, output="all"),
        MergeAttention(8, 16, 256, 8),
    ):
        for config in SPACE.defaults(shape, chip):
            for source in host.kernel_sources(shape, config, chip):
                assert spilled_bytes(source.compile(gpu_target(arch)), arch, tmp_path) == 0, config


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_a_weaker_release_is_refused(tmp_path: Path, arch: str) -> None:
    change = ("symmetric", "word(address), epoch, sem=\"release\", scope=\"sys\"",
              "word(address), epoch, sem=\"release\", scope=\"gpu\"")  # fmt: skip
    changed = replace(kernel_of(arch), kernel=mutant(tmp_path, "one_shot", (change,), OP))
    assert signal_faults(assemble(changed, arch), is_hip(arch)) != []
