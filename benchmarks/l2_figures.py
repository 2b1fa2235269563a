"""What was published of L2 hit rates and of relative speeds by the order of programs, on chips of
eight dies. Nothing here was measured by tftune.

Which rows fit the model was decided by their place alone, before anything was fitted: see `FIT`.
Sources, each in the order in which it prints its figures:

- arXiv 2511.02132, sections 4.3 to 4.5: MI300X, blocks of 128 x 64, Triton. No dtype or mask is
  named: taken as fp16 without a mask. Ranges are taken at their middle.
- FlyDSL pull request 919: MI355X, 64K tokens, 64 heads of 128, bf16, no mask.
- rocKE in ROCm/rocm-libraries, case study of dense attention's block orders, section 6.3: gfx942
  and gfx950, bf16, heads of 128, tiles of 256 x 64, causal ones longest first. Only its orders that
  flash_prefill has: `hq_minor_swz` is swizzled head-first; `bt_hkv_minor` of one sequence on 8 KV
  heads is swizzled block-first; `qb_minor` without a mask is naive head-first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tftune.kernels.core.chips import CHIPS, MI300X, Chip
from tftune.kernels.core.space import Config
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.flash_prefill import timeline as prefill
from tftune.models.timeline.costs import Costs
from tftune.models.timeline.simulator import predict

BLOCK_FIRST, BLOCK_SWIZZLED = "naive_block_first", "swizzled_block_first"
HEAD_FIRST, HEAD_SWIZZLED = "naive_head_first", "swizzled_head_first"
K = 1024


@dataclass(frozen=True)
class Figure:
    """One published figure: an L2 hit rate, or the speed relative to swizzled head-first."""

    name: str
    kind: str
    """`hit` or `speed`."""
    shape: FlashPrefill
    mapping: str
    low: float
    high: float
    chip: Chip = MI300X
    rows: int = 128
    """Queries of one program."""

    @property
    def published(self) -> float:
        return (self.low + self.high) / 2

    def modelled(self) -> float:
        if self.kind == "hit":
            return prefill._hit_rate(Costs(self.chip, 1), self.shape, self.rows, self.mapping)
        return _us(self.shape, HEAD_SWIZZLED) / _us(self.shape, self.mapping)


def _us(shape: FlashPrefill, mapping: str) -> float:
    config = Config("flash", mapping=mapping, block_m=128, block_n=64)
    return predict(shape, config, "graph", MI300X)


def mha(heads: int, tokens: int, batch: int = 1, head_dim: int = 128) -> FlashPrefill:
    return FlashPrefill(batch, heads, heads, head_dim, tokens, 1, "fp16", "no")


def gqa(heads: int, tokens: int) -> FlashPrefill:
    return FlashPrefill(1, heads, 8, 128, tokens, 1, "fp16", "no")


PAPER = (
    Figure("8 heads, 8K", "speed", mha(8, 8 * K), BLOCK_FIRST, 1.0, 1.0),
    Figure("8 heads, 8K", "speed", mha(8, 8 * K), HEAD_FIRST, 1.0, 1.0),
    Figure("8 heads, 128K", "speed", mha(8, 128 * K), BLOCK_FIRST, 1.0, 1.0),
    Figure("64 heads, 32K", "speed", mha(64, 32 * K), BLOCK_FIRST, 0.64, 0.70),
    Figure("128 heads, 128K", "speed", mha(128, 128 * K), BLOCK_FIRST, 0.64, 0.70),
    Figure("64 heads, 32K", "speed", mha(64, 32 * K), HEAD_FIRST, 1.0, 1.0),
    Figure("128 heads, 128K", "speed", mha(128, 128 * K), HEAD_FIRST, 0.90, 0.90),
    Figure("8 heads, 8K", "hit", mha(8, 8 * K), BLOCK_FIRST, 0.90, 0.90),
    Figure("8 heads, 8K", "hit", mha(8, 8 * K), HEAD_SWIZZLED, 0.90, 0.90),
    Figure("128 heads, 128K", "hit", mha(128, 128 * K), HEAD_SWIZZLED, 0.90, 0.96),
    Figure("128 heads, 128K", "hit", mha(128, 128 * K), HEAD_FIRST, 0.40, 0.60),
    Figure("128 heads, 128K", "hit", mha(128, 128 * K), BLOCK_FIRST, 0.01, 0.01),
    Figure("128 heads, 128K", "hit", mha(128, 128 * K), BLOCK_SWIZZLED, 0.01, 0.01),
    Figure("32 on 8 heads, 128K", "speed", gqa(32, 128 * K), BLOCK_FIRST, 1.0, 1.0),
    Figure("64 on 8 heads, 128K", "speed", gqa(64, 128 * K), BLOCK_SWIZZLED, 1.0, 1.0),
    Figure("64 on 8 heads, 128K", "speed", gqa(64, 128 * K), HEAD_FIRST, 0.90, 0.95),
    Figure("DeepSeek V3, 8 x 128K", "speed", mha(128, 128 * K, 8, 64), BLOCK_FIRST, 0.65, 0.65),
    Figure("DeepSeek V3, 8 x 128K", "speed", mha(128, 128 * K, 8, 64), BLOCK_SWIZZLED, 0.76, 0.76),
)
"""DeepSeek V3's heads of 56 stand here as heads of 64."""
MI355X = CHIPS["mi355x"]
FLYDSL = (
    Figure("64 heads, 64K, MI355X", "hit", mha(64, 64 * K), BLOCK_FIRST, 0.0236, 0.0236, MI355X),
    Figure("64 heads, 64K, MI355X", "hit", mha(64, 64 * K), HEAD_SWIZZLED, 0.9362, 0.9362, MI355X),
)
ROCKE_SHAPES = {
    "32 on 8, 4K, causal": FlashPrefill(1, 32, 8, 128, 4 * K),
    "64 on 8, 8K, causal": FlashPrefill(1, 64, 8, 128, 8 * K),
    "128 on 8, 16 x 4K, causal": FlashPrefill(16, 128, 8, 128, 4 * K),
    "64 heads, 4 x 8K, causal": FlashPrefill(4, 64, 64, 128, 8 * K),
    "32 on 8, 32K, causal": FlashPrefill(1, 32, 8, 128, 32 * K),
    "32 on 8, 4K": FlashPrefill(1, 32, 8, 128, 4 * K, 1, "bf16", "no"),
}
ROCKE_HITS = {
    "32 on 8, 4K, causal": ((BLOCK_SWIZZLED, 0.86, 0.90), (HEAD_SWIZZLED, 0.81, 0.91)),
    "64 on 8, 8K, causal": ((BLOCK_SWIZZLED, 0.91, 0.93), (HEAD_SWIZZLED, 0.77, 0.91)),
    "128 on 8, 16 x 4K, causal": ((HEAD_SWIZZLED, 0.76, 0.90),),
    "64 heads, 4 x 8K, causal": ((HEAD_SWIZZLED, 0.79, 0.86),),
    "32 on 8, 32K, causal": ((BLOCK_SWIZZLED, 0.87, 0.95), (HEAD_SWIZZLED, 0.79, 0.93)),
    "32 on 8, 4K": ((HEAD_FIRST, 0.88, 0.86), (BLOCK_SWIZZLED, 0.90, 0.93),
                    (HEAD_SWIZZLED, 0.83, 0.93)),
}  # fmt: skip
"""By shape: an order, its hit rate on gfx942 (tested as MI300X) and on gfx950 (as MI355X)."""


def _rocke() -> Iterator[Figure]:
    for place, chip in enumerate((MI300X, MI355X)):
        for name, hits in ROCKE_HITS.items():
            for mapping, *rates in hits:
                told = f"{name}, {chip.arch}"
                shape, rate = ROCKE_SHAPES[name], rates[place]
                yield Figure(told, "hit", shape, mapping, rate, rate, chip, 256)


FIGURES = (*PAPER, *FLYDSL, *_rocke())
FIT, TEST = FIGURES[::2], FIGURES[1::2]
"""Every second figure as printed, the first one first, fits; all others test."""
