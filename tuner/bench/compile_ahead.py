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
from select import select
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.triton_cache import shared_cache
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
    by_key: dict[Any, Job] = {}
    for shape, config in pairs:
        with suppress(ValueError):  # an impossible config is told where it is prepared
            sources = operation(shape.op).module("host").kernel_sources(shape, config, chip)
            for number, source in enumerate(sources):
                by_key.setdefault(source.key, (shape, config, chip, number))
    return by_key


def new_jobs(pairs: Iterable[tuple[Shape, Config]], chip: Chip) -> list[Job]:
    """As `jobs`, without the binaries that this process was given before."""
    new = {key: job for key, job in _by_binary(pairs, chip).items() if key not in _GIVEN}
    _GIVEN.update(new)
    return list(new.values())


_GIVEN = set[Any]()


class Compilers:
    """Processes that compile, one kernel at a time each. They start once: importing torch and
    Triton takes them longer than a kernel does. They end with this process, or after `IDLE_S`."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, count: int) -> None:
        """Let so many live, and return at once."""
        self._children = [child for child in self._children if child.poll() is None]
        self._children += [_child() for _ in range(count - len(self._children))]

    def compile(self, wanted: Sequence[Job], workers: int, limit_s: float) -> None:
        """Return when all of these were tried, or the time is over: then compilers are ended. A
        kernel whose compiler died is tried by one other."""
        self.start(min(workers, len(wanted)))
        waiting, busy, died = list(wanted), dict[int, tuple[Any, Job]](), list[Job]()
        until = time.monotonic() + limit_s
        while True:
            idle = (child for child in self._children if child.stdout.fileno() not in busy)  # type: ignore[union-attr]
            busy |= _fed(idle, waiting)
            left = until - time.monotonic()
            if not busy or left <= 0:
                break
            for handle in select(list(busy), [], [], left)[0]:
                child, job = busy.pop(handle)
                if not os.read(handle, 1):
                    self._children.remove(child)
                    waiting += [job] if job not in died else []
                    died.append(job)
        if busy:
            self.end()

    def end(self) -> None:
        """Kill all of them."""
        for child in self._children:
            child.kill()
            child.wait()
        self._children = []


def _fed(idle: Iterable[subprocess.Popen[bytes]], waiting: list[Job]) -> dict[int, tuple[Any, Job]]:
    """Give each of these compilers a job, as far as there are any: job and compiler by the handle
    that says when it is done."""
    busy: dict[int, tuple[Any, Job]] = {}
    for child in idle:
        if waiting and child.stdin and child.stdout:
            with suppress(BrokenPipeError):
                pickle.dump(waiting[0], child.stdin)
                child.stdin.flush()
            busy[child.stdout.fileno()] = child, waiting.pop(0)
    return busy


COMPILERS = Compilers()
"""The compilers of this process."""
IDLE_S = 120.0
"""A compiler that was given nothing for so long ends."""


def compile_ahead(wanted: Sequence[Job], workers: int, limit_s: float = LIMIT_S) -> None:
    """Compile these in so many processes at most. Raises nothing: who needs a kernel that failed
    here compiles it again, and is told why."""
    if wanted:
        COMPILERS.compile(wanted, workers, limit_s)


def _child() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", __name__]
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with shared_cache():
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet)


def processes() -> int:
    """How many compilers leave a quarter of the cores to others."""
    return max(1, len(os.sched_getaffinity(0)) * 3 // 4)


def main() -> None:
    """Compile what stdin names, one byte to stdout after each."""
    die_with_parent()
    answers, quiet = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # compilers print
    while select([sys.stdin.buffer], [], [], IDLE_S)[0]:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        with suppress(Exception):  # told where the kernel is needed
            compile_one(*job)
        os.write(answers, b".")


if __name__ == "__main__":
    main()
