"""How the variants of all_gather_gemm spend their time: which stages of a machine follow, and which overlap. Standard library only.

The machine is handed in by `models/timeline.py`, so that kernels know nothing of models.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.space import Config

COPY_START_US, COPY_HOST_US = 2.5, 4.0
"""From one copy to the next in a stream, and the host's time to queue one: 4 bytes between 2 H200, 2026-11-21 (docs/measured.md)."""
_DEFAULTS = {variant: {choice.name: choice.default for choice in choices} for variant, choices in SPACE.variants.items()}


def timeline(machine: Any, shape: AllGatherGemm, config: Config, mode: str) -> float:
    """Predicted microseconds of one call. `machine`: a `tftune.models.timeline.Machine`, whose stages this adds up."""
    knobs = _DEFAULTS[config.variant] | dict(config.knobs)
    return _VARIANTS[config.variant](machine, shape, knobs, mode)


def _gemm_bytes(shape: AllGatherGemm) -> int:
    return shape.element_bytes * (shape.k * (shape.m + shape.n) + shape.m * shape.n)


def _bsp(machine: Any, shape: AllGatherGemm, knobs: dict[str, Any], mode: str) -> float:
    """All-gather, then a copy that makes A whole (before it, of the shard alone, where transposed), then the library's GEMM."""
    copied = {"gather_copy": shape.gathered_bytes, "local_transpose": shape.shard_bytes, "gather": 0}[knobs["form"]]
    return float(
        machine.all_gather_us(shape.shard_bytes, shape.world, mode)
        + machine.launch_us(mode, 2 if copied else 1)
        + machine.hbm_us(2 * copied)
        + machine.library_gemm_us(shape.flops, _gemm_bytes(shape))
    )


def _push(machine: Any, shape: AllGatherGemm, knobs: dict[str, Any], mode: str) -> float:
    """Chunks go to each peer while the rest computes, this rank's own part first; what arrives late is waited for."""
    chunks, chunk_bytes, run_bytes = _chunks(shape, knobs)
    items = chunks * (shape.world - 1)
    programs = min(knobs["comm_programs"], max(items, 1))
    item_us = machine.exchange_us(chunk_bytes, programs, shape.world, run_bytes)
    gemm_us = _gemm(machine, shape, knobs, remote_us=0.0)
    first_us = item_us + machine.chip.flag_us
    late_us = max(first_us - gemm_us / shape.world, 0.0)
    busy_us = machine.overlap(gemm_us, ceil(items / programs) * item_us + machine.chip.flag_us)
    return float(_frame(machine, mode) + busy_us + late_us)


def _push_ce(machine: Any, shape: AllGatherGemm, knobs: dict[str, Any], mode: str) -> float:
    """Copies follow each other over the link, each behind a start of its own, while every unit computes; one small kernel goes before."""
    chunks, chunk_bytes, _ = _chunks(shape, knobs)
    copies = chunks * (shape.world - 1)
    gemm_us = _gemm(machine, shape, knobs, remote_us=0.0)
    late_us = max(_copies_us(machine, shape, 1, chunk_bytes, mode) - gemm_us / shape.world, 0.0)
    moved_us = _copies_us(machine, shape, copies, chunk_bytes, mode, knobs["copy_streams"])
    return float(machine.launch_us(mode, 1) + _frame(machine, mode) + machine.overlap(gemm_us, moved_us) + late_us)


def _bsp_chunked(machine: Any, shape: AllGatherGemm, knobs: dict[str, Any], mode: str) -> float:
    """The first chunk's flight, behind the own rows' GEMM where A is sharded along M, then a GEMM of each chunk and a wait before it."""
    first = min(knobs["first_rows"], shape.shard_rows)
    chunks = 1 if first == shape.shard_rows else 2 if knobs["growth"] > 1 else ceil(shape.shard_rows / first)
    gemms = chunks + (shape.shard == "m")
    gemm_us = machine.library_gemm_us(shape.flops / gemms, _gemm_bytes(shape) / gemms) * gemms
    first_us = _copies_us(machine, shape, shape.world - 1, shape.shard_bytes * first / shape.shard_rows, mode)
    moved_us = _copies_us(machine, shape, chunks * (shape.world - 1), shape.shard_bytes / chunks, mode, knobs["copy_streams"])
    late_us = max(first_us - (gemm_us / shape.world if shape.shard == "m" else 0.0), 0.0)
    return float(machine.launch_us(mode, 1 + 2 * gemms) + machine.overlap(gemm_us, moved_us) + late_us)


