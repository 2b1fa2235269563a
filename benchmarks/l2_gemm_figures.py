"""What was published of L2 hit rates and of relative speeds by the order of a GEMM's tiles, on
chips of eight dies. Nothing here was measured by tftune.

Which rows fit `models.l2.GEMM_DRIFT` is decided by their place alone: see `FIT`. That rule was
committed before any of these rows was modelled.

Sources, each in the order in which it prints its figures. All GPUs are of eight dies of 32 units:

- arXiv 2511.08083 (HipKittens), table 4: MI355X, bf16, tiles of 192 x 256, square GEMMs. Read from
  two public copies of the table, which agree; the paper itself was out of reach. "W, C" are the
  rows of a window and the blocks in turn of one die. C=542 of 4332 blocks is just above the
  541.5 of one die: taken as one run for each die, since the printed algorithm would move none.
- HazyResearch/HipKittens, analysis/paper_experiments/grid_micro: CDNA 4, bf16, tiles of 256 x 256,
  an 8192-cubed GEMM. One run for each die, with windows of 2 to 32 rows: `xcds` and `group_m` here.
- ROCm/FlyDSL, pull request 863: 4096 x 8192 x 8192, two tiles. No chip and no dtype is named: taken
  as MI355X and fp8, which its test has. Blocks are dealt column by column, and remapped as if they
  had been dealt row by row, as the kernel does it.
- A public note on ports of block-scaled fp8 GEMMs to FlyDSL (`flydsl_fp8_blockscale_gemm`,
  whose repository could not be found): MI355X, 4096 x 65536 x 1536, tiles of 64 x 256. Which remap
  it means is not told: taken as the one above.

Found, and not played, since the order or the shape is not told: SwizzlePerf (arXiv 2508.20258: ten
kernels on MI300X, up to 2.06 times as fast, up to 70 points of hit rate); mixture-of-experts GEMMs
of ROCm/composable_kernel 3161 (15 % on MI355X) and ROCm/aiter 284; ROCm/rocMLIR 2161 (chunks as
HipKittens', over 5 % on 26 GEMMs of MI350, slower on 8); pytorch/helion 2869.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

DIES, UNITS = 8, 32


@dataclass(frozen=True)
class Order:
    """In which order blocks that are dealt to dies in turn compute tiles."""

    name: str
    window: int
    """Row tiles before the next column tile; 1 is row by row."""
    chunk: int | None = 0
    """Neighbours that one die takes before the next one does: 0 where blocks stay as they are
    dealt, None where each die has one run."""
    from_columns: bool = False
    """Whether blocks are dealt column by column, and the remap counts row by row."""


def swizzled(window: int, chunk: int | None = None, from_columns: bool = False) -> Order:
    """Windows of so many rows, in runs of neighbours on one die."""
    run = "one run a die" if chunk is None else f"runs of {chunk}"
    return Order(f"windows of {window}, {run}", window, chunk, from_columns)


ROW_MAJOR = Order("row-major", 1)


@dataclass(frozen=True)
class Gemm:
    """One GEMM and its tiles."""

    name: str
    m: int
    n: int
    k: int
    block_m: int
    block_n: int
    element_bytes: int = 2


@dataclass(frozen=True)
class Figure:
    """One published figure: an L2 hit rate, or the speed relative to the order that was published
    as the fastest."""

    gemm: Gemm
    kind: str
    """`hit` or `speed`."""
    order: Order
    published: float
    fastest: Order | None = None
    flops_per_us: float = 0.0
    """Of the fastest order, in print, where a speed is told."""


SMALL = Gemm("9216, HipKittens", 9216, 9216, 9216, 192, 256)
LARGE = Gemm("14592, HipKittens", 14592, 14592, 14592, 192, 256)
TABLE_4 = (
    (SMALL, ROW_MAJOR, 0.55, 0.95, 1113),
    (SMALL, swizzled(7), 0.79, 0.24, 991),
    (SMALL, swizzled(5, 25), 0.75, 0.93, 1145),
    (LARGE, ROW_MAJOR, 0.36, 0.76, 900),
    (LARGE, swizzled(8), 0.79, 0.07, 980),
    (LARGE, swizzled(8, 64), 0.78, 0.55, 1068),
)
"""GEMM, order, hit rates of the L2 and of the last-level cache, TFLOPS. The last-level cache is not
modelled."""
WINDOWS = Gemm("8192, HipKittens", 8192, 8192, 8192, 256, 256)
GRID_MICRO = (
    (ROW_MAJOR, 1016.6),
    (swizzled(2), 1083.3),
    (swizzled(4), 1108.8),
    (swizzled(8), 1113.9),
    (swizzled(32), 875.1),
)
"""Order and TFLOPS."""
FLYDSL = (
    (Gemm("FlyDSL, 64 x 256", 4096, 8192, 8192, 64, 256, 1), 1616, 1760),
    (Gemm("FlyDSL, 128 x 256", 4096, 8192, 8192, 128, 256, 1), 1979, 2127),
)
"""GEMM, TFLOPS column by column as dealt, and with windows of 4 on runs of one die."""
WIDE = Gemm("wide N, FlyDSL", 4096, 65536, 1536, 64, 256, 1)
WIDE_FLOPS_PER_US = 1.25e9
"""A quarter of 5 PFLOPS: the note says a quarter to 36 %."""


def _figures() -> Iterator[Figure]:
    for gemm, order, hit, _, tflops in TABLE_4:
        _, fastest, *_, best = max((row for row in TABLE_4 if row[0] == gemm), key=lambda r: r[-1])
        yield Figure(gemm, "hit", order, hit)
        if order != fastest:
            yield Figure(gemm, "speed", order, tflops / best, fastest, best * 1e6)
    fastest, best = max(GRID_MICRO, key=lambda row: row[1])
    for order, tflops in GRID_MICRO:
        if order != fastest:
            yield Figure(WINDOWS, "speed", order, tflops / best, fastest, best * 1e6)
    for gemm, tflops, best in FLYDSL:
        moved = swizzled(4, from_columns=True)
        yield Figure(gemm, "speed", _by_columns(gemm), tflops / best, moved, best * 1e6)
    as_dealt, moved = _by_columns(WIDE), swizzled(8, from_columns=True)
    yield Figure(WIDE, "hit", as_dealt, 0.748)
    yield Figure(WIDE, "hit", moved, 0.83)
    yield Figure(WIDE, "speed", as_dealt, 1 / 1.23, moved, WIDE_FLOPS_PER_US)


def _by_columns(gemm: Gemm) -> Order:
    return Order("column-major", gemm.m // gemm.block_m)


FIGURES = tuple(_figures())
FIT, TEST = FIGURES[::2], FIGURES[1::2]
"""Every second figure as printed, the first one first, fits; all others test."""
