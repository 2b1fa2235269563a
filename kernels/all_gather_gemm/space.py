"""What may vary in all_gather_gemm: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import (
    BLOCKS,
    LOADS,
    PIPELINE,
    Knobs,
    accumulators,
    fits_registers,
    shared_bytes,
)
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import FLAGS_PER_SOURCE, Choice, Config, Rule, Space

_TILE = (
    *BLOCKS,
    Choice(
        "split_k",
        (1, 2, 4, 8),
        "parts of K that programs compute side by side and add up: more programs where tiles are "
        "few",
        1,
    ),
    *PIPELINE,
)
_CDNA = (
    Choice(
        "xcds",
        (1, 8),
        "dies that programs are dealt to in turn; 8 gives each die of an MI300X neighbouring tiles",
        1,
        "several_dies",
    ),
    Choice(
        "waves_per_eu",
        (0, 2),
        "waves that registers must leave room for on each SIMD; 0 leaves it to the compiler",
        0,
        "occupancy_hint",
    ),
)
_SCHEDULE = Choice(
    "schedule",
    ("static", "dynamic"),
    "tiles by turn; or each as it is claimed, which lets communicating programs compute",
    "static",
)
_EXCHANGE = (
    _SCHEDULE,
    Choice("comm_programs", (8, 16, 32, 64), "programs that move data; the others compute", 16),
    Choice("rows_per_flag", (16, 64, 128, 512), "rows of A that one flag covers", 128),
    Choice("k_per_flag", (256, 512, 1024, 8192), "columns of A that one flag covers", 1024),
)
_ORDER = Choice(
    "order",
    ("chunk", "column", "group"),
    "what is sent first: a chunk to all peers; the first columns of all rows; or what the next "
    "peer needs of a group of tiles",
    "chunk",
)
_FORM = Choice(
    "form",
    (
        "gather_copy",
        "gather_copy_registered",
        "local_transpose",
        "local_transpose_registered",
        "gather_registered",
        "gather",
    ),
    "how the library builds the gathered A: gather then copy into place; transpose the shard, "
    "then gather in place; only gather; "
    "registered: it knows that memory beforehand, and copies straight into it (NCCL)",
    "gather_copy",
)
_STREAMS = Choice(
    "copy_streams",
    (1, 3),
    "side streams that copies are dealt out to: more let several copy engines work at once",
    1,
)
_COPY_ROWS = (16, 64, 256, 512, 1024, 2048, 8192)
_FIRST_ROWS = (16, 64, 128, 256, 512, 1024, 2048, 8192)
_COPIES = (
    _SCHEDULE,
    Choice("comm_programs", (0,), "none: copy engines move data, and all programs compute", 0),
    Choice("rows_per_flag", _COPY_ROWS, "rows of A that one copy moves and one flag covers", 512),
    Choice("k_per_flag", (1 << 20,), "whole rows of a shard: a copy moves few long runs", 1 << 20),
    _STREAMS,
)
_CHUNKED = (
    Choice("first_rows", _FIRST_ROWS, "rows of a shard in the chunk that comes first", 512),
    Choice(
        "growth",
        (1, 7),
        "rows of each next chunk, in those of the one before it, whose GEMM hides its flight",
        7,
    ),
    _STREAMS,
)
_REGISTERED = "_registered"
_FUSED = ("pull", "staged", "push")
_TILED = (*_FUSED, "push_ce")
_BY_DESCRIPTOR = ("staged", "push", "push_ce")
COPY_BYTES = 1 << 18
"""What a copy must move at least: starting one costs about 2.7 us, in which a link moves more (an
NVLink4 pair, kernels/core/chips.py)."""
REGISTERED_BYTES = 1 << 22
"""Bytes of the gathered A from which on registered buffers are tried: on two H200 2 MB arrive no
sooner, and of 8 to 134 MB one form or the other does (docs/notebook.md)."""
COPIES = 16
"""Copies of one shard to each peer at most: every one, and its flag's, is queued by the host or is
a node of a graph."""
CHUNK_BYTES = 1 << 17
"""What one flag of push best covers on H200: of 512 KB few programs copy at once, and 32 KB are too
little for a signal."""
CHUNK_ROWS = 128
"""Rows of C that a chunk's own GEMM has at least: below, it reads all of B for less than a row of
tiles."""


def reads_in_place(shape: AllGatherGemm, config: Config) -> bool:
    """Whether peers read this rank's shard where the caller left it."""
    return shape.on_heap and config.variant in ("pull", "staged")


