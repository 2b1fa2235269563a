"""The contract of operands that lie in the symmetric heap, on emulated ranks: whoever reads a
peer's operand reads it after it was written and before it is written again.

`contract.scenario` fills each such operand with NaN as soon as its call has ended on its own rank.
Calls whose operands lie elsewhere come between. Then mutants of the protocol must be refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contract import (
    WRAPS,
    Call,
    Case,
    Ran,
    differing,
    repeated,
    runs,
    scenario,
    with_known,
    wrong_calls,
)
from mutant import Change
from refusal import SLEEP, Mutant, hangs, refuse, wrong

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.all_reduce.space import SPACE as SUMS
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import HEAP, LOCAL
from tftune.kernels.core.space import Config

WORLDS = (
    pytest.param((3, 1), id="3"),
    *(
        pytest.param((world, 3), id=f"{world}, all calls", marks=pytest.mark.thorough)
        for world in (1, 2, 3, 4)
    ),
)
"""World sizes, and rounds of each scenario."""
OPERAND_BYTES = 1 << 20
SMALL = dict(
    block_m=16, block_n=32, num_warps=4, comm_programs=8, rows_per_flag=16, k_per_flag=256,
    group_m=1,
)  # fmt: skip


def gemm(variant: str, **knobs: Any) -> Config:
    return Config(variant, **SMALL | knobs)


def sums(variant: str, **knobs: int) -> Config:
    return with_known(SUMS, variant, programs=8, num_warps=1, **knobs)


def gemm_cases(world: int, operands: str) -> list[Case]:
    """Columns that no block divides; several chunks of columns for each source, split over programs
    and not; rows that several sources own; and tiles that are claimed."""
    odd = AllGatherGemm(7, 40, 33 * world, world, operands=operands)
    deep = AllGatherGemm(7, 40, 320 * world, world, b_layout="nk", operands=operands)
    tokens = AllGatherGemm(
        7 * world, 40, 320, world, "bf16", "m", "nk", operands=operands
    )  # fmt: skip
    blocks = AllGatherGemm(16 * world, 40, 64, world, shard="m", operands=operands)
    return [
        *((odd, gemm(variant)) for variant in ("pull", "staged", "push")),
        *((deep, gemm(variant, split_k=2, block_k=64)) for variant in ("pull", "staged")),
        (tokens, gemm("pull", block_k=64)),
        (tokens, gemm("pull", split_k=2, block_k=64)),
        (tokens, gemm("staged")),
        (blocks, gemm("staged", loads="descriptor", block_k=64)),
    ]


def sum_cases(world: int, operands: str) -> list[Case]:
    """Parts of rows and groups of them, the last of which is not full; with a norm and without."""
    plain = AllReduce(5, 48, world, "bf16", operands=operands)
    normed = AllReduce(9, 16, world, "fp16", "rms", operands)
    return [
        (shape, sums(variant, parts=parts, rows_per_flag=2))
        for shape, parts in ((plain, 2), (normed, 1))
        for variant in ("one_shot", "two_shot", "one_shot_ll", "one_shot_lamport")
    ] + [(normed, sums("two_shot", rows_per_flag=1, roles=2))]


def cases(world: int) -> list[Case]:
    """Operands on the heap, and those of the same sizes elsewhere, by turns."""
    pairs = zip(
        (*gemm_cases(world, HEAP), *sum_cases(world, HEAP)),
        (*gemm_cases(world, LOCAL), *sum_cases(world, LOCAL)),
        strict=True,
    )
    return [case for pair in pairs for case in pair]


def contract(workspace: Workspace, rounds: int) -> dict[str, list[Call]]:
    """Every scenario of this world, on one workspace."""
    world, last = workspace.world, workspace.rank == workspace.world - 1
    every = cases(world)
    heap = [case for case in every if case[0].on_heap]
    found = {
        "by turns, one rank late": scenario(workspace, every * rounds, pause_s=0.03 * last),
        "back to back": scenario(workspace, repeated(heap, rounds)),
        "the epoch wraps": scenario(workspace, heap[::3], last_epoch=WRAPS),
    }
    if rounds > 1:
        turns = every * rounds
        found["by turns, one rank ahead"] = scenario(workspace, turns, pause_s=0.03 * (not last))
    return found


ran = runs(contract, WORLDS, operand_bytes=OPERAND_BYTES)


def test_every_case_can_run() -> None:
    for world in (1, 2, 3, 4):
        for shape, config in cases(world):
            assert operation(shape.op).space.why_refused(shape, config, None) is None


def test_every_call_is_right(ran: Ran) -> None:
    assert wrong_calls(ran) == []
    assert {call.shape.on_heap for call in ran[0]["by turns, one rank late"]} == {True, False}


def test_results_repeat_and_do_not_depend_on_where_operands_lie(ran: Ran) -> None:
    """A sum, in the order of ranks, repeats to the bit. A GEMM's chunks may be cut otherwise."""
    assert differing(ran) == []
    for found in ran:
        bits = dict[Any, set[str]]()
        for call in (call for calls in found.values() for call in calls):
            if isinstance(call.shape, AllReduce):
                shape = call.shape
                bits.setdefault((shape.m, shape.norm, call.seed), set()).add(call.bits)
        assert bits and all(len(found) == 1 for found in bits.values())


