"""GEMMs in the L2 model: the order of tiles is the kernel's own, what it does to hit rates, and
what it costs to play."""

from __future__ import annotations

import time
from collections import namedtuple
from dataclasses import replace
from itertools import product
from typing import Any
from unittest import mock

import pytest
import triton
import triton.language as tl

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.comm import emulated
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.space import Config
from tftune.kernels.core.tile_order import Grid
from tftune.kernels.device.gemm import first_unit, next_unit, tile_order
from tftune.models import l2
from tftune.models.timeline.costs import Costs, Tile
from tftune.models.timeline.simulator import predict

LINE = l2.DIE_L2_BYTES // l2.LINES
TILE = Tile(128, 128, 64, 8, 1, 8, 2)
Knobs = namedtuple("Knobs", "SCHEDULE XCDS SPLIT_K GROUP_M")


def dealt(grid: Grid) -> list[list[tuple[int, int, int] | None]]:
    """The piece of each program in each turn."""
    return [[grid.piece(p, turn) for turn in range(grid.turns)] for p in range(grid.programs)]


def test_every_piece_is_computed_once_whatever_the_grid() -> None:
    sizes = product((1, 2, 3, 7, 11), (1, 2, 5, 9), (1, 4, 8), (1, 2, 4), (1, 3, 8, 13, 37), (1, 8))
    for tiles_m, tiles_n, group_m, split_k, programs, xcds in sizes:
        grid = Grid(tiles_m, tiles_n, group_m, split_k, programs, xcds)
        found = [piece for row in dealt(grid) for piece in row if piece is not None]
        wanted = product(range(tiles_m), range(tiles_n), range(split_k))
        assert sorted(found) == sorted(wanted), grid
        assert grid.piece(programs, 0) is None


