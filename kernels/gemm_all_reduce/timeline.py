"""How the variants of gemm_all_reduce spend their time. Standard library only."""

from __future__ import annotations

from typing import Any

from tftune.kernels.all_reduce import timeline as all_reduce
from tftune.kernels.core.partials_timeline import fused, library_gemm
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import MEMORY, WAIT, Call, Gate, Stage
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce.exchange import exchange, summed
from tftune.kernels.gemm_all_reduce.space import SPACE, chunk_rows, slots_of


def describe(costs: Any, shape: GemmAllReduce, config: Config, mode: str) -> Call:
    """The lanes of one call. The library's all-reduce is taken to last as long as two all-gathers
    of a rank's part, one latency less; torch's one-shot and two-shot read peers' memory."""
    config = SPACE.complete(config)
    if config.variant == "push_ce":
        return _by_copies(costs, shape, config, mode)
    if config.variant == "vendor":
        return _behind(costs, shape, config, mode)
    if config.variant != "bsp":
        return fused(costs, shape, config, mode)
    kernels, world = [library_gemm(costs, shape)], shape.world
    if world > 1:
        kernels.append(_all_reduce(costs, shape, str(config["form"])))
    return Call(costs.in_order(mode, kernels), world)


def _behind(costs: Any, shape: GemmAllReduce, config: Config, mode: str) -> Call:
    """The library's GEMM, then the kernel of all_reduce, whose launch is the second of two."""
    _, first, *later = all_reduce.describe(costs, summed(shape), exchange(config), "graph").lanes[0]
    lanes = costs.in_order(mode, [library_gemm(costs, shape), first])
    return Call((*lanes[:-1], [*lanes[-1], *later]), shape.world)


def _by_copies(costs: Any, shape: GemmAllReduce, config: Config, mode: str) -> Call:
    """Behind the kernel that stages the epoch, the library's GEMM of each chunk of a peer's rows,
    whose copy goes on beside the next; then of each chunk of this rank's own, its sum, and the
    copies of that; at the end the others' rows are taken from what came. With last=stores the last
    kernel adds up the last chunk as well, and stores it over the links."""
    world, chunks = shape.world, int(config["chunks"])
    rows, own = chunk_rows(shape, config), slots_of(shape) / shape.world
    element, inner = shape.element_bytes, shape.inner
    size = element * ((rows + shape.n) * inner + rows * shape.n)
    gemm = Stage(costs.library_gemm_us(2 * rows * shape.n * inner, size), size)
    launch = costs.triton_launch("graph")
    added = own * (world + 1) / chunks
    adding = Stage(costs.memory_us(added), added, tax=MEMORY)
    sent = (world - 1) * chunks
    flight = costs.engine_copies(1, own / chunks, 2, 1, mode)  # over one link
    beside = min(int(config["copy_streams"]), costs.links.at_once(world))
    flight = flight._replace(us=flight.us / max(1, beside))
    computing = [costs.triton_launch(mode), launch]
    flights = []
    for _ in range(sent):
        computing += [launch, gemm]
        flights.append(flight._replace(after=Gate(1, len(computing))))
    copied = chunks - (config["last"] == "stores")
    for number in range(chunks):
        arrived = Gate(0, sent, costs.links.flag_us) if number == 0 else None
        computing += [launch, gemm, launch, adding._replace(after=arrived)]
        if number < copied:
            flights += [flight._replace(after=Gate(1, len(computing)))] * (world - 1)
    moved, stored = 2 * (world - 1) * own, (world - 1) * own * (chunks - copied) / chunks
    us = stored / costs.links.rate(world)
    taken = Stage(
        us + costs.memory_us(moved), moved + stored, stored,
        after=Gate(0, len(flights), costs.links.flag_us), tax=MEMORY,
    )  # fmt: skip
    computing += [launch] if copied == chunks else []
    computing += [taken, Stage(costs.links.skew_us, tax=WAIT)]
    return Call((flights, computing), world)


def _all_reduce(costs: Any, shape: GemmAllReduce, form: str) -> Stage:
    world = shape.world
    if form == "library":
        once = costs.all_gather(-(-shape.message_bytes // world), world)
        twice_us = 2 * once.us - costs.links.collective_us * (3 + world) / 11
        return Stage(max(twice_us, once.us), 2 * once.memory_bytes, 2 * once.link_bytes, tax=WAIT)
    whole = shape.message_bytes * (world - 1)
    moved = whole if form == "one_shot" else 2 * whole / world
    waits = 1 if form == "one_shot" else 2
    us = moved / costs.links.rate(world) / costs.pull_share
    return Stage(us + 2 * waits * costs.links.flag_us, 2 * moved, moved, tax=WAIT)
