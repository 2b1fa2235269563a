"""The GEMM core of the fused kernels alone, beside torch.matmul, for every M of the paper: what
they lose before anything is exchanged.

usage: python benchmarks/core.py [--n 3584] [--k 8192] [--m 1 64 1024 ...] [--seconds 300] [--cpu]

One GPU, one rank: `push` sends nothing and waits for nothing there, and its communicating programs
are done at once. A grid of tiles, splits of K and pipelines is checked and timed in CUDA graphs,
caches cold, in turns with the library's product of the same matrices; the fastest is measured again
beside it. --cpu tries two configs, small and emulated, which says nothing about speed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import torch

from tftune.db.target import Target, detect
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Config
from tftune.tuner.bench import worker
from tftune.tuner.bench.compile_pool import CompilePool
from tftune.tuner.bench.sandbox import Broken, World

LIBRARY = Config("torch.matmul")
"""What stands beside the core: no variant of the space."""
TILES = {
    "block_m": (16, 32, 64, 128, 256), "block_n": (64, 128, 256), "block_k": (64, 128),
    "split_k": (1, 2, 4, 8), "num_stages": (3, 4, 5),
    "num_warps": (4, 8),
}  # fmt: skip
"""What is tried; the exchange, which has nothing to do, is the same for all."""
FIRST, FINAL, TOGETHER = 5, 21, 32
"""Rounds of all configs, and of the fastest; and how many take turns in the same rounds."""
COMPILE_S, MEASURE_S = 60.0, 60.0
"""Deadlines of one kernel and of one M."""
SMALL = tuple(AllGatherGemm(m, 40, 2048, 1) for m in (4, 20))
"""What an emulated rank can compute in seconds."""


@dataclass(frozen=True)
class Beside:
    """Medians of the same rounds, microseconds."""

    library_us: float
    core_us: float
    config: Config

    @property
    def ratio(self) -> float:
        return self.library_us / self.core_us


class CoreRank(worker.Rank):
    def beside(self, shape: AllGatherGemm, configs: Sequence[Config]) -> Beside:
        """The fastest of these configs, and the library's product. Raises ValueError where one
        computes something else."""
        for config in configs:
            self.prepare(shape, config)
            error, tolerance = self.check(shape, config)
            if not error <= tolerance:
                raise ValueError(
                    f"{config} is wrong at {shape}: {error=:.2e} is above {tolerance=:.2e}"
                )
        self.workspace.plans[shape, LIBRARY] = lambda a, b, c: torch.matmul(a, b, out=c)
        first: list[float] = []
        for start in range(0, len(configs), TOGETHER):
            group = configs[start : start + TOGETHER]
            first += [
                median(samples) for samples in self.time(shape, [LIBRARY, *group], "graph", FIRST)
            ][1:]
            for config in group:
                self.forget(shape, config, "graph")
        fastest = configs[first.index(min(first))]
        library_us, core_us = map(median, self.time(shape, [LIBRARY, fastest], "graph", FINAL))
        return Beside(library_us, core_us, fastest)


def serve(connection: Connection, spec: worker.WorldSpec, rank: int) -> None:
    worker.main(connection, spec, rank, make=CoreRank)


def candidates(shape: AllGatherGemm, chip: Chip) -> list[Config]:
    """Every possible choice of TILES; parts of a split tile need chunks of K, all others take the
    whole of it at once."""
    found = []
    for values in product(*TILES.values()):
        tile = dict(zip(TILES, values, strict=True))
        exchange = dict(
            comm_programs=8,
            rows_per_flag=16,
            k_per_flag=1024 if tile["split_k"] > 1 else 8192,
            schedule="static",
            xcds=1,
        )
        config = Config(
            "push",
            **tile,
            **exchange,
            group_m=8 if shape.m > tile["block_m"] else 1,
            loads="descriptor",
            order="chunk",
        )
        if SPACE.why_invalid(shape, config, chip) is None:
            found.append(SPACE.complete(config))
    return found


def measured(
    shapes: Sequence[AllGatherGemm], target: Target, until: float, cpu: bool
) -> Iterator[tuple[AllGatherGemm, Beside]]:
    """Shape after shape, as long as there is time. Raises Broken where the rank ends or does not
    answer."""
    chosen = {shape: candidates(shape, target.chip)[:: 60 if cpu else 1] for shape in shapes}
    pool = CompilePool(target.chip, COMPILE_S)
    spec = worker.WorldSpec(
        Path(),
        1,
        cpu,
        max(shape.gathered_bytes for shape in shapes),
        1 if cpu else target.chip.cache_bytes,
    )
    try:
        for shape, configs in chosen.items():
            pool.ahead(shape, [] if cpu else configs)
        with World(spec, serve=serve) as world:
            for shape, configs in chosen.items():
                if time.monotonic() < until:
                    sound = (
                        configs
                        if cpu
                        else [config for config in configs if pool.failure(shape, config) is None]
                    )
                    yield shape, world.request("beside", (shape, sound), MEASURE_S)[0]
    finally:
        pool.close()


def report(
    shapes: Sequence[AllGatherGemm], target: Target, until: float, cpu: bool
) -> Iterator[str]:
    """Lines of Markdown as they are measured, then a RESULT line."""
    yield (
        f"| M | torch.matmul, us | the core, us | torch.matmul / core | {', '.join(TILES)} "
        "|\n|---|---|---|---|---|"
    )
    ratios = []
    for shape, found in measured(shapes, target, until, cpu):
        ratios.append(found.ratio)
        tile = ", ".join(str(found.config[name]) for name in TILES)
        yield (
            f"| {shape.m} | {found.library_us:.1f} | {found.core_us:.1f} | {found.ratio:.2f} | "
            f"{tile} |"
        )
    geomean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    sizes = f"n={shapes[0].n} k={shapes[0].k} dtype={shapes[0].dtype}"
    yield (
        f"RESULT core chip={target.chip.name} {sizes} matmul_over_core={geomean:.3f} "
        f"shapes={len(ratios)} of={len(shapes)}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=3584)
    parser.add_argument("--k", type=int, default=8192)
    parser.add_argument("--m", type=int, nargs="+", help="default: those of the paper")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args(arguments)
    try:
        target = Target.parse("h200x1") if options.cpu else detect()
        sizes = options.m or [shape.m for shape in paper(world=1)]
        shapes = (
            SMALL if options.cpu else [AllGatherGemm(m, options.n, options.k, 1) for m in sizes]
        )
        for line in report(shapes, target, time.monotonic() + options.seconds, options.cpu):
            print(line, flush=True)
    except (ValueError, Broken) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
