"""benchmarks/llama.py without a GPU: its cases, what one rank computes alone, and its lines."""

from __future__ import annotations

import argparse

import llama  # finds examples/
import pytest
import torch
import torch.distributed as dist
from ranks import relative_error
from torch.distributed.tensor import DTensor

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace


def test_tokens_that_ranks_share_are_padded_and_sequences_are_not() -> None:
    given = argparse.Namespace(size=["8b", "70b"], prefill=[1024, 3001], decode=[3])
    found = [(size, str(case)) for size, case in llama.cases(given, 8)]
    each = ["prefill M=1024", "prefill M=3008", "decode M=3"]
    assert found == [(size, case) for size in ("8b", "70b") for case in each]


@torch.no_grad()
@pytest.mark.parametrize(("plan", "shape"), [("prefill", (1, 4, 64)), ("decode", (8, 1, 64))])
def test_alone_a_rank_computes_its_part_of_the_block(plan: str, shape: tuple[int, ...]) -> None:
    """Its weights are half of the block's, its result has this rank's rows."""
    options = {"device": torch.device("cpu"), "dtype": torch.float32}
    case = llama.Case(plan, 8, llama.SIZES["tiny"])
    half, whole = llama.alone(case, 2, **options), llama.alone(case, 1, **options)
    assert half(torch.randn(shape)).shape == shape
    for name, weight in half.named_parameters():
        ranks = 1 if "norm" in name else 2
        assert ranks * weight.numel() == whole.get_parameter(name).numel(), name


def test_a_line_has_times_and_what_they_say() -> None:
    us = {"eager": 400.0, "compiled": 150.0, "pass": 120.0, "alone": 100.0}
    assert llama.line("8b decode M=1", us) == (
        "RESULT llama 8b decode M=1 eager_us=400.0 compiled_us=150.0 pass_us=120.0 alone_us=100.0 "
        "ratio=1.250 possible=1.500 share=0.60"
    )
    assert llama.line("8b", us | {"compiled": 99.0}).endswith("possible=0.990 share=none")


def test_without_ranks_it_says_how_to_start_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(SystemExit, match="2"):
        llama.main([])
    said = capsys.readouterr().err
    assert "start it with torchrun --nproc-per-node GPUS benchmarks/llama.py" in said


@torch.no_grad()
def differences(workspace: Workspace) -> dict[str, float]:
    """How far the parallel block is from the whole one, by plan."""
    mesh, found = dist.init_device_mesh("cpu", (workspace.world,)), {}
    for plan in ("prefill", "decode"):
        case = llama.Case(plan, 6, llama.SIZES["tiny"])
        x, calls = llama.forms(case, mesh, None, device=workspace.device, dtype=torch.float64)
        torch.manual_seed(0)
        whole = llama.Block(case, case.size.kv_heads).double()
        if plan == "decode":
            own = calls["eager"].attention.cache
            parts = [torch.empty_like(own) for _ in range(workspace.world)]
            dist.all_gather(parts, own)
            whole.attention.cache = torch.cat(parts, dim=2)
        all_x = x
        if plan == "prefill":
            rows = [torch.empty_like(x) for _ in range(workspace.world)]
            dist.all_gather(rows, x)
            all_x = torch.cat(rows, dim=1)
        weights = {
            name: weight.full_tensor() if isinstance(weight, DTensor) else weight
            for name, weight in calls["eager"].named_parameters()
        }
        whole.load_state_dict(weights, strict=False)
        exact = whole(all_x)
        if plan == "prefill":
            exact = exact.chunk(workspace.world, dim=1)[workspace.rank]
        found[plan] = relative_error(calls["eager"](x), exact)
    return found


@pytest.mark.parametrize("world", [2, pytest.param(1, marks=pytest.mark.thorough)])
def test_the_parallel_block_is_the_whole_one(world: int) -> None:
    for found in emulated.run(world, differences):
        assert len(found) == 2 and max(found.values()) < 1e-5, found
