"""Readers of one database, each a process of its own, which imports this file by name."""

from __future__ import annotations

import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from stored import row

from tftune.db.store import Store
from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config

READERS, READS, WRITES = 32, 250, 2000
"""Processes, since that is what readers are (a report or a selection beside a search), and since
SQLite's locks are between processes; operations of each; operations of the writer. 10,000 in
all."""
PAUSE_S = 0.02
"""The pause of a reader after each operation, so that it reads as long as the writer writes."""
DEADLINE_S = 240


def shape(reader: int) -> AllGatherGemm:
    """Each reader has rows of its own, or 32 of them would parse the same thousand rows again and
    again."""
    return AllGatherGemm(1 + reader, 3584, 8192, 8)


def trial(number: int) -> Trial:
    outcome = Measurement((10.0 + number,) * 15, (20.0 + number,) * 15, 1e-4)
    config = Config("push", block_m=number // READERS)
    created = f"2026-11-25T10:{number // 60:02}:{number % 60:02}+00:00"
    return row(shape(number % READERS), config, outcome, run="run", created=created)


def read(path: Path, reader: int, going: Event, results: Any) -> None:
    """Open, read and close, as commands do, every fifth time; else read again on the open
    connection."""
    seen: list[int] = []
    try:
        assert going.wait(DEADLINE_S)
        while len(seen) < READS:
            with Store.open(path, write=False) as store:
                for _ in range(5):
                    found = [row.config["block_m"] for row in store.trials(shape=shape(reader))]
                    assert found == list(range(len(found))), "a row is missing"
                    seen.append(len(found))
                    time.sleep(PAUSE_S)
        results.put(seen)
    except Exception as error:  # whatever it is, the test shows it
        results.put(f"{type(error).__name__}: {error}")
