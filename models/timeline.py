"""The analytic time of a config: what one machine does in each stage, put together by the operation's own `timeline.py`.

A first model, from the constants of `kernels/chips.py` and few assumed ones below. It ranks configs before anything was measured and
drives the `model` bench; what it says is predicted, never measured. On H200 it is checked against measured times in tests/test_timeline.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from tftune.db.trial import MODES
from tftune.kernels.chips import Chip
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config

SKINNY_SHARE = 0.72
"""Of the copy rate, what a library GEMM reaches where it only streams B: 58.7 MB in 19.7 us on H200, 2026-11-21."""
LOAD_US = 0.8
"""Latency of a load from HBM while the memory is busy. Assumed; 0.35 us idle on MI300X."""
DESCRIPTOR_SHARE = 1.0
"""Of the library's rate, what a Triton GEMM with tensor descriptors reaches: 693.5 against 694.2 us at M=8192 on H200, 2026-11-21."""
TRITON_LAUNCHES = 3
"""Host time of one eager Triton launch, in raw launches: 35 to 60 us above a captured call on H200, 2026-11-20."""
CACHED_REREAD = 0.25
"""Cost of reading from the last-level cache, relative to HBM (MI300X: 17.2 against 4 TB/s)."""
PULL_SHARE = 0.8
"""Of the link rate, what GEMM tiles loaded from peers reach: 247 GB/s at M=8192 on H200, 2026-11-20."""


def overlap(*times_us: float) -> float:
    """The time of stages that run side by side: their largest, and somewhat more where they are alike."""
    return math.cbrt(math.fsum(us * us * us for us in times_us))


@dataclass(frozen=True, slots=True)
class Tile:
    """What one program computes at a time, and how."""

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    split_k: int
    num_warps: int
    num_stages: int


