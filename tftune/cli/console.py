"""What the command line prints: JSON and tables on stdout; progress, notes and errors on stderr, so
that a pipe gets results only."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

from tftune.db.trial import Measurement, Trial


def print_json(value: Any) -> None:
    """The only thing on stdout of a command with --json."""
    print(json.dumps(value, indent=2))


def note(sentence: str) -> None:
    """Something that a person should know and a program need not."""
    print(printable(sentence), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """The text as it is, but for control characters, which a failure's text may hold.

    >>> printable("it failed:\\x1b[31m no")
    'it failed:\\\\x1b[31m no'
    """
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A title, the names of columns, and rows of cells."""


def print_table(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    narrow: Sequence[Table] = (),
) -> bool:
    """A table under its title, the first column to the left and the others to the right. No cell is
    ever cut. Returns whether it was this table: on a terminal that is too narrow for it the tables
    of `narrow` take its place, where there are any.

    Else, on a terminal too narrow, what all rows have in common is said once, above them. Where
    that does not suffice, each row is a block of lines.
    """
    from rich.console import Console

    rows = [[printable(cell) for cell in row] for row in rows]
    console = Console(markup=False, highlight=False, soft_wrap=True)
    room = console.width if console.is_terminal else None
    console.print(title, style="bold")
    if narrow and room and _too_wide(head, rows, room):
        for each in narrow:
            print_table(*each)
        return False
    if room and _too_wide(head, rows, room) and len(rows) > 1:
        head, rows, common = _without_common(head, rows)
        if common:
            names, cells = zip(*common, strict=True)
            console.print("in every row:", _pairs(names, cells, room), sep="\n")
    if room and _too_wide(head, rows, room):
        for first, *others in rows:
            console.print(first, _pairs(head[1:], others, room), sep="\n")
        return True
    widths = _widths(head, rows)
    console.print(_line(head, widths), style="dim")
    for row in rows:
        console.print(_line(row, widths))
    return True


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(head, *rows, strict=True)]


def _too_wide(head: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> bool:
    return len(_line(head, _widths(head, rows))) > room


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)])


def _without_common(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]], list[tuple[str, str]]]:
    """The table without the columns, after the first, that say the same in every row; and the names
    and cells of these."""
    columns = [[name, *cells] for name, *cells in zip(head, *rows, strict=True)]
    kept = [cells for place, cells in enumerate(columns) if not place or len({*cells[1:]}) > 1]
    common = [(name, cells[0]) for name, *cells in columns[1:] if len({*cells}) == 1]
    head, *rows = map(list, zip(*kept, strict=True))
    return head, rows, common


def _pairs(names: Sequence[str], cells: Sequence[str], room: int) -> str:
    """Each cell after its column's name, indented; lines end between two pairs."""
    pairs = (f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
    return fill(
        "   ".join(pair.replace(" ", UNBROKEN) for pair in pairs),
        room,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(UNBROKEN, " ")


UNBROKEN = "\N{NO-BREAK SPACE}"


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(200), duration(7300)
    ('42 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


KNOWN_FROM, KNOWN_S = 0.1, 60.0
"""The mean of the trials so far says something of those to come from this share of them on, or
after so many seconds: the first ones wait for imports, compilers and a world of ranks."""
SILENT_S = 10.0
"""Outside a terminal, what takes a while is named where nothing was printed for so long."""


class Progress:
    """How far a search is, on stderr: a bar with the time left on a terminal, else a plain line for
    every `every` trials.

    The time left is the mean of a stage's trials so far, once there are enough of them, else of the
    stage before, times all that are to come; at most what the budget leaves.
    """

    def __init__(
        self,
        budget_s: float | None = None,
        every: int = 50,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        self._budget_s = budget_s
        self._every = every
        self._clock = clock
        self._began = self._start = self._spoke = clock()
        self._done = self._before = 0
        self._total: int | None = None
        self._mean_s: float | None = None
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = Bar(*columns, console=console) if console.is_terminal else None

    def start(self, total: int | None, stage: str = "") -> None:
        """A stage begins, with so many trials to come, in it and in those behind it; None where
        nobody counted them. One without a name begins anew."""
        self._mean_s = self._stage_mean_s() if stage else None
        self._done = self._before = self._done if stage else 0
        self._start, self._total = self._clock(), None if total is None else self._done + total
        if self._bar:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            left = self._left_words()
            self._bar.add_task(stage, total=self._total, completed=self._done, left=left)
            self._bar.start()
        elif total is not None:
            self._note(f"{total:,} {stage}{' ' * bool(stage)}trials to come")

    def doing(self, what: str) -> None:
        """This takes a while, and no trial comes meanwhile."""
        if self._bar:
            self._bar.update(self._bar.task_ids[-1], description=what, left=self._left_words())
        elif self._clock() - self._spoke >= SILENT_S:
            self._note(what)

    def advance(self, trial: Trial) -> None:
        """This trial is committed. More than were announced move the total along."""
        self._done += 1
        if self._total is not None:
            self._total = max(self._total, self._done)
        if self._bar:
            self._bar.update(
                self._bar.task_ids[-1], completed=self._done, total=self._total,
                description=_short(trial), left=self._left_words(),
            )  # fmt: skip
        elif self._done % self._every == 0 or self._done == self._total:
            of = "" if self._total is None else f" of {self._total:,}"
            left = f", {words}" if (words := self._left_words()) else ""
            self._note(f"trial {self._done:,}{of}{left}: {_short(trial)}")

    def finish(self) -> None:
        """No more trials come."""
        if self._bar:
            self._bar.stop()

    def left_s(self) -> float | None:
        """The seconds left; None while nothing is known of them."""
        if self._total is None:
            return None
        few = self._done - self._before < KNOWN_FROM * (self._total - self._before)
        early = few and self._clock() - self._start < KNOWN_S
        mean_s = self._mean_s if early else self._stage_mean_s()
        return None if mean_s is None else mean_s * (self._total - self._done)

    def _stage_mean_s(self) -> float | None:
        """Seconds of a trial of this stage; None before the first."""
        count = self._done - self._before
        return (self._clock() - self._start) / count if count else None

    def _left_words(self) -> str:
        """The time left; "" where neither the trials nor a budget say it. What is measured whatever
        the budget says is still to come where it is spent."""
        estimate = self.left_s()
        if self._budget_s is not None:
            budget = max(0.0, self._budget_s - (self._clock() - self._began))
            if not budget:
                return "the budget is spent"
            if estimate is None or estimate > budget:
                return f"at most {duration(budget)} left"
        return "" if estimate is None else f"{duration(estimate)} left"

    def _note(self, sentence: str) -> None:
        self._spoke = self._clock()
        note(sentence)


def _short(trial: Trial) -> str:
    """One trial in a few words, with the word of its bench, since a predicted time is no
    measurement."""
    from tftune.report.tables import BENCH_WORDS  # with all that artifacts are

    outcome = trial.outcome
    if isinstance(outcome, Measurement):
        result = f"{outcome.median_us:,.1f} us {BENCH_WORDS[trial.bench]}"
    else:
        result = outcome.kind
    return f"{trial.shape} {trial.mode} {trial.config.variant} {result}"
