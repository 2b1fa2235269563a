"""What the command line prints: JSON and tables on stdout; progress, notes and errors on stderr, so
that a pipe gets results only."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from tftune.db.trial import Measurement, Trial
from tftune.report.tables import BENCH_WORDS

WIDE = 220
"""Columns of a table that goes to a file or a pipe, where nothing may be cut off."""


def print_json(value: Any) -> None:
    """The only thing on stdout of a command with --json."""
    print(json.dumps(value, indent=2))


def note(sentence: str) -> None:
    """Something that a person should know and a program need not."""
    print(sentence, file=sys.stderr, flush=True)


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table under its title, the first column to the left and the others to the right; nothing is
    cut off outside a terminal."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    console.width = max(console.width, WIDE) if not console.is_terminal else console.width
    console.print(table)


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(200), duration(7300)
    ('42 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60} s"
        if whole < 3600
        else f"{whole // 3600} h {whole % 3600 // 60} min"
    )


class Progress:
    """How far a search is, on stderr: a bar with the time left on a terminal, else a plain line for
    every `every` trials.

    The time left is the mean of the trials so far times those to come, at most what the budget
    leaves.
    """

    def __init__(
        self,
        budget_s: float | None = None,
        every: int = 50,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget_s = budget_s
        self._every = every
        self._clock = clock
        self._start = clock()
        self._done = self._total = 0
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]} left"),
        )
        self._bar = Bar(*columns, console=console) if console.is_terminal else None

    def start(self, total: int) -> None:
        """About this many trials are to come."""
        self._start, self._done, self._total = self._clock(), 0, total
        if self._bar:
            self._bar.add_task("", total=total, left=self.left())
            self._bar.start()
        else:
            note(f"{total} trials to come")

    def advance(self, trial: Trial) -> None:
        """This trial is committed. More than were announced move the total along."""
        self._done += 1
        self._total = max(self._total, self._done)
        if self._bar:
            task = self._bar.task_ids[-1]
            self._bar.update(
                task,
                completed=self._done,
                total=self._total,
                description=_short(trial),
                left=self.left(),
            )
        elif self._done % self._every == 0 or self._done == self._total:
            note(f"trial {self._done} of {self._total}, {self.left()} left: {_short(trial)}")

    def finish(self) -> None:
        """No more trials come."""
        if self._bar:
            self._bar.stop()

    def left(self) -> str:
        """The time left in words; `?` before the first trial."""
        if not self._done:
            return "?"
        elapsed = self._clock() - self._start
        seconds = elapsed / self._done * (self._total - self._done)
        return duration(
            max(0.0, min(seconds, self._budget_s - elapsed)) if self._budget_s else seconds
        )


def _short(trial: Trial) -> str:
    """One trial in a few words, with the word of its bench, since a predicted time is no
    measurement."""
    outcome = trial.outcome
    result = (
        f"{outcome.median_us:,.1f} us {BENCH_WORDS[trial.bench]}"
        if isinstance(outcome, Measurement)
        else outcome.kind
    )
    return f"{trial.shape} {trial.mode} {trial.config.variant} {result}"
