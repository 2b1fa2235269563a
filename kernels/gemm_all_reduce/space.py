"""What may vary in gemm_all_reduce: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from tftune.kernels.all_reduce.space import (
    ENGINE_RULE,
    FORMS,
    SMALL_BYTES,
    TORCH,
    forms_on,
    has_engine,
    takes_torch,
)
from tftune.kernels.core.architecture import CUDA
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import (
    BLOCKS,
    LOADS,
    PIPELINE,
    STREAMS,
    Knobs,
    chunk_rule,
    copy_rule,
    default_streams,
    streams_rule,
    tile_rules,
)
from tftune.kernels.core.partials import (
    KNOBS,
    SPLIT,
    SPLIT_BYTES,
    default,
    row_rules,
    rules,
    slots_bytes,
    split_rules,
)
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import MAILBOX_BYTES, Choice, Config, Rule, Space, one_die_rule
from tftune.kernels.gemm_all_reduce import GemmAllReduce, exchange

_FORM = Choice(
    "form",
    FORMS,
    "whose all-reduce follows the vendor's GEMM: the library's, a serving engine's, or torch's "
    "over symmetric memory, into which the GEMM then writes",
    "library",
)
_BY_COPIES = (
    Choice(
        "chunks",
        (1, 2, 4, 8),
        "runs of an owner's rows: each has a GEMM, copies and flags of its own",
        2,
    ),
    STREAMS,
    Choice(
        "last",
        ("copies", "stores"),
        "what takes the sums of the last chunk to the peers: copy engines, or the kernel that adds",
        "copies",
    ),
)
_FLAGGED = ("one_shot", "two_shot")
FUSED = (*_FLAGGED, "one_shot_ll")
ONE_SHOT_BYTES = 1 << 27
"""The most bytes of all slots of one_shot: each rank sends the whole product to every other."""

CHUNK_ROWS = 1024
"""Rows that a chunk of push_ce has at least where two are the default. At each M measured on 2, 4
and 8 H200 and 2 H100 the default number of chunks is within 5 % of the fastest, in the geometric
mean (rows of last=copies until 2026-11-29)."""


def payload_bytes(shape: GemmAllReduce) -> int:
    """Bytes of a generation that any config of this shape needs at most: the slots of one_shot, as
    far as it may be taken, of two_shot in fp32 with the sums behind them, of push_ce, or of the
    kernel that follows vendor's GEMM."""
    product = shape.m * shape.n
    largest = 8 * 4 * product * shape.world  # 8 parts, in fp32
    one = max(min(largest, SPLIT_BYTES), min(4 * product * shape.world, ONE_SHOT_BYTES))
    two = max(4 * product, min(8 * 4 * product, SPLIT_BYTES)) + 2 * product + 16
    behind = exchange.payload_bytes(shape)
    return max(one, two if shape.m % shape.world == 0 else 0, 2 * slots_of(shape), behind)


