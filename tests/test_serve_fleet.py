"""What tools and nodes ask and say: selections, captures, findings."""

from __future__ import annotations

from typing import Any

import pytest
from serving import OP, TARGET, Served, body, placed
from test_serve_artifacts import make_stable

from tftune.db.trial import shape_of
from tftune.models.selector import Selector
from tftune.serve import artifacts
from tftune.verify import measured_shapes

UNMEASURED = "batch=3,q_heads=64,kv_heads=8,head_dim=128,kv_len=5000,world=8"


def stable(served: Served) -> tuple[str, list[str]]:
    """The stable artifact's digest, and shapes that it has measured."""
    made = placed(served)
    make_stable(served, made)
    artifact = artifacts.parsed(served.database, made, OP, TARGET)
    return made, [str(shape) for shape in measured_shapes(artifact, "graph")]


def asked(shapes: list[str], **other: Any) -> dict[str, Any]:
    return {"op": OP, "target": TARGET, "mode": "graph", "shapes": shapes} | other


def test_selections_are_those_of_the_artifact(served: Served) -> None:
    made, shapes = stable(served)
    found = served.post("/v1/select", "read", json=asked([*shapes[:20], UNMEASURED])).json()
    selector = Selector(artifacts.parsed(served.database, made, OP, TARGET))
    for text, answer in zip([*shapes[:20], UNMEASURED], found, strict=True):
        mine = selector.select(shape_of(OP, text), "graph").to_dict()
        assert {name: answer[name] for name in mine} == mine
        assert answer["shape"] == str(shape_of(OP, text))
    assert {each["source"] for each in found[:20]} == {"measured"}
    assert found[-1]["source"] == "interpolated" and found[-1]["reason"]


def test_what_cannot_be_selected_is_refused(served: Served) -> None:
    assert served.post("/v1/select", json=asked([UNMEASURED])).status_code == 404
    stable(served)
    refused = served.post("/v1/select", json=asked([UNMEASURED, "m=1"]))
    assert refused.status_code == 422 and "shapes[1]" in refused.json()["detail"]
    assert served.post("/v1/select", json=asked([UNMEASURED] * 5000)).status_code == 413
    assert served.post("/v1/select", json=asked([], mode="lazy")).status_code == 422
    assert served.post("/v1/select", json=asked([], op="nothing")).status_code == 404
    assert served.post("/v1/select", json=asked([])).json() == []


def capture(name: str, runs: dict[str, int], node: str = "node-1", **other: Any) -> Any:
    kind = other.pop("kind", "calls")
    shapes = [{"op": OP, "shape": shape, kind: count} for shape, count in runs.items()]
    return {"id": name, "target": TARGET, "node": node, "shapes": shapes} | other


def test_captures_of_a_fleet_are_added_and_say_what_is_measured(served: Served) -> None:
    _, (first, *_) = stable(served)
    served.post("/v1/captures", json=capture("a", {first: 10, UNMEASURED: 1}))
    served.post("/v1/captures", json=capture("a", {first: 30, UNMEASURED: 2}))  # sent again
    served.post("/v1/captures", json=capture("b", {first: 5}, "node-2", kind="replays"))
    found = served.get(f"/v1/captures/{OP}/{TARGET}").json()
    by_shape = {each["shape"]: each for each in found["shapes"]}
    assert by_shape[first]["counts"] == {"calls": 30, "replays": 5}
    assert by_shape[first]["source"] == "measured"
    assert by_shape[UNMEASURED]["counts"] == {"calls": 2}
    times = {shape: each["time_us"] for shape, each in by_shape.items()}
    assert found["time_us"] == pytest.approx(sum(times.values()))
    assert found["measured_share"] == pytest.approx(times[first] / sum(times.values()))
    selections = served.post("/v1/select", json=asked([first])).json()
    assert times[first] == pytest.approx(35 * selections[0]["expected_us"])


def test_a_capture_as_the_client_sends_it(served: Served) -> None:
    """Without a target, which the node's rows say, and without an id: its content is one."""
    row = {"op": OP, "shape": UNMEASURED, "mode": "eager", "calls": 0, "replays": 0}
    given = {"capture": 1, "node": "node-1", "shapes": [row | {"selections": 4}]}
    refused = served.post("/v1/captures", "rows", json=given)
    assert refused.status_code == 422 and "target" in refused.json()["detail"]
    served.push(body(1), "node-1")
    for _ in range(2):
        assert served.post("/v1/captures", "rows", json=given).json() == {"shapes": 1}
    (found,) = served.get(f"/v1/captures/{OP}/{TARGET}").json()["shapes"]
    assert found["counts"] == {"selections": 4} and found["runs"] == 4


def test_captures_without_an_artifact_have_no_time(served: Served) -> None:
    served.post("/v1/captures", json=capture("a", {UNMEASURED: 3}))
    found = served.get(f"/v1/captures/{OP}/{TARGET}").json()
    assert (found["measured_share"], found["unknown"]) == (None, 3)
    assert served.post("/v1/captures", json=capture("b", {"m=1": 3})).status_code == 422
    assert served.get(f"/v1/captures/{OP}/h200x2").json()["shapes"] == []


def test_a_finding_is_opened_once_acknowledged_and_closed(served: Served) -> None:
    given = {"op": OP, "target": TARGET, "node": "node-1", "text": "5 % slower", "at": "2026"}
    made = served.post("/v1/findings", "rows", json=given).json()
    assert served.post("/v1/findings", "rows", json=given).json() == made
    assert made["state"] == "open"
    at = f"/v1/findings/{made['id']}"
    assert served.post(f"{at}/acknowledge").json()["state"] == "acknowledged"
    assert served.post("/v1/findings", "rows", json=given).json()["state"] == "acknowledged"
    assert served.post(f"{at}/close").json()["state"] == "closed"
    assert served.post(f"{at}/acknowledge").status_code == 409
    (found,) = served.get("/v1/findings?state=closed").json()
    assert (found["text"], found["node"], found["by"]) == ("5 % slower", "node-1", "test admin")
    assert served.get("/v1/findings?state=open").json() == []
    assert served.post("/v1/findings/none/close").status_code == 404


@pytest.mark.parametrize("change", [
    {"target": "../../../out/px8"}, {"target": "h200x8\x1b[31m"}, {"node": "a\x1b[2J"},
    {"op": "a\nb"},
])  # fmt: skip
@pytest.mark.parametrize("route", ["findings", "captures"])
def test_what_nodes_say_names_no_path_and_no_control_character(
    served: Served, route: str, change: dict[str, str]
) -> None:
    shape = {"op": OP, "shape": UNMEASURED} | {k: v for k, v in change.items() if k == "op"}
    more = {"findings": {"text": "slower"}, "captures": {"capture": 1, "shapes": [shape]}}[route]
    given = {"op": OP, "target": TARGET, **more, **change}
    assert served.post(f"/v1/{route}", json=given).status_code == 422
