"""benchmarks/mlp.py on emulated ranks: a compiled layer without a graph break whose push equals
BSP, and both kinds of parallelism."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest


def told(root: Path, *options: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, root / "benchmarks/mlp.py", "--cpu", *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]


@pytest.mark.thorough
def test_two_ranks(root: Path) -> None:
    k, m, ops = told(root, "--world", "2")
    assert k.startswith("RESULT mlp shape=m=8,n=72,k=264,world=2 selected=bsp") and "shard=m" in m
    for line in (k, m):
        assert (
            line.endswith("graph_breaks=0")
            and 0 < float(line.partition("error=")[2].split()[0]) < 2e-3
        )
    assert ops.startswith("RESULT ops ") and " added_us=" in ops


@pytest.mark.drill
def test_four_ranks_in_two_groups(root: Path) -> None:
    assert any(
        line.startswith("RESULT groups tensor_parallel=2 data_parallel=2 worst=0.")
        for line in told(root, "--world", "4")
    )


def test_ranks_that_hang_or_fail_are_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a GPU every rank fails at once; a rank that sleeps is killed when the time is
    over."""
    import mlp

    began = time.monotonic()
    (sleeper := tmp_path / "sleeper.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(mlp, "__file__", str(sleeper))
    assert mlp.supervise(2, 0.5, []) == 1 and time.monotonic() - began < 20
    sleeper.write_text("import sys; sys.exit(3 if sys.argv[-1] == '1' else 0)")
    assert mlp.supervise(2, 30.0, []) == 1 and time.monotonic() - began < 20
