"""Everything that a node of GPUs is measured for, step by step: rows of engines' layers, a block
and a model with the pass, the papers' shapes, taxes, the contract on real ranks.

usage: python benchmarks/whole_node.py FOLDER [--world 8] [--seconds 560] [--steps rows llama ...]
           [--show]

Each step is a command of its own with a share of the time, and what it prints goes to
FOLDER/STEP.log. Rows of all steps go to FOLDER/node.db: the same command, or the next session with
that folder, goes on where it stopped. A step that still runs when its time is over is stopped, and
the next one begins. A step's RESULT lines are printed when it has ended. --show prints the commands
and runs nothing. `tftune trials export` writes the rows to be committed.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import launch
from node import run

HERE = Path(__file__).parent
PYTHON, TORCHRUN = sys.executable, f"{sys.executable} -m torch.distributed.run"
LARGE = "llama3-70b llama3-405b qwen2.5-72b"
START_S = 15
"""A step's processes start and end within so many seconds beside what it is given to measure."""


@dataclass(frozen=True)
class Step:
    """A command; its share of the time of the steps asked for."""

    share: float
    command: str
    """With {python}, {torchrun}, {here}, {folder}, {world} and {seconds} to be filled in."""
    meaning: str


STEPS = {
    "rows": Step(
        4,
        "{python} {here}/rows.py --world {world} --models " + LARGE + " --prefill 1024 4096 8192 "
        "--db {folder}/node.db --out {folder}/artifacts --seconds {seconds}",
        "layers of three large models, captured; artifacts",
    ),
    "eager": Step(
        2,
        "{python} {here}/rows.py --world {world} --mode eager --share 0.33 --db {folder}/node.db "
        "--out {folder}/artifacts --seconds {seconds}",
        "layers of ten models, a third of them, eager",
    ),
    "llama": Step(
        3,
        "{torchrun} --nproc-per-node {world} {here}/llama.py --size 70b --prefill 1024 4096 "
        "--decode 1 64 256 --seconds {seconds}",
        "a block of Llama 3 70B, compiled, with and without the pass",
    ),
    "transformers": Step(
        5,
        "{python} {here}/transformers_llama.py --model llama3.1-8b --seconds {seconds} "
        "--json {folder}/llama3.1-8b.json",
        "transformers' Llama 3.1 8B with and without the pass, and what a start costs",
    ),
    "paper": Step(
        4,
        "{python} {here}/node.py {folder}/node.db --world {world} --seconds {seconds} "
        "--parts paper decode-paper",
        "the papers' tables, with registered buffers of BSP",
    ),
    "taxes": Step(
        2,
        "{python} -m tftune study taxes all_gather_gemm "
        "m=1024,n=3584,k=8192,world={world} --db {folder}/node.db",
        "what BSP pays at one shape",
    ),
    "strangers": Step(
        2,
        "{python} {here}/strangers.py --world {world} --seconds {seconds}",
        "random shapes of models without a row, answered by what ships",
    ),
    "rivals": Step(
        2,
        "{python} {here}/rivals.py --out {folder}/rivals.jsonl --world {world} "
        "--shapes engine:n=7168+28672,k=8192,m=16+128+1024+8192 --seconds {seconds}",
        "other libraries' operators beside what ships, as engines lay tensors out",
    ),
    "contract": Step(
        4,
        "{python} -m pytest -q -m 'not drill' tests/test_gpu.py tests/test_gpu_warm_up.py",
        "the contract on real ranks",
    ),
}


def commands(
    names: Sequence[str], folder: Path, world: int, seconds: float
) -> list[tuple[str, list[str], float]]:
    """Each step's name, command line and seconds, of so many for all of them."""
    whole = sum(STEPS[name].share for name in names)
    steps = []
    for name in names:
        step = STEPS[name]
        own = max(1, int(seconds * step.share / whole - START_S))
        text = step.command.format(
            python=PYTHON, torchrun=TORCHRUN, here=HERE, folder=folder, world=world, seconds=own
        )
        steps.append((name, shlex.split(text), own + START_S))
    return steps


def results(log: Path) -> list[str]:
    """The RESULT lines of a step, or its last line where it has none."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if line.startswith("RESULT ")] or lines[-1:]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = launch.parser(__doc__)
    parser.add_argument("folder", type=Path, help="of rows, artifacts and logs; made where needed")
    parser.add_argument("--world", type=int, default=8, help="GPUs of the node")
    parser.add_argument("--seconds", type=float, default=560, help="for all steps together")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--show", action="store_true", help="print the commands and run nothing")
    options = parser.parse_args(arguments)
    planned = commands(options.steps, options.folder, options.world, options.seconds)
    if not options.show:
        options.folder.mkdir(parents=True, exist_ok=True)
    codes = []
    for name, command, seconds in planned:
        print(f"\n# {name}, {seconds:.0f} s: {STEPS[name].meaning}")
        if options.show:
            print(shlex.join(command))
            continue
        log, began = options.folder / f"{name}.log", time.monotonic()
        with log.open("w") as out:
            codes.append(run(command, began + seconds, out))
        took = time.monotonic() - began
        print(f"ended with {codes[-1]} after {took:.0f} s: {log}", *results(log), sep="\n")
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
