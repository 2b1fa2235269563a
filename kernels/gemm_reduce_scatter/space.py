"""What may vary in gemm_reduce_scatter: the variants, their knobs, the rules, and the configs to
try first. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from tftune.kernels.all_gather_gemm.rules import CHUNK_ROWS
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import (
    BLOCKS,
    COPY_BYTES,
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
    SPLIT_BYTES,
    WIRE,
    default,
    flags,
    is_registered,
    owner_rows,
    row_rules,
    rules,
    slot_bytes,
    spans,
    worth_registering,
)
from tftune.kernels.core.space import FLAGS_PER_SOURCE, Choice, Config, Rule, Space
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

_FORM = Choice(
    "form",
    ("scatter", "scatter_registered"),
    "the library's reduce-scatter of the whole product; registered: it knows that memory "
    "beforehand",
    "scatter",
)
_COMM = Choice(
    "comm_programs", (8, 16, 32, 64), "programs that forward finished tiles; the others compute", 16
)
_BY_COPIES = (
    Choice(
        "chunks",
        (1, 2, 4),
        "runs of an owner's rows, each with a GEMM, a copy and a flag of its own",
        1,
    ),
    STREAMS,
)
_CHUNKED = (
    Choice(
        "chunks",
        (2, 4, 8),
        "runs of every owner's rows, whose reduce-scatter the GEMM of the next one hides",
        2,
    ),
    _FORM,
)
FUSED = ("push", "pull", "relay")
_TILED = (*FUSED, "push_ce")


def payload_bytes(shape: GemmReduceScatter) -> int:
    """Bytes of a generation that any config of this shape needs at most: the product in fp32, or
    all parts of a split one."""
    product = 4 * shape.m * shape.n
    return max(product, min(8 * product, SPLIT_BYTES))


def chunk_rows(shape: GemmReduceScatter, knobs: Knobs) -> int:
    """Rows of an owner that one copy moves: whole row tiles, in the last chunk what is left.

    >>> chunk_rows(GemmReduceScatter(3000, 8192, 28672, 4), {"block_m": 128, "chunks": 4})
    256
    """
    block_m, chunks = int(knobs["block_m"]), int(knobs["chunks"])
    row_tiles = -(-owner_rows(shape, shape.world) // block_m)
    return -(-row_tiles // chunks) * block_m


def _copy_bytes(shape: GemmReduceScatter, knobs: Knobs) -> int:
    """Bytes of one copy to one peer."""
    rows = min(chunk_rows(shape, knobs), shape.shard_rows)
    return slot_bytes(shape, knobs, shape.world) // shape.shard_rows * rows


def vendor_rows(shape: GemmReduceScatter, knobs: Knobs) -> int:
    """Rows of an owner that one copy of `vendor_ce` moves, in the last chunk what is left.

    >>> vendor_rows(GemmReduceScatter(3000, 8192, 28672, 4), {"chunks": 4})
    188
    """
    return -(-shape.shard_rows // int(knobs["chunks"]))


def _vendor_bytes(shape: GemmReduceScatter, knobs: Knobs) -> int:
    return vendor_rows(shape, knobs) * shape.n * shape.element_bytes


def _chunk_is_large(shape: GemmReduceScatter, knobs: Knobs) -> bool:
    each = shape.m // int(knobs["chunks"])
    return each >= CHUNK_ROWS and each * shape.n * shape.element_bytes >= COPY_BYTES * shape.world


RULES = (
    Rule(
        "NCCL alone registers buffers, and from a product of 4 MB on: a smaller one arrives no "
        "sooner",
        lambda s, c, chip: (
            not is_registered(c["form"]) or chip is None or worth_registering(s, chip)
        ),
        ("bsp", "bsp_chunked"),
    ),
    Rule(
        "a tile must lie within one owner's rows: take a smaller block_m; fewer rows are no work "
        "for this variant",
        lambda s, c, chip: not spans(s, c, s.world),
        ("relay", "push_ce"),
        required=True,
    ),
    # Those that tell this rank that it may forward them: the half that peers may not set.
    Rule(
        f"a rank may forward at most {FLAGS_PER_SOURCE // 2} groups of tiles: take larger "
        "tiles_per_flag or tiles",
        lambda s, c, chip: (s.world - 1) * flags(s, c, s.world) <= FLAGS_PER_SOURCE // 2,
        ("relay",),
        required=True,
    ),
    Rule(
        "comm_programs must leave at least half of the chip to the GEMM",
        lambda s, c, chip: chip is None or 2 * c["comm_programs"] <= chip.units,
        ("relay",),
        required=True,
    ),
    Rule(
        "one rank has nothing to send",
        lambda s, c, chip: s.world > 1,
        ("push_ce", "bsp_chunked"),
    ),
    Rule(
        "one rank has nothing to send",
        lambda s, c, chip: s.world > 1,
        ("vendor_ce",),
        required=True,
    ),
    Rule(
        "a row must be a multiple of 8 elements: programs take 16 bytes at a time",
        lambda s, c, chip: s.n % 8 == 0,
        ("vendor_ce",),
        required=True,
    ),
    Rule(
        "every chunk must have a row: take fewer chunks",
        lambda s, c, chip: (c["chunks"] - 1) * vendor_rows(s, c) < s.shard_rows,
        ("vendor_ce",),
        required=True,
    ),
    Rule(
        "chunks must not exceed the row tiles of an owner",
        lambda s, c, chip: (c["chunks"] - 1) * c["block_m"] < owner_rows(s, s.world),
        ("push_ce",),
    ),
    copy_rule(_copy_bytes),
    copy_rule(_vendor_bytes, "vendor_ce"),
    chunk_rule(vendor_rows, "vendor_ce"),
    streams_rule(("push_ce", "vendor_ce")),
    Rule(
        "chunks must not exceed an owner's rows",
        lambda s, c, chip: c["chunks"] <= owner_rows(s, s.world),
        ("bsp_chunked",),
    ),
    Rule(
        f"a chunk must have at least {CHUNK_ROWS} rows, and {COPY_BYTES >> 10} KB for each rank: "
        "take fewer; a smaller call is no work for this variant",
        lambda s, c, chip: chip is None or _chunk_is_large(s, c),
        ("bsp_chunked",),
    ),
    *tile_rules(_TILED),
    *rules(FUSED),
    *row_rules(("push_ce",)),
)


@lru_cache(maxsize=16)
def defaults(shape: GemmReduceScatter, chip: Chip | None = None) -> tuple[Config, ...]:
    """Every BSP form of this shape, then the variants that can have it, with a sound tile."""
    names = ("push", "pull", "relay", "push_ce", "vendor_ce", "bsp_chunked")
    others = (config for name in names for config in of_variant(shape, chip, name))
    return (*(Config("bsp", form=form) for form in _forms(shape, chip)), *others)


def _forms(shape: GemmReduceScatter, chip: Chip | None) -> tuple[Any, ...]:
    known = chip is not None and worth_registering(shape, chip)
    return _FORM.values if known else _FORM.values[:1]


def of_variant(shape: GemmReduceScatter, chip: Chip | None, variant: str) -> Iterator[Config]:
    """That of the `defaults` that is of this variant, no form of BSP."""
    forwarding = 16 if chip is None or chip.switched else 64
    streams = default_streams(shape.world, chip)
    own = {"relay": {"comm_programs": forwarding}, "push_ce": {"copy_streams": streams}}
    if variant == "bsp_chunked":
        form = _forms(shape, chip)[-1]
        wanted = [Config(variant, chunks=chunks, form=form) for chunks in (4, 2)]
    elif variant == "vendor_ce":
        wanted = [Config(variant, chunks=1, copy_streams=streams)]
    else:
        wanted = [default(SPACE, shape, chip, variant, **own.get(variant, {}))]
    return islice((one for one in wanted if SPACE.why_invalid(shape, one, chip) is None), 1)


def likely_forms(shape: GemmReduceScatter, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured."""
    return (Config("bsp", form="scatter"),)


SPACE = Space(
    op="gemm_reduce_scatter",
    revisions={
        "bsp": 1,
        "push": 1,
        "pull": 1,
        "relay": 1,
        "push_ce": 1,
        "vendor_ce": 1,
        "bsp_chunked": 1,
    },
    variants={
        "bsp": (_FORM,),
        "push": KNOBS,
        "pull": KNOBS,
        "relay": (*KNOBS, _COMM),
        "push_ce": (*BLOCKS, *PIPELINE, LOADS, WIRE, *_BY_COPIES),
        "vendor_ce": _BY_COPIES,
        "bsp_chunked": _CHUNKED,
    },
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
    of_variant=of_variant,
)
