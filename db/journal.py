"""The rows that a serving process leaves behind, and the launch during which it ended.

`tftune.warm_up` runs in processes that nobody supervises: a spinning kernel ends with its process.
So rows are appended line by line to a file that `tftune trials import` takes, and a journal beside
it names each launch before it happens. Standard library only: a serving container has no SQLite
tools.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from tftune.db.files import read_file, replace_file
from tftune.db.lock import StoreError, refuse_to_replace_a_database
from tftune.db.row_checks import shown
from tftune.db.row_files import row_lines, row_of
from tftune.db.target import minor
from tftune.db.trial import Failure, Run, Trial
from tftune.kernels.core.space import Config

EXCLUDING = ("hang", "crash", "wrong")
"""Kinds of failure after which a config is not launched again in a serving process."""
_JOURNAL, _UNFINISHED = "launching", "new"
Excluded = frozenset[tuple[str, Config, str]]
"""Operation, config and revision of each config that is not launched again."""


def append(path: Path, runs: Iterable[Run], trials: Iterable[Trial]) -> None:
    """Add rows to the end of a file, on disk when this returns.

    A line that a killed process left unfinished is removed first, so that all lines are whole.
    Raises StoreError where the file cannot be written, or is a database.
    """
    refuse_to_replace_a_database(path)
    text = "".join(row_lines(runs, trials)).encode()
    try:
        with open(path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _cut_unfinished_line(file)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot write {path}: {error.strerror}; name a file that can be with rows=")


def _cut_unfinished_line(file: IO[bytes]) -> None:
    if not file.seek(0, os.SEEK_END):
        return
    file.seek(-1, os.SEEK_END)
    if file.read() != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _whole_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and content of each line that was finished; nothing where there is no file.

    Raises StoreError for a line that holds no JSON object.
    """
    try:
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    except OSError as error:
        why = f"cannot read {path}: {error.strerror}"
        raise StoreError(f"{why}; name another file with rows=") from error
    for number, text in enumerate(lines, start=1):
        try:
            row = json.loads(text)
        except ValueError as error:
            raise _no_row(path, number, error) from error
        if not isinstance(row, dict):
            raise _no_row(path, number, f"it is {shown(row)}")
        yield number, row


def _no_row(path: Path, number: int, why: object) -> StoreError:
    return StoreError(f"line {number} of {path} is no row ({why}); delete that line, start again")


def excluded(path: Path, target: str, triton: str) -> Excluded:
    """What must not be launched again on this target, with this minor version of Triton.

    Raises StoreError naming the line that is no row. The exclusion ends with the revision: a
    kernel that was changed is another one.
    """
    versions: dict[str, str] = {}
    kernels = set()
    for number, row in _whole_lines(path):
        try:
            if "run" in row:
                run = Run.from_dict(row["run"])
                versions[run.id] = run.build.get("triton", "")
            elif row["trial"].get("failure") in EXCLUDING:
                trial = Trial.from_dict(row["trial"])
                here = trial.target, minor(versions.get(trial.run, ""))
                if here == (target, minor(triton)):
                    kernels.add((trial.op, trial.config, trial.revision))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _no_row(path, number, error) from error
    return frozenset(kernels)


def set_aside_damage(path: Path) -> int:
    """Move the lines that are no rows into `PATH.damaged`, and keep the others; returns how many.

    For a file that nobody asked for by name: what can be read of it must not be lost to one line.
    Raises StoreError where the file cannot be read or written.
    """
    rows = _rows(path)
    damaged = [text for text, row in rows if row is None]
    if damaged:
        with open(f"{path}.damaged", "ab") as file:
            file.write(b"".join(text + b"\n" for text in damaged))
        replace_file(path, b"".join(text + b"\n" for text, row in rows if row is not None))
    return len(damaged)


def failed(path: Path) -> list[Trial]:
    """The rows of configs that are not launched again; lines that are no rows are passed over."""
    trials = [row for _, row in _rows(path) if isinstance(row, Trial)]
    failures = [(row, row.outcome) for row in trials if isinstance(row.outcome, Failure)]
    return [row for row, failure in failures if failure.kind in EXCLUDING]


def _rows(path: Path) -> list[tuple[bytes, Run | Trial | None]]:
    """Each line that was finished, and its row; None where it is no row."""
    lines = read_file(path).split(b"\n")[:-1] if path.exists() else []
    return [(text, _row(text)) for text in lines]


def _row(text: bytes) -> Run | Trial | None:
    try:
        return row_of(text)
    except (KeyError, RecursionError, ValueError):
        return None


class Journal:
    """What becomes a row if this process ends now; its file is locked as long as the process lives.

    One for each warm-up, beside its rows; `recover` reads those whose process is gone.
    """

    def __init__(self, rows: Path, run: Run) -> None:
        """Raises StoreError where the folder cannot be written."""
        self._guard, self._in_flight = threading.Lock(), False
        name = f"{rows.name}.{uuid4().hex[:12]}"
        self._path = rows.with_name(f"{name}.{_JOURNAL}")
        unfinished = rows.with_name(f"{name}.{_UNFINISHED}")
        try:
            self._file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._write("".join(row_lines([run], ())))
            os.rename(unfinished, self._path)  # nobody sees it unlocked
        except OSError as error:
            raise _unwritable(rows, error) from error

    def expect(self, failures: Sequence[Trial]) -> None:
        """If the process ends from now on, these are its rows; () where nothing is in flight."""
        rows = [trial.to_dict() for trial in failures]
        with self._guard:
            self._write(json.dumps({"trials": rows}, separators=(",", ":")) + "\n")
            self._in_flight = bool(rows)

    def _write(self, text: str) -> None:
        os.write(self._file, text.encode())
        os.fsync(self._file)

    def close(self) -> None:
        """Remove it; what was in flight, as after an exception, is left for `recover`."""
        if not self._in_flight:
            self._path.unlink(missing_ok=True)
        os.close(self._file)


class NoJournal:
    """The journal of a rank that keeps none: rank 0 writes for all."""

    def expect(self, failures: Sequence[Trial]) -> None:
        """Nothing to write."""

    def close(self) -> None:
        """Nothing to remove."""


def recover(rows: Path) -> list[Trial]:
    """Turn the journals of processes that ended in a launch into rows; returns the new ones.

    A journal whose process lives is passed over. Raises StoreError where `rows` cannot be written.
    """
    recovered: list[Trial] = []
    for path in sorted(rows.parent.glob(f"{rows.name}.*.{_JOURNAL}")):
        try:
            with open(path, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                run, trials = _last_words(path)
                if trials:
                    append(rows, [run], trials)
                path.unlink()
                recovered += trials
        except (BlockingIOError, FileNotFoundError):  # in use, or another process took it
            continue
        except OSError as error:
            raise _unwritable(rows, error) from error
    return recovered


def _last_words(path: Path) -> tuple[Run, list[Trial]]:
    """The run of a journal, and what was in flight at its end."""
    (_, first), *others = _whole_lines(path)
    last = others[-1][1]["trials"] if others else []
    return Run.from_dict(first["run"]), [Trial.from_dict(row) for row in last]
