"""The contract of flash_decode, on emulated ranks: every variant is right, repeatable, and keeps
its protocol; see tests/contract.py.

Sequences are ragged (one of the three seeds), empty on one rank or on all; caches contiguous or in
pages of 1, 16 and 64 tokens; groups of 1, 2 and 12 query heads; every rank gets all heads, or its
own. Then mutants of each variant's mechanisms must be refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from contract import Call, Case, Ran, differing, repeated, runs, scenarios, with_known, wrong_calls
from mutant import Change
from refusal import HOLD, SLEEP, Mutant, accepted, hangs, refuse, wrong

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode, host
from tftune.kernels.flash_decode.reference import RAGGED_SEED, make_inputs, make_output
from tftune.kernels.flash_decode.space import SPACE

WORLDS = (2, *(pytest.param(world, marks=pytest.mark.thorough) for world in (1, 3, 4)))
"""Two ranks are called with every shape. Mutants, and calls that alternate with another
operation's, are of 3 ranks in `make test`, too."""
LADDER = tuple(variant for variant in SPACE.variants if variant != "bsp")
CALLS = 2
RAGGED_AND_FULL = RAGGED_SEED, 0, 2, RAGGED_SEED
"""Seeds of two calls of one case, then of the next: one is ragged, and none is that of two calls
before."""


def cases(world: int) -> list[Case]:
    """Every variant on every shape, with its own splits, heads of a program and heads of a flag;
    own heads may cut a group in two.

    Larger worlds take fewer shapes: what is emulated of a rank is slow.
    """
    shapes = {
        FlashDecode(2, 12, 1, 64, 40, world): dict(
            kv_splits=2, heads_per_program=8, heads_per_flag=8
        ),
        FlashDecode(3, world, world, 64, 32, world, output="heads", page_size=16): dict(
            kv_splits=1, heads_per_flag=2, xcds=8
        ),
        FlashDecode(1, 24, 2, 128, 48, world, "bf16", "heads", 1): dict(
            kv_splits=2, heads_per_program=4, heads_per_flag=0
        ),
        FlashDecode(1, 4, 2, 256, 64, world, page_size=64): dict(
            kv_splits=4, heads_per_program=2, heads_per_flag=2
        ),
    }
    chosen = {1: (0, 1, 2, 3), 2: (0, 1, 2, 3), 3: (0, 1), 4: (0, 1, 2)}[world]
    return [
        (shape, configured(variant, **shapes[shape]))
        for shape in [list(shapes)[n] for n in chosen]
        for variant in SPACE.variants
    ]


def configured(variant: str, **knobs: int) -> Config:
    """A config with those of the knobs that the variant has, heads_per_program being 1 unless
    given."""
    return with_known(SPACE, variant, **(dict(block_n=32, heads_per_program=1) | knobs))


def alternating(world: int) -> list[Case]:
    """Without the library, whose collective would hold the ranks together; each next call has
    another shape, config or variant."""
    shapes = (
        FlashDecode(1, world, 1, 64, 20, world, output="heads"),
        FlashDecode(2, 2, 2, 64, 40, world),
    )
    return [
        (shape, configured(v, kv_splits=1 + flag, heads_per_flag=flag))
        for v in LADDER
        for flag, shape in enumerate(shapes)
    ]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    calls, turns = repeated(cases(workspace.world), CALLS), alternating(workspace.world)
    return scenarios(workspace, calls, turns, turns[::2], RAGGED_AND_FULL)


ran = runs(contract, WORLDS)


def test_every_call_is_right(ran: Ran) -> None:
    assert wrong_calls(ran) == []


def test_every_variant_ran_on_every_shape_ragged_and_full(ran: Ran) -> None:
    calls = ran[0]["back to back"]
    assert [(call.shape, call.config) for call in calls] == repeated(cases(len(ran)), CALLS)
    assert all(
        (first.seed == RAGGED_SEED) != (second.seed == RAGGED_SEED)
        for first, second in zip(calls[::2], calls[1::2], strict=True)
    )
    assert all(call.seed != sooner.seed for sooner, call in zip(calls, calls[2:], strict=False))


def test_results_repeat_to_the_bit(ran: Ran) -> None:
    assert differing(ran) == []


