"""A two-layer tensor-parallel MLP through tftune.ops under torch.compile: no graph break, captured
in a CUDA graph, beside BSP.

usage: python benchmarks/mlp.py [--world 4] [--artifact PATH] [--seconds 55] [--backend inductor]
[--cpu]

silu(all_gather(x) @ w1) @ w2, the first product by tftune.ops, the second followed by the library's
reduce-scatter. Each variant is one selection: `selected` is what the artifact says (BSP where it
does not apply), `push` its default config, `bsp` the library. The same compiled layer runs all
three, each captured in a CUDA graph of its own; results must be those of BSP within rounding. Then
what tftune.ops adds to a bare launch on the host, and tensor-parallel W/2 x data-parallel 2. Every
wait ends with --seconds: ranks that hang are killed. --cpu tries all of it on emulated ranks, small
and without graphs: it says nothing about speed.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from node import NO_MULTICAST
from torch.distributed._functional_collectives import reduce_scatter_tensor

import tftune
from tftune.db.target import detect
from tftune.kernels.all_gather_gemm import AllGatherGemm, host, reference
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.models.artifact import SHIPPED
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.ops import all_gather_gemm
from tftune.tuner.bench.check import relative_error

ENVIRONMENT = NO_MULTICAST | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Of each rank: one small kernel is compiled sooner than a pool of compilers starts."""
VARIANTS = ("selected", "push", "bsp")
ROUNDING = 4.0
"""Tolerances of one product: there are two products, an activation and a sum over ranks between two
results."""
REPLAYS, ROUNDS = 20, 11
CALLS, REPEATS = 50, 15
"""Of the host's clock: calls in a row, few enough that the queue of launches never fills, and how
often."""


@dataclass(frozen=True)
class Options:
    """What every rank is told; the sizes are of the whole layer but for `n`, the columns of one
    rank."""

    n: int = 3584
    k: int = 8192
    layers: tuple[tuple[str, int], ...] = (("k", 64), ("m", 1024))
    """Sharding and M of each layer."""
    backend: str = "inductor"
    artifact: str | None = None
    cpu: bool = False

    def shape(self, shard: str, m: int, world: int) -> AllGatherGemm:
        return AllGatherGemm(m, self.n, self.k, world, shard=shard)

    def payload_bytes(self, world: int) -> int:
        return max(host.payload_bytes(self.shape(shard, m, world)) for shard, m in self.layers)


SMALL = Options(n=72, k=264, layers=(("k", 8), ("m", 16)), backend="aot_eager", cpu=True)
"""What emulated ranks can compute in seconds."""


class Always(Selector):
    """A selector that names the default config of one variant, whatever the artifact says."""

    def __init__(self, variant: str, chip: Chip | None) -> None:
        super().__init__()
        self._variant, self._chip = variant, chip

    def select(self, shape: Any, mode: str = "graph") -> Selection:
        config = next(
            config
            for config in SPACE.defaults(shape, self._chip)
            if config.variant == self._variant
        )
        return Selection(config, "fallback", f"benchmarks/mlp.py asks for {self._variant}")


