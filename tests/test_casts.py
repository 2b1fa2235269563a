"""What torch asks of tftune's operators: FLOPs, autocast, and calls without tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import told
import torch
from torch.utils.flop_counter import FlopCounterMode

import tftune
from tftune import ops
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace

HALF = torch.float16


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """One rank, for which BSP is selected."""
    monkeypatch.setattr(tftune, "select_kernel", told.select({}))
    emulated.prepare(tmp_path, 1, 1 << 16)
    return emulated.workspace(tmp_path, 0, 1, 1 << 16)


def test_flops_are_those_of_a_matmul(workspace: Workspace) -> None:
    a, b = torch.ones(8, 64, dtype=HALF), torch.ones(32, 64, dtype=HALF)
    counter = FlopCounterMode(display=False)
    with counter:
        ops.all_gather_gemm(a, b, workspace, shard="m", b_layout="nk")
        ops.gemm_reduce_scatter(a, b, workspace)
        ops.gemm_all_reduce(a, b, workspace)
    assert counter.get_total_flops() == 3 * 2 * 8 * 64 * 32


def test_autocast_casts_operands_of_a_gemm(workspace: Workspace) -> None:
    a, b = torch.ones(8, 64), torch.ones(32, 64, dtype=HALF)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        c = ops.gemm_all_reduce(a, b, workspace)
        assert c.dtype is (a @ b.t().float()).dtype is torch.bfloat16
        assert ops.all_reduce(a.half(), workspace).dtype is HALF
    assert torch.equal(c, torch.full((8, 32), 64.0, dtype=torch.bfloat16))


def test_without_tokens_nothing_runs(workspace: Workspace) -> None:
    a, b = torch.empty(0, 64, dtype=HALF), torch.ones(32, 64, dtype=HALF)
    calls = dict(workspace.calls)
    assert ops.all_gather_gemm(a, b, workspace, shard="m", b_layout="nk").shape == (0, 32)
    assert ops.gemm_reduce_scatter(a, b, workspace).shape == (0, 32)
    assert ops.gemm_all_reduce(a, b, workspace).shape == (0, 32)
    assert ops.all_reduce(a, workspace).shape == (0, 64)
    weight = torch.ones(64, dtype=HALF)
    assert ops.all_reduce(a, workspace, residual=a, weight=weight).shape == (2, 0, 64)
    assert workspace.calls == calls


def test_compiled_without_tokens(workspace: Workspace) -> None:
    b = torch.ones(32, 64, dtype=HALF)

    @torch.compile(backend="aot_eager", dynamic=True)
    def layer(a: torch.Tensor) -> torch.Tensor:
        return ops.gemm_all_reduce(a, b, workspace)

    for m in (3, 0):
        assert layer(torch.ones(m, 64, dtype=HALF)).shape == (m, 32)
