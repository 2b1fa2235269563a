"""A node is watched: checks are rows of stage `watch`, which teach nothing; a leaf whose time moves
is a finding, once, until somebody has closed it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_service
import pytest
from command_line import Tftune, refused
from synthetic import exported
from test_verify import BUILD, Fake

from tftune import sentinel
from tftune.db.findings import change, findings
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import EVIDENCE, Failure, Measurement, Outcome, Trial, now
from tftune.kernels.all_gather_gemm import paper
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact, read_artifact
from tftune.models.dataset import load

OP, TARGET = "all_gather_gemm", "h200x8"


class Node(Fake):
    """A node on which every config takes 100 us, but for noise of 0.3 %, times `drift` for those of
    a variant."""

    name, target = "node", Target.parse(TARGET)

    def __init__(self) -> None:
        super().__init__(1.0)
        self.drift = dict[str, float]()
        self._noise = itertools.cycle([1.0, 1.003, 0.998, 1.001, 0.997])

    def measure(self, shape: Shape, config: Config, mode: str, baseline: Config | None) -> Outcome:
        us = 100 * next(self._noise) * self.drift.get(config.variant, 1.0)
        return self.otherwise.get(config.variant) or Measurement((us,) * 9, (100.0,) * 9, 1e-4)

    def conditions(self) -> dict[str, Any]:
        return {}


@pytest.fixture(scope="module")
def artifact(
    make_rows: Callable[..., list[Trial]], tmp_path_factory: pytest.TempPathFactory
) -> Artifact:
    rows = make_rows(paper(), "graph", bench="node") + make_rows(paper(), "eager", bench="node")
    return read_artifact(exported(rows, tmp_path_factory.mktemp("watch") / "a.json", BUILD))


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def check(artifact: Artifact, node: Node, path: Path) -> Callable[[int], list[str]]:
    """check(n): so many checks of one leaf; the variants of the findings that they opened."""
    picked = sentinel.watched(artifact, 1)

    def run(count: int) -> list[str]:
        opened = []
        for _ in range(count):
            assert sentinel.measure(picked, node, path) == 2
            opened += sentinel.look(OP, TARGET, path)[1]
        return [sentinel.variant(finding.series) for finding in opened]

    return run


def test_watched_leaves_are_of_mode_graph(artifact: Artifact) -> None:
    assert {sample.mode for sample in sentinel.watched(artifact, 4)} == {"graph"}
    assert len(sentinel.watched(artifact, 4)) == 4


def test_a_leaf_that_slows_down_is_a_finding_once(
    check: Callable[[int], list[str]], node: Node, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.target.build", lambda: {"driver": "580.1"})
    assert check(20) == []
    node.drift = {"push": 1.05}
    monkeypatch.setattr("tftune.db.target.build", lambda: {"driver": "590.2"})
    assert check(10) == ["push"]
    assert check(5) == []
    with Store.open(path) as store:
        (found,) = findings(store)
        assert found.state == "open" and found.low < 1.05 < found.high and found.checks <= 10
        assert "changed since: driver 580.1 -> 590.2" in found.text
        change(store, found.id, "acknowledged", "the fan", "2026-11-23")
    assert check(3) == []
    with Store.open(path) as store:
        change(store, found.id[:4], "closed", "", now())
        (closed,) = findings(store)
        assert (closed.state, closed.note) == ("closed", "the fan")
        with pytest.raises(ValueError, match=r"was closed at .*; it stays closed"):
            change(store, found.id, "open", "", "")
    assert check(20) == [], "the new times are the baseline"
    node.drift = {"push": 1.0}
    assert check(10) == ["push"], "and back is a change, too"


def test_a_machine_that_slows_down_moves_bsp_too(
    check: Callable[[int], list[str]], node: Node
) -> None:
    assert check(20) == []
    node.drift = {"push": 1.06, "bsp": 1.06}
    assert sorted(check(10)) == ["bsp", "push"]


def test_rows_of_a_watch_are_told_apart_and_teach_nothing(
    check: Callable[[int], list[str]], path: Path
) -> None:
    check(2)
    with Store.open(path, write=False) as store:
        trials, runs = store.trials(), store.runs()
    assert {trial.stage for trial in trials} == {"watch"} and len(trials) == 4 and len(runs) == 2
    assert "watch" not in EVIDENCE
    with pytest.raises(ValueError, match="no"):
        load(trials, OP, TARGET, "graph", "node")


def test_a_leaf_that_fails_is_stored_and_not_judged(
    artifact: Artifact, node: Node, path: Path
) -> None:
    node.otherwise = {"push": Failure("crash", "a rank died")}
    picked = sentinel.watched(artifact, 1)
    assert sentinel.measure(picked, node, path) == 1
    leaves, opened = sentinel.look(OP, TARGET, path)
    assert [sentinel.variant(leaf.series) for leaf in leaves] == ["bsp"] and opened == []
    assert "check 1 of the 12 that make its baseline" in leaves[0].sentence()


def test_checks_begin_at_the_interval_or_at_once_where_one_took_longer() -> None:
    times, slept, told = iter([0.0, 10.0, 60.0, 150.0, 200.0]), list[float](), list[object]()
    found = sentinel.watch(
        lambda: None,
        lambda: ([], []),
        interval_s=60,
        count=3,
        told=lambda *given: told.append(given),
        sleep=slept.append,
        clock=lambda: next(times),
    )
    assert (found, slept, len(told)) == (0, [50.0, 0.0], 3)


# The commands.


@pytest.fixture
def watched(
    artifact: Artifact, node: Node, monkeypatch: pytest.MonkeyPatch, tftune: Tftune
) -> Callable[[str], Any]:
    """watched(options): `tftune verify --watch` of one leaf on that node."""
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: Target.parse(TARGET))
    monkeypatch.setattr("tftune.tuner.bench.node.NodeBench", lambda *_, **__: node)
    monkeypatch.setattr("time.sleep", lambda s: None)
    line = f"verify {OP} --artifact {artifact.path} --leaves 1 --db w.db --watch"
    return lambda options: tftune(f"{line} {options}")


def test_verify_watches_and_findings_are_listed_acknowledged_and_closed(
    watched: Callable[[str], Any], node: Node, tftune: Tftune
) -> None:
    assert watched("--count 20").code == 0
    node.drift = {"push": 0.95}
    ran = watched("--count 9 --interval 30s")
    assert ran.code == 1 and ran.out.startswith("finding ") and "takes 0.9" in ran.out
    assert "-5.0% to its baseline" in ran.err or "-4.9% to its baseline" in ran.err
    ran = tftune("findings --db w.db")
    assert ran.code == 1 and "1 of 1 findings in w.db" in ran.out
    (found,) = json.loads(tftune("findings --db w.db --json").out)
    assert found["state"] == "open" and found["config"]["variant"] == "push"
    ran = tftune(f"findings --db w.db --acknowledge {found['id']} --note driver")
    assert ran.code == 0 and "acknowledged" in ran.out and "driver" in ran.out
    assert tftune(f"findings --db w.db --close {found['id']}").code == 0
    assert json.loads(tftune("findings --db w.db --json").out) == []
    assert json.loads(tftune("findings --db w.db --json --all").out)[0]["state"] == "closed"
    assert refused(tftune("findings --db w.db --close zzz"), "0 findings have an id", found["id"])
    assert refused(tftune("findings --db w.db --close a --acknowledge a"), "give one of them")
    assert refused(watched("--interval soon --count 1"), "--interval 'soon' is no duration")


def test_findings_and_reports_go_to_the_service(
    watched: Callable[[str], Any], node: Node, tftune: Tftune, artifact: Artifact,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TFTUNE_TOKEN", fake_service.TOKEN)
    watched("--count 20")
    node.drift = {"push": 1.06}
    watched("--count 9")
    with fake_service.running() as server:
        assert tftune(f"push --db w.db --url {server.url}").code == 0
        (posted,) = server.posted["/v1/findings"]
        assert (posted["op"], posted["target"], posted["mode"]) == (OP, TARGET, "graph")
        assert "times its baseline" in posted["text"] and posted["at"] and len(server.rows) == 58
        line = f"verify {OP} --artifact {artifact.path} --leaves 2 --out s.json"
        assert tftune(f"{line} --send {server.url}").code in (0, 1)
        (report,) = server.posted["/v1/reports"]
    assert (report["op"], report["target"], len(report["rows"])) == (OP, TARGET, 2)
    assert report["digest"] == artifact.digest and report["node"]
    assert [row["holds"] for row in report["rows"]] == [False, False]


def test_two_findings_may_share_the_beginning_of_an_id(
    check: Callable[[int], list[str]], node: Node, path: Path
) -> None:
    check(20)
    node.drift = {"push": 1.06, "bsp": 1.06}
    check(10)
    with Store.open(path) as store:
        one, other = findings(store)
        store.execute("UPDATE tft_findings SET id = 'ab1' WHERE id = :id", {"id": one.id})
        store.execute("UPDATE tft_findings SET id = 'ab2' WHERE id = :id", {"id": other.id})
        with pytest.raises(ValueError, match="2 findings have an id that begins with 'ab'"):
            change(store, "ab", "closed", "", "")
        with pytest.raises(ValueError, match="state='gone' is not one of open, acknowledged"):
            change(store, "ab1", "gone", "", "")
