"""Kill a search at random moments, start it again, and see that nothing committed is lost and
nothing is measured twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import killed
import pytest
import traces
from command_line import hear_interrupts
from killed import Key, key_of, resumable

from tftune.db.store import Store
from tftune.db.trial import MODES
from tftune.tuner.search.search import EFFORTS

EFFORT = EFFORTS["quick"]
KILLS = {"model": 40, "ranks": 10}
"""Kills of the supervisor, one in ten followed by a Ctrl-C. Fewer with ranks, since each start of a
world imports torch."""
WORDS = ("measured", "compared", "committed")
"""What a search notes, in this order."""
GONE_S = 10.0
"""The kernel kills ranks at once when the supervisor dies; a busy machine may take a while to do
so."""


def notes(folder: Path) -> list[tuple[str, Key]]:
    path = folder / "notes"
    lines = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    return [(word, (shape, config, mode, stage)) for word, shape, config, mode, stage in lines]


def rows(folder: Path) -> list[Key]:
    with Store.open(folder / "a.db") as store:
        assert store.check() == []
        return [key_of(trial) for trial in store.trials()]


def wait_for_a_measurement(folder: Path, child: subprocess.Popen[bytes]) -> None:
    before, deadline = len(notes(folder)), time.monotonic() + 60
    while len(notes(folder)) == before and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)


def stop(
    kind: str,
    folder: Path,
    how: signal.Signals,
    chance: random.Random,
    started: list[int],
) -> bool:
    """Start the search and stop it at a random moment; False where it ended before. Nobody that it
    started outlives it. Its number goes to `started`.

    With ranks the moment may be before the first measurement, while a world starts; else every kill
    is of a search that measures.
    """
    mark = f"{folder}-{time.time_ns()}"
    command = [sys.executable, killed.__file__, kind, str(folder)]
    child = subprocess.Popen(
        command,
        stderr=subprocess.DEVNULL,
        env=os.environ | {traces.MARK: mark},
        preexec_fn=hear_interrupts,
    )
    started.append(child.pid)
    if kind == "model" or chance.random() < 0.5:
        wait_for_a_measurement(folder, child)
    time.sleep(chance.uniform(0, 0.5 if kind == "model" else 4.0))
    child.send_signal(how)
    stopped = child.wait(timeout=60) != 0
    until = time.monotonic() + GONE_S
    while (orphans := list(traces.processes(mark))) and time.monotonic() < until:
        time.sleep(0.02)
    assert orphans == []
    assert how == signal.SIGKILL or not list(traces.folders(child.pid)), (
        "only a killed supervisor may leave what its ranks shared"
    )
    return stopped


def check_stopped(folder: Path, lost_before: Counter[Key]) -> Counter[Key]:
    """The measurements that were lost so far, after checking that the last stop lost none that was
    committed, and what was in flight at most: one trial, or one comparison of finalists, which are
    measured together and may be so twice at a place."""
    stored = rows(folder)
    measured, compared, committed = (
        [key for word, key in notes(folder) if word == wanted] for wanted in WORDS
    )
    lost = Counter(measured + compared) - Counter(stored)
    assert set(committed) <= set(stored), "a committed row is gone"
    alone = [key for key in stored if key not in compared]
    assert len(alone) == len(set(alone)), "a row is there twice"
    new = list((lost - lost_before).elements())
    trials = [key for key in new if key not in compared]
    comparisons = {key[::2] for key in new if key in compared}
    assert len(trials) + len(comparisons) <= 1, (
        "more than the trial or the comparison in flight was lost"
    )
    return lost


def check_ended(kind: str, folder: Path, lost: Counter[Key]) -> None:
    """A search that goes on may propose another config than the one that was in flight: only what
    was lost at a kill may be missing."""
    bests = resumable(kind, folder)
    assert [(best.shape, best.mode) for best in bests] == [
        (shape, mode) for shape in killed.SHAPES[kind] for mode in MODES
    ]
    assert {best.evaluations for best in bests} == {EFFORT.trials}
    assert {best.winner.stage for best in bests} == {"final"}
    noted, stored = {key for word, key in notes(folder) if word != "committed"}, set(rows(folder))
    assert stored <= noted and noted - stored <= set(lost)


@pytest.mark.drill
@pytest.mark.parametrize("kind", KILLS)
def test_a_search_survives_being_killed_at_random_moments(kind: str, tmp_path: Path) -> None:
    """Where a search came to its end between two kills, the rest of the kills are of a new one."""
    chance, started = random.Random(20), list[int]()
    hows = [
        how
        for kill in range(KILLS[kind])
        for how in ([signal.SIGKILL, signal.SIGINT] if kill % 10 == 5 else [signal.SIGKILL])
    ]
    lost: dict[Path, Counter[Key]] = {(folder := tmp_path / "0"): Counter()}
    folder.mkdir()
    while hows:
        if stop(kind, folder, hows[0], chance, started):
            hows.pop(0)
            lost[folder] = check_stopped(folder, lost[folder])
        else:
            folder = tmp_path / str(len(lost))
            folder.mkdir()
            lost[folder] = Counter()
    for folder in lost:
        check_ended(kind, folder, lost[folder])
    assert [shared for pid in started for shared in traces.folders(pid)] == [], (
        "a world that starts removes what killed ones left"
    )
