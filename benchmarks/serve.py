"""What a server gets: shapes drawn at random, captured through tftune.ops, beside BSP's forms.

usage: python benchmarks/serve.py --world 2 --random 40 --seed 1 [--warm-up] [--db DB]
           [--artifact PATH] [--seconds 300] [--out serve.jsonl] [--cpu]
       python benchmarks/serve.py --world 2 --shapes "m=24,n=3584,k=8192;m=3000,n=7168,k=4096" ...

Shapes have the layout of serving engines: bf16, weights [N, K], tokens sharded over the ranks. Each
is timed by a clock of this script's own: at least 12 captured calls over rotating operands, ranks
started together, the slowest rank of each round, medians of interleaved rounds. With --warm-up all
is measured before and after `tftune.warm_up`. With --db each shape is held against the best final
row that a search has of it: regret is that row's speed-up over BSP, over the one seen here. Rows
are written one by one; when --seconds are nearly over, the shapes measured so far are summed up.
--cpu tries all of it on emulated ranks: it says nothing about speed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import launch
import torch
import torch.distributed as dist
from serve_clock import Clock

import tftune
from tftune.db.store import Store
from tftune.db.target import detect
from tftune.db.trial import Measurement, median_interval
from tftune.kernels.all_gather_gemm import AllGatherGemm, host
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.all_gather_gemm.workloads import GRID, MODELS
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.ops import all_gather_gemm

LAYOUT = {"dtype": "bf16", "shard": "m", "b_layout": "nk"}
MOST_FLOPS = 6e12
"""The most FLOPs of one rank's call, about 10 ms on an H200: larger draws of N and K are drawn
again."""
LARGE, LARGEST, SMALLEST = 1024, 16384, 8
"""Two thirds of M lie between the first two, the others between the last and the first."""
RESERVE_S = 10.0
"""Before the deadline no further shape is begun."""


@dataclass(frozen=True)
class Options:
    """What every rank is told."""

    shapes: tuple[AllGatherGemm, ...]
    warm_up: bool
    until: float
    """By time.time(): the same on every rank."""
    artifact: str | None = None
    out: str | None = None
    db: str | None = None
    rows: str = "serve-warm-up.jsonl"


@dataclass(frozen=True)
class Row:
    """One shape, before or after the warm-up: rounds of what is selected and of each BSP form."""

    phase: str
    shape: AllGatherGemm
    config: dict[str, Any]
    source: str
    us: dict[str, tuple[float, ...]]
    error: float
    """Norm of the difference to BSP's result, over the norm of that."""
    searched: float | None
    """BSP / winner of a search's final rows; None where there is none."""

    @property
    def bsp(self) -> str:
        forms = [name for name in self.us if name != "selected"]
        return min(forms, key=lambda name: median(self.us[name]))

    @property
    def ratios(self) -> tuple[float, ...]:
        """The strongest BSP form over what is selected, round by round."""
        return tuple(b / s for b, s in zip(self.us[self.bsp], self.us["selected"], strict=True))

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def regret(self) -> float | None:
        return None if self.searched is None else self.searched / self.ratio

    def to_json(self) -> str:
        fields = vars(self) | {"shape": str(self.shape), "bsp": self.bsp}
        fields["ratio"] = round(self.ratio, 4)
        fields["interval"] = [round(bound, 4) for bound in median_interval(self.ratios)]
        return json.dumps(fields | {"regret": self.regret and round(self.regret, 4)})

    def line(self) -> str:
        """A line of a Markdown table."""
        low, high = median_interval(self.ratios)
        times = f"{median(self.us[self.bsp]):.1f} | {median(self.us['selected']):.1f}"
        ratio = f"{self.ratio:.3f} ({low:.3f} to {high:.3f})"
        regret = "-" if self.regret is None else f"{self.regret:.3f}"
        name, what = self.config["variant"], f"{self.source} | {regret} | {self.error:.1e}"
        return f"| {self.phase} | {self.shape} | {self.bsp} | {times} | {ratio} | {name} | {what} |"


HEAD = (
    "| phase | shape | BSP form | BSP us | selected us | BSP / selected | variant | source "
    "| regret | error |\n|---|---|---|---|---|---|---|---|---|---|"
)


