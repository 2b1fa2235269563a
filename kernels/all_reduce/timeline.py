"""How the variants of all_reduce spend their time: the stages of one call, for
`tftune.models.timeline.simulator` to play. Standard library only.

One lane: each phase needs the one before it. With two roles a second one normalises meanwhile.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.all_reduce.space import SPACE, reads_in_place
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import LAUNCH, MEMORY, WAIT, Call, Gate, Stage

FILL_US = 1.0
"""From a kernel's first instruction until its first elements of x are there. Assumed."""
PROGRAM_BYTES_PER_US = 30e3
"""Stores of one program of 8 warps to peers: 343 to 370 GB/s take 12 to 24 of 1024 threads
(ParallelKittens, on H100)."""
CACHED_SHARE = 0.25
"""Cost of what lies in an inbox, which stays in the last-level cache, relative to HBM. Assumed."""
ROW_US = 1.2
"""One row normalised by one program: its sum of squares, and two passes. Assumed."""


def describe(costs: Any, shape: AllReduce, config: Config, mode: str) -> Call:
    """The stages of one call. `costs`: a `tftune.models.timeline.costs.Costs`, handed in so that
    kernels know nothing of models."""
    knobs: dict[str, Any] = {**dict(SPACE.complete(config).knobs), "variant": config.variant}
    if config.variant == "bsp":
        return Call((_bsp(costs, shape, knobs["form"], mode),), shape.world)
    phases = _two_shot if config.variant == "two_shot" else _one_shot
    local = [Stage(FILL_US + costs.memory_us(shape.message_bytes), shape.message_bytes)]
    if reads_in_place(shape, config):
        phases = _in_place
        local = [Stage(FILL_US)]
    roles = knobs.get("roles", 1)
    knobs["programs"] //= roles
    stages = [costs.triton_launch(mode), *local, *phases(costs, shape, knobs)]
    written = _written(costs, shape, knobs["programs"])
    if roles == 1:
        return Call(([*stages, *written],), shape.world)
    last = Stage(ROW_US, after=Gate(0, len(stages)))
    return Call((stages, [stages[0], *written, last]), shape.world)


def _bsp(costs: Any, shape: AllReduce, form: str, mode: str) -> list[Stage]:
    """The library's all-reduce; torch's forms read peers' memory between two barriers; the norm is
    a launch of its own."""
    launch_us = costs.rates.graph_launch_us if mode == "graph" else costs.rates.library_call_us
    stages = [Stage(launch_us, tax=LAUNCH)]
    sent = (shape.world - 1) * shape.message_bytes
    if form == "library":
        share = -(-shape.message_bytes // shape.world)
        gathered = costs.all_gather(share, shape.world)
        each = sent / shape.world
        stages += [gathered, Stage(gathered.us / 2, 2 * each, each, tax=WAIT)]
    elif shape.world > 1:
        shots = 1 if form == "one_shot" else 2 / shape.world
        pulled_us = shots * sent / (costs.pull_share * costs.links.rate(shape.world))
        waited_us = 2 * (costs.links.flag_us + costs.links.signal_us) + costs.links.remote_load_us
        stages.append(Stage(waited_us + pulled_us, shots * sent, shots * sent, tax=WAIT))
        stages += [Stage(launch_us, tax=LAUNCH)] if form == "two_shot" else []
    if shape.normed:
        stages += [costs.triton_launch(mode), *_written(costs, shape, costs.chip.units)]
    return stages


def _sent(costs: Any, shape: AllReduce, knobs: dict[str, Any], size: float) -> Stage:
    """So many bytes stored to peers by all programs, then their flags' or words' flight."""
    per_program = PROGRAM_BYTES_PER_US * knobs["num_warps"] / 8
    rate = min(costs.links.rate(shape.world), knobs["programs"] * per_program)
    flight_us = costs.links.flag_us if shape.world > 1 else 0.0
    signals = 0
    if "rows_per_flag" in knobs:
        groups = -(-shape.m // knobs["rows_per_flag"]) * knobs["parts"]
        owners = shape.world if knobs["variant"] == "two_shot" else 1
        signals = ceil(groups / owners / knobs["programs"])
    return Stage(size / rate + signals * costs.links.signal_us + flight_us, size, size, tax=WAIT)


def _one_shot(costs: Any, shape: AllReduce, knobs: dict[str, Any]) -> list[Stage]:
    """x to every peer, twice the bytes where it travels as words; then all of them added up."""
    words = 2 if knobs["variant"] == "one_shot_ll" else 1
    sent = words * (shape.world - 1) * shape.message_bytes
    read = words * shape.world * shape.message_bytes
    added = Stage(costs.rates.load_us + costs.memory_us(CACHED_SHARE * read), tax=MEMORY)
    return [_sent(costs, shape, knobs, sent), added]


def _two_shot(costs: Any, shape: AllReduce, knobs: dict[str, Any]) -> list[Stage]:
    """A share of x to each owner, which adds up its own, and sends the sum to all."""
    sent = (shape.world - 1) * shape.message_bytes / shape.world
    added_us = costs.rates.load_us + costs.memory_us(CACHED_SHARE * shape.message_bytes)
    added = Stage(added_us, tax=MEMORY)
    phase = _sent(costs, shape, knobs, sent)
    return [phase, added, phase, added]


def _in_place(costs: Any, shape: AllReduce, knobs: dict[str, Any]) -> list[Stage]:
    """Peers' x, or their pieces of this rank's share, are loaded where they lie, once all are
    offered. Then one flag says that x was read; or each owner sends its sums."""
    owners = shape.world if knobs["variant"] == "two_shot" else 1
    loaded = (shape.world - 1) * shape.message_bytes / owners
    told_us = costs.links.signal_us + costs.links.flag_us if shape.world > 1 else 0.0
    pulled_us = loaded / (costs.pull_share * costs.links.rate(shape.world))
    first_us = costs.links.remote_load_us if shape.world > 1 else 0.0
    stages = [Stage(told_us + first_us + pulled_us, loaded, loaded, tax=WAIT)]
    if owners > 1:
        return [*stages, _sent(costs, shape, knobs, loaded)]
    return [*stages, Stage(told_us, tax=WAIT)]


def _written(costs: Any, shape: AllReduce, programs: int) -> list[Stage]:
    """The results, and where rows are normalised their operands and the rows of one program."""
    size = shape.local_bytes - shape.message_bytes
    if not shape.normed:
        return [Stage(costs.memory_us(size), size, tax=MEMORY)]
    rows = ceil(shape.m / min(programs, shape.m))
    return [Stage(costs.overlap(costs.memory_us(size), rows * ROW_US), size, tax=MEMORY)]
