"""Measure the operations on this GPU node into one database, within a wall-clock budget. The same
command goes on where it stopped.

usage: python benchmarks/node.py node.db --world 8 --seconds 1500 [--pool 120] [--parts paper
layouts models ...] [--rivals FOLDER] [--show]

It runs one `tftune search` for each world and part, and prints each command before it runs; --show
prints them and runs nothing. What a part leaves of its time goes to the parts after it; a part that
still runs when all the time is over is stopped, as Ctrl-C stops it: what it measured is stored.
--rivals then measures the winners once more beside other libraries' operators, in the same rounds.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import launch

TFTUNE = (sys.executable, "-m", "tftune")
RESERVE_S = 10
"""Kept free of every search's budget: its processes start and end, and BSP and the defaults of
every shape are measured whatever the budget says."""
RIVALS_S = 120
"""For other libraries, of each world, where they are asked for."""
STOP_S = 60
"""How long a stopped search may take to end before it is killed."""


@dataclass(frozen=True)
class Part:
    """One search: its shapes, its share of the time (of the parts asked for), and its share of the
    pool of configs."""

    shapes: str
    """As in `tftune search --shapes`, the world, or a rank's tokens of the context, to be filled
    in."""
    share: int
    pool: float
    """0: the search has a pool of its own."""
    meaning: str
    options: tuple[str, ...] = ()
    op: str = "all_gather_gemm"

    def at(self, world: int) -> str:
        """Its shapes on so many ranks."""
        return self.shapes.format(world=world, tokens=CONTEXT // world)


CONTEXT = 65_536
"""Tokens of the context that strong scaling splits over more and more ranks."""
PARTS = {
    "paper": Part("paper:world={world}", 13, 1.0,
        "the tables of docs/results.md: 14 shapes, fp16, A sharded along K"),
    "layouts": Part(
        "paper:world={world},shard=m,m=16+128+1024+8192;"
        "paper:world={world},dtype=bf16,m=16+128+1024+8192;"
        "m=16,n=3584,k=8192,world={world},b_layout=nk;m=128,n=3584,k=8192,world={world},b_layout=nk;"
        "m=1024,n=3584,k=8192,world={world},b_layout=nk;m=8192,n=3584,k=8192,world={world},b_layout=nk",
        7, 0.5, "four M with A sharded along M, in bf16, and with B stored as nn.Linear does",
    ),
    "models": Part(
        "llama3-70b:world={world};llama3-405b:world={world};deepseek-v3:world={world}",
        20, 0.25, "other N and K: the projections of three models, 44 shapes",
    ),
    "grid": Part("grid:world={world}", 10, 0, "what is likely to be fast for 24 N and K at 8 M",
        ("--effort", "scout")),
    "portfolio": Part("grid:world={world}", 13, 0,
        "the configs that cover the grid on every shape of it, after `grid`", ("--portfolio",)),
    "decode": Part("llama3-70b:world={world}", 10, 0.25, "flash_decode for Llama 3 70B, 20 shapes",
        op="flash_decode"),
    "decode-paper": Part("paper:world={world}", 13, 0.15, "flash_decode as the paper measures it",
        op="flash_decode"),
    "decode-layouts": Part(
        "llama3-70b:world={world},output=heads,batch=1+8,kv_len=4096+8192;"
        "llama3-70b:world={world},page_size=16,batch=1+8,kv_len=4096+8192;"
        "llama3-70b:world={world},dtype=bf16,batch=1+8,kv_len=4096+8192",
        7, 0.15, "flash_decode with each rank's own heads, with pages of 16 tokens, and in bf16",
        op="flash_decode",
    ),
    "decode-matrix": Part(
        "llama3-70b:world={world};paper:world={world},kv_len=1024+4096+16384+65536",
        8, 0,
        "the configs that cover these 36 shapes on every one, after `decode` and `decode-paper`",
        ("--portfolio",),
        op="flash_decode",
    ),
    "decode-models": Part("engine:world={world}", 15, 0.15,
        "flash_decode as engines call it: bf16, pages of 16 tokens, each rank's own heads",
        op="flash_decode"),
    "decode-models-unseen": Part("layouts:world={world}", 6, 0.1,
        "every head_dim, output and page size: what a selector trained on `decode-models` is "
        "judged on", op="flash_decode"),
    "decode-scaling": Part(
        "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len={tokens},world={world}",
        2, 0.5, "flash_decode of one context, for strong scaling: give --world 1 2 4 8",
        op="flash_decode",
    ),
}  # fmt: skip
DEFAULT_PARTS = ("paper", "layouts")

Work = tuple[int, Part]
"""A world and a part of it."""


def works(worlds: Sequence[int], parts: Sequence[str]) -> list[Work]:
    """World after world, each with all its parts."""
    return [(world, PARTS[name]) for world in worlds for name in parts]


def budget_s(left_s: float, works: Sequence[Work]) -> int:
    """Seconds for the first of these works: its share of what is left for all of them; none is left
    where it is below 1."""
    shares = [part.share for _, part in works]
    return int((left_s - RESERVE_S * len(works)) * shares[0] / sum(shares))


def search(work: Work, db: str, pool: int, seconds: int) -> list[str]:
    """The command line of one search."""
    world, part = work
    shapes = ["--shapes", part.at(world), "--mode", "both", *part.options]
    pooled = ["--pool", str(max(1, int(pool * part.pool)))] if part.pool else []
    return [*TFTUNE, "search", part.op, *shapes, *pooled, "--budget", f"{seconds}s", "--db", db]


def run(command: Sequence[str], until: float) -> int:
    """The exit code of a command, which is stopped at `until` (of time.monotonic) as Ctrl-C would
    stop it."""
    print(f"\n$ {shlex.join(command)}", flush=True)
    process = subprocess.Popen(command, env=os.environ | launch.NO_MULTICAST)
    try:
        return process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        return _ended(process)
    except KeyboardInterrupt:  # it has heard of it, too: the terminal tells the whole group
        _ended(process)
        raise


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a search that was told to stop: it commits what it has. Its ranks die with it."""
    try:
        return process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def measure(
    todo: Sequence[Work],
    db: str,
    pool: int,
    seconds: float,
    run: Callable[[Sequence[str], float], int] = run,
) -> list[str]:
    """Run the searches one after another; returns a sentence for each that did not end well or was
    not begun."""
    until = time.monotonic() + seconds
    problems = []
    for number, work in enumerate(todo):
        what, left = f"world {work[0]}, {work[1].meaning}", until - time.monotonic()
        budget = budget_s(left, todo[number:])
        if budget < 1:
            left_s = f"{max(0.0, left):.0f} s were left for {len(todo) - number} searches"
            problems.append(f"not begun: {what}; {left_s}")
        elif code := run(search(work, db, pool, budget), until):
            problems.append(f"ended with {code}: {what}")
    return problems


