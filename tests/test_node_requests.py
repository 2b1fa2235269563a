"""What the node bench asks of its ranks: verification of timed calls, deadlines, dropped graphs.

The ranks are scripted, so that each request and each deadline can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.space import Config
from tftune.tuner.bench import clock
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import Deadlines, Rounds
from tftune.tuner.bench.worker import Rank

SHAPE = AllGatherGemm(7, 40, 66, 2)
BSP, _, PUSH, *_, PULL = SPACE.defaults(SHAPE)
TOLERANCE = 1e-3
DEADLINES = Deadlines(time=7.0)


class ScriptedWorld:
    """Two ranks that answer at once. On the ranks in `at` the timed calls of the configs in `wrong`
    compute wrong numbers, while their checks, which run before, are right; those of the configs in
    `unchecked` are wrong, too."""

    def __init__(
        self,
        wrong: tuple[Config, ...] = (),
        unchecked: tuple[Config, ...] = (),
        at: tuple[int, ...] = (0, 1),
    ) -> None:
        self.wrong, self.unchecked, self.at, self.alive = wrong, unchecked, at, True
        self.requests: list[tuple[str, tuple[Any, ...], float]] = []

    def request(self, method: str, arguments: tuple[Any, ...], deadline_s: float) -> list[Any]:
        self.requests.append((method, arguments, deadline_s))
        answers: dict[str, Callable[[], Any]] = {
            "check": lambda: (9.0 if arguments[1] in self.unchecked else 1e-4, TOLERANCE),
            "verify": lambda: (9.0 if self._timed_last() in self.wrong else 0.0, TOLERANCE),
            "time": lambda: [[10.0] * arguments[3] for _ in arguments[1]],
        }
        answer = answers.get(method, lambda: None)()
        right = (0.0, TOLERANCE) if method in ("check", "verify") else answer
        return [answer if rank in self.at else right for rank in range(2)]

    def _timed_last(self) -> Config:
        configs: list[Config] = self.of("time")[-1][1]
        return configs[-1]

    def kill(self) -> None:
        self.alive = False

    def of(self, method: str) -> list[tuple[Any, ...]]:
        return [arguments for name, arguments, _ in self.requests if name == method]


Made = Callable[..., NodeBench]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Made:
    """bench(*worlds): a bench on these worlds, each used until it is killed."""

    def make(*worlds: ScriptedWorld) -> NodeBench:
        target, rounds = Target.parse("h200x2"), Rounds(2, 4, 6)
        made = NodeBench(target, 1 << 20, emulated=True, rounds=rounds, deadlines=DEADLINES)
        alive = lambda shape: next(world for world in worlds if world.alive)  # noqa: E731
        monkeypatch.setattr(made, "_ranks", alive)
        return made

    return make


@pytest.mark.parametrize("stage", ["search", "final"])
def test_a_config_whose_timed_calls_compute_wrong_numbers_is_wrong(bench: Made, stage: str) -> None:
    """A captured graph may hold less than the checked call did."""
    world, fresh = ScriptedWorld((PUSH,)), ScriptedWorld((PUSH,))
    node = bench(world, fresh)
    outcome = node.measure(SHAPE, PUSH, "graph", BSP, stage=stage)
    assert isinstance(outcome, Failure) and outcome.kind == "wrong" and not world.alive
    assert node.measure(SHAPE, PUSH, "eager", BSP) == outcome and not fresh.of("time")
    assert isinstance(node.measure(SHAPE, PULL, "graph", BSP), Measurement)


@pytest.mark.parametrize("at", [0, 1])
def test_what_one_rank_computes_wrong_is_wrong(bench: Made, at: int) -> None:
    for faults in ({"wrong": (PUSH,)}, {"unchecked": (PUSH,)}):
        world = ScriptedWorld(**faults, at=(at,))
        outcome = bench(world).measure(SHAPE, PUSH, "graph", BSP)
        assert isinstance(outcome, Failure) and outcome.kind == "wrong", outcome
        assert f"on ranks [{at}] is above 0.001" in outcome.text


def test_a_finalist_whose_timed_calls_compute_wrong_numbers_is_wrong(bench: Made) -> None:
    world, second, third = (ScriptedWorld((PULL,)) for _ in range(3))
    node = bench(world, second, third)
    bsp, push, pull = node.compare(SHAPE, [PUSH, PULL], "graph", BSP)
    assert isinstance(bsp, Measurement) and isinstance(push, Measurement)
    assert isinstance(pull, Failure) and pull.kind == "wrong"


def test_each_finalist_is_timed_alone_once_more_before_it_is_verified(bench: Made) -> None:
    """Finalists share their outputs: what the last one computed says nothing of the others."""
    world = ScriptedWorld()
    bench(world).compare(SHAPE, [PUSH, PULL], "graph", BSP)
    kinds = "time", "verify"
    asked = [(name, arguments) for name, arguments, _ in world.requests if name in kinds]
    alone = [
        step for config in (BSP, PUSH, PULL)
        for step in (("time", (SHAPE, [config], "graph", 1)), ("verify", (SHAPE,)))
    ]  # fmt: skip
    assert asked == [("time", (SHAPE, [BSP, PUSH, PULL], "graph", 6)), *alone]


def test_the_deadline_of_timing_is_for_two_configs_and_grows_with_more(bench: Made) -> None:
    world = ScriptedWorld()
    node = bench(world)
    node.measure(SHAPE, PUSH, "graph", BSP)
    node.compare(SHAPE, [PUSH, PULL], "graph", BSP)
    seconds = {len(asked[1]): seconds for name, asked, seconds in world.requests if name == "time"}
    assert seconds == {1: 7.0, 2: 7.0, 3: 10.5}


def test_the_graph_of_each_fused_config_is_dropped_and_bsp_keeps_its_own(bench: Made) -> None:
    """A search measures hundreds of graphs, and each holds memory of the GPU."""
    world = ScriptedWorld()
    node = bench(world)
    node.measure(SHAPE, BSP, "graph", None)
    node.measure(SHAPE, PUSH, "graph", BSP)
    assert world.of("forget") == [(SHAPE, PUSH, "graph")]
    node.compare(SHAPE, [PUSH, PULL], "eager", BSP)
    assert world.of("forget")[1:] == [(SHAPE, PUSH, "eager"), (SHAPE, PULL, "eager")]


RIGHT = torch.full((7, 40), 2.0)


def rank(emulated: bool, **plans: Any) -> Rank:
    """A rank with these plans and two sets of operands in turn, of which the last is the output."""
    made: Any = Rank.__new__(Rank)
    made.spec, made._shape = SimpleNamespace(emulated=emulated), SHAPE
    made.barrier = SimpleNamespace(wait=lambda: None)
    by_config = {(SHAPE, Config(name)): plan for name, plan in plans.items()}
    made.workspace = SimpleNamespace(plans=by_config, operands={})
    made._operands = [(torch.zeros(1), torch.zeros(1), RIGHT.clone()) for _ in range(2)]
    made._references = SimpleNamespace(results=[RIGHT], tolerance=TOLERANCE)
    made._graphs = {}
    served: Rank = made
    return served


def right(a: Any, b: Any, c: torch.Tensor) -> None:
    c.copy_(RIGHT)


def nothing(a: Any, b: Any, c: torch.Tensor) -> None: ...


@pytest.mark.parametrize("plan", [right, nothing])
def test_what_timed_calls_did_not_write_is_no_result(plan: Any) -> None:
    """The output holds the right result of an earlier config until it is overwritten."""
    served = rank(True, push=plan)
    served.time(SHAPE, [Config("push")], "graph", 2)
    assert (served.verify(SHAPE)[0] <= TOLERANCE) == (plan is right)


@pytest.mark.parametrize("plan", [right, nothing])
def test_eager_calls_are_verified_by_what_the_last_config_wrote(
    plan: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rounds(plans: Any, operands: Any, count: int, barrier: Any) -> list[list[float]]:
        return [[1.0] * count for _ in plans]

    monkeypatch.setattr(clock, "eager_rounds", rounds)
    served = rank(False, bsp=nothing, push=plan)
    served.time(SHAPE, [Config("bsp"), Config("push")], "eager", 2)
    assert (served.verify(SHAPE)[0] <= TOLERANCE) == (plan is right)


def test_a_rank_drops_the_graph_that_it_is_told_to_forget() -> None:
    served: Any = rank(True)
    served._graphs = {Config("push"): 1, Config("bsp"): 2}
    served.forget(SHAPE, Config("push"), "eager")
    assert len(served._graphs) == 2
    served.forget(SHAPE, Config("push"), "graph")
    assert served._graphs == {Config("bsp"): 2}


def test_what_belongs_to_a_shape_is_freed_with_it() -> None:
    """A graph that was kept would read freed operands, and be compared with another shape."""
    served: Any = rank(True, push=right)
    served._graphs = {Config("push"): 1}
    kept = served._operands, served._references
    served._use(SHAPE)
    assert (served._operands, served._references) == kept and len(served._graphs) == 1
    served._use(AllGatherGemm(8, 40, 66, 2))
    assert served._operands is None is served._references
    assert served._graphs == {} == served.workspace.plans
