"""A deadline inside one process: a kernel that spins cannot be stopped, so the process ends."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_CODE = 75
"""The exit code of a process that passed a deadline: EX_TEMPFAIL of sysexits.h, start it again."""


@contextmanager
def deadline(seconds: float, text: str, before_end: Callable[[], None]) -> Iterator[None]:
    """What runs in here ends in time, or the process prints `text`, calls `before_end` and ends.

    Ends by os._exit: nothing that waits for the GPU may run any more. The thread needs Python's
    lock, which calls of torch and Triton that wait for the GPU give back.
    """

    def expire() -> None:
        try:
            print(text, file=sys.stderr, flush=True)
            before_end()
        finally:
            os._exit(EXIT_CODE)

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
