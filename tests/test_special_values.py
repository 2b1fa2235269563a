"""Zeros of both signs, infinities and NaN travel as any other value: none of them says that a word
has not arrived, as in flashinfer #1136."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.ops import operators

WORDS = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 2.0**-24, -65504.0, 1.0)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """To the bit, but for one NaN in place of all."""
    return torch.where(tensor.isnan(), torch.nan, tensor.float()).view(torch.int32)


def check(calls: Callable[..., Any], argument: str, expected: torch.Tensor) -> None:
    """The results of all calls on both ranks."""
    for found in emulated.run(2, calls, argument, timeout_s=120):
        for result in found:
            assert torch.equal(bits(result), bits(expected))


def thrice(
    operator: operators.Operator, operands: Any, workspace: Workspace, words: Any, config: Config
) -> list[torch.Tensor]:
    """Results of both generations and a third call."""
    shape = operator.host.shape_of(*operands, workspace, *words)
    assert operator.host.payload_bytes(shape) <= workspace.generation_bytes, "it would run BSP"
    given = operands, workspace, words, "graph", None
    return [operator.call(*given, config=config).float() for _ in range(3)]


def reduced(workspace: Workspace, variant: str) -> list[torch.Tensor]:
    """Sums of rows of one value each, of which every other rank has -0.0."""
    from test_contract_all_reduce import configured

    x = torch.tensor(WORDS).half().repeat_interleave(16).view(2, 64)
    if workspace.rank:
        x.fill_(-0.0)
    config = Config("bsp") if variant == "bsp" else configured(variant, parts=1, rows_per_flag=1)
    return thrice(operators.ALL_REDUCE, (x, None, None), workspace, (), config)


@pytest.mark.parametrize("variant", ["one_shot", "one_shot_ll", "one_shot_lamport", "two_shot"])
def test_sums_of_special_values_arrive(variant: str) -> None:
    expected = torch.tensor(WORDS).half().float().repeat_interleave(16).view(2, 64)
    check(reduced, variant, expected + 0.0)  # sums begin at +0


def merged(workspace: Workspace, variant: str) -> list[torch.Tensor]:
    """Rows of special values on rank 0, which alone has tokens."""
    o = torch.tensor(WORDS).half().repeat_interleave(64).view(2, 4, 64)
    lse = torch.zeros(2, 4)
    if workspace.rank:
        o.fill_(-0.0)
        lse.fill_(-torch.inf)
    config = Config(variant, rows_per_piece=2, programs=8)
    return thrice(operators.MERGE_ATTENTION, (o, lse), workspace, ("all", "e"), config)


@pytest.mark.parametrize("variant", ["one_shot", "one_shot_ll"])
def test_outputs_of_special_values_are_merged(variant: str) -> None:
    expected = torch.tensor(WORDS).half().float().repeat_interleave(64).view(2, 4, 64)
    check(merged, variant, expected + 0.0)


DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
LEAST = {"fp16": 2.0**-24, "bf16": 2.0**-120}
"""The least denormal of fp16, a quarter of which is rounded to a zero that keeps its sign. The
interpreter reads no denormals of bf16."""


def values_of(dtype: str) -> torch.Tensor:
    """64 of 8 kinds."""
    least = LEAST[dtype]
    kinds = (0.0, -0.0, torch.inf, -torch.inf, torch.nan, least, -least, 1.0)
    return torch.tensor(kinds, dtype=DTYPES[dtype]).repeat_interleave(8)


def product_of(dtype: str, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A [4, 64] and B [64, 64] as [N, K], of which one column counts: rows of values of all kinds
    and of their quarters; on rank 1 of zeros below zero."""
    a = torch.tensor([1.0, 1.0, 0.25, 0.25], dtype=DTYPES[dtype])[:, None].repeat(1, 64)
    b = torch.zeros(64, 64, dtype=DTYPES[dtype])
    b[:, 0] = -LEAST[dtype] if rank else values_of(dtype)
    return (a * 0 + 0.25 if rank else a), b


def multiplied(workspace: Workspace, dtype: str) -> list[torch.Tensor]:
    a, b = product_of(dtype, workspace.rank)
    config = Config("one_shot_ll", block_m=16, block_n=64, block_k=64, group_m=1, loads="pointer")
    return thrice(operators.GEMM_ALL_REDUCE, (a, b), workspace, ("nk",), config)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_special_values_arrive(dtype: str) -> None:
    """As sums in fp32 from +0 on, in the order of ranks, give them."""
    rounded = [
        (a.double()[:, :1] * b.double().t()[:1]).to(DTYPES[dtype]).float()
        for a, b in (product_of(dtype, rank) for rank in range(2))
    ]
    if dtype == "fp16":
        assert bool((bits(rounded[1]) == -(2**31)).all()), "rank 1 sends -0.0"
    expected = (0.0 + rounded[0] + rounded[1]).to(DTYPES[dtype]).float()
    check(multiplied, dtype, expected)


def decoded(workspace: Workspace, dtype: str) -> list[torch.Tensor]:
    """One token on rank 0, whose value is the result; the other rank has none."""
    q = torch.zeros(2, 4, 64, dtype=DTYPES[dtype])
    k, v = (torch.zeros(2, 32, 2, 64, dtype=DTYPES[dtype]) for _ in range(2))
    v[:, 0] = values_of(dtype)
    lengths = torch.full((2,), int(workspace.rank == 0), dtype=torch.int32)
    config = Config("persistent_ll", kv_splits=2, heads_per_program=1, block_n=32)
    operands = q, k, v, lengths, None
    return thrice(operators.FLASH_DECODE, operands, workspace, ("all",), config)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_special_tokens_arrive(dtype: str) -> None:
    expected = values_of(dtype).float().expand(2, 4, 64) + 0.0  # accumulators begin at +0
    check(decoded, dtype, expected)
