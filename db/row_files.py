"""Rows as JSON lines: files that can be committed and replayed, compressed where their name ends in
.xz, .gz or .bz2."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from tftune.db.files import replace_file
from tftune.db.lock import StoreError
from tftune.db.row_checks import shown
from tftune.db.trial import Run, Trial, shape_of
from tftune.kernels.core import chips
from tftune.kernels.core.shape import Shape

PACKED: dict[str, tuple[bytes, Any]] = {
    ".xz": (b"\xfd7zXZ\x00", lzma),
    ".gz": (b"\x1f\x8b", gzip),
    ".bz2": (b"BZh", bz2),
}
"""How a name ends, how such a file begins, and what packs it. A file is written by its name, and
read by its first bytes, so that one that was renamed reads, too."""
HEAD = 100
"""Bytes in which a file that is no text shows it."""


def read_rows(path: Path) -> tuple[list[Run], list[Trial]]:
    """The runs and trials of a JSONL file, in its order; empty lines are passed over. The GPUs that
    its runs describe are known to this process from here on.

    Raises StoreError naming the file and the line where a line is no whole row (the last one, after
    a crash while writing).
    """
    runs: list[Run] = []
    trials: list[Trial] = []
    for number, line in _lines(path):
        row = _row_of_line(path, number, line)
        runs.append(row) if isinstance(row, Run) else trials.append(row)
    return learned(path, runs), trials


def read_trials_of(
    paths: Iterable[Path], choose: Callable[[Mapping[Shape, int]], Container[Shape]]
) -> list[Trial]:
    """The usual trials of the shapes that `choose` picks, given how many rows each has. The others
    are not taken apart: of ninety thousand that takes a quarter of a minute."""
    by_shape: dict[Shape, list[tuple[Path, int, bytes]]] = {}
    for path in paths:
        for number, line in _lines(path):
            if shape := _shape_of_line(path, number, line):
                by_shape.setdefault(shape, []).append((path, number, line))
    chosen = choose({shape: len(lines) for shape, lines in by_shape.items()})
    rows = (
        _row_of_line(*line)
        for shape, lines in by_shape.items()
        if shape in chosen
        for line in lines
    )
    return [row for row in rows if isinstance(row, Trial) and not row.condition]


def _shape_of_line(path: Path, number: int, line: bytes) -> Shape | None:
    """The shape of a trial's line; None for other lines."""
    if not (match := _SHAPE.search(line)):
        return None
    try:
        return shape_of(match["op"].decode(), match["shape"].decode())
    except (KeyError, ValueError):
        _row_of_line(path, number, line)  # says where and why
        raise


_SHAPE = re.compile(rb'"op":"(?P<op>[^"]+)".*"shape":"(?P<shape>[^"]+)"')
"""In a line as `write_rows` writes it, whose keys are sorted."""


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file of rows that are not empty, with their numbers."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    content = _unpacked(path, content)
    if b"\0" in content[:HEAD]:
        raise StoreError(
            f"{path} holds no lines of JSON; give rows as .jsonl, plain or packed as "
            f"{', '.join(PACKED)}"
        )
    lines = content.split(b"\n")
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _unpacked(path: Path, content: bytes) -> bytes:
    """The content of a file that one of PACKED made, by its first bytes; any other as it is, but
    for one that is neither text nor what its name says."""
    for suffix, (magic, packer) in PACKED.items():
        named = Path(path).suffix == suffix and not content.lstrip().startswith(b"{")
        if content.startswith(magic) or (content and named):
            try:
                return bytes(packer.decompress(content))
            except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise StoreError(
                    f"{path} is no whole {suffix} file ({error}); get it again, or give the rows "
                    "as .jsonl"
                ) from error
    return content


def learned(path: Path | str, runs: list[Run]) -> list[Run]:
    """The runs, once this process knows the GPUs that they describe."""
    for run in runs:
        if run.described is not None:
            try:
                chips.learn(run.described)
            except ValueError as error:
                raise StoreError(f"run {run.id} of {path} is of another GPU: {error}") from error
    return runs


def row_of(line: bytes) -> Run | Trial:
    """The row of one line; raises KeyError, RecursionError or ValueError where it is no whole
    row."""
    match parsed := json.loads(line):
        case {"trial": dict(row)} if len(parsed) == 1:
            return Trial.from_dict(row)
        case {"run": dict(row)} if len(parsed) == 1:
            return Run.from_dict(row)
    raise ValueError(f"a row is one object named 'run' or 'trial', and this is {shown(parsed)}")


def _row_of_line(path: Path, number: int, line: bytes) -> Run | Trial:
    try:
        return row_of(line)
    except (KeyError, RecursionError, ValueError) as error:
        raise StoreError(
            f"line {number} of {path} is no whole row ({reason(error)}); delete that line, then "
            "run the command again"
        ) from error


def write_rows(path: Path, runs: Iterable[Run], trials: Iterable[Trial]) -> None:
    """Write runs, then trials, one JSON line each with sorted keys; compressed where the name ends
    as in PACKED. The file is replaced whole or stays as it was; a database stays."""
    content = "".join(row_lines(runs, trials)).encode()
    packer = PACKED.get(Path(path).suffix, (b"", None))[1]
    replace_file(path, packer.compress(content) if packer else content)


def row_lines(runs: Iterable[Run], trials: Iterable[Trial]) -> Iterator[str]:
    """The lines of runs, then of trials: what a file of rows holds, and what a service takes."""
    rows = chain(
        ({"run": dataclasses.asdict(run)} for run in runs),
        ({"trial": trial.to_dict()} for trial in trials),
    )
    for row in rows:
        yield json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n"


def reason(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)
