"""The contract of flash_decode, on emulated ranks: every variant is right, repeatable, and keeps its protocol; see tests/contract.py.

Sequences are ragged (one of the three seeds), empty on one rank or on all; caches contiguous or in pages of 1, 16 and 64 tokens; groups
of 1, 2 and 12 query heads; every rank gets all heads, or its own. Then mutants of the protocol must be refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from contract import WRAPS, Call, Case, Mutant, differing, judge, misjudged, scenario, wrong_calls
from mutant import Change

from tftune.kernels import emulated
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.space import SPACE
from tftune.kernels.space import Config
from tftune.kernels.workspace import Workspace

OP = "flash_decode"
WORLDS = (1, 2, 3, 4)
LADDER = tuple(variant for variant in SPACE.variants if variant != "bsp")
CALLS = 2


def cases(world: int) -> list[Case]:
    """Every variant on every shape, with its own splits, heads of a program and heads of a flag; own heads may cut a group in two.

    Larger worlds take fewer shapes: what is emulated of a rank is slow."""
    shapes = {
        FlashDecode(2, 12, 1, 64, 40, world): dict(kv_splits=2, heads_per_program=8, heads_per_flag=8),
        FlashDecode(3, world, world, 64, 32, world, output="heads", page_size=16): dict(kv_splits=1, heads_per_flag=2, xcds=8),
        FlashDecode(1, 24, 2, 128, 48, world, "bf16", "heads", 1): dict(kv_splits=2, heads_per_program=4, heads_per_flag=0),
        FlashDecode(1, 4, 2, 256, 64, world, page_size=64): dict(kv_splits=4, heads_per_program=2, heads_per_flag=2),
    }
    chosen = {1: (0, 1, 2, 3), 2: (0, 1, 2, 3), 3: (0, 1), 4: (1, 2)}[world]
    return [(shape, configured(variant, **shapes[shape])) for shape in [list(shapes)[n] for n in chosen] for variant in SPACE.variants]


def configured(variant: str, **knobs: int) -> Config:
    """A config with those of the knobs that the variant has, heads_per_program being 1 unless given."""
    has = {choice.name for choice in SPACE.choices(variant)}
    return Config(variant, **{name: value for name, value in (dict(block_n=32, heads_per_program=1) | knobs).items() if name in has})


def alternating(world: int) -> list[Case]:
    """Without the library, whose collective would hold the ranks together; each next call has another shape, config or variant."""
    shapes = FlashDecode(1, world, 1, 64, 20, world, output="heads"), FlashDecode(2, 2, 2, 64, 40, world)
    return [(shape, configured(v, kv_splits=1 + flag, heads_per_flag=flag)) for v in LADDER for flag, shape in enumerate(shapes)]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    """Every scenario of this world, on one workspace."""
    world, last = workspace.world, workspace.rank == workspace.world - 1
    return {
        "back to back": scenario(workspace, [case for case in cases(world) for _ in range(CALLS)]),
        "one rank late": scenario(workspace, alternating(world), pause_s=0.03 * last),
        "one rank ahead": scenario(workspace, alternating(world), pause_s=0.03 * (not last)),
        "the epoch wraps": scenario(workspace, alternating(world)[::2], last_epoch=WRAPS),
    }


@pytest.fixture(scope="module", params=WORLDS)
def ran(request: pytest.FixtureRequest) -> list[dict[str, list[Call]]]:
    """What each rank of one world returned."""
    return emulated.run(request.param, contract, timeout_s=240)


def test_every_call_is_right(ran: list[dict[str, list[Call]]]) -> None:
    assert wrong_calls(ran) == []


def test_every_variant_ran_on_every_shape(ran: list[dict[str, list[Call]]]) -> None:
    world = len(ran)
    for found in ran:
        assert [(call.shape, call.config) for call in found["back to back"]] == [case for case in cases(world) for _ in range(CALLS)]
        assert {name: len(calls) for name, calls in found.items() if name != "back to back"} == {
            "one rank late": len(alternating(world)),
            "one rank ahead": len(alternating(world)),
            "the epoch wraps": len(LADDER),
        }


def test_results_repeat_to_the_bit(ran: list[dict[str, list[Call]]]) -> None:
    for found in ran:
        assert differing(found) == []


SLEEP = "__import__('time').sleep"
LAUNCHES = "flash_decode.launches"
GENERATION = "(epoch & 1) * generation_bytes"
SEND = "            send(o, lse, away, inbox, batch_index, heads, valid, batch, rank, KV_HEADS * GROUP, OWN, D, R, WORLD, WORLD_P)\n"
ANNOUNCE = "            announce(piece, pieces, arrivals, control, flags_away, epoch, rank, PIECES_PER_FLAG, WORLD, WORLD_P, ARCH)\n"
WAIT = "wait_all(flag(control, sources[None, :], slots[:, None]), epoch, (within < OWN)[:, None] & (sources < WORLD)[None, :])"
NO_WAIT = Mutant((("attention", WAIT, "pass"),), "wrong")
SLOW_READER: Change = ("attention", WAIT, f"{WAIT}\n    {SLEEP}(3.0 * ((rank == 2) & (number == 0) & (epoch % 2 == 1)))")
"""In the first call rank 2 sleeps between its wait for a row and the reading of it; the others go on to their next call."""
LATE = f"{SLEEP}(2.0 * ((rank == 2) & (piece == pieces - 1)))\n"
SLOW_SENDER: Change = (LAUNCHES, f"{SEND}{ANNOUNCE}        else", f"            {LATE}{SEND}{ANNOUNCE}        else")


def mutants(variant: str) -> dict[str, Mutant]:
    """Of its own kernel's order, and, once, of what all variants share: waits, signals, and the arithmetic."""
    kernel = "flash_decode.persistent"
    send, announce = SEND.removeprefix("    "), ANNOUNCE.removeprefix("    ")
    if variant == "fused":
        sooner: Change = ("attention", "before + 1 == covered", "before == 0")
        return {
            "the first to send sets the flag of all": Mutant((SLOW_SENDER, sooner), "wrong or end", control=(SLOW_SENDER,)),
            "flag before data": Mutant(
                ((LAUNCHES, f"{SEND}{ANNOUNCE}        else", f"{ANNOUNCE}            {LATE}{SEND}        else"),), "wrong"
            ),
        }
    if variant == "persistent_ll":
        return words_mutants()
    return {
        "no wait": NO_WAIT,
        "flag before data": Mutant(((kernel, f"{send}{announce}", f"{announce}        {LATE}{send}"),), "wrong"),
        "one generation": Mutant(((kernel, GENERATION, "0 * generation_bytes"), SLOW_READER), "wrong", control=(SLOW_READER,)),
        "counters not set back": Mutant((("attention", "(arrived + numbers * 4), 0", "(arrived + numbers * 4), -1"),), "end"),
        "takes the last call's flag": Mutant((("attention", "((seen - epoch) & -2)", "((seen - epoch + 1) & -4)"),), "wrong"),
        "waits for the wrong source": Mutant(
            (("attention", "control, sources[None, :],", "control, rank + 0 * sources[None, :],"),), "wrong"
        ),
        "signals the last epoch": Mutant((("attention", "(WORLD_P,), 0, tl.int32) + epoch", "(WORLD_P,), -1, tl.int32) + epoch"),), "end"),
        "split dropped": Mutant((("attention", "valid, R, SPLITS, D", "valid, R, SPLITS - 1, D"),), "wrong"),
        "tail not masked": Mutant((("attention", "inside = start + steps < end", "inside = start + steps <= end"),), "wrong"),
        "lse ignored": Mutant(
            (("attention", "shares, shrink = tl.exp2(lse - base[None, :])", "shares, shrink = tl.exp2(lse * 0)"),), "wrong"
        ),
        "heads of the next group": Mutant(
            (("attention", "group % KV_HEADS * GROUP + within", "(group + 1) % KV_HEADS * GROUP + within"),), "wrong"
        ),
    }


