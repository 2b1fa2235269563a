"""One database, one writer and many readers at once: nobody is told that it is locked, and every
reader sees whole rows only."""

from __future__ import annotations

from multiprocessing.synchronize import Event
from pathlib import Path

import forked_ranks
import optuna
import pytest
from readers import DEADLINE_S, READERS, READS, WRITES, read, trial

from tftune.db.store import Store
from tftune.db.trial import Run

RUN = Run("run", "h200x8", "node", {}, "2026-11-21", {})


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
    context = forked_ranks.context()
    going, results = context.Event(), context.Queue()
    with Store.open(tmp_path / "a.db") as store:
        store.add_run(RUN)
        path = tmp_path / "a.db"
        readers = [
            context.Process(target=read, args=(path, reader, going, results), daemon=True)
            for reader in range(READERS)
        ]
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
    # It is a test only while both work at once: reads that fell between the first write and the
    # last.
    between = sum(0 < count < WRITES // 2 // READERS for seen in found for count in seen)
    print(f"{between} of {READERS * READS} reads fell between the first write and the last")
    assert between > READERS * READS / 4
