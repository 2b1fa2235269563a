"""Figures that others published for MI300X nodes (and one for NVLink), beside what the timeline
model says: published, modelled, error.

usage: python benchmarks/published.py

Nothing here is measured by tftune: the left column is quoted with its source, the right one is
modelled from the constants of kernels/core/chips.py. "input" marks a figure that is itself one of
those constants. The error is the modelled figure over the nearest end of the published range, less
1, and 0 within it. A modelled speed-up is of the best config among the defaults with every possible
tile (of flash_decode, among the defaults), which the model itself chooses: it is what the model
promises, not what a search would find.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import exp, log

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import Call
from tftune.models.timeline.costs import Costs
from tftune.models.timeline.simulator import play, predict
from tftune.tuner.audit import TILE

FUSED = ("pull", "staged", "push")


@dataclass(frozen=True)
class Figure:
    """One published figure, or range, and the model's."""

    what: str
    low: float
    high: float
    modelled: float
    source: str
    unit: str = "x"

    @property
    def error(self) -> float:
        nearest = min(max(self.modelled, self.low), self.high)
        return self.modelled / nearest - 1

    def cells(self) -> tuple[str, ...]:
        published = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return (
            self.what,
            f"{published} {self.unit}",
            f"{self.modelled:.3g} {self.unit}",
            f"{self.error:+.0%}",
            self.source,
        )


@cache
def configs(shape: AllGatherGemm) -> tuple[Config, ...]:
    """The default of each fused variant with every possible tile."""
    found = []
    for default in (config for config in SPACE.defaults(shape, MI300X) if config.variant in FUSED):
        knobs = {
            choice.name: choice.values
            for choice in SPACE.choices(default.variant)
            if choice.name in TILE
        }
        tiles = (dict(zip(knobs, chosen, strict=True)) for chosen in product(*knobs.values()))
        found += [Config(default.variant, **dict(default.knobs) | tile) for tile in tiles]
    return tuple(config for config in found if SPACE.why_invalid(shape, config, MI300X) is None)


def best(shape: AllGatherGemm, mode: str, variants: tuple[str, ...] = FUSED) -> float:
    """Modelled microseconds of the best config."""
    return min(
        predict(shape, config, mode, MI300X)
        for config in configs(shape)
        if config.variant in variants
    )


def bsp(shape: AllGatherGemm, mode: str) -> float:
    return min(
        predict(shape, config, mode, MI300X)
        for config in SPACE.defaults(shape, MI300X)
        if config.variant == "bsp"
    )


def mean_speedup(shapes: list[AllGatherGemm], mode: str) -> float:
    """Geometric mean of BSP over the best fused config."""
    product = 1.0
    for shape in shapes:
        product *= bsp(shape, mode) / best(shape, mode)
    return product ** (1 / len(shapes))


def decode_speedup(mode: str) -> float:
    """Geometric mean of BSP over the best fused default of flash_decode, at the paper's shapes that
    memory has room for: pages of one token, from 8K tokens on each rank."""
    known = operation("flash_decode")
    shapes = [
        shape
        for shape in known.shape_sets["paper"](page_size=1)
        if shape.to_dict()["kv_len"] >= 8192
    ]
    logs = []
    for shape in shapes:
        times = [
            (config.variant, predict(shape, config, mode, MI300X))
            for config in known.space.defaults(shape, MI300X)
        ]
        fused = min(us for variant, us in times if variant != "bsp")
        logs.append(log(min(us for variant, us in times if variant == "bsp") / fused))
    return exp(sum(logs) / len(logs))


def gathered_gb_s(world: int) -> float:
    """What one GPU sends in a modelled all-gather of 64 MB from each, in GB/s."""
    stage = Costs(MI300X).all_gather(64 << 20, world)
    return (64 << 20) * (world - 1) / play(Call(([stage],), world), MI300X).us / 1e3


def triton_share(m: int) -> float:
    """Of the library's rate, what the best config reaches alone: one GPU, nothing to gather."""
    shape = AllGatherGemm(m, 3584, 8192, 1)
    return Costs(MI300X).library_gemm_us(
        shape.flops, 2 * (shape.k * (m + shape.n) + m * shape.n)
    ) / best(shape, "graph")


