"""The contract of gemm_all_reduce, on emulated ranks: every variant is right, repeatable, and the
same to the bit on every rank; mutants of its two phases are refused. What it shares with
gemm_reduce_scatter has its mutants there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contract import WRAPS, Call, Case, Mutant, differing, judge, misjudged, scenario, wrong_calls

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce.exchange import KERNELS
from tftune.kernels.gemm_all_reduce.space import SPACE

OP = "gemm_all_reduce"
FUSED = tuple(variant for variant in SPACE.variants if variant != "bsp")
WORLDS = (3, *(pytest.param(world, marks=pytest.mark.thorough) for world in (1, 2, 4)))
SMALL = dict(block_m=16, block_n=32, block_k=64, group_m=1, num_warps=4)


def cases(world: int) -> list[Case]:
    """One token; rows that the world does not divide; rows of all owners in one tile, and several
    tiles of each; a split K; both layouts, wires and loads."""
    shapes = {
        GemmAllReduce(1, 40, 33 * world, world): [SMALL, dict(exchange="one_shot_ll")],
        GemmAllReduce(7, 72, 130 * world, world, "fp16", "kn"): [
            SMALL | dict(split_k=2, wire="fp32"),
            dict(exchange="two_shot", programs=8),
        ],
        GemmAllReduce(4 * world, 100, 65 * world, world): [SMALL | dict(tiles_per_flag=4)],
        GemmAllReduce(37, 104, 130 * world, world): [
            SMALL | dict(split_k=2),
            dict(chunks=2),
            dict(exchange="one_shot", rows_per_flag=4, programs=16),
        ],
        GemmAllReduce(20 * world, 72, 128 * world, world): [
            SMALL | dict(group_m=8),
            SMALL | dict(tiles_per_flag=4, loads="descriptor"),
            dict(chunks=4),
        ],
    }
    fused = [
        (shape, Config(variant, **knobs))
        for shape, several in shapes.items()
        for knobs in several
        for variant in FUSED
        if {*knobs} <= {choice.name for choice in SPACE.choices(variant)}
        and ("chunks" in knobs) == (variant == "push_ce")
        and ("exchange" in knobs) == (variant == "vendor")
    ]
    library = [(shape, Config("bsp", form="library")) for shape in shapes]
    return library + [case for case in fused if SPACE.why_refused(*case, None) is None]


def small_cases(world: int) -> list[Case]:
    """Each next call has another shape or variant."""
    shapes = [GemmAllReduce(m * world, 40, 33 * world, world) for m in (1, 9)]
    tiled = [variant for variant in FUSED if variant not in ("push_ce", "vendor")]
    behind = [Config("vendor", exchange=kernel, programs=8) for kernel in KERNELS]
    configs = [*(Config(each, **SMALL) for each in tiled), Config("push_ce", chunks=1), *behind]
    cases = [(shape, config) for shape in shapes for config in configs]
    return [case for case in cases if SPACE.why_refused(*case, None) is None]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    world, last = workspace.world, workspace.rank == workspace.world - 1
    thrice = [case for case in cases(world) for _ in range(3)]
    return {
        "back to back": scenario(workspace, thrice, cycle=(0, 1, 0)),
        "one rank late": scenario(workspace, small_cases(world) * 2, pause_s=0.05 * last),
        "one rank ahead": scenario(workspace, small_cases(world) * 2, pause_s=0.05 * (not last)),
        "the epoch wraps": scenario(workspace, small_cases(world), last_epoch=WRAPS),
    }


@pytest.fixture(scope="module", params=WORLDS)
def ran(request: pytest.FixtureRequest) -> list[dict[str, list[Call]]]:
    return emulated.run(request.param, contract, timeout_s=600)


def test_every_call_is_right(ran: list[dict[str, list[Call]]]) -> None:
    assert wrong_calls(ran) == []
    called = {call.config.variant for call in ran[0]["back to back"]}
    alone = {"push_ce", "vendor"} if len(ran) == 1 else set()  # they send nothing to nobody
    assert called == {*SPACE.variants} - alone


def test_results_repeat_to_the_bit(ran: list[dict[str, list[Call]]]) -> None:
    for found in ran:
        assert differing(found) == []


def test_all_ranks_have_the_same_bits(ran: list[dict[str, list[Call]]]) -> None:
    for name in ran[0]:
        for calls in zip(*(found[name] for found in ran), strict=True):
            if calls[0].config.variant != "bsp":  # a library may add in another order on each rank
                assert len({call.bits for call in calls}) == 1, calls[0]


def test_words_and_flags_bring_the_same_sums(ran: list[dict[str, list[Call]]]) -> None:
    for found in ran:
        bits: dict[object, set[str]] = {}
        for call in found["back to back"]:
            if call.config.variant in ("one_shot", "one_shot_ll"):
                knobs = {"split_k": 1} | dict(call.config.knobs)
                decided = tuple(knobs[name] for name in ("block_k", "split_k"))
                bits.setdefault((call.shape, decided, call.seed), set()).add(call.bits)
        assert bits and all(len(each) == 1 for each in bits.values())


FIRST_WAIT = "wait_all(flag(control, sources, group)[:, None], epoch, (sources < WORLD)[:, None])"
SECOND_WAIT = "wait(flag(control, owner, SECOND_BANK + number // exchange.TILES_PER_FLAG), epoch)"
PUT = "                store_rows(total, base, own_rows, cols, there, N, DTYPE, ARCH)\n"
WORDS = "gemm_all_reduce.one_shot_ll"
LL_MUTANTS = {
    "no wait": Mutant(
        (("ll_protocol", "!= epoch), tl.int32)", "!= words >> 32), tl.int32)"),), "wrong"
    ),
    "stale generation": Mutant(
        (
            (
                WORDS,
                "    slices = tl.cdiv(",
                "    inbox += (1 - 2 * generation_of(epoch)) * MAILBOX_BYTES\n"
                "    slices = tl.cdiv(",
            ),
        ),
        "end",
    ),
    "one source missing": Mutant(
        (("reduce:in_order", "tl.static_range(1, WORLD)", "tl.static_range(1, WORLD - 1)"),),
        "wrong",
    ),
    "one part stays at home": Mutant(
        ((f"{WORDS}:send_words", "tiles_n * tile.SPLIT_K", "tiles_n"),), "end"
    ),
    "a rank hears nothing of itself": Mutant(
        ((WORDS, "tl.static_range(1, WORLD + 1)", "tl.static_range(1, WORLD)"),), "end"
    ),
    "halves swapped": Mutant((("pairs:paired", "rounded(low,", "rounded(high,"),), "wrong"),
    "the slot of another part": Mutant(
        ((WORDS, "(rank * tile.SPLIT_K + part) * M", "(rank * tile.SPLIT_K) * M"),), "end"
    ),
}
MUTANTS = {
    "sums not waited for": Mutant((("gemm_reduce", SECOND_WAIT, "pass"),), "wrong"),
    "one flag bank for both phases": Mutant(
        (
            (
                "gemm_reduce",
                "flag(control, rank, SECOND_BANK + group)",
                "flag(control, rank, group)",
            ),
            ("gemm_reduce", SECOND_WAIT, SECOND_WAIT.replace("SECOND_BANK + ", "")),
        ),
        "wrong or end",
    ),
    "a peer gets no sums": Mutant(
        (("gemm_reduce", "for other in range(1, WORLD):", "for other in range(2, WORLD):"),),
        "wrong",
    ),
    "sums over the slots of another call": Mutant(
        (("gemm_reduce", "payload_bases, inbox + slots_bytes,", "payload_bases, inbox,"),),
        "wrong",
    ),
    "parts not waited for": Mutant((("gemm_reduce", FIRST_WAIT, "pass"),), "wrong"),
}


BY_COPIES = "gemm_all_reduce.push_ce"
PRODUCT = (
    "                torch.matmul(a[there], weights, "
    "out=part[low : low + there.stop - there.start])\n"
)
SEND = "                exchange.send_one(parity, number, world - 1 - turn, part.data_ptr())\n"
ADD = (
    "            add_up(c[low:high], (low - own) * row_bytes, "
    "(high - low) * shape.n // 8, number)\n"
)
SUMS = (
    "            for distance in range(1, world):\n"
    "                exchange.send_one(parity, len(products) + number, distance, c.data_ptr())\n"
)
SLEEP = "__import__('time').sleep"
LATE_PRODUCTS = f"                {SLEEP}(0.3 * bool(rank == 2 and number > 0))\n"
LATE_SUMS = f"            {SLEEP}(0.3 * bool(rank == 2 and number > 0))\n"
COPY_MUTANTS = {
    "products not waited for": Mutant(
        ((BY_COPIES, "wait_all(flag(control, sources, slot)[:, None], epoch, peers)", "pass"),),
        "wrong",
    ),
    "one peer's products not waited for": Mutant(
        (
            (
                BY_COPIES,
                "(sources < WORLD) & (sources != rank)",
                "(sources < 1) & (sources != rank)",
            ),
        ),
        "wrong or end",
    ),
    "sums not waited for": Mutant(
        ((BY_COPIES, "wait(flag(control, source, CHUNKS + chunk), epoch)", "pass"),), "wrong"
    ),
    "one flag bank for both phases": Mutant(
        ((BY_COPIES, "flag(control, source, CHUNKS + chunk)", "flag(control, source, chunk)"),),
        "wrong or end",
    ),
    "the first chunk's flag for all products": Mutant(
        (
            (BY_COPIES, "flag(control, sources, slot)", "flag(control, sources, 0)"),
            (BY_COPIES, PRODUCT, LATE_PRODUCTS + PRODUCT),
        ),
        "wrong",
        control=((BY_COPIES, PRODUCT, LATE_PRODUCTS + PRODUCT),),
    ),
    "the first chunk's flag for all sums": Mutant(
        (
            (BY_COPIES, "flag(control, source, CHUNKS + chunk)", "flag(control, source, CHUNKS)"),
            (BY_COPIES, ADD, LATE_SUMS + ADD),
        ),
        "wrong",
        control=((BY_COPIES, ADD, LATE_SUMS + ADD),),
    ),
    "sent before it is computed": Mutant(((BY_COPIES, PRODUCT + SEND, SEND + PRODUCT),), "wrong"),
    "sent before it is added": Mutant(((BY_COPIES, ADD + SUMS, SUMS + ADD),), "wrong"),
    "the slot of another owner": Mutant(
        ((BY_COPIES, "world - 1 - turn, part", "turn + 1, part"),), "wrong"
    ),
    "a peer gets no sums": Mutant(
        ((BY_COPIES, "for distance in range(1, world):", "for distance in range(2, world):"),),
        "end",
    ),
    "sums over the slots of another call": Mutant(
        ((BY_COPIES, "Piece(low * row_bytes, world * size + low", "Piece(low * row_bytes, low"),),
        "wrong",
    ),
}
BEHIND = "gemm_all_reduce.vendor"
GEMM = '        torch.matmul(a, b.t() if shape.b_layout == "nk" else b, out=product)\n'
SUM = "        add_up(product, c)\n"
VENDOR_MUTANTS = {
    "summed before it is computed": Mutant(((BEHIND, GEMM + SUM, SUM + GEMM),), "wrong"),
    "the sum stays where the product is": Mutant(
        ((BEHIND, "add_up(product, c)", "add_up(product, product)"),), "wrong"
    ),
}
"""The flags are all_reduce's, whose contract has their mutants."""
MUTANTS_OF = {
    "two_shot": MUTANTS,
    "one_shot_ll": LL_MUTANTS,
    "push_ce": COPY_MUTANTS,
    "vendor": VENDOR_MUTANTS,
}
OWN: dict[str, tuple[int, dict[str, Any]]] = {
    "two_shot": (33, SMALL | {"tiles_per_flag": 4}),
    "one_shot_ll": (130, SMALL | {"split_k": 2}),
    "push_ce": (33, {"chunks": 2}),
    "vendor": (33, {"exchange": "two_shot", "programs": 8}),
}
"""Columns of A on one rank, and knobs: little is computed where a late rank must be late."""


def judge_all(
    workspace: Workspace, folder: Path, variant: str, names: tuple[str, ...]
) -> dict[str, str]:
    (inner, knobs), world = OWN[variant], workspace.world
    shape = GemmAllReduce(20 * world, 72, inner * world, world)
    calls = {"small": [(shape, Config(variant, **knobs))] * 3}
    mutants = {name: MUTANTS_OF[variant][name] for name in names}
    return judge(workspace, folder, OP, variant, calls, mutants, 2_000_000, late_s=0.8)


@pytest.mark.parametrize(
    ("variant", "step"),
    [("two_shot", 2), *(pytest.param(name, 1, marks=pytest.mark.thorough) for name in MUTANTS_OF)],
)
def test_mutants_are_refused(tmp_path: Path, variant: str, step: int) -> None:
    """`make test` plants every second change of one variant, `make thorough` all of every one."""
    chosen = dict(list(MUTANTS_OF[variant].items())[::step])
    by_rank = emulated.run(3, judge_all, tmp_path, variant, tuple(chosen), timeout_s=600)
    assert misjudged(by_rank, chosen) == []
