"""The contract of gemm_reduce_scatter, on emulated ranks: every variant is right, repeatable, and
the same to the bit whoever stores or loads; mutants of its protocol are refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from contract import WRAPS, Call, Case, Mutant, differing, judge, misjudged, scenario, wrong_calls

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.partials import flags, spans
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import SPACE

OP = "gemm_reduce_scatter"
FUSED = tuple(variant for variant in SPACE.variants if variant != "bsp")
WORLDS = (
    3,
    *(pytest.param(world, marks=pytest.mark.thorough) for world in (1, 2, 4)),
)
SMALL = dict(block_m=16, block_n=32, block_k=64, group_m=1, num_warps=4)
TALL = SMALL | dict(block_m=32, group_m=8, tiles_per_flag=4)


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
        (shape, Config(variant, **knobs))
        for shape, several in shapes.items()
        for knobs in several
        for variant in FUSED
    ]
    return [
        *((shape, Config("bsp", form="scatter")) for shape in shapes),
        *(case for case in found if SPACE.why_refused(*case, None) is None),
    ]


def sampled_cases(world: int) -> list[Case]:
    """Configs of the whole space for a tiny shape, three of each variant, the same on all ranks."""
    chooser, shape = random.Random(world), GemmReduceScatter(9 * world, 72, 66 * world, world)
    return [
        (shape, config)
        for variant in FUSED
        for config in chooser.choices(list(SPACE.configs(shape, None, (variant,))), k=3)
    ]


def small_cases(world: int) -> list[Case]:
    """Each next call has another shape, config or variant."""
    shapes = [GemmReduceScatter(m * world, 40, 33 * world, world) for m in (1, 3, 9)]
    return [(shape, Config(variant, **SMALL)) for shape in shapes for variant in FUSED]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    world, last = workspace.world, workspace.rank == workspace.world - 1
    thrice = [case for case in cases(world) for _ in range(3)]
    return {
        "back to back": scenario(workspace, thrice, cycle=(0, 1, 0)),
        "sampled": scenario(workspace, sampled_cases(world)),
        "one rank late": scenario(workspace, small_cases(world) * 2, pause_s=0.05 * last),
        "one rank ahead": scenario(workspace, small_cases(world) * 2, pause_s=0.05 * (not last)),
        "the epoch wraps": scenario(workspace, small_cases(world), last_epoch=WRAPS),
    }


@pytest.fixture(scope="module", params=WORLDS)
def ran(request: pytest.FixtureRequest) -> list[dict[str, list[Call]]]:
    return emulated.run(request.param, contract, timeout_s=600)


def test_every_call_is_right(ran: list[dict[str, list[Call]]]) -> None:
    assert wrong_calls(ran) == []


def test_every_kind_of_tile_ran(ran: list[dict[str, list[Call]]]) -> None:
    called = [(call.shape, call.config) for call in ran[0]["back to back"]]
    fused = [(shape, SPACE.complete(config)) for shape, config in called if config.variant != "bsp"]
    assert {config.variant for _, config in called} == {*SPACE.variants}
    assert {spans(*case, len(ran)) for case in fused} == (
        {True, False} if len(ran) > 1 else {False}
    )
    assert {flags(*case, len(ran)) > 1 for case in fused} == {True, False}
    for knob in ("split_k", "wire", "loads", "tiles_per_flag", "group_m"):
        assert len({config[knob] for _, config in fused}) == 2, knob


def test_results_repeat_to_the_bit(ran: list[dict[str, list[Call]]]) -> None:
    for found in ran:
        assert differing(found) == []


def test_push_and_pull_add_in_the_same_order(ran: list[dict[str, list[Call]]]) -> None:
    for found in ran:
        bits: dict[object, set[str]] = {}
        for call in found["back to back"]:
            if call.config.variant != "bsp":
                bits.setdefault((call.shape, call.config.knobs, call.seed), set()).add(call.bits)
        assert bits and all(len(each) == 1 for each in bits.values())


SLEEP = "__import__('time').sleep"
ADDS = "        total = add_slots(\n"
SLOW_READER = ("gemm_reduce", ADDS, f"        {SLEEP}(0.5 * bool(rank == 0))\n{ADDS}")
WAITS = "wait_all(flag(control, sources, group)[:, None], epoch, (sources < WORLD)[:, None])"
COMPUTES = "        acc = partial_tile(\n"
LATE_OWNERS = f"        {SLEEP}(0.3 * bool((rank == 2) & (turn > 0) & (number == 0)))\n"
LATE_TILES = f"        {SLEEP}(0.3 * bool((rank == 2) & (number % way.TILES_PER_FLAG > 0)))\n"
MUTANTS = {
    "no wait": Mutant((("gemm_reduce", WAITS, "pass"),), "wrong"),
    "one source not waited for": Mutant(
        (("gemm_reduce", WAITS, WAITS.replace("sources < WORLD", "sources < WORLD - 1")),), "wrong"
    ),
    "one source not added": Mutant(
        (
            (
                "gemm_reduce",
                "in tl.static_range(problem.WORLD):",
                "in tl.static_range(1, problem.WORLD):",
            ),
        ),
        "wrong",
    ),
    "one generation": Mutant(
        (
            ("gemm_reduce", "payload + generation_of(epoch) * generation_bytes", "payload"),
            SLOW_READER,
        ),
        "wrong",
        control=(SLOW_READER,),
    ),
    "flag before data": Mutant(
        (
            ("gemm_reduce", "if before + 1 == covered:", "if before == 0:"),
            ("gemm_reduce", COMPUTES, LATE_TILES + COMPUTES),
        ),
        "wrong",
        control=(("gemm_reduce", COMPUTES, LATE_TILES + COMPUTES),),
        calls="several tiles",
    ),
    "counter not set back": Mutant(
        (("gemm_reduce", "tl.store(word(arrivals + counter * 4), 0)", "pass"),), "end"
    ),
    "tells the next rank alone": Mutant(
        (
            (
                "gemm_reduce",
                "signal(peer(flag_here, control_bases, rank, owner)",
                "signal(peer(flag_here, control_bases, rank, (rank + 1) % WORLD)",
            ),
        ),
        "end",
        calls="several tiles",
    ),
    "the other owner's flag": Mutant(
        (
            (
                "gemm_reduce",
                "signal(peer(flag_here, control_bases, rank, owner)",
                "signal(peer(flag_here, control_bases, rank, (owner + 1) % WORLD)",
            ),
            ("gemm_reduce", COMPUTES, LATE_OWNERS + COMPUTES),
        ),
        "wrong",
        control=(("gemm_reduce", COMPUTES, LATE_OWNERS + COMPUTES),),
        calls="several tiles",
    ),
    "spanning tile tells the next rank alone": Mutant(
        (("gemm_reduce:announce", "range(1, WORLD + 1)", "range(1, 2)"),), "end"
    ),
    "last call's flag": Mutant((("attention", "- epoch) & -3)", "- epoch + 2) & -7)"),), "wrong"),
}


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """Rows of all owners in one tile, with a split K; and several tiles of each owner."""
    spanning = GemmReduceScatter(3 * world, 40, 130 * world, world)
    several = GemmReduceScatter(20 * world, 72, 33 * world, world)
    return {
        "small": [(spanning, Config(variant, **SMALL, split_k=2))] * 2,
        "several tiles": [(several, Config(variant, **SMALL, tiles_per_flag=4))] * 2,
    }


def judge_all(workspace: Workspace, folder: Path, variant: str) -> dict[str, str]:
    calls = calls_of_a_trial(variant, workspace.world)
    return judge(workspace, folder, OP, variant, calls, MUTANTS, 1_000_000)


@pytest.mark.parametrize("variant", ["push", pytest.param("pull", marks=pytest.mark.thorough)])
def test_mutants_are_refused(tmp_path: Path, variant: str) -> None:
    by_rank = emulated.run(3, judge_all, tmp_path, variant, timeout_s=600)
    assert misjudged(by_rank, MUTANTS) == []


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
