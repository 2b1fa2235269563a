"""What was pulled, kept in a folder so that it outlives the service: artifacts by digest, and which
of them counts. Standard library only.

A slot is one operation, target, stage and build of one service. `current.json` names its artifact
and is replaced by one rename, so a reader sees the old one or the new one, whole.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from tftune.db.files import read_file, replace_file

KEPT = 4
"""Artifacts of a slot that stay: the current one, and those before it."""
_POINTER = "current.json"


@dataclass(frozen=True)
class Kept:
    """What a slot serves."""

    digest: str
    """SHA-256 of the file's bytes, which is its name."""
    etag: str
    """As the service sent it: what it is asked about next time."""
    signature: str
    """Base64, over the bytes; "" for none."""


def service_folder(cache: Path, url: str) -> Path:
    """The folder of one service: two of them never share what they answered."""
    return cache / sha256(url.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Slot:
    """A folder of artifacts of which one is current."""

    folder: Path

    @classmethod
    def of(cls, cache: Path, url: str, op: str, target: str, stage: str, build: str) -> Slot:
        """Raises ValueError for a name that no folder may have: names may come from outside."""
        parts = [op, target, stage, *([build] if build else [])]
        for part in parts:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}", part):
                raise ValueError(
                    f"{part!r:.80} names no operation, target, stage or build: letters, digits, "
                    "'.', '+', '_' and '-' alone, 64 at most"
                )
        return cls(service_folder(cache, url) / "__".join(parts))

    def path(self, kept: Kept) -> Path:
        return self.folder / f"{kept.digest}.json"

    def current(self) -> Kept | None:
        """What the slot serves; None where there is nothing, or where it was damaged: then it is
        pulled again."""
        try:
            kept = Kept(**json.loads(read_file(self.folder / _POINTER)))
            content = read_file(self.path(kept))
        except (OSError, ValueError, TypeError):
            return None
        return kept if sha256(content).hexdigest() == kept.digest else None

    def write(self, content: bytes) -> Path:
        """Keep an artifact that does not count yet; returns its path."""
        path = self.folder / f"{sha256(content).hexdigest()}.json"
        replace_file(path, content, what="the artifact ", make_folder=True)
        return path

    def swap(self, kept: Kept) -> None:
        """From now on this one counts, whoever reads; older ones go."""
        replace_file(self.folder / _POINTER, json.dumps(asdict(kept)), make_folder=True)
        files = [path for path in self.folder.glob("*.json") if path.name != _POINTER]
        files.sort(key=lambda path: (path != self.path(kept), -path.stat().st_mtime_ns))
        for path in files[KEPT:]:
            with suppress(OSError):  # another process has removed it
                path.unlink()
