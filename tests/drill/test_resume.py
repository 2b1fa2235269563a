"""Kill a search at random moments, start it again, and see that nothing committed is lost and nothing is measured twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.chips import Chip
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.tuner.benches import ModelBench
from tftune.tuner.search import EFFORTS, Best, search

SHAPES = tuple(AllGatherGemm(m=m, n=3584, k=8192, world=8) for m in (1, 2, 4))
MODES = ("graph", "eager")
EFFORT = EFFORTS["quick"]
KILLS = 20
Key = tuple[str, str, str, str]


def predicted(shape: Shape, config: Config, mode: str, chip: Chip) -> float:
    knobs = sum(value * place for place, (_, value) in enumerate(config.knobs) if isinstance(value, int))
    return (20.0 if config.variant == "bsp" else 10 + knobs % 97 / 5) * (2 if mode == "eager" else 1)


class SlowBench(ModelBench):
    """Notes each finished measurement in a file of its own, which is how the test knows what must be, or may be, in the database."""

    def __init__(self, notes: Path) -> None:
        super().__init__(Target.parse("mi300x8"), predicted)
        self.notes = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, word: str, key: Key) -> None:
        os.write(self.notes, ("\t".join((word, *key)) + "\n").encode())

    def measure(self, shape: Shape, config: Config, mode: str, baseline: Config | None, *, stage: str = "search") -> Outcome:
        time.sleep(0.01)
        outcome = super().measure(shape, config, mode, baseline, stage=stage)
        self.note("measured", (str(shape), str(config), mode, stage))
        return outcome


class Acknowledged:
    """Progress that notes what the search says is committed."""

    def __init__(self, bench: SlowBench) -> None:
        self.bench = bench

    def start(self, total: int) -> None: ...

    def advance(self, trial: Trial) -> None:
        self.bench.note("committed", key_of(trial))

    def finish(self) -> None: ...


def key_of(trial: Trial) -> Key:
    return str(trial.shape), str(trial.config), trial.mode, trial.stage


def resumable(folder: Path) -> list[Best]:
    """The command that is killed, and started again as it is."""
    bench = SlowBench(folder / "notes")
    with Store.open(folder / "a.db") as store:
        return search("all_gather_gemm", SHAPES, MODES, bench, store, effort="quick", progress=Acknowledged(bench))


def notes(folder: Path) -> list[tuple[str, Key]]:
    path = folder / "notes"
    lines = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    return [(word, (shape, config, mode, stage)) for word, shape, config, mode, stage in lines]


def rows(folder: Path) -> list[Key]:
    with Store.open(folder / "a.db") as store:
        assert store.check() == []
        return [key_of(trial) for trial in store.trials()]


def stop(folder: Path, how: signal.Signals, chance: random.Random) -> bool:
    """Start the search and stop it some time after its first new measurement; False where it ended well before that."""
    before = len(notes(folder))
    child = subprocess.Popen([sys.executable, __file__, str(folder)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(notes(folder)) == before and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.8))
    child.send_signal(how)
    return child.wait(timeout=60) != 0


def check_stopped(folder: Path, lost_before: int) -> int:
    """How many measurements were lost so far, after checking that the last stop lost none that was committed, and one at most."""
    stored = rows(folder)
    measured, committed = ([key for word, key in notes(folder) if word == wanted] for wanted in ("measured", "committed"))
    lost = (Counter(measured) - Counter(stored)).total()
    assert set(committed) <= set(stored), "a committed row is gone"
    assert len(stored) == len(set(stored)), "a row is there twice"
    assert lost <= lost_before + 1, "more than the trial in flight was lost"
    return lost


def check_ended(folder: Path) -> None:
    bests = resumable(folder)
    assert [(best.shape, best.mode) for best in bests] == [(shape, mode) for shape in SHAPES for mode in MODES]
    assert {best.evaluations for best in bests} == {EFFORT.trials} and {best.winner.stage for best in bests} == {"final"}
    assert {key for word, key in notes(folder) if word == "measured"} == set(rows(folder))


@pytest.mark.drill
def test_a_search_survives_being_killed_at_random_moments(tmp_path: Path) -> None:
    """Where a search came to its end between two kills, the rest of the kills are of a new one."""
    chance = random.Random(20)
    hows = [signal.SIGINT if kill == KILLS // 2 else signal.SIGKILL for kill in range(KILLS)]
    folders, lost = [tmp_path / "0"], 0
    folders[0].mkdir()
    while hows:
        if stop(folders[-1], hows[0], chance):
            hows.pop(0)
            lost = check_stopped(folders[-1], lost)
        else:
            folders.append(tmp_path / str(len(folders)))
            folders[-1].mkdir()
            lost = 0
    for folder in folders:
        check_ended(folder)


if __name__ == "__main__":
    resumable(Path(sys.argv[1]))
