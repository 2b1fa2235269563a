"""The same workspace in host memory, one process per rank: Triton's interpreter runs push, flags
and waits for real.

`run(world, function, *arguments)` starts the ranks. TRITON_INTERPRET is set before they import a
kernel, so the process that calls `run` can still compile. What the interpreter cannot show: inline
assembly does not run, the programs of one rank run one after another, and memory order is the
host's.
"""

from __future__ import annotations

import mmap
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tftune.kernels.comm.interpreter import hasten
from tftune.kernels.comm.operand_heap import OperandHeap
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import CONTROL_BYTES

UNITS = 16
"""Programs of an emulated launch: few, so that each takes several tiles."""


def workspace(
    folder: Path, rank: int, world: int, payload_bytes: int, group: Any = None
) -> Workspace:
    """This rank's view of heaps that are files in `folder`, mapped shared; made by `prepare` before
    the ranks start. What lies behind control and payload is for operands."""
    import torch

    hasten()
    generation = -(-payload_bytes // 4096) * 4096
    heaps = []
    for peer in range(world):
        with (folder / f"heap-{peer}").open("r+b") as file:
            heaps.append(torch.frombuffer(mmap.mmap(file.fileno(), 0), dtype=torch.uint8))
    control = torch.tensor([heap.data_ptr() for heap in heaps], dtype=torch.int64)
    words = heaps[rank][:CONTROL_BYTES].view(torch.int32)
    payload = heaps[rank][CONTROL_BYTES : CONTROL_BYTES + 2 * generation]
    operands = heaps[rank][CONTROL_BYTES + 2 * generation :]

    def set_epoch(epoch: int) -> None:
        words[0] = epoch

    def read_epoch() -> int:
        return int(words[0])

    return Workspace(
        rank=rank,
        world=world,
        arch="interpreter",
        units=UNITS,
        device=torch.device("cpu"),
        group=group,
        control=heaps[rank].data_ptr(),
        payload=payload.data_ptr(),
        control_bases=control,
        payload_bases=control + CONTROL_BYTES,
        generation_bytes=generation,
        payload_tensor=payload,
        operands=OperandHeap(operands if len(operands) else None),
        owner=heaps,
        _set_epoch=set_epoch,
        _read_epoch=read_epoch,
    )


def prepare(folder: Path, world: int, payload_bytes: int, operand_bytes: int = 0) -> None:
    """Make the ranks' heaps as files of zeros."""
    size = CONTROL_BYTES + 2 * (-(-payload_bytes // 4096) * 4096) + operand_bytes
    for rank in range(world):
        with (folder / f"heap-{rank}").open("wb") as file:
            file.truncate(size)


def run(
    world: int,
    function: Callable[..., Any],
    *arguments: Any,
    payload_bytes: int = 1 << 22,
    operand_bytes: int = 0,
    timeout_s: float = 300,
) -> list[Any]:
    """`function(workspace, *arguments)` on each of `world` ranks; returns their results by rank.

    `function` is importable by name. Raises RuntimeError with the first failing rank's output,
    TimeoutError when any rank has not ended in time: then all are killed.
    """
    with tempfile.TemporaryDirectory(
        prefix="tftune-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    ) as name:
        folder = Path(name)
        prepare(folder, world, payload_bytes, operand_bytes)
        job = (
            function.__module__,
            getattr(sys.modules[function.__module__], "__file__", None),
            function.__qualname__,
            arguments,
        )
        (folder / "job").write_bytes(pickle.dumps((world, payload_bytes, job)))
        environment = os.environ | {
            "TRITON_INTERPRET": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        ranks = [_start(folder, rank, environment) for rank in range(world)]
        try:
            _join(ranks, folder, time.monotonic() + timeout_s, timeout_s)
        finally:
            for process in ranks:
                process.kill()
                process.wait()
        return [pickle.loads((folder / f"result-{rank}").read_bytes()) for rank in range(world)]


def _start(folder: Path, rank: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tftune.kernels.comm.emulated", str(folder), str(rank)]
    with (folder / f"log-{rank}").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)


def _join(
    ranks: list[subprocess.Popen[bytes]], folder: Path, deadline: float, timeout_s: float
) -> None:
    waiting = dict(enumerate(ranks))
    while waiting:
        for rank, process in list(waiting.items()):
            if (status := process.poll()) is None:
                continue
            del waiting[rank]
            if status:
                raise RuntimeError(
                    f"rank {rank} ended with {status}:\n{(folder / f'log-{rank}').read_text()}"
                )
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"ranks {sorted(waiting)} had not ended after {timeout_s:g} s: "
                "a flag that is never set?"
            )
        time.sleep(0.005)


def _load(module: str, file: str | None, qualname: str) -> Callable[..., Any]:
    """The job's function, from its module or, where that is not importable by name (a test file),
    from its source file."""
    import importlib
    import importlib.util

    if module == "__main__" or importlib.util.find_spec(module.partition(".")[0]) is None:
        spec = importlib.util.spec_from_file_location("tftune_emulated_job", str(file))
        if spec is None or spec.loader is None:
            raise ValueError(f"the ranks cannot import {qualname} from {module} ({file})")
        loaded = sys.modules["tftune_emulated_job"] = importlib.util.module_from_spec(
            spec
        )  # dataclasses look there
        spec.loader.exec_module(loaded)
    else:
        loaded = importlib.import_module(module)
    target: Any = loaded
    for part in qualname.split("."):
        target = getattr(target, part)
    return target


def _rank(folder: Path, rank: int) -> None:
    import torch
    import torch.distributed as dist

    world, payload_bytes, (module, file, qualname, arguments) = pickle.loads(
        (folder / "job").read_bytes()
    )
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world
    )
    result = _load(module, file, qualname)(
        workspace(folder, rank, world, payload_bytes, dist.group.WORLD), *arguments
    )
    written = folder / f"written-{rank}"
    written.write_bytes(pickle.dumps(result))
    written.rename(folder / f"result-{rank}")
    # Not a barrier of gloo: who leaves it first and ends resets the connection of who is still in
    # it.
    while not all((folder / f"result-{peer}").exists() for peer in range(world)):
        time.sleep(0.005)
    sys.stdout.flush()
    sys.stderr.flush()
    # gloo's threads abort about one orderly exit in twelve on a busy machine: "terminate called
    # without an active exception".
    os._exit(0)


if __name__ == "__main__":
    _rank(Path(sys.argv[1]), int(sys.argv[2]))
