"""How the variants of flash_decode spend their time: the stages of one call, for
`tftune.models.timeline.simulator` to play. Standard library only.

One lane: the exchange waits for all of the local part, since what is sent is its sum.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heapreplace
from math import ceil
from typing import Any, NamedTuple

from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import LAUNCH, MEMORY, WAIT, Call, Stage
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.lengths import FULL, Lengths
from tftune.kernels.flash_decode.rules import RESIDENT_VARIANTS, blocks_on_the_way
from tftune.kernels.flash_decode.space import SPACE

STEP_US = 0.35
"""The part of one block of tokens that no load hides: two small products and a row's maximum
between them. Assumed."""
FILL_US = 1.5
"""From a program's first instruction until its first block of keys is there: its length, then the
loads. Assumed."""
HOP_US = 1.0
"""A program leaves what another one of the same chip reads: a fence, a counter, and the reads.
Assumed."""
CACHED_SHARE = 0.25
"""Cost of partial results, which stay in the last-level cache, relative to HBM. Assumed."""
LAUNCHES = {
    "bsp": 3,
    "gather": 4,
    "no_wait": 4,
    "fused": 3,
    "fused_heads": 3,
    "persistent": 1,
    "persistent_ll": 1,
}
"""Kernels of a call, the library's not counted; one fewer where one split needs no adding up, up to
no_wait."""


class Busy(NamedTuple):
    """What decides how long a rank attends: all of its work, and its busiest program's."""

    tokens: int
    """Tokens of all sequences."""
    rounds: float
    """Tokens of the busiest program, in units of the mean unit of work."""
    blocks: int
    """Blocks of tokens of the busiest program."""
    units: int
    """Units of work that hold a token."""


def describe(
    costs: Any, shape: FlashDecode, config: Config, mode: str, lengths: str = FULL
) -> Call:
    """The stages of one call. `costs`: a `tftune.models.timeline.costs.Costs`, handed in so that
    kernels know nothing of models. `lengths`: as rows name them, see `lengths.Lengths`."""
    knobs: dict[str, Any] = {**dict(SPACE.complete(config).knobs), "variant": config.variant}
    stages = [
        *_launches(costs, config.variant, knobs, mode),
        *_local(costs, shape, knobs, lengths),
        *_exchange(costs, shape, config, knobs, mode),
    ]
    return Call((stages,), shape.world)


def _launches(costs: Any, variant: str, knobs: dict[str, Any], mode: str) -> list[Stage]:
    """Each kernel but the first starts one launch after the one before, twice that where the host
    launches them."""
    kernels = LAUNCHES[variant] - (
        knobs["kv_splits"] == 1 and variant in ("bsp", "gather", "no_wait")
    )
    later_us = (kernels - 1) * costs.rates.graph_launch_us * (1 if mode == "graph" else 2)
    later = [Stage(later_us, tax=LAUNCH)] if kernels > 1 else []
    return [costs.triton_launch(mode), *later]


def _local(costs: Any, shape: FlashDecode, knobs: dict[str, Any], lengths: str) -> list[Stage]:
    """Every unit of work attended to, memory and what the busiest program cannot hide; then the
    splits added up."""
    on = costs.chip.units * knobs.get("programs_per_unit", 1)
    units = shape.batch * shape.kv_heads * knobs["kv_splits"]
    busy = _full(shape, knobs, on) if lengths == FULL else _ragged(shape, knobs, on, lengths)
    ahead = blocks_on_the_way(shape, knobs["num_stages"], costs.chip)
    loads = knobs["block_n"] * 2 * shape.head_dim * shape.element_bytes * ahead
    step_us = STEP_US * (4 / knobs["num_warps"]) ** 0.5 + costs.rates.load_us / ahead
    latency_us = busy.blocks * step_us
    in_flight = min(1.0, loads * min(busy.units, on) / (costs.rates.hbm_bytes_per_us * 0.9))
    read = shape.bytes_of(busy.tokens)
    memory_us = costs.memory_us(read) * busy.rounds * on / max(units, 1) / in_flight
    words = knobs["variant"] == "persistent_ll"
    parts = (8 if words else 4) * units * shape.group * (shape.head_dim + 1)
    attended = Stage(FILL_US + costs.overlap(memory_us, latency_us), read)
    hop_us = HOP_US * (0.5 if words else 1)
    return [attended, Stage(hop_us + costs.memory_us(2 * parts * CACHED_SHARE), tax=MEMORY)]


