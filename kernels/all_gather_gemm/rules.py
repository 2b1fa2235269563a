"""What a config of all_gather_gemm comes to at a shape, and the rules over that. Standard library
only."""

from __future__ import annotations

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import (
    COPY_BYTES,
    Knobs,
    accumulators,
    fits_registers,
    shared_bytes,
    streams_rule,
)
from tftune.kernels.core.partials import is_registered
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import FLAGS_PER_SOURCE, Config, Rule

REGISTERED = "_registered"
FUSED = ("pull", "staged", "push")
_TILED = (*FUSED, "push_ce")
_BY_DESCRIPTOR = ("staged", "push", "push_ce")
REGISTERED_BYTES = 1 << 22
"""Bytes of the gathered A from which on registered buffers are tried: on two H200 2 MB arrive no
sooner, and of 8 to 134 MB one form or the other does (docs/notebook.md)."""
COPIES = 16
"""Copies of one shard to each peer at most: every one, and its flag's, is queued by the host or is
a node of a graph."""
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


def row_chunks(shape: AllGatherGemm, knobs: Knobs) -> int:
    """Chunks of the rows of a shard."""
    return -(-shape.shard_rows // int(knobs["rows_per_flag"]))


def column_chunks(shape: AllGatherGemm, knobs: Knobs) -> int:
    """Chunks of the columns of a shard."""
    return -(-shape.shard_columns // int(knobs["k_per_flag"]))


def band(knobs: Knobs) -> int:
    """Row chunks of one group of tiles."""
    return -(-int(knobs["group_m"]) * int(knobs["block_m"]) // int(knobs["rows_per_flag"]))


def copied_at_once(shape: AllGatherGemm, knobs: Knobs, wave_size: int) -> tuple[int, int]:
    """Rows and columns of a chunk that one program copies at a time: four 16-byte accesses of each
    thread in flight."""
    columns = min(int(knobs["k_per_flag"]), 1024, power_of_two_from(shape.shard_columns))
    elements = int(knobs["num_warps"]) * wave_size * 4 * 8
    return max(1, min(int(knobs["rows_per_flag"]), elements // columns)), columns


def _flags(shape: AllGatherGemm, knobs: Knobs) -> int:
    """Flags of one source."""
    return row_chunks(shape, knobs) * column_chunks(shape, knobs)


def _order_differs(shape: AllGatherGemm, config: Config) -> bool:
    """Whether this order is not that of "chunk"."""
    flags, columns = _flags(shape, config), column_chunks(shape, config)
    return config["order"] == "chunk" or (
        flags > 1 if config["order"] == "group" else 1 < columns < flags
    )


def steps(shape: AllGatherGemm, knobs: Knobs) -> int:
    """Column chunks of the whole K, each with flags of its own."""
    return column_chunks(shape, knobs) * (shape.world if shape.shard == "k" else 1)


def tiles(shape: AllGatherGemm, config: Knobs) -> int:
    return int(-(-shape.m // config["block_m"]) * -(-shape.n // config["block_n"]))


def parts(shape: AllGatherGemm, knobs: Knobs) -> int:
    """Pieces of work: tiles, or parts of tiles."""
    return tiles(shape, knobs) * int(knobs["split_k"])


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
    return form.removesuffix(REGISTERED)


def _rows_are_aligned(shape: AllGatherGemm, config: Config) -> bool:
    if shape.b_layout == "kn" and shape.n % 8:
        return False
    return shape.shard_columns % int(config["block_k"]) == 0


def worth_registering(shape: AllGatherGemm, chip: Chip) -> bool:
    peers = shape.world > 1 and chip.can.registered_buffers
    return peers and shape.gathered_bytes >= REGISTERED_BYTES


def _two_waves(knobs: Knobs) -> bool:
    """Whether two waves share a SIMD (CDNA)."""
    return knobs["num_warps"] == 8 or knobs["waves_per_eu"] == 2


def copy_bytes(shape: AllGatherGemm, rows: int) -> int:
    """Bytes of the copy of so many rows of a shard, or of the whole shard where it has fewer."""
    return min(rows, shape.shard_rows) * shape.shard_columns * shape.element_bytes


def _chunk_is_large(shape: AllGatherGemm, config: Config) -> bool:
    rows = min(config["first_rows"], shape.shard_rows)
    return (
        rows * (shape.world if shape.shard == "m" else 1) >= CHUNK_ROWS
        and copy_bytes(shape, rows) >= COPY_BYTES
    )


RULES = (
    Rule("gather_copy and local_transpose need A sharded along K, gather needs it sharded along M",
         _form_fits, ("bsp",)),
    Rule("NCCL alone registers buffers, and from a gathered A of 4 MB on: a smaller one arrives "
         "no sooner",
         lambda s, c, chip: not is_registered(c["form"]) or chip is None
             or worth_registering(s, chip), ("bsp",)),
    Rule("block_m must not exceed M rounded up to a power of two, and 16 at least",
         lambda s, c, chip: c["block_m"] <= max(16, power_of_two_from(s.m)), _TILED),
    Rule("block_n must not exceed N rounded up to a power of two, and 32 at least",
         lambda s, c, chip: c["block_n"] <= max(32, power_of_two_from(s.n)), _TILED),
    Rule("rows_per_flag must not exceed a shard's rows rounded up to a power of two, and 16 at "
         "least",
         lambda s, c, chip: c["rows_per_flag"] <= max(16, power_of_two_from(s.shard_rows)), _TILED),
    Rule("k_per_flag must not exceed four times a shard's columns, unless it is the smallest",
         lambda s, c, chip: c["k_per_flag"] <= max(256, 4 * s.shard_columns), FUSED),
    # Not all of FLAGS_PER_SOURCE for any variant: the second half belongs to this rank's own
    # signals (`staged`), and a peer that is one call ahead must not write there.
    Rule(f"one source may have at most {FLAGS_PER_SOURCE // 2} flags that peers set: take larger "
         "rows_per_flag or k_per_flag",
         lambda s, c, chip: _flags(s, c) <= FLAGS_PER_SOURCE // 2, FUSED),
    Rule("block_k must not exceed a shard's columns rounded up to a power of two, and 64 at least",
         lambda s, c, chip: c["block_k"] <= max(64, power_of_two_from(s.shard_columns)), _TILED),
    Rule("group_m must be 1 where there is one row tile",
         lambda s, c, chip: c["group_m"] == 1 or s.m > c["block_m"], _TILED),
    Rule("split_k must not exceed the flags along K: world times a shard's column chunks, or its "
         "column chunks alone along M",
         lambda s, c, chip: c["split_k"] <= steps(s, c), _TILED),
    Rule("split_k must be 1 where there is a whole tile for each program that computes",
         lambda s, c, chip: c["split_k"] == 1 or chip is None
             or tiles(s, c) <= chip.units - c["comm_programs"], _TILED),
    # The parts of a tile wait for each other.
    Rule("split_k must not exceed the programs that compute: all parts of a tile run at once; "
         "take fewer comm_programs",
         lambda s, c, chip: chip is None
             or c["split_k"] <= max(1, chip.units - c["comm_programs"]), _TILED, required=True),
    Rule("xcds must be 1 where programs claim tiles: which die takes one is not known",
         lambda s, c, chip: c["xcds"] == 1 or c["schedule"] == "static", _TILED),
    Rule("schedule must be static where every program has one tile at most",
         lambda s, c, chip: chip is None or c["schedule"] == "static"
             or parts(s, c) > chip.units - c["comm_programs"], _TILED),
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
         lambda s, c, chip: _order_differs(s, c), FUSED),
    Rule("pull moves nothing of operands on the heap, and one flag covers a shard: comm_programs "
         "must be 8, rows_per_flag 16 and order chunk, and none of them is used",
         lambda s, c, chip: not s.on_heap
             or (c["comm_programs"], c["rows_per_flag"], c["order"]) == (8, 16, "chunk"),
         ("pull",)),
    Rule("comm_programs must leave at least half of the chip to the GEMM",
         lambda s, c, chip: chip is None or 2 * c["comm_programs"] <= chip.units, FUSED),
    Rule("a copy must move at least 256 KB: take more rows_per_flag; a smaller shard is no work "
         "for copy engines",
         lambda s, c, chip: chip is None or copy_bytes(s, c["rows_per_flag"]) >= COPY_BYTES,
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
    streams_rule(("push_ce", "bsp_chunked")),
)  # fmt: skip
