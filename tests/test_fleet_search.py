"""Shapes are dealt to nodes, each is searched once whatever node is lost, and the result is that of
one node that searches each shape alone."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import killed
import pytest
from command_line import OP, Tftune, refused

from tftune.cli import fleet_search
from tftune.cli.fleet_search import Dealer, Found, Job, Lost, apart, disagreement
from tftune.cli.search_job import find
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.pipeline.bench_factory import find_target, make_bench
from tftune.tuner.bench.benches import Bench
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import Rounds
from tftune.tuner.search.search import EFFORTS, SILENT, Effort

SHAPES = [AllGatherGemm(m, 512, 1024, 2) for m in (16, 64, 256, 512, 1024, 4096)]
OPTIONS: dict[str, Any] = {
    "effort": "tiny", "sampler": "mixed", "variants": ("push",), "seed": 3, "pool": 40,
}  # fmt: skip


class Fakes:
    """Nodes that answer at once, in the order of asking; `lost`: those that are gone, and after how
    many answers."""

    def __init__(self, **lost: int) -> None:
        self.left, self.asked = lost, list[tuple[str, Any]]()

    def start(self, node: str, what: str, *given: Any) -> object:
        self.asked.append((node, given[-1] if given else what))
        return node, given[-1] if given else what, len(self.asked)

    def first(self, names: Collection[object]) -> object:
        return min(names, key=lambda name: name[2])  # type: ignore[index, no-any-return]

    def result(self, name: Any) -> Any:
        node, shape, _ = name
        if node in self.left:
            self.left[node] -= 1
            if self.left[node] < 0:
                raise Lost(f"node {node} is lost")
        return Found(node, shape, b"", ())


def dealt(nodes: Fakes, names: str) -> tuple[list[Found], list[str]]:
    found, told = list[Found](), list[str]()
    Dealer(nodes, list(names), told.append).deal("job", SHAPES, found.append)
    return found, told


def test_every_shape_is_dealt_once() -> None:
    found, told = dealt(Fakes(), "abc")
    assert [one.shape for one in found] == SHAPES and told == []
    assert {one.node for one in found} == {"a", "b", "c"}


def test_the_shape_of_a_lost_node_goes_to_another() -> None:
    nodes = Fakes(b=1)
    found, told = dealt(nodes, "abc")
    assert sorted(one.shape.m for one in found) == [shape.m for shape in SHAPES]  # type: ignore[attr-defined]
    assert len(told) == 1 and told[0].startswith("node b is lost; m=")
    assert len(nodes.asked) == len(SHAPES) + 1


def test_without_a_node_it_ends_and_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="no node is left, and 3 of 6 shapes are not searched"):
        dealt(Fakes(a=2, b=1), "ab")


def test_who_is_lost_before_the_search_is_left_out() -> None:
    told: list[str] = []
    dealer = Dealer(Fakes(a=0), ["a", "b"], told.append)
    assert [node for node, _ in dealer.ask_all("describe", "model")] == ["b"] == dealer.idle
    assert told == ["node a is lost"]


def test_nodes_that_agree_are_not_named_and_one_that_is_off_is() -> None:
    times = {name: {"x": 10.0, "y": 20.0, "z": 5.0} for name in "abc"}
    assert list(disagreement(times)) == ["3 nodes agree within 0.0% on 3 times that all measured"]
    times["b"] = {pair: 1.04 * us for pair, us in times["b"].items()} | {"w": 1.0}
    first, named = disagreement(times)
    assert "within 4.0% on 3 times" in first
    assert named.startswith("node b takes 1.040 times as long as the others")
    times["b"] = {pair: us / 1.04 for pair, us in times["a"].items()}
    assert "node b takes 0.962 times" in list(disagreement(times))[1]
    assert len(list(disagreement({"a": {"x": 1.0}, "b": {"x": 1.05}}))) == 3, "of two, which?"
    assert apart({"a": {"x": 1.0}}) == apart({"a": {"x": 1.0}, "b": {"y": 1.0}}) == {}
    assert "is not known" in next(disagreement({"a": {}, "b": {"y": 1.0}}))


# On the model bench.


def outcomes(trials: list[Trial]) -> list[tuple[Any, ...]]:
    """What must not depend on the nodes."""
    return sorted((str(t.shape), t.mode, str(t.config), t.stage, str(t.outcome)) for t in trials)


def one_node(shape: Shape, path: Path) -> list[Trial]:
    """The rows of a search of this shape alone, by the code of `tftune search`."""
    with Store.open(path) as store:
        bench = make_bench("model", operation(OP), find_target("model", "mi300x8"), [shape], store)
        find(OP, [shape], ("graph",), bench, store, SILENT, OPTIONS)
        return store.trials()


def test_a_node_finds_what_a_search_of_the_shape_alone_finds(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EFFORTS, "tiny", Effort(12, 2, "for tests"))
    job = Job(
        OP, "mi300x8", "model", ("graph",), OPTIONS, None, fleet_search.packed_rows(store, OP)
    )
    found = fleet_search.search_shape(job, SHAPES[1], "here")
    added, known = fleet_search.take_rows(store, found.rows)
    assert added >= 12 and known == 0 and fleet_search.take_rows(store, found.rows) == (0, added)
    assert outcomes(store.trials()) == outcomes(one_node(SHAPES[1], tmp_path / "one.db"))
    assert found.lines[0].winner.shape == SHAPES[1]
    again = fleet_search.search_shape(
        Job(**(vars(job) | {"rows": fleet_search.packed_rows(store, OP)})), SHAPES[1], "here"
    )
    with Store.open(tmp_path / "again.db") as other:
        assert fleet_search.take_rows(other, again.rows) == (0, 0), "nothing is measured twice"
    times = fleet_search.measure_sample(job, SHAPES[:2])
    assert len(times) > 3 and min(times.values()) > 0


@pytest.mark.parametrize("option", ["--portfolio", "--inject hang=0.1", "--chip a.json"])
def test_what_is_of_one_node_is_refused_with_ray(option: str, tftune: Tftune) -> None:
    on = "node" if "inject" in option else "model"
    line = f"search {OP} --on {on} --target mi300x8 --ray auto {option}"
    assert refused(tftune(line), "--ray searches on many nodes", option.split()[0])


def test_without_ray_it_says_what_to_install(
    tftune: Tftune, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tftune.cli.search_command.find_spec", lambda name: None)
    ran = tftune(f"search {OP} --on model --target mi300x8 --ray auto --db r.db")
    assert refused(ran, "this needs ray", "'.[fleet]'") and not (tmp_path / "r.db").exists()


# On emulated ranks.

SMALL = [AllGatherGemm(m, n, 256, 2, shard="m") for m, n in ((8, 40), (8, 72), (12, 40))]
EVERY: dict[str, Any] = {
    "effort": "exhaustive", "sampler": "mixed", "variants": ("push", "pull"), "seed": 3, "pool": 2,
}  # fmt: skip
"""Their times are noise, so every config of a small pool is tried: no time decides which."""


def on_emulated_ranks(job: Job, shapes: Sequence[Shape], store: Store) -> Bench:
    return NodeBench(killed.EMULATED, 1 << 16, emulated=True, rounds=Rounds(1, 2, 2))


def kinds(trials: list[Trial]) -> list[tuple[str, ...]]:
    """What was tried, and what came of it but its time. Finalists are chosen by times."""
    return sorted(
        (str(t.shape), t.mode, str(t.config), type(t.outcome).__name__)
        for t in trials
        if t.stage == "search"
    )


# On Ray.


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Three nodes of one core each, which import what tests do, and a head without any."""
    pytest.importorskip("ray", reason="ray is not installed; `make fleet` installs it")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    found.workers = [found.add_node(num_cpus=1) for _ in range(3)]
    found.wait_for_nodes()
    yield found
    found.shutdown()


