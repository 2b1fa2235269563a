"""The benchmark of models that no row has: which shapes, and its report."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import rows
import strangers
from strangers import Case


def test_no_model_of_it_has_rows() -> None:
    assert not set(strangers.MODELS) & set(rows.MODELS)
    assert not set(strangers.MODELS.values()) & set(rows.DENSE.values())


def test_shapes_are_drawn_by_their_seed_alone() -> None:
    first, again, other = (strangers.drawn(40, 2, seed, tiny=False) for seed in (1, 1, 2))
    assert first == again != other and len(set(first)) == 40
    assert {shape.op for shape in first} == set(strangers.CALLS)
    assert {shape.to_dict()["m"] % 2 for shape in first} == {0, 1}, "any M"


def test_the_report_counts_what_was_slower_and_what_was_answered() -> None:
    cases = [
        Case("op a", "push", "interpolated", 10.0, 8.0, 7.0),
        Case("op b", "bsp", "interpolated", 10.0, 10.0, 8.0),
        Case("op c", "push", "interpolated", 10.0, 12.0, 12.0),
        Case("op d", "bsp", "fallback", 10.0, 10.0, 9.9),
    ]
    lines = strangers.report(cases, "h200x2").splitlines()
    assert lines[-1] == (
        "RESULT strangers target=h200x2 shapes=4 below=1 worst=0.833 served=1.010 found=1.159 "
        "gains=2 answered=0.50"
    )
    assert lines[1].endswith("push (interpolated)  op c"), "the slowest first"


@pytest.mark.thorough
def test_it_runs_on_emulated_ranks() -> None:
    command = [sys.executable, strangers.__file__, "--cpu", "--shapes", "4"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"RESULT strangers target=emulatedx2 shapes=4 below=0", done.stdout)
