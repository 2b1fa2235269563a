"""The drill's script without its searches: what it compares, what it finds left behind, and when it
stops. `make drill` plays it whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import drill
import pytest
import traces

from tftune.db.trial import MODES, Failure, Measurement, Outcome, Trial
from tftune.kernels.core.space import Config
from tftune.tuner.bench.faults import FAULTS, Drill, marked

POOL, SHARE = 17, 0.3
"""With the defaults, none of which is in the pool, 18 configs of each of three variants: 16 of 54
have a fault, in both modes."""
GOOD = Measurement((20.0, 21.0, 22.0, 21.0), (10.0, 10.5, 11.0, 10.0), 1e-4)


SCENE = drill.emulated(2)


@pytest.fixture(scope="module")
def faults() -> Drill:
    return drill.make_drill(SCENE.shape, SCENE.configs(POOL), SHARE)


def rows(faults: Drill | None) -> list[Trial]:
    """What a search stores whose every good trial takes the same time."""

    def outcome(config: Config) -> Outcome:
        fault = faults.fault(SCENE.shape, config) if faults else None
        return marked(Failure(FAULTS[fault].kind, "x"), fault) if fault else GOOD

    bench = "drill" if faults else "node"
    return [
        Trial(SCENE.shape, config, mode, "emulatedx2", bench, "run", "code", outcome(config))
        for config in SCENE.configs(POOL)
        for mode in MODES
    ]


def is_good(trial: Trial) -> bool:
    return trial.outcome == GOOD and trial.config.variant != "bsp"


def test_each_fault_befalls_some_and_all_together_the_share(faults: Drill) -> None:
    counts = Counter(
        fault for trial in rows(None) if (fault := faults.fault(trial.shape, trial.config))
    )
    assert set(counts) == set(FAULTS) and min(counts.values()) >= 4 and counts.total() == 32


def test_a_drill_has_the_trials_that_were_asked_for_or_few_more() -> None:
    fused = [config for config in SCENE.configs(POOL) if config.variant != "bsp"]
    assert drill.pool_of(100) == POOL and len(MODES) * len(fused) == 108
    assert Counter(config.variant for config in fused) == dict.fromkeys(drill.FUSED, POOL + 1), (
        "the pool's, and the default beside them"
    )


def test_too_few_configs_for_a_drill_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold 5 faults; give more --trials or --share"):
        drill.make_drill(SCENE.shape, SCENE.configs(3), 0.3)


def test_a_search_as_it_should_be_is_sound(faults: Drill) -> None:
    found = drill.compare(rows(None), rows(faults), faults)
    assert found.sound and found.agree == 1.0
    assert found.injected.total() == 32 and len(found.gaps) == 76


def test_what_went_wrong_is_named(faults: Drill) -> None:
    stored = rows(faults)
    good = next(trial for trial in stored if is_good(trial))
    hang = next(t for t in stored if faults.fault(t.shape, t.config) == "hang")

    def with_outcome(changed: Trial, outcome: Outcome) -> drill.Comparison:
        others = [replace(t, outcome=outcome) if t is changed else t for t in stored]
        return drill.compare(rows(None), others, faults)

    lost = drill.compare(rows(None), stored[:-1], faults)
    assert len(lost.lost) == 1 and not lost.sound
    failed = with_outcome(good, Failure("hang", "by itself"))
    assert len(failed.failed) == 1 and "hang: by itself" in failed.failed[0] and not failed.sound
    for outcome in (GOOD, Failure("crash", "injected hang: x"), Failure("hang", "by itself")):
        found = with_outcome(hang, outcome)
        assert found.injected["hang"] - found.stored["hang"] == 1 and not found.sound, outcome
    off = with_outcome(good, replace(GOOD, samples_us=tuple(3 * us for us in GOOD.samples_us)))
    assert off.agreeing == 75 and min(off.gaps) == pytest.approx(-2 / 3) and off.sound


def test_a_ratio_outside_its_interval_is_near_up_to_3_percent(faults: Drill) -> None:
    """Times without noise, whose intervals are points: 0, 2 and 5 % slower than in the clean
    search."""
    good = next(trial for trial in rows(faults) if is_good(trial))

    def timed(us: float) -> Trial:
        return replace(good, outcome=Measurement((us,) * 4, (10.0,) * 4, 1e-4))

    found = [drill.compare([timed(20.0)], [timed(us)], faults) for us in (20.0, 20.4, 21.0)]
    assert [(each.agreeing, each.near) for each in found] == [(1, 1), (0, 1), (0, 0)]


def test_a_config_that_fails_cleanly_is_left_out(faults: Drill) -> None:
    clean = [
        replace(trial, outcome=Failure("compile", "x")) if trial.config.variant == "push" else trial
        for trial in rows(None)
    ]
    found = drill.compare(clean, rows(faults), faults)
    assert found.sound and found.injected.total() < 32


def test_what_is_left_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"test-{time.time_ns()}"
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    before = traces.traces(mark, 7, 0)
    (tmp_path / "tftune-7-abc").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], env=os.environ | {traces.MARK: mark}
    ) as child:
        try:
            process, folder = traces.traces(mark, 7, 0).left_since(before)
        finally:
            child.kill()
    assert process.startswith(f"process {child.pid}: ") and folder.endswith("/tftune-7-abc")
    (tmp_path / "tftune-7-abc").rmdir()
    assert traces.traces(mark, 7, 0).left_since(before) == []


def test_memory_that_a_gpu_does_not_get_back_is_named() -> None:
    before = traces.Traces(frozenset(), frozenset(), 0, (1000, 1000))
    after = replace(before, compute_processes=1, free_mib=(990, 300))
    assert after.left_since(before) == ["a compute process", "700 MiB on GPU 1"]


def play(monkeypatch: pytest.MonkeyPatch, faulty: list[Trial], *arguments: str) -> Any:
    monkeypatch.setenv(traces.MARK, "")  # so that it is put back
    searched = iter((rows(None), faulty))
    bench = SimpleNamespace(recoveries_s=[1.0, 2.0, 6.0])
    monkeypatch.setattr(drill, "search", lambda *given: (next(searched), bench))
    return drill.main(["--emulated", *arguments])


def test_the_result_is_one_line(
    faults: Drill, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert play(monkeypatch, rows(faults)) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == (
        "RESULT drill target=emulatedx2 trials=110 faults=32 stored=32 agree=1.000 near=1.000 "
        "recovery_median_s=2.00 recovery_worst_s=6.00 left=0"
    )
    assert [line for line in out if re.fullmatch(r"\| hang \| \d+ \| \d+ \| hang \|", line)]


def test_a_drill_that_went_wrong_ends_with_1(
    faults: Drill, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert play(monkeypatch, rows(faults)[:-1]) == 1
    assert "lost: 1\n  pull(" in capsys.readouterr().out


def test_the_deadline_stops_even_a_search_that_keeps_every_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stuck(*given: object) -> None:
        while True:
            try:
                time.sleep(60)
            except Exception:
                continue

    monkeypatch.setenv(traces.MARK, "")
    monkeypatch.setattr(drill, "search", stuck)
    monkeypatch.setattr(drill, "RESERVE_S", 0.1)
    with pytest.raises(SystemExit, match=r"the drill had not ended after 0.5 s"):
        drill.main(["--emulated", "--seconds", "0.5"])


def test_too_little_time_is_refused(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        drill.main(["--emulated", "--seconds", "30"])
    assert (
        "--seconds 30 is too little: 40 s of it are for ending and comparing"
        in capsys.readouterr().err
    )
