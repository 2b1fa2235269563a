"""Variants and flag granularities of one shape over several nodes, compared: simulated, never
measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.studies.nodes.play import VARIANTS, Simulated, run
from tftune.studies.nodes.topology import SEEDS, Topology

FLAGS = ((16, 256), (64, 1024), (512, 1024))
"""Rows and columns of A that one flag covers: the finest, a usual and a coarse choice."""
PUSHES = tuple(name for name in VARIANTS if name.startswith("push"))


@dataclass(frozen=True)
class Row:
    """One variant with one flag granularity. Times in microseconds over all seeds; `speedup` is the
    faster form of BSP over it, at the median."""

    m: int
    n: int
    k: int
    nodes: int
    gpus: int
    nic: str
    skew_us: float
    variant: str
    rows_per_flag: int
    """0 for BSP, as `k_per_flag`."""
    k_per_flag: int
    low_us: float
    us: float
    high_us: float
    speedup: float
    times: str = "simulated"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def study(
    shape: Shape, mode: str, chip: Chip, topology: Topology, skew_us: float,
    seeds: int = SEEDS,
) -> list[Row]:  # fmt: skip
    """Both forms of BSP, and every push with every granularity, each with the best tile.
    Raises ValueError for a shape of another operation."""
    if not isinstance(shape, AllGatherGemm):
        raise ValueError(f"{shape} is no shape of all_gather_gemm")
    simulated: list[tuple[str, int, int, Simulated]] = []
    configs = {base: _configs(shape, chip, base) for base in ("bsp", "push")}
    for variant in VARIANTS:
        base = "push" if variant in PUSHES else "bsp"
        for rows, columns in FLAGS if variant in PUSHES else ((0, 0),):
            flags = {"rows_per_flag": rows, "k_per_flag": columns} if rows else {}
            flagged = (Config(base, **dict(config.knobs) | flags) for config in configs[base])
            runs = [run(shape, variant, config, mode, chip, topology) for config in flagged]
            best = min(runs, key=lambda one: one.us)
            simulated.append((variant, rows, columns, best.over_seeds(skew_us, seeds)))
    bsp_us = min(at.us for variant, *_, at in simulated if variant not in PUSHES)
    size = (shape.m, shape.n, shape.k, topology.nodes, topology.gpus, topology.nic.name, skew_us)
    return [
        Row(*size, variant, rows, columns, at.low_us, at.us, at.high_us, bsp_us / at.us)
        for variant, rows, columns, at in simulated
    ]


def fine_and_best(rows: list[Row]) -> tuple[Row, Row]:
    """The fastest push with the finest flags, and the fastest push."""
    pushes = [row for row in rows if row.variant in PUSHES]
    fine = [row for row in pushes if (row.rows_per_flag, row.k_per_flag) == FLAGS[0]]
    return min(fine, key=lambda row: row.us), min(pushes, key=lambda row: row.us)


def _configs(shape: AllGatherGemm, chip: Chip, variant: str) -> list[Config]:
    """The defaults of one node's shape, of a push with 8 to 32 communicating programs. Rules about
    flags and ranks are not asked: today's layout holds 16 ranks."""
    ranks = next(world for world in (8, 4, 2, 1) if shape.world % world == 0)
    node = replace(shape, world=ranks)
    configs = [config for config in SPACE.defaults(node, chip) if config.variant == variant]
    if variant == "bsp":
        return configs
    return [
        Config("push", **dict(config.knobs) | {"comm_programs": programs, "order": "chunk"})
        for config in configs
        for programs in (8, 16, 32)
    ]
