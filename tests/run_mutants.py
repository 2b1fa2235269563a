"""`make mutants`: plant each fault of `mutants.py` in a copy of the tree; its test must fail there.

The checkout is never written to. First every test runs in a copy without a fault, where all must
pass. Then each mutant runs its own test, in two processes. `python tests/run_mutants.py WORD...`
runs the mutants whose name holds one of the words.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutants import MUTANTS
from planted_fault import Mutant
from source_text import replaced_once

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 2
DEADLINE_S = 120.0
"""For the test of one mutant; all tests without a fault may take so long each, too."""
LEFT_OUT = (".*", "__pycache__", "build", "dist", "*.egg-info", "shared")
INSIDE = ("kernels", "db", "tuner", "models", "studies")
"""Folders at the top that are imported from inside of the package `tftune`."""
KILLED = "killed"
PASSED, FAILED = 0, 1
"""Exit statuses of pytest; others mean that no test could be run."""


def copy_of_the_tree(folder: Path) -> Path:
    """A copy whose `tftune` is imported before the installed one, from its own folders."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    for name in INSIDE:
        (folder / "tftune" / name).symlink_to(folder / name)
    return folder


def planted(text: str, mutant: Mutant) -> str:
    """The file's text with the fault. Raises ValueError where the place is not found."""
    return replaced_once(text, mutant.before, mutant.after, mutant.file)


def run_tests(tree: Path, tests: Sequence[str], deadline_s: float) -> tuple[int | None, str]:
    """pytest's exit status in a copy, None after the deadline; and what it printed."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-m", "", *tests]
    with tempfile.TemporaryFile("w+") as output:
        to = {"stdout": output, "stderr": output}
        process = subprocess.Popen(command, cwd=tree, env=environment, start_new_session=True, **to)
        try:
            status = process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return status, output.read()


def verdict(mutant: Mutant, tree: Path) -> str:
    """`killed: ` and the test's first complaint, or why it was not."""
    path = tree / mutant.file
    text = path.read_text()
    try:
        path.write_text(planted(text, mutant))
        status, output = run_tests(tree, [mutant.test], DEADLINE_S)
    except ValueError as error:
        return str(error)
    finally:
        path.write_text(text)
    if status == FAILED:
        complaints = [line for line in output.splitlines() if line.startswith("E  ")]
        return f"{KILLED}: {complaints[0][1:].strip()[:90] if complaints else ''}"
    if status == PASSED:
        return "SURVIVED"
    last = (output.strip().splitlines() or ["nothing printed"])[-1]
    if status is None:
        return f"no verdict after {DEADLINE_S:g} s: {last}"
    return f"pytest ended with {status}: {last}"


def baseline(mutants: Sequence[Mutant], tree: Path) -> str | None:
    """What fails without any fault."""
    tests = list(dict.fromkeys(mutant.test for mutant in mutants))
    status, output = run_tests(tree, tests, DEADLINE_S * len(tests))
    return None if status == PASSED else f"without a fault pytest ended with {status}:\n{output}"


def main(words: Sequence[str]) -> int:
    mutants = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    if not mutants:
        print(f"no mutant's name holds {' or '.join(words)}")
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tftune-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(WORKERS):
            trees.put(copy_of_the_tree(Path(folder) / f"copy-{number}"))

        def judged(mutant: Mutant | None) -> tuple[str | None, float]:
            tree, start = trees.get(), time.monotonic()
            try:
                found = baseline(mutants, tree) if mutant is None else verdict(mutant, tree)
            finally:
                trees.put(tree)
            return found, time.monotonic() - start

        with ThreadPoolExecutor(WORKERS) as pool:
            jobs = [pool.submit(judged, mutant) for mutant in (None, *mutants)]
            survivors = 0
            for mutant, job in zip(mutants, jobs[1:], strict=True):
                found, seconds = job.result()
                survived = not str(found).startswith(KILLED)
                survivors += survived
                print(f"{mutant.name:<58} {seconds:5.1f} s  {found}", flush=True)
                if survived:
                    print(f"    {mutant.file}: {mutant.before.strip()!r}\n    {mutant.test}")
            broken, seconds = jobs[0].result()
    print(f"{'all tests without a fault':<58} {seconds:5.1f} s  {broken or 'passed'}")
    took = time.monotonic() - began
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants killed in {took:.0f} s")
    return 1 if survivors or broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
