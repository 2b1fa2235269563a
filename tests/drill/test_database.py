"""One database, one writer and many readers at once: nobody is told that it is locked, and every reader sees whole rows only."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import optuna
import pytest

from tftune.db.store import Store
from tftune.db.trial import Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.space import Config

READERS, READS, WRITES = 32, 250, 2000
"""Processes, since that is what readers are (a report or a selection beside a search), and since SQLite's locks are between
processes; operations of each; operations of the writer. 10,000 in all."""
PAUSE_S = 0.02
"""Of a reader after each operation, so that it reads as long as the writer writes."""
RUN = Run("run", "h200x8", "node", {}, "2026-11-21", {})
DEADLINE_S = 240


def shape(reader: int) -> AllGatherGemm:
    """Each reader has rows of its own, or 32 of them would parse the same thousand rows again and again."""
    return AllGatherGemm(1 + reader, 3584, 8192, 8)


def trial(number: int) -> Trial:
    outcome = Measurement((10.0 + number,) * 15, (20.0 + number,) * 15, 1e-4)
    config = Config("push", block_m=number // READERS)
    return Trial(shape(number % READERS), config, "graph", "h200x8", "node", "run", "code", outcome, created=str(number))


def read(path: Path, reader: int, going: Event, results: Any) -> None:
    """Open, read and close, as commands do, every fifth time; else read again on the open connection."""
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


def write(store: Store, going: Event) -> None:
    """Half of them rows of ours, half of them what Optuna is told of the same, as in a search."""
    study = optuna.create_study(storage=store.optuna_storage(), study_name="drill")
    going.set()
    for number in range(WRITES // 2):
        store.add_trial(trial(number))
        study.add_trial(optuna.trial.create_trial(value=float(number)))


@pytest.mark.drill
def test_readers_and_a_writer_never_lock_each_other_out(tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    context = multiprocessing.get_context("forkserver")
    going, results = context.Event(), context.Queue()
    with Store.open(tmp_path / "a.db") as store:
        store.add_run(RUN)
        path = tmp_path / "a.db"
        readers = [context.Process(target=read, args=(path, reader, going, results), daemon=True) for reader in range(READERS)]
        for reader in readers:
            reader.start()
        write(store, going)
        found = [results.get(timeout=DEADLINE_S) for _ in readers]
        assert [answer for answer in found if isinstance(answer, str)] == []
        assert store.check() == [] and len(store.trials()) == WRITES // 2
    for reader in readers:
        reader.join()
    assert sum(map(len, found)) + WRITES == 10_000
    assert all(seen == sorted(seen) for seen in found), "a committed row was gone again"
    # It is a test only while both work at once: reads that fell between the first write and the last.
    between = sum(0 < count < WRITES // 2 // READERS for seen in found for count in seen)
    print(f"{between} of {READERS * READS} reads fell between the first write and the last")
    assert between > READERS * READS / 4
