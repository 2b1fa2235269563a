"""What was confirmed on this machine, kept on disk: a second start of a job times nothing.

One folder (`TFTUNE_CACHE`, else `$XDG_CACHE_HOME/tftune`, else `~/.cache/tftune`) holds two files
for each identity, that is for all that changes a time:

* `NAME.json`, the answers. It is replaced whole, so a killed process leaves the old one.
* `NAME.jsonl`, every row that was measured, hangs and wrong results included.

**Lineage.** Compiled graphs stay in torch's cache, and were made by these answers. Within one
lineage an answer never changes, so the lineage alone is the key of what was compiled. One process
at a time owns a lineage and adds to it; another one that starts meanwhile reads the answers, and
works under a lineage of its own that is not kept. A file that cannot be trusted ends its lineage.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from tftune.db.files import replace_file
from tftune.db.journal import set_aside_damage
from tftune.db.lock import StoreError
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.selection import Selection

logger = logging.getLogger(__name__)
SCHEMA = 1
VARIABLE = "TFTUNE_CACHE"
Place = tuple[str, Shape]
"""A mode and a shape."""


def folder() -> Path:
    """Where answers are kept for this user.

    >>> import os
    >>> os.environ["TFTUNE_CACHE"] = "/tmp/tftune-cache"
    >>> str(folder())
    '/tmp/tftune-cache'
    """
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "tftune"


@dataclass(frozen=True)
class Identity:
    """All that changes a time on this machine."""

    target: str
    build: Mapping[str, str]
    """Versions and variables, as `db.target.build` has them."""
    links: str
    """How the GPUs reach each other, as the driver's tool prints it; "" where it does not."""
    ranks: tuple[int, ...]
    """The global ranks of the group."""
    revisions: Mapping[str, str]
    """The revision of every fused and library variant that is installed, by `operation/variant`."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        own = {name: text for name, text in self.build.items() if name not in ("python", "tftune")}
        return {
            "target": self.target, "build": own, "links": self.links, "ranks": list(self.ranks),
            "revisions": dict(sorted(self.revisions.items())),
        }  # fmt: skip

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return f"{_stem(self.target)}-{_digest(self.to_dict())[:12]}"


def _stem(target: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in target)[:40]


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class View:
    """What every rank of a group knows of the memory of its first rank."""

    rows: Path
    lineage: str
    answers: Mapping[Place, Selection] = field(default_factory=dict)
    payload_bytes: int = 0
    """The largest payload that was ever asked for: the workspace of the next start."""

    def of(self, shapes: Iterable[Shape], mode: str) -> dict[Shape, Selection]:
        """The answers for those shapes that have one."""
        answers = {shape: self.answers.get((mode, shape)) for shape in shapes}
        return {shape: answer for shape, answer in answers.items() if answer is not None}


class Memory:
    """The memory of one identity in this process, on the first rank of a group."""

    _opened: ClassVar[dict[Path, Memory]] = {}

    def __init__(self, path: Path, identity: Identity) -> None:
        """Read what is there; `path`: without an ending. Raises nothing: what cannot be read or
        written is logged once, and a job goes on without it."""
        self._identity, self._path = identity, path
        self._lock = _owned(path.with_suffix(".lock"))
        self._view = replace(self._read(), rows=_writable(path.with_suffix(".jsonl")))
        if self._lock is None:
            self._view = replace(self._view, lineage=uuid4().hex)

    @classmethod
    def open(cls, identity: Identity) -> Memory:
        """The memory of an identity; the same object each time in one process."""
        path = folder() / identity.name
        if path not in cls._opened:
            cls._opened[path] = cls(path, identity)
        return cls._opened[path]

    @property
    def view(self) -> View:
        """What it holds now."""
        return self._view

    def keep(self, answers: Mapping[Place, Selection], payload_bytes: int = 0) -> None:
        """Add answers, on disk when this returns. One that is known already stays as it is. Raises
        StoreError where they cannot be written: then they must not be used under this lineage."""
        known, most = {**answers, **self._view.answers}, self._view.payload_bytes
        view = replace(self._view, answers=known, payload_bytes=max(payload_bytes, most))
        self._write(view)

    def renew(self, answers: Mapping[Place, Selection] | None = None) -> None:
        """Begin another lineage, with these answers changed: what was compiled before is not used
        by a later process. Raises StoreError as `keep` does."""
        changed = {**self._view.answers, **(answers or {})}
        self._write(replace(self._view, lineage=uuid4().hex, answers=changed))

    def _write(self, view: View) -> None:
        if self._lock is not None:
            replace_file(self._path.with_suffix(".json"), _document(self._identity, view))
        self._view = view

    def _read(self) -> View:
        path = self._path.with_suffix(".json")
        fresh = View(Path(), uuid4().hex)
        try:
            return read_kept(path)[1] if path.exists() else fresh
        except (OSError, StoreError) as error:
            _say(f"{error}; it is left out, and shapes are confirmed again")
            return fresh


def read_kept(path: Path) -> tuple[Identity, View]:
    """An identity and its answers, of a file; raises StoreError, naming it, where it cannot be
    trusted."""
    try:
        content = json.loads(path.read_bytes())
        digest = content.pop("sha256")
        if content["schema"] != SCHEMA or digest != _digest(content):
            raise ValueError("it was changed, or is of another version")
        answers = dict(map(_answer, content["answers"]))
        view = View(
            path.with_suffix(".jsonl"), content["lineage"], answers, content["payload_bytes"]
        )
        return Identity(**content["identity"]), view
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} holds no answers of this tftune ({error})") from error


def clear(path: Path) -> None:
    """Remove what an identity remembers; `path`: without an ending. What was compiled by its
    answers is not used again, since the next job begins another lineage. Raises StoreError where a
    running job owns it."""
    try:
        lock = _locked(path.with_suffix(".lock"))
    except BlockingIOError as error:
        raise StoreError(f"a running job uses {path}; end it, then clear") from error
    try:
        for ending in (".json", ".jsonl", ".jsonl.damaged"):
            path.with_suffix(ending).unlink(missing_ok=True)
    finally:
        os.close(lock)


def _document(identity: Identity, view: View) -> str:
    content = {
        "schema": SCHEMA,
        "identity": identity.to_dict(),
        "lineage": view.lineage,
        "payload_bytes": view.payload_bytes,
        "answers": [
            {"op": shape.op, "shape": str(shape), "mode": mode, **selection.to_dict()}
            for (mode, shape), selection in view.answers.items()
        ],
    }
    content = json.loads(json.dumps(content))
    return json.dumps(content | {"sha256": _digest(content)}, indent=1) + "\n"


def _answer(row: Mapping[str, Any]) -> tuple[Place, Selection]:
    shape = operation(row["op"]).shape.parse(row["shape"])
    config = operation(row["op"]).space.complete(Config.from_dict(row["config"]))
    interval = tuple(row["interval"]) if row["interval"] else None
    near = tuple(tuple(sizes) for sizes in row["near"])
    times = row["expected_us"], row["bsp_us"]
    selection = Selection(config, row["source"], row["reason"], *times, interval, near)
    return (row["mode"], shape), selection


def _owned(lock: Path) -> int | None:
    """A lock held as long as this process lives; None where another process has it, or the folder
    cannot be written."""
    try:
        return _locked(lock)
    except BlockingIOError:
        _say(f"another job holds {lock}; what this one confirms is not remembered")
    except OSError as error:  # read-only, or a file system without locks
        _say(f"cannot lock {lock}: {error.strerror}; what is confirmed is not remembered")
    return None


def _locked(path: Path) -> int:
    """The descriptor of a locked file; raises OSError, BlockingIOError where it is locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _writable(rows: Path) -> Path:
    """The file of rows, without lines that are none; in a temporary folder where its own cannot be
    written."""
    try:
        if not os.access(rows.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if count := set_aside_damage(rows):
            _say(f"{count} damaged lines of {rows} were moved to {rows}.damaged")
        return rows
    except (OSError, StoreError) as error:
        other = Path(tempfile.mkdtemp(prefix="tftune-")) / rows.name
        _say(f"rows go to {other}: {rows}: {error}")
        return other


def _say(sentence: str) -> None:
    logger.warning("%s", sentence)