@dataclass(frozen=True)
class Machine:
    """The stages that operations are made of, on one chip. Sizes in bytes, times in microseconds."""

    chip: Chip

    overlap = staticmethod(overlap)

    @staticmethod
    def tile(knobs: Mapping[str, Any]) -> Tile:
        return Tile(*(knobs[name] for name in Tile.__slots__))

    def launch_us(self, mode: str, kernels: int = 1, triton: bool = False) -> float:
        """From one kernel to the next, for library or Triton kernels."""
        if mode == "graph":
            return kernels * self.chip.graph_launch_us
        return kernels * self.chip.eager_launch_us * (TRITON_LAUNCHES if triton else 1)

    def hbm_us(self, size: float) -> float:
        return size / self.chip.hbm_bytes_per_us

    def signal_us(self) -> float:
        """What a program spends on one release before it goes on: half of the flight, assumed."""
        return self.chip.flag_us / 2

    def all_gather_us(self, bytes_per_rank: int, world: int, mode: str) -> float:
        """Latency, which grows with the world (8.8, 12.2, 19.3 us at 2, 4, 8 H200: 3 + world parts of 11), then bytes over the links."""
        latency = self.chip.collective_us if mode == "graph" else self.chip.eager_collective_us
        return latency * (3 + world) / 11 + bytes_per_rank * (world - 1) / self.chip.link_rate(world)

    def library_gemm_us(self, flops: float, size: float) -> float:
        """A vendor GEMM, which splits K where tiles are few: no quantisation."""
        return overlap(flops / self.chip.matrix_flops_per_us, self.hbm_us(size) / SKINNY_SHARE)

    def exchange_us(self, chunk_bytes: float, programs: int, world: int, run_bytes: int) -> float:
        """One chunk stored to a peer by each of so many programs at once; `run_bytes` are contiguous (2 KB where it was measured)."""
        rate = self.chip.program_bytes_per_us * 1.125 * run_bytes / (run_bytes + 256)
        return overlap(chunk_bytes / rate, chunk_bytes * programs / self.chip.link_rate(world)) + self.signal_us()

    def staging_us(self, chunk_bytes: float, world: int) -> float:
        """One chunk copied into the own heap by one program (twice the rate of remote stores, assumed), then a signal to each peer."""
        return chunk_bytes / (2 * self.chip.program_bytes_per_us) + (world - 1) * self.signal_us()

    def pull_us(self, size: float, world: int) -> float:
        """Bytes loaded from all peers, by all programs together."""
        return size / (PULL_SHARE * self.chip.link_rate(world))

    def tile_gemm_us(
        self, m: int, n: int, k: int, element_bytes: int, tile: Tile, units: int, restarts: float, remote_us: float, by_descriptor: bool
    ) -> float:
        """A persistent Triton GEMM on so many units. `restarts`: times per tile that the loop over K waits for a flag and fills its
        pipeline anew, shared by the tile's parts. `remote_us`: what loads take longer than from HBM."""
        tiles = ceil(m / tile.block_m) * ceil(n / tile.block_n)
        latency, parts = LOAD_US + remote_us, tile.split_k
        steps_us = ceil(k / parts / tile.block_k) * self._step_us(tile, latency, by_descriptor)
        loop_us = steps_us + restarts / parts * (latency + self.signal_us() / 2)
        gemm_us = overlap(
            _waves(tiles * parts / units) * (loop_us + LOAD_US), self.hbm_us(self._traffic(m, n, k, element_bytes, tile, units // parts))
        )
        return gemm_us + (self._add_parts_us(tile) if parts > 1 else 0.0)

    def _add_parts_us(self, tile: Tile) -> float:
        """Each program writes its part, waits for the counter, then reads its slice of every part from the cache."""
        rate = self.hbm_us(1) * CACHED_REREAD * self.chip.units
        return 2 * LOAD_US + 2 * tile.block_m * tile.block_n * 4 * rate

    def _step_us(self, tile: Tile, latency_us: float, by_descriptor: bool) -> float:
        flops = 2 * tile.block_m * tile.block_n * tile.block_k
        share = DESCRIPTOR_SHARE if by_descriptor else self.chip.triton_share
        rate = self.chip.matrix_flops_per_us * share / self.chip.units * _tile_share(tile)
        return overlap(flops / rate, latency_us / max(tile.num_stages - 1, 1)) + 0.02

    def _traffic(self, m: int, n: int, k: int, element_bytes: int, tile: Tile, units: int) -> float:
        """Bytes from HBM: each wave reads its rows of A and columns of B once; re-reads are cheap where A and B fit the cache."""
        tiles_m, tiles_n = ceil(m / tile.block_m), ceil(n / tile.block_n)
        units = max(units, 1)
        columns = min(ceil(units / min(tile.group_m, tiles_m)), tiles_n)
        rows = min(max(tile.group_m, units // columns), tiles_m)
        waves = tiles_m * tiles_n / (rows * columns)
        once = element_bytes * k * (m + n)
        again = max(waves * (rows * tile.block_m + columns * tile.block_n) * k * element_bytes - once, 0.0)
        return once + element_bytes * m * n + again * (CACHED_REREAD if once <= self.chip.cache_bytes else 1.0)


def _waves(full: float) -> float:
    """Rounds of tiles. The last, partly filled one costs about half of its empty places: the busy units clock higher and share memory."""
    return 1.0 if full <= 1 else (full + ceil(full)) / 2


def _tile_share(tile: Tile) -> float:
    """The rate of a tile relative to 128 x 256: operands move once for each tile's edge, and warps want 1 to 4 K results each."""
    area, edge = tile.block_m * tile.block_n, tile.block_m + tile.block_n
    ill_fitted = (tile.num_warps == 8) == (area < 8192) or (tile.num_warps == 4 and area >= 16384)
    return area / (area + 32 * edge) / 0.727 * (0.9 if ill_fitted else 1.0)


@lru_cache
def _timeline(op: str) -> Callable[[Machine, Shape, Config, str], float]:
    found: Callable[[Machine, Shape, Config, str], float] = operation(op).module("timeline").timeline
    return found


@lru_cache
def _machine(chip: Chip) -> Machine:
    return Machine(chip)


def predict(shape: Shape, config: Config, mode: str, chip: Chip) -> float:
    """Predicted microseconds of one call, positive and finite; raises ValueError for an unknown mode."""
    if mode not in MODES:
        raise ValueError(f"{mode=} is not one of {', '.join(MODES)}")
    return _timeline(shape.op)(_machine(chip), shape, config, mode)
