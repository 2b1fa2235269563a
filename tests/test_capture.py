"""Shapes that a process runs are counted, by calls and by replays of graphs, and a search takes
those first that cost most time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import OP, Tftune, refused
from lone import lone

import tftune as public
from tftune import ops
from tftune.cli.captured import parts, stakes
from tftune.db.captured import Count, merged, read_captures
from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm, host
from tftune.models.selector import Selector

SHAPE = AllGatherGemm(4, 16, 16, 2)


class Graph:
    """What tftune needs of a CUDA graph; `fails`: what its capture raises."""

    fails: Exception | None = None
    replayed = 0

    def capture_begin(self, pool: object = None, *, mode: str = "") -> None:
        if self.fails:
            raise self.fails

    def capture_end(self) -> None:
        """Nothing to do."""

    def replay(self) -> str:
        self.replayed += 1
        return "replayed"


Call = Callable[..., Any]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """call(m, mode): one call of an operation whose plan does nothing, in one workspace."""
    monkeypatch.setattr(host, "prepare", lambda shape, config, workspace: lambda a, b, c: None)
    monkeypatch.setattr(public, "_default", Selector())
    here, b = lone(), torch.zeros(16, 16, dtype=torch.float16)

    def run(m: int = 4, mode: str = "graph") -> Any:
        a = torch.zeros(m, 8, dtype=torch.float16)
        return ops.all_gather_gemm(a, b, here, b_layout="kn", mode=mode)

    run.workspace = here  # type: ignore[attr-defined]
    yield run
    assert public._capture is None


def by_place(counts: Iterable[Any]) -> dict[tuple[int, str], tuple[int, int, int]]:
    """Calls, replays and selections, by M and mode."""
    return {
        (count.shape.m, count.mode): (count.calls, count.replays, count.selections)
        for count in counts
    }


def counted(path: Path) -> dict[tuple[int, str], tuple[int, int, int]]:
    return by_place(read_captures([path]))


def test_calls_are_counted_by_shape_and_mode(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    call(4), call(8), call(16, "graph:12")  # plans that were made before count, too
    with public.capture(path):
        for m, mode, times in ((4, "graph", 3), (4, "eager", 2), (12, "graph", 1)):
            for _ in range(times):
                call(m, mode)
        call(16, "graph:12"), call(16, "graph:16")
    call(4), call(12)
    assert counted(path) == {
        (4, "graph"): (3, 0, 0), (4, "eager"): (2, 0, 1), (12, "graph"): (1, 0, 1),
        (16, "eager"): (1, 0, 0), (16, "graph"): (1, 0, 1),
    }  # fmt: skip
    plans = [plan for plan, *_ in call.workspace.calls.values()]  # type: ignore[attr-defined]
    assert len(plans) == 6 and not any(hasattr(plan, "uncounted") for plan in plans)


def test_a_replay_runs_what_its_capture_called(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    with public.capture(path) as recorder:
        graph = public.count_replays(Graph())
        call(4)  # warms up
        graph.capture_begin("pool", mode="relaxed")
        call(4), call(4), call(8)
        graph.capture_end()
        assert [graph.replay() for _ in range(5)] == ["replayed"] * 5
        assert by_place(recorder.counts()) == {(4, "graph"): (1, 10, 1), (8, "graph"): (0, 5, 1)}
        graph.capture_begin()
        call(8)
        graph.capture_end()
        graph.replay()
        recorder.report(SHAPE, "graph", 100)
    assert counted(path) == {(4, "graph"): (1, 110, 1), (8, "graph"): (0, 6, 1)}
    assert graph.replayed == 6


def test_a_capture_of_a_graph_that_fails_loses_no_count(call: Call, tmp_path: Path) -> None:
    with public.capture(tmp_path / "a.json") as recorder:
        graph = public.count_replays(Graph())
        graph.fails = RuntimeError("out of memory")
        with pytest.raises(RuntimeError, match="out of memory"):
            graph.capture_begin()
        call(4)
        assert by_place(recorder.counts())[4, "graph"][0] == 1


def test_a_graph_stays_as_it_is_where_nothing_is_captured() -> None:
    graph = Graph()
    assert public.count_replays(graph) is graph and vars(graph) == {}
    with pytest.raises(TypeError, match="is no graph to be captured: it has no capture_begin"):
        public.count_replays(object())


def test_selections_count_for_code_that_launches_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    public.use(Selector())
    with public.capture(path):
        for _ in range(3):
            public.select_kernel(SHAPE)
        with pytest.raises(TypeError):
            public.select_kernel("m=4")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="this process is captured into"):
            public.capture(tmp_path / "other.json")
    assert counted(path) == {(4, "graph"): (0, 0, 3)}
    (count,) = read_captures([path])
    assert (count.runs, count.basis) == (3, "selections")


SERVING = """
import sys, tftune
from tftune.models.selector import Selector
assert "tftune.recorder" not in sys.modules
tftune.use(Selector())
for m in (4, 4, 8):
    tftune.select_kernel(tftune.AllGatherGemm(m, 16, 16, 2))
