"""Where the time of a fused call goes, by leaving stages out: the vendor's GEMM alone, the
library's collective alone, BSP, and one fused config with and without anybody to exchange with.

usage: python benchmarks/stages.py gemm_reduce_scatter m=4096,n=8192,k=28672,world=8 [--db node.db]
[--variant push]

The first four arms take turns in the same rounds, in a CUDA graph, caches cold. The fused config
alone runs on one GPU of its own world, with a rank's part of the sizes: all of its work but what
is exchanged and waited for. Its rounds are others. Both fused arms are checked before they are
timed. The config is the winner of --db, else the default of the variant.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import rivals
from node import NO_MULTICAST

from tftune.db import target as machine
from tftune.db.target import Target
from tftune.db.trial import Failure
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.tuner.bench import worker
from tftune.tuner.bench.sandbox import Broken, RankError, World, slowest

OPS = ("gemm_reduce_scatter", "gemm_all_reduce")
GEMM, COLLECTIVE = Config("gemm"), Config("collective")
"""What stands beside the configs: no variants of the space."""
MEANINGS = {
    "bsp": "the library's GEMM, then its collective",
    "gemm": "the library's GEMM: no exchange",
    "collective": "the library's collective: no GEMM",
    "fused": "the config, all of it",
    "alone": "the config on one GPU: no exchange and no waiting, rounds of its own",
}
DEADLINE_S, ROUNDS = 120.0, 21


class StageRank(worker.Rank):
    """A rank of a search that also takes single stages of BSP for configs."""

    def prepare(self, shape: Any, config: Config, fault: str | None = None) -> None:
        make = {GEMM: gemm, COLLECTIVE: collective}.get(config)
        if make is None:
            return super().prepare(shape, config, fault)
        self._use(shape)
        self.workspace.plans[shape, config] = make(shape, self.workspace)


def gemm(shape: Any, workspace: Any) -> Callable[..., None]:
    """A call (a, b, c) that leaves c alone: this rank's product, [M, N]."""
    import torch

    product = _product(shape, workspace)

    def call(a: Any, b: Any, c: Any) -> None:
        torch.matmul(a, b.t() if shape.b_layout == "nk" else b, out=product)

    return call


def collective(shape: Any, workspace: Any) -> Callable[..., None]:
    """A call (a, b, c) that reads neither a nor b: the library's sum of zeros. It takes as long as
    any other sum."""
    import torch.distributed as dist

    product = _product(shape, workspace).zero_()

    def call(a: Any, b: Any, c: Any) -> None:
        if shape.op == "gemm_all_reduce":
            dist.all_reduce(product, group=workspace.group)
        else:
            dist.reduce_scatter_tensor(c, product, group=workspace.group)

    return call


def _product(shape: Any, workspace: Any) -> Any:
    import torch

    dtype = torch_dtype(shape.dtype)
    return torch.empty(shape.m, shape.n, dtype=dtype, device=workspace.device)


def serve(connection: Connection, spec: worker.WorldSpec, rank: int) -> None:
    worker.main(connection, spec, rank, make=StageRank)


def times(
    shape: Any,
    configs: Sequence[Config],
    target: Target,
    emulated: bool,
    rounds: int,
    serve: Callable[[Connection, worker.WorldSpec, int], None] = serve,
) -> list[float]:
    """Median microseconds of the slowest rank, of each config in the same rounds. Raises Broken or
    RankError, and ValueError where a config of the space computes something else. `serve`: a rank
    that knows the configs which are no variants; these are not checked."""
    payload = operation(shape.op).module("host").payload_bytes(shape)
    spec = worker.WorldSpec(Path(), shape.world, emulated, payload, target.chip.cache_bytes)
    with World(spec, serve=serve) as world:
        for config in configs:
            world.request("prepare", (shape, config), DEADLINE_S)
            if config.variant not in operation(shape.op).space.variants:
                continue
            for error, tolerance in world.request("check", (shape, config), DEADLINE_S):
                if not error <= tolerance:
                    raise ValueError(f"{config} is wrong: {error=:.2e} is above {tolerance=:.2e}")
        replies = world.request("time", (shape, list(configs), "graph", rounds), DEADLINE_S)
    return [median(slowest([each[arm] for each in replies])) for arm in range(len(configs))]


