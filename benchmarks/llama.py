"""Times of the block of examples/llama_block.py: eager, compiled, and compiled with tftune's pass,
each captured in a CUDA graph.

usage: torchrun --nproc-per-node 8 benchmarks/llama.py [--size 8b 70b] [--prefill 1024 4096]
[--decode 1 64] [--seconds 280] [--artifact PATH]

One RESULT line for each size, plan and M, and a geometric mean for each plan. Microseconds are
those of the slowest rank, medians of rounds in which the forms take turns. `alone` is what one rank
computes, compiled, without any exchange: no pass can be faster. `possible` is compiled / alone, and
`share` is how much of the time above `alone` the pass saves. M is padded to a multiple of the ranks
where these share tokens. Weights are random, and no artifact is made: search the shapes before
(`tftune tune`). With one rank nothing is exchanged, and the pass must change nothing. Every rank
ends after --seconds, also one that hangs; cases that would begin in the last fifth are left out.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import launch
import torch
import torch.distributed as dist

import tftune

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from llama_block import SIZES, Block, Case, compared, forms

REPLAYS, ROUNDS = 10, 11


def alone(case: Case, world: int, **options: Any) -> Block:
    """What one rank computes: copies of its own rows stand for a gather, its first rows for a
    reduce-scatter."""
    heads, kv_heads, inner = (
        getattr(case.size, name) // world for name in ("heads", "kv_heads", "inner")
    )
    own = replace(case.size, heads=heads, kv_heads=kv_heads, inner=inner)
    with torch.device(options["device"]):
        block = Block(replace(case, size=own), kv_heads).to(options["dtype"])
    for module in (block.attention, block.ffn) if case.plan == "prefill" else ():
        module.register_forward_pre_hook(lambda _, given: (given[0].repeat(1, world, 1),))
        module.register_forward_hook(lambda _, given, y: y[:, : y.shape[1] // world])
    return block


def captured(call: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Callable[[], object]:
    """A CUDA graph's replay."""
    for _ in range(3):
        call(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        call(x)
    return graph.replay


def slowest(replay: Callable[[], object]) -> float:
    """Microseconds of one replay, of the slowest rank."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    begin.record()
    for _ in range(REPLAYS):
        replay()
    end.record()
    end.synchronize()
    us = torch.tensor(1e3 * begin.elapsed_time(end) / REPLAYS, device="cuda")
    dist.all_reduce(us, dist.ReduceOp.MAX)
    return float(us)


def times(calls: dict[str, Any], x: torch.Tensor) -> dict[str, float]:
    """The median of each form, of rounds in which they take turns."""
    graphs = {name: captured(call, x) for name, call in calls.items()}
    rounds = [{name: slowest(replay) for name, replay in graphs.items()} for _ in range(ROUNDS)]
    return {name: median(each[name] for each in rounds) for name in calls}


def line(name: str, us: dict[str, float]) -> str:
    """The RESULT line of a case."""
    compiled, passed, own = (us[form] for form in ("compiled", "pass", "alone"))
    share = f"{(compiled - passed) / (compiled - own):.2f}" if compiled > own else "none"
    each = " ".join(f"{form}_us={value:.1f}" for form, value in us.items())
    ratio, possible = compiled / passed, compiled / own
    return f"RESULT llama {name} {each} {ratio=:.3f} {possible=:.3f} {share=!s}"


def padded(tokens: int, plan: str, world: int) -> int:
    return -(-tokens // world) * world if plan == "prefill" else tokens


def cases(given: argparse.Namespace, world: int) -> list[tuple[str, Case]]:
    """What was asked for, with the name of its size."""
    return [
        (size, Case(plan, padded(tokens, plan, world), SIZES[size]))
        for size in given.size
        for plan in ("prefill", "decode")
        for tokens in getattr(given, plan)
    ]


def job(given: argparse.Namespace, device: torch.device) -> Iterator[str]:
    """Every case, line by line; every rank has the same lines."""
    until, world = time.monotonic() + 0.8 * given.seconds, dist.get_world_size()
    mesh, asked = (
        torch.distributed.device_mesh.init_device_mesh("cuda", (world,)),
        cases(given, world),
    )
    tftune.bind(dist.group.WORLD, path=given.artifact)
    most = max(case.tokens * case.size.hidden for _, case in asked)
    pass_ = tftune.compile_pass(dist.group.WORLD, max_bytes=4 * most, training=False)
    if pass_.why_idle:
        yield f"the pass changes nothing: {pass_.why_idle}"
    ratios: dict[str, list[float]] = {"prefill": [], "decode": []}
    for size, case in asked:
        late = torch.tensor(float(time.monotonic() > until), device=device)
        dist.all_reduce(late)
        if late:
            yield f"{size} {case}: left out: --seconds {given.seconds:g} are nearly over"
            continue
        before = len(pass_.report)
        options = {"device": device, "dtype": torch.bfloat16}
        x, calls = forms(case, mesh, pass_, **options)
        yield f"{size} {case}: {compared(calls, x)[0]}"
        yield from (entry.line() for entry in pass_.report[before:])
        own = torch.compile(alone(case, world, **options), dynamic=False)
        us = times(calls | {"alone": own}, x)
        ratios[case.plan].append(us["compiled"] / us["pass"])
        yield line(f"{size} {case.plan} M={case.tokens} {world=}", us)
    for plan, each in ratios.items():
        if each:
            worst = min(each)
            yield f"RESULT llama {plan} mean={geometric_mean(each):.3f} {worst=:.3f} of {len(each)}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--size", nargs="+", choices=[*SIZES], default=["8b", "70b"])
    parser.add_argument("--prefill", type=int, nargs="*", default=[1024, 3000, 4096, 8192])
    parser.add_argument("--decode", type=int, nargs="*", default=[1, 8, 24, 64, 256])
    parser.add_argument("--seconds", type=float, default=280, help="after which every rank ends")
    parser.add_argument("--artifact", help="of this machine; default: those that ship for it")
    given = parser.parse_args(arguments)
    if "LOCAL_RANK" not in os.environ:
        parser.error("start it with torchrun --nproc-per-node GPUS benchmarks/llama.py")
    os.environ.update(launch.NO_MULTICAST)
    faulthandler.dump_traceback_later(given.seconds, exit=True)
    device = launch.join()
    with torch.no_grad():
        for text in job(given, device):
            print(text, flush=True) if dist.get_rank() == 0 else None
    launch.leave()


if __name__ == "__main__":
    main()