def _copies_us(machine: Any, shape: AllGatherGemm, copies: int, copy_bytes: float, mode: str, streams: int = 1) -> float:
    """Copies and their flags', in streams that share the link; the host queues them one by one where nothing is captured."""
    link_us = copies * copy_bytes / machine.chip.link_rate(shape.world)
    return float(max(link_us + copies * 2 * COPY_START_US / streams, copies * 2 * COPY_HOST_US * (mode == "eager")))


def _staged(machine: Any, shape: AllGatherGemm, knobs: dict[str, Any], mode: str) -> float:
    """As push, but each program stages its chunks, then loads those of its namesakes: two flights before the first chunk is there."""
    chunks, chunk_bytes, run_bytes = _chunks(shape, knobs)
    programs = min(knobs["comm_programs"], chunks)
    item_us = machine.staging_us(chunk_bytes, shape.world)
    staged_us = ceil(chunks / programs) * item_us
    pulled_us = machine.exchange_us(chunk_bytes, programs, shape.world, run_bytes)
    gemm_us = _gemm(machine, shape, knobs, remote_us=0.0)
    late_us = max(staged_us + pulled_us + 2 * machine.chip.flag_us - gemm_us / shape.world, 0.0)
    moved_us = staged_us + ceil(chunks / programs) * (shape.world - 1) * pulled_us + 2 * machine.chip.flag_us
    return float(_frame(machine, mode) + machine.overlap(gemm_us, moved_us) + late_us)


def _pull(machine: Any, shape: AllGatherGemm, knobs: dict[str, Any], mode: str) -> float:
    """Staging and its flags, then a GEMM that loads each remote tile of A once for each tile of columns."""
    chunks, chunk_bytes, _ = _chunks(shape, knobs)
    item_us = machine.staging_us(chunk_bytes, shape.world)
    staged_us = ceil(chunks / knobs["comm_programs"]) * item_us
    remote_bytes = shape.shard_bytes * (shape.world - 1) * ceil(shape.n / knobs["block_n"])
    gemm_us = _gemm(machine, shape, knobs, remote_us=machine.chip.flag_us * (1 - 1 / shape.world))
    late_us = max(item_us + machine.chip.flag_us - gemm_us / shape.world, 0.0)
    busy_us = machine.overlap(gemm_us, machine.pull_us(remote_bytes, shape.world), staged_us)
    return float(_frame(machine, mode) + busy_us + late_us)


def _frame(machine: Any, mode: str) -> float:
    """The launch, and the closing barrier in which the last program advances the epoch."""
    return float(machine.launch_us(mode, triton=True) + machine.chip.flag_us)


def _chunks(shape: AllGatherGemm, knobs: dict[str, Any]) -> tuple[int, float, int]:
    """Flags of one source, the mean bytes that one covers, and its contiguous bytes."""
    chunks = ceil(shape.shard_rows / knobs["rows_per_flag"]) * ceil(shape.shard_columns / knobs["k_per_flag"])
    return chunks, shape.shard_bytes / chunks, min(knobs["k_per_flag"], shape.shard_columns) * shape.element_bytes


def _gemm(machine: Any, shape: AllGatherGemm, knobs: dict[str, Any], remote_us: float) -> float:
    """The tiled GEMM on the units that do not communicate; its loop starts anew at each column chunk, and polls each row chunk's flag."""
    columns = ceil(shape.shard_columns / knobs["k_per_flag"]) * (shape.world if shape.shard == "k" else 1)
    flags = ceil(min(knobs["block_m"], shape.m) / min(knobs["rows_per_flag"], shape.shard_rows))
    communicating = knobs["comm_programs"] * (0.5 if knobs["schedule"] == "dynamic" else 1)  # half of the time, assumed
    units = max(int(machine.chip.units - communicating), 1)
    tile = machine.tile(knobs)
    restarts, by_descriptor = columns * (1 + flags) / 2, knobs.get("loads") == "descriptor"
    return float(machine.tile_gemm_us(shape.m, shape.n, shape.k, shape.element_bytes, tile, units, restarts, remote_us, by_descriptor))


_VARIANTS = {"bsp": _bsp, "push": _push, "staged": _staged, "pull": _pull, "push_ce": _push_ce, "bsp_chunked": _bsp_chunked}
