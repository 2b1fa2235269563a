"""Mutants of the variants of all_reduce, which its contract must refuse on emulated ranks: changes
to their mechanisms, by variant."""

from __future__ import annotations

from mutant import Change
from refusal import HOLD, SLEEP, Mutant, hangs, wrong, wrong_or_hangs

GENERATION = "generation_of(epoch) *"
LEFT = "finish(control, epoch)  # nothing below reads what it sets\n"
SIGNAL = "signal_all(flag(control, rank, {}), away, epoch, WORLD, WORLD_P, ARCH)"
WAIT_PIECE = "wait_all(flag(control, sources, piece)[:, None], epoch, (sources < WORLD)[:, None])"
WAIT_SHARE = "wait_all(flag(control, ranks, slot)[:, None], epoch, (ranks < cut.WORLD)[:, None])"
WAIT_SUM = "wait_all(flag(control, ranks, BANK + share)[:, None], epoch, there_are[:, None])"
WAIT_ROW = "wait_all(flag(control, sources[None, :], slots[:, None]), epoch, wanted)"
WAIT_ROW_SUM = "wait_all(flags[:, None], epoch, (parts < PARTS)[:, None])"
WAIT_BLOCK = "wait_all(flags[:, None], epoch, (parts < cut.PARTS)[:, None])"
RANGE = "in tl.static_range(WORLD"
ONE_PART = "weight, within, N, eps", "weight, columns < N // PARTS, N, eps"
OTHER = "    inbox = payload + (1 - generation_of(epoch)) * generation_bytes\n"


def mutants_of_one_shot() -> dict[str, Mutant]:
    file = "all_reduce.one_shot"
    load = "own = tl.load(x_ptr + places, mask=there, other=0.0)"
    signal = SIGNAL.format("piece")
    slow_reader: Change = (file, WAIT_PIECE, f"{WAIT_PIECE}; {HOLD.format(2)}")
    return {
        "no wait": wrong((file, WAIT_PIECE, "pass")),
        "no wait for rows": wrong((file, WAIT_ROW, "pass"), calls="rows"),
        "one source missing": wrong(
            (f"{file}:summed", "tl.static_range(WORLD)", "tl.static_range(WORLD - 1)")
        ),
        "flag before data": wrong(
            (file, signal, "pass"),
            (file, load, f"{signal}; {HOLD.format(2)}; {load}"),
            calls="together",
        ),
        "stale generation": wrong((file, LEFT, LEFT + OTHER)),
        "one generation": wrong(
            (file, GENERATION, "0 *"), control=(slow_reader,), calls="together"
        ),
        "signals the flag of the next piece": hangs(
            (file, signal, SIGNAL.format("piece + 1")), calls="together"
        ),
        "norm over a partial row": wrong((file, *ONE_PART), calls="rows"),
        "residual not added": wrong(
            ("reduce:add_norm", "rounded(y + residual,", "rounded(y + 0 * residual,"), calls="rows"
        ),
    }


def mutants_of_two_shot() -> dict[str, Mutant]:
    file = "all_reduce.two_shot"
    first, second = (
        SIGNAL.replace("WORLD", "cut.WORLD").format(place) for place in ("share", "BANK + share")
    )
    total = "total = tl.zeros((TILE, COLS_P), dtype=tl.float32)"
    slow_owner: Change = (f"{file}:sum_share", total, f"{SLEEP}(0.3 * bool(rank == 2)); {total}")
    load = "part = tl.load(x_ptr + places, mask=there, other=0.0)"
    slow_sender: Change = (file, load, f"{SLEEP}(0.3 * bool(rank == 2)); {load}")
    slow_reader: Change = (file, WAIT_SUM, f"{WAIT_SUM}; {SLEEP}(0.5 * bool(rank == 2))")
    normalizing = "first, step = work_range(pid, ARCH)"
    late = f"{SLEEP}(1.0 * bool((rank == 2) & (pid == programs - 1)))"
    after = "        for first in range(0, cut.ROWS, cut.TILE):\n            sum_share("
    return {
        "no wait for pieces": wrong((file, WAIT_SHARE, "pass")),
        "no wait for sums": wrong((file, WAIT_SUM, "pass"), control=(slow_owner,)),
        "no wait for sums of rows": wrong(
            (file, WAIT_ROW_SUM, "pass"), control=(slow_owner,), calls="rows"
        ),
        "one flag bank for both phases": wrong(
            (file, "BANK = tl.constexpr(BANK_FLAGS)", "BANK = tl.constexpr(0)"),
            control=(slow_owner,),
            calls="together",
        ),
        "one source missing": wrong(
            (f"{file}:sum_share", f"source {RANGE}", f"source {RANGE} - 1")
        ),
        "flag before pieces": wrong(
            (file, first, "pass"),
            (file, "own_inbox = inbox +", f"{first}; own_inbox = inbox +"),
            control=(slow_sender,),
            calls="together",
        ),
        "flag before the sum": wrong(
            (file, second, "pass"),
            (file, after, f"        {second}\n{after}"),
            control=(slow_owner,),
            calls="together",
        ),
        "no wait for sums of blocks": wrong(
            (file, WAIT_BLOCK, "pass"), control=(slow_owner,), calls="roles"
        ),
        "a wait for the first part of blocks": wrong(
            (file, WAIT_BLOCK, WAIT_BLOCK.replace("cut.PARTS", "1")),
            control=(slow_owner,),
            calls="blocks",
        ),
        "a block for a group of rows": hangs(
            (file, "block * BLOCK // cut.ROWS", "block"), calls="blocks"
        ),
        "the sum of the row before": wrong(
            (file, "y, residual = next_y,", "residual ="), calls="roles"
        ),
        "the residual of the row before": wrong(
            (file, "y, residual = next_y, next_residual", "y = next_y"), calls="roles"
        ),
        "blocks normalised over a partial row": wrong(
            (
                f"{file}:normalize_blocks",
                "weight, within, N, eps",
                "weight, columns < N // 2, N, eps",
            ),
            calls="roles",
        ),
        "a block's last row left out": wrong(
            (file, "(block + 1) * BLOCK)", "(block + 1) * BLOCK - 1)"), calls="roles"
        ),
        "sums of a first turn left out": hangs(
            (file, "share - senders, shares,", "share, shares,"), calls="roles"
        ),
        "one generation, a rank normalising late": wrong(
            (file, GENERATION, "0 *"),
            control=((file, normalizing, f"{late}; {normalizing}"),),
            calls="roles between others",
        ),
        "stale generation": wrong((file, LEFT, LEFT + OTHER + RESULTS)),
        "one generation": wrong(
            (file, GENERATION, "0 *"), control=(slow_reader,), calls="between others"
        ),
        "sums stay with their owner": wrong(
            (f"{file}:sum_share", f"step {RANGE})", "step in tl.static_range(1)")
        ),
        "norm over a partial row": wrong(
            (file, f"residual, {ONE_PART[0]}", f"residual, {ONE_PART[1]}"), calls="rows"
        ),
    }