class Mlp(torch.nn.Module):
    """[M, K] sharded along K or M to the same: this rank's columns of w1 [K, N] and rows of w2 [N,
    K]."""

    def __init__(self, shape: AllGatherGemm, workspace: Workspace) -> None:
        super().__init__()
        self.shard, self.workspace = shape.shard, workspace
        self.group = (workspace.group or dist.group.WORLD).group_name
        _, w1 = reference.make_inputs(shape, workspace.rank, 7, workspace.device)
        self.register_buffer("w1", w1)
        self.register_buffer("w2", w1.t().contiguous() * (shape.k / shape.n / shape.world) ** 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.silu(
            all_gather_gemm(x, self.w1, self.workspace, shard=self.shard)
        )
        return reduce_scatter_tensor(
            hidden @ self.w2, "sum", 1 if self.shard == "k" else 0, self.group
        )


def sync(workspace: Workspace) -> None:
    if workspace.device.type == "cuda":
        torch.cuda.synchronize()


def agree(workspace: Workspace, group: Any, value: float) -> float:
    """The largest over ranks."""
    found = torch.tensor([value], dtype=torch.float64, device=workspace.device)
    dist.all_reduce(found, dist.ReduceOp.MAX, group=group)
    return float(found)


def selectors(workspace: Workspace, options: Options) -> dict[str, Selector]:
    """The selector of each variant; collective. Where no artifact fits this machine, all ranks
    agree on BSP."""
    chip = None if options.cpu else detect().chip
    shipped = SHIPPED / f"all_gather_gemm__{detect()}.json" if not options.cpu else Path("none")
    selected = tftune.bind(workspace.group, path=options.artifact or shipped)
    return {
        "selected": selected,
        "push": Always("push", chip),
        "bsp": selected.restricted("benchmarks/mlp.py asks for BSP"),
    }


def captured(
    call: Callable[[], torch.Tensor], workspace: Workspace
) -> tuple[Callable[[], object], torch.Tensor]:
    """A call that computes again, and where its result lies: a CUDA graph's replay; on emulated
    ranks the call itself, copied there."""
    for _ in range(2):
        result = call()
    sync(workspace)
    if workspace.device.type == "cpu":
        return lambda: result.copy_(call()), result
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = call()
    return graph.replay, result


def timed(replay: Callable[[], object], workspace: Workspace) -> float:
    """Microseconds of one replay, by the GPU's clock, of this rank."""
    if workspace.device.type == "cpu":
        return 0.0
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    dist.barrier(group=workspace.group)
    start.record()
    for _ in range(REPLAYS):
        replay()
    end.record()
    end.synchronize()
    return 1e3 * start.elapsed_time(end) / REPLAYS


def layer(
    shape: AllGatherGemm, chosen: dict[str, Selector], workspace: Workspace, options: Options
) -> str:
    """One MLP, compiled whole: every variant captured, compared on fresh inputs, and timed by
    turns. Returns the RESULT line."""
    mlp, (x, _) = (
        Mlp(shape, workspace),
        reference.make_inputs(shape, workspace.rank, 0, workspace.device),
    )
    compiled = torch.compile(mlp, backend=options.backend, fullgraph=True, dynamic=False)

    def run(selector: Selector) -> torch.Tensor:
        tftune.use(selector)
        return compiled(x)

    graphs = {name: captured(partial(run, chosen[name]), workspace) for name in VARIANTS}
    breaks = dict(torch._dynamo.utils.counters["graph_break"])
    assert not breaks, f"torch.compile broke the graph: {breaks}"
    errors = dict.fromkeys(VARIANTS, 0.0)
    for seed in (1, 2):
        x.copy_(reference.make_inputs(shape, workspace.rank, seed, workspace.device)[0])
        for replay, result in graphs.values():
            result.fill_(torch.nan)
            replay()
        sync(workspace)
        bsp = graphs["bsp"][1].float()
        errors = {
            name: max(error, relative_error(graphs[name][1], bsp)) for name, error in errors.items()
        }
    worst = agree(workspace, workspace.group, max(errors.values()))
    assert worst <= ROUNDING * reference.tolerance(shape), (
        f"{shape}: relative errors to BSP {errors} on rank {workspace.rank}"
    )
    rounds = [
        [agree(workspace, workspace.group, timed(graphs[name][0], workspace)) for name in VARIANTS]
        for _ in range(ROUNDS)
    ]
    us = {
        name: median(times) for name, times in zip(VARIANTS, zip(*rounds, strict=True), strict=True)
    }
    selection = chosen["selected"].select(shape)
    ratio = us["bsp"] / us["selected"] if us["selected"] else 0.0
    times = " ".join(f"{name}_us={value:.1f}" for name, value in us.items())
    return (
        f"RESULT mlp shape={shape} selected={selection.config.variant} source={selection.source} "
        f"{times} ratio={ratio:.3f} "
        f"error={worst:.1e} graph_breaks=0\n  {selection.reason}"
    )


def overhead(shape: AllGatherGemm, chosen: dict[str, Selector], workspace: Workspace) -> str:
    """What tftune.ops adds on the host to the bare launch of the same plan. Collective; returns the
    RESULT line."""
    tftune.use(chosen["push"])
    config = chosen["push"].select(shape).config
    plan, (a, b) = (
        host.prepare(shape, config, workspace),
        reference.make_inputs(shape, workspace.rank, 0, workspace.device),
    )
    c = reference.make_output(shape, workspace.device)
    calls: dict[str, Callable[[], object]] = {
        "bare": lambda: plan(a, b, c),
        "out": lambda: all_gather_gemm(a, b, workspace, shard=shape.shard, out=c),
        "ops": lambda: all_gather_gemm(a, b, workspace, shard=shape.shard),
    }
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(1 if workspace.device.type == "cpu" else REPEATS):
        for name, call in calls.items():
            sync(workspace)
            dist.barrier(group=workspace.group)
            began = time.perf_counter()
            for _ in range(CALLS if workspace.device.type == "cuda" else 1):
                call()
            samples[name].append(1e6 * (time.perf_counter() - began) / CALLS)
    sync(workspace)
    bare_us, out_us, ops_us = (median(samples[name]) for name in calls)
    return (
        f"RESULT ops {shape=!s} {bare_us=:.2f} {out_us=:.2f} {ops_us=:.2f} "
        f"added_us={ops_us - bare_us:.2f}"
    )


def sub_workspace(groups: Sequence[Any], mine: int, options: Options) -> Workspace:
    """The workspace of this rank's tensor-parallel group; collective over all ranks."""
    world = dist.get_world_size(groups[mine])
    if not options.cpu:
        return Workspace.create(groups[mine], options.payload_bytes(world))
    folder = Path(sys.argv[1]) / f"group-{mine}"
    if dist.get_rank(groups[mine]) == 0:
        folder.mkdir()
        emulated.prepare(folder, world, options.payload_bytes(world))
    dist.barrier()
    return emulated.workspace(
        folder, dist.get_rank(groups[mine]), world, options.payload_bytes(world), groups[mine]
    )


def both_parallel(options: Options, chosen: dict[str, Selector]) -> str:
    """Tensor-parallel W/2 x data-parallel 2: each half computes on data of its own, one half ahead
    of the other, then the halves meet."""
    rank, half = dist.get_rank(), dist.get_world_size() // 2
    groups = [dist.new_group(list(range(first, first + half))) for first in (0, half)]
    pairs = [dist.new_group([place, place + half]) for place in range(half)]
    mine, workspace = rank // half, sub_workspace(groups, rank // half, options)
    tftune.use(chosen["push"])
    worst = 0.0
    for shard, m in options.layers:
        shape = options.shape(shard, m, half)
        a, b = reference.make_inputs(shape, workspace.rank, 100 + mine, workspace.device)
        exact = reference.reference(shape, a, b, workspace.group)
        for call in range(6):
            if call % 2 == mine:
                torch.cuda._sleep(400_000) if workspace.device.type == "cuda" else time.sleep(0.02)
            c = all_gather_gemm(a, b, workspace, shard=shard)
        worst = max(worst, relative_error(c, exact) / reference.tolerance(shape))
        mean = c.float()
        dist.all_reduce(mean, group=pairs[rank % half])
        other = mean - c.float()
        assert relative_error(other, exact) > 0.5, (
            "both halves computed the same, though their data differ"
        )
    worst = agree(workspace, None, worst)
    assert worst <= 1, (
        f"tensor-parallel {half} x data-parallel 2 is wrong by {worst:.2f} tolerances"
    )
    return f"RESULT groups tensor_parallel={half} data_parallel=2 {worst=:.2f}"


def job(workspace: Workspace, options: Options) -> Iterator[str]:
    """All of it on one rank, line by line; every rank has the same lines."""
    began = time.monotonic()
    chosen = selectors(workspace, options)
    shapes = [options.shape(shard, m, workspace.world) for shard, m in options.layers]
    for shape in shapes:
        yield layer(shape, chosen, workspace, options)
    yield overhead(shapes[0], chosen, workspace)
    if workspace.world >= 4 and workspace.world % 2 == 0:
        yield both_parallel(options, chosen)
    yield f"all of it took {time.monotonic() - began:.0f} s after the ranks had started"


def emulate(workspace: Workspace) -> list[str]:
    """The job of one emulated rank."""
    with torch.no_grad():
        return list(job(workspace, SMALL))


def serve(rank: int, folder: str, world: int, seconds: float, options: Options) -> None:
    """One rank on its GPU. Says where it stands if it hangs."""
    faulthandler.dump_traceback_later(max(1.0, seconds - 5), exit=True)
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=world,
        device_id=torch.device("cuda", rank),
    )
    with torch.no_grad():
        for line in job(Workspace.create(None, options.payload_bytes(world)), options):
            print(line, flush=True) if rank == 0 else None
    dist.barrier()
    torch.cuda.synchronize()
    sys.stdout.flush()
    os._exit(0)  # destroying NCCL's communicators waits for ever on captured graphs that hold them


