"""Rows to the service, in chunks that it takes once each.

A chunk is text: the runs of its trials, then the trials, as `tftune trials export` writes them. Its
digest is kept once the service has it, so that the same command goes on where it was stopped, and a
run that has ended since is sent again.
"""

from __future__ import annotations

import gzip
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from tftune.client.cache import service_folder
from tftune.client.http import Service, ServiceError
from tftune.db.row_files import row_lines
from tftune.db.trial import Run, Trial

CHUNK_ROWS = 500
"""Trials of one request: about 0.3 MB of text, 40 KB compressed."""


@dataclass(frozen=True)
class Pushed:
    """How far a push is."""

    rows: int
    """Trials that there are."""
    sent: int = 0
    """Trials that were sent now."""
    stored: int = 0
    """How many of those sent were new to the service."""
    known: int = 0
    """How many of those sent were there already."""
    skipped: int = 0
    """Trials of chunks that the service has had before."""


def push(
    service: Service,
    cache: Path,
    runs: Sequence[Run],
    trials: Sequence[Trial],
    *,
    again: bool = False,
    told: Callable[[Pushed], None] = lambda pushed: None,
) -> Pushed:
    """Send these trials and their runs; `told` hears after each chunk. `again`: also what the
    service has had before, as after it lost its database.

    Raises ServiceError where a chunk is refused or cannot be sent; the chunks before it are there.
    """
    acknowledged = service_folder(cache, service.url) / "pushed.txt"
    before = set() if again else _acknowledged(acknowledged)
    pushed = Pushed(len(trials))
    for count, content in chunks(runs, trials):
        name = sha256(content).hexdigest()
        if name in before:
            pushed = replace(pushed, skipped=pushed.skipped + count)
        else:
            stored, known = _sent(service, content)
            _acknowledge(acknowledged, name)
            pushed = replace(
                pushed,
                sent=pushed.sent + count,
                stored=pushed.stored + stored,
                known=pushed.known + known,
            )
        told(pushed)
    return pushed


def chunks(runs: Sequence[Run], trials: Sequence[Trial]) -> Iterator[tuple[int, bytes]]:
    """How many trials each chunk has, and its text. Each stands alone: it begins with the runs that
    its trials name. The same rows make the same chunks, and rows that come later change the last
    one only."""
    by_id = {run.id: run for run in runs}
    for start in range(0, len(trials), CHUNK_ROWS):
        part = trials[start : start + CHUNK_ROWS]
        named = [by_id[name] for name in dict.fromkeys(trial.run for trial in part)]
        yield len(part), "".join(row_lines(named, part)).encode()


def _sent(service: Service, content: bytes) -> tuple[int, int]:
    """How many trials of a chunk were new to the service, and how many it had."""
    headers = {
        "Content-Type": "application/x-ndjson",
        "Content-Encoding": "gzip",
        "X-Tftune-Node": node_name(),
    }
    body = gzip.compress(content, mtime=0)
    answer = service.post("v1", "rows", body=body, headers=headers).json()
    match answer:
        case {"stored": int(stored), "known": int(known)}:
            return stored, known
    raise ServiceError(
        f"{service.url} answered {str(answer)[:100]!r} to rows, without how many it stored and "
        "knew; is it tftune's?"
    )


def node_name() -> str:
    """The name of this machine, as a header may hold it."""
    name = platform.node()
    return "".join(c for c in name if c.isascii() and (c.isalnum() or c in "._-"))[:63] or "unnamed"


def _acknowledged(path: Path) -> set[str]:
    """The digests of chunks that a service has, a line each. A last line that was cut off is no
    digest, and its chunk is sent again."""
    try:
        return {line for line in path.read_text().splitlines() if len(line) == 64}
    except FileNotFoundError:
        return set()


def _acknowledge(path: Path, digest: str) -> None:
    """Written in one piece: two pushes at once may append to one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.write(f"{digest}\n")
