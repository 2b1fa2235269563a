"""A new operation: the largest |x| of each row over all ranks, which fp8 scales are made of. One
kernel pushes, signals, waits and reduces. tests/outside/all_sum shows the files by which an
operation is also searched, trained and selected.

torchrun --nproc-per-node 8 examples/new_operation.py
python examples/new_operation.py --cpu
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from ranks import start

import tftune
from tftune.kernels.comm.symmetric import begin, finish, flag, peer, signal_peers, wait
from tftune.kernels.core.space import Choice, Space
from tftune.kernels.runtime import plan
from tftune.kernels.runtime.compile import KernelSource

BLOCK = Choice("block", (64, 256), "rows that one program reduces", 64)
SPACE = Space("all_max", {"push": (BLOCK,)}, (), lambda shape, chip: (), {"push": 1})
TYPES = {"x": "*fp32", "out": "*fp32", **plan.WORKSPACE_TYPES}
TYPES |= {"generation_bytes": "i64", "size": "i32", "rank": "i32"}


# Who owns a tile: program p reduces block p. Who writes remotely: it stores its block of x into
# each peer's inbox. Which flag says ready: flag[source][block], set after the block's stores.
@triton.jit(do_not_specialize=["size", "rank"])
def push(
    x, out, control, payload, control_bases, payload_bases, generation_bytes, size, rank,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    epoch, block = begin(control), tl.program_id(0)
    inbox = payload + (epoch & 1) * generation_bytes
    rows = block * BLOCK + tl.arange(0, BLOCK)
    best = tl.abs(tl.load(x + rows, mask=rows < size, other=0.0))
    for step in range(1, WORLD):
        there = peer(inbox + rank * size * 4, payload_bases, rank, (rank + step) % WORLD)
        tl.store(tl.cast(there, tl.pointer_type(tl.float32)) + rows, best, mask=rows < size)
    signal_peers(control, control_bases, block, epoch, rank, WORLD, ARCH)
    for step in range(1, WORLD):
        source = (rank + step) % WORLD
        wait(flag(control, source, block), epoch)
        arrived = tl.cast(inbox + source * size * 4, tl.pointer_type(tl.float32)) + rows
        best = tl.maximum(best, tl.load(arrived, mask=rows < size, other=0.0))
    tl.store(out + rows, best, mask=rows < size)
    finish(control, epoch)


def source(block: int, world: int, arch: str) -> KernelSource:
    """The kernel with all that decides its code."""
    constants = {"BLOCK": block, "WORLD": world, "ARCH": arch}
    return KernelSource(push, TYPES, constants, ("x", "out"), {"launch_cooperative_grid": True})


def prepare(size: int, block: int, workspace: tftune.Workspace) -> plan.Plan:
    """A call (x, out), float32[size], compiled once."""
    kernel = source(block, workspace.world, workspace.arch)
    fixed = plan.workspace_values(workspace) | {"size": size}
    fixed["generation_bytes"] = workspace.generation_bytes
    return plan.launcher(kernel, (-(-size // block), 1, 1), ("x", "out"), fixed, workspace.arch)


def example(workspace: tftune.Workspace, artifact: str | None) -> str:
    configs = list(SPACE.configs(None))
    for seed, config in enumerate(configs):
        generator = torch.Generator().manual_seed(10 * seed + workspace.rank)
        x = torch.randn(777, generator=generator).to(workspace.device)
        exact, out = x.abs(), torch.full_like(x, torch.nan)
        dist.all_reduce(exact, dist.ReduceOp.MAX, group=workspace.group)
        prepare(len(x), config.block, workspace)(x, out)
        if not torch.equal(out, exact):
            raise ValueError(f"{config} differs by {float((out - exact).abs().max())}")
    return f"checked {len(configs)} configs on {workspace.world} ranks: error 0.0, equal to the bit"


if __name__ == "__main__":
    start(example, payload_bytes=1 << 20)