def moving_programs(shape: AllGatherGemm, config: Config) -> int:
    """Programs that move data. `pull` has none where shards are read in place."""
    none = reads_in_place(shape, config) and config.variant == "pull"
    return 0 if none else int(config["comm_programs"])


def _flags(shape: AllGatherGemm, config: Config) -> int:
    """Flags of one source: row chunks times column chunks of its shard."""
    return -(-shape.shard_rows // config["rows_per_flag"]) * -(
        -shape.shard_columns // config["k_per_flag"]
    )


def _order_differs(shape: AllGatherGemm, config: Config) -> bool:
    """Whether this order is not that of "chunk"."""
    flags, columns = _flags(shape, config), -(-shape.shard_columns // config["k_per_flag"])
    return config["order"] == "chunk" or (
        flags > 1 if config["order"] == "group" else 1 < columns < flags
    )


def _steps(shape: AllGatherGemm, config: Config) -> int:
    """Column chunks of the whole K, each with flags of its own."""
    chunks: int = -(-shape.shard_columns // config["k_per_flag"])
    return chunks * (shape.world if shape.shard == "k" else 1)


def _tiles(shape: AllGatherGemm, config: Config) -> int:
    return int(-(-shape.m // config["block_m"]) * -(-shape.n // config["block_n"]))


def _units(shape: AllGatherGemm, config: Config) -> int:
    """Pieces of work: parts of tiles."""
    return _tiles(shape, config) * int(config["split_k"])


def parts_bytes(shape: AllGatherGemm, config: Config) -> int:
    """Bytes of the fp32 tiles that split_k leaves in memory."""
    rows = -(-shape.m // config["block_m"]) * config["block_m"]
    columns = -(-shape.n // config["block_n"]) * config["block_n"]
    return int(4 * rows * columns * config["split_k"])


def spans_sources(shape: AllGatherGemm, config: Config) -> bool:
    """Whether one load by descriptor takes rows of several sources, which must then lie side by
    side in the inbox, the own ones too."""
    return (
        config["loads"] == "descriptor"
        and shape.shard == "m"
        and shape.shard_rows % int(config["block_m"]) != 0
    )


def _form_fits(shape: AllGatherGemm, config: Config, chip: Chip | None) -> bool:
    """With one rank there is nothing to gather, and every form is the GEMM alone."""
    return shape.world == 1 or (plain_form(config["form"]) == "gather") == (shape.shard == "m")


def plain_form(form: str) -> str:
    """How BSP builds the gathered A, wherever that lies.

    >>> plain_form("gather_copy_registered")
    'gather_copy'
    """
    return form.removesuffix(_REGISTERED)


def _rows_are_aligned(shape: AllGatherGemm, config: Config) -> bool:
    if shape.b_layout == "kn" and shape.n % 8:
        return False
    return shape.shard_columns % int(config["block_k"]) == 0


def is_registered(form: str) -> bool:
    """Whether the library knows BSP's buffers beforehand."""
    return form.endswith(_REGISTERED)


def _worth_registering(shape: AllGatherGemm, chip: Chip) -> bool:
    peers = shape.world > 1 and chip.can.registered_buffers
    return peers and shape.gathered_bytes >= REGISTERED_BYTES


def _two_waves(knobs: Knobs) -> bool:
    """Whether two waves share a SIMD (CDNA)."""
    return knobs["num_warps"] == 8 or knobs["waves_per_eu"] == 2


def _copy_bytes(shape: AllGatherGemm, rows: int) -> int:
    """Bytes of the copy of so many rows of a shard, or of the whole shard where it has fewer."""
    return min(rows, shape.shard_rows) * shape.shard_columns * shape.element_bytes


def _chunk_is_large(shape: AllGatherGemm, config: Config) -> bool:
    rows = min(config["first_rows"], shape.shard_rows)
    return (
        rows * (shape.world if shape.shard == "m" else 1) >= CHUNK_ROWS
        and _copy_bytes(shape, rows) >= COPY_BYTES
    )


RULES = (
    Rule("gather_copy and local_transpose need A sharded along K, gather needs it sharded along M",
         _form_fits, ("bsp",)),
    Rule("NCCL alone registers buffers, and from a gathered A of 4 MB on: a smaller one arrives "
         "no sooner",
         lambda s, c, chip: not is_registered(c["form"]) or chip is None
             or _worth_registering(s, chip), ("bsp",)),
    Rule("block_m must not exceed M rounded up to a power of two, and 16 at least",
         lambda s, c, chip: c["block_m"] <= max(16, power_of_two_from(s.m)), _TILED),
    Rule("block_n must not exceed N rounded up to a power of two, and 32 at least",
         lambda s, c, chip: c["block_n"] <= max(32, power_of_two_from(s.n)), _TILED),
    Rule("rows_per_flag must not exceed a shard's rows rounded up to a power of two, and 16 at "
         "least",
         lambda s, c, chip: c["rows_per_flag"] <= max(16, power_of_two_from(s.shard_rows)), _TILED),
    Rule("k_per_flag must not exceed four times a shard's columns, unless it is the smallest",
         lambda s, c, chip: c["k_per_flag"] <= max(256, 4 * s.shard_columns), _FUSED),
    # Not all of FLAGS_PER_SOURCE for any variant: the second half belongs to this rank's own
    # signals (`staged`), and a peer that is one call ahead must not write there.
    Rule(f"one source may have at most {FLAGS_PER_SOURCE // 2} flags that peers set: take larger "
         "rows_per_flag or k_per_flag",
         lambda s, c, chip: _flags(s, c) <= FLAGS_PER_SOURCE // 2, _FUSED),
    Rule("block_k must not exceed a shard's columns rounded up to a power of two, and 64 at least",
         lambda s, c, chip: c["block_k"] <= max(64, power_of_two_from(s.shard_columns)), _TILED),
    Rule("group_m must be 1 where there is one row tile",
         lambda s, c, chip: c["group_m"] == 1 or s.m > c["block_m"], _TILED),
    Rule("split_k must not exceed the flags along K: world times a shard's column chunks, or its "
         "column chunks alone along M",
         lambda s, c, chip: c["split_k"] <= _steps(s, c), _TILED),
    Rule("split_k must be 1 where there is a whole tile for each program that computes",
         lambda s, c, chip: c["split_k"] == 1 or chip is None
             or _tiles(s, c) <= chip.units - c["comm_programs"], _TILED),
    # The parts of a tile wait for each other.
    Rule("split_k must not exceed the programs that compute: all parts of a tile run at once; "
         "take fewer comm_programs",
         lambda s, c, chip: chip is None
             or c["split_k"] <= max(1, chip.units - c["comm_programs"]), _TILED, required=True),
    Rule("xcds must be 1 where programs claim tiles: which die takes one is not known",
         lambda s, c, chip: c["xcds"] == 1 or c["schedule"] == "static", _TILED),
    Rule("schedule must be static where every program has one tile at most",
         lambda s, c, chip: chip is None or c["schedule"] == "static"
             or _units(s, c) > chip.units - c["comm_programs"], _TILED),
    Rule("a tile must give each thread at least 8 accumulators: take fewer warps",
         lambda s, c, chip: chip is None or c["num_warps"] == 4 or accumulators(c, chip) >= 8,
         _TILED),
    Rule("a thread may hold at most 128 fp32 accumulators: take a smaller tile or more warps",
         lambda s, c, chip: chip is None or accumulators(c, chip) <= 128, _TILED),
    Rule("where two waves share a SIMD (8 waves, or waves_per_eu=2) a thread has 256 registers, "
         "and would spill: take a smaller tile",
         lambda s, c, chip: (chip is None or not chip.can.unified_registers
                             or not _two_waves(c) or fits_registers(c, chip)), _TILED,
         learned=True),
    Rule("4 waves of 128 accumulators a thread spill with Triton 3.6: take a smaller tile or 8 "
         "waves",
         lambda s, c, chip: (chip is None or not chip.can.unified_registers or c["num_warps"] == 8
                             or accumulators(c, chip) < 128), _BY_DESCRIPTOR,
         learned=True),
    Rule("the pipeline's tiles must fit the chip's shared memory: take a smaller tile or fewer "
         "stages",
         lambda s, c, chip: chip is None or shared_bytes(s, c, chip) <= chip.shared_bytes, _TILED),
    # A descriptor's rows must be 16 bytes apart (CUDA driver API, cuTensorMapEncodeTiled): those of
    # A have K or K / world elements; those of B have N where it is [K, N], else K. C is stored by
    # pointers.
    Rule("descriptor loads need a shard's columns to be a multiple of block_k, and N of 8 "
         "where B is [K, N]",
         lambda s, c, chip: c["loads"] == "pointer" or _rows_are_aligned(s, c), _BY_DESCRIPTOR),
    Rule("only push reads tiles of several sources by descriptor: a shard's rows must be a "
         "multiple of block_m where A is sharded along M",
         lambda s, c, chip: not spans_sources(s, c), ("staged", "push_ce")),
    Rule("order must be chunk unless a shard has several flags; and column needs several along "
         "its rows and along K",
         lambda s, c, chip: _order_differs(s, c), _FUSED),
    Rule("pull moves nothing of operands on the heap, and one flag covers a shard: comm_programs "
         "must be 8, rows_per_flag 16 and order chunk, and none of them is used",
         lambda s, c, chip: not s.on_heap
             or (c["comm_programs"], c["rows_per_flag"], c["order"]) == (8, 16, "chunk"),
         ("pull",)),
    Rule("comm_programs must leave at least half of the chip to the GEMM",
         lambda s, c, chip: chip is None or 2 * c["comm_programs"] <= chip.units, _FUSED),
    Rule("a copy must move at least 256 KB: take more rows_per_flag; a smaller shard is no work "
         "for copy engines",
         lambda s, c, chip: chip is None or _copy_bytes(s, c["rows_per_flag"]) >= COPY_BYTES,
         ("push_ce",)),
    Rule(f"a shard may go to each peer in at most {COPIES} copies: take more rows_per_flag",
         lambda s, c, chip: _flags(s, c) <= COPIES, ("push_ce",)),
    Rule("a copy moves whole rows of a shard, of at most k_per_flag columns",
         lambda s, c, chip: s.shard_columns <= c["k_per_flag"], ("push_ce",)),
    Rule("a chunk must have at least 128 rows of C, and a copy 256 KB: take more first_rows; a "
         "smaller call is no work for this variant",
         lambda s, c, chip: chip is None or _chunk_is_large(s, c), ("bsp_chunked",)),
    Rule("first_rows must not exceed a shard's rows rounded up to a power of two, and 16 at least",
         lambda s, c, chip: c["first_rows"] <= max(16, power_of_two_from(s.shard_rows)),
         ("bsp_chunked",)),
    Rule(f"a shard may come in at most {COPIES} chunks: take more first_rows or growth",
         lambda s, c, chip: c["growth"] > 1 or s.shard_rows < (COPIES + 1) * c["first_rows"],
         ("bsp_chunked",)),
    Rule("growth must be 1 where no chunk could be larger than the first one",
         lambda s, c, chip: c["growth"] == 1 or s.shard_rows > 2 * c["first_rows"],
         ("bsp_chunked",)),
    Rule("copy_streams must be fewer than the ranks",
         lambda s, c, chip: c["copy_streams"] == 1 or c["copy_streams"] < s.world,
         ("push_ce", "bsp_chunked")),
)  # fmt: skip


@lru_cache(maxsize=16)
def defaults(shape: AllGatherGemm, chip: Chip | None = None) -> tuple[Config, ...]:
    """Every BSP form of this shape, then one sound config for each other variant, after the tiles
    that published kernels use, and on Hopper another of push, with the GEMM's own fastest tile; the
    copy engine's variants only where a chip's rules let them have this shape."""
    in_place = shape.shard == "m" or shape.world == 1
    forms = ("gather",) if in_place else ("local_transpose", "gather_copy")
    plain = [Config("bsp", form=form) for form in forms]
    registered = [
        Config("bsp", form=f"{form}{_REGISTERED}")
        for form in forms
        if chip is not None and _worth_registering(shape, chip)
    ]
    bsp = (
        *plain,
        *registered,
    )
    # The first is what ranks fall back to, whether they know their chip or not: the same for all.
    knobs = _default_tile(shape, chip) | _default_exchange(shape)
    knobs["split_k"] = _default_split(shape, chip, knobs)
    pull, staged, push = (Config(variant, **knobs) for variant in _FUSED)
    if shape.on_heap:
        pull = Config("pull", **knobs | dict(comm_programs=8, rows_per_flag=16))
    # On Hopper descriptors are never slower (docs/notebook.md).
    by_descriptor = [
        _where_possible(shape, chip, config, loads="descriptor") for config in (push, staged)
    ]
    push_first = _where_possible(
        shape, chip, by_descriptor[0], order=_default_order(shape, chip, push)
    )
    push_core = _with_core_tile(shape, chip, push_first)
    copies = [
        _where_possible(shape, chip, config, loads="descriptor")
        for config in _default_copies(shape, chip, knobs)
    ]
    return (
        *bsp,
        push_first,
        *push_core,
        *copies,
        *_default_chunks(shape, chip),
        by_descriptor[1],
        pull,
    )


def likely_forms(shape: AllGatherGemm, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured, captured. Registered buffers from 4 MB on, on two ranks,
    where they take 2 to 7 % less. Along K two ranks copy after the gather, more ranks transpose
    before it: that takes 4 to 9 % less from M = 64 on, but 35 to 44 % more at M = 2 and 4 (H200,
    2026-11-22, docs/notebook.md)."""
    if shape.shard == "m":
        forms = ["gather"]
    else:
        forms = (
            ["gather_copy", "local_transpose"]
            if shape.world == 2 or shape.m in (2, 3, 4)
            else ["local_transpose", "gather_copy"]
        )
    registered = (
        [f"{form}{_REGISTERED}" for form in forms]
        if shape.world == 2 and _worth_registering(shape, chip)
        else []
    )
    return tuple(Config("bsp", form=form) for form in (*registered, *forms))


def _where_possible(
    shape: AllGatherGemm, chip: Chip | None, config: Config, **knobs: Any
) -> Config:
    """The config with these knobs where the shape and the chip, if it is known, allow them."""
    changed = Config(config.variant, **dict(config.knobs) | knobs)
    return (
        changed if chip is not None and SPACE.why_invalid(shape, changed, chip) is None else config
    )


def _default_order(shape: AllGatherGemm, chip: Chip | None, config: Config) -> str:
    """All tiles at once want the first columns of every row; more of them the shard of one peer
    after another, if one peer can have all bandwidth, which private links do not give."""
    if chip is None or not chip.switched:
        return "chunk"
    return "column" if shape.shard == "m" and _tiles(shape, config) <= chip.units else "group"


def _default_tile(shape: AllGatherGemm, chip: Chip | None) -> dict[str, int]:
    staged = chip is not None and chip.can.stage_in_registers
    block_m = max(16, min(128, power_of_two_from(shape.m)))
    block_n = min(256 if shape.m >= 1024 else 128, max(32, power_of_two_from(shape.n)))
    return dict(
        block_m=block_m,
        block_n=block_n,
        block_k=128 if staged and shape.m <= 32 and shape.shard_columns > 64 else 64,
        group_m=8 if shape.m > block_m else 1,
        num_warps=8 if block_m * block_n >= 64 * 128 else 4,
        num_stages=2 if staged else 3 if block_n == 256 else 5 if block_m <= 32 else 4,
        xcds=8 if chip is not None and chip.several_dies else 1,
    )


_CORE_TILES = tuple(
    dict(zip(("block_m", "block_n", "block_k", "num_stages", "num_warps"), values, strict=True))
    for values in (
        (64, 64, 128, 5, 4),
        (64, 128, 128, 4, 4),
        (128, 128, 64, 5, 4),
        (128, 256, 64, 3, 8),
    )
)
"""Tiles with which the GEMM alone is fastest on an H200 at M = 64 and 128, 256, 512 and 1024
(docs/notebook.md, "The core alone")."""


def _with_core_tile(shape: AllGatherGemm, chip: Chip | None, config: Config) -> list[Config]:
    """The config with the smallest of these tiles of which all run at once, where there is one:
    small tiles leave the pipeline room. A flag of 64 rows if such a chunk has at most 128 KB and
    every communicating program gets one; else of 16, 9 to 32 % faster at M up to 1024."""
    if chip is None or not chip.can.descriptors or shape.m < 64:
        return []
    columns = min(config["k_per_flag"], shape.shard_columns)
    chunks = -(-shape.shard_rows // 64) * -(-shape.shard_columns // columns) * (shape.world - 1)
    coarse = 64 * columns * shape.element_bytes <= CHUNK_BYTES and chunks >= config["comm_programs"]
    common = dict(split_k=1, rows_per_flag=64 if coarse else 16)
    knobs = [
        tile | common | dict(group_m=8 if shape.m > tile["block_m"] else 1) for tile in _CORE_TILES
    ]
    changed = [_where_possible(shape, chip, config, **each) for each in knobs]
    return [
        each
        for each in changed
        if each != config and _tiles(shape, each) <= chip.units - each["comm_programs"]
    ][:1]


def _default_exchange(shape: AllGatherGemm) -> dict[str, int | str]:
    """Fine rows where there are few, so that every communicating program has some; along K whole
    shards, or parts that split_k can take."""
    rows = 16 if shape.m <= 128 else 64
    whole = (
        256
        if shape.shard_columns <= 256
        else 1024
        if shape.shard_columns <= 1024 or shape.shard == "m"
        else 8192
    )
    return dict(
        schedule="static",
        comm_programs=8 if shape.m <= 32 else 16,
        rows_per_flag=rows if rows <= max(16, power_of_two_from(shape.shard_rows)) else 16,
        k_per_flag=whole if whole <= max(256, 4 * shape.shard_columns) else 1024,
    )


def _first_possible(
    shape: AllGatherGemm, chip: Chip | None, configs: Iterable[Config]
) -> tuple[Config, ...]:
    return tuple(
        islice((config for config in configs if SPACE.why_invalid(shape, config, chip) is None), 1)
    )


def _default_copies(
    shape: AllGatherGemm, chip: Chip | None, knobs: dict[str, Any]
) -> tuple[Config, ...]:
    """push's tile, and the fewest rows for each flag of which a copy moves a megabyte; or the most
    that there are."""
    of_tile = {choice.name: knobs[choice.name] for choice in _TILE if choice.name != "split_k"}
    large = [value for value in _COPY_ROWS if _copy_bytes(shape, value) >= 4 * COPY_BYTES]
    return _first_possible(
        shape,
        chip,
        (
            Config("push_ce", **of_tile, rows_per_flag=value)
            for value in (*large, *reversed(_COPY_ROWS))
        ),
    )


def _default_chunks(shape: AllGatherGemm, chip: Chip | None) -> tuple[Config, ...]:
    """An eighth of the rows, then all others; along M the own rows hide the first chunk, which may
    be larger."""
    most = max(shape.m // 8 if shape.shard == "k" else 2 * shape.shard_rows // shape.world, 128)
    firsts = sorted(_FIRST_ROWS, key=lambda rows: (rows > most, abs(rows - most)))
    growths = (7, 1) if shape.shard == "k" else (1,)
    return _first_possible(
        shape,
        chip,
        (
            Config("bsp_chunked", first_rows=rows, growth=growth)
            for rows in firsts
            for growth in growths
        ),
    )


def _default_split(shape: AllGatherGemm, chip: Chip | None, knobs: dict[str, Any]) -> int:
    """As many parts as run at once, and as there are flags along K."""
    once = chip.units - knobs["comm_programs"] if chip is not None else 0
    configs = [Config("push", **knobs, split_k=split) for split in (2, 4, 8)]
    possible = [
        config["split_k"]
        for config in configs
        if config["split_k"] <= _steps(shape, config) and _units(shape, config) <= once
    ]
    return max(possible, default=1)


SPACE = Space(
    op="all_gather_gemm",
    revisions={"bsp": 1, "pull": 1, "staged": 1, "push": 1, "push_ce": 1, "bsp_chunked": 1},
    variants={
        "bsp": (_FORM,),
        "pull": (*_TILE, *_EXCHANGE, replace(_ORDER, values=("chunk", "column")), *_CDNA),
        "staged": (*_TILE, LOADS, *_EXCHANGE, _ORDER, *_CDNA),
        "push": (*_TILE, LOADS, *_EXCHANGE, _ORDER, *_CDNA),
        "push_ce": (*_TILE, LOADS, *_COPIES, *_CDNA),
        "bsp_chunked": _CHUNKED,
    },
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
)