RESULTS = "    results = inbox + tl.cast(M, tl.int64) * (N * 4)\n"


def mutants_of_words(variant: str) -> dict[str, Mutant]:
    """Of both variants whose rows travel as words."""
    file = f"all_reduce.{variant}"
    y = "y = paired(in_order(low, sources, WORLD)"
    return {
        "one source missing": wrong(
            ("reduce:in_order", "tl.static_range(1, WORLD)", "tl.static_range(1, WORLD - 1)"),
            calls="together",
        ),
        "halves swapped": wrong(
            ("pairs:paired", "rounded(low,", "rounded(high,"), calls="together"
        ),
        "sum not rounded": wrong((file, y, f"low, high = 2 * low, high; {y}")),
        "norm over a partial row": wrong(
            (file, "where(parts_there,", "where(parts_there & (parts[:, None] == 0),"),
            calls="rows",
        ),
        "weights of the first part": wrong(
            (file, "piece % PARTS * PAIRS + columns", "columns"), calls="rows"
        ),
        "stale generation": hangs(
            (file, POLL, f"inbox += (1 - 2 * generation_of(epoch)) * MAILBOX_BYTES; {POLL}"),
            calls="together",
        ),
    }


POLL = "mail = inbox + sources * size"
SLOW_READER = f"{SLEEP}(1.0 * bool(rank == 2)); {POLL}"


def mutants_of_one_shot_ll() -> dict[str, Mutant]:
    file = "all_reduce.one_shot_ll"
    return mutants_of_words("one_shot_ll") | {
        "no wait": wrong(("ll_protocol", "!= epoch), tl.int32)", "!= words >> 32), tl.int32)")),
        "one generation": hangs(
            (file, GENERATION, "0 *"), control=((file, POLL, SLOW_READER),), calls="together"
        ),
        "own x missing": wrong((file, "own[None, :], tl.cast(", "0, tl.cast(")),
    }


def mutants_of_one_shot_lamport() -> dict[str, Mutant]:
    file = "all_reduce.one_shot_lamport"
    return mutants_of_words("one_shot_lamport") | {
        "no wait": wrong(("lamport:take", "while in_any_warp(late, ARCH) != 0:", "while 0 > 1:")),
        "words stay": wrong(
            ("lamport:take", "store(pointers, tl.zeros_like(words), wanted)", "pass")
        ),
        "one generation": wrong_or_hangs(
            (file, GENERATION, "0 *"), control=((file, POLL, SLOW_READER),), calls="together"
        ),
        "own x missing": wrong((file, "own[None, :], arrived", "0, arrived")),
    }


MUTANTS = {
    "bsp": {
        "norm over a partial row": wrong(
            ("all_reduce.bsp", "weight, there, N, eps", "weight, columns < N // 2, N, eps"),
            calls="rows",
        ),
        "weight left out": wrong(
            ("reduce:add_norm", "rounded(scaled * weight,", "rounded(scaled,"), calls="rows"
        ),
    },
    "one_shot": mutants_of_one_shot(),
    "two_shot": mutants_of_two_shot(),
    "one_shot_ll": mutants_of_one_shot_ll(),
    "one_shot_lamport": mutants_of_one_shot_lamport(),
}