def lose_one(cluster: Any, told: list[str], after: str) -> threading.Thread:
    """Kill a node once a sentence that begins so is told; the thread ends then."""

    def lose() -> None:
        while not any(said.startswith(after) for said in told):
            time.sleep(0.02)
        cluster.remove_node(cluster.workers.pop(), allow_graceful=False)

    found = threading.Thread(target=lose, daemon=True)
    found.start()
    return found


def one_by_one(job: Job, shapes: Sequence[Shape], folder: Path) -> list[Trial]:
    """The rows of one node that searches these shapes."""
    found = list[Trial]()
    for number, shape in enumerate(shapes):
        with Store.open(folder / f"alone-{number}.db") as store:
            fleet_search.take_rows(store, fleet_search.search_shape(job, shape, "here").rows)
            found += store.trials()
    return found


def with_one_lost(
    cluster: Any, shapes: Sequence[Shape], target: Target, after: str, folder: Path, **job: Any
) -> tuple[list[Trial], list[Trial], list[str]]:
    """The rows of a search on the nodes, of which one is killed once `after` is told; those of one
    node; and what was told."""
    from tftune.cli.ray_nodes import search

    told: list[str] = []
    with Store.open(folder / "fleet.db") as store:
        rows = fleet_search.packed_rows(store, OP)
        asked = Job(OP, target.name, modes=("graph",), budget_s=None, rows=rows, **job)
        killer = lose_one(cluster, told, after)
        began = time.monotonic()
        lines = search(cluster.address, asked, shapes, store, target, told.append)
        took_s = time.monotonic() - began
        killer.join()
        trials = store.trials()
    assert [line.shape for line in lines] == list(shapes)
    assert sum("is lost" in said for said in told) >= 1, told
    assert len({trial.run for trial in trials}) == len(shapes), "each shape was done once"
    began = time.monotonic()
    alone = one_by_one(asked, shapes, folder)
    alone_s = time.monotonic() - began
    print(f"RESULT fleet {asked.on=} {alone_s=:.1f} {took_s=:.1f} cores={os.cpu_count()}")
    return trials, alone, told


