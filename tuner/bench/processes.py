"""Processes that this one starts: they die with it, and Ctrl-C is this one's to handle."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from tftune.kernels.core import chips

Given = ParamSpec("Given")
Result = TypeVar("Result")


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, kill -9 included (prctl
    PR_SET_PDEATHSIG = 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # it died before the kernel was asked
        os._exit(0)


@contextmanager
def environment(names: Mapping[str, str]) -> Iterator[None]:
    """What processes that start in here inherit; this one has its own variables back afterwards."""
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """What this thread starts in here never hears Ctrl-C, which a terminal sends to all of them:
    not even while it still imports. It inherits the blocked signal; this process hears it
    afterwards."""
    resource_tracker.ensure_running()  # it unblocks the signal where it must be started first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(descriptions: Sequence[Mapping[str, Any]]) -> None:
    """What a process does first. `descriptions`: of the GPUs that this one met and tftune does not
    know."""
    die_with_parent()
    for description in descriptions:
        chips.learn(description)


class Helpers(ProcessPoolExecutor):
    """A pool of such processes, which share nothing with this one; where its `with` ends in an
    exception they are killed."""

    def __init__(self, workers: int) -> None:
        super().__init__(
            workers, get_context("spawn"), initializer=_begin, initargs=(chips.described(),)
        )

    def submit(
        self, work: Callable[Given, Result], /, *arguments: Given.args, **named: Given.kwargs
    ) -> Future[Result]:
        """As its parent's; it starts processes."""
        with deaf_to_ctrl_c():
            return super().submit(work, *arguments, **named)

    def kill(self) -> None:
        """End the processes, one that hangs included: `shutdown` alone would wait for its work. The
        thread that manages them ends, too: at the interpreter's end it would print an error."""
        for process in list((self._processes or {}).values()):
            process.kill()
        self.shutdown(cancel_futures=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)
