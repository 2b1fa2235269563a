"""How the variants of flash_prefill spend their time: one launch, then attention. Standard library
only.

On a chip of several dies each has an L2, and what a program reads and does not find there comes
from the last-level cache. The library's kernel is taken to deal programs as Triton's does by
default, head by head.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import Any

from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import LAUNCH, Call, Stage
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.flash_prefill.mapping import place
from tftune.kernels.flash_prefill.space import SPACE, programs

PRODUCTS_SHARE = 0.75
"""The share of a library GEMM's rate that attention's two products reach between exponentials.
Assumed."""
FILL_US = 2.0
"""What one program takes before its first product and after its last. Assumed."""
LIBRARY = Config("flash", mapping="naive_head_first", block_m=128, block_n=64, num_stages=2)
"""What the library's kernel is taken to be. Assumed."""


def describe(costs: Any, shape: FlashPrefill, config: Config, mode: str) -> Call:
    """The stages of one call. `costs`: a `tftune.models.timeline.costs.Costs`, handed in so that
    kernels know nothing of models."""
    if config.variant == "bsp":
        launch_us = costs.rates.graph_launch_us if mode == "graph" else costs.rates.library_call_us
        launch = Stage(launch_us, tax=LAUNCH)
        return Call(([launch, _attention(costs, shape, LIBRARY)],), 1)
    complete = SPACE.complete(config)
    return Call(([costs.triton_launch(mode), _attention(costs, shape, complete)],), 1)


def _attention(costs: Any, shape: FlashPrefill, config: Config) -> Stage:
    """All programs: their products, or the reads of their blocks where those take longer; then what
    the L2 of a die did not have. Nothing hides that: a unit has one program, which waits."""
    knobs: dict[str, Any] = dict(config.knobs)
    rows, columns = knobs["block_m"], knobs["block_n"]
    steps = programs(shape, config) * (shape.seq_len / columns) * _visible(shape, rows)
    flops = 4 * rows * columns * shape.head_dim
    products_us = flops / (costs.rates.unit_flops_per_us * PRODUCTS_SHARE)
    ahead = max(knobs["num_stages"] - costs.chip.can.stage_in_registers, 1)
    block_bytes = 2 * columns * shape.head_dim * shape.element_bytes
    l2_us = block_bytes * costs.chip.units / costs.rates.l2_bytes_per_us
    step_us = costs.overlap(products_us, l2_us, costs.rates.load_us / (ahead + 1))
    busiest_us = step_us * _busiest(shape, rows, steps, costs.chip.units)
    mapping = str(knobs["mapping"])
    missed = steps * block_bytes * (1 - _hit_rate(costs, shape, rows, mapping))
    missed_us = missed / costs.rates.fabric_bytes_per_us
    memory_us = costs.memory_us(shape.local_bytes)
    attended_us = costs.overlap(busiest_us + missed_us, memory_us)
    rounds = ceil(programs(shape, config) / costs.chip.units)
    return Stage(rounds * FILL_US + attended_us, shape.local_bytes)


def _visible(shape: FlashPrefill, rows: int) -> float:
    """The share of all blocks of tokens that programs go through."""
    blocks = ceil(shape.seq_len / rows)
    return (blocks + 1) / (2 * blocks) if shape.is_causal else 1.0


def _busiest(shape: FlashPrefill, rows: int, steps: float, units: int) -> float:
    """Steps of the unit that has most: whole programs where all are alike; causal ones fill the
    gaps, the longest being the first."""
    count = shape.batch * shape.q_heads * ceil(shape.seq_len / rows)
    if shape.is_causal:
        longest = steps / count / _visible(shape, rows)
        return max(longest, steps / min(units, count))
    return ceil(count / units) * steps / count


def _hit_rate(costs: Any, shape: FlashPrefill, rows: int, mapping: str) -> float:
    blocks = ceil(shape.seq_len / rows)
    return _played(
        costs, shape.batch, shape.q_heads, shape.group, blocks, shape.head_bytes, shape.is_causal,
        mapping,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _played(
    costs: Any, batch: int, heads: int, group: int, blocks: int, head_bytes: int, causal: bool,
    mapping: str,
) -> float:  # fmt: skip
    """The hit rate of the first die."""
    dies = costs.chip.dies

    def program(number: int) -> tuple[tuple[int, float], ...]:
        sequence, head, block = place(number, batch, heads, blocks, mapping, dies)
        share = (blocks - block) / blocks if causal else 1.0  # the longest are dealt first
        return ((sequence * heads + head // group, head_bytes * share),)

    return float(costs.hit_rate(program, batch * heads * blocks))