@pytest.mark.drill
def test_nodes_of_emulated_ranks_try_what_one_node_tries(cluster: Any, tmp_path: Path) -> None:
    after = "3 nodes agree"  # each begins its one shape then
    trials, alone, _ = with_one_lost(
        cluster, SMALL, killed.EMULATED, after, tmp_path, on="ranks", options=EVERY,
        bench=on_emulated_ranks,
    )  # fmt: skip
    assert kinds(trials) == kinds(alone) and len(kinds(alone)) >= 4 * len(SMALL)


@pytest.mark.drill
def test_three_nodes_of_which_one_is_killed_find_what_one_finds(
    cluster: Any, tmp_path: Path
) -> None:
    trials, alone, told = with_one_lost(
        cluster, SHAPES, find_target("model", "mi300x8"), "1 of", tmp_path, on="model",
        options=OPTIONS | {"effort": "quick"},
    )  # fmt: skip
    assert any(said.startswith("3 nodes agree within 0.0%") for said in told), told
    assert outcomes(trials) == outcomes(alone)


def test_a_cluster_that_does_not_answer_is_named_and_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By a stand-in for Ray, whose own `init` tries for minutes."""
    from tftune.cli.ray_nodes import connect

    silent = SimpleNamespace(init=lambda **_: time.sleep(60))
    monkeypatch.setitem(sys.modules, "ray", silent)
    monkeypatch.setattr("tftune.client.wait.SAID_S", 0.1)
    monkeypatch.setattr("tftune.cli.ray_nodes.LIMIT_S", 0.5)
    with pytest.raises(
        ValueError, match=r"a:6379 does not answer \(0\.5 s\).*ray status --address"
    ):
        connect("a:6379")
    assert caplog.messages == ["waits for the Ray cluster at a:6379; gives up after 0.5 s"]