def supervise(
    world: int,
    seconds: float,
    arguments: Sequence[str],
    script: str | None = None,
) -> int:
    """Start a process for each rank, of this script or another; end them all with the first that
    fails, or when the time is over. The exit code."""
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        told = "--world", str(world), "--folder", folder
        own = [sys.executable, script or __file__, *arguments, *told]
        ranks = [
            subprocess.Popen([*own, "--rank", str(rank)], env=os.environ | ENVIRONMENT)
            for rank in range(world)
        ]
        try:
            while any(process.poll() is None for process in ranks):
                if failed := [
                    f"rank {r} with {p.returncode}" for r, p in enumerate(ranks) if p.poll()
                ]:
                    print(f"ended: {', '.join(failed)}", file=sys.stderr)
                    return 1
                if time.monotonic() > until:
                    print(
                        f"ranks had not ended after {seconds:.0f} s and are killed", file=sys.stderr
                    )
                    return 1
                time.sleep(0.05)
            return int(any(process.returncode for process in ranks))
        finally:
            for process in ranks:
                process.kill()
                process.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world", type=int, help="ranks; default: all GPUs")
    parser.add_argument("--artifact", help="default: the one shipped for this machine")
    parser.add_argument("--backend", default=Options.backend, help="of torch.compile")
    parser.add_argument(
        "--seconds", type=float, default=55, help="after which all ranks are killed"
    )
    parser.add_argument("--cpu", action="store_true", help="emulated ranks, without GPUs")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    if asked.cpu:
        world = asked.world or 4
        told = emulated.run(
            world, emulate, payload_bytes=SMALL.payload_bytes(world), timeout_s=asked.seconds
        )
        return print("\n".join(told[0]))
    options = Options(backend=asked.backend, artifact=asked.artifact)
    if asked.rank is not None:
        serve(asked.rank, asked.folder, asked.world, asked.seconds, options)
    sys.exit(supervise(asked.world or torch.cuda.device_count(), asked.seconds, given))


if __name__ == "__main__":
    main()