def rows_of(shape: GemmAllReduce) -> int:
    """Rows of C that one rank adds up in push_ce; the last rank's may be fewer.

    >>> rows_of(GemmAllReduce(3001, 4096, 14336, 2))
    1501
    """
    return -(-shape.m // shape.world)


def chunk_rows(shape: GemmAllReduce, knobs: Knobs) -> int:
    """Rows of one chunk of push_ce, of which the last of an owner may have fewer."""
    return -(-rows_of(shape) // int(knobs["chunks"]))


def slots_of(shape: GemmAllReduce) -> int:
    """Bytes of push_ce's slots, one for each rank; those of the sums of all rows, too."""
    return shape.world * rows_of(shape) * shape.n * shape.element_bytes


def _last_rows(shape: GemmAllReduce) -> int:
    return shape.m - (shape.world - 1) * rows_of(shape)


def _copy_bytes(shape: GemmAllReduce, knobs: Knobs) -> int:
    return chunk_rows(shape, knobs) * shape.n * shape.element_bytes


def mailbox_bytes(shape: GemmAllReduce, knobs: Knobs) -> int:
    """Bytes of one generation of the mailbox: a word of 8 bytes for two elements of every slot."""
    return 4 * shape.m * shape.n * shape.world * int(knobs["split_k"])


def _words(shape: GemmAllReduce, knobs: Knobs) -> int:
    """Words of all slots of one row of a tile, which are polled at once."""
    slots = power_of_two_from(shape.world) * int(knobs["split_k"])
    return slots * int(knobs["block_n"]) // 2


def _symmetric_fits(shape: GemmAllReduce, chip: Chip | None) -> bool:
    cuda = chip is None or chip.can.backend == CUDA
    return cuda and shape.dtype == "bf16" and shape.world > 1


RULES = (
    Rule(
        "torch's all-reduces over symmetric memory need CUDA, bf16, and 2 ranks at least",
        lambda s, c, chip: c["form"] not in TORCH or _symmetric_fits(s, chip),
        ("bsp",),
        required=True,
    ),
    Rule(
        ENGINE_RULE,
        lambda s, c, chip: has_engine(s.world, s.m * s.n * s.element_bytes, c["form"]),
        ("bsp",),
        required=True,
    ),
    Rule(
        "torch's all-reduces over symmetric memory need rows of a multiple of 8 elements",
        lambda s, c, chip: c["form"] not in TORCH or s.n % 8 == 0,
        ("bsp",),
    ),
    Rule(
        "torch's two-shot all-reduce takes 2, 4 or 8 ranks",
        lambda s, c, chip: c["form"] != "two_shot" or s.world in (2, 4, 8),
        ("bsp",),
    ),
    Rule(
        "torch's two-shot all-reduce needs a C of a multiple of 8 elements for each rank",
        lambda s, c, chip: c["form"] != "two_shot" or s.m * s.n % (8 * s.world) == 0,
        ("bsp",),
    ),
    Rule(
        "all slots have at most 128 MB: take two_shot, which sends each row once",
        lambda s, c, chip: slots_bytes(s, c, 1) <= ONE_SHOT_BYTES,
        ("one_shot",),
        required=True,
    ),
    Rule(
        "m must be a multiple of the world: every rank adds up equally many rows",
        lambda s, c, chip: s.m % s.world == 0,
        ("two_shot",),
        required=True,
    ),
    one_die_rule("one_shot_ll"),
    Rule(
        f"the words of all slots must fit the workspace's mailbox of {MAILBOX_BYTES >> 20} MB: "
        "take a smaller split_k, or one_shot",
        lambda s, c, chip: mailbox_bytes(s, c) <= MAILBOX_BYTES,
        ("one_shot_ll",),
        required=True,
    ),
    Rule(
        "a row must be a multiple of 8 elements: words carry two of them, and go in pairs",
        lambda s, c, chip: s.n % 8 == 0,
        ("one_shot_ll",),
        required=True,
    ),
    Rule(
        "a thread may hold at most 32 words of all slots: take a smaller block_n or split_k, or "
        "more warps",
        lambda s, c, chip: chip is None or _words(s, c) <= 32 * chip.wave_size * c["num_warps"],
        ("one_shot_ll",),
    ),
    Rule(
        "one rank has nothing to send",
        lambda s, c, chip: s.world > 1,
        ("push_ce", "vendor"),
        required=True,
    ),
    Rule(
        "every chunk of the last rank must have a row: take fewer chunks",
        lambda s, c, chip: (c["chunks"] - 1) * chunk_rows(s, c) < _last_rows(s),
        ("push_ce",),
        required=True,
    ),
    Rule(
        "a row must be a multiple of 8 elements: programs take 16 bytes at a time",
        lambda s, c, chip: s.n % 8 == 0,
        ("push_ce", "vendor"),
        required=True,
    ),
    copy_rule(_copy_bytes),
    chunk_rule(chunk_rows, "push_ce"),
    streams_rule(("push_ce",)),
    *tile_rules(FUSED),
    *(rule for variant in _FLAGGED for rule in rules((variant,))),
    *row_rules(("one_shot_ll",)),
    *split_rules(("one_shot_ll",)),
    *exchange.RULES,
)


def defaults(shape: GemmAllReduce, chip: Chip | None = None) -> tuple[Config, ...]:
    """Every BSP form that runs here, the library's first; then the variants that can have this
    shape, with a sound tile."""
    forms = (Config("bsp", form=form) for form in forms_on(chip))
    possible = (form for form in forms if SPACE.why_invalid(shape, form, chip) is None)
    return (*possible, *_others(shape, chip))


@lru_cache(maxsize=16)
def _others(shape: GemmAllReduce, chip: Chip | None) -> tuple[Config, ...]:
    names = (*FUSED, "vendor", "push_ce")
    return tuple(config for name in names for config in of_variant(shape, chip, name))


def of_variant(shape: GemmAllReduce, chip: Chip | None, variant: str) -> Iterator[Config]:
    """Those of the `defaults` that are of this variant, no form of BSP."""
    wanted: Iterable[Config]
    if variant == "vendor":
        wanted = exchange.defaults(shape, chip)
    elif variant == "push_ce":
        streams = default_streams(shape.world, chip)
        many = 2 if rows_of(shape) >= 2 * CHUNK_ROWS else 1
        wanted = (
            Config(variant, chunks=chunks, copy_streams=streams, last="stores")
            for chunks in range(many, 0, -1)
        )
    else:
        wanted = (default(SPACE, shape, chip, variant),)
    possible = (each for each in wanted if SPACE.why_invalid(shape, each, chip) is None)
    return possible if variant == "vendor" else islice(possible, 1)


def likely_forms(shape: GemmAllReduce, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured: the form of its all-reduce, behind a GEMM torch's two-shot
    for large results as well."""
    forms = ["library"]
    if takes_torch(shape, chip):
        small = shape.m * shape.n * shape.element_bytes <= SMALL_BYTES[shape.world]
        forms.insert(0, "one_shot" if small else "two_shot")
    wanted = (Config("bsp", form=form) for form in forms)
    return tuple(form for form in wanted if SPACE.why_invalid(shape, form, chip) is None)


SPACE = Space(
    op="gemm_all_reduce",
    revisions={"bsp": 1, "one_shot": 1, "two_shot": 1, "one_shot_ll": 1, "vendor": 1, "push_ce": 1},
    variants={
        "bsp": (_FORM,),
        "one_shot": KNOBS,
        "two_shot": KNOBS,
        "one_shot_ll": (*BLOCKS, *PIPELINE, SPLIT, LOADS),
        "vendor": exchange.KNOBS,
        "push_ce": _BY_COPIES,
    },
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
    of_variant=of_variant,
)
