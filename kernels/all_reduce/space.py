"""What may vary in all_reduce: the variants, their knobs, the rules, and the configs to try first.
Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tftune.kernels.all_reduce import GRANULE, AllReduce
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.core.architecture import CUDA
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

BANK_FLAGS = FLAGS_PER_SOURCE // 4
"""Flags of one of two_shot's phases. Both banks lie in that half of a source's flags which peers
may set: see the rule of all_gather_gemm."""
INBOX_BYTES = 32 << 20
"""Bytes of one generation that one_shot may fill, beyond which two_shot sends far less."""
ONE_SHOT_BYTES = 4 << 20
"""Bytes of x up to which a library's one-shot is tried on more than two ranks."""
SMALL_BYTES, LARGE_BYTES = {2: 11 << 17, 4: 3 << 18, 8: 3 << 17}, 24 << 20
"""Bytes of x up to which torch's one-shot is the fastest library all-reduce of so many ranks behind
a switch, and from which NCCL's is again: in between it is torch's two-shot (2x H100, 2x, 4x and 8x
H200, captured, 2026-11-25 to 2026-11-29, `db/trials`)."""
FEW_BYTES, QUICK_US = 3 << 15, 1.5
"""Before a norm NCCL takes two ranks no longer than torch's one-shot, except up to FEW_BYTES where
a signal to a peer takes less than QUICK_US: it takes 0.86 on 2x H200, 2.45 on 2x H100."""
ENGINE_RULE = (
    f"form={engine_all_reduce.FORM} needs a serving engine in this process whose all-reduce takes "
    "so many bytes (docs/engines.md): take form=library"
)
ROLES_BYTES, FLAG_BYTES = 8 << 20, 1 << 16
"""Bytes of x from which two_shot with two roles is tried first, too, where rows are normalised, and
bytes that one of its flags then covers at most (2x H200, captured, `db/trials`)."""
FEWEST_COLUMNS = 256
"""The fewest columns of one part of a row: 512 bytes, which one program stores at once."""
TORCH = ("one_shot", "two_shot")
FORMS = ("library", *TORCH, engine_all_reduce.FORM)

_FORM = Choice(
    "form",
    FORMS,
    "the library's all-reduce, one of torch's over symmetric memory, or a serving engine's",
    "library",
)
_ROWS = Choice("rows_per_flag", (1, 2, 4, 8, 16, 32, 64), "rows that one flag covers", 1)
_PIECES = (
    Choice("parts", (1, 2, 4, 8, 16, 32), "parts of a row, which different programs send", 1),
    Choice("programs", (8, 16, 32, 64, 128), "programs, all resident at once", 128),
    Choice("num_warps", (1, 2, 4, 8, 16), "warps (waves) of one program", 8),
)
_ROLES = Choice(
    "roles",
    (1, 2),
    "2: half of the programs exchange, the others normalise rows as their sums arrive; "
    "1: all do both",
    1,
)
_FLAGGED = ("one_shot", "two_shot")
WORDS = ("one_shot_ll", "one_shot_lamport")
_FUSED = (*_FLAGGED, *WORDS)


