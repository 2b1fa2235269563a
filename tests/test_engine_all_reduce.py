"""A serving engine's own all-reduce is a form of BSP where its plug-in offers it: measured beside
the libraries', remembered with the engine's version, and called where it won."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
import torch.distributed as dist

import tftune
from tftune.confirm.bench import Here
from tftune.confirm.memory import View
from tftune.engines.vllm import ALLOCATORS, OWN_ALL_REDUCE, CustomAllReduce, offer_all_reduce
from tftune.graph_pass.decide import Judge
from tftune.graph_pass.in_place import InPlace
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.models.selection import Selection
from tftune.models.selector import Selector

ENGINE = Config("bsp", form="engine")
SHAPES = (AllReduce(8, 64, 2), AllReduce(4, 64, 2, norm="rms"), GemmAllReduce(8, 64, 32, 2))
MOST = 4096


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here and in the ranks that a test starts; nothing is offered before."""
    monkeypatch.setenv(OWN_ALL_REDUCE, "1")
    monkeypatch.setattr(engine_all_reduce, "_OFFERS", {})


class CustomAllreduce:
    """What the plug-in needs of vLLM's class. Like that, it is out of place, and knows only memory
    that was registered or copied."""

    made: ClassVar[list[CustomAllreduce]] = []

    def __init__(self, group: Any, device: Any, max_size: int) -> None:
        self.group, self.device, self.max_size = group, device, max_size
        self.world_size, self.fully_connected = 2, False
        self.disabled = self._IS_CAPTURING = False
        self.calls = self.captures = 0
        self.made.append(self)

    def all_reduce(self, x: Any, *, out: Any, registered: bool) -> None:
        assert not registered and not self.disabled
        self.calls += 1
        out.copy_(x)
        dist.all_reduce(out, group=self.group)

    def register_graph_buffers(self) -> None:
        self.captures += 1

    def close(self) -> None:
        self.disabled = True


def offered(workspace: Workspace) -> CustomAllreduce:
    """The all-reduce of an engine that has one, offered by the plug-in."""
    inner = CustomAllreduce(workspace.group, workspace.device, MOST)
    group = SimpleNamespace(
        device_communicator=SimpleNamespace(ca_comm=inner), world_size=workspace.world,
        device_group=workspace.group, cpu_group=workspace.group, device=workspace.device,
    )  # fmt: skip
    offer_all_reduce(group, "9.9")
    return inner


HERE: Any = SimpleNamespace(group=SimpleNamespace(group_name="tp:0"), world=2, device="cpu")
"""What an offer needs of a workspace."""


def slow_library() -> None:
    """Every form of BSP but the engine's takes 20 ms longer."""
    from tftune.kernels.all_reduce import host as sums
    from tftune.kernels.gemm_all_reduce import host as gemms

    for host in (sums, gemms):
        prepare = host.prepare

        def slow(shape: Any, config: Config, *rest: Any, prepare: Any = prepare) -> Any:
            plan = prepare(shape, config, *rest)
            if config == ENGINE:
                return plan
            return lambda *operands: (time.sleep(0.02), plan(*operands))

        host.prepare = slow  # type: ignore[assignment]


def confirmed(workspace: Workspace, rows: Path) -> dict[str, Any]:
    """A warm-up with the engine's form, a call of what it selected, and one when the engine's is
    gone."""
    tftune.use(Selector())
    before = Here.of(workspace, Selector()).identity(workspace)
    inner = offered(workspace)
    after = Here.of(workspace, Selector()).identity(workspace)
    slow_library()
    answers = tftune.warm_up(SHAPES, workspace, 0, rows=rows, budget_s=5.0)
    measured = inner.calls
    x = torch.full((8, 64), 1.0 + workspace.rank, dtype=torch.bfloat16)
    sums = [tftune.ops.all_reduce(x, workspace)[0, 0].item()]
    served = inner.calls
    engine_all_reduce._OFFERS.clear()
    workspace.plans.clear()
    workspace.calls.clear()
    sums.append(tftune.ops.all_reduce(x, workspace)[0, 0].item())
    return {
        "answers": {str(shape): answers[shape].config for shape in SHAPES},
        "reasons": [answers[shape].reason for shape in SHAPES],
        "calls": (measured, served, inner.calls),
        "timed": [(one.disabled, one.calls > 0) for one in CustomAllreduce.made[1:]],
        "sums": sums,
        "builds": (before.build.get("engine"), after.build.get("engine")),
        "names": before.name != after.name,
    }


