"""Several artifacts of one operation: the user's own are asked first, layout by layout, then those
that ship."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tftune
from tftune.agreement import asked
from tftune.db.target import Machine, Target
from tftune.models.artifact import SHIPPED, Artifact, digest, parse_artifact, read_artifact
from tftune.models.selector import Selector

OP = "all_gather_gemm"
SHAPE = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)


def changed(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    content = document | fields
    return content | {"sha256": digest(content)}


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SHIPPED / f"{OP}__h200x8.json").read_text())
    return found


@pytest.fixture(scope="module")
def own(shipped: dict[str, Any]) -> dict[str, Any]:
    """An artifact of one layout in one mode: fp16 along K, captured."""
    graph = shipped["modes"]["graph"]
    layouts = [one for one in graph["layouts"] if one["layout"] == SHAPE.named(SHAPE.layout)]
    assert len(layouts) == 1
    modes = {"graph": graph | {"layouts": layouts, "lent": []}}
    return changed(shipped, modes=modes, created="2030-01-01T00:00:00+00:00")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(name: str, document: dict[str, Any]) -> Path:
        (path := tmp_path / name).parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document))
        return path

    return written


def answering(selector: Selector, shape: tftune.AllGatherGemm, mode: str = "graph") -> str:
    found = selector.artifact(shape, mode)
    return found.digest if found else ""


def other_layout(artifact: Artifact, mode: str) -> tftune.AllGatherGemm:
    """A shape of a layout that only the shipped artifact has."""
    layouts = [one for one in artifact.modes[mode].layouts if one != SHAPE.layout]
    return type(SHAPE).from_dict(SHAPE.to_dict() | SHAPE.named(layouts[0]))


def test_the_users_own_answers_for_what_it_has_and_the_shipped_one_for_the_rest(
    own: dict[str, Any], shipped: dict[str, Any], write: Callable[..., Path]
) -> None:
    selector = tftune.load(write("own.json", own), target="h200x8")
    assert answering(selector, SHAPE) == own["sha256"]
    assert answering(selector, SHAPE, "eager") == shipped["sha256"]
    other = other_layout(parse_artifact(shipped), "graph")
    assert answering(selector, other) == shipped["sha256"]
    assert selector.artifacts[OP].digest == own["sha256"]
    assert [one.digest for one in selector.chain.of(OP)] == [own["sha256"], shipped["sha256"]]
    assert selector.artifacts["flash_decode"].target.name == "h200x8"
    assert selector.select(SHAPE, "eager").source == "measured"
    assert selector.shortlist(SHAPE, "eager")[0].variant != "bsp"
    assert selector.choices(SHAPE, "eager") == (selector.select(SHAPE, "eager").config,)
    assert selector.restricted("no").chain.artifacts == selector.chain.artifacts


def test_what_none_has_says_whom_it_asked(own: dict[str, Any], write: Callable[..., Path]) -> None:
    selector = tftune.load(write("own.json", own), target="h200x8")
    reason = selector.select(replace(SHAPE, world=4)).reason
    assert "was never measured for all_gather_gemm on h200x8; only " in reason
    assert reason.endswith("in own.json, and all_gather_gemm__h200x8.json cannot answer, either")


def test_an_artifact_of_another_machine_is_passed_over_where_one_of_this_machine_answers(
    own: dict[str, Any], shipped: dict[str, Any]
) -> None:
    foreign, mine = parse_artifact(changed(own, target="h200x4")), parse_artifact(shipped)
    machine = Machine("h200x8", "sm_90", shipped["build"])
    selector = Selector(foreign, mine, machine=machine)
    assert answering(selector, SHAPE) == shipped["sha256"] and selector.disabled() == {}
    assert selector.select(SHAPE).source == "measured"
    alone = Selector(foreign, machine=machine)
    assert "the artifact is for h200x4" in alone.disabled()[f"{OP}/push"]
    assert alone.identity() != selector.identity()


def test_modelled_times_are_passed_over_unless_they_are_allowed(
    own: dict[str, Any], shipped: dict[str, Any]
) -> None:
    modelled = parse_artifact(changed(own, bench="model", modelled=True))
    mine = parse_artifact(shipped)
    assert answering(Selector(modelled, mine), SHAPE) == shipped["sha256"]
    allowed = Selector(modelled, mine, allow_modelled=True)
    assert allowed.artifact(SHAPE) is modelled


def test_only_what_can_answer_warns(own: dict[str, Any], shipped: dict[str, Any]) -> None:
    mine = parse_artifact(shipped)
    machine = Machine("h200x8", "sm_90", shipped["build"] | {"driver": "1"})
    same = parse_artifact(changed(shipped, created="2030-01-01T00:00:00+00:00"))
    assert len(list(Selector(mine, same, machine=machine).warnings())) == 1
    assert len(list(Selector(parse_artifact(own), mine, machine=machine).warnings())) == 2


def test_a_folder_is_every_artifact_in_it(
    own: dict[str, Any], write: Callable[..., Path], tmp_path: Path
) -> None:
    write("folder/a.json", own)
    write("folder/b.json", changed(own, target="h200x4"))
    write("folder/chip.json", {"target": "h200x8"})
    folder, single = tmp_path / "folder", write("single.json", changed(own, created="2031"))
    assert len(tftune.load(folder).chain.artifacts) == 2
    found = [one.target.name for one in tftune.load(folder, target="h200x4").chain.of(OP)]
    assert found == ["h200x4"] * 2, "its own, and the one that ships"
    several = tftune.load([single, str(folder)])
    assert [one.path for one in several.chain.artifacts] == [
        single, folder / "a.json", folder / "b.json"
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"no artifact of the folder .* is for mi300x8; they are"):
        tftune.load(folder, target="mi300x8")
    write("empty/chip.json", {"target": "h200x8"})
    with pytest.raises(ValueError, match=r"no artifact lies in the folder .*empty"):
        tftune.load(tmp_path / "empty")
    (folder / "b.json").write_text("{")
    with pytest.raises(ValueError, match=r"b\.json is no JSON"):
        tftune.load(folder)


def test_the_variable_goes_before_what_ships_or_hides_it(
    own: dict[str, Any],
    shipped: dict[str, Any],
    write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write("own.json", own)
    monkeypatch.setenv("TFTUNE_ARTIFACTS", f"{path}:{SHIPPED}")
    digests = [one.digest for one in tftune.load(target="h200x8").chain.of(OP)]
    assert digests == [own["sha256"], shipped["sha256"]]
    monkeypatch.setenv("TFTUNE_ARTIFACTS", "none")
    assert tftune.load(target="h200x8").artifacts == {}
    assert len(tftune.load(path, target="h200x8").chain.artifacts) == 1
    monkeypatch.setenv("TFTUNE_ARTIFACTS", "missing.json")
    with pytest.raises(ValueError, match=r"TFTUNE_ARTIFACTS=missing\.json: cannot read"):
        tftune.load(target="h200x8")


def test_a_copy_of_a_shipped_artifact_is_asked_once(tmp_path: Path) -> None:
    (copy := tmp_path / "copy.json").write_bytes((SHIPPED / f"{OP}__h200x8.json").read_bytes())
    assert len(tftune.load(copy, target="h200x8").chain.of(OP)) == 1
    assert read_artifact(copy).digest == tftune.load(target="h200x8").artifacts[OP].digest


@pytest.fixture
def seen(
    shipped: dict[str, Any], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """torch sees the GPUs of this target."""
    machine = Machine(request.param, "sm_90", shipped["build"])
    monkeypatch.setattr("tftune.db.target.here", lambda: machine)
    monkeypatch.setattr("tftune.db.target.detect", lambda: Target.parse(request.param))


def bound_by(ranks: int, target: str | None = None) -> Selector:
    """What `tftune.bind` selects by in a group of so many ranks."""
    selector = asked("tftune.bind", None, None, None, target, False, ranks)
    assert isinstance(selector, Selector)
    return selector


@pytest.mark.parametrize(
    ("seen", "ranks"), [("h200x8", 4), ("h200x1", 8), ("h200x8", 8)], indirect=["seen"]
)
def test_a_group_selects_for_as_many_gpus_as_it_has_ranks(seen: None, ranks: int) -> None:
    """Four ranks on a node of eight, or eight that each see their own GPU alone."""
    selector = bound_by(ranks)
    assert selector.machine is not None and selector.machine.target == f"h200x{ranks}"
    assert {one.target.name for one in selector.chain.artifacts} == {f"h200x{ranks}"}
    assert selector.select(replace(SHAPE, world=ranks)).config.variant != "bsp"
    assert bound_by(ranks, "h200x2").artifacts[OP].target.name == "h200x2"


@pytest.mark.parametrize("seen", ["h200x8"], indirect=True)
def test_a_group_without_an_artifact_selects_bsp_for_its_machine(seen: None) -> None:
    selector = bound_by(3)
    assert selector.bsp_only is None
    reason = selector.select(replace(SHAPE, world=4)).reason
    assert reason.startswith("there is no artifact for all_gather_gemm on h200x3; `tftune.warm_up`")
