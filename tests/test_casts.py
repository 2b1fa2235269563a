"""What torch asks of tftune's operators: FLOPs, autocast, and calls without tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import told
import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

import tftune
from tftune import ops
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation

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


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("flash_decode", "flash_prefill", "merge_attention", "all_reduce"):
        host = operation(name).module("host")
        monkeypatch.setattr(host, "prepare", lambda *given: lambda *operands: None)


def decode_operands(batch: int = 2, dtype: torch.dtype = HALF) -> tuple[torch.Tensor, ...]:
    """q, k, v and lengths of a cache of 32 tokens."""
    q, k = torch.ones(batch, 4, 64, dtype=dtype), torch.ones(batch, 32, 2, 64, dtype=dtype)
    return q, k, k.clone(), torch.zeros(batch, dtype=torch.int32)


@pytest.mark.usefixtures("nothing_runs")
def test_flops_of_attention_are_those_of_a_full_cache(workspace: Workspace) -> None:
    """And of all scores in prefill, as torch counts; merges and reductions have none."""
    q, k, v, lengths = decode_operands()
    pages, table = torch.ones(5, 16, 2, 64, dtype=HALF), torch.zeros(2, 2, dtype=torch.int32)
    counter, tokens = FlopCounterMode(display=False), torch.ones(2, 16, 4, 64, dtype=HALF)
    with counter:
        ops.flash_decode(q, k, v, lengths, workspace)
        ops.flash_decode(q, pages, pages, lengths, workspace, table=table)
    assert counter.get_total_flops() == 2 * tftune.FlashDecode(2, 4, 2, 64, 32, 1).flops
    with counter:
        ops.flash_prefill(tokens, tokens, tokens, workspace)
    size = (2, 4, 16, 64)
    torchs = sdpa_flop_count(size, size, size)
    assert counter.get_total_flops() == 4 * 2 * 4 * 16 * 16 * 64 == torchs
    with counter:
        ops.merge_attention(q, torch.zeros(2, 4), workspace)
        ops.all_reduce(q[0], workspace)
    assert counter.get_total_flops() == 0
    assert {"merge_attention", "all_reduce"} <= {
        str(name).rpartition(".")[2] for name in counter.get_flop_counts()["Global"]
    }


@pytest.mark.usefixtures("nothing_runs")
def test_autocast_casts_operands_of_attention(workspace: Workspace) -> None:
    """Lengths stay integers, and a log-sum-exp stays in fp32."""
    q, k, v, lengths = decode_operands(dtype=torch.float32)
    tokens = torch.ones(2, 16, 4, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.flash_decode(q, k, v, lengths, workspace).dtype is torch.bfloat16
        assert ops.flash_prefill(tokens, tokens, tokens, workspace).dtype is torch.bfloat16
        assert ops.merge_attention(q.half(), torch.zeros(2, 4), workspace).dtype is HALF


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
    c, whole = ops.all_gather_gemm_with_gathered(a, b, workspace, shard="m", b_layout="nk")
    assert c.shape == (0, 32) and whole.shape == (0, 64)
    assert workspace.calls == calls


@pytest.mark.parametrize("output", ["all", "heads"])
def test_without_sequences_nothing_runs(workspace: Workspace, output: str) -> None:
    calls, (q, k, v, lengths) = dict(workspace.calls), decode_operands(0)
    out = torch.empty(0, 4, 64, dtype=HALF)
    decoded = ops.flash_decode(q, k, v, lengths, workspace, output=output, out=out)
    merged = ops.merge_attention(q, torch.zeros(0, 4), workspace, output=output)
    assert decoded is out and merged.shape == (0, 4, 64)
    for size in ((0, 16, 4, 64), (2, 0, 4, 64)):
        tokens = torch.empty(size, dtype=HALF)
        assert ops.flash_prefill(tokens, tokens, tokens, workspace).shape == size
    assert workspace.calls == calls
    at, operators = workspace.handle, torch.ops.tftune
    for operator, given in (
        (operators.flash_decode, (q, k, v, lengths, at, None, output, "graph")),
        (operators.merge_attention, (q, torch.zeros(0, 4), at, output, "e", "graph")),
        (operators.flash_prefill, (tokens, tokens, tokens, at, "yes", "graph")),
    ):
        torch.library.opcheck(operator.default, given)


@pytest.mark.usefixtures("nothing_runs")
def test_a_gradient_that_no_backward_gives_is_refused(workspace: Workspace) -> None:
    q, k, v, lengths = decode_operands()
    tokens, lse = torch.ones(2, 16, 4, 64, dtype=HALF), torch.zeros(2, 4)
    calls = {
        "flash_decode": lambda: ops.flash_decode(q, k, v, lengths, workspace),
        "flash_prefill": lambda: ops.flash_prefill(tokens, tokens, tokens, workspace),
        "merge_attention": lambda: ops.merge_attention(q, lse, workspace),
    }
    for operand, named in ((q, [0, 2]), (v, [0]), (tokens, [1]), (lse, [2])):
        operand.requires_grad_()
        for number in named:
            name, call = list(calls.items())[number]
            for run in (call, torch.compile(call, backend="eager")):
                with pytest.raises(ValueError, match=f"ops.{name} has no backward, and an operand"):
                    run()
            with torch.no_grad():
                assert not call().requires_grad
        operand.requires_grad_(False)


def test_compiled_without_sequences(workspace: Workspace) -> None:
    @torch.compile(backend="aot_eager", dynamic=True, fullgraph=True)
    def layer(q: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        return ops.merge_attention(q, lse, workspace) * 1

    assert layer(torch.ones(0, 4, 64, dtype=HALF), torch.zeros(0, 4)).shape == (0, 4, 64)


def test_compiled_without_tokens(workspace: Workspace) -> None:
    b = torch.ones(32, 64, dtype=HALF)

    @torch.compile(backend="aot_eager", dynamic=True)
    def layer(a: torch.Tensor) -> torch.Tensor:
        return ops.gemm_all_reduce(a, b, workspace)

    for m in (3, 0):
        assert layer(torch.ones(m, 64, dtype=HALF)).shape == (m, 32)
