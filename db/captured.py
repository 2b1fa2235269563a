"""Which shapes a process ran, and how often: what a capture writes and a search reads. Standard
library only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tftune.db.files import read_file
from tftune.db.row_checks import shown
from tftune.db.trial import MODES, shape_of
from tftune.kernels.core.shape import Shape, check_word

FORM = 1
"""Version of the file's form."""
COUNTS = ("calls", "replays", "selections")


@dataclass(frozen=True)
class Count:
    """How often one shape was run in one mode.

    >>> from tftune.kernels.all_gather_gemm import AllGatherGemm
    >>> count = Count(AllGatherGemm(64, 512, 1024, 2), "graph", calls=3, replays=100)
    >>> count.runs, count.basis
    (103, 'replays')
    """

    shape: Shape
    mode: str
    calls: int = 0
    """Calls of `tftune.ops`, outside a capture of a graph that is counted."""
    replays: int = 0
    """Inside counted graphs: replays times the calls that the graph captured."""
    selections: int = 0
    """Calls of `tftune.select_kernel`, by code that launches by itself."""

    @property
    def runs(self) -> int:
        """How often it ran at least, as far as was seen."""
        return self.calls + self.replays or self.selections

    @property
    def basis(self) -> str:
        """What `runs` rests on. Graphs that nobody counted are missing from "calls" of mode graph,
        and from "selections"."""
        return "replays" if self.replays else "calls" if self.calls else "selections"

    def to_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in COUNTS}
        return {"op": self.shape.op, "shape": str(self.shape), "mode": self.mode} | counts

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Count:
        """Raises KeyError or ValueError where a field is not what it must be."""
        for name in COUNTS:
            if type(row[name]) is not int or row[name] < 0:
                raise ValueError(f"{name}={shown(row[name])} must be an integer of at least 0")
        for name in ("op", "shape", "mode"):
            if not isinstance(row[name], str):
                raise ValueError(f"{name}={shown(row[name])} must be text")
        check_word("mode", row["mode"], MODES)
        counts = {name: row[name] for name in COUNTS}
        return cls(shape_of(row["op"], row["shape"]), row["mode"], **counts)


def merged(counts: Iterable[Count]) -> list[Count]:
    """One count for each shape and mode: of several processes, the sum."""
    totals: dict[tuple[Shape, str], Count] = {}
    for count in counts:
        place = count.shape, count.mode
        before = totals.get(place, Count(*place))
        sums = {name: getattr(before, name) + getattr(count, name) for name in COUNTS}
        totals[place] = Count(*place, **sums)
    return list(totals.values())


def files_at(path: Path) -> list[Path]:
    """The captures that a name stands for: the file, and those of the processes that were told it
    by TFTUNE_CAPTURE. Raises ValueError where there is none."""
    beside = sorted(path.parent.glob(f"{path.stem}.*-*-*{path.suffix}"))
    if files := [*([path] if path.is_file() else []), *beside]:
        return files
    raise ValueError(
        f"there is no capture {path}; TFTUNE_CAPTURE={path} or tftune.capture makes one of a "
        "process that serves"
    )


@dataclass(frozen=True)
class Capture:
    """What one process ran."""

    id: str
    """The process's name: the same capture, read again later, has counted on. "" where the file
    names none."""
    counts: tuple[Count, ...]


def read_captures(paths: Iterable[Path]) -> list[Count]:
    """What all processes of these captures ran; raises ValueError naming the file that is none."""
    return merged(count for capture in captures(paths) for count in capture.counts)


def captures(paths: Iterable[Path]) -> list[Capture]:
    """The captures of all processes, apart; raises ValueError naming the file that is none."""
    return [_read(file) for path in paths for file in files_at(path)]


def _read(path: Path) -> Capture:
    try:
        document = json.loads(read_file(path))
        if document["capture"] != FORM:
            raise ValueError(f"it has form {document['capture']}, and this tftune reads {FORM}")
        counts = tuple(Count.from_dict(row) for row in document["shapes"])
        process = document.get("process")
        parts = [str(process[name]) for name in ("host", "pid", "began")] if process else []
    except KeyError as error:
        raise ValueError(f"{path} is no capture: it lacks {error}") from error
    except (OSError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no capture: {error}") from error
    return Capture(sha256("/".join(parts).encode()).hexdigest()[:32] if parts else "", counts)