def engine_gb_s(size: int) -> float:
    return size / Costs(H200).engine_copies(1, size, 2, 2, "graph").us / 1e3


def figures() -> Iterator[Figure]:
    library = 2 * 8192**3 / Costs(MI300X).library_gemm_us(2 * 8192**3, 6 * 8192**2) / 1e6
    yield Figure(
        "fp16 GEMM, 8192 cubed, normal data (input)",
        654,
        654,
        library,
        "AMD, max achievable FLOPs",
        "TFLOP/s",
    )
    yield Figure(
        "Triton over vendor GEMM, M = 8192 (input)", 0.85, 0.92, triton_share(8192), "triton #7199"
    )
    yield Figure("Triton over vendor GEMM, M = 256", 0.66, 0.73, triton_share(256), "triton #7199")
    yield Figure(
        "all-gather, 2 GPUs (input)", 45, 48, gathered_gb_s(2), "AMD, rccl-xgmi: one link", "GB/s"
    )
    yield Figure("all-gather, 4 GPUs", 135, 144, gathered_gb_s(4), "the same: three links", "GB/s")
    yield Figure(
        "all-gather, 8 GPUs (input)",
        310,
        330,
        gathered_gb_s(8),
        "the same, RCCL at its best",
        "GB/s",
    )
    paper = [AllGatherGemm(m, 3584, 8192, 8) for m in (1, 4, 16, 64, 256, 1024)]
    yield Figure(
        "fused over BSP, the paper's M, eager",
        1.10,
        1.20,
        mean_speedup(paper, "eager"),
        "arXiv 2511.02168",
    )
    yield Figure("the same, captured", 1.10, 1.20, mean_speedup(paper, "graph"), "arXiv 2511.02168")
    yield Figure(
        "flash_decode: fused over BSP, the paper's shapes, eager",
        1.10,
        1.20,
        decode_speedup("eager"),
        "arXiv 2511.02168",
    )
    yield Figure(
        "flash_decode: the same, captured", 1.10, 1.20, decode_speedup("graph"), "arXiv 2511.02168"
    )
    for m, low, high in ((16, 1.0, 2.0), (1024, 0.0, 1.0)):
        shape = AllGatherGemm(m, 3584, 8192, 8)
        ahead = best(shape, "eager", ("push",)) / best(shape, "eager", ("pull",))
        yield Figure(
            f"push's time over pull's, M = {m}",
            low,
            high,
            ahead,
            "arXiv 2511.02168: pull below M = 128, push above",
        )
    iris = [AllGatherGemm(8192, 3584, 14336, 8), AllGatherGemm(8192, 4608, 36864, 8)]
    yield Figure(
        "fused over BSP, M = 8192, large K",
        0.93,
        1.79,
        mean_speedup(iris, "graph"),
        "arXiv 2511.12500, mean 1.21; GEMM, then scatter",
    )
    for world, low, high in ((8, 1.136, 1.343), (4, 0.0, 0.86), (2, 0.0, 0.89)):
        shape = AllGatherGemm(131072, 3584, 8192, world)
        speedup = bsp(shape, "graph") / best(shape, "graph")
        yield Figure(
            f"fused over BSP, M = 131072, {world} GPUs",
            low,
            high,
            speedup,
            "Iris, recorded tuning of its own kernel",
        )
    for size, rate in ((1 << 16, 24), (1 << 19, 135), (1 << 21, 267), (1 << 23, 348)):
        yield Figure(
            f"H20 copy engine, {size >> 10} KB (1 GB is input)",
            rate,
            rate,
            engine_gb_s(size),
            "measured by others on NVLink4",
            "GB/s",
        )


def table() -> Iterator[str]:
    yield "| figure | published | modelled | error | source |"
    yield "|---" * 5 + "|"
    for figure in figures():
        yield f"| {' | '.join(figure.cells())} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    found = list(figures())
    print("\n".join(table()))
    missed = [figure for figure in found if abs(figure.error) > 0.15]
    print(f"\nRESULT published figures={len(found)} within_15_percent={len(found) - len(missed)}")


if __name__ == "__main__":
    main()
