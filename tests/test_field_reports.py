"""Cases of public reports about kernels that exchange, which hold here."""

from __future__ import annotations

from dataclasses import replace

import pytest
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


def defaults(shape: Shape) -> list[Config]:
    """The default of each fused variant that takes the shape."""
    space = operation(shape.op).space
    complete = (space.complete(c) for c in space.defaults(shape, CHIPS["h200"]))
    return [c for c in complete if c.variant != "bsp" and space.why_invalid(shape, c) is None]


def errors(workspace: Workspace, shape: Shape) -> dict[str, float]:
    """By variant the larger error of two calls. Ranks differ in programs."""
    workspace = replace(workspace, units=workspace.units + 5 * workspace.rank)
    cases = [(shape, config) for config in defaults(shape) for _ in range(2)]
    worst: dict[str, float] = {}
    for call in scenario(workspace, cases):
        worst[call.config.variant] = max(call.error, worst.get(call.config.variant, 0.0))
    return worst


@pytest.mark.parametrize("op", ODD)
def test_odd_sizes_on_three_ranks_whose_grids_differ(op: str) -> None:
    """An odd M, and N and K that no tile divides (Triton-distributed #79, #81); vllm #43616: peers
    that assume equal grids."""
    for found in emulated.run(3, errors, ODD[op]):
        assert len(found) >= 2 and max(found.values()) < 1, found
