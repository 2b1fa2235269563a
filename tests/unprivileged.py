"""A part of a test as a user who may not write everywhere: root writes into folders that forbid
it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION, THIS_THREAD = 0x20080522, 0
OVERRIDE = 1 << 1
"""CAP_DAC_OVERRIDE, capabilities(7)."""


def _capabilities(name: str, words: ctypes.Array[ctypes.c_uint32]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(VERSION, THIS_THREAD)
    if getattr(libc, name)(header, words):
        raise OSError(ctypes.get_errno(), name)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing in the folder can be made or removed, by root in this thread neither."""
    words = (ctypes.c_uint32 * 6)()
    _capabilities("capget", words)
    held, mode = words[0], folder.stat().st_mode
    folder.chmod(0o555)
    words[0] = held & ~OVERRIDE
    _capabilities("capset", words)
    try:
        yield
    finally:
        words[0] = held
        _capabilities("capset", words)
        folder.chmod(mode)
