"""How the variants of all_gather_gemm spend their time: the lanes of one call, for
`tftune.models.timeline.simulator` to play.

A fused call has two lanes: the programs that communicate, chunk after chunk, and those that
compute, wave of tiles after wave. All programs of a lane go in step; of a wave, the tile stands for
all whose rows come last. Chunks of K that are there together go by in one loop, as in
`gemm.multiply_tile`. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.exchange import (
    EXCHANGES,
    IN_PLACE,
    Chunks,
    Exchange,
    by_engine,
)
from tftune.kernels.all_gather_gemm.rules import (
    moving_programs,
    plain_form,
    reads_in_place,
)
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.partials import is_registered
from tftune.kernels.core.partials_timeline import LAST_WAVE
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import LAUNCH, MEMORY, WAIT, Call, Gate, Stage

FINE = 8
"""Waits within the first wave that are played one by one, and waves after it; of more, some
together."""


def describe(
    costs: Any,
    shape: AllGatherGemm,
    config: Config,
    mode: str,
    exchanges: Callable[[Any, AllGatherGemm, Any, int], Any] | None = None,
) -> Call:
    """The lanes of one call. `costs`: a `tftune.models.timeline.costs.Costs`, handed in so that
    kernels know nothing of models. `exchanges`: what takes the place of `push`, where there are
    several nodes."""
    config = SPACE.complete(config)
    knobs: dict[str, Any] = dict(config.knobs)
    if config.variant == "bsp":
        return _bsp(costs, shape, str(knobs["form"]), mode)
    if config.variant == "bsp_chunked":
        return _bsp_chunked(costs, shape, knobs, mode)
    return _fused(costs, shape, config, knobs, mode, exchanges)


def _bsp(costs: Any, shape: AllGatherGemm, form: str, mode: str) -> Call:
    """All-gather, a copy that makes A whole (before it, of the shard alone, where transposed), and
    the library's GEMM; with one rank the GEMM alone."""
    gather = costs.all_gather(shape.shard_bytes, shape.world, is_registered(form))
    copied = 2 * (shape.gathered_bytes if plain_form(form) == "gather_copy" else shape.shard_bytes)
    copy = Stage(costs.memory_us(copied), copied, tax=MEMORY)
    size = shape.element_bytes * (shape.k * (shape.m + shape.n) + shape.m * shape.n)
    gemm_us = costs.library_gemm_us(shape.flops, size)
    if shape.world == 1:
        return Call(costs.in_order(mode, [Stage(gemm_us)]), shape.world)
    ours_us = costs.library_gemm_us(shape.flops, size - shape.gathered_bytes)
    kernels = {
        "gather": [gather],
        "gather_copy": [gather, copy],
        "local_transpose": [copy, gather],
    }[plain_form(form)]
    lanes = costs.in_order(mode, [*kernels, Stage(ours_us)])
    lanes[-1].append(Stage(gemm_us - ours_us, tax=MEMORY))  # what reading the gathered A back adds
    return Call(lanes, shape.world)


def _bsp_chunked(costs: Any, shape: AllGatherGemm, knobs: dict[str, Any], mode: str) -> Call:
    """Copy engines send chunk after chunk; the library multiplies each behind a small kernel that
    waits for it, own rows first along M."""
    peers, rows, pieces = shape.world - 1, shape.shard_rows, list[int]()
    while (done := sum(pieces)) < rows:
        size = knobs["first_rows"] * knobs["growth"] ** len(pieces)
        pieces.append(size if rows - done >= 2 * size else rows - done)
    row_bytes = shape.shard_columns * shape.element_bytes
    others = peers if shape.shard == "m" else 1
    copies = [
        costs.engine_copies(peers, piece * row_bytes, shape.world, knobs["copy_streams"], mode)
        for piece in pieces
    ]
    own = (
        [Stage(_rows_us(costs, shape, rows))]
        if shape.shard == "m"
        else [Stage(costs.memory_us(2 * shape.shard_bytes), tax=MEMORY)]
    )
    stages = [costs.triton_launch(mode), *own]
    launches = costs.rates.graph_launch_us if mode == "graph" else costs.rates.library_call_us
    for number, piece in enumerate(pieces):
        arrived = Gate(0, (number + 1) * peers, costs.links.flag_us)
        stages.append(Stage(launches, after=arrived, tax=LAUNCH))
        stages.append(Stage(_rows_us(costs, shape, piece * others)))
    return Call((copies, [*stages, Stage(costs.links.skew_us, tax=WAIT)]), shape.world)


def _rows_us(costs: Any, shape: AllGatherGemm, rows: int) -> float:
    """The library's GEMM on so many rows of A."""
    size = shape.element_bytes * (shape.k * (rows + shape.n) + rows * shape.n)
    return float(costs.library_gemm_us(2 * rows * shape.n * shape.k, size))


