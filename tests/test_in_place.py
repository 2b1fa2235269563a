"""`tftune.compile_pass` measures what a graph asks for: on emulated ranks, with planted speeds and
planted bad days."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dumped
import planted
import pytest
import torch
import torch.distributed as dist
from pass_graphs import PLAIN, plain, targets
from test_warm_up import outcomes_of
from torch._dispatch.python import enable_python_dispatcher

import tftune
from tftune.confirm import memory
from tftune.confirm.memory import Memory, read_kept
from tftune.db import target
from tftune.db.lock import StoreError
from tftune.db.store import read_rows
from tftune.graph_pass import in_place, inductor
from tftune.kernels.all_gather_gemm import AllGatherGemm, host
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.models.selector import Selector
from tftune.tuner.bench.ranks import Ranks
from tftune.tuner.warm_up import contest

SHAPE = AllGatherGemm(16, 32, 64, 2, "fp16", "m", "nk")
SLOW = {"push": "slow", "staged": "slow", "pull": "slow", "push_ce": "slow", "bsp_chunked": "slow"}
FAST = SLOW | {"bsp": "slow", "push": "fast"}


def begun(workspace: Workspace, plants: dict[str, str]) -> inductor.CompilePass:
    """The pass of a job that begins."""
    planted.plant(plants)
    contest.MOST = planted.MOST
    in_place.BUDGET_S = planted.BUDGET_S
    Memory._opened.clear()  # as another process would begin
    tftune.use(Selector())
    return tftune.compile_pass(workspace=workspace, training=False)


def passed(pass_: inductor.CompilePass, text: str = PLAIN) -> dict[str, int]:
    """What is in the graph after the pass."""
    module = dumped.rebuilt(text)
    pass_(module.graph, True)
    module.graph.lint()
    return dict(targets(module))


def starts(workspace: Workspace, plants: list[dict[str, str]]) -> list[Any]:
    """Several in turn: what is in the graph, the lineage, and how many configs were prepared."""
    found = []
    for each in plants:
        planted.PREPARED.clear()
        pass_ = begun(workspace, each)
        found.append((passed(pass_), pass_.uuid(), len(planted.PREPARED), pass_.table()))
        for handle in [m._lock for m in Memory._opened.values() if m._lock]:
            os.close(handle)  # as the end of the process does
    return found


def test_the_first_start_measures_and_the_second_times_nothing() -> None:
    first, second = emulated.run(2, starts, [FAST, SLOW])
    assert first == second or [one[:2] for one in first] == [one[:2] for one in second]
    (graph, key, prepared, table), (again, same, nothing, _) = first
    assert graph == again == {"all_gather_gemm": 1}, table
    assert prepared >= 4 and nothing == 0, "the second start asks the disk"
    assert key == same, "torch's cache is found again"
    (answers,) = memory.folder().glob("*.json")
    assert read_kept(answers)[1].answers["graph", SHAPE].config.variant == "push"
    (rows,) = memory.folder().glob("*.jsonl")
    assert "push" in {config.variant for config in outcomes_of(rows, SHAPE)}


def test_where_bsp_is_faster_the_graph_stays_and_that_is_remembered() -> None:
    for (graph, _, prepared, table), (again, _, nothing, _) in emulated.run(2, starts, [SLOW] * 2):
        assert graph == again == {"collectives": 1} and prepared and not nothing
        assert "measured here by tftune.warm_up: BSP takes" in table


def captured_to_8(workspace: Workspace) -> Any:
    """What a pass measures for an engine that captures up to 8 rows, and which mode each has."""
    pass_ = begun(workspace, FAST)
    pass_.captured_up_to(8)
    graphs = [passed(pass_, plain(a=f"float16 [{rows}, 64]")) for rows in (4, 8)]
    assert pass_.in_place is not None
    shapes = [AllGatherGemm(m, 32, 64, 2, "fp16", "m", "nk") for m in (8, 16)]
    answered = [pass_.in_place.is_answered(shape) for shape in shapes]
    return graphs, answered, {(mode, s.m) for mode, s in pass_.in_place.view.answers}


@pytest.mark.thorough
def test_each_size_is_measured_as_the_engine_runs_it() -> None:
    for graphs, answered, measured in emulated.run(2, captured_to_8):
        assert graphs == [{"all_gather_gemm": 1}] * 2 and answered == [True, True]
        assert measured == {("graph", 8), ("eager", 16)}


def eager_fails(workspace: Workspace) -> Any:
    """The second measurement of one graph fails on every rank."""
    original = tftune.warm_up

    def failing(*given: Any, mode: str, **named: Any) -> Any:
        if mode == "eager":
            raise ValueError("no room")
        return original(*given, mode=mode, **named)

    tftune.warm_up = failing
    try:
        pass_ = begun(workspace, FAST)
        pass_.captured_up_to(8)
        place = pass_.in_place
        assert place is not None
        place.prepare([AllGatherGemm(m, 32, 64, 2, "fp16", "m", "nk") for m in (8, 16)], workspace)
        key = pass_.uuid()
        tftune.use(Selector())
        again = tftune.compile_pass(workspace=workspace, training=False)
        again.captured_up_to(8)
        return {(mode, s.m) for mode, s in place.view.answers}, again.uuid() == key
    finally:
        tftune.warm_up = original


def test_what_was_measured_before_a_failure_is_known_and_remembered() -> None:
    assert emulated.run(2, eager_fails) == [({("graph", 8)}, True)] * 2


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_text(path.read_text()[:200]),
    "edited": lambda path: path.write_text(path.read_text().replace('"push"', '"pull"')),
    "of another version": lambda path: path.write_text(json.dumps({"schema": 99, "sha256": ""})),
    "no JSON": lambda path: path.write_bytes(b"\xff\xfe"),
}


def damaged(workspace: Workspace) -> list[Any]:
    """A start, and one behind each damage."""
    found = starts(workspace, [FAST])
    for damage in DAMAGES.values():
        if workspace.rank == 0:
            (path,) = memory.folder().glob("*.json")
            damage(path)
            (rows,) = memory.folder().glob("*.jsonl")
            rows.write_bytes(rows.read_bytes() + b"{no row\n" + b'{"half')
        dist.barrier()
        found += starts(workspace, [FAST])
    return found


@pytest.mark.thorough
def test_a_file_that_cannot_be_trusted_stops_nobody_and_its_code_is_not_used() -> None:
    """Compiled code of the old answers is found no more, and the rows are not lost."""
    for found in emulated.run(2, damaged):
        for kind, (graph, _, prepared, _) in zip(["", *DAMAGES], found, strict=True):
            assert graph == {"all_gather_gemm": 1} and prepared, kind
        keys = [key for _, key, _, _ in found]
        assert len(set(keys)) == len(keys), "a start found the code of another one"
    (rows,) = memory.folder().glob("*.jsonl")
    assert len({trial.run for trial in read_rows(rows)[1]}) == len(keys)
    assert Path(f"{rows}.damaged").read_bytes() == len(DAMAGES) * b"{no row\n"


def late(workspace: Workspace, away: int) -> tuple[float, dict[str, int], dict[str, int]]:
    """Rank `away` compiles after the others gave up; then all of them compile another graph."""
    in_place.DEADLINE_S = 1.0
    pass_ = begun(workspace, FAST)
    if workspace.rank == away:
        time.sleep(3)
    began = time.monotonic()
    graph = passed(pass_)
    took = time.monotonic() - began
    in_place.DEADLINE_S = 60.0
    return took, graph, passed(pass_)


@pytest.mark.parametrize("away", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_late_rank_costs_a_deadline_and_all_run_bsp(away: int) -> None:
    found = emulated.run(2, late, away)
    for took, graph, later in found:
        assert took < 20 and graph == {"collectives": 1}
        assert later == {"all_gather_gemm": 1}, "once all are there, it is measured"


OTHER = plain(a="float16 [12, 64]")


def different(workspace: Workspace) -> dict[str, int]:
    """Rank 1 compiles another graph."""
    in_place.DEADLINE_S = 1.0
    return passed(begun(workspace, FAST), OTHER if workspace.rank else PLAIN)


def test_ranks_with_different_graphs_run_bsp() -> None:
    assert emulated.run(2, different) == [{"collectives": 1}] * 2


def test_two_jobs_at_once_and_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = memory.Identity("h200x2", {"torch": "2.11.0"}, "", (0, 1), {"all_reduce/bsp": "r1"})
    answer = Selector().select(SHAPE)
    owner = Memory.open(identity)
    owner.keep({("graph", SHAPE): answer}, 4096)
    other = Memory(memory.folder() / identity.name, identity)
    assert other.view.answers == owner.view.answers and other.view.payload_bytes == 4096
    assert other.view.lineage != owner.view.lineage, "what it compiles is its own"
    before = (memory.folder() / f"{identity.name}.json").read_bytes()
    other.keep({("eager", SHAPE): answer})
    assert (memory.folder() / f"{identity.name}.json").read_bytes() == before

    monkeypatch.setenv("TFTUNE_CACHE", "/proc/no-such-folder")
    nowhere = Memory(memory.folder() / identity.name, identity)
    nowhere.keep({("graph", SHAPE): answer})
    assert nowhere.view.answers and nowhere.view.rows.parent.is_dir()


def test_an_answer_that_cannot_be_written_is_not_used_under_its_lineage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    identity = memory.Identity("h200x2", {}, "", (0, 1), {})
    owner = Memory.open(identity)

    def full(*_: object) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr(memory, "replace_file", full)
    with pytest.raises(StoreError, match="no space left"):
        owner.keep({("graph", SHAPE): Selector().select(SHAPE)})
    assert not owner.view.answers


@pytest.mark.parametrize(
    "changed",
    [
        {"target": "h100x2"},
        {"build": {"nccl": "2.29.0"}},
        {"build": {"multicast": "on"}},
        {"links": "GPU0 X PIX"},
        {"ranks": (2, 3)},
        {"revisions": {"all_reduce/one_shot": "r2"}},
    ],
    ids=str,
)
def test_whatever_changes_a_time_has_a_file_of_its_own(changed: dict[str, Any]) -> None:
    identity = memory.Identity("h200x2", {"nccl": "2.28.3"}, "GPU0 X NV18", (0, 1), {})
    assert replace(identity, **changed).name != identity.name
    same = replace(identity, build=dict(identity.build, python="3.13", tftune="9"))
    assert same.name == identity.name


def end(workspace: Workspace) -> None:
    """This rank's process ends at once, without a word to the others."""
    store = dist.distributed_c10d._get_default_store()
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    folder = Path(store.path).parent
    (folder / f"result-{workspace.rank}").write_bytes(pickle.dumps(None))  # it is not waited for
    os._exit(0)


