"""The clock's order of events: a graph runs once untimed right before it counts, and so does an eager call, more than once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tftune.tuner import clock


class Event:
    """Writes down when it is recorded; every time is 1 ms."""

    log: list[str] = []  # noqa: RUF012

    def __init__(self, enable_timing: bool) -> None: ...

    def record(self) -> None:
        self.log.append("event")

    def synchronize(self) -> None: ...

    def elapsed_time(self, other: Event) -> float:
        return 1.0


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    Event.log = []
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: Event.log.append("sleep"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return Event.log


class Graph:
    calls = 4

    def __init__(self, name: str) -> None:
        self.name = name

    def replay(self) -> None:
        Event.log.append(self.name)


def test_a_graph_runs_untimed_before_it_counts_after_the_barrier(log: list[str]) -> None:
    graphs: Any = [Graph("bsp"), Graph("push")]
    assert clock.graph_rounds(graphs, 2, lambda: log.append("barrier")) == [[250.0, 250.0]] * 2
    one = [["sleep", name, "barrier", "event", name, "event"] for name in ("bsp", "push")]
    assert log == [*one[0], *one[1]] * 3  # the first round warms up


def test_an_eager_call_runs_untimed_three_times(log: list[str], tmp_path: Path) -> None:
    file = tmp_path / "counters"
    file.write_bytes(bytes(8))
    calls = [lambda operand, name=name: log.append(f"{name}{operand}") for name in ("bsp", "push")]
    assert clock.eager_rounds(calls, [(0,), (1,), (2,)], 2, clock.HostBarrier(file, 0, 1)) == [[1000.0, 1000.0]] * 2
    asked = [entry for entry in log if entry != "event"]
    assert [entry[:-1] for entry in asked] == (["bsp"] * 4 + ["push"] * 4) * 3
    assert [int(entry[-1]) for entry in asked] == [turn % 3 for turn in range(1, 25)]