def _fused(
    costs: Any,
    shape: AllGatherGemm,
    config: Config,
    knobs: dict[str, Any],
    mode: str,
    exchanges: Callable[[Any, AllGatherGemm, Any, int], Any] | None = None,
) -> Call:
    """Launch, the two lanes, and the end of the call, when the communicating programs have ended,
    too, and the last rank has come."""
    by_descriptor = knobs.get("loads") == "descriptor"
    launch = costs.triton_launch(mode, 3 if by_descriptor else 0)
    variant, programs = config.variant, moving_programs(shape, config)
    in_place = reads_in_place(shape, config)
    chunks = Chunks.of(shape, knobs, costs.chip.wave_size)
    if variant == "push_ce":
        exchange = by_engine(costs, shape, chunks, knobs["copy_streams"], mode)
        # Behind the small kernel that stages the epoch.
        launch = launch._replace(us=launch.us + costs.rates.graph_launch_us)
    else:
        make = exchanges or (IN_PLACE if in_place else EXCHANGES)[variant]
        exchange = make(costs, shape, chunks, programs)
    units = max(costs.chip.units - programs, 1)
    communicating = [launch._replace(units=0.0), *exchange.stages]
    computing = _Computing(costs, shape, variant, knobs, exchange, units).stages()
    ended = Gate(0, sum(stage.units for stage in communicating))
    # Where peers read tiles of A in place, the last of them says so at its end.
    told_us = costs.links.signal_us + costs.links.flag_us if in_place and not programs else 0.0
    closing = Stage(costs.links.skew_us + told_us, after=ended, tax=WAIT)
    joined = 1 + programs / units if knobs["schedule"] == "dynamic" else 1.0
    return Call((communicating, [launch, *computing, closing]), shape.world, joined)


