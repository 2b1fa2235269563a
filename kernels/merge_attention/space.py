"""What may vary in merge_attention: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from, power_of_two_to
from tftune.kernels.core.space import (
    FLAGS_PER_SOURCE,
    MAILBOX_BYTES,
    Choice,
    Config,
    Rule,
    Space,
    one_die_rule,
    resident_rule,
)
from tftune.kernels.merge_attention import MergeAttention

_PIECES = (
    Choice("rows_per_piece", (1, 2, 4, 8, 16), "heads that are sent and merged together", 4),
    Choice("programs", (8, 16, 32, 64, 128), "programs, all resident at once", 128),
    Choice("num_warps", (1, 2, 4, 8), "warps (waves) of one program", 4),
)
_FUSED = ("one_shot", "one_shot_ll")


def payload_bytes(shape: MergeAttention) -> int:
    """Bytes of one generation that this shape needs: a message of every rank."""
    return shape.world * shape.message_bytes


def mailbox_bytes(shape: MergeAttention) -> int:
    """Bytes of one generation of the mailbox: a word of 8 bytes for two elements, and one for each
    log-sum-exp."""
    return shape.world * (shape.rows * shape.head_dim * 4 + -(-shape.rows // 2) * 16)


def pieces(shape: MergeAttention, config: Config) -> int:
    """The pieces of one message."""
    return -(-shape.rows // int(config["rows_per_piece"]))


def _per_thread(shape: MergeAttention, config: Config, chip: Chip) -> float:
    """Elements of one thread where a piece of every rank is merged."""
    elements = power_of_two_from(shape.world) * config["rows_per_piece"] * shape.head_dim
    return float(elements / (config["num_warps"] * chip.wave_size))


RULES = (
    Rule(
        "rows_per_piece must not exceed a message's rows rounded up to a power of two",
        lambda s, c, chip: c["rows_per_piece"] <= power_of_two_from(s.rows),
        _FUSED,
    ),
    Rule(
        "programs must not exceed the pieces of all messages, rounded up to a power of two, and 8 "
        "at least",
        lambda s, c, chip: c["programs"] <= max(8, power_of_two_from(pieces(s, c) * s.world)),
        _FUSED,
    ),
    resident_rule(_FUSED),
    Rule(
        "a thread must have 4 bytes of a piece, unless there is one warp: take fewer warps",
        lambda s, c, chip: (
            chip is None
            or c["num_warps"] == 1
            or c["rows_per_piece"] * s.head_dim >= 2 * chip.wave_size * c["num_warps"]
        ),
        _FUSED,
    ),
    Rule(
        "a thread may hold at most 64 elements of all ranks' pieces: take more warps or fewer rows",
        lambda s, c, chip: chip is None or _per_thread(s, c, chip) <= 64,
        _FUSED,
    ),
    # The second half of a source's flags is not for peers to set: see the rule of all_gather_gemm.
    Rule(
        f"one source may have at most {FLAGS_PER_SOURCE // 2} flags that peers set: take more rows "
        "a piece",
        lambda s, c, chip: pieces(s, c) <= FLAGS_PER_SOURCE // 2,
        ("one_shot",),
    ),
    one_die_rule("one_shot_ll"),
    Rule(
        f"the words of all ranks must fit the workspace's mailbox of {MAILBOX_BYTES >> 20} MB: "
        "take one_shot",
        lambda s, c, chip: mailbox_bytes(s) <= MAILBOX_BYTES,
        ("one_shot_ll",),
    ),
)


def defaults(shape: MergeAttention, chip: Chip | None) -> tuple[Config, ...]:
    """BSP, then each fused variant that can run the shape, with as many programs as there is work
    for."""
    fused = (_config(shape, chip, name) for name in _FUSED)
    possible = (config for config in fused if SPACE.why_invalid(shape, config, chip) is None)
    return (Config("bsp"), *possible)


def _config(shape: MergeAttention, chip: Chip | None, variant: str) -> Config:
    """Pieces so large that 128 programs have one each, of at most 16 elements a thread and rank."""
    units, lanes = (16, 32) if chip is None else (chip.units, chip.wave_size)
    most = max(8, min(128, power_of_two_to(units)))
    held = 512 * lanes // (shape.head_dim * power_of_two_from(shape.world))  # by 8 warps
    rows = min(16, held, power_of_two_to(max(1, shape.rows * shape.world // most)))
    rows = max(1, min(rows, power_of_two_from(shape.rows)))
    elements = rows * shape.head_dim
    warps = power_of_two_from(-(-elements * power_of_two_from(shape.world) // (lanes * 32)))
    warps = max(1, min(8, warps, elements // (2 * lanes)))
    work = power_of_two_from(-(-shape.rows // rows) * shape.world)
    programs = max(8, min(most, work))
    return Config(variant, rows_per_piece=rows, programs=programs, num_warps=warps)


SPACE = Space(
    op="merge_attention",
    revisions={"bsp": 1, "one_shot": 1, "one_shot_ll": 1},
    variants={"bsp": (), "one_shot": _PIECES, "one_shot_ll": _PIECES},
    rules=RULES,
    defaults=defaults,
)
