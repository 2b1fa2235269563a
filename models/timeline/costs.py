"""What one chip takes for the things that operations are made of: launches, tiles, copies, signals,
collectives, library calls.

Every constant is the chip's (kernels/core/chips.py, with its source); here are the formulas only.
Sizes in bytes, times in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import Any

from tftune.kernels.core.chip import Chip, Links, Rates
from tftune.kernels.core.tile_order import Grid
from tftune.kernels.core.timeline_ir import LAUNCH, WAIT, Gate, Stage
from tftune.models import l2

PULL_SHARE = 0.8
"""The share of the link rate that GEMM tiles loaded from peers reach: 247 GB/s at M=8192 on H200,
2026-11-20."""
LARGE_MESSAGE = 1 << 20
"""Bytes per rank; of 256 KB an all-gather on 4 H200 takes 16.6 us, as its latency and rate say."""
FULL_WORLD = 8
"""The world of `Chip.collective_us`."""


def overlap(*times_us: float) -> float:
    """The time of things that go side by side: the longest, and up to a tenth more where others
    come near it."""
    return float(math.fsum(us**8 for us in times_us) ** 0.125)


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

    @classmethod
    def of(cls, knobs: Mapping[str, Any]) -> Tile:
        return cls(*(knobs[name] for name in cls.__slots__))


@dataclass(frozen=True)
class Costs:
    """The formulas, on one chip and so many ranks."""

    chip: Chip
    world: int = FULL_WORLD

    pull_share = PULL_SHARE
    tile = staticmethod(Tile.of)
    overlap = staticmethod(overlap)

    @cached_property
    def rates(self) -> Rates:
        """Raises ValueError, with the next command, where the chip's are not known."""
        return self.chip.rates

    @cached_property
    def links(self) -> Links:
        """Likewise; those of one rank need not be known."""
        return self.chip.links_of(self.world)

    def in_order(self, mode: str, kernels: Sequence[Stage]) -> tuple[list[Stage], ...]:
        """The lanes of library calls on one stream: captured, each starts one launch after the one
        before; eager, also not before the host came to launch it."""
        first_us, later_us = self.rates.eager_launch_us, self.rates.library_call_us
        host = [Stage(later_us if number else first_us) for number in range(len(kernels))]
        gpu = []
        for number, kernel in enumerate(kernels):
            gate = None if mode == "graph" else Gate(0, number + 1)
            gpu += [Stage(self.rates.graph_launch_us, after=gate, tax=LAUNCH), kernel]
        return (gpu,) if mode == "graph" else (host, gpu)

    def triton_launch(self, mode: str, descriptors: int = 0) -> Stage:
        """The launch of one Triton kernel, which makes so many tensor descriptors on the host when
        it is not captured."""
        eager_us = self.rates.eager_launch_us + descriptors * self.rates.descriptor_us
        return Stage(self.rates.graph_launch_us if mode == "graph" else eager_us, tax=LAUNCH)

    def all_gather(self, bytes_per_rank: int, world: int, registered: bool = False) -> Stage:
        """A library's all-gather. Its latency grows with the world (8.8, 12.2, 19.3 us at 2, 4, 8
        H200: 3 + world parts of 11), and large messages, by another protocol, pay it twice (38.6,
        69.7, 190 us for 1, 4, 16 MB from each of 4 H200). Between registered buffers it goes at the
        links' rate (50 and 224 us for 8 and 67 MB from each of 2 H200; else 58 and 284)."""
        sent = float(bytes_per_rank * (world - 1))
        latency_us = self.links.collective_us * (3 + world) / (3 + FULL_WORLD) if world > 1 else 0.0
        times = 2 if bytes_per_rank >= LARGE_MESSAGE else 1
        through = inf if registered else self.links.gather_bytes_per_us * max(world - 1, 1)
        rate = min(self.links.rate(world), through)
        return Stage(times * latency_us + sent / rate, 2 * sent, sent, tax=WAIT)

    def library_gemm_us(self, flops: float, size: float) -> float:
        """A vendor GEMM, which splits K where tiles are few: no quantisation."""
        streamed_us = self.memory_us(size) / self.rates.stream_share
        return overlap(flops / self.rates.matrix_flops_per_us, streamed_us)

    def memory_us(self, size: float) -> float:
        return size / self.rates.hbm_bytes_per_us

    def hit_rate(self, program: l2.Program, count: int) -> float:
        """The share of reads that a die's own L2 serves, of `count` programs of the chip, as
        `models.l2` plays it; 1 where one L2 is behind all units."""
        dies = self.chip.dies
        if dies == 1:
            return 1.0
        return l2.hit_rate(l2.Die(self.chip.units // dies, dies), program, count)

    def copy_us(self, blocks: int, signals: int, remote: bool = False) -> float:
        """One program copies so many blocks (four 16-byte accesses of each thread at a time), from
        peers or to anywhere, then signals."""
        first_us = self.rates.load_us + (self.links.remote_load_us if remote else 0.0)
        return first_us + blocks * self.rates.block_us + signals * self.links.signal_us

    def engine_copies(self, copies: int, size: float, world: int, streams: int, mode: str) -> Stage:
        """So many copies of `size` bytes each by copy engines, in streams that share the links,
        each followed by its flag's; where nothing is captured, the host queues them one by one.
        Counts copies."""
        moved_us = copies * size / (self.links.engine_bytes_per_us * self.links.at_once(world))
        host_us = 2 * copies * self.links.engine_host_us if mode == "eager" else 0.0
        queued_us = moved_us + 2 * copies * self.links.engine_us / streams
        return Stage(max(queued_us, host_us), 2 * copies * size, copies * size, copies)

    def load_us(self, world: int, remote: bool) -> float:
        """How long a tile takes to come, where nothing is busy; `remote`: but for this rank's own,
        tiles of A come from peers."""
        return self.rates.load_us + (self.links.remote_load_us * (1 - 1 / world) if remote else 0.0)

    def step_us(
        self, tile: Tile, rows: int, element_bytes: int, load_us: float, by_descriptor: bool
    ) -> float:
        """One step of the loop over K of one program, alone on its unit: what takes longest of the
        products, tiles that come from L2, shared memory, and the latency of loads, of which the
        pipeline keeps num_stages - 1 on their way."""
        share = 1.0 if by_descriptor else self.rates.triton_share
        flops_per_us = self.rates.unit_flops_per_us * share
        products_us = 2 * tile.block_m * tile.block_n * tile.block_k / flops_per_us
        line = element_bytes * tile.block_k
        loaded = line * (min(tile.block_m, rows) + tile.block_n)
        l2_us = loaded * self.chip.units / self.rates.l2_bytes_per_us
        written = 0 if by_descriptor else tile.block_m + tile.block_n
        shared_us = line * (written + self._read_rows(tile)) / self.rates.shared_bytes_per_us
        return overlap(products_us, l2_us, shared_us, load_us / max(tile.num_stages - 1, 1))

    def _wide(self, tile: Tile) -> bool:
        """Whether warps multiply together, straight from shared memory (Hopper's wgmma, 64 rows at
        least)."""
        return self.chip.can.warp_group_products and tile.block_m >= 64

    def _read_rows(self, tile: Tile) -> int:
        """Rows of K that leave shared memory in each step: each warp (group) reads its own, laid
        out so that these are few."""
        if self._wide(tile):
            return tile.block_m + tile.block_n * (
                2 if tile.num_warps == 8 and tile.block_m >= 128 else 1
            )
        splits = [down for down in (1, 2, 4, 8) if down <= tile.num_warps]
        return min(tile.block_m * (tile.num_warps // down) + tile.block_n * down for down in splits)

    def add_parts_us(self, tile: Tile, programs: int) -> float:
        """Each program writes its part in fp32, waits for the counter, then reads its slice of
        every part."""
        moved = 2 * 4 * tile.block_m * tile.block_n * programs
        return 2 * self.rates.load_us + moved / self.rates.l2_bytes_per_us

    def traffic(self, m: int, n: int, k: int, element_bytes: int, tile: Tile, units: int) -> float:
        """Bytes from memory: each wave of tiles reads its rows of A and columns of B once; free
        again where A and B fit the cache."""
        once = element_bytes * k * (m + n)
        if once <= self.chip.cache_bytes:
            return once + element_bytes * m * n
        tiles_m, tiles_n = ceil(m / tile.block_m), ceil(n / tile.block_n)
        rows, columns = wave(tiles_m, tiles_n, tile.group_m, units)
        waves = tiles_m * tiles_n / (rows * columns)
        read = waves * (rows * tile.block_m + columns * tile.block_n) * k * element_bytes
        return max(read, once) + element_bytes * m * n

    def missed_us(
        self, m: int, n: int, k: int, element_bytes: int, tile: Tile, units: int, xcds: int
    ) -> float:
        """All that a GEMM's persistent programs read and the dies' own L2 do not serve, at the rate
        of the last-level cache behind them: 0 where one die has one L2. As `models.l2` plays the
        kernel's own order of tiles (`xcds`, `group_m`, `split_k`)."""
        dies = self.chip.dies
        if dies == 1:
            return 0.0
        tiles_m, tiles_n = ceil(m / tile.block_m), ceil(n / tile.block_n)
        pieces = tiles_m * tiles_n * tile.split_k
        programs = min(max(units, 1), pieces)
        grid = Grid(tiles_m, tiles_n, tile.group_m, tile.split_k, programs, xcds)
        line = k * element_bytes / tile.split_k
        a_bytes, b_bytes = min(tile.block_m, m) * line, tile.block_n * line
        served = l2.gemm_hit_rate(dies, grid, a_bytes, b_bytes)
        return pieces * (a_bytes + b_bytes) * (1 - served) / self.rates.fabric_bytes_per_us


def wave(tiles_m: int, tiles_n: int, group_m: int, units: int) -> tuple[int, int]:
    """Row and column tiles that so many units touch at once, in the order of `gemm.tile_order`."""
    units = max(units, 1)
    columns = min(ceil(units / min(group_m, tiles_m)), tiles_n)
    return min(max(group_m, units // columns), tiles_m), columns
