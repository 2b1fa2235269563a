"""What the tests of the store put into it, a run and six trials that differ, and the database as
any other program sees it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tftune.db.store import Store
from tftune.db.trial import Failure, Measurement, Outcome, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config

RUN = Run(
    "r1", "h200x8", "node", {"torch": "2.13.0"}, "2026-11-21T01:00:00Z", {"0": {"sm_mhz": 1980.0}}
)
ENDED = replace(RUN, ended={"0": {"sm_mhz": 1965.0}, "copy_gb_s": {"cold": 3350.0, "warm": 4100.0}})
SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=8)
MEASURED = Measurement((10.0, 12.5), (20.0, 25.0), check_error=0.0004)


def row(shape: Shape, config: Config, outcome: Outcome, **changes: Any) -> Trial:
    """A row of a search on eight H200."""
    run, code, created = RUN.id, "0123456789ab", "2026-11-21T01:00:01Z"
    found = Trial(shape, config, "graph", "h200x8", "node", run, code, outcome, created=created)
    return replace(found, **changes)


def trial(number: int = 0, **changes: Any) -> Trial:
    """A trial; another number makes it another trial."""
    config = Config("push", block_m=16 + number, k_per_flag=256)
    return replace(row(SHAPE, config, MEASURED), **changes)


TRIALS = [
    trial(0),
    trial(1, outcome=Failure("hang", "it's late\nü")),
    trial(2, mode="eager", outcome=Measurement((1.25,), stopped_early=True, check_error=0)),
    trial(3, bench="model", outcome=Measurement((7.0,))),
    trial(4, shape=replace(SHAPE, m=128, dtype="bf16"), stage="final"),
    trial(5, target="mi300x8"),
]


def filled(store: Store) -> Store:
    for each in TRIALS:
        store.add_trial(each)
    return store


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The database as any other program sees it; committed and closed at the end."""
    with closing(sqlite3.connect(path)) as db, db:
        yield db
