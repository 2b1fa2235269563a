"""The contract of merge_attention, on emulated ranks: every variant is right, repeatable and keeps
its protocol; see tests/contract.py.

Then mutants of each variant's mechanisms must be refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from contract import Call, Case, Ran, differing, repeated, runs, scenarios, wrong_calls
from mutant import Change
from refusal import HOLD, SLEEP, Mutant, hangs, refuse, wrong

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.merge_attention import MergeAttention
from tftune.kernels.merge_attention.space import SPACE

WORLDS = (3, *(pytest.param(world, marks=pytest.mark.thorough) for world in (1, 2, 4)))
FUSED = tuple(variant for variant in SPACE.variants if variant != "bsp")
CALLS = 3
"""Calls of each case, with other inputs each, ranks without tokens among them."""


def configured(variant: str, rows: int = 2) -> Config:
    return Config("bsp") if variant == "bsp" else Config(variant, rows_per_piece=rows, programs=8)


def cases(world: int) -> list[Case]:
    """Every variant on both outputs, both bases and both dtypes; heads and sequences that are no
    powers of two, last pieces that are not full, and more pieces than programs."""
    shapes = {
        MergeAttention(3, 3 * world, 64, world): 2,
        MergeAttention(5, 2 * world, 64, world, "fp16", base="2"): 4,
        MergeAttention(3, 5, 64, world, "bf16", "all"): 4,
        MergeAttention(4, world, 128, world, "fp16"): 1,
        MergeAttention(1, 3, 256, world, "bf16", "all", "2"): 1,
        MergeAttention(3, 2 * world, 512, world, "bf16"): 2,
    }
    return [
        (shape, configured(variant, rows))
        for shape, rows in shapes.items()
        for variant in SPACE.variants
    ]


def alternating(world: int) -> list[Case]:
    """Without the library; each next call has another shape, config or variant."""
    shapes = MergeAttention(3, 2 * world, 64, world), MergeAttention(2, 3, 64, world, "fp16", "all")
    return [
        (shape, configured(variant, 1 + number))
        for variant in FUSED
        for number, shape in enumerate(shapes)
    ]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    turns = alternating(workspace.world) * 2
    return scenarios(workspace, repeated(cases(workspace.world), CALLS), turns, turns[::2])


ran = runs(contract, WORLDS)


def test_every_call_is_right(ran: Ran) -> None:
    assert wrong_calls(ran) == []


def test_every_variant_ran(ran: Ran) -> None:
    kinds = {(call.config.variant, call.shape.output) for call in ran[0]["back to back"]}
    assert kinds == {(variant, output) for variant in SPACE.variants for output in ("heads", "all")}
    assert {call.seed for call in ran[0]["back to back"]} == {0, 1, 2}


def test_results_repeat_to_the_bit(ran: Ran) -> None:
    """On each rank; and what every rank gets is the same on every rank."""
    assert differing(ran) == []
    for calls in zip(*(found["back to back"] for found in ran), strict=True):
        assert calls[0].shape.output == "heads" or len({call.bits for call in calls}) == 1


RANK = "__import__('torch').distributed.get_rank()"
LEFT = "finish(control, epoch)  # nothing below reads what it sets\n"
GENERATION = "generation_of(epoch) *"
WAIT = "wait_all(flag(control, sources, piece)[:, None], epoch, (sources < WORLD)[:, None])"
SIGNAL = "signal(peer(flag(control, rank, {}), control_bases, rank, to), epoch, ARCH)"
OTHER = "    inbox += (1 - 2 * generation_of(epoch)) * {}\n"


def mutants_of_one_shot() -> dict[str, Mutant]:
    file = "merge_attention.one_shot"
    signal, last = SIGNAL.format("piece"), "bool(number % WORLD == 1)"
    message = "message = peer(own_message, payload_bases, rank, to)"
    slow_reader: Change = (file, WAIT, f"{WAIT}; {HOLD.format(2)}")
    return {
        "no wait": wrong((file, WAIT, "pass")),
        "flag before data": wrong(
            (file, signal, "pass"),
            (file, message, f"{message}; {signal}; {last} and {HOLD.format(2)}"),
            calls="together",
        ),
        "stale generation": wrong((file, LEFT, LEFT + OTHER.format("generation_bytes"))),
        "one generation": wrong(
            (file, GENERATION, "0 *"), control=(slow_reader,), calls="together"
        ),
        "signals the flag of the next piece": hangs(
            (file, signal, SIGNAL.format("piece + 1")), calls="together"
        ),
        "one source missing": wrong(
            ("merge:merge_piece", "(source < cut.WORLD)", "(source < cut.WORLD - 1)")
        ),
        "another rank's heads": wrong(
            ("merge:offsets", "else to * OWN + row % OWN", "else row % OWN")
        ),
        "NaN of an empty part is read": wrong(
            ("merge:weighted_sum", "tl.where(known[:, None], o, 0.0)", "o"),
            ("merge:merge_piece", "mask=known[:, None], other=0.0", "mask=there[:, None]"),
        ),
        "infinite weight of an empty part": wrong(("merge:weights", ' & (lse < float("inf"))', "")),
        "base e for base 2": wrong(
            ("merge:weights", "lse * cut.SCALE", "lse * 1.4426950408889634"), calls="base 2"
        ),
        "largest weight overflows": wrong(
            ("merge:weights", 'tl.where(top == float("-inf"), 0.0, top)[None, :]', "0.0")
        ),
    }


def mutants_of_one_shot_ll() -> dict[str, Mutant]:
    file = "merge_attention.one_shot_ll"
    receive = "pairs, lse, there = receive("
    slow_reader: Change = (file, receive, f"{SLEEP}(1.0 * bool(rank == 2)); {receive}")
    late = f"{SLEEP}(2.0 * bool(to == 2) * ({RANK} == 1))"
    return {
        "no wait": wrong(("ll_protocol", "!= epoch), tl.int32)", "!= words >> 32), tl.int32)")),
        "one generation": hangs(
            (file, GENERATION, "0 *"), control=(slow_reader,), calls="together"
        ),
        "stale generation": hangs(
            (file, LEFT, LEFT + OTHER.format("MAILBOX_BYTES")), calls="together"
        ),
        "log-sum-exps are not waited for": wrong(
            (file, " | missing(lse_words, wanted, epoch)", ""),
            (file, "    store(lse_at", f"    {late}; store(lse_at"),
            calls="together",
        ),
        "halves swapped": wrong(
            ("pairs:paired", "rounded(low,", "rounded(high,"), calls="together"
        ),
    }


MUTANTS = {"one_shot": mutants_of_one_shot(), "one_shot_ll": mutants_of_one_shot_ll()}


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """Three calls of a small shape, the last rank late; or two all together, of one piece, so that
    one program sends all."""
    small = MergeAttention(3, 2 * world, 64, world)
    one = MergeAttention(1, world, 64, world)
    other = MergeAttention(3, 2 * world, 64, world, base="2")
    return {
        "small": [(small, configured(variant))] * 3,
        "together": [(one, configured(variant, 1))] * 2,
        "base 2": [(other, configured(variant))] * 3,
    }


@pytest.mark.thorough
def test_mutants_are_refused(tmp_path: Path) -> None:
    refuse(tmp_path, MUTANTS, calls_of_a_trial, ("together",))
