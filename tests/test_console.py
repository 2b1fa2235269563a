"""What a search says while it runs and at its end: the time left, a bar in a terminal, its speed,
and what its machine was like."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tftune.cli.console import Progress, duration
from tftune.cli.search_job import how_it_went
from tftune.db.store import Store
from tftune.db.trial import Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config

SMALL = "m=64,n=512,k=1024,world=2"


def some_trial() -> Trial:
    shape = AllGatherGemm.parse(SMALL)
    return Trial(shape, Config("push"), "graph", "mi300x8", "model", "r", "k", Measurement((12.5,)))


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_time_left_is_the_mean_so_far_times_what_is_to_come(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    progress = Progress(every=2, clock=lambda: now[0])
    progress.start(6)
    assert progress.left_s() is None
    for _ in range(4):
        now[0] += 30
        progress.advance(some_trial())
    progress.finish()
    assert lines_of(capsys) == [
        "6 trials to come",
        f"trial 2 of 6, 2 min 0 s left: {SMALL} graph push 12.5 us modelled",
        f"trial 4 of 6, 1 min 0 s left: {SMALL} graph push 12.5 us modelled",
    ]


def test_the_first_trials_of_many_say_nothing_of_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They waited for imports and a world: 50 of 2,044 trials once said 12 min, and it was one."""
    now = [0.0]
    for budget_s in (None, 50.0):
        progress = Progress(budget_s, every=1, clock=lambda: now[0])
        progress.start(100)
        now[0] += 30
        progress.advance(some_trial())
        assert progress.left_s() is None
    now[0] += 21
    progress.advance(some_trial())
    shown = [line.partition(":")[0] for line in lines_of(capsys)]
    assert shown == [
        "100 trials to come",
        "trial 1 of 100",
        "100 trials to come",
        "trial 1 of 100, at most 20 s left",
        "trial 2 of 100, the budget is spent",
    ]


def test_the_stages_of_a_search_are_counted_apart(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    for total, stage in ((1, ""), (1, "final")):
        progress.start(total, stage)
        progress.advance(some_trial())
    progress.start(None)
    progress.advance(some_trial())
    counts = [line.partition(",")[0].partition(":")[0] for line in lines_of(capsys)]
    assert counts == ["1 trials to come", "trial 1 of 1", "1 final trials to come", "trial 1 of 1"]


def test_what_takes_a_while_is_named_after_ten_silent_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    progress = Progress(clock=lambda: now[0])
    for seconds, what in ((9, "draws"), (2, "ranks"), (9, "compiles"), (1, "shape 1 of 2")):
        now[0] += seconds
        progress.doing(what)
    assert lines_of(capsys) == ["ranks", "shape 1 of 2"]


def test_a_terminal_gets_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    progress = Progress()
    progress.start(2)
    progress.advance(some_trial())
    progress.finish()
    shown = capsys.readouterr().err
    assert "1/2" in shown and "left" in shown and "\u2501" in shown and "trial 1 of 2" not in shown


def test_durations_in_words() -> None:
    assert [duration(seconds) for seconds in (0, 59.4, 61, 3600)] == [
        "0 s",
        "59 s",
        "1 min 1 s",
        "1 h 0 min",
    ]


def test_a_node_search_says_its_speed_and_what_its_machine_was_like(tmp_path: Path) -> None:
    """Of the runs that this search added; a modelled one has neither."""
    shape, bsp = AllGatherGemm(m=64, n=3584, k=8192, world=2), Config("bsp", form="gather_copy")
    bench: Any = SimpleNamespace(spent_s={"time": 1.0, "compile": 2.0}, recoveries_s=[])
    with Store.open(tmp_path / "a.db") as store:
        for name, kind in (("r0", "node"), ("r1", "node"), ("r2", "model")):
            store.add_run(Run(name, "h200x2", kind, {}, "2026-11-21", {"0": {"sm_mhz": 1980.0}}))
            store.add_trial(
                Trial(
                    shape,
                    bsp,
                    "graph",
                    "h200x2",
                    kind,
                    name,
                    "k",
                    Measurement((1.0,)),
                    created=name,
                )
            )
        said = list(how_it_went(bench, store, 1, 4.0))
    assert said == [
        "wall time 4 s: 50 % compile, 25 % time, 25 % tuner",
        "1 configs checked and timed: 0.25 a second, 0.50 without waiting for the compiler",
        "at the first trial SM 1980 MHz",
    ]
