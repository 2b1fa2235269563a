"""The contract of gemm_all_reduce, on emulated ranks: every variant is right, repeatable, and the
same to the bit on every rank; mutants of its two phases are refused. What it shares with
gemm_reduce_scatter has its mutants there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contract import Call, Case, Ran, differing, repeated, runs, scenarios, wrong_calls
from refusal import SLEEP, hangs, refuse, wrong, wrong_or_hangs

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce.exchange import KERNELS
from tftune.kernels.gemm_all_reduce.space import SPACE

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
    copied = [Config("push_ce", chunks=1, last=last) for last in ("copies", "stores")]
    configs = [*(Config(each, **SMALL) for each in tiled), *copied, *behind]
    cases = [(shape, config) for shape in shapes for config in configs]
    return [case for case in cases if SPACE.why_refused(*case, None) is None]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    calls, small = repeated(cases(workspace.world), 3), small_cases(workspace.world)
    return scenarios(workspace, calls, small * 2, small, cycle=(0, 1, 0))


ran = runs(contract, WORLDS)


def test_every_call_is_right(ran: Ran) -> None:
    assert wrong_calls(ran) == []
    called = {call.config.variant for call in ran[0]["back to back"]}
    alone = {"push_ce", "vendor"} if len(ran) == 1 else set()  # they send nothing to nobody
    assert called == {*SPACE.variants} - alone


def test_results_repeat_to_the_bit(ran: Ran) -> None:
    assert differing(ran) == []


def test_all_ranks_have_the_same_bits(ran: Ran) -> None:
    for name in ran[0]:
        for calls in zip(*(found[name] for found in ran), strict=True):
            if calls[0].config.variant != "bsp":  # a library may add in another order on each rank
                assert len({call.bits for call in calls}) == 1, calls[0]


def test_words_and_flags_bring_the_same_sums(ran: Ran) -> None:
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
TOTAL = "        total = add_slots("
LATE_OWNER = (
    ("gemm_reduce", TOTAL, f"        {SLEEP}(0.3 * bool((rank == 2) & (piece == 0)))\n{TOTAL}"),
)
WORDS = "gemm_all_reduce.one_shot_ll"
LL_MUTANTS = {
    "no wait": wrong(("ll_protocol", "!= epoch), tl.int32)", "!= words >> 32), tl.int32)")),
    "stale generation": hangs(
        (
            WORDS,
            "    slices = tl.cdiv(",
            "    inbox += (1 - 2 * generation_of(epoch)) * MAILBOX_BYTES\n    slices = tl.cdiv(",
        )
    ),
    "one source missing": wrong(
        ("reduce:in_order", "tl.static_range(1, WORLD)", "tl.static_range(1, WORLD - 1)")
    ),
    "one part stays at home": hangs((f"{WORDS}:send_words", "tiles_n * tile.SPLIT_K", "tiles_n")),
    "a rank hears nothing of itself": hangs(
        (WORDS, "tl.static_range(1, WORLD + 1)", "tl.static_range(1, WORLD)")
    ),
    "halves swapped": wrong(("pairs:paired", "rounded(low,", "rounded(high,")),
    "the slot of another part": hangs(
        (WORDS, "(rank * tile.SPLIT_K + part) * M", "(rank * tile.SPLIT_K) * M")
    ),
}
MUTANTS = {
    "sums not waited for": wrong(("gemm_reduce", SECOND_WAIT, "pass"), control=LATE_OWNER),
    "one flag bank for both phases": wrong_or_hangs(
        ("gemm_reduce", "flag(control, rank, SECOND_BANK + group)", "flag(control, rank, group)"),
        ("gemm_reduce", SECOND_WAIT, SECOND_WAIT.replace("SECOND_BANK + ", "")),
        control=LATE_OWNER,
    ),
    "a peer gets no sums": wrong(
        ("gemm_reduce", "for other in range(1, WORLD):", "for other in range(2, WORLD):")
    ),
    "sums over the slots of another call": wrong(
        ("gemm_reduce", "payload_bases, inbox + slots_bytes,", "payload_bases, inbox,")
    ),
    "parts not waited for": wrong(("gemm_reduce", FIRST_WAIT, "pass")),
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
LATE_PRODUCTS = f"                {SLEEP}(0.3 * bool(rank == 2 and number > 0))\n"
LATE_SUM = f"            {SLEEP}(0.3 * bool(rank == 2 and number > 0))\n{ADD}"
LATE_SUMS = ((BY_COPIES, ADD, LATE_SUM),)
SHARE = f"{BY_COPIES}:share"
ADDS = "    for block in tl.range(number, tl.cdiv(count, BLOCK), step, num_stages=1):\n"
TELLS = "    signal_peers(control, control_bases, 2 * CHUNKS + number, epoch, rank, WORLD, ARCH)\n"
NAMESAKE = "wait(flag(control, source, 2 * CHUNKS + number), epoch)"
LATE_STORES = (
    (BY_COPIES, "SHARING = 8192, 16, 128", "SHARING = 512, 16, 2"),  # two programs, three blocks
    (SHARE, ADDS, f"    {SLEEP}(0.3 * bool((rank == 2) & (number == 1)))\n{ADDS}"),
)
COPY_MUTANTS = {
    "products not waited for": wrong(
        (BY_COPIES, "wait_all(flag(control, sources, slot)[:, None], epoch, peers)", "pass")
    ),
    "one peer's products not waited for": wrong_or_hangs(
        (
            f"{BY_COPIES}:add",
            "(sources < WORLD) & (sources != rank)",
            "(sources < 1) & (sources != rank)",
        )
    ),
    "the last chunk's products not waited for": wrong(
        (BY_COPIES, "wait_all(flag(control, sources, CHUNKS - 1)[:, None], epoch, peers)", "pass"),
        control=((BY_COPIES, PRODUCT, LATE_PRODUCTS + PRODUCT),),
    ),
    "the first chunk's flag for all products": wrong(
        (BY_COPIES, "wait_all(flag(control, sources, slot)", "wait_all(flag(control, sources, 0)"),
        control=((BY_COPIES, PRODUCT, LATE_PRODUCTS + PRODUCT),),
    ),
    "a namesake not waited for": wrong(
        (SHARE, NAMESAKE, "pass"), control=LATE_STORES, calls="two programs"
    ),
    "one program's flag for all": wrong(
        (SHARE, NAMESAKE, NAMESAKE.replace("number", "0")),
        control=LATE_STORES,
        calls="two programs",
    ),
    "told before it is stored": wrong(
        (SHARE, TELLS, ""),
        (SHARE, ADDS, TELLS + ADDS),
        control=LATE_STORES,
        calls="two programs",
    ),
    "a program stores its first block alone": wrong(
        (SHARE, ADDS, ADDS.replace("step", "1 << 20")),
        control=LATE_STORES[:1],
        calls="two programs",
    ),
    "a peer gets no sums of the last chunk": wrong(
        (SHARE, "tl.static_range(1, WORLD)", "tl.static_range(2, WORLD)")
    ),
    "sent before it is computed": wrong((BY_COPIES, PRODUCT + SEND, SEND + PRODUCT)),
    "sent before it is added": wrong((BY_COPIES, ADD + SUMS, SUMS + ADD)),
    "the slot of another owner": wrong((BY_COPIES, "world - 1 - turn, part", "turn + 1, part")),
    "a peer gets no sums": hangs(
        (BY_COPIES, "for distance in range(1, world):", "for distance in range(2, world):")
    ),
    "sums over the slots of another call": wrong(
        (BY_COPIES, "Piece(low * row_bytes, world * size + low", "Piece(low * row_bytes, low")
    ),
}
SUM_FLAG = "flag(control, source, CHUNKS + chunk)"
for kernel, calls in (("collect", "copies"), ("share", "small")):
    for name, text, instead in (
        ("sums not waited for", f"wait({SUM_FLAG}, epoch)", "pass"),
        ("one flag bank for both phases", SUM_FLAG, "flag(control, source, chunk)"),
        ("the first chunk's flag for all sums", SUM_FLAG, "flag(control, source, CHUNKS)"),
    ):
        COPY_MUTANTS[f"{name}, {kernel}"] = wrong(
            (f"{BY_COPIES}:{kernel}", text, instead), control=LATE_SUMS, calls=calls
        )
BEHIND = "gemm_all_reduce.vendor"
GEMM = '        torch.matmul(a, b.t() if shape.b_layout == "nk" else b, out=product)\n'
SUM = "        add_up(product, c)\n"
VENDOR_MUTANTS = {
    "summed before it is computed": wrong((BEHIND, GEMM + SUM, SUM + GEMM)),
    "the sum stays where the product is": wrong(
        (BEHIND, "add_up(product, c)", "add_up(product, product)")
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
    "push_ce": (33, {"chunks": 4, "last": "stores"}),
    "vendor": (33, {"exchange": "two_shot", "programs": 8}),
}
"""Columns of A on one rank, and knobs: little is computed where a late rank must be late."""


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    inner, knobs = OWN[variant]
    shape = GemmAllReduce(20 * world, 72, inner * world, world)
    calls = {"small": [(shape, Config(variant, **knobs))] * 3}
    if variant == "push_ce":
        calls["copies"] = [(shape, Config(variant, chunks=2, last="copies"))] * 3
        uneven = GemmAllReduce(20 * world - 1, 72, inner * world, world)
        calls["two programs"] = [(uneven, Config(variant, chunks=1, last="stores"))] * 3
    return calls


@pytest.mark.thorough
@pytest.mark.parametrize("variant", MUTANTS_OF)
def test_mutants_are_refused(tmp_path: Path, variant: str) -> None:
    refuse(tmp_path, {variant: MUTANTS_OF[variant]}, calls_of_a_trial, late_s=0.8)
