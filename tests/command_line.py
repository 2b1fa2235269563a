"""Command lines that tests run inside their own process, and what a refusal looks like."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

OP = "all_gather_gemm"
SMALL, LARGE = "m=64,n=512,k=1024,world=2", "m=512,n=512,k=1024,world=2"
SEARCH = (
    f"search {OP} --shapes {SMALL};{LARGE} --on model --target mi300x8 --mode graph --effort "
    "quick --variant push"
)


ENDED = "-- ended --\n"
IN_TURN = f"""
import json, sys
from tftune.cli import app
for number, words in enumerate(json.loads(sys.argv[1])):
    try:
        if number:
            print({ENDED!r}, end="")
        app.main(words)
    except SystemExit as ended:
        if ended.code:
            raise
"""
"""A program for `python -c`: commands, given as JSON, in one process, since each start takes longer
than most of them. ENDED stands between what they print."""


class Ran(tuple[int, str, str]):
    """Exit code, stdout and stderr of one command."""

    code = property(lambda self: self[0])
    out = property(lambda self: self[1])
    err = property(lambda self: self[2])


Tftune = Callable[[str], Ran]


def refused(ran: Ran, *parts: str) -> bool:
    """Exit code 2, nothing on stdout, and one line on stderr that starts with `error:` and holds
    these parts."""
    (last,) = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert (ran.code, ran.out) == (2, "") and "Traceback" not in ran.err
    assert [part for part in parts if part not in last] == []
    return True


def run(line: str) -> int:
    """The exit code of a command of this process."""
    from tftune.cli import app as cli

    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    return int(ended.value.code or 0)


def hear_interrupts() -> None:
    """A shell starts what it puts into the background with SIGINT ignored, and children inherit
    that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def programs(command: Any = None, path: str = "tftune") -> Iterator[tuple[str, Any]]:
    """The program, and every group and command below it, each by what a user types."""
    import typer

    from tftune.cli.app import app

    command = command or typer.main.get_command(app)
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from programs(child, f"{path} {name}")
