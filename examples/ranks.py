"""What the examples share: the ranks. Under torchrun each process has one GPU of this node; with
--cpu two processes emulate them, and Triton's interpreter runs the kernels."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import torch
import torch.distributed as dist

import tftune
from tftune.kernels.comm import emulated

Example = Callable[[tftune.Workspace, str | None], str]
"""Takes a workspace and the path of an artifact; returns a line on what it checked."""


def start(example: Example, payload_bytes: int) -> None:
    """Run it on every rank and print what rank 0 returns. `payload_bytes`: those of the largest
    call, gathered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="store_true", help="two emulated ranks, without a GPU")
    parser.add_argument("--artifact", help="of this machine; default: the one that ships for it")
    options = parser.parse_args()
    if options.cpu:
        print(emulated.run(2, example, options.artifact, payload_bytes=payload_bytes)[0])
        return
    if "LOCAL_RANK" not in os.environ:
        parser.error("start it with torchrun --nproc-per-node GPUS, or with --cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    # Collective, once, before any capture: the symmetric heap that all layers share.
    workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes)
    said = example(workspace, options.artifact)
    if workspace.rank == 0:
        print(said)
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


def relative_error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The norm of the difference over the norm of the exact result."""
    return float((found.double() - exact.double()).norm() / exact.double().norm())
