"""Folders in memory that the ranks of a world share. Its owner's lock says that one is in use,
whatever the process is numbered where its neighbours run; who is killed leaves one behind, which
the next world's start removes."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

PREFIX = "tftune-"
_LOCK, _UNFINISHED = "owner", "owner.unfinished"


@dataclass(frozen=True)
class Shared:
    """A folder, and the open file whose lock is held as long as this process lives."""

    path: Path
    _held: int

    @classmethod
    def make(cls) -> Shared:
        """A new folder, in memory where there is such a place."""
        place = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
        _remove_abandoned(Path(place))
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))
        held = os.open(path / _UNFINISHED, os.O_CREAT | os.O_RDWR)
        fcntl.flock(held, fcntl.LOCK_EX)
        os.rename(path / _UNFINISHED, path / _LOCK)  # nobody sees it unlocked
        return cls(path, held)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def _remove_abandoned(place: Path) -> None:
    """Remove the folders whose owner is gone. One without a lock is just being made, or is not ours
    to judge."""
    for lock in place.glob(f"{PREFIX}*/{_LOCK}"):
        try:
            held = os.open(lock, os.O_RDWR)
        except OSError:  # somebody else's, or removed meanwhile
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        except BlockingIOError:  # in use
            continue
        finally:
            os.close(held)
