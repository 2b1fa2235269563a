"""Compile kernels ahead, into Triton's cache, in processes that need no multiprocessing.

A pool of multiprocessing imports the main module again, and a daemonic process may have none. A
server's ranks may be both, so each child here is this module as a program.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.compile_pool import compile_one
from tftune.tuner.bench.processes import die_with_parent

LIMIT_S = 300.0
"""After which children are ended: what is left is compiled where it is needed."""
Job = tuple[Shape, Config, Chip, int]
"""What `compile_one` takes."""


def jobs(pairs: Iterable[tuple[Shape, Config]], chip: Chip) -> list[Job]:
    """One for each binary that these configs need; library calls need none."""
    return list(_by_binary(pairs, chip).values())


def _by_binary(pairs: Iterable[tuple[Shape, Config]], chip: Chip) -> dict[Any, Job]:
    found: dict[Any, Job] = {}
    for shape, config in pairs:
        with suppress(ValueError):  # an impossible config is told where it is prepared
            sources = operation(shape.op).module("host").kernel_sources(shape, config, chip)
            for number, source in enumerate(sources):
                found.setdefault(source.key, (shape, config, chip, number))
    return found


def new_jobs(pairs: Iterable[tuple[Shape, Config]], chip: Chip) -> list[Job]:
    """As `jobs`, without the binaries that this process was given before."""
    found = {key: job for key, job in _by_binary(pairs, chip).items() if key not in _GIVEN}
    _GIVEN.update(found)
    return list(found.values())


_GIVEN = set[Any]()


def compile_ahead(wanted: Sequence[Job], workers: int, limit_s: float = LIMIT_S) -> None:
    """Compile these in so many processes at most. Raises nothing: who needs a kernel that failed
    here compiles it again, and is told why."""
    shares = [wanted[first::workers] for first in range(min(workers, len(wanted)))]
    until = time.monotonic() + limit_s
    children = [_child(share) for share in shares]
    try:
        for child in children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, until - time.monotonic()))
    finally:
        for child in children:
            child.kill()
            child.wait()


def _child(share: Sequence[Job]) -> subprocess.Popen[bytes]:
    command, silent = [sys.executable, "-m", __name__], subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=silent, stderr=silent)
    if child.stdin is not None:
        with suppress(BrokenPipeError), child.stdin:
            child.stdin.write(pickle.dumps(list(share)))
    return child


def processes() -> int:
    """How many compilers leave a quarter of the cores to others."""
    return max(1, len(os.sched_getaffinity(0)) * 3 // 4)


def main() -> None:
    die_with_parent()
    for job in pickle.load(sys.stdin.buffer):
        with suppress(Exception):  # told where the kernel is needed
            compile_one(*job)


if __name__ == "__main__":
    main()
