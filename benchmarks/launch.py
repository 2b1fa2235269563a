"""What the scripts of this folder share: their options, their ranks, and how these end."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import torch

NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
"""What every measurement runs with: NCCL and torch without NVLink multicast, as the committed rows
were measured."""


def parser(doc: str | None, **more: str) -> argparse.ArgumentParser:
    """A parser whose help is a script's docstring, as it is written there."""
    as_written = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=doc, formatter_class=as_written, **more)


def torchrun(world: int, script: str) -> list[str]:
    """The command line that starts this script again on so many ranks, with --rank."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*run, "--nproc-per-node", str(world), script, *sys.argv[1:], "--rank"]


def join(rank: int | None = None, world: int = 0, meeting: str = "") -> torch.device:
    """The GPU of this process, once it is a rank of NCCL's default group: of torchrun's, or, with a
    rank, of the `world` processes that name the same file for their meeting."""
    import torch
    import torch.distributed as dist

    named = {} if rank is None else {"init_method": f"file://{meeting}", "rank": rank}
    named |= {"world_size": world} if named else {}
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) if rank is None else rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device, **named)
    return device


def leave() -> NoReturn:
    """End this rank with the others. Nothing is torn down: destroying NCCL's communicators waits
    for ever on captured graphs that hold them."""
    import torch
    import torch.distributed as dist

    dist.barrier()
    torch.cuda.synchronize()
    sys.stdout.flush()
    os._exit(0)
