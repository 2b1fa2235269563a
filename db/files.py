"""Files that commands write and read: replaced whole or left as they were, and never a pipe.
Standard library only."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from tftune.db.lock import StoreError, refuse_to_replace_a_database

ELSEWHERE = "choose a folder that can be written"


def replace_file(
    path: Path,
    content: bytes | str,
    *,
    what: str = "",
    otherwise: str = ELSEWHERE,
    make_folder: bool = False,
) -> None:
    """Write `content` (text as UTF-8) beside `path` and rename it: a full disk or a kill leaves the
    old file whole.

    A link stays a link; the file that it names is replaced. `what`: a word before the path in a
    message, `otherwise`: its next step. Raises StoreError where the file cannot be written, is a
    database, or is a folder, a pipe or a device.
    """
    try:
        mode = _regular_mode(path)
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        refuse_to_replace_a_database(path)
        whole = content.encode() if isinstance(content, str) else content
        _write_and_rename(Path(os.path.realpath(path)), whole, mode)
    except OSError as error:
        raise StoreError(
            f"cannot write {what}{path}: {error.strerror or error}; {otherwise}"
        ) from error


def _write_and_rename(path: Path, content: bytes, mode: int | None) -> None:
    unfinished = Path(f"{path}.{os.getpid()}.unfinished")
    try:
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            unfinished.chmod(mode)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def read_file(path: Path) -> bytes:
    """The content of a regular file; raises OSError for anything else: reading a pipe would wait
    for a writer that may never come."""
    if _regular_mode(path) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path.read_bytes()


def refuse_special(path: Path) -> None:
    """Raise OSError where there is something at `path` that is no regular file, or a link that
    leads back to itself."""
    _regular_mode(path)


def _regular_mode(path: Path) -> int | None:
    """The permissions of a regular file; None where there is none. Raises OSError for a folder, a
    pipe, a device, a link to itself, and for `-`, which names no file elsewhere."""
    if path.parts[:1] == ("-",):
        raise OSError(errno.EINVAL, "'-' is no file here; give a file's name", str(path))
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):  # the latter is told by who opens it
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    return stat.S_IMODE(mode)
