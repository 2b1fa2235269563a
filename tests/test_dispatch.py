"""A selection stays cheap: benchmarks/dispatch.py within ten times the bars that it is held to on a quiet machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

import tftune

BARS = {"memo_us": 0.3, "tree_us": 1.0, "fresh_us": 3.0, "p99_us": 5.0, "import_ms": 15.0}


@pytest.fixture
def no_default(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tftune, "_default", None)
    yield


def test_dispatch_is_within_ten_times_its_bars(
    script: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str], no_default: None
) -> None:
    script("dispatch").main(["--calls", "2000"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("RESULT dispatch ")
    found = {name: float(value) for name, value in (pair.split("=") for pair in line.split()[2:])}
    assert {name: value for name, value in found.items() if value > 10 * BARS.get(name, 30)} == {}
    assert set(BARS) < set(found)
