"""The measured rows that come with a checkout: db/trials has a folder for each target, and in it
files named <op>-<date>[-<name>].jsonl.xz. An installed tftune has none, and works without."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tftune.db.evidence import counting
from tftune.db.store import read_rows
from tftune.db.trial import Run, Trial

FOLDER = Path(__file__).parent / "trials"
"""Where the folders of the targets are. Ask `files_of` and `targets`: a wheel does not have it."""


def files_of(op: str = "*", target: str = "*") -> list[Path]:
    """The files of an operation on a target, in a fixed order: none without a checkout."""
    return sorted(FOLDER.glob(f"{target}/{op}-*.jsonl*"))


def targets(op: str = "*") -> list[str]:
    """The targets with files of an operation, in a fixed order."""
    return sorted({path.parent.name for path in files_of(op)})


def read_files(paths: Iterable[Path]) -> tuple[list[Run], list[Trial]]:
    """The runs and the trials of several files, in their order."""
    runs, trials = list[Run](), list[Trial]()
    for path in paths:
        file_runs, rows = read_rows(path)
        runs += file_runs
        trials += rows
    return runs, trials


def read_trials(paths: Iterable[Path], *, every: bool = False) -> list[Trial]:
    """The trials of several files that count (`evidence.counting`), or every one of a usual
    call."""
    runs, trials = read_files(paths)
    return counting(trials, () if every else runs)
