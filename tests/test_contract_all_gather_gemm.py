"""The contract of all_gather_gemm, on emulated ranks: every variant of the space is right,
repeatable, and keeps its protocol.

A variant joins by being in SPACE. One start of `world` processes runs all scenarios of that world
on one workspace; inside a scenario no rank waits for another but through the kernels' own flags.
Inputs change from call to call, so that what an earlier call left behind is wrong. Then mutants of
the protocol must be refused by the same scenario.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from contract import SEEDS, Call, Case, Ran, differing, runs, scenario, scenarios, wrong_calls
from mutant import Change
from refusal import HOLD, SLEEP, Mutant, hangs, refuse, wrong, wrong_or_hangs

from tftune.kernels.all_gather_gemm import AllGatherGemm, reference
from tftune.kernels.all_gather_gemm.host import _fused
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config

FUSED = tuple(variant for variant in SPACE.variants if variant != "bsp")
CALLS = 5
FEW = 2
WORLDS = (
    pytest.param((3, FEW), id="3"),
    *(
        pytest.param((world, CALLS), id=f"{world}, all calls", marks=pytest.mark.thorough)
        for world in (1, 2, 3, 4)
    ),
)
"""World sizes, and how often each case is called back to back. `tests/test_one_rank.py` has one
rank in `make test`, too."""


SMALL = dict(
    block_m=16, block_n=32, group_m=1, num_warps=4, comm_programs=8, rows_per_flag=16,
    k_per_flag=256, first_rows=16, growth=1,
)  # fmt: skip


def shapes(world: int) -> tuple[AllGatherGemm, ...]:
    """M = 1, 7 and 129 (sharded along M: multiples of world); N and K_local that no block divides,
    K that the ranks do not; both layouts of B. Some fit tensor descriptors, two of them with an odd
    N, one with blocks of rows that several sources own. The last three have several chunks of
    whole steps for each source, which go by in one loop, past the end of K too: by pointers, by
    descriptors, and of rows that several sources own."""
    return (
        AllGatherGemm(1, 40, 33 * world, world, b_layout="nk"),
        AllGatherGemm(7, 72, 264 * world, world),
        AllGatherGemm(129, 40, 64 * world, world, b_layout="nk"),
        AllGatherGemm(7, 40, 70 * world, world, dtype="bf16"),
        AllGatherGemm(world, 72, 33 * world + 1, world, shard="m", dtype="bf16"),
        AllGatherGemm(64 * world, 33, 64 * world + 64, world, shard="m", b_layout="nk"),
        AllGatherGemm(64 * world, 40, 64 * world, world, shard="m"),
        AllGatherGemm(20, 36, 320 * world, world),
        AllGatherGemm(20, 33, 320 * world, world, b_layout="nk"),
        AllGatherGemm(11 * world, 40, 768, world, shard="m"),
    )


def configs(shape: AllGatherGemm) -> tuple[Config, ...]:
    """Every BSP form that fits, and for each other variant a small tile, or a tall one where M is
    large, and a split K where M is small and K_local long; by descriptors, and one peer after
    another, where that is possible; by copies of few rows."""
    large = shape.m > 64
    # One rank has 2 chunks, no 4 parts.
    deep = shape.m < 16 and shape.shard_columns > 256 and shape.world > 1
    small = SMALL | dict(block_k=64, copy_streams=1)
    rows = 64 if shape.shard_rows > 32 else 16
    tall = small | dict(block_m=64, block_n=64, group_m=8, xcds=8, rows_per_flag=rows)
    split = small | dict(block_n=64, block_k=128, split_k=4, xcds=8)
    knobs = [tall] * large + [small] * (not large) + [split] * deep
    forms = [config for config in SPACE.defaults(shape, None) if config.variant == "bsp"]
    fused = dict.fromkeys(config_of(variant, chosen) for variant in FUSED for chosen in knobs)
    possible = [
        config
        for config in fused
        if config.variant != "push_ce" or SPACE.why_invalid(shape, config) is None
    ]  # one flag along K
    return *forms, *(
        where_possible(shape, where_possible(shape, config, loads="descriptor"), order="group")
        for config in possible
    )


def config_of(variant: str, knobs: dict[str, int]) -> Config:
    """The config of those knobs that the variant has, where it has their value."""
    declared = {choice.name: choice.values for choice in SPACE.choices(variant)}
    return Config(
        variant, **{name: value for name, value in knobs.items() if value in declared.get(name, ())}
    )


def where_possible(shape: AllGatherGemm, config: Config, **knobs: str) -> Config:
    """The config with these knobs, if its variant has them and the shape allows it."""
    values = {choice.name: choice.values for choice in SPACE.choices(config.variant)}
    changed = Config(config.variant, **dict(config.knobs) | knobs)
    known = all(value in values.get(name, ()) for name, value in knobs.items())
    return changed if known and SPACE.why_invalid(shape, changed) is None else config


def cases(world: int) -> list[Case]:
    return [(shape, config) for shape in shapes(world) for config in configs(shape)]


def small_cases(world: int) -> list[Case]:
    """Fused only, since a collective would hold the ranks together; each next call has another
    shape, config or variant."""
    chosen = [shape for shape in shapes(world) if shape.m < 16 and shape.k <= 70 * world]
    found = [
        [(shape, config) for config in configs(shape) if config.variant == variant][:1]
        for shape in chosen
        for variant in FUSED
    ]
    return [case for group in found for case in group]


def sampled_cases(world: int) -> list[Case]:
    """Configs of the whole space for tiny shapes, two of each variant, the same on every rank."""
    chooser = random.Random(world)
    tiny = (
        AllGatherGemm(7, 40, 66 * world, world),
        AllGatherGemm(3 * world, 33, 64 * world, world, shard="m", b_layout="nk"),
    )
    return [
        (shape, config)
        for shape in tiny
        for v in FUSED
        for config in chooser.choices(list(SPACE.configs(shape, None, (v,))), k=2)
    ]


def back_to_back(world: int, count: int) -> list[Case]:
    """Every case so often. A split K is called at least 4 times, so that one seed comes again: its
    parts could be added in any order."""
    return [
        case
        for case in cases(world)
        for _ in range(max(count, 4 * (dict(case[1].knobs).get("split_k", 1) > 1)))
    ]


def rounds(count: int) -> int:
    """How often the small cases alternate; one rank late and one rank ahead are two calls of each
    case with the same data."""
    return SEEDS if count == CALLS else 1


def contract(workspace: Workspace, count: int) -> dict[str, list[Call]]:
    small = small_cases(workspace.world)
    calls, turns = back_to_back(workspace.world, count), small * rounds(count)
    sampled = {"sampled": scenario(workspace, sampled_cases(workspace.world))}
    return sampled | scenarios(workspace, calls, turns, small)


ran = runs(contract, WORLDS)


def test_every_call_is_right(ran: Ran) -> None:
    assert wrong_calls(ran) == []


def test_every_variant_ran_on_every_shape(ran: Ran) -> None:
    called = {(call.shape, call.config.variant) for call in ran[0]["back to back"]}
    assert called == {(s, v) for s in shapes(len(ran)) for v in SPACE.variants}
    by_descriptor = {
        call.config.variant
        for call in ran[0]["back to back"]
        if call.shape.shard == "m" and call.shape.n % 8
        if dict(call.config.knobs).get("loads") == "descriptor"
    }
    assert by_descriptor == {"staged", "push", "push_ce"}


def test_results_repeat_to_the_bit(ran: Ran) -> None:
    assert differing(ran) == []


def misaligned(workspace: Workspace) -> str:
    """What the interpreter says of a B [K, N] whose rows begin at any multiple of 2 bytes."""
    shape = AllGatherGemm(32, 33, 256, workspace.world)
    config = config_of("push", SMALL | {"loads": "descriptor"})
    a, b = reference.make_inputs(shape, workspace.rank, 0)
    try:
        _fused(shape, SPACE.complete(config), workspace, "tile")(a, b, reference.make_output(shape))
    except Exception as error:  # Triton's own class, around an AssertionError
        return str(error)
    return "it ran"


def test_the_interpreter_would_see_rows_that_are_not_aligned() -> None:
    """So that calls by descriptors could fail."""
    said = emulated.run(2, misaligned)
    assert all(re.search("strides? must be 16-byte aligned", text) for text in said), said


AFTER_WAIT = "        last = chunk + limit - 1\n"
HELD_READER: Change = (
    "gemm",
    AFTER_WAIT,
    f"        {HOLD.format('2 * (source == 0)')}\n{AFTER_WAIT}",
)
"""Rank 2 stays between the wait for source 0 and the reading of its data until both peers have gone
on to their next call."""
PULLED = "wait(flag(control, source, OFFERED if chunks.IN_PLACE else chunk), epoch)"
PULLS = f"            {PULLED}\n"
HELD_PULLER: Change = (
    "all_gather_gemm.staged",
    PULLS,
    f"{PULLS}            {HOLD.format('2 * (source == 0)')}\n",
)
SIGNAL = "signal(peer(flag(control, rank, chunk), control_bases, rank, target), epoch, ARCH)"
SIGNAL_PEERS = "signal_peers(control, control_bases, chunk, epoch, rank, problem.WORLD, ARCH)"
AWAITS = "        if not at_home:\n            limit = wait"
ONLY_ON_GPUS = "no wait", "waits for the wrong source", "row chunk off by one"
"""Mutants of staged that only GPUs show. Here its programs that pull run before those that wait for
them, one after another. tests/test_gpu.py has these."""

LATE = f"            {SLEEP}(2.0 * bool((rank == 2) & (target == 0) & (chunk == 1)))\n"
LATE_FOR_0: Change = (
    "all_gather_gemm.push",
    "            copy_shard(",
    f"{LATE}            copy_shard(",
)
"""Rank 2 reaches rank 1 and, much later, rank 0 with its last chunk. Meanwhile rank 1 ends its
call, and in its next one signals to rank 0: which reads too early, and then misses that signal,
since rank 2 writes its own over it."""
PACKED: tuple[Change, ...] = (
    (
        "gemm",
        "flag(control, sources, slots)",
        "flag(control, 0, (sources * K_CHUNKS + first_flag + columns) + 0 * places[:, None])",
    ),
    ("all_gather_gemm.push", "rank, chunk)", "0, rank * row_chunks * chunks.K_CHUNKS + chunk)"),
)
"""Flags of a source right behind those of the one before it, as many as this shape has: their
places follow the shape."""


COPIED = "                self._runtime.copy(piece, target, shard + piece.source, stream)\n"
FLAGGED = "                self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)\n"
SKIPS = "    if generation_of(epoch) != parity:\n        "
UNHEARD = "range(1, WORLD):\n        wait(flag(control, (rank + step) % WORLD, slot)"
COPIES = {
    "flag before data": wrong(
        ("copy_engine", COPIED + FLAGGED, f"{FLAGGED}                {SLEEP}(0.1)\n{COPIED}")
    ),
    "the other generation": wrong(
        ("copy_engine", "+ parity * inbox[1]", "+ (1 - parity) * inbox[1]")
    ),
}
"""Mutants of the copies that `copy_engine` makes, in every variant that uses it."""
PUSH_CE = {
    "another source's flag": hangs(
        ("copy_engine", "(rank * FLAGS_PER_SOURCE", "((rank + 1) % world * FLAGS_PER_SOURCE")
    ),
    "stale epoch word": hangs(
        ("copy_engine", "tl.store(word(staged), epoch)", "tl.store(word(staged), epoch - 2)")
    ),
    "skips no epoch": wrong(
        ("copy_engine", "if generation_of(epoch) != parity:", "if epoch < 0:"), calls="beside push"
    ),
    "skips without meeting": wrong_or_hangs(
        ("copy_engine", f"{SKIPS}barrier(control, control_bases, rank, WORLD)", f"{SKIPS}pass"),
        control=(HELD_READER,),
        calls="beside push",
    ),
}
IN_FP16 = "acc = tl.cast(tl.cast(tl.dot(a, b, acc), tl.float16), tl.float32)"
GEMM = {
    "no wait": wrong(("gemm", AWAITS, AWAITS.replace("not at_home", "source < 0"))),
    "waits for the wrong source": wrong(
        ("gemm", "((rank + (step + number) // K_CHUNKS) %", "((rank + 1 + 0 * number) %")
    ),
    "takes the last call's flag": wrong(
        *tuple(
            (file, "- epoch) & -3)", "- epoch + 2) & -7)") for file in ("gemm", "symmetric:wait")
        )
    ),
    "row chunk off by one": wrong(
        ("gemm", "places, number = first + tl", "places, number = first + 1 + tl")
    ),
    "tiles lost": wrong(
        ("gemm", "first + within % height", "first + within % GROUP_M"), calls="tall"
    ),
    "tail not masked": wrong(
        ("gemm", "inside = steps < end - k\n", "inside = steps < end - k + 1\n")
    ),
    "sums in fp16": wrong(
        ("gemm", "acc = tl.dot(a, b, acc)\n        further", f"{IN_FP16}\n        further"),
        calls="deep",
    ),
}
"""Mutants of every variant whose kernel calls `gemm.multiply_all`."""
PAST_THE_LAST: Change = ("gemm", "or at_home else STEPS - step", "or at_home else STEPS")
AROUND = {
    "own chunks twice": wrong(PAST_THE_LAST, calls="even"),
    "does not go on at column 0": wrong(
        ("gemm", "tl.where(k + BLOCK_K == K, BLOCK_K - K, BLOCK_K) if WRAPS", "BLOCK_K if WRAPS"),
        ("gemm", "tl.where(k >= problem.K, k - problem.K, k) if WRAPS", "k if WRAPS"),
        calls="even",
    ),
}
"""Mutants of the variants in which one loop goes through the shards of several sources."""
LATE_COPY: Change = (
    "copy_engine",
    COPIED,
    f"                {SLEEP}(0.5 * (self._workspace.rank == 2))\n{COPIED}",
)
ONE_BY_ONE = {"own chunks twice": wrong(PAST_THE_LAST, control=(LATE_COPY,), calls="even")}
"""A mutant of push_ce, whose loop takes two chunks at most, and each of 3 ranks has one. The
mutant takes too many only where the last comes alone."""


def mutants(variant: str) -> dict[str, Mutant]:
    """Mutants of every mechanism that the variant has."""
    if variant == "bsp_chunked":
        unheard = ("copy_engine", UNHEARD, UNHEARD.replace("WORLD)", "WORLD - 1)", 1))
        return COPIES | {"a peer not waited for": wrong(unheard)}
    if variant == "push_ce":
        return COPIES | PUSH_CE | GEMM | AROUND | ONE_BY_ONE
    kernel, signals = f"all_gather_gemm.{variant}", SIGNAL if variant == "push" else SIGNAL_PEERS
    margin = "            " if variant != "staged" else "                "
    copy = f"{margin}copy_shard(a_ptr"
    held = HELD_PULLER if variant == "staged" else HELD_READER
    last_epoch = [f"{flag}, epoch, sem" for flag in ("word(address)", "there")]
    found = GEMM | {
        "flag before data": wrong(
            (kernel, copy, f"{margin}{signals}\n{margin}{SLEEP}(0.1)\n{copy}")
        ),
        "one generation": wrong(
            ("shards", "generation_of(epoch) * generation_rows, tl", "0 * generation_rows, tl"),
            control=(held,),
        ),
        "signals the last epoch": hangs(
            *tuple(("symmetric", t, t.replace("epoch,", "epoch - 2,")) for t in last_epoch)
        ),
    }
    if variant != "pull":
        found |= AROUND
    # Where peers read, nobody ends a call before everybody's shard is there: a flag that is set too
    # early does no harm.
    if variant == "push":
        found["flags packed by shape"] = wrong_or_hangs(
            *PACKED, control=(LATE_FOR_0,), calls="alternating"
        )
    if variant == "staged":
        for name in ONLY_ON_GPUS:
            del found[name]
        found["pulls what is not there"] = wrong((kernel, PULLED, "pass"))
    return found


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """What a variant must survive: two calls of a small shape; of one with three row tiles; a long
    K; chunks of whole steps; two shapes, the second with more flags: 2 of each source, then 3; and
    for copies to fixed places a call of push between, so that a generation is out of turn."""

    def case(m: int, k: int, variant: str = variant, **knobs: int) -> Case:
        return AllGatherGemm(m, 40, k * world, world), config_of(variant, SMALL | knobs)

    found = {
        "small": [case(7, 33)] * 2,
        "tall": [case(40, 33, group_m=8)],
        "deep": [case(7, 520)],
        "even": [case(7, 576, block_k=64)],
        "alternating": [case(7, 300), case(7, 520)],
    }
    if variant in ("push_ce", "bsp_chunked"):
        found["beside push"] = [*found["small"], case(7, 33, "push"), *found["small"]]
    return found


MUTANTS = {
    variant: mutants(variant) for variant in ("push", "push_ce", "pull", "staged", "bsp_chunked")
}
assert {*MUTANTS} == {*FUSED}


@pytest.mark.thorough
def test_mutants_are_refused(tmp_path: Path) -> None:
    refuse(tmp_path, MUTANTS, calls_of_a_trial, ("alternating",))
