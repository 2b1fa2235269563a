"""Groups of constants: a kernel takes each as one argument and reads `tile.BLOCK_M`.

Fields hold plain values here and in the interpreter. Triton's code generator (3.6 and 3.7) takes a
field only as a constexpr of its own: `runtime.compile` wraps them.
"""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """What a GEMM computes; M is left open."""

    N: int
    K: int
    WORLD: int
    SHARD_IS_M: bool
    """A is sharded along M, else along K."""
    B_IS_NK: bool
    """B is stored [N, K], else [K, N]."""
    COLUMNS: int
    """Columns of a shard of A."""


class Tile(NamedTuple):
    """How programs compute tiles of C."""

    BLOCK_M: int
    BLOCK_N: int
    BLOCK_K: int
    GROUP_M: int
    """Row tiles before the next column tile."""
    SPLIT_K: int
    EVEN_K: bool
    """BLOCK_K divides a shard's columns."""
    EVEN_N: bool
    LOADS: str
    """`pointer` or `descriptor` (TMA)."""
    SCHEDULE: str
    """`static`, or `dynamic`: programs claim tiles."""
    XCDS: int
    """Dies that the hardware deals programs to in turn."""


class Chunks(NamedTuple):
    """How shards travel: one flag for each chunk."""

    COMM_PROGRAMS: int
    ROWS_PER_FLAG: int
    K_PER_FLAG: int
    K_CHUNKS: int
    """Chunks of one row of a shard."""
    BAND: int
    """Row chunks of a group of tiles."""
    ORDER: str | None
    COPY_ROWS: int
    COPY_COLUMNS: int
    LOCAL_VIA_INBOX: bool
    """This rank's own rows are read from the inbox, too, so that a descriptor's block may span
    sources."""
    IN_PLACE: bool
    """Peers read the shard where the caller left it: in the symmetric heap."""
    WAITS: str = "tile"
    """A word of `device.waits`."""


class Partials(NamedTuple):
    """How partial tiles of a GEMM with a split inner size reach the ranks that add them up."""

    WORLD_P: int
    """WORLD rounded up to a power of two."""
    SPANS: bool
    """One row tile holds the rows of every owner."""
    TILES_PER_FLAG: int
    ADD_ROWS: int
    """Rows of a tile that one program adds up at a time."""
    WIRE_FP32: bool
    """Partial tiles are sent in fp32, else in the dtype of A."""
    COMM_PROGRAMS: int
    """The first of a launch: they forward tiles that the others computed. 0: none."""
    COPY_ROWS: int
    """Rows of a tile that one program forwards at a time."""
    ROUTE: str
    """Where a partial tile goes, and who adds it up: see `device.gemm_reduce`."""
    WAITS: str = "tile"
    """A word of `device.waits`."""


class Pieces(NamedTuple):
    """How rows that are added up over the ranks are cut; how many rows is left open."""

    N: int
    N_P: int
    """N rounded up to a power of two."""
    PARTS: int
    """Column slices of a row, which different programs send."""
    PARTS_P: int
    ROWS: int
    """Rows of a piece: what one flag covers."""
    TILE: int
    """Rows that are loaded at a time."""
    COLS_P: int
    """Columns of a part, rounded up to a power of two."""
    NORM: bool
    """Rows are normalised."""
    WORLD: int
    WORLD_P: int
    IN_PLACE: bool
    """Peers read x where the caller left it: in the symmetric heap."""
    ROLES: int
    """Of two_shot. 2: half of the programs exchange, the others normalise; 1: all do both."""


class Attention(NamedTuple):
    """What a decode computes; batch and lengths are left open."""

    KV_HEADS: int
    GROUP: int
    """Query heads that share a KV head."""
    D: int
    """The head dimension."""
    OWN: int
    """Query heads whose output this rank computes."""


class Cache(NamedTuple):
    """How the KV cache lies and is split."""

    PAGE: int
    """Tokens of a page; 0: contiguous."""
    SPLITS: int
    BLOCK_N: int
    """Tokens of one step."""
    PADDED_GROUP: int
    """Rows of a product on tensor cores, to which a group is padded."""
    XCDS: int
    """Dies that the hardware deals programs to in turn."""


class Peers(NamedTuple):
    """How partial results reach the ranks that own their heads."""

    HEADS: int
    """The most heads of one group that are sent together: a piece."""
    SLICES: int
    """Pieces of a group."""
    OWN_SLICES: int
    """Runs of HEADS heads that this rank's output is merged by."""
    TILE: int
    """Elements of partial results that are loaded at a time."""
    PIECES_PER_FLAG: int
    """0: one flag for all pieces of a source."""
    WORLD: int
    WORLD_P: int
    """WORLD rounded up to a power of two."""
    ARCH: str
    WAITS: str = "tile"
    """A word of `device.waits`."""


class Messages(NamedTuple):
    """How partial attention outputs reach the ranks that merge them; how many sequences is left
    open."""

    D: int
    """The head dimension."""
    OWN: int
    """Heads that one rank merges."""
    ALL: bool
    """Every rank merges every head."""
    SCALE: float
    """From a log-sum-exp to base 2."""
    ROWS: int
    """Heads of a piece: sent and merged together, and what one flag covers."""
    WORLD: int
    WORLD_P: int
    """WORLD rounded up to a power of two."""


class Prefill(NamedTuple):
    """How programs attend to whole sequences; lengths and heads are left open."""

    D: int
    """The head dimension."""
    CAUSAL: bool
    BLOCK_M: int
    """Queries of a program."""
    BLOCK_N: int
    """Tokens of one step."""
    LOADS: str
    """`pointer` or `descriptor` (TMA), of keys and values."""
    MAPPING: str
    """One of `flash_prefill.mapping.MAPPINGS`."""
    DIES: int
    """That the hardware deals programs to in turn."""
