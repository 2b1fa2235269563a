"""The contract of gemm_reduce_scatter, on emulated ranks: every variant is right, repeatable, and
the same to the bit whoever stores or loads; mutants of its protocol are refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from contract import Call, Case, Ran, differing, repeated, runs, scenario, scenarios, wrong_calls
from refusal import SLEEP, hangs, refuse, wrong, wrong_or_hangs

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.partials import flags, spans
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import SPACE

OP = "gemm_reduce_scatter"
LIBRARY = ("bsp", "bsp_chunked")
FUSED = tuple(variant for variant in SPACE.variants if variant not in LIBRARY)
TILED = tuple(variant for variant in FUSED if variant != "vendor_ce")
WORLDS = (
    3,
    *(pytest.param(world, marks=pytest.mark.thorough) for world in (1, 2, 4)),
)
SMALL = dict(block_m=16, block_n=32, block_k=64, group_m=1, num_warps=4)
TALL = SMALL | dict(block_m=32, group_m=8, tiles_per_flag=4)
OWN: dict[str, dict[str, int]] = {"relay": dict(comm_programs=8)}
"""Knobs that one variant has alone, as small as emulated ranks need them."""
SUMS = ("block_m", "block_n", "block_k", "split_k", "wire", "loads")
"""Knobs that decide how products and sums are rounded."""


def config(variant: str, **knobs: Any) -> Config:
    return Config(variant, **knobs, **OWN.get(variant, {}))


def cases(world: int) -> list[Case]:
    """One row for each owner, rows of all owners in one tile, tails of every size, several row
    tiles of an owner; both layouts of B; a split K; flags of several tiles; both wires; blocks by
    descriptor."""
    shapes = {
        GemmReduceScatter(world, 100, 33 * world, world): [SMALL, SMALL | dict(tiles_per_flag=4)],
        GemmReduceScatter(5 * world, 72, 130 * world, world, "fp16", "kn"): [
            SMALL | dict(split_k=2),
            SMALL | dict(split_k=2, wire="fp32"),
        ],
        GemmReduceScatter(20 * world, 100, 65 * world, world): [SMALL, TALL],
        GemmReduceScatter(40 * world, 136, 128 * world, world): [
            TALL,
            TALL | dict(loads="descriptor"),
        ],
        GemmReduceScatter(7 * world, 40, 64 * world, world, "fp16", "kn"): [
            SMALL | dict(loads="descriptor")
        ],
    }
    found = [
        (shape, config(variant, **knobs))
        for shape, several in shapes.items()
        for knobs in several
        for variant in TILED
        if {*knobs} <= {choice.name for choice in SPACE.choices(variant)}
    ]
    chunked = GemmReduceScatter(40 * world, 136, 128 * world, world)
    found += [
        (chunked, Config("push_ce", **SMALL, chunks=2, wire="fp32")),
        (chunked, Config("push_ce", **SMALL, chunks=4, loads="descriptor")),
        *((each, Config("vendor_ce", chunks=chunks)) for each in shapes for chunks in (1, 4)),
        (chunked, Config("bsp_chunked", chunks=4)),
    ]
    return [
        *((shape, Config("bsp", form="scatter")) for shape in shapes),
        *(case for case in found if SPACE.why_refused(*case, None) is None),
    ]


def sampled_cases(world: int) -> list[Case]:
    """Configs of the whole space for a tiny shape, three of each variant, the same on all ranks."""
    chooser, shape = random.Random(world), GemmReduceScatter(17 * world, 72, 66 * world, world)
    return [
        (shape, config)
        for variant in FUSED
        if (known := list(SPACE.configs(shape, None, (variant,))))  # one rank sends nothing
        for config in chooser.choices(known, k=3)
    ]


def small_cases(world: int) -> list[Case]:
    """Each next call has another shape, config or variant."""
    shapes = [GemmReduceScatter(m * world, 40, 33 * world, world) for m in (1, 3, 17)]
    found = [(shape, config(variant, **SMALL)) for shape in shapes for variant in TILED]
    found += [
        (shapes[-1], Config("push_ce", **SMALL, chunks=2)),
        *((shape, Config("vendor_ce", chunks=1)) for shape in shapes),
        (shapes[1], Config("bsp_chunked")),
    ]
    return [case for case in found if SPACE.why_refused(*case, None) is None]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    calls, small = repeated(cases(workspace.world), 3), small_cases(workspace.world)
    sampled = {"sampled": scenario(workspace, sampled_cases(workspace.world))}
    return sampled | scenarios(workspace, calls, small * 2, small, cycle=(0, 1, 0))


ran = runs(contract, WORLDS)


def test_every_call_is_right(ran: Ran) -> None:
    assert wrong_calls(ran) == []


def chunked(workspace: Workspace) -> dict[str, list[Call]]:
    """Chunks of one row and of several, which do not divide the rows of an owner."""
    shapes = (GemmReduceScatter(m * workspace.world, 40, 66, workspace.world) for m in (4, 7, 17))
    found = [(shape, Config("bsp_chunked", chunks=4)) for shape in shapes]
    return {"chunks": scenario(workspace, found)}


def test_chunks_are_right() -> None:
    ran = emulated.run(2, chunked)
    assert wrong_calls(ran) == [] and len(ran[0]["chunks"]) == 3


def test_every_kind_of_tile_ran(ran: Ran) -> None:
    called = [(call.shape, call.config) for call in ran[0]["back to back"]]
    fused = [
        (shape, SPACE.complete(config))
        for shape, config in called
        if config.variant in ("push", "pull")
    ]
    assert {config.variant for _, config in called} == {
        *(SPACE.variants if len(ran) > 1 else ("bsp", "push", "pull", "relay"))
    }
    assert {spans(*case, len(ran)) for case in fused} == (
        {True, False} if len(ran) > 1 else {False}
    )
    assert {flags(*case, len(ran)) > 1 for case in fused} == {True, False}
    for knob in ("split_k", "wire", "loads", "tiles_per_flag", "group_m"):
        assert len({config[knob] for _, config in fused}) == 2, knob


def test_results_repeat_to_the_bit(ran: Ran) -> None:
    assert differing(ran) == []


def test_whoever_stores_adds_in_the_same_order(ran: Ran) -> None:
    for found in ran:
        bits: dict[object, set[str]] = {}
        for call in found["back to back"]:
            if call.config.variant in TILED:
                knobs = {"split_k": 1} | dict(SPACE.complete(call.config).knobs)
                decided = tuple(knobs[name] for name in SUMS)
                bits.setdefault((call.shape, decided, call.seed), set()).add(call.bits)
        assert bits and all(len(each) == 1 for each in bits.values())


ADDS = "        total = add_slots(\n"
SLOW_READER = ("gemm_reduce", ADDS, f"        {SLEEP}(0.5 * bool(rank == 0))\n{ADDS}")
WAITS = "wait_all(flag(control, sources, group)[:, None], epoch, (sources < WORLD)[:, None])"
TO = "signal(peer(flag_here, control_bases, rank, "
COMPUTES = "        acc = partial_tile(\n"
LATE_OWNERS = f"        {SLEEP}(2.0 * bool((rank == 2) & (turn == 1) & (number == 0)))\n"
LATE_TILES = f"        {SLEEP}(0.3 * bool((rank == 2) & (number % exchange.TILES_PER_FLAG > 0)))\n"
MUTANTS = {
    "no wait": wrong(("gemm_reduce", WAITS, "pass")),
    "one source not waited for": wrong(
        ("gemm_reduce", WAITS, WAITS.replace("sources < WORLD", "sources < WORLD - 1"))
    ),
    "one source not added": wrong(
        ("gemm_reduce", "in tl.static_range(problem", "in tl.static_range(1, problem")
    ),
    "one generation": wrong(
        ("gemm_reduce", "payload + generation_of(epoch) * generation_bytes", "payload"),
        control=(SLOW_READER,),
    ),
    "flag before data": wrong(
        ("gemm_reduce", "if before + 1 == covered:", "if before == 0:"),
        control=(("gemm_reduce", COMPUTES, LATE_TILES + COMPUTES),),
        calls="several tiles",
    ),
    "counter not set back": hangs(
        ("gemm_reduce", "tl.store(word(arrivals + counter * 4), 0)", "pass")
    ),
    "tells the next rank alone": hangs(
        ("gemm_reduce", f"{TO}owner)", f"{TO}(rank + 1) % WORLD)"),
        calls="several tiles",
    ),
    "the other owner's flag": wrong(
        ("gemm_reduce", f"{TO}owner)", f"{TO}(owner + 1) % WORLD)"),
        control=(("gemm_reduce", COMPUTES, LATE_OWNERS + COMPUTES),),
        calls="several tiles",
    ),
    "spanning tile tells the next rank alone": hangs(
        ("gemm_reduce:announce", "range(1, WORLD + 1)", "range(1, 2)")
    ),
    "last call's flag": wrong(("symmetric:wait_all", "- epoch) & -3)", "- epoch + 2) & -7)")),
}
COPIES = "        for piece in tl.range(0, pieces, num_stages=1):\n"
TELLS = "signal(peer(flag(control, rank, group), control_bases, rank, owner), epoch, ARCH)"
LATE_COPY = f"        {SLEEP}(0.3 * bool(rank == 2))\n{COPIES}"
RELAYED = "gemm_reduce:forward_groups"
RELAY_MUTANTS = {
    "forwarded before it is sent": wrong(
        (RELAYED, TELLS, "pass"),
        (RELAYED, COPIES, f"        {TELLS}\n{COPIES}"),
        control=((RELAYED, COPIES, LATE_COPY),),
    ),
    "forwarded to the next rank alone": hangs(
        (RELAYED, "(rank + 1 + turn) % WORLD", "(rank + 1) % WORLD")
    ),
    "one part stays at home": wrong((RELAYED, "- number) * SPLIT_K * slabs", "- number) * slabs")),
    "the outbox of another owner": wrong(
        (RELAYED, "from_rows = (turn * SPLIT_K", "from_rows = ((1 - turn) * SPLIT_K")
    ),
    "one group for all": hangs(
        (RELAYED, "flag(control, rank, group), control", "flag(control, rank, 0), control")
    ),
}
BY_COPIES = "gemm_reduce_scatter.push_ce"
RUNS = "                run(a, b, slot + low * row_bytes, first + low, high - low)\n"
SENDS = "                exchange.send_one(parity, number, world - 1 - turn, slot)\n"
LATE_CHUNKS = f"                {SLEEP}(0.3 * bool(rank == 2 and number > 0))\n"
MOVES = "        self._runtime.copy(piece, target, shard + piece.source, stream)\n"
FLAGS = "        self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)\n"
COPY_MUTANTS = {
    "peers not waited for": wrong(
        (
            BY_COPIES,
            "wait_all(flag(control, sources, row // chunk_rows)[:, None], epoch, peers)",
            "pass",
        )
    ),
    "one peer not waited for": wrong_or_hangs(
        (BY_COPIES, "sources < WORLD) & (sources !=", "sources < WORLD - 1) & (sources !=")
    ),
    "sent before it is computed": wrong((BY_COPIES, RUNS + SENDS, SENDS + RUNS)),
    "the first chunk's flag for all": wrong(
        (BY_COPIES, "row // chunk_rows)[:, None]", "0)[:, None]"),
        control=((BY_COPIES, RUNS, LATE_CHUNKS + RUNS),),
    ),
    "flag before data": wrong(
        (
            "copy_engine",
            MOVES + FLAGS,
            f"{FLAGS}        {SLEEP}(0.3 * bool(self._workspace.rank == 2))\n{MOVES}",
        )
    ),
    "own rows in one generation": wrong((BY_COPIES, "own_slot + parity * apart", "own_slot")),
    "the slot of another owner": wrong((BY_COPIES, "world - 1 - turn, slot", "turn + 1, slot")),
}
BY_VENDOR = "gemm_reduce_scatter.vendor_ce"
PRODUCT = (
    "                torch.matmul(a[first + low : first + high], weights, out=part[low:high])\n"
)
SEND = "                exchange.send_one(parity, number, world - 1 - turn, part.data_ptr())\n"
OWN_ROWS = "        torch.matmul(a[rank * rows : (rank + 1) * rows], weights, out=c)\n"
VENDOR_MUTANTS = {
    "peers not waited for": wrong(
        (BY_VENDOR, "wait_all(flag(control, sources, chunk)[:, None], epoch, peers)", "pass")
    ),
    "one peer not waited for": wrong_or_hangs(
        (BY_VENDOR, "sources < WORLD) & (sources !=", "sources < WORLD - 1) & (sources !=")
    ),
    "sent before it is computed": wrong((BY_VENDOR, PRODUCT + SEND, SEND + PRODUCT)),
    "the first chunk's flag for all": wrong(
        (BY_VENDOR, "flag(control, sources, chunk)", "flag(control, sources, 0)"),
        control=((BY_VENDOR, PRODUCT, LATE_CHUNKS + PRODUCT),),
    ),
    "the slot of another owner": wrong((BY_VENDOR, "world - 1 - turn, part", "turn + 1, part")),
    "the slot of another source": wrong(
        (BY_VENDOR, "Piece(low * row_bytes, (rank * rows + low)", "Piece(low * row_bytes, (low)")
    ),
    "summed before it is computed": wrong(
        (
            BY_VENDOR,
            f"{OWN_ROWS}        exchange.join()\n        add_up(c)\n",
            f"        exchange.join()\n        add_up(c)\n{OWN_ROWS}",
        )
    ),
    "one source missing": wrong(
        ("reduce:sum_with_peers", "tl.static_range(WORLD)", "tl.static_range(WORLD - 1)")
    ),
}
MUTANTS_OF = {
    "push": MUTANTS,
    "pull": MUTANTS,
    "relay": RELAY_MUTANTS,
    "push_ce": COPY_MUTANTS,
    "vendor_ce": VENDOR_MUTANTS,
}
"""Relay has those of its own; the ones of what it shares are planted in the others."""


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """Rows of all owners in one tile, where the variant allows it, with a split K; and several
    tiles of each owner."""
    several = GemmReduceScatter(20 * world, 72, 130 * world, world)
    if variant in ("push_ce", "vendor_ce"):
        tile = SMALL if variant == "push_ce" else {}
        return {"small": [(several, Config(variant, **tile, chunks=2))] * 3}
    small = several if variant == "relay" else GemmReduceScatter(3 * world, 40, 130 * world, world)
    return {
        "small": [(small, config(variant, **SMALL, split_k=2))] * 2,
        "several tiles": [(several, config(variant, **SMALL, tiles_per_flag=4))] * 2,
    }


@pytest.mark.thorough
@pytest.mark.parametrize("variant", MUTANTS_OF)
def test_mutants_are_refused(tmp_path: Path, variant: str) -> None:
    refuse(tmp_path, {variant: MUTANTS_OF[variant]}, calls_of_a_trial)


def test_another_order_of_sums_differs(tmp_path: Path) -> None:
    """Sums that start with the own rank are as right, and differ from the absolute order."""
    found = emulated.run(3, bits_of_both_orders, tmp_path, timeout_s=120)
    assert any(usual != rotated for usual, rotated in found)


def bits_of_both_orders(workspace: Workspace, folder: Path) -> tuple[str, str]:
    from mutant import in_place

    change = (
        "gemm_reduce",
        "base, first_slot = inbox, source * tile.SPLIT_K",
        "base, first_slot = inbox, (source + rank) % problem.WORLD * tile.SPLIT_K",
    )
    case = (
        GemmReduceScatter(480, 264, 66, workspace.world, "fp16"),
        Config("push", **SMALL | dict(block_m=64, block_n=64), wire="fp32"),
    )
    (usual,) = scenario(workspace, [case])
    workspace.plans.clear()
    with in_place(folder, "push", (change,), OP):
        (rotated,) = scenario(workspace, [case])
    assert max(usual.error, rotated.error) < 1
    return usual.bits, rotated.bits
