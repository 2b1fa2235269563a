"""Four searches at once over one database, each a process of its own (optuna #820: "database is
locked"): they take turns, nobody fails, and no row is lost or stored twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tftune.db.store import Store
from tftune.db.trial import Trial

OP, AT_ONCE = "all_gather_gemm", 4
QUICK = "--effort quick --mode graph --variant push --variant pull"


def searches(db: Path, shapes: list[str]) -> list[list[dict[str, Any]]]:
    """What each of them prints as JSON, all started together; raises where one fails."""
    words = f"-m tftune search {OP} --on model --target mi300x8 --db {db} --json {QUICK}".split()
    started = [
        subprocess.Popen(
            [sys.executable, *words, "--shapes", shape],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for shape in shapes
    ]
    ended = [(*process.communicate(timeout=240), process.returncode) for process in started]
    assert [(code, err) for _, err, code in ended if code or "Traceback" in err] == []
    return [json.loads(out) for out, _, _ in ended]


def stored(db: Path) -> tuple[list[Trial], Counter[Any]]:
    """All rows of a sound database, and how often each was measured."""
    with Store.open(db, write=False) as store:
        assert store.check() == []
        trials = store.trials()
    return trials, Counter((t.shape, t.mode, t.config, t.stage) for t in trials)


def shapes_of(count: int) -> list[str]:
    return [f"m={64 * number},n=512,k=1024,world=8" for number in range(1, 1 + count)]


def test_of_different_shapes(path: Path) -> None:
    told = searches(path, shapes_of(AT_ONCE))
    trials, counts = stored(path)
    assert max(counts.values()) == 1, "a row was stored twice"
    found = Counter((str(t.shape), t.mode) for t in trials if t.stage == "search")
    expected = {
        (best["shape"], best["mode"]): best["evaluations"] for results in told for best in results
    }
    assert found == expected, "a row was lost"
    assert len({t.run for t in trials}) == AT_ONCE


@pytest.mark.thorough
def test_of_the_same_shape(path: Path) -> None:
    """One measures, the others find its rows."""
    told = searches(path, shapes_of(1) * AT_ONCE)
    for name in ("winner", "us", "evaluations"):
        assert [results[0][name] for results in told] == [told[0][0][name]] * AT_ONCE
    trials, counts = stored(path)
    assert max(counts.values()) == 1 and len({t.run for t in trials}) == 1
    assert told[0][0]["evaluations"] == sum(t.stage == "search" for t in trials)
