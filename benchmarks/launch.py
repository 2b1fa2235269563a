"""What the scripts of this folder share: their options, their ranks, and how these end."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
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


def supervise(world: int, seconds: float, arguments: Sequence[str], script: str | Path) -> int:
    """Start this script for each rank, with --world, --folder and --rank; end all processes with
    the first that fails, or after so many seconds. The exit code."""
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, script, *arguments, "--world", str(world), "--folder", folder]
        ranks = [
            subprocess.Popen([*command, "--rank", str(rank)], env=os.environ | NO_MULTICAST)
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
                    print(f"ranks had not ended after {seconds:.0f} s: killed", file=sys.stderr)
                    return 1
                time.sleep(0.05)
            return int(any(process.returncode for process in ranks))
        finally:
            for process in ranks:
                process.kill()
                process.wait()


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
