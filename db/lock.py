"""One writer, on a local disk: what must hold of a database's place before it is opened. Standard
library only."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from pathlib import Path

from tftune.db import patience

# fmt: off
NETWORK_FILE_SYSTEMS = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "fuse.ceph", "lustre",
    "beegfs", "gpfs", "panfs", "glusterfs", "fuse.glusterfs",
    "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse",
))
# fmt: on
"""SQLite's write-ahead log needs memory shared by all readers, which these do not give
(https://sqlite.org/wal.html)."""

TURNS = 8
"""Writers that are waited for one after another, each of them for the whole of its time."""
_held: set[int] = set()
logger = logging.getLogger(__name__)


class StoreError(ValueError):
    """The store cannot do what was asked: one sentence that names the file, what is wrong with it,
    and what to do."""


class DamagedError(StoreError):
    """The file holds what SQLite, or this tftune, cannot read: `tftune db check` counts it as a
    problem found."""


def refuse_network(path: Path) -> None:
    """Raise StoreError where `path` lies on a network file system."""
    if kind := network_file_system(path, _mount_table()):
        raise StoreError(
            f"{path} is on a network file system ({kind}), where SQLite loses rows; give a file "
            "on a local disk with --db"
        )


def network_file_system(path: Path, mount_table: str) -> str | None:
    """The type of the network file system that holds the absolute `path`, or None. `mount_table`:
    the text of /proc/self/mountinfo."""
    longest, kind = -1, ""
    for line in mount_table.splitlines():
        before, _, after = line.partition(" - ")
        mount = _unescaped(before.split()[4])
        if (
            path.is_relative_to(mount) and len(mount) >= longest
        ):  # of two mounts on one folder, the later one is seen
            longest, kind = len(mount), after.split()[0]
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def _unescaped(mount: str) -> str:
    """The kernel writes these four characters of a path in octal (proc_pid_mountinfo(5))."""
    for character in " \t\n\\":
        mount = mount.replace(f"\\{ord(character):03o}", character)
    return mount


def _mount_table() -> str:
    table = Path("/proc/self/mountinfo")
    return table.read_text() if table.exists() else ""


def take(path: Path) -> int:
    """Lock `<path>.lock` for this process and write its number there. The lock dies with the
    process, the file stays. Another process that holds it is waited for, which is said.

    Raises StoreError naming the process that has held it for `patience.LIMIT_S` meanwhile, or where
    the folder cannot be written. While holders change, it waits TURNS times as long.
    """
    lock = _locked(path)
    while not _is_named(lock, path):  # its last holder has removed it: see `remove`
        os.close(lock)
        lock = _locked(path)
    try:
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
    except OSError as error:  # a full disk
        os.close(lock)
        raise StoreError(
            f"cannot write {path}.lock: {error.strerror}; free space there, or give another file "
            "with --db"
        ) from error
    _held.add(lock)
    return lock


def _locked(path: Path) -> int:
    began, holder, said = time.monotonic(), "", False
    until = began + TURNS * patience.LIMIT_S
    while isinstance(found := _try(path), str):
        now = time.monotonic()
        if found != holder:
            began, holder = now, found
        waited_s = now - began
        if found == str(os.getpid()) or waited_s >= patience.LIMIT_S or now >= until:
            raise StoreError(
                f"{path} is being written by process {found}; wait until it ends, or give another "
                "file with --db"
            )
        if waited_s >= patience.SAID_S and not said:
            said = True
            logger.warning(
                "%s is being written by process %s: waits until it ends; gives up after %g s",
                path,
                found,
                patience.LIMIT_S,
            )
        time.sleep(0.02)
    return found


def _try(path: Path) -> int | str:
    """The lock, now held, or the number of the process that holds it."""
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; give a file in a folder that can be written, "
            "with --db"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 32).decode(errors="replace") or "of unknown number"
        os.close(lock)
        return holder
    return lock


def _is_named(lock: int, path: Path) -> bool:
    """Whether this open file is still the one that the next process would lock."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(f"{path}.lock"))
    except FileNotFoundError:
        return False


def remove(path: Path) -> None:
    """Delete a database with its journals, and the lock that this process holds last."""
    for suffix in ("", "-wal", "-shm", ".lock"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def release(lock: int | None) -> None:
    """Give back what `take` returned; None, or a lock given back before, is passed over."""
    if lock in _held:
        _held.remove(lock)
        os.ftruncate(lock, 0)
        os.close(lock)


def _forget() -> None:
    """A forked child (a compile pool) must not keep the file locked after its parent was killed."""
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_forget)


def refuse_to_replace_a_database(path: Path) -> None:
    """Raise StoreError where the file that is to be written is an SQLite database, by its first
    bytes."""
    if path.is_file():
        with path.open("rb") as file:
            if file.read(16) == b"SQLite format 3\0":
                raise StoreError(
                    f"{path} is a database, which would be lost; give another file to write"
                )