def rivals(world: int, db: str, folder: str) -> list[str]:
    """The command line that measures the winners of one world beside other libraries; its rows go
    to a file of their own."""
    script = Path(__file__).with_name("rivals.py")
    rows = Path(folder) / f"rivals-world-{world}.jsonl"
    asked = ["--world", str(world), "--seconds", str(RIVALS_S - RESERVE_S)]
    return [sys.executable, str(script), "--db", db, "--out", str(rows), *asked]


def show(todo: Sequence[Work], db: str, pool: int, seconds: float) -> None:
    """Print what would run, were each search to use its budget to the full."""
    print("export", " ".join(f"{name}={value}" for name, value in launch.NO_MULTICAST.items()))
    left = seconds
    for number, work in enumerate(todo):
        budget = budget_s(left, todo[number:])
        left -= budget + RESERVE_S
        print(f"\n# world {work[0]}, {work[1].meaning}")
        print(shlex.join(search(work, db, pool, budget)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = launch.parser(__doc__)
    add = parser.add_argument
    add("db", help="database that the rows go to; made if it is not there")
    add("--world", type=int, nargs="+", default=[8], help="ranks of each shape; several in turn")
    add("--seconds", type=float, default=1500, help="wall-clock time of all searches together")
    add("--pool", type=int, default=120, help="configs of each variant that a shape of `paper` may "
        "take, compiled ahead")  # fmt: skip
    add("--parts", nargs="+", choices=PARTS, default=DEFAULT_PARTS, metavar="PART",
        help=", ".join(PARTS))  # fmt: skip
    add("--rivals", metavar="FOLDER", help="then measure winners beside other libraries, 120 s for "
        "each world")  # fmt: skip
    add("--show", action="store_true", help="print the commands and run nothing")
    options = parser.parse_args(arguments)
    todo = works(options.world, options.parts)
    beside = [rivals(w, options.db, options.rivals) for w in options.world if options.rivals]
    seconds = options.seconds - RIVALS_S * len(beside)
    if options.show:
        show(todo, options.db, options.pool, seconds)
        print("", *map(shlex.join, beside), sep="\n")
        return 0
    problems = measure(todo, options.db, options.pool, seconds)
    ended = [(command, run(command, time.monotonic() + RIVALS_S)) for command in beside]
    problems += [f"ended with {code}: {shlex.join(command)}" for command, code in ended if code]
    sound = run([*TFTUNE, "db", "check", "--db", options.db], time.monotonic() + STOP_S) == 0
    asked = len(todo) + len(beside)
    ended_well = f"{asked - len(problems)} of {asked} runs ended well; the same command goes on"
    print(*problems, ended_well, sep="\n")
    return 0 if sound and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