def test_an_engines_all_reduce_is_measured_remembered_by_name_and_called(tmp_path: Path) -> None:
    for found in emulated.run(2, confirmed, tmp_path / "rows.jsonl"):
        assert set(found["answers"].values()) == {ENGINE}, found["reasons"]
        assert found["timed"] == [(True, True)], "one of its own, closed when all was timed"
        measured, served, afterwards = found["calls"]
        assert measured == 0 and served == afterwards >= 1
        assert found["sums"] == [3.0, 3.0]
        assert found["builds"] == (None, f"vllm 9.9 up to {MOST} bytes") and found["names"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_where_no_engine_offers_one_it_is_no_candidate_and_refused(
    shape: Any, tmp_path: Path
) -> None:
    space = operation(shape.op).space
    assert ENGINE not in (*space.defaults(shape, None), *space.fallbacks(shape))
    assert ENGINE not in set(space.configs(shape))
    emulated.prepare(tmp_path, 2, 1 << 22)
    workspace = emulated.workspace(tmp_path, 0, 2, 1 << 22)
    with pytest.raises(ValueError, match="form=engine needs a serving engine in this process"):
        operation(shape.op).module("host").prepare(shape, ENGINE, workspace)


def test_what_is_too_large_for_it_stays_with_the_libraries() -> None:
    offered(HERE)
    space = operation("all_reduce").space
    for columns, count in ((248, 1), (256, 0)):  # 3968 bytes, and 4096
        listed = space.defaults(AllReduce(8, columns, 2), None)
        assert listed.count(ENGINE) == count
    assert ENGINE not in space.defaults(AllReduce(8, 64, 4), None), "another number of ranks"


def test_what_an_artifact_measured_is_measured_again_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Selection(Config("one_shot"), "measured", "an artifact of this machine")
    monkeypatch.setattr(tftune, "select_kernel", lambda shape, mode: known)
    here = InPlace.__new__(InPlace)
    here.mode, here.view = "graph", View(Path("rows.jsonl"), "")
    others = AllReduce(8, 64, 4), AllReduce(64, 64, 2), AllGatherGemm(8, 64, 64, 2)
    assert all(map(here.is_answered, (*SHAPES, *others)))
    offered(HERE)
    assert not any(map(here.is_answered, SHAPES)) and all(map(here.is_answered, others))
    assert all(map(here.is_unsure, SHAPES)) and not any(map(here.is_unsure, others))
    judge = Judge(SimpleNamespace(generation_bytes=1 << 30), "graph", is_unsure=here.is_unsure)  # type: ignore[arg-type]
    assert "not measured beside the engine's own" in judge._at(SHAPES[0], 0.0).reason
    here.view.answers["graph", SHAPES[0]] = known
    assert here.is_answered(SHAPES[0]) and not here.is_unsure(SHAPES[0])


class Others:
    disabled = False


@pytest.mark.parametrize(
    ("inner", "beside", "variables", "said"),
    [
        (None, {}, {}, None),
        (SimpleNamespace(disabled=True), {}, {}, None),
        (SimpleNamespace(disabled=False, max_size=1), {}, {}, "it has no _IS_CAPTURING"),
        ("whole", {}, {OWN_ALL_REDUCE: "0"}, None),
        ("whole", {"fi_ar_comm": Others()}, {}, "Others comes before it"),
        ("whole", {}, {"VLLM_USE_NCCL_SYMM_MEM": "1"}, "NCCL's symmetric memory comes before it"),
        ("whole", {}, {ALLOCATORS[1]: "expandable_segments:True"}, "memory of expandable segments"),
    ],
)
def test_an_engine_without_it_offers_nothing(
    inner: Any, beside: dict[str, Any], variables: dict[str, str], said: str | None,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if inner == "whole":
        inner = CustomAllreduce(None, None, MOST)
    communicator = SimpleNamespace(ca_comm=inner, **beside)
    offer_all_reduce(SimpleNamespace(device_communicator=communicator), "9.9")
    assert not engine_all_reduce._OFFERS
    assert (said is None) == (not caplog.records) and (said or "") in caplog.text


def failing(workspace: Workspace) -> list[Any]:
    """A capture that fails on rank 1 alone, one that ends on both, and a call behind each."""
    inner = CustomAllreduce(workspace.group, workspace.device, MOST)
    x, found = torch.ones(8), list[Any]()
    for fails in (False, workspace.rank == 1):
        own = CustomAllReduce(inner)
        try:
            with own.capturing():
                if fails:
                    raise MemoryError("planted")
        except (MemoryError, RuntimeError) as error:
            found.append(str(error))
        try:
            own.all_reduce(x, torch.empty(8))
        except RuntimeError as error:
            found.append(str(error))
    return [*found, inner.captures, inner._IS_CAPTURING]


def test_a_capture_that_fails_on_one_rank_is_registered_on_none() -> None:
    one, other = emulated.run(2, failing)
    spoiled = "a capture of vLLM's own all-reduce failed on one of the ranks"
    assert one == ["another rank could not capture vLLM's own all-reduce", spoiled, 1, False]
    assert other == ["planted", spoiled, 1, False]


def test_between_two_shapes_a_form_answers_that_takes_so_many_bytes() -> None:
    offered(HERE)
    selector = Selector()
    for m, form in ((8, "engine"), (32, "library")):
        answer = Selection(Config("bsp", form=form), "measured", "", float(m), float(m))
        selector.confirm(AllReduce(m, 128, 2), "graph", answer)
    forms = [selector.select(AllReduce(m, 128, 2)).config["form"] for m in (12, 16, 24)]
    assert forms == ["engine", "library", "library"]