def words_mutants() -> dict[str, Mutant]:
    """Of words that carry their epoch."""
    kernel, late = "flash_decode.persistent_ll", "!= epoch), tl.int32)"
    slow_reader: Change = (
        kernel,
        "        o, _ = receive(o_at, lse_at, stride",
        f"        {SLEEP}(3.0 * ((rank == 2) & (number == 0) & (epoch % 2 == 1)))\n        o, _ = receive(o_at, lse_at, stride",
    )
    stores = "    lse_ptrs = tl.cast(away[:, None]"
    slow_sender: Change = (kernel, stores, f"    {SLEEP}(0.3 * (rank == 1))\n{stores}")
    return {
        "no wait": Mutant((("words", "(words >> 32) != epoch", "(words >> 32) > epoch"),), "wrong"),
        "takes words of the call before the last": Mutant((("words", late, "< epoch - 2), tl.int32)"),), "wrong", calls="three"),
        "one generation": Mutant(((kernel, "(epoch & 1) * MAILBOX", "0 * MAILBOX"), slow_reader), "end", control=(slow_reader,)),
        "stamps the last epoch": Mutant((("words", "tl.cast(epoch, tl.int64) << 32", "tl.cast(epoch - 1, tl.int64) << 32"),), "end"),
        "sent to itself only": Mutant(((kernel, "(ranks < WORLD)[:, None] & valid", "(ranks == rank)[:, None] & valid"),), "end"),
        "split dropped": Mutant(((kernel, "epoch, R, SPLITS, SPLITS_P", "epoch, R, SPLITS - 1, SPLITS_P"),), "wrong"),
        "log-sum-exp not waited for": Mutant(
            (slow_sender, (kernel, " | absent(lse_words, wanted, epoch)", "")), "wrong", control=(slow_sender,)
        ),
    }


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """Two calls of a small ragged shape; three where words of the first lie where those of the third will."""
    shape = FlashDecode(2, 4, 2, 64, 40, world)
    case = (shape, configured(variant, kv_splits=2, heads_per_flag=2 if variant == "fused_heads" else 1))
    return {"small": [case] * 2} | ({"three": [case] * 3} if variant == "persistent_ll" else {})


JUDGED = ("fused", "persistent", "persistent_ll")
"""The other variants have the kernels of the first: what differs is which of them waits, and that is held against the reference above."""


def judge_all(workspace: Workspace, folder: Path) -> dict[str, dict[str, str]]:
    return {variant: _judge(workspace, folder, variant, 1_000_000 * number) for number, variant in enumerate(JUDGED)}


def _judge(workspace: Workspace, folder: Path, variant: str, epoch: int) -> dict[str, str]:
    return judge(workspace, folder, OP, variant, calls_of_a_trial(variant, workspace.world), mutants(variant), epoch, late_s=0.6)


def test_mutants_are_refused(tmp_path: Path) -> None:
    by_rank = emulated.run(3, judge_all, tmp_path, timeout_s=240)
    for variant in JUDGED:
        assert misjudged([verdicts[variant] for verdicts in by_rank], mutants(variant)) == [], variant
