"""How a GEMM whose inner size is split over the ranks spends its time: the lanes of one call, for
`tftune.models.timeline.simulator` to play.

A fused call computes owner after owner; what it has stored for one goes over the links while it
computes the next. The last owner's tiles have nothing to hide behind. Then this rank adds up its
rows; in two shots it stores them to all, which nothing hides. A relay's tiles go to memory and back
first, and fewer programs compute. Standard library only.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from tftune.kernels.core.partials import owner_tiles, owners, route, slots_bytes, spans, tiles
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import MEMORY, WAIT, Call, Gate, Stage

LAST_WAVE = 0.8
"""The fraction of a full wave that an unfilled last wave costs beyond its share: 1 if the busy
units gained nothing from the idle ones. Fitted with the constants of H200
(kernels/core/chips.py)."""
COPY_BYTES = 64 * 256
"""That a forwarding program of 8 warps (waves of CDNA: of 4) has in flight: four 16-byte accesses
of each thread."""


ONE_PART = {"split_k": 1}
"""The split_k of a variant without that knob."""


def library_gemm(costs: Any, shape: Any) -> Stage:
    """The vendor's GEMM of one rank."""
    elements = (shape.m + shape.n) * shape.inner + shape.m * shape.n
    return Stage(costs.library_gemm_us(shape.flops, elements * shape.element_bytes))


def fused(costs: Any, shape: Any, config: Config, mode: str) -> Call:
    """The lanes of a complete config: what goes over the links, owner after owner, and what
    computes. `costs`: a `tftune.models.timeline.costs.Costs`, handed in so that kernels know
    nothing of models."""
    launch = costs.triton_launch(mode, 2 if config["loads"] == "descriptor" else 0)
    ranks = owners(shape, config.variant)
    words = config.variant.endswith("_ll")  # which carry their epoch beside the data
    knobs = {"wire": "dtype"} | dict(config.knobs)
    world, slots = shape.world, slots_bytes(shape, knobs, ranks) * (1 + words)
    turns = 1 if spans(shape, config, ranks) else ranks
    forwarding = int(knobs.get("comm_programs", 0))
    tile, units = costs.tile(knobs), max(1, costs.chip.units - forwarding)
    traffic = costs.traffic(shape.m, shape.n, shape.inner, shape.element_bytes, tile, units)
    memory = (traffic / costs.rates.stream_share + slots) / turns
    parts = tiles(shape, config, ranks) * tile.split_k
    each_us = gemm_us(costs, shape, config, units, parts, shape.flops) / turns
    computing = [launch, *(Stage(each_us, memory) for _ in range(turns))]
    sent = slots * (world - 1) / world
    pulled = config.variant == "pull"
    flights = [] if pulled or world == 1 else _flights(costs, world, sent, turns, forwarding)
    flag_us = costs.links.flag_us + (0.0 if words else costs.links.signal_us)
    gate = Gate(0, len(flights), flag_us) if flights else None
    computing.append(_adding(costs, shape, config, slots, sent if pulled else 0.0, gate))
    if config.variant == "two_shot" and world > 1:
        shared = shape.m * shape.n * shape.element_bytes * (world - 1) / world
        second_us = shared / costs.links.rate(world) + costs.links.flag_us
        computing.append(Stage(second_us, 2 * shared, shared, tax=WAIT))
    return Call((flights, [*computing, Stage(costs.links.skew_us, tax=WAIT)]), world)


def _flights(costs: Any, world: int, sent: float, turns: int, forwarding: int) -> list[Stage]:
    """One stage for each turn but the last, whose tiles are this rank's own; one where tiles are
    for every rank. Programs that forward read what they send."""
    stages = max(turns - 1, 1)
    each = sent / stages
    flight_us, moved = each / costs.links.rate(world), each
    if forwarding:
        blocks = ceil(each / forwarding / COPY_BYTES)
        flight_us, moved = max(flight_us, costs.copy_us(blocks, 1)), 3 * each
    return [Stage(flight_us, moved, each, after=Gate(1, number + 2)) for number in range(stages)]


def _adding(
    costs: Any, shape: Any, config: Config, slots: int, pulled: float, gate: Gate | None
) -> Stage:
    """All slots of this rank's rows read, from peers where they are pulled."""
    ranks = owners(shape, config.variant)
    rounds = ceil(owner_tiles(shape, config, ranks) / costs.chip.units)
    loads = rounds * shape.world * int(config["split_k"])
    us = costs.memory_us(slots) + loads * costs.load_us(shape.world, False)
    if pulled:
        pulled /= costs.pull_share
        us = max(us, pulled / costs.links.rate(shape.world)) + costs.links.flag_us
    return Stage(us, slots, pulled, after=gate, tax=MEMORY)


def gemm_us(costs: Any, shape: Any, config: Config, units: int, parts: int, flops: float) -> float:
    """So many parts of tiles, wave after wave, alone on so many units."""
    tile, by_descriptor = costs.tile(ONE_PART | dict(config.knobs)), config["loads"] == "descriptor"
    load_us = costs.load_us(shape.world, False)
    steps = ceil(shape.inner / tile.block_k / tile.split_k)
    step_us = costs.step_us(tile, shape.m, shape.element_bytes, load_us, by_descriptor)
    if route(config.variant) == "one_shot":  # stores to every rank, one after another
        load_us += costs.rates.block_us * (shape.world - 1)
    waves = parts / units
    waves = max(1.0, waves + LAST_WAVE * (ceil(waves) - waves))
    alone_us = waves * (load_us + steps * step_us)
    return float(max(alone_us, flops / costs.rates.matrix_flops_per_us))