"""


def test_processes_that_the_variable_names_a_file_write_one_each(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    environment = {"TFTUNE_CAPTURE": str(path), "PATH": "/usr/bin"}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", SERVING], env=environment, check=True)
    assert not path.exists() and len([*tmp_path.glob("shapes.*.json")]) == 2
    assert counted(path) == {(4, "graph"): (0, 0, 4), (8, "graph"): (0, 0, 2)}


def test_a_file_is_written_while_it_runs(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    with public.capture(path, every_s=0.01):
        call(4)
        until = time.monotonic() + 30
        while counted(path) == {} and time.monotonic() < until:
            time.sleep(0.01)
        assert counted(path) == {(4, "graph"): (1, 0, 1)}


# What a search makes of it.


def capture(path: Path, *counts: Count) -> Path:
    path.write_text(json.dumps({"capture": 1, "shapes": [count.to_dict() for count in counts]}))
    return path


SMALL, LARGE = AllGatherGemm(64, 512, 1024, 2), AllGatherGemm(4096, 4096, 8192, 2)


def test_what_costs_most_time_comes_first_whatever_runs_most(tmp_path: Path) -> None:
    path = capture(
        tmp_path / "a.json",
        Count(SMALL, "graph", calls=100),
        Count(LARGE, "graph", calls=1, replays=99),
        Count(LARGE, "eager", calls=1),
        Count(AllGatherGemm(64, 512, 1024, 8), "graph", calls=9),
    )
    found = stakes([path], OP, Target.parse("mi300x4"), tmp_path / "none.db")
    assert [(s.count.shape, s.count.mode) for s in found] == [
        (LARGE, "graph"), (SMALL, "graph"), (LARGE, "eager"),
    ]  # fmt: skip
    assert found[0].at_stake_us == 100 * found[0].us and {s.source for s in found} == {"modelled"}
    both = parts(found, 1.0, ("graph", "eager"))
    assert [(part.modes, part.shapes) for part in both] == [
        (("graph",), (LARGE, SMALL)), (("eager",), (LARGE,)),
    ]  # fmt: skip
    assert sum(part.share for part in both) == pytest.approx(1.0)
    assert [part.shapes for part in parts(found, 0.5, ("graph", "eager"))] == [(LARGE,)]
    assert [part.shapes for part in parts(found, 0.01, ("eager",))] == [(LARGE,)]


def test_a_measured_shape_is_expected_as_its_rows_say(tmp_path: Path) -> None:
    shape = AllGatherGemm(64, 3584, 8192, 8)
    path = capture(tmp_path / "a.json", Count(shape, "graph", calls=1))
    (stake,) = stakes([path], OP, Target.parse("h200x8"), tmp_path / "none.db")
    answer = public.load(target="h200x8").select(shape)
    assert (stake.us, stake.source) == (answer.expected_us, "measured")


def test_a_search_tunes_what_was_captured(tftune: Tftune, tmp_path: Path) -> None:
    path = capture(
        tmp_path / "a.json", Count(SMALL, "graph", calls=7), Count(SMALL, "eager", replays=7)
    )
    search = f"search {OP} --captured {path} --on model --target mi300x8 --effort quick"
    ran = tftune(f"{search} --mode graph --variant push --db s.db")
    assert ran.code == 0 and str(SMALL) in ran.out and "eager" not in ran.out
    assert "captured: 2 shapes and modes" in ran.err and "is modelled, not measured" in ran.err
    assert "1 of mode graph are counts of calls alone" in ran.err
    assert refused(tftune(f"{search} --shapes paper"), "leave one out")
    assert refused(tftune(f"search {OP} --captured no.json --on model --target mi300x8"), "no.json")
    assert refused(
        tftune(f"search flash_decode --captured {path} --on model --target mi300x8"),
        "no captured shape is of flash_decode",
        OP,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no capture"),
        ('{"capture": 9, "shapes": []}', "has form 9"),
        ("{}", "lacks 'capture'"),
        ('{"capture": 1, "shapes": [{"op": "x", "shape": "y", "mode": "graph"}]}', "'calls'"),
        (
            '{"capture": 1, "shapes": [{"op": "x", "shape": "y", "mode": "graph", "calls": -1, '
            '"replays": 0, "selections": 0}]}',
            "calls=-1 must be an integer of at least 0",
        ),
    ],
)
def test_a_file_that_is_no_capture_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"a.json is no capture.*{said}|{said}"):
        read_captures([path])


def test_counts_of_processes_are_added() -> None:
    one = Count(SMALL, "graph", calls=1, replays=2)
    assert merged([one, one, Count(SMALL, "eager", selections=1)]) == [
        Count(SMALL, "graph", calls=2, replays=4), Count(SMALL, "eager", selections=1),
    ]  # fmt: skip
