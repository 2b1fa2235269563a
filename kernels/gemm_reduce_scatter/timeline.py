"""How the variants of gemm_reduce_scatter spend their time. Standard library only."""

from __future__ import annotations

from typing import Any

from tftune.kernels.core.partials import is_registered, slot_bytes
from tftune.kernels.core.partials_timeline import ONE_PART, fused, gemm_us, library_gemm
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import LAUNCH, MEMORY, WAIT, Call, Gate, Stage
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import SPACE, chunk_rows, vendor_rows


def describe(costs: Any, shape: GemmReduceScatter, config: Config, mode: str) -> Call:
    """The lanes of one call. The library's reduce-scatter is taken to last as long as its
    all-gather of as many bytes."""
    config = SPACE.complete(config)
    if config.variant in ("push_ce", "vendor_ce"):
        return _by_copies(costs, shape, config, mode)
    if config.variant == "bsp_chunked":
        return _chunked(costs, shape, config, mode)
    if config.variant != "bsp":
        return fused(costs, shape, config, mode)
    kernels = [library_gemm(costs, shape)]
    if shape.world > 1:
        known = is_registered(config["form"])
        kernels.append(costs.all_gather(shape.shard_bytes, shape.world, known))
    return Call(costs.in_order(mode, kernels), shape.world)


def _by_copies(costs: Any, shape: GemmReduceScatter, config: Config, mode: str) -> Call:
    """Behind the kernel that stages the epoch, a launch for each chunk of a peer's rows, whose copy
    goes on beside the next; this rank's own rows; then the sum, once all copies have ended."""
    world, knobs = shape.world, {"wire": "dtype", "loads": "pointer"} | dict(config.knobs)
    sent = slot_bytes(shape, knobs, world)
    each_rows = vendor_rows if config.variant == "vendor_ce" else chunk_rows
    copies = -(-shape.shard_rows // each_rows(shape, config))
    launch = costs.triton_launch("graph")
    host = costs.triton_launch(mode, 2 if knobs["loads"] == "descriptor" else 0)
    own = _rows_stage(costs, shape, config, shape.shard_rows, sent)
    each = _rows_stage(costs, shape, config, -(-shape.shard_rows // copies), sent / copies)
    queued = [part for _ in range(copies * (world - 1)) for part in (launch, each)]
    flight = costs.engine_copies(1, sent / copies, 2, 1, mode)  # over one link
    beside = min(int(config["copy_streams"]), costs.links.at_once(world))
    flight = flight._replace(us=flight.us / max(1, beside))
    flights = [
        flight._replace(after=Gate(1, 2 + 2 * number)) for number in range(1, len(queued) // 2 + 1)
    ]
    arrived = Gate(0, len(flights), costs.links.flag_us)
    adding = Stage(costs.memory_us(world * sent), world * sent, after=arrived, tax=MEMORY)
    computing = [host, launch, *queued, launch, own, adding]
    return Call((flights, [*computing, Stage(costs.links.skew_us, tax=WAIT)]), world)


def _rows_stage(
    costs: Any, shape: GemmReduceScatter, config: Config, rows: int, written: float
) -> Stage:
    """One launch of the GEMM on so many rows; our own leaves its last wave unfilled."""
    if config.variant == "vendor_ce":
        return _library_rows(costs, shape, rows)
    tile, units, inner = costs.tile(ONE_PART | dict(config.knobs)), costs.chip.units, shape.inner
    parts = -(-rows // tile.block_m) * -(-shape.n // tile.block_n)
    us = gemm_us(costs, shape, config, units, parts, 2 * rows * shape.n * inner)
    traffic = costs.traffic(rows, shape.n, inner, shape.element_bytes, tile, units)
    return Stage(us, traffic / costs.rates.stream_share + written)


def _library_rows(costs: Any, shape: GemmReduceScatter, rows: int) -> Stage:
    """The library's GEMM on so many rows."""
    size = shape.element_bytes * ((rows + shape.n) * shape.inner + rows * shape.n)
    return Stage(costs.library_gemm_us(2 * rows * shape.n * shape.inner, size), size)


def _chunked(costs: Any, shape: GemmReduceScatter, config: Config, mode: str) -> Call:
    """The library's GEMM chunk after chunk; each chunk's reduce-scatter beside the next GEMM."""
    chunks = int(config["chunks"])
    gemm = _library_rows(costs, shape, -(-shape.m // chunks))
    launches = costs.rates.graph_launch_us if mode == "graph" else costs.rates.library_call_us
    part = costs.all_gather(shape.shard_bytes // chunks, shape.world, is_registered(config["form"]))
    sending = [part._replace(after=Gate(1, 2 * number)) for number in range(1, chunks + 1)]
    computing = [stage for _ in range(chunks) for stage in (Stage(launches, tax=LAUNCH), gemm)]
    sent = Stage(launches, after=Gate(0, chunks), tax=WAIT)
    return Call((sending, [*computing, sent]), shape.world)
