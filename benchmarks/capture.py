"""What counting the shapes that are run costs a call, on the host: while nothing is captured, and
while something is. No GPU, no library but torch.

usage: python benchmarks/capture.py [--calls 20000]

off: `tftune.select_kernel` while nothing is captured, over the same code without the question
whether something is; `tftune.ops` do not ask it. on: `tftune.ops.all_gather_gemm` of a shape
prepared before, whose plan does nothing, while it is counted, over the same uncounted. select:
`select_kernel` while it is counted, over the code without the question. replay: `graph.replay` of a
counted graph over an uncounted one. Microseconds, of this CPU.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from dispatch import cpu

import tftune
from tftune import ops
from tftune.kernels.all_gather_gemm import AllGatherGemm, host
from tftune.kernels.comm.workspace import Workspace
from tftune.models.selector import Selector

BLOCK = 500
"""Calls between two readings of the clock."""
SHAPE = AllGatherGemm(64, 256, 512, 2)


def block_us(call: Callable[[Any], object]) -> float:
    """Microseconds of one call, the mean over a block."""
    start = time.perf_counter_ns()
    for _ in range(BLOCK):
        call(SHAPE)
    return (time.perf_counter_ns() - start) / 1e3 / BLOCK


def more_us(call: Callable[[Any], object], bare: Callable[[Any], object], calls: int) -> float:
    """How much longer a call takes than a bare one: the difference of their fastest blocks, which
    take turns. Other programs on the machine only ever add."""
    blocks = [(block_us(call), block_us(bare)) for _ in range(max(9, calls // BLOCK))]
    return min(one for one, _ in blocks) - min(other for _, other in blocks)


def workspace() -> Workspace:
    device = torch.device("cpu")
    return Workspace(0, 2, "interpreter", 4, device, None, 0, 0, None, None, 1 << 20, None)


def operation() -> tuple[Callable[[Any], object], Workspace]:
    """A call of the operation whose plan does nothing, and its workspace."""
    here = workspace()
    a = torch.zeros(SHAPE.m, SHAPE.k // SHAPE.world, dtype=torch.float16)
    b = torch.zeros(SHAPE.k, SHAPE.n, dtype=torch.float16)
    c = torch.zeros(SHAPE.m, SHAPE.n, dtype=torch.float16)

    def call(_: Any) -> object:
        return ops.all_gather_gemm(a, b, here, out=c)

    call(SHAPE)
    return call, here


def graph() -> Any:
    """What a CUDA graph has, doing nothing."""
    nothing = lambda: None  # noqa: E731
    return SimpleNamespace(capture_begin=nothing, capture_end=nothing, replay=nothing)


def unaware(shape: Any, mode: str = "graph") -> object:
    """`select_kernel` as it was before shapes could be counted."""
    return (tftune._default if tftune._default is not None else None).select(shape, mode)  # type: ignore[union-attr]


def measured(calls: int) -> dict[str, float]:
    """Differences by name."""
    host.prepare = lambda shape, config, workspace: lambda a, b, c: None
    tftune.use(Selector())
    (counted, _), (bare, apart) = operation(), operation()
    found = {"off_us": more_us(tftune.select_kernel, unaware, calls)}
    with tempfile.TemporaryDirectory() as folder, tftune.capture(Path(folder, "shapes.json")):
        for key, (plan, size) in apart.calls.items():
            apart.calls[key] = plan.uncounted, size  # as while nothing is captured
        found["on_us"] = more_us(counted, bare, calls)
        found["select_us"] = more_us(tftune.select_kernel, unaware, calls)
        replayed, alone = tftune.count_replays(graph()), graph()
        one, other = (lambda _: replayed.replay()), (lambda _: alone.replay())
        found["replay_us"] = more_us(one, other, calls)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20_000)
    found = measured(parser.parse_args(arguments).calls)
    print(f"{cpu()}, Python {platform.python_version()}")
    print(f"RESULT capture {' '.join(f'{name}={us:.3f}' for name, us in found.items())}")


if __name__ == "__main__":
    main()