LATE = f"{SLEEP}(0.8 * bool((rank == 2) & (source == 0)))"
"""Rank 2 reads the operand of rank 0 long after the others have computed all of theirs."""
SLOW: dict[str, Change] = {
    "pull": (
        "gemm",
        "shards = peer(own, payload_bases, rank, owners)",
        f"shards = peer(own, payload_bases, rank, owners); {LATE}",
    ),
    "staged": (
        "all_gather_gemm.staged",
        "                shard = peer(",
        f"                {LATE}; shard = peer(",
    ),
    "one_shot": (
        "all_reduce.one_shot:summed",
        "            x_at = elements(peer(",
        f"            {LATE}; x_at = elements(peer(",
    ),
}
"""In those variants whose kernel must wait until its operand was read."""
NOT_AWAITED: dict[str, Change] = {
    "pull": (
        "gemm",
        "        if not at_home:\n            limit",
        "        if source < 0:\n            limit",
    ),
    "staged": (
        "all_gather_gemm.staged",
        "wait(flag(control, source, OFFERED if chunks.IN_PLACE else chunk), epoch)",
        "pass",
    ),
    "one_shot": (
        "all_reduce.one_shot",
        "wait_all(flag(control, sources, OFFERED)[:, None], epoch, (sources < WORLD)[:, None])",
        "pass",
    ),
    "two_shot": (
        "all_reduce.two_shot",
        "wait_all(flag(control, ranks, slot)[:, None], epoch, (ranks < cut.WORLD)[:, None])",
        "pass",
    ),
}
"""That an operand may be read, in every variant that reads it in place."""  # fmt: skip
READ_AWAITED = "        for step in range(1, WORLD):\n            wait(flag("


def mutants(variant: str) -> dict[str, Mutant]:
    """Mutants of every mechanism that the variant has."""
    old = ("in_place", "control_bases, OFFERED, epoch,", "control_bases, OFFERED, epoch - 2,")
    found = {
        "reads what is not offered": wrong(NOT_AWAITED[variant]),
        "offers in the last epoch's name": hangs(old),
    }
    if slow := SLOW.get(variant):
        unread: Change = ("in_place", READ_AWAITED, READ_AWAITED.replace("(1, WORLD)", "(1, 1)"))
        found["ends before it was read"] = wrong(unread, control=(slow,))
    if variant == "staged":
        early: Change = ("in_place", "if before == readers - 1:", "if before == 0:")
        found["the first reader speaks for all"] = wrong(early, control=(slow,))
    elif slow:
        silent: Change = ("in_place", "if ALL_READ:", "if WORLD < 0:")
        found["nobody says that it has read"] = hangs(silent)
    return found


MUTANTS = {variant: mutants(variant) for variant in NOT_AWAITED}


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    if variant in ("pull", "staged"):
        case: Case = AllGatherGemm(7, 40, 264 * world, world, operands=HEAP), gemm(variant)
    else:
        shape = AllReduce(4, 16, world, "fp16", operands=HEAP)
        case = shape, sums(variant, rows_per_flag=1)
    return {"small": [case] * 2}


HARDEST = {"pull": {name: MUTANTS["pull"][name] for name in ("ends before it was read",)}}


@pytest.mark.parametrize(
    "chosen",
    [HARDEST, pytest.param(MUTANTS, marks=pytest.mark.thorough)],
    ids=["the hardest", "all"],
)
def test_mutants_are_refused(tmp_path: Path, chosen: dict[str, dict[str, Mutant]]) -> None:
    refuse(tmp_path, chosen, calls_of_a_trial, late_s=0.5, operand_bytes=OPERAND_BYTES)