def layers(world: int) -> list[tuple[int, int]]:
    """N of one rank and K: column-parallel layers of public models, and the pairs of the grid.

    Not the heads of language models: a server computes them for the last tokens alone.
    """
    projections = [p for model in MODELS.values() for p in model if p.name != "lm_head"]
    return [*((p.columns // world, p.k) for p in projections), *GRID]


def between(pick: random.Random, low: int, high: int, step: int) -> int:
    """A multiple of `step` drawn evenly by its logarithm."""
    value = math.exp(pick.uniform(math.log(low), math.log(high)))
    return min(max(step, round(value / step) * step), high // step * step)


def drawn(count: int, seed: int, world: int) -> tuple[AllGatherGemm, ...]:
    """So many different shapes: two of three M from 1024 on, one of two (N, K) between others."""
    pick, known, shapes = random.Random(seed), layers(world), dict[AllGatherGemm, None]()
    while len(shapes) < count:
        bounds = (LARGE, LARGEST) if len(shapes) % 3 < 2 else (SMALLEST, LARGE - 1)
        m = between(pick, *bounds, world)
        (n, k), (other_n, other_k) = pick.sample(known, 2)
        if pick.random() < 0.5:
            n = between(pick, min(n, other_n), max(n, other_n), 16)
            k = between(pick, min(k, other_k), max(k, other_k), 16)
        if 2.0 * m * n * k <= MOST_FLOPS:
            shapes[AllGatherGemm(m, n, k, world, **LAYOUT)] = None
    return tuple(shapes)


def parsed(text: str, world: int) -> tuple[AllGatherGemm, ...]:
    """Shapes written as in `tftune search`, of the engine layout where they say nothing else."""
    given = [dict(part.split("=") for part in one.split(",")) for one in text.split(";")]
    return tuple(AllGatherGemm.from_dict({**LAYOUT, "world": world, **one}) for one in given)


def chip_here(workspace: Workspace) -> Chip | None:
    """None on emulated ranks, and for a GPU without constants."""
    with suppress(ValueError):
        return detect().chip if workspace.device.type == "cuda" else None
    return None


def measure(phase: str, shape: AllGatherGemm, workspace: Workspace, best: float | None) -> Row:
    """What is selected now and every form of BSP, captured and timed by turns; collective."""
    clock, chip = Clock(workspace, shape), chip_here(workspace)
    layout = {"shard": shape.shard, "b_layout": shape.b_layout}
    selection = tftune.select_kernel(shape)

    def selected(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        all_gather_gemm(a, b, workspace, **layout, out=c)

    replays = {"selected": clock.captured(selected)}
    for form in (config for config in SPACE.defaults(shape, chip) if config.variant == "bsp"):
        plan = host.prepare(shape, form, workspace)
        replays[form["form"]] = clock.captured(plan)
    results = [result_of(replay, clock) for replay in replays.values()]
    worst = torch.tensor([distance(results[0], right) for right in results[1:]])
    worst = worst.max().to(workspace.device)
    dist.all_reduce(worst, dist.ReduceOp.MAX, group=workspace.group)
    us = clock.rounds(replays)
    workspace.calls.clear()
    config = selection.config.to_dict()
    return Row(phase, shape, config, selection.source, us, float(worst), best)


def result_of(replay: Callable[[], object], clock: Clock) -> torch.Tensor:
    """A copy of what one replay leaves in the first output, which was NaN before."""
    output = clock.operands[0][-1]
    output.fill_(math.nan)
    replay()
    clock.wait()
    return output.clone()


def distance(result: torch.Tensor, right: torch.Tensor) -> float:
    """Relative; infinite where the result is not finite."""
    error = float((result.float() - right.float()).norm() / right.float().norm())
    return error if math.isfinite(error) else math.inf


def best_known(db: str | None, shapes: Sequence[AllGatherGemm]) -> dict[AllGatherGemm, float]:
    """BSP / winner of each shape's final rows, captured: of rows of a config the newest counts."""
    best: dict[AllGatherGemm, float] = {}
    if db is None:
        return best
    with Store.open(Path(db), write=False) as store:
        for shape in shapes:
            rows = store.trials(shape=shape, mode="graph", stage="final", bench="node")
            newest = {row.config: row.outcome for row in sorted(rows, key=lambda row: row.created)}
            speedups = [m.speedup or 1.0 for m in newest.values() if isinstance(m, Measurement)]
            if speedups:
                best[shape] = max(1.0, *speedups)
    return best


def result(rows: Sequence[Row], target: str) -> str:
    """The RESULT line of one phase."""
    ratios = [row.ratio for row in rows]
    sources = Counter(row.source for row in rows)
    named = "+".join(f"{name}:{count}" for name, count in sorted(sources.items()))
    regrets = [row.regret for row in rows if row.regret is not None]
    regret = f" regret={geometric_mean(regrets):.3f} searched={len(regrets)}" if regrets else ""
    return (
        f"RESULT serve target={target} op=all_gather_gemm mode=graph phase={rows[0].phase} "
        f"shapes={len(rows)} geomean={geometric_mean(ratios):.3f} worst={min(ratios):.3f} "
        f"below_098={sum(ratio < 0.98 for ratio in ratios)} source={named} "
        f"error={max(row.error for row in rows):.1e}{regret}"
    )


def is_over(workspace: Workspace, until: float) -> bool:
    """Whether any rank's clock says that no further shape may begin."""
    over = torch.tensor([float(time.time() > until - RESERVE_S)], device=workspace.device)
    dist.all_reduce(over, dist.ReduceOp.MAX, group=workspace.group)
    return bool(over.item())


def job(workspace: Workspace, options: Options) -> Iterator[str]:
    """All of it on one rank, line by line; rank 0 writes the rows."""
    tftune.bind(workspace.group, path=options.artifact)
    gpu = workspace.device.type == "cuda"
    target = str(detect()) if gpu else f"emulatedx{workspace.world}"
    known = best_known(options.db if workspace.rank == 0 else None, options.shapes)
    yield HEAD
    for phase in ("before", "after") if options.warm_up else ("before",):
        if phase == "after":
            began = time.monotonic()
            tftune.warm_up(options.shapes, workspace, rows=options.rows)
            seconds = time.monotonic() - began
            yield f"tftune.warm_up took {seconds:.1f} s for {len(options.shapes)} shapes"
        rows: list[Row] = []
        for shape in options.shapes:
            if is_over(workspace, options.until):
                yield f"the time is nearly over after {len(rows)} shapes of phase {phase}"
                break
            rows.append(measure(phase, shape, workspace, known.get(shape)))
            if workspace.rank == 0 and options.out:
                with open(options.out, "a") as file:
                    file.write(rows[-1].to_json() + "\n")
            yield rows[-1].line()
        if rows:
            yield result(rows, target)


def emulate(workspace: Workspace, words: list[str]) -> list[str]:
    """The job of one emulated rank, which gets the command line."""
    with torch.no_grad():
        return list(job(workspace, options_of(arguments().parse_args(words))))


def serve(rank: int, folder: str, world: int, options: Options) -> None:
    """One rank on its GPU. Says where it stands, and ends, if it hangs."""
    left = options.until - time.time()
    faulthandler.dump_traceback_later(max(1.0, left), exit=True)
    launch.join(rank, world, f"{folder}/rendezvous")
    workspace = Workspace.create(None, max(map(host.payload_bytes, options.shapes)))
    with torch.no_grad():
        for line in job(workspace, options):
            print(line, flush=True) if rank == 0 else None
    launch.leave()


def arguments() -> argparse.ArgumentParser:
    parser = launch.parser(__doc__)
    parser.add_argument("--world", type=int, default=2, help="ranks")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--shapes", help="m=..,n=..,k=..; separated by semicolons")
    which.add_argument("--random", type=int, help="so many shapes, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of --random")
    parser.add_argument("--warm-up", action="store_true", help="also after tftune.warm_up")
    parser.add_argument("--artifact", help="default: the one shipped for this machine")
    parser.add_argument("--db", help="a search's database, to say the regret")
    parser.add_argument("--rows", default=Options.rows, help="what the warm-up appends to")
    parser.add_argument("--out", help="JSON lines, one for each shape and phase; appended to")
    parser.add_argument("--seconds", type=float, default=300, help="after which all ranks end")
    parser.add_argument("--cpu", action="store_true", help="emulated ranks, without GPUs")
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser


def options_of(asked: argparse.Namespace) -> Options:
    """What the ranks are told; raises ValueError for shapes that are none."""
    world = asked.world
    shapes = parsed(asked.shapes, world) if asked.shapes else drawn(asked.random, asked.seed, world)
    until = asked.until or time.time() + asked.seconds
    files = {"artifact": asked.artifact, "out": asked.out, "db": asked.db, "rows": asked.rows}
    return Options(shapes, asked.warm_up, until, **files)


def main(given: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if given is None else given)
    parser = arguments()
    asked = parser.parse_args(words)
    try:
        options = options_of(asked)
    except ValueError as error:
        parser.error(str(error))
    if asked.rank is not None:
        serve(asked.rank, asked.folder, asked.world, options)
    if asked.random:
        print(f"{asked.random} shapes of seed {asked.seed}", flush=True)
    words += ["--until", str(options.until)]
    if asked.cpu:
        size = max(map(host.payload_bytes, options.shapes))
        limits = {"payload_bytes": size, "timeout_s": asked.seconds}
        return print("\n".join(emulated.run(asked.world, emulate, words, **limits)[0]))
    sys.exit(launch.supervise(asked.world, asked.seconds, words, __file__))


if __name__ == "__main__":
    main()