def outside(workspace: Workspace) -> list[str]:
    """The variants whose result of lengths outside the cache is another than that of the nearest
    ones inside, with pages and without."""
    found = []
    for shape in (
        FlashDecode(2, 4, 2, 64, 32, workspace.world, page_size=16),
        FlashDecode(2, 4, 2, 64, 40, workspace.world),
    ):
        q, k, v, _, *table = make_inputs(shape, workspace.rank, 0)
        for variant in SPACE.variants:
            plan = host.prepare(shape, configured(variant, kv_splits=2), workspace)
            results = []
            for lengths in ((shape.kv_len, 0), (shape.kv_len + 999, -7), (1 << 30, -(1 << 30))):
                out = make_output(shape)
                plan(q, k, v, torch.tensor(lengths, dtype=torch.int32), *table, out)
                results.append(out.clone())
            if not all(torch.equal(results[0], one) for one in results):
                found.append(f"{variant} at {shape}")
    return found


def test_lengths_outside_the_cache_count_as_the_nearest_inside() -> None:
    assert emulated.run(2, outside, timeout_s=300) == [[], []]


LAUNCHES = "flash_decode.launches"
GENERATION = "generation_of(epoch) * generation_bytes"
SEND = "send(o, lse, away, inbox, batch_index, heads, valid, batch, rank, shape, peers)"
ANNOUNCE = "announce(piece, pieces, arrivals, control, flags_away, epoch, rank, peers)"
SENDERS = {
    "gather": f"{LAUNCHES}:exchange",
    "no_wait": f"{LAUNCHES}:exchange",
    "fused": f"{LAUNCHES}:combine",
    "fused_heads": f"{LAUNCHES}:combine",
    "persistent": "flash_decode.persistent:decode",
}
"""Where each variant with flags sends and announces."""
AWAIT_ROWS = "wait_all(flags, epoch, (within < OWN)[:, None] & (sources < peers.WORLD)[None, :])"
AWAIT_ALL = "wait_all(flag(control, sources, 0)[:, None], epoch, (sources < peers.WORLD)[:, None])"
FLAGS = {"fused_heads": 4, "persistent": 8}
"""Flags of one source in the small trial, where there are several."""
DOT = "tl.dot(tl.cast(shares, v.dtype), v, acc * shrink[:, None])"
WITHIN = "min(die, programs % XCDS) + within"
ROW, ROW_OF_WORDS = "row = batch_index * OWN + first\n", "row = batch_index * OWN + head\n"

NEAR = {
    name: f"tl.where(tl.arange(0, peers.WORLD_P) == 0, 0, {name})"
    for name in ("away", "flags_away")
}
LATE_FOR_0 = (
    f"({SEND.replace('away', NEAR['away'])}, "
    f"{ANNOUNCE.replace('flags_away', NEAR['flags_away'])}, {HOLD.format(1)}, {SLEEP}(1))"
    f" if (rank == 2) & (epoch % 4 == 1) & (piece == pieces - 1) else None; {SEND}"
)
"""In the first call rank 2 reaches all but rank 0 with its last piece, and rank 0 when rank 1 is in
its next call."""
OWN_ROWS = "message_rows(messages, batch_index, heads, batch, shape)"
NEXT_HEADS = "heads // shape.OWN * shape.OWN + (heads + 1) % shape.OWN"
GROWS: Change = (
    "symmetric:signal_all",
    "xchg(word(address + away), values",
    "max(word(address + away), values",
)
"""What comes late does not set a flag back."""
PACKED: tuple[Change, ...] = (
    ("attention", "flag(control, rank, piece)", "flag(control, 0, rank * pieces + piece)"),
    ("attention", "flag(control, rank, slot)", "flag(control, 0, rank * pieces)"),
    (
        "attention",
        "flag(control, sources[None, :], slots[:, None])",
        "flag(control, 0, (sources * shape.KV_HEADS * peers.SLICES)[None, :] + slots[:, None])",
    ),
    (LAUNCHES, "flag(control, sources, 0)", "flag(control, 0, sources * pieces)"),
)
"""Flags of a source right behind those of the one before it, as many as a sequence of this shape
has pieces."""

