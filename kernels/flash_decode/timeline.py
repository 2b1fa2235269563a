"""How the variants of flash_decode spend their time: which stages of a machine follow, and which overlap. Standard library only.

The machine is handed in by `models/timeline.py`, so that kernels know nothing of models.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.space import complete_knobs
from tftune.kernels.space import Config

STEP_US = 0.35
"""Of one block of tokens, what no load hides: two small products and a row's maximum between them. Assumed."""
FILL_US = 1.5
"""From a program's first instruction until its first block of keys is there: its length, then the loads. Assumed."""
HOP_US = 1.0
"""A program leaves what another one of the same chip reads: a fence, a counter, and the reads. Assumed."""
CACHED_SHARE = 0.25
"""Cost of partial results, which stay in the last-level cache, relative to HBM, as in `models/timeline.py`."""
LAUNCHES = {"bsp": 3, "gather": 4, "no_wait": 4, "fused": 3, "fused_heads": 3, "persistent": 1}
"""Kernels of a call, the library's not counted; one fewer where one split needs no adding up, up to no_wait."""


def timeline(machine: Any, shape: FlashDecode, config: Config, mode: str) -> float:
    """Predicted microseconds of one call. `machine`: a `tftune.models.timeline.Machine`, whose stages this adds up."""
    knobs = complete_knobs(config)
    return float(
        _launches(machine, config.variant, knobs, mode) + _local(machine, shape, knobs) + _exchange(machine, shape, config, knobs, mode)
    )


def _launches(machine: Any, variant: str, knobs: dict[str, Any], mode: str) -> float:
    kernels = LAUNCHES[variant] - (knobs["kv_splits"] == 1 and variant in ("bsp", "gather", "no_wait"))
    return float(machine.launch_us(mode, 1, triton=True) + machine.launch_us("graph", kernels - 1) * (1 if mode == "graph" else 2))


def _local(machine: Any, shape: FlashDecode, knobs: dict[str, Any]) -> float:
    """Every unit of work attended to, then the splits added up: memory, and what the busiest program cannot hide."""
    on = machine.chip.units * knobs.get("programs_per_unit", 1)
    units = shape.batch * shape.kv_heads * knobs["kv_splits"]
    rounds, tokens = ceil(units / on), shape.kv_len / knobs["kv_splits"]
    loads = knobs["block_n"] * 2 * shape.head_dim * shape.element_bytes * max(knobs["num_stages"] - 1, 1)
    latency_us = (
        rounds * ceil(tokens / knobs["block_n"]) * (STEP_US * (4 / knobs["num_warps"]) ** 0.5 + 0.8 / max(knobs["num_stages"] - 1, 1))
    )
    in_flight = min(1.0, loads * min(units, on) / (machine.chip.hbm_bytes_per_us * 0.9))
    memory_us = machine.hbm_us(shape.cache_bytes) * rounds * on / max(units, 1) / in_flight
    parts = 4 * units * shape.group * (shape.head_dim + 1) * CACHED_SHARE
    return float(FILL_US + machine.overlap(memory_us, latency_us) + HOP_US + machine.hbm_us(2 * parts))


def _exchange(machine: Any, shape: FlashDecode, config: Config, knobs: dict[str, Any], mode: str) -> float:
    """Messages to every peer, then all ranks' rows added up."""
    gathered = shape.world * shape.message_bytes
    merged_us = HOP_US + machine.hbm_us(gathered * CACHED_SHARE)
    if config.variant == "bsp":
        return float(machine.all_gather_us(shape.message_bytes, shape.world, mode) + machine.launch_us(mode, 1) + merged_us)
    pieces = shape.batch * shape.kv_heads * ceil(shape.group / knobs["heads_per_program"])
    programs = min(machine.chip.units, pieces)
    rows = ceil(pieces / programs)
    link_us = shape.message_bytes * (shape.world - 1) / machine.chip.link_rate(shape.world)
    signals = rows if knobs.get("heads_per_flag", 0) else 1
    sent_us = machine.overlap(link_us, rows * 0.5) + signals * machine.signal_us()
    shared_flag_us = 0.0 if knobs.get("heads_per_flag", 0) == knobs["heads_per_program"] else HOP_US
    return float(sent_us + shared_flag_us + machine.chip.flag_us + merged_us * (1 + 0.2 * rows))
