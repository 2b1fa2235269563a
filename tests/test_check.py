"""The check sees what a norm over the whole matrix, or the same inputs twice, would hide."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mutant import mutant

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.reference import tolerance
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.tuner.bench import check
from tftune.tuner.bench.check import References, relative_error

SHAPE = AllGatherGemm(m=256, n=384, k=512, world=8)


def rounded(dtype: torch.dtype = torch.float16) -> tuple[torch.Tensor, torch.Tensor]:
    """A result that is right, and its reference."""
    exact = torch.randn(SHAPE.m, SHAPE.n, generator=torch.Generator().manual_seed(0))
    return exact.to(dtype), exact


def test_rounding_passes() -> None:
    output, exact = rounded()
    assert 0.2 * tolerance(SHAPE) < relative_error(output, exact) < 0.8 * tolerance(SHAPE)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_few_wrong_elements_of_one_row_are_seen(dtype: str) -> None:
    shape = AllGatherGemm(SHAPE.m, SHAPE.n, SHAPE.k, SHAPE.world, dtype)
    output, exact = rounded({"fp16": torch.float16, "bf16": torch.bfloat16}[dtype])
    output[77, :4] = 0
    assert relative_error(output, exact) > 3 * tolerance(shape)


def test_what_was_not_written_is_infinitely_wrong() -> None:
    output, exact = rounded()
    output[-1, -1] = math.nan
    assert relative_error(output, exact) == math.inf


def test_a_small_row_is_held_against_its_neighbours() -> None:
    """A row near zero has the absolute error of the others' sums; nobody could compute it better in
    fp32."""
    exact = torch.ones(4, 8)
    exact[2] = 1e-6
    assert relative_error(exact + 1e-5, exact) < 2e-4


def test_where_every_sequence_is_empty_zero_is_right_and_nothing_else() -> None:
    nothing = torch.zeros(2, 3, 8)
    assert relative_error(nothing.half(), nothing) == 0
    assert relative_error(nothing + 1e-4, nothing) > 1e6
    assert relative_error(nothing * math.nan, nothing) == math.inf


@pytest.mark.parametrize(("rank", "late"), [(0, (0, 1, 4, 5)), (1, (2, 3))])
def test_each_rank_is_late_in_two_calls_in_a_row(
    monkeypatch: pytest.MonkeyPatch,
    rank: int,
    late: tuple[int, ...],
) -> None:
    """A kernel that does not wait for its peers is right as long as no peer is late."""
    calls = list[str]()
    monkeypatch.setattr(check, "poison", lambda workspace: None)
    monkeypatch.setattr(check, "delay", lambda workspace: calls.append("late"))
    references: Any = References.__new__(References)
    references.inputs = [(torch.full((2, 3), float(seed)),) for seed in check.SEEDS]
    references.results = [operands[0] + 1 for operands in references.inputs]

    def plan(operand: torch.Tensor, output: torch.Tensor) -> None:
        calls.append("call")
        output.copy_(operand + 1)

    workspace: Any = SimpleNamespace(world=2, rank=rank)
    assert references.error(plan, workspace) == 0
    behind = [
        len([word for word in calls[:at] if word == "call"])
        for at, word in enumerate(calls)
        if word == "late"
    ]
    assert tuple(behind) == late and calls.count("call") == len(check.ORDER)


def judged(workspace: Workspace, folder: Path) -> list[float]:
    """Errors in tolerances of push, and of push with one generation: a peer's next call then
    overwrites what is still read."""
    from tftune.kernels.all_gather_gemm import host
    from tftune.kernels.all_gather_gemm.variants import push as module

    shape = AllGatherGemm(7, 40, 66, 2)
    config = Config(
        "push",
        block_m=16,
        block_n=32,
        block_k=64,
        group_m=1,
        num_warps=4,
        comm_programs=8,
        rows_per_flag=16,
        k_per_flag=256,
    )
    references = References(shape, workspace)
    change = ("shards", "generation_of(epoch) * generation_rows, tl", "0 * generation_rows, tl")
    text = "    dtype = b_ptr.dtype.element_ty\n"
    slow: Any = (
        "gemm",
        text,
        text + "    __import__('time').sleep(0.4 * (begin == 33))\n",
    )  # rank 0 has waited for rank 1, and dawdles
    errors = []
    for changes in ((slow,), (slow, change)):
        module.push = mutant(folder, "push", changes)
        errors.append(
            references.error(host.prepare(shape, config, workspace), workspace)
            / references.tolerance
        )
    return errors


def test_a_generation_used_too_early_is_seen(tmp_path: Path) -> None:
    right, wrong = zip(*emulated.run(2, judged, tmp_path), strict=True)
    assert max(right) < 1 < max(wrong)