def stages(
    shape: Any, config: Config, target: Target, emulated: bool = False, rounds: int = ROUNDS
) -> dict[str, float | str]:
    """Microseconds of each arm of MEANINGS, or the sentence for which one has none."""
    space = operation(shape.op).space
    forms = space.defaults(shape, target.chip)
    bsp = next(form for form in forms if form.variant == "bsp")
    arms = {"bsp": bsp, "gemm": GEMM, "collective": COLLECTIVE, "fused": config}
    us = times(shape, list(arms.values()), target, emulated, rounds)
    found: dict[str, float | str] = dict(zip(arms, us, strict=True))
    part = replace(shape, k=shape.inner, world=1)
    why = space.why_invalid(part, config, None if emulated else target.chip)
    if why is not None:
        return found | {"alone": why}
    (found["alone"],) = times(part, [config], target, emulated, rounds)
    return found


def report(shape: Any, config: Config, where: str, found: dict[str, float | str]) -> list[str]:
    """A table in Markdown, and a RESULT line. `hidden`: of the shorter of GEMM and collective, the
    share by which the fused call is shorter than both one after the other."""
    rows = [
        f"| {arm} | {us if isinstance(us, str) else f'{us:.1f}'} | {MEANINGS[arm]} |"
        for arm, us in found.items()
    ]
    gemm_us, collective_us, fused_us = (
        float(found[arm]) for arm in ("gemm", "collective", "fused")
    )
    hidden = (gemm_us + collective_us - fused_us) / min(gemm_us, collective_us)
    told = " ".join(f"{arm}_us={us:.1f}" for arm, us in found.items() if isinstance(us, float))
    sizes = str(shape).replace(",", " ")
    return [
        f"{shape} on {where}, graph: {config}",
        "| arm | us | what it is |",
        "|---|---|---|",
        *rows,
        f"RESULT stages op={shape.op} target={where} {sizes} {told} hidden={hidden:.2f}",
    ]


def chosen(shape: Any, target: Target, db: Path | None, variant: str | None) -> Config:
    """The winner of a database, else the variant's default. Raises ValueError where there is
    none."""
    if db is not None:
        found = rivals.picks(db, target, shape.op)(shape, "graph")
        if isinstance(found, Failure):
            raise ValueError(f"{found.text}; run `tftune search {shape.op} --shapes {shape}`")
        if found.variant != "bsp":
            return found
        raise ValueError(f"the winner of {db} at {shape} is BSP; name a variant instead of --db")
    defaults = operation(shape.op).space.defaults(shape, target.chip)
    fused = [config for config in defaults if config.variant != "bsp"]
    named = [config for config in fused if variant in (None, config.variant)]
    if not named:
        there = ", ".join(config.variant for config in fused) or "none"
        raise ValueError(f"there is no default of variant {variant} at {shape}; there are {there}")
    return named[0]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("op", choices=OPS, metavar="OP", help=", ".join(OPS))
    parser.add_argument("shape", metavar="SHAPE", help="as in m=4096,n=8192,k=28672,world=8")
    parser.add_argument("--db", type=Path, help="database with final rows of this machine")
    parser.add_argument("--variant", help="its default config, without --db")
    parser.add_argument("--emulated", action="store_true", help="ranks without GPUs: no speed")
    options = parser.parse_args(arguments)
    os.environ.update(NO_MULTICAST)  # the ranks inherit it
    try:
        shape: Any = operation(options.op).shape.parse(options.shape)
        here = Target.parse(f"h200x{shape.world}") if options.emulated else machine.detect()
        where = f"emulated-{here}" if options.emulated else here.name
        config = chosen(shape, here, options.db, options.variant)
        rounds = 3 if options.emulated else ROUNDS
        began = time.monotonic()
        found = stages(shape, config, here, options.emulated, rounds)
        print("\n".join(report(shape, config, where, found)))
        print(f"took {time.monotonic() - began:.0f} s", file=sys.stderr)
    except (ValueError, OSError, Broken, RankError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