def shares(shape: AllReduce, config: Config) -> int:
    """Pieces that one rank owns at most, in two_shot."""
    return -(-_pieces(shape, config) // shape.world)


def reads_in_place(shape: AllReduce, config: Config) -> bool:
    """Whether peers read this rank's x where the caller left it."""
    return shape.on_heap and config.variant in _FLAGGED


def one_shot_fits(shape: AllReduce) -> bool:
    """Whether x of every rank may lie in one generation. Two ranks send no more than in two
    shots."""
    return shape.world <= 2 or shape.world * shape.message_bytes <= INBOX_BYTES


def payload_bytes(shape: AllReduce) -> int:
    """Bytes of one generation that this shape needs: x of every rank; or the pieces that this rank
    owns from every rank, twice x at most, and the results."""
    one_shot = shape.world * shape.message_bytes if one_shot_fits(shape) else 0
    return max(one_shot, 3 * shape.message_bytes)


def mailbox_bytes(shape: AllReduce) -> int:
    """Bytes of one generation of the mailbox: a word of 8 bytes for two elements of every rank."""
    return shape.world * 4 * shape.elements


def _pieces(shape: AllReduce, c: Config) -> int:
    return int(-(-shape.m // c["rows_per_flag"]) * c["parts"])


def _work(shape: AllReduce, c: Config, variant: str) -> int:
    """What there is to deal to the programs of a phase, the one that has most."""
    if variant in WORDS:
        return int(shape.m * c["parts"])
    dealt = shares(shape, c) if variant == "two_shot" else _pieces(shape, c)
    return max(dealt, shape.m if shape.normed else 0)


_WORK = {
    "one_shot": "pieces, or rows to normalise",
    "two_shot": "pieces that one rank owns, or rows to normalise",
    "one_shot_ll": "parts of rows",
    "one_shot_lamport": "parts of rows",
}
"""What is dealt to the programs, in words."""


def _busy(variant: str) -> Rule:
    return Rule(
        f"programs must not exceed the {_WORK[variant]}, rounded up to a power of two, "
        "and 8 at least",
        lambda s, c, chip: c["programs"] <= max(8, power_of_two_from(_work(s, c, variant))),
        (variant,),
    )


ROLES_RULE = Rule(
    "without a norm no program has rows to normalise: take roles=1",
    lambda s, c, chip: c["roles"] == 1 or s.normed,
    ("two_shot",),
)
RULES = (
    Rule(
        "one rank has nothing to exchange: the form must be library",
        lambda s, c, chip: c["form"] == "library" or s.world > 1,
        ("bsp",),
    ),
    # What torch's CUDASymmetricMemoryOps.cu dispatches on: dtypes, and worlds of two_shot's.
    Rule(
        "torch's all-reduces over symmetric memory take bf16, not fp16: take form=library",
        lambda s, c, chip: c["form"] not in TORCH or s.dtype == "bf16",
        ("bsp",),
    ),
    Rule(
        "torch's two_shot takes 2, 4 or 8 ranks",
        lambda s, c, chip: c["form"] != "two_shot" or s.world in (2, 4, 8),
        ("bsp",),
    ),
    Rule(
        "torch's all-reduces over symmetric memory were made for NVIDIA: take form=library",
        lambda s, c, chip: c["form"] not in TORCH or chip is None or chip.can.backend == CUDA,
        ("bsp",),
        required=True,
    ),
    Rule(
        ENGINE_RULE,
        lambda s, c, chip: has_engine(s.world, s.message_bytes, c["form"]),
        ("bsp",),
        required=True,
    ),
    Rule(
        "a library's one_shot on more than two ranks is tried up to "
        f"{ONE_SHOT_BYTES >> 20} MB: each rank reads all others' x",
        lambda s, c, chip: (
            c["form"] != "one_shot" or s.world <= 2 or s.message_bytes <= ONE_SHOT_BYTES
        ),
        ("bsp",),
    ),
    Rule(
        f"parts must be equal, each a multiple of {GRANULE} columns",
        lambda s, c, chip: s.n % (GRANULE * c["parts"]) == 0,
        _FUSED,
    ),
    Rule(
        f"a part must have at least {FEWEST_COLUMNS} columns, unless it is a whole row",
        lambda s, c, chip: chip is None or c["parts"] == 1 or s.n >= FEWEST_COLUMNS * c["parts"],
        _FUSED,
    ),
    Rule(
        "rows_per_flag must not exceed M rounded up to a power of two",
        lambda s, c, chip: c["rows_per_flag"] <= power_of_two_from(s.m),
        _FLAGGED,
    ),
    resident_rule(_FUSED),
    *(_busy(variant) for variant in _FUSED),
    Rule(
        "a thread must have 16 bytes of a part of a row, and 4 where rows are "
        "normalised, unless there is one warp: take fewer parts or warps",
        lambda s, c, chip: (
            chip is None
            or c["num_warps"] == 1
            or power_of_two_from(s.n // c["parts"])
            >= (2 if s.normed else 8) * chip.wave_size * c["num_warps"]
        ),
        _FLAGGED,
    ),
    # 16,384 columns of 8 sources spill 332 bytes on gfx942 with 32 elements a thread, none with 16.
    Rule(
        "a thread may hold at most 32 elements of a part of a row, and 16 on CDNA, where "
        "it would spill: take more parts or warps",
        lambda s, c, chip: (
            chip is None
            or power_of_two_from(s.n // c["parts"])
            <= (16 if chip.can.unified_registers else 32) * chip.wave_size * c["num_warps"]
        ),
        _FLAGGED,
        learned=True,
    ),
    Rule(
        "a thread may hold at most 32 elements of a row that it normalises: take more warps",
        lambda s, c, chip: (
            chip is None
            or not s.normed
            or power_of_two_from(s.n) <= 32 * chip.wave_size * c["num_warps"]
        ),
        _FLAGGED,
    ),
    Rule(
        "16 waves of 64 threads have too few registers each: take 8",
        lambda s, c, chip: chip is None or chip.wave_size * c["num_warps"] <= 512,
        _FUSED,
    ),
    Rule(
        "x of all ranks must fit one_shot's inbox of 32 MB where there are more than "
        "two: take two_shot",
        lambda s, c, chip: one_shot_fits(s),
        ("one_shot",),
    ),
    # The second half of a source's flags is not for peers to set: see the rule of all_gather_gemm.
    Rule(
        f"one source may have at most {FLAGS_PER_SOURCE // 2} flags that peers set: take "
        "larger rows_per_flag or fewer parts",
        lambda s, c, chip: _pieces(s, c) <= FLAGS_PER_SOURCE // 2,
        ("one_shot",),
    ),
    Rule(
        f"one rank may own at most {BANK_FLAGS} pieces, a flag each in both phases: take "
        "larger rows_per_flag or fewer parts",
        lambda s, c, chip: shares(s, c) <= BANK_FLAGS,
        ("two_shot",),
    ),
    # Two generations suffice only where every rank hears from every other in both phases.
    Rule(
        "every rank must own a piece: take more parts or smaller rows_per_flag",
        lambda s, c, chip: _pieces(s, c) >= s.world,
        ("two_shot",),
    ),
    Rule(
        "what one rank owns, times the ranks, must be at most twice x: take smaller pieces",
        lambda s, c, chip: (
            s.world * shares(s, c) * c["rows_per_flag"] * (s.n // c["parts"]) <= 2 * s.elements
        ),
        ("two_shot",),
    ),
    ROLES_RULE,
    *map(one_die_rule, WORDS),
    Rule(
        "the words of all ranks must fit the workspace's mailbox of "
        f"{MAILBOX_BYTES >> 20} MB: take a variant with flags",
        lambda s, c, chip: mailbox_bytes(s) <= MAILBOX_BYTES,
        ("one_shot_ll",),
    ),
    Rule(
        "the words of all ranks must fit the workspace's mailbox of "
        f"{MAILBOX_BYTES >> 20} MB: take one_shot or two_shot",
        lambda s, c, chip: mailbox_bytes(s) <= 2 * MAILBOX_BYTES,
        ("one_shot_lamport",),
    ),
    Rule(
        "a thread must have two words of a part of a row, unless there is one warp: take "
        "fewer parts or warps",
        lambda s, c, chip: (
            chip is None
            or c["num_warps"] == 1
            or power_of_two_from(s.n // c["parts"]) >= 4 * chip.wave_size * c["num_warps"]
        ),
        WORDS,
    ),
    Rule(
        "a thread may hold at most 32 words of all ranks: take more parts or warps",
        lambda s, c, chip: (
            chip is None
            or power_of_two_from(s.world) * power_of_two_from(s.n // c["parts"] // 2)
            <= 32 * chip.wave_size * c["num_warps"]
        ),
        WORDS,
    ),
)


def defaults(shape: AllReduce, chip: Chip | None) -> tuple[Config, ...]:
    """The forms of BSP that there are here, the library's first; then each fused variant that can
    run the shape, with as many programs as there is work for."""
    forms = [Config("bsp", form=form) for form in forms_on(chip)]
    possible = (form for form in forms if SPACE.why_invalid(shape, form, chip) is None)
    return (*possible, *(config for name in _FUSED for config in of_variant(shape, chip, name)))


def likely_forms(shape: AllReduce, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured."""
    forms = ["library"]
    if takes_torch(shape, chip) and shape.message_bytes < LARGE_BYTES:
        quick = (chip.constant("signal_us") or QUICK_US) < QUICK_US
        few = quick and shape.message_bytes <= FEW_BYTES
        if shape.message_bytes > SMALL_BYTES[shape.world]:
            forms.insert(0, "two_shot")
        elif few or not shape.normed or shape.world > 2:
            forms.insert(0, "one_shot")
    return tuple(Config("bsp", form=form) for form in forms)


def forms_on(chip: Chip | None) -> tuple[str, ...]:
    """Whose all-reduces may be tried; without a chip, none of torch's."""
    return tuple(form for form in FORMS if chip is not None or form not in TORCH)


def has_engine(world: int, size_bytes: int, form: str) -> bool:
    """Whether this form can be had: an engine's only where one offers it for so many bytes."""
    return form != engine_all_reduce.FORM or engine_all_reduce.fits(world, size_bytes)


def takes_torch(shape: Any, chip: Chip) -> bool:
    """Whether torch's all-reduces over symmetric memory were measured on the like of it."""
    return bool(shape.world in SMALL_BYTES and shape.dtype == "bf16" and chip.switched)


def of_variant(shape: AllReduce, chip: Chip | None, variant: str) -> Iterator[Config]:
    """A fused variant with the parts that give every program one piece, or the nearest to them that
    is possible; empty where none is. Then two_shot with two roles, where many rows are normalised.
    """
    units = 16 if chip is None else chip.units
    programs = max(8, min(128, power_of_two_to(units)))
    wanted = max(1, programs // shape.m)
    nearest = sorted(_PIECES[0].values, key=lambda parts: (abs(int(parts) - wanted), parts))
    configs = (_config(shape, chip, variant, int(parts), programs) for parts in nearest)
    possible = (config for config in configs if SPACE.why_invalid(shape, config, chip) is None)
    for config in islice(possible, 1):
        yield config
        if variant == "two_shot" and shape.normed and shape.message_bytes >= ROLES_BYTES:
            roles = _with_roles(shape, config)
            if SPACE.why_invalid(shape, roles, chip) is None:
                yield roles


def _with_roles(shape: AllReduce, config: Config) -> Config:
    """The same with two roles, and flags that cover few enough rows for them to overlap."""
    rows = power_of_two_to(max(1, FLAG_BYTES * shape.m // shape.message_bytes))
    knobs = dict(config.knobs, roles=2, rows_per_flag=min(config["rows_per_flag"], rows))
    return Config(config.variant, **knobs)


def _config(shape: AllReduce, chip: Chip | None, variant: str, parts: int, programs: int) -> Config:
    """With so many parts: warps for 8 elements a thread, rows for one piece a program, and no more
    programs than have work."""
    lanes = 32 if chip is None else chip.wave_size
    columns = power_of_two_from(-(-shape.n // parts))
    knobs = {"parts": parts}
    if variant == "one_shot_lamport":
        warps = columns // 8 // lanes
    elif variant == "one_shot_ll":
        warps = max(columns // 4, power_of_two_from(shape.world) * columns // 64) // lanes
    else:
        owners = shape.world if variant == "two_shot" else 1
        each = shape.m * parts // (programs * owners)
        knobs["rows_per_flag"] = min(64, power_of_two_to(max(1, each)))
        row = power_of_two_from(shape.n) if shape.normed else 0
        warps = max(columns // 8, row // 32) // lanes
    knobs["num_warps"] = max(1, min(512 // lanes, warps))
    work = _work(shape, Config(variant, **knobs), variant)
    return Config(variant, **knobs, programs=min(programs, max(8, power_of_two_from(work))))


SPACE = Space(
    op="all_reduce",
    revisions={"bsp": 1, "one_shot": 1, "two_shot": 1, "one_shot_ll": 1, "one_shot_lamport": 1},
    variants={
        "bsp": (_FORM,),
        "one_shot": (_ROWS, *_PIECES),
        "two_shot": (_ROWS, *_PIECES, _ROLES),
        "one_shot_ll": _PIECES,
        "one_shot_lamport": _PIECES,
    },
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
    of_variant=of_variant,
)