@triton.jit
def deal(  # type: ignore[no-untyped-def]
    out_ptr, tiles_m, tiles_n, turns, tile: tl.constexpr, COMM: tl.constexpr
):
    """The loop of `gemm.multiply_all`, which leaves what each program would compute."""
    units = tiles_m * tiles_n * tile.SPLIT_K
    unit = first_unit(0, tl.program_id(0), units, tile, COMM, "interpreter")
    row = out_ptr + tl.program_id(0) * turns * 3
    while unit < units:
        tile_m, tile_n = tile_order(unit // tile.SPLIT_K, tiles_m, tiles_n, tile.GROUP_M)
        tl.store(row, tile_m)
        tl.store(row + 1, tile_n)
        tl.store(row + 2, unit % tile.SPLIT_K)
        row += 3
        unit = next_unit(0, unit, COMM, tile.SCHEDULE)


def computed(workspace: Any, grids: list[Grid], communicating: int) -> list[Any]:
    """What each computing program takes on the device, turn after turn; -1 where it has ended."""
    import torch

    found = []
    for grid in grids:
        programs = communicating + grid.programs
        out = torch.full((programs, grid.turns, 3), -1, dtype=torch.int32)
        tile = Knobs("static", grid.xcds, grid.split_k, grid.group_m)
        deal[(programs,)](out, grid.tiles_m, grid.tiles_n, grid.turns, tile, communicating)
        assert (out[:communicating] == -1).all(), "those that communicate compute nothing"
        found.append(out[communicating:].tolist())
    return found


def test_the_order_that_is_played_is_the_kernels_own() -> None:
    grids = [
        Grid(*sizes, xcds)
        for sizes in ((3, 5, 8, 1, 13), (9, 2, 4, 2, 19), (1, 7, 1, 1, 7), (17, 3, 8, 4, 40))
        for xcds in (1, 8)
    ]
    (found,) = emulated.run(1, computed, grids, 8)
    for grid, rows in zip(grids, found, strict=True):
        said = [[piece or (-1, -1, -1) for piece in row] for row in dealt(grid)]
        assert [[tuple(piece) for piece in row] for row in rows] == said, grid


def test_a_persistent_unit_keeps_its_own_programs() -> None:
    """Two units; the fourth program reads what the first one reads. Its unit is free after one
    line, and follows closely; the unit that ends first would take the third, and come too late."""
    reads = ((("x", 40 * LINE),), (("z", 1 * LINE),), (("y", 40 * LINE),), (("x", 40 * LINE),))

    def rate(persistent: bool) -> float:
        return l2.hit_rate(l2.Die(2), reads.__getitem__, 4, 0.0, persistent=persistent)

    assert rate(True) == pytest.approx(40 / 121) and rate(False) == 0.0


@pytest.mark.parametrize("sizes", [(32, 28, 128), (64, 57, 128), (16, 27, 256)])
def test_a_die_with_neighbouring_tiles_hits_more(sizes: tuple[int, int, int]) -> None:
    """K = 8192 on 288 programs. In turn, and in windows of eight rows, all tiles of a die are in
    one row; in runs row by row, too: they share no column. Windows in runs are rectangles."""
    tiles_m, tiles_n, block_m = sizes
    a_bytes, b_bytes = block_m * 8192 * 2.0, 128 * 8192 * 2.0
    in_turn, in_runs, rectangles = (
        l2.gemm_hit_rate(8, Grid(tiles_m, tiles_n, group_m, 1, 288, xcds), a_bytes, b_bytes)
        for group_m, xcds in ((8, 1), (1, 8), (8, 8))
    )
    assert max(in_turn, in_runs) < rectangles - 0.05


def test_parts_of_a_tile_share_nothing() -> None:
    """Eight tiles in two parts on one die: of a row, one of 8 reads misses; of columns all do."""
    whole = l2.gemm_hit_rate(1, Grid(1, 8, 1, 1, 8, 1), 2.0 * LINE, 2.0 * LINE)
    parts = l2.gemm_hit_rate(1, Grid(1, 8, 1, 2, 16, 1), 1.0 * LINE, 1.0 * LINE)
    assert whole == parts == pytest.approx(7 / 16)


def test_what_dies_miss_crosses_at_the_rate_of_the_cache_behind_them() -> None:
    l2.gemm_hit_rate.cache_clear()
    us = Costs(MI300X).missed_us(4096, 3584, 8192, 2, TILE, 288, 8)
    grid, row = Grid(32, 28, 8, 1, 288, 8), 128 * 8192 * 2.0
    missed = 1 - l2.gemm_hit_rate(8, grid, row, row)
    assert us == pytest.approx(32 * 28 * 2 * row * missed / MI300X.rates.fabric_bytes_per_us)
    assert l2.gemm_hit_rate.cache_info()[:2] == (1, 1), "played once, then remembered"
    few_rows = Costs(MI300X).missed_us(1, 3584, 8192, 2, TILE, 288, 1)
    assert few_rows == pytest.approx(
        28 * 129 * 8192 * 2 / MI300X.rates.fabric_bytes_per_us, rel=0.1
    )


def test_one_die_is_not_played() -> None:
    """Predictions for H200 do not depend on the model of dies; those for MI300X do."""
    shape, config = AllGatherGemm(m=4096, n=3584, k=8192, world=8), Config("push")
    before = predict(shape, config, "graph", H200)
    with mock.patch.object(l2, "gemm_hit_rate", side_effect=AssertionError("played")):
        assert predict(shape, config, "graph", H200) == before
        assert Costs(H200).missed_us(4096, 3584, 8192, 2, TILE, 116, 1) == 0.0
        with pytest.raises(AssertionError, match="played"):
            predict(shape, config, "graph", MI300X)


@pytest.mark.parametrize("k", [8192, 28_672])
def test_one_prediction_is_cheap(k: int) -> None:
    """A search on the model asks for thousands: the largest grids and streams, never seen
    before."""
    times = []
    for n in (28_672, 28_416, 28_160):
        began = time.process_time()
        Costs(MI300X).missed_us(16_384, n, k, 2, replace(TILE, block_n=256), 288, 8)
        times.append(time.process_time() - began)
    assert min(times) < 0.25, times
