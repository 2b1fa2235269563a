"""How the variants of gemm_reduce_scatter spend their time: the lanes of one call, for
`tftune.models.timeline.simulator` to play.

A fused call computes owner after owner; what it has stored for one goes over the links while it
computes the next. The last owner's tiles have nothing to hide behind. Then this rank adds up its
rows. Standard library only.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from tftune.kernels.core.partials import is_registered, owner_tiles, parts, slots_bytes, spans
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import MEMORY, WAIT, Call, Gate, Stage
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import SPACE

LAST_WAVE = 0.8
"""Of an unfilled last wave, what it costs beyond its share, as in all_gather_gemm."""


def describe(costs: Any, shape: GemmReduceScatter, config: Config, mode: str) -> Call:
    """The lanes of one call. `costs`: a `tftune.models.timeline.costs.Costs`, handed in so that
    kernels know nothing of models."""
    config = SPACE.complete(config)
    if config.variant == "bsp":
        return _bsp(costs, shape, config, mode)
    return _fused(costs, shape, config, mode)


def _bsp(costs: Any, shape: GemmReduceScatter, config: Config, mode: str) -> Call:
    """The library's GEMM, then its reduce-scatter, taken to last as long as its all-gather of as
    many bytes."""
    product = shape.m * shape.n * shape.element_bytes
    inputs = (shape.m + shape.n) * shape.inner * shape.element_bytes
    kernels = [Stage(costs.library_gemm_us(shape.flops, inputs + product))]
    if shape.world > 1:
        kernels.append(
            costs.all_gather(shape.shard_bytes, shape.world, is_registered(config["form"]))
        )
    return Call(costs.in_order(mode, kernels), shape.world)


def _gemm_us(costs: Any, shape: GemmReduceScatter, config: Config) -> float:
    """All parts of tiles, wave after wave, alone on the GPU."""
    tile, by_descriptor = costs.tile(dict(config.knobs)), config["loads"] == "descriptor"
    load_us = costs.load_us(shape.world, False)
    steps = ceil(shape.inner / tile.block_k / tile.split_k)
    part_us = load_us + steps * costs.step_us(
        tile, shape.m, shape.element_bytes, load_us, by_descriptor
    )
    waves = parts(shape, config) / costs.chip.units
    waves = max(1.0, waves + LAST_WAVE * (ceil(waves) - waves))
    return float(max(waves * part_us, shape.flops / costs.rates.matrix_flops_per_us))


def _fused(costs: Any, shape: GemmReduceScatter, config: Config, mode: str) -> Call:
    """Two lanes: what goes over the links, owner after owner, and what computes. Pulled, the last
    stage moves everything, since owners load when they add."""
    launch = costs.triton_launch(mode, 2 if config["loads"] == "descriptor" else 0)
    gemm_us, world = _gemm_us(costs, shape, config), shape.world
    tile, units = costs.tile(dict(config.knobs)), costs.chip.units
    traffic = costs.traffic(shape.m, shape.n, shape.inner, shape.element_bytes, tile, units)
    slots = slots_bytes(shape, config)
    sent = slots * (world - 1) / world
    turns = 1 if spans(shape, config) else world
    each_us, memory = gemm_us / turns, (traffic / costs.rates.stream_share + slots) / turns
    computing = [launch, *(Stage(each_us, memory) for _ in range(turns))]
    rounds = ceil(owner_tiles(shape, config) / units)
    adding_us = costs.memory_us(slots) + rounds * world * costs.load_us(world, False)
    pulls, peers = config.variant == "pull", max(turns - 1, 1)
    each_sent = sent / peers
    flight_us = 0.0 if pulls or world == 1 else each_sent / costs.links.rate(world)
    flying = [
        Stage(flight_us, each_sent, each_sent, after=Gate(1, number + 2))
        for number in range(peers)
        if flight_us
    ]
    arrived = Gate(0, len(flying), costs.links.flag_us) if flying else None
    moved = sent / costs.pull_share if pulls and world > 1 else 0.0
    if moved:
        adding_us = max(adding_us, moved / costs.links.rate(world)) + costs.links.flag_us
    adding = Stage(adding_us, slots, moved, after=arrived, tax=MEMORY)
    return Call((flying, [*computing, adding, Stage(costs.links.skew_us, tax=WAIT)]), world)
