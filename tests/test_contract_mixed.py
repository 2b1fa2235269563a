"""One workspace serves all operations: their calls alternate on emulated ranks, back to back, and
none sees what another left behind."""

from __future__ import annotations

import pytest
from contract import Call, Case, scenario, wrong_calls

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.merge_attention import MergeAttention

ROUNDS = 2
FUSED = {
    "flash_decode": "gather no_wait fused fused_heads persistent",
    "all_gather_gemm": "pull staged push",
    "gemm_reduce_scatter": "push pull relay push_ce vendor_ce",
    "gemm_all_reduce": "one_shot two_shot one_shot_ll",
    "all_reduce": "one_shot two_shot one_shot_ll one_shot_lamport",
    "merge_attention": "one_shot one_shot_ll",
}
"""What takes part at least."""


def cases(world: int) -> list[Case]:
    """Every fused variant of each operation in turn, where its tiny shape allows one: they share
    generations, flags and epochs."""
    shapes = (
        AllGatherGemm(7, 40, 66 * world, world),
        FlashDecode(2, 8, 2, 64, 40, world),
        GemmReduceScatter(6 * world, 40, 66 * world, world),
        GemmAllReduce(2 * world, 40, 66 * world, world),
        AllReduce(5, 48, world, norm="rms"),
        MergeAttention(3, 2 * world, 64, world),
    )
    found = [[(shape, config) for config in small(shape)] for shape in shapes]
    longest = max(map(len, found))
    return [group[number % len(group)] for number in range(longest) for group in found]


def small(shape: Shape) -> list[Config]:
    space = operation(shape.op).space
    return [
        config
        for name in space.variants
        if name != "bsp" and (config := next(space.configs(shape, None, (name,)), None))
    ]


def alternating(workspace: Workspace, rounds: int) -> dict[str, list[Call]]:
    calls, last = cases(workspace.world) * rounds, workspace.rank == workspace.world - 1
    late = scenario(workspace, calls, pause_s=0.05 * last)
    ahead = scenario(workspace, calls, pause_s=0.05 * (not last))
    return {"one rank late": late, "one rank ahead": ahead} | (
        {} if rounds == 1 else {"in turn": scenario(workspace, calls)}
    )


@pytest.mark.parametrize("rounds", [1, pytest.param(ROUNDS, marks=pytest.mark.thorough)])
def test_operations_alternate_on_one_workspace(rounds: int) -> None:
    ran = emulated.run(3, alternating, rounds, timeout_s=240)
    assert wrong_calls(ran) == []
    assert all(len(calls) == rounds * len(cases(3)) for found in ran for calls in found.values())
    kinds = {(call.shape.op, call.config.variant) for calls in ran[0].values() for call in calls}
    assert {(op, name) for op, names in FUSED.items() for name in names.split()} <= kinds