ROWS_LOST = "work_range(programs - 1 - pid,", "work_range(programs - pid,"
WAIT_PARTS = "wait_parts(arrived + piece // peers.SLICES * 4, cache.SPLITS)"
ONLY_ON_GPUS = {
    "persistent": {
        "splits not waited for": accepted(
            ("flash_decode.persistent", WAIT_PARTS, "pass"), calls="once"
        ),
        "rows lost": accepted(("flash_decode.persistent", *ROWS_LOST), calls="once"),
    },
    "persistent_ll": {
        "rows lost": accepted(("flash_decode.persistent_ll", *ROWS_LOST), calls="once")
    },
}
"""Accepted here, where programs run one after another, and the last does what needs the others'
work. tests/test_gpu.py is for these."""


def mutants(variant: str) -> dict[str, Mutant]:
    """Mutants of every mechanism that the variant has, its own or shared with others."""
    ll = variant == "persistent_ll"
    file, row = ("flash_decode.persistent_ll", ROW_OF_WORDS) if ll else ("attention", ROW)
    row_before = row.replace("= ", "= tl.maximum(").replace("\n", " - 1, 0)\n")
    found = {
        "units lost": (hangs if ll else wrong)(
            ("gemm", WITHIN, f"{WITHIN} // 2 * 2"), calls="once"
        ),
        "tail not masked": wrong(
            ("attention", "inside = start + steps < end", "inside = start + steps <= end"),
            calls="once",
        ),
        "sums in fp16": wrong(
            ("attention", DOT, f"tl.cast(tl.cast({DOT}, tl.float16), tl.float32)"), calls="deep"
        ),
        "row off by one": wrong((file, row, row_before), calls="once"),
    }
    found |= ONLY_ON_GPUS.get(variant, {})
    if variant == "persistent":
        found |= mutants_of_counters()
    return found | (ll_mutants() if ll else mutants_of_flags(variant) if variant in SENDERS else {})


def mutants_of_flags(variant: str) -> dict[str, Mutant]:
    """Mutants of waits, of the order of data and flag, of epochs, generations, and places of flags.

    A sender that is held has no control: by itself it waits for peers that wait for it.
    """
    sender, flags = SENDERS[variant], 2 * FLAGS.get(variant, 1)
    where, wait = (
        (sender, AWAIT_ALL) if variant == "gather" else ("attention:await_rows", AWAIT_ROWS)
    )
    source = "sources, 0" if variant == "gather" else "sources[None, :],"
    first_row = "" if variant == "gather" else " * (number == 0)"
    held = HOLD.format(f"{flags} * (piece == pieces - 1)")
    slow_sender: Change = (sender, SEND, f"{held}; {SEND}")
    slow_reader: Change = (where, wait, f"{wait}; {HOLD.format(f'{flags}{first_row}')}")
    readers = (
        ()
        if variant == "persistent"
        else ((f"{LAUNCHES}:merge", GENERATION, "0 * generation_bytes"),)
    )
    late = ((sender, SEND, LATE_FOR_0), GROWS)
    found = {
        "no wait": wrong((where, wait, "pass")),
        "waits for the wrong source": wrong(
            (where, source, source.replace("sources", "rank + 0 * sources"))
        ),
        "flag before data": wrong(
            (sender, ANNOUNCE, "pass"),
            (sender, SEND, f"{ANNOUNCE}; {held}; {SEND}"),
            calls="together",
        ),
        "takes the last call's flag": wrong(
            ("symmetric:wait_all", "((seen - epoch) & -3)", "((seen - epoch + 2) & -7)")
        ),
        "signals the next epoch": wrong(
            (sender, "flags_away, epoch,", "flags_away, epoch + 2 * (rank == 2),")
        ),
        "one generation": wrong(
            (sender, GENERATION, "0 * generation_bytes"),
            *readers,
            control=(slow_reader,),
            calls="together",
        ),
        "flags packed by shape": wrong(*PACKED, control=late, calls="two shapes"),
    }
    if variant != "persistent":
        sooner: Change = ("attention", "before + 1 == covered", "before == 0")
        found["the first to send sets the flag of all"] = wrong(
            slow_sender, sooner, calls="together"
        )
    if variant in FLAGS:
        slot = ("attention", "pieces // PER_FLAG if", "tl.maximum(pieces // PER_FLAG - 1, 0) if")
        found["waits for the flag before its own"] = wrong(slot, slow_sender, calls="together")
    if sender.endswith("exchange"):
        found["sends the next head"] = wrong(
            (sender, OWN_ROWS, OWN_ROWS.replace("heads", NEXT_HEADS)), calls="once"
        )
    return found


