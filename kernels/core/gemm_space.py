"""What a tiled GEMM in Triton may vary, and the rules that hold for any: shared by the operations
that fuse one. Standard library only."""

from __future__ import annotations

from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Choice, Config, Rule

TILE = (
    Choice("block_m", (16, 32, 64, 128, 256), "rows that one program computes at a time", 128),
    Choice("block_n", (32, 64, 128, 256), "columns that one program computes at a time", 128),
    Choice("block_k", (64, 128, 256), "length of one step along K", 64),
    Choice("group_m", (1, 8), "row tiles before the next column tile, so that B stays in cache", 8),
    Choice("num_warps", (4, 8), "warps (waves) of one program", 8),
    Choice("num_stages", (2, 3, 4, 5), "depth of the software pipeline of the loop over K", 3),
)
LOADS = Choice(
    "loads",
    ("pointer", "descriptor"),
    "how tiles come: by pointers, or by tensor descriptors (Hopper's TMA)",
    "pointer",
    "descriptors",
)


def accumulators(config: Config, chip: Chip) -> float:
    """fp32 accumulators of one thread."""
    return float(config["block_m"] * config["block_n"] / (config["num_warps"] * chip.wave_size))


def shared_bytes(shape: Any, config: Config, chip: Chip) -> int:
    """Tiles of A and B that the pipeline keeps. CDNA3 holds one stage in registers (Triton's stream
    pipeliner)."""
    stages = config["num_stages"] - chip.can.stage_in_registers
    steps = (config["block_m"] + config["block_n"]) * config["block_k"]
    return int(steps * shape.element_bytes * stages)


def _aligned(shape: Any, config: Config) -> bool:
    columns = shape.inner if shape.b_layout == "nk" else shape.n
    return columns % 8 == 0 and shape.inner % int(config["block_k"]) == 0


def tile_rules(variants: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules of TILE and LOADS, for shapes with m, n, `inner` (columns of A that one rank
    multiplies), b_layout and element_bytes."""
    return (
        Rule(
            "block_n must not exceed N rounded up to a power of two, and 32 at least",
            lambda s, c, chip: c["block_n"] <= max(32, power_of_two_from(s.n)),
            variants,
        ),
        Rule(
            "block_k must not exceed a rank's part of K rounded up to a power of two, and 64 at "
            "least",
            lambda s, c, chip: c["block_k"] <= max(64, power_of_two_from(s.inner)),
            variants,
        ),
        Rule(
            "a tile must give each thread at least 8 accumulators: take fewer warps",
            lambda s, c, chip: chip is None or c["num_warps"] == 4 or accumulators(c, chip) >= 8,
            variants,
        ),
        Rule(
            "a thread may hold at most 128 fp32 accumulators: take a smaller tile or more warps",
            lambda s, c, chip: chip is None or accumulators(c, chip) <= 128,
            variants,
        ),
        # As all_gather_gemm found with Triton 3.6 and 3.7 (db/audits/mi300x8).
        Rule(
            "4 waves of 128 accumulators a thread spill on CDNA: take a smaller tile or 8 waves",
            lambda s, c, chip: (
                chip is None or not chip.can.unified_registers or accumulators(c, chip) < 128
            ),
            variants,
            learned=True,
        ),
        Rule(
            "the pipeline's tiles must fit the chip's shared memory: take a smaller tile or fewer "
            "stages",
            lambda s, c, chip: chip is None or shared_bytes(s, c, chip) <= chip.shared_bytes,
            variants,
        ),
        # cuTensorMapEncodeTiled: rows 16 bytes apart.
        Rule(
            "descriptor loads need a rank's part of K to be a multiple of block_k, and N of 8 "
            "where B is [K, N]",
            lambda s, c, chip: c["loads"] == "pointer" or _aligned(s, c),
            variants,
        ),
    )
