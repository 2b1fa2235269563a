"""Cases of public reports about kernels that exchange, which hold here."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from contract import scenario

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import CHIPS
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

ODD = {
    "all_gather_gemm": AllGatherGemm(33, 72, 136, 3, "fp16", "m", "nk"),
    "gemm_reduce_scatter": GemmReduceScatter(33, 72, 408, 3, "fp16", b_layout="nk"),
    "gemm_all_reduce": GemmAllReduce(33, 72, 408, 3, "fp16", b_layout="nk"),
    "all_reduce": AllReduce(33, 72, 3, "fp16"),
}
SPECIAL = (float("inf"), -float("inf"), float("nan"), -0.0, 2.0**-24, 65504.0, 0.0, 1.0)
"""The least subnormal and the largest number of fp16 among them."""


def defaults(shape: Shape) -> list[Config]:
    """The default of each fused variant that takes the shape."""
    space = operation(shape.op).space
    complete = (space.complete(c) for c in space.defaults(shape, CHIPS["h200"]))
    return [c for c in complete if c.variant != "bsp" and space.why_invalid(shape, c) is None]


def errors(workspace: Workspace, shape: Shape, uneven: bool) -> dict[str, float]:
    """By variant the error of two calls; `uneven`: each rank has its own number of programs."""
    if uneven:
        workspace = replace(workspace, units=workspace.units + 5 * workspace.rank)
    cases = [(shape, config) for config in defaults(shape) for _ in range(2)]
    return {call.config.variant: call.error for call in scenario(workspace, cases)}


@pytest.mark.parametrize("op", ODD)
@pytest.mark.parametrize("uneven", [False, True], ids=["equal grids", "grids differ"])
def test_odd_sizes_on_three_ranks(op: str, uneven: bool) -> None:
    """Triton-distributed #79 and #81; vllm #43616: peers that assume equal grids."""
    for found in emulated.run(3, errors, ODD[op], uneven):
        assert len(found) >= 2 and max(found.values()) < 1, found


def special_sums(workspace: Workspace) -> dict[str, torch.Tensor]:
    """By variant, what an all-reduce makes of special values beside zeros of the same sign."""
    shape = AllReduce(4, 64, workspace.world, "fp16")
    host = operation(shape.op).module("host")
    values = torch.tensor(SPECIAL, dtype=torch.float16).repeat(4, 8)
    x = values if workspace.rank == 0 else torch.full_like(values, -0.0)
    found = {}
    for config in defaults(shape):
        plan = host.prepare(shape, config, workspace)
        for _ in range(3):
            out = torch.full_like(x, 7.0)
            plan(x, out)
        found[config.variant] = out
    return found


def test_special_values_are_summed_like_others() -> None:
    """flashinfer #1136: -0.0 was read as "not arrived"."""
    expected = torch.tensor(SPECIAL, dtype=torch.float16).repeat(4, 8)
    for by_variant in emulated.run(2, special_sums):
        assert len(by_variant) >= 3
        for variant, out in by_variant.items():
            same = (out == expected) | (out.isnan() & expected.isnan())
            assert bool(same.all()), variant  # sums begin at 0.0, so that of -0.0 is 0.0
