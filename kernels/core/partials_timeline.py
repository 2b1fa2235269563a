"""How a GEMM whose inner size is split over the ranks spends its time: the lanes of one call, for
`tftune.models.timeline.simulator` to play.

A fused call computes owner after owner; what it has stored for one goes over the links while it
computes the next. The last owner's tiles have nothing to hide behind. Then this rank adds up its
rows; in two shots it stores them to all, which nothing hides. Standard library only.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from tftune.kernels.core.partials import ONE_SHOT, owner_tiles, owners, slots_bytes, spans, tiles
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import MEMORY, WAIT, Call, Gate, Stage

LAST_WAVE = 0.8
"""Of an unfilled last wave, what it costs beyond its share, as in all_gather_gemm."""


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
    world, slots = shape.world, slots_bytes(shape, config, ranks)
    turns = 1 if spans(shape, config, ranks) else ranks
    tile, units = costs.tile(dict(config.knobs)), costs.chip.units
    traffic = costs.traffic(shape.m, shape.n, shape.inner, shape.element_bytes, tile, units)
    memory = (traffic / costs.rates.stream_share + slots) / turns
    each_us = _gemm_us(costs, shape, config) / turns
    computing = [launch, *(Stage(each_us, memory) for _ in range(turns))]
    sent = slots * (world - 1) / world
    pulled = config.variant == "pull"
    flights = [] if pulled or world == 1 else _flights(costs, world, sent, turns)
    gate = Gate(0, len(flights), costs.links.flag_us) if flights else None
    computing.append(_adding(costs, shape, config, slots, sent if pulled else 0.0, gate))
    if config.variant == "two_shot" and world > 1:
        shared = shape.m * shape.n * shape.element_bytes * (world - 1) / world
        second_us = shared / costs.links.rate(world) + costs.links.flag_us
        computing.append(Stage(second_us, 2 * shared, shared, tax=WAIT))
    return Call((flights, [*computing, Stage(costs.links.skew_us, tax=WAIT)]), world)


def _flights(costs: Any, world: int, sent: float, turns: int) -> list[Stage]:
    """One stage for each turn but the last, whose tiles are this rank's own; one where tiles are
    for every rank."""
    stages = max(turns - 1, 1)
    each = sent / stages
    flight_us = each / costs.links.rate(world)
    return [Stage(flight_us, each, each, after=Gate(1, number + 2)) for number in range(stages)]


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


def _gemm_us(costs: Any, shape: Any, config: Config) -> float:
    """All parts of tiles, wave after wave, alone on the GPU."""
    tile, by_descriptor = costs.tile(dict(config.knobs)), config["loads"] == "descriptor"
    load_us = costs.load_us(shape.world, False)
    steps = ceil(shape.inner / tile.block_k / tile.split_k)
    step_us = costs.step_us(tile, shape.m, shape.element_bytes, load_us, by_descriptor)
    if config.variant == ONE_SHOT:  # stores to every rank, one after another
        load_us += costs.rates.block_us * (shape.world - 1)
    parts = tiles(shape, config, owners(shape, config.variant)) * tile.split_k
    waves = parts / costs.chip.units
    waves = max(1.0, waves + LAST_WAVE * (ceil(waves) - waves))
    alone_us = waves * (load_us + steps * step_us)
    return float(max(alone_us, shape.flops / costs.rates.matrix_flops_per_us))
