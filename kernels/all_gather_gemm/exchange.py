"""The lane of the programs, or copy engines, that move data in a fused call of all_gather_gemm.
Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Any, NamedTuple

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.rules import (
    band,
    column_chunks,
    copied_at_once,
    row_chunks,
    steps,
)
from tftune.kernels.core.timeline_ir import Gate, Stage


class Chunks(NamedTuple):
    """How a shard is cut into flags, and in which order its chunks move."""

    rows: int
    """Chunks of rows."""
    columns: int
    """Chunks of columns of a shard."""
    blocks: int
    """Copies of four 16-byte accesses of each thread that one chunk takes."""
    steps: int
    """Chunks along the whole K, each with its own wait."""
    order: str
    band: int
    """Row chunks of one group of tiles."""

    @classmethod
    def of(cls, shape: AllGatherGemm, knobs: dict[str, Any], wave_size: int) -> Chunks:
        rows = min(knobs["rows_per_flag"], shape.shard_rows)
        columns = min(knobs["k_per_flag"], shape.shard_columns)
        high, wide = copied_at_once(shape, knobs, wave_size)
        return cls(
            row_chunks(shape, knobs),
            column_chunks(shape, knobs),
            ceil(rows / high) * ceil(columns / wide),
            steps(shape, knobs),
            knobs.get("order", "chunk"),
            band(knobs),
        )

    def place(self, row: int, column: int, peer: int, peers: int) -> int:
        """Which copy moves a chunk to (or from) a peer, peers counted as they are needed:
        `gemm.chunk_and_peer` the other way round."""
        if self.order == "chunk":
            return (row * self.columns + column) * peers + peer
        if self.order == "column":
            return (column * self.rows + row) * peers + peer
        first = row // self.band * self.band
        height = min(self.rows - first, self.band)
        return first * self.columns * peers + (peer * self.columns + column) * height + row - first


class Exchange(NamedTuple):
    """The lane of the communicating programs, whose units are rounds: copies of each program."""

    stages: list[Stage]
    chunks: Chunks
    arrived: Callable[[int, int, int], float]
    """Rounds after which a chunk (of rows, of columns) of a peer is there. Peers are counted as
    they are needed."""


Make = Callable[[Any, AllGatherGemm, Chunks, int], Exchange]
"""Costs, shape, chunks and programs to their lane."""


def push(costs: Any, shape: AllGatherGemm, chunks: Chunks, programs: int) -> Exchange:
    """Each program stores chunk after chunk to peer after peer, with a signal for each."""
    peers, sent = shape.world - 1, shape.shard_bytes * (shape.world - 1)
    rounds = ceil(chunks.rows * chunks.columns * peers / programs)
    alone_us = rounds * costs.copy_us(chunks.blocks, 1)
    stage = Stage(alone_us, sent, sent * _one_by_one(costs, shape, chunks), rounds)

    def arrived(row: int, column: int, peer: int) -> float:
        return chunks.place(row, column, peer, peers) // programs + 1

    return Exchange([stage] if peers else [], chunks, arrived)


def _one_by_one(costs: Any, shape: AllGatherGemm, chunks: Chunks) -> float:
    """How many times longer links are busy where one peer is served after another: private links
    are then idle but for one."""
    return costs.links.at_once(shape.world) if chunks.order == "group" else 1.0


def _stage(costs: Any, shape: AllGatherGemm, chunks: Chunks, programs: int) -> Exchange:
    """Each program copies its chunks to where peers can read them, with a signal to every peer for
    each."""
    rounds = ceil(chunks.rows * chunks.columns / programs)
    stage = Stage(
        rounds * costs.copy_us(chunks.blocks, shape.world - 1), 2 * shape.shard_bytes, 0.0, rounds
    )
    return Exchange(
        [stage], chunks, lambda row, column, peer: chunks.place(row, column, 0, 1) // programs + 1
    )


def _offer(costs: Any, shape: AllGatherGemm, chunks: Chunks, programs: int) -> Exchange:
    """One program tells every peer at once that this rank's shard may be read."""
    offer = Stage(costs.links.signal_us, units=1.0)
    return Exchange([offer], chunks, lambda row, column, peer: 1)


def _pulled(
    let_read: Make, costs: Any, shape: AllGatherGemm, chunks: Chunks, programs: int
) -> Exchange:
    """As `_stage` or `_offer`, which lets peers read; then each program copies the chunks of its
    namesakes on every peer into the inbox, and signals to its own rank."""
    before = let_read(costs, shape, chunks, programs).stages
    first, peers = sum(stage.units for stage in before), shape.world - 1
    turns, moved = ceil(chunks.rows * chunks.columns / programs), shape.shard_bytes * peers
    alone_us = turns * peers * costs.copy_us(chunks.blocks, 1, remote=True)
    sent, staged_here = moved * _one_by_one(costs, shape, chunks), Gate(0, 1, costs.links.flag_us)
    pulled = Stage(alone_us, moved, sent, turns * peers, staged_here)

    def arrived(row: int, column: int, peer: int) -> float:
        turn = chunks.place(row, column, 0, 1) // programs
        return first + 1 + (peer * turns + turn if chunks.order == "group" else turn * peers + peer)

    return Exchange([*before, pulled] if peers else before, chunks, arrived)


def by_engine(
    costs: Any, shape: AllGatherGemm, chunks: Chunks, streams: int, mode: str
) -> Exchange:
    """Copy engines store chunk after chunk to peer after peer."""
    peers = shape.world - 1
    copies = chunks.rows * peers
    stage = costs.engine_copies(copies, shape.shard_bytes / chunks.rows, shape.world, streams, mode)
    return Exchange(
        [stage] if peers else [], chunks, lambda row, column, peer: row * peers + peer + 1
    )


EXCHANGES: dict[str, Make] = {"push": push, "staged": partial(_pulled, _stage), "pull": _stage}
IN_PLACE: dict[str, Make] = {"staged": partial(_pulled, _offer), "pull": _offer}