def after_a_death(workspace: Workspace) -> dict[str, int]:
    """Rank 1 ends before it compiles."""
    in_place.DEADLINE_S = 2.0
    pass_ = begun(workspace, FAST)
    if workspace.rank == 1:
        end(workspace)
    return passed(pass_)


def with_a_death(workspace: Workspace) -> dict[str, int]:
    """Rank 1 ends at the first launch of a config."""
    pass_ = begun(workspace, FAST)
    prepare = host.prepare

    def prepared(*call: Any) -> Any:
        plan = prepare(*call)
        return (lambda *_: end(workspace)) if workspace.rank == 1 else plan

    host.prepare = prepared
    return passed(pass_)


@pytest.mark.parametrize(
    "function", [pytest.param(after_a_death, marks=pytest.mark.thorough), with_a_death]
)
def test_a_rank_that_dies_leaves_bsp_to_the_others(function: Any) -> None:
    began = time.monotonic()
    assert emulated.run(2, function)[0] == {"collectives": 1}
    assert time.monotonic() - began < 30


def with_another_torch(workspace: Workspace) -> tuple[dict[str, int], str]:
    real = target.build
    if workspace.rank == 1:
        target.build = lambda: real() | {"torch": "2.99.0"}
    pass_ = begun(workspace, FAST)
    return passed(pass_), pass_.why_idle or ""


def test_ranks_with_different_torch_run_bsp_and_say_so() -> None:
    for graph, why in emulated.run(2, with_another_torch):
        assert graph == {"collectives": 1}
        assert "rank 1 differs from rank 0 in versions" in why and "2.99.0" in why


def dispatched(workspace: Workspace) -> tuple[dict[str, int], list[bool]]:
    """The pass as inductor calls it: with torch's Python dispatcher. And whether ranks spoke under
    it."""
    seen, gather = [], Ranks.gather

    def gathered(self: Ranks, value: Any) -> Any:
        key = torch._C.DispatchKey.PythonDispatcher
        seen.append(torch._C._dispatch_tls_is_dispatch_key_included(key))
        return gather(self, value)

    pass_ = begun(workspace, FAST)
    Ranks.gather = gathered  # type: ignore[method-assign]
    with enable_python_dispatcher():
        return passed(pass_), seen


@pytest.mark.thorough
def test_ranks_do_not_speak_under_the_python_dispatcher() -> None:
    """A collective would keep the GIL there while it waits for a lock of the group, whose owner may
    need the GIL: both ranks of transformers' Llama stood still."""
    for graph, seen in emulated.run(2, dispatched):
        assert graph == {"all_gather_gemm": 1} and seen and not any(seen)
