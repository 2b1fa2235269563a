"""The clock's order of events: a graph runs once untimed right before it counts, and so does an
eager call, more than once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tftune.tuner.bench import clock


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
    asked: list[list[float]] = []
    assert (
        clock.graph_rounds(
            graphs, 2, lambda: log.append("barrier"), lambda us: asked.append(us) or us
        )
        == [[250.0, 250.0]] * 2
    )
    assert asked == [[1000.0, 1000.0]], "all ranks agree once on how long a replay takes"
    first = [["sleep", name, "barrier", "event", name, "event"] for name in ("bsp", "push")]
    assert log[:12] == [*first[0], *first[1]]
    leads = clock.lead(1000.0)
    later = {
        name: ["sleep", *[name] * leads, "barrier", "event", name, "event"]
        for name in ("bsp", "push")
    }
    expected = [
        entry
        for number in (1, 2)
        for place in clock.turns(2, number)
        for entry in later[("bsp", "push")[place]]
    ]
    assert leads > 1 and log[12:] == expected


def test_ranks_run_a_graph_as_often_as_the_slowest_of_them_needs(log: list[str]) -> None:
    graphs: Any = [Graph("bsp")]
    clock.graph_rounds(graphs, 1, lambda: log.append("barrier"), lambda us: [20_000.0 for _ in us])
    assert log.count("bsp") == 2 + 2, "a replay of 20 ms needs no more than one before it"


def test_turns_differ_from_round_to_round_and_are_the_same_on_every_rank() -> None:
    orders = [clock.turns(8, number) for number in range(30)]
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert orders == [clock.turns(8, number) for number in range(30)]
    before = {order[order.index(3) - 1] for order in orders if order.index(3)}
    assert len(before) >= 6, "no config always follows the same neighbour"


def test_an_eager_call_runs_untimed_three_times(log: list[str], tmp_path: Path) -> None:
    file = tmp_path / "counters"
    file.write_bytes(bytes(8))
    calls = [lambda operand, name=name: log.append(f"{name}{operand}") for name in ("bsp", "push")]
    assert (
        clock.eager_rounds(calls, [(0,), (1,), (2,)], 2, clock.HostBarrier(file, 0, 1))
        == [[1000.0, 1000.0]] * 2
    )
    asked = [entry for entry in log if entry != "event"]
    assert [entry[:-1] for entry in asked] == (["bsp"] * 4 + ["push"] * 4) * 3
    assert [int(entry[-1]) for entry in asked] == [turn % 3 for turn in range(1, 25)]


def test_the_first_round_of_each_clock_warms_up_and_does_not_count(
    log: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In milliseconds: the first round takes 100 times as long."""
    file = tmp_path / "counters"
    file.write_bytes(bytes(8))
    times = iter([100.0, 1.0, 2.0])
    monkeypatch.setattr(Event, "elapsed_time", lambda start, end: next(times))
    barrier = clock.HostBarrier(file, 0, 1)
    assert clock.eager_rounds([lambda operand: None], [(0,)], 2, barrier) == [[1000.0, 2000.0]]
    times = iter([100.0, 1.0, 2.0])  # the first is read once, to see how long a replay takes
    graphs: Any = [Graph("bsp")]
    assert clock.graph_rounds(graphs, 2, lambda: None, lambda us: us) == [[250.0, 500.0]]
