"""`tftune tune`: everything that a new node needs, one command after another, each of which can be
given again."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tftune.db.calibration_file import default_path
from tftune.db.target import Target

TFTUNE = (sys.executable, "-m", "tftune")
SEARCH_SHARE, MATRIX_SHARE = 0.6, 0.35
"""Shares of the budget; calibrating, training and reporting take a few minutes whatever the
budget."""
POOL = 60
INTERRUPTED = 130
"""What a command that Ctrl-C stopped ends with."""


@dataclass(frozen=True)
class Step:
    """One command, what it is for, and what to look at where it fails."""

    meaning: str
    arguments: tuple[str, ...]
    if_it_fails: str
    needed: bool = False
    """Whether nothing can follow where it fails; else an artifact is made of what there is."""

    def __str__(self) -> str:
        return shlex.join(("tftune", *self.arguments))


def steps(op: str, target: Target, shapes: str, budget_s: float, db: Path) -> Iterator[Step]:
    """The commands for a target, calibration left out where its file is there."""
    chip, artifact = default_path(target), Path(f"{op}__{target.name}.json")
    search = ("search", op, "--shapes", shapes, "--db", str(db), "--chip", str(chip))
    missing = "it names what is missing; docs/mi300x.md and docs/machines.md say what to do"
    yield Step("what works here", ("doctor",), missing, needed=True)
    if not chip.exists():
        yield Step(
            "the machine's constants, under two minutes",
            ("calibrate", "--out", str(chip)),
            "no world of ranks started: see that no process holds a GPU and that Iris is installed",
            needed=True,
        )
    yield Step(
        "search, the model's best first",
        (*search, "--pool", str(POOL), "--budget", f"{max(1, int(SEARCH_SHARE * budget_s))}s"),
        "what was measured is stored: give the same command again",
    )
    yield Step(
        "few configs on every shape",
        (*search, "--portfolio", "--budget", f"{max(1, int(MATRIX_SHARE * budget_s))}s"),
        "pairs are missing: give the same command again, with more --budget",
    )
    rows = ("--target", target.name, "--bench", "node", "--db", str(db))
    yield Step(
        "a tree",
        ("train", op, *rows),
        "too few rows to judge: give the same command again, with more --budget",
    )
    yield Step(
        "the artifact",
        ("export", op, *rows, "--out", str(artifact)),
        "no row of BSP could be measured: the output above says why",
        needed=True,
    )
    yield Step(
        "tables and plots",
        ("report", "--op", op, "--target", target.name, "--db", str(db)),
        "the rows are sound; only the report is not",
    )


def run(
    found: Iterator[Step],
    call: Callable[..., int] = lambda words: subprocess.run((*TFTUNE, *words)).returncode,
) -> None:
    """Run the steps in turn; the artifact is made of whatever the searches left, Ctrl-C included.
    Raises ValueError naming the step that failed where nothing can follow it, and what to do."""
    stopped = False
    for step in found:
        if stopped and not step.needed:
            continue
        print(f"\n== {step.meaning}: {step}", flush=True)
        try:
            code = call(step.arguments)
        except KeyboardInterrupt:
            code = INTERRUPTED
        stopped = stopped or code == INTERRUPTED
        if stopped and code and step.needed:
            break
        if code and step.needed:
            raise ValueError(
                f"`{step}` ended with {code}; {step.if_it_fails}; then give `tftune tune` again: "
                "it goes on from here"
            )
        if code:
            print(f"`{step}` ended with {code}; {step.if_it_fails}", file=sys.stderr, flush=True)
    if stopped:
        raise KeyboardInterrupt