class _Computing:
    """The lane of the computing programs, wave after wave of tiles (or of their parts)."""

    def __init__(
        self,
        costs: Any,
        shape: AllGatherGemm,
        variant: str,
        knobs: dict[str, Any],
        exchange: Exchange,
        units: int,
    ) -> None:
        self.costs, self.shape, self.knobs = costs, shape, knobs
        self.exchange, self.units, self.tile = exchange, units, costs.tile(knobs)
        self.tiles_m = ceil(shape.m / self.tile.block_m)
        self.tiles_n = ceil(shape.n / self.tile.block_n)
        self.pulls = variant == "pull"

    def _steps_us(self) -> float:
        """One chunk of K of one tile, step after step."""
        knobs, shape, tile = self.knobs, self.shape, self.tile
        load_us = self.costs.load_us(shape.world, self.pulls)
        steps = max(1, ceil(min(knobs["k_per_flag"], shape.shard_columns) / tile.block_k))
        described = knobs.get("loads") == "descriptor"
        step_us = self.costs.step_us(tile, shape.m, shape.element_bytes, load_us, described)
        return float(steps * step_us)

    def _start_us(self, waits: bool) -> float:
        """What a loop over K costs before its first step: its pipeline fills, once the flags of its
        chunks were polled, all at once."""
        polled_us = self.costs.rates.poll_us if waits else 0.0
        return float(self.costs.load_us(self.shape.world, self.pulls) + polled_us)

    def _ahead(self) -> int:
        """How many chunks that are there one loop takes at most (`gemm.multiply_tile`)."""
        shape, columns = self.shape, self.exchange.chunks.columns
        if self.tile.split_k > 1 or shape.shard_columns % self.tile.block_k:
            return 1
        most = columns if self.pulls or shape.shard == "m" else columns * (shape.world - 1)
        return next(ahead for ahead in (1, 2, 4, 8) if most <= ahead or ahead == 8)

    def _end_us(self) -> float:
        """What follows a tile's last step: where it has parts, adding them up; where tiles are
        claimed, the next claim."""
        split = self.tile.split_k
        works = self.tiles_m * self.tiles_n * split
        parts_us = self.costs.add_parts_us(self.tile, min(works, self.units)) if split > 1 else 0.0
        claimed = self.knobs["schedule"] == "dynamic"
        return float(parts_us + (self.costs.rates.poll_us if claimed else 0.0))

    def _last_row(self, wave: int) -> int:
        """The row after the last of a wave's tiles, in the order of `gemm.tile_order`."""
        tile = min((wave + 1) * self.units / self.tile.split_k, self.tiles_m * self.tiles_n) - 1
        group, within = divmod(max(int(tile), 0), self.tile.group_m * self.tiles_n)
        height = min(self.tile.group_m, self.tiles_m - group * self.tile.group_m)
        return (group * self.tile.group_m + min(within + 1, height)) * self.tile.block_m

    def _needed(self, wave: int) -> tuple[int, int] | None:
        """The last chunk of rows that a wave needs, and of which peer, A being sharded along M;
        None where it needs its own rows only. Along K every peer has some of each row: the
        first."""
        rows, last = self.shape.shard_rows, self._last_row(wave)
        if self.shape.shard == "k":
            return ceil(min(last, rows) / self.knobs["rows_per_flag"]) - 1, 0
        if last <= rows:
            return None
        peer = min((last - 1) // rows, self.shape.world - 1) - 1
        whole = self.tile.block_m > rows or (peer and self.exchange.chunks.order != "group")
        needed = rows if whole else min(last - (peer + 1) * rows, rows)
        return ceil(needed / self.knobs["rows_per_flag"]) - 1, peer

    def stages(self) -> list[Stage]:
        """The first wave chunk by chunk of K, the others each at once; what they move is spread
        evenly over their time. Of a tile's parts, which take chunks in turn, the one whose last
        chunk is the last of all: none has more."""
        steps_us, end_us, ahead = self._steps_us(), self._end_us(), self._ahead()
        columns = self.exchange.chunks.columns
        split, every = self.tile.split_k, self.exchange.chunks.steps
        chunks = range((every - 1) % split, every, split)
        own = len([chunk for chunk in chunks if chunk < columns]) if self.shape.shard == "k" else 0
        own_us = own * steps_us + self._start_us(waits=False) * (min(own, 1) if ahead > 1 else own)
        starts = (
            ceil(columns / ahead) * ((len(chunks) - own) // columns)
            if self.pulls and ahead > 1
            else ceil((len(chunks) - own) / ahead)
        )
        rest_us = (len(chunks) - own) * steps_us + starts * self._start_us(waits=True) + end_us
        unloaded = [Stage(own_us), *self._first_wave(chunks[own:], steps_us, starts, end_us)]
        waves, peers = self._waves(), self.shape.world - 1
        blocks = min(ceil(waves - 1), FINE)
        for number in range(blocks):
            each = (waves - 1) / blocks
            last = number == blocks - 1
            needed = self._needed(ceil(waves) - 1 if last else int(1 + number * each))
            if needed and self.shape.shard == "k":
                needed = needed[0], peers - 1
            rest = Stage(rest_us * each, after=self._gate(needed, columns - 1))
            unloaded += [Stage(own_us * each), rest]
        return self._loaded(unloaded)

    def _waves(self) -> float:
        waves = self.tiles_m * self.tiles_n * self.tile.split_k / self.units
        return max(1.0, waves + LAST_WAVE * (ceil(waves) - waves))

    def _first_wave(
        self, chunks: range, steps_us: float, starts: int, end_us: float
    ) -> list[Stage]:
        """The peers' chunks as they come: a loop that has to wait for one starts again behind
        it."""
        columns, needed = self.exchange.chunks.columns, self._needed(0)
        each = max(1, ceil(len(chunks) / FINE))
        blocks, start_us = ceil(len(chunks) / each), self._start_us(waits=True)
        stages = []
        for first in range(0, len(chunks), each):
            some = chunks[first : first + each]
            peer, column = divmod(some[0], columns)
            if needed and self.shape.shard == "k":
                needed = needed[0], peer - 1
            gate = self._gate(needed, column, start_us * max(1 - starts / blocks, 0.0))
            stages.append(Stage(len(some) * steps_us + starts / blocks * start_us, after=gate))
        return [*stages, Stage(end_us)]

    def _gate(
        self, needed: tuple[int, int] | None, column: int, later_us: float = 0.0
    ) -> Gate | None:
        if needed is None or self.shape.world == 1:
            return None
        row, peer = needed
        flight_us = self.costs.links.flag_us + later_us
        return Gate(0, self.exchange.arrived(row, column, peer), flight_us)

    def _loaded(self, stages: list[Stage]) -> list[Stage]:
        """The stages that take any time, with their shares of what all of them move."""
        shape, tile, alone_us = self.shape, self.tile, sum(stage.us for stage in stages)
        missed_us = self.costs.missed_us(
            shape.m, shape.n, shape.k, shape.element_bytes, tile, self.units, self.knobs["xcds"]
        )
        power_us = shape.flops / self.costs.rates.matrix_flops_per_us
        times = self.costs.overlap(max(alone_us, power_us), missed_us) / alone_us
        traffic = self.costs.traffic(
            shape.m, shape.n, shape.k, shape.element_bytes, tile, self.units // tile.split_k
        )
        memory = traffic / self.costs.rates.stream_share
        pulled = (
            shape.shard_bytes * (shape.world - 1) * self.tiles_n / self.costs.pull_share
            if self.pulls
            else 0.0
        )
        return [
            Stage(times * us, memory * us / alone_us, pulled * us / alone_us, after=stage.after)
            for stage in stages
            if (us := stage.us) > 0
        ]
