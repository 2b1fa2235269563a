"""What a search could leave behind: processes, folders, memory of GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "TFTUNE_DRILL"
"""An environment variable that every process of a drill inherits, whoever its parent is by then."""
GPU_TOLERANCE_MIB = 64
SETTLE_S = 15.0
"""How long a driver may need to give memory back."""


@dataclass(frozen=True)
class Traces:
    """What a search could leave behind."""

    processes: frozenset[str]
    folders: frozenset[str]
    compute_processes: int
    """On the GPUs, by nvidia-smi, where there is one."""
    free_mib: tuple[int, ...]
    """Free memory of each GPU, as a fresh process sees it."""

    def left_since(self, before: Traces) -> list[str]:
        """What is there now and was not there before, by name."""
        held = [then - now for then, now in zip(before.free_mib, self.free_mib, strict=True)]
        return [
            *sorted(self.processes - before.processes),
            *sorted(self.folders - before.folders),
            *["a compute process"] * (self.compute_processes - before.compute_processes),
            *[f"{mib} MiB on GPU {gpu}" for gpu, mib in enumerate(held) if mib > GPU_TOLERANCE_MIB],
        ]


def traces(mark: str, pid: int, gpus: int) -> Traces:
    """What is left of the processes that carry the mark, and of the worlds that process `pid`
    started."""
    return Traces(
        frozenset(processes(mark)),
        frozenset(folders(pid)),
        _compute_processes() if gpus else 0,
        _free_mib(gpus),
    )


def processes(mark: str) -> Iterator[str]:
    """Number and command of every other process that inherited `MARK=mark`, but multiprocessing's
    own tracker, which ends with us."""
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is another user's
            words = (folder / "cmdline").read_bytes().split(b"\0")
            command = b" ".join(words).decode(errors="replace")
            carries = wanted in (folder / "environ").read_bytes().split(b"\0")
            if carries and int(folder.name) != os.getpid() and "resource_tracker" not in command:
                yield f"process {folder.name}: {command}"


def folders(pid: int) -> Iterator[str]:
    """What a world of that supervisor shares lies in these; and NCCL's segments, whose names say
    nothing of their owner."""
    for place in {Path("/dev/shm"), Path(tempfile.gettempdir())}:
        yield from map(str, [*place.glob(f"tftune-{pid}-*"), *place.glob("nccl-*")])


def _compute_processes() -> int:
    if shutil.which("nvidia-smi") is None:
        return 0
    command = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
    return len(subprocess.run(command, text=True, capture_output=True, timeout=60).stdout.split())


def _free_mib(gpus: int) -> tuple[int, ...]:
    """Asked in a fresh process: asking takes a context of its own, which must not stay."""
    if not gpus:
        return ()
    each = f"(torch.cuda.mem_get_info(gpu)[0] >> 20 for gpu in range({gpus}))"
    command = [sys.executable, "-c", f"import torch\nprint(*{each})"]
    return tuple(map(int, subprocess.check_output(command, text=True, timeout=120).split()))


def left(mark: str, gpus: int, before: Traces) -> list[str]:
    """What the searches of this process left, once it had time to go."""
    until = time.monotonic() + SETTLE_S
    while (
        remains := traces(mark, os.getpid(), gpus).left_since(before)
    ) and time.monotonic() < until:
        time.sleep(0.5)
    return remains