def mutants_of_counters() -> dict[str, Mutant]:
    """Mutants of persistent's counters inside a rank, and of what all variants share but the other
    mutants leave out."""
    return {
        "counters not set back": hangs(
            ("attention", "(arrived + numbers * 4), 0", "(arrived + numbers * 4), -1"),
            calls="together",
        ),
        "signals the last epoch": hangs(
            ("symmetric:signal_all", "_P,), 0, tl.int32) + epoch", "_P,), -2, tl.int32) + epoch"),
            calls="once",
        ),
        "split dropped": wrong(
            ("attention", "valid, HEADS, SPLITS, D", "valid, HEADS, SPLITS - 1, D"), calls="once"
        ),
        "lse ignored": wrong(
            ("attention", "shrink = tl.exp2(lse - base[None, :])", "shrink = tl.exp2(lse * 0)"),
            calls="once",
        ),
        "heads of the next group": wrong(
            ("attention", "group % KV_HEADS * shape", "(group + 1) % KV_HEADS * shape"),
            calls="once",
        ),
    }


def ll_mutants() -> dict[str, Mutant]:
    """Mutants of words that carry their epoch."""
    kernel, late = "flash_decode.persistent_ll", "!= epoch), tl.int32)"
    reads = "        o, _ = receive(o_at, lse_at, stride"
    late_reads = f"        {SLEEP}(3.0 * bool((rank == 2) & (number == 0) & (epoch % 4 == 1)))\n"
    slow_reader: Change = (kernel, reads, late_reads + reads)
    stores = "    lse_ptrs = tl.cast(away[:, None]"
    late_stores = f"    {SLEEP}(0.5 * bool((rank == 1) & (tl.max(row, 0) == 0)))\n{stores}"
    slow_sender: Change = (kernel, stores, late_stores)
    return {
        "no wait": wrong(("ll_protocol", "(words >> 32) != epoch", "(words >> 32) > epoch")),
        "takes words of the call before the last": wrong(
            ("ll_protocol", late, "< epoch - 4), tl.int32)"), calls="three"
        ),
        "one generation": hangs(
            (kernel, "generation_of(epoch) * MAILBOX", "0 * MAILBOX"),
            control=(slow_reader,),
            calls="together",
        ),
        "stamps the last epoch": hangs(
            ("ll_protocol", "tl.cast(epoch, tl.int64) << 32", "tl.cast(epoch - 2, tl.int64) << 32"),
            calls="once",
        ),
        "sent to itself only": hangs(
            (kernel, "(ranks < peers.WORLD)[:, None] & valid", "(ranks == rank)[:, None] & valid"),
            calls="once",
        ),
        "split dropped": wrong(
            (kernel, "valid, epoch, SPLITS, D", "valid, epoch, SPLITS - 1, D"), calls="once"
        ),
        "log-sum-exp not waited for": wrong(
            (kernel, " | missing(lse_words, wanted, epoch)", ""),
            control=(slow_sender,),
            calls="once",
        ),
    }


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """Two calls of a small ragged shape, the last rank late or all together; the first alone; many
    blocks of keys; a shape with more pieces behind one with fewer, 2 and 4 where flags are for
    pieces, else 1 and 2; three calls where words of the first lie where those of the third will."""
    several = variant in FLAGS

    def case(shape: FlashDecode, **knobs: int) -> Case:
        return shape, configured(variant, **knobs)

    small = case(
        FlashDecode(2, 4, 2, 64, 40, world),
        kv_splits=2,
        heads_per_flag=2 if variant == "fused_heads" else 1,
    )
    found = {
        "small": [small] * 2,
        "together": [small] * 2,
        "once": [small],
        "deep": [case(FlashDecode(1, 2, 1, 64, 4096, world), kv_splits=1, heads_per_flag=1)],
        "two shapes": [
            case(
                FlashDecode(1, heads, 1, 64, 20, world),
                kv_splits=1,
                heads_per_program=1 if several else 2,
                heads_per_flag=1,
            )
            for heads in (2, 4)
        ],
        "three": [small] * 3,
    }
    return found


MUTANTS = {variant: mutants(variant) for variant in SPACE.variants}


@pytest.mark.thorough
def test_mutants_are_refused(tmp_path: Path) -> None:
    together = "together", "once", "deep", "two shapes"
    refuse(tmp_path, MUTANTS, calls_of_a_trial, together, late_s=0.6)
