"""What the examples share: the ranks, and what they select. Under torchrun each process has one GPU
of this node; with --cpu two processes emulate them, and Triton's interpreter runs the kernels."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import tftune
from tftune.kernels.comm import emulated
from tftune.kernels.core.registry import operation

Example = Callable[..., str]
"""Takes a workspace, the path of an artifact, and what other options say; returns a line on what it
checked."""


def start(example: Example, payload_bytes: int, **more: str) -> None:
    """Run it on every rank and print what rank 0 returns. `payload_bytes`: those of the largest
    call, gathered. `more`: other options, with what each is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="store_true", help="two emulated ranks, without a GPU")
    parser.add_argument("--artifact", help="of this machine; default: the one that ships for it")
    for name, meaning in more.items():
        parser.add_argument(f"--{name}", help=meaning)
    options = parser.parse_args()
    given = [getattr(options, name) for name in ("artifact", *more)]
    if options.cpu:
        print("two emulated ranks, kernels in Triton's interpreter: nothing is timed")
        print(emulated.run(2, example, *given, payload_bytes=payload_bytes)[0])
        return
    if "LOCAL_RANK" not in os.environ:
        parser.error("start it with torchrun --nproc-per-node GPUS, or with --cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    # Collective, once, before any capture: the symmetric heap that all layers share.
    workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes)
    said = example(workspace, *given)
    if workspace.rank == 0:
        print(said)
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


class Fused(tftune.Selector):
    """Names a fused kernel for every shape, for emulated ranks, where nothing can be measured. The
    times stand for "faster than BSP", with a norm the most, so that both replacements of an
    all-reduce are seen. They are shown nowhere. Without artifacts the pass is idle."""

    def __init__(self) -> None:
        super().__init__(*tftune.load(target="h200x2").artifacts.values())

    def select(self, shape: Any, mode: str = "graph", facts: Any = None) -> tftune.Selection:
        space = operation(shape.op).space
        fused = (name for name in space.variants if name != "bsp")
        us = 0.5 if getattr(shape, "norm", None) == "rms" else 1.0
        config = next(config for name in fused for config in space.configs(shape, None, (name,)))
        return tftune.Selection(config, "fallback", "emulated, not timed", us, 2.0)


def bind(workspace: tftune.Workspace, artifact: str | None) -> None:
    """All ranks agree on the artifact of this machine, or all run BSP and log why. Emulated ranks
    run fused kernels, if no artifact is named."""
    chosen = Fused() if workspace.arch == "interpreter" and artifact is None else None
    tftune.bind(workspace.group, selector=chosen, path=artifact)


def relative_error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The norm of the difference over the norm of the exact result."""
    return float((found.double() - exact.double()).norm() / exact.double().norm())
