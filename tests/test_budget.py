"""A budget binds what comes before the first trial, too: reading rows, ranking what to compile,
compiling."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from fake_bench import OTHER, SMALL, FakeBench, run

from tftune.cli import search_job
from tftune.cli.console import Progress
from tftune.db.store import Store
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.search.search_stage import SearchStage

pytestmark = pytest.mark.usefixtures("tiny")


class Clock:
    """Seconds that pass only where something slow is asked."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def ranking(clock: Clock, ranked: list[Shape], seconds: float) -> Any:
    def opened(stage: SearchStage, shape: Shape) -> list[Config]:
        ranked.append(shape)
        clock.now += seconds
        return []

    return opened


@pytest.mark.parametrize(
    ("budget_s", "seconds", "times"), [(10.0, 5.0, 1), (10.0, 1.5, 2), (math.inf, 5.0, 2)]
)
def test_ranking_what_to_compile_ends_with_its_part_of_the_time(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    budget_s: float,
    seconds: float,
    times: int,
) -> None:
    """Half of what is left of 80 % of the budget."""
    clock, ranked, settled = Clock(), list[Shape](), list[float]()
    monkeypatch.setattr("tftune.tuner.search.search_stage.time", clock)
    monkeypatch.setattr("tftune.tuner.search.search.time", clock)
    monkeypatch.setattr("tftune.tuner.search.final_stage.time", clock)
    monkeypatch.setattr(SearchStage, "_draw", lambda *_: None)
    monkeypatch.setattr(SearchStage, "_opened", ranking(clock, ranked, seconds))
    bench = FakeBench()
    monkeypatch.setattr(bench, "settle", settled.append)
    monkeypatch.setattr(SearchStage, "_search", lambda *_: None)
    with pytest.raises(ValueError, match="nothing could be measured"):
        run(store, bench, (SMALL, OTHER), modes=("graph",), pool=4, budget_s=budget_s)
    assert len(ranked) == times
    left_s = 1800.0 if budget_s == math.inf else max(0.0, 4.0 - times * seconds)
    assert settled == [pytest.approx(left_s)]


def test_what_reading_rows_takes_is_taken_from_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, given = Clock(), list[float | None]()

    def knowledge(*_: object, **__: object) -> None:
        clock.now += 3.0

    def search(*_: object, budget_s: float | None, **__: object) -> list[Any]:
        given.append(budget_s)
        return []

    monkeypatch.setattr(search_job, "monotonic", clock.monotonic)
    monkeypatch.setattr("tftune.pipeline.seeds.knowledge", knowledge)
    monkeypatch.setattr("tftune.tuner.search.search.search", search)
    bench: Any = FakeBench()
    store: Any = SimpleNamespace()
    for budget_s in (10.0, 1.0, None):
        search_job.find("op", [SMALL], ["graph"], bench, store, Progress(), {}, budget_s)
    assert given == [7.0, 0.0, None]