def _full(shape: FlashDecode, knobs: dict[str, Any], on: int) -> Busy:
    """Where every sequence fills the cache."""
    units = shape.batch * shape.kv_heads * knobs["kv_splits"]
    rounds, tokens = ceil(units / on), shape.kv_len / knobs["kv_splits"]
    blocks = rounds * ceil(tokens / knobs["block_n"])
    return Busy(shape.batch * shape.kv_len, rounds, blocks, units)


def _ragged(shape: FlashDecode, knobs: dict[str, Any], on: int, lengths: str) -> Busy:
    """The busy times of rank 0, which no other rank exceeds."""
    local = Lengths.parse(lengths).local(shape, 0)
    in_turn = knobs["variant"] in RESIDENT_VARIANTS
    splits, block_n = knobs["kv_splits"], knobs["block_n"]
    blocks, share = _busiest(local, shape.kv_heads * splits, on, splits * block_n, in_turn)
    there = sum(tokens > 0 for tokens in local) * shape.kv_heads * splits
    units = shape.batch * shape.kv_heads * splits
    return Busy(sum(local), share * units, blocks, max(there, 1))


@lru_cache(maxsize=4096)
def _busiest(
    lengths: tuple[int, ...], each: int, on: int, step: int, in_turn: bool
) -> tuple[int, float]:
    """Blocks of the program that has most to do, and its share of all blocks, 0 without any.

    Every sequence makes `each` units of work, of one block for `step` of its tokens. `in_turn`:
    resident programs take every `on`-th unit; else a unit goes to the program that is free first.
    """
    blocks = [ceil(tokens / step) for tokens in lengths]
    if not (total := sum(blocks) * each):
        return 0, 0.0
    busy, at = [0] * min(on, len(blocks) * each), 0
    for work in blocks:
        for _ in range(each):
            if in_turn:
                busy[at] += work
                at = (at + 1) % len(busy)
            elif work:
                heapreplace(busy, busy[0] + work)
    return max(busy), max(busy) / total


def _exchange(
    costs: Any, shape: FlashDecode, config: Config, knobs: dict[str, Any], mode: str
) -> list[Stage]:
    """Messages to every peer, then all ranks' rows added up."""
    merged_us = HOP_US + costs.memory_us(shape.world * shape.message_bytes * CACHED_SHARE)
    if config.variant == "bsp":
        launch_us = costs.rates.graph_launch_us if mode == "graph" else costs.rates.library_call_us
        gathered = costs.all_gather(shape.message_bytes, shape.world)
        return [Stage(launch_us, tax=LAUNCH), gathered, Stage(merged_us, tax=MEMORY)]
    pieces = shape.batch * shape.kv_heads * ceil(shape.group / knobs["heads_per_program"])
    rows = ceil(pieces / min(costs.chip.units, pieces))
    sent = shape.message_bytes * (shape.world - 1)
    if config.variant == "persistent_ll":
        # Twice the bytes; a word's flight is the flag's, and its merger polls the data itself.
        flown_us = costs.overlap(2 * sent / costs.links.rate(shape.world), rows * 0.5)
        flown = Stage(flown_us + costs.links.flag_us, 0.0, 2 * sent, tax=WAIT)
        return [flown, Stage((merged_us - HOP_US / 2) * (1 + 0.2 * rows), tax=MEMORY)]
    flagged = knobs.get("heads_per_flag", 0)
    moved_us = costs.overlap(sent / costs.links.rate(shape.world), rows * 0.5)
    sent_us = moved_us + (rows if flagged else 1) * costs.links.signal_us
    shared_flag_us = 0.0 if flagged == knobs["heads_per_program"] else HOP_US
    waited = Stage(sent_us + shared_flag_us + costs.links.flag_us, 0.0, sent, tax=WAIT)
    return [waited, Stage(merged_us * (1 + 0.2 * rows), tax=MEMORY)]
