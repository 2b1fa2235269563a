"""How the variants of merge_attention spend their time: the stages of one call, for
`tftune.models.timeline.simulator` to play. Standard library only.

One lane: each step needs the one before it.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import LAUNCH, MEMORY, WAIT, Call, Stage
from tftune.kernels.merge_attention import MergeAttention
from tftune.kernels.merge_attention.space import SPACE

FILL_US = 1.0
"""From a kernel's first instruction until its first rows are there. Assumed."""
PROGRAM_BYTES_PER_US = 30e3
"""Stores of one program of 8 warps to peers: 343 to 370 GB/s take 12 to 24 of 1024 threads
(ParallelKittens, on H100)."""
CACHED_SHARE = 0.25
"""Cost of what lies in an inbox, which stays in the last-level cache, relative to HBM. Assumed."""


def describe(costs: Any, shape: MergeAttention, config: Config, mode: str) -> Call:
    """The stages of one call. `costs`: a `tftune.models.timeline.costs.Costs`, handed in so that
    kernels know nothing of models."""
    read_bytes = shape.batch * shape.heads * (shape.head_dim * shape.element_bytes + 4)
    read = Stage(FILL_US + costs.memory_us(read_bytes), read_bytes)
    merged = shape.world * shape.message_bytes
    written = shape.rows * shape.head_dim * shape.element_bytes
    if config.variant == "bsp":
        launch_us = costs.rates.graph_launch_us if mode == "graph" else costs.rates.library_call_us
        gathered = costs.all_gather(shape.message_bytes, shape.world)
        added = Stage(FILL_US + costs.memory_us(merged + written), merged + written, tax=MEMORY)
        packed = Stage(costs.memory_us(merged), merged, tax=MEMORY)
        kernel = costs.triton_launch(mode)
        stages = [kernel, read, packed, Stage(launch_us, tax=LAUNCH), gathered, kernel, added]
        return Call((stages,), shape.world)
    knobs: dict[str, Any] = dict(SPACE.complete(config).knobs)
    words = 2 if config.variant == "one_shot_ll" else 1
    sent = words * (shape.world - 1) * shape.message_bytes
    per_program = PROGRAM_BYTES_PER_US * knobs["num_warps"] / 8
    rate = min(costs.links.rate(shape.world), knobs["programs"] * per_program)
    pieces = ceil(ceil(shape.rows / knobs["rows_per_piece"]) * shape.world / knobs["programs"])
    signals_us = 0.0 if words == 2 else pieces * costs.links.signal_us
    flight_us = costs.links.flag_us if shape.world > 1 else 0.0
    flown = Stage(sent / rate + signals_us + flight_us, sent, sent, tax=WAIT)
    cached_us = costs.memory_us(CACHED_SHARE * words * merged + written)
    added = Stage(costs.rates.load_us + cached_us, written, tax=MEMORY)
    return Call(([costs.triton_launch(mode), read, flown, added],), shape.world)
