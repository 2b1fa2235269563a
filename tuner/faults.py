"""Faults on purpose, for drills: what can go wrong on a node, made to go wrong in a config's check, on one rank where it can be."""

from __future__ import annotations

import os
import signal
from typing import Any

FAULTS = {
    "hang": "rank 0 never launches, so that its peers wait for flags that are never set",
    "crash": "a segmentation fault on rank 0",
    "wrong": "wrong numbers on rank 0",
    "oom": "an allocation that fails on every rank",
    "rank_error": "an exception on rank 0 only, while the others launch and wait for it",
}


def faulty(plan: Any, fault: str, rank: int) -> Any:
    """The plan with a fault in it; the other ranks get theirs unharmed. Raises ValueError for an unknown fault."""
    if fault not in FAULTS:
        raise ValueError(f"there is no fault {fault!r}; there are {', '.join(FAULTS)}")

    def call(a: Any, b: Any, c: Any) -> None:
        if fault == "oom":
            raise MemoryError("out of memory (injected)")
        if rank == 0 and fault == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if rank == 0 and fault == "rank_error":
            raise RuntimeError("an exception on one rank (injected)")
        if rank == 0 and fault == "hang":
            return
        plan(a, b, c)
        if rank == 0 and fault == "wrong":
            c[0, 0] += 100

    return call
