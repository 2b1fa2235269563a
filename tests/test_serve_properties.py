"""Whatever is sent to whichever route, the service has an answer: never 500."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import OP, TARGET, Served, body, opened, placed, report
from test_serve_artifacts import make_stable

DIGESTS = st.sampled_from(["0" * 64, "digest"])
WORDS = st.one_of(
    st.sampled_from([OP, "all_gather_gemm", TARGET, "stable", "graph", "3.6", "close", "1", "",
                     "../..", "\x00", "%00", "\ud800", "a" * 300, "<b>", "'; DROP TABLE rows"]),
    st.text(max_size=20),
)  # fmt: skip
SHAPES = st.sampled_from(
    ["batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=2048,world=8", "m=1", "m=\x00",
     "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=2147483647,world=8", "\ud800", ""]
)  # fmt: skip
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([2**63, 2**53, -1, 10**400]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS, SHAPES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.fixed_dictionaries({}, optional={
    "op": st.sampled_from([OP, "x", "\x00"]) | VALUES,
    "target": st.sampled_from([TARGET, "\x00", "h" * 201]) | VALUES,
    "mode": st.sampled_from(["graph", "eager"]) | VALUES,
    "stage": st.sampled_from(["stable", "canary", "candidate"]) | VALUES,
    "shapes": st.lists(SHAPES | st.fixed_dictionaries(
        {"op": st.just(OP) | VALUES, "shape": SHAPES}, optional={"calls": NUMBERS | VALUES}
    ), max_size=3) | VALUES,
    "digest": DIGESTS | VALUES, "signature": st.sampled_from(["AAAA", "A" * 86 + "=="]) | VALUES,
    "node": WORDS | VALUES, "text": WORDS | VALUES, "shape": SHAPES | VALUES, "id": WORDS | VALUES,
    "rows": st.lists(st.fixed_dictionaries({
        "shape": SHAPES, "mode": st.just("graph"), "holds": st.booleans(),
        "promised": NUMBERS, "speedup": NUMBERS | st.none(),
    }), max_size=4) | VALUES,
    "bench": st.sampled_from(["node", "model"]) | VALUES, "build": WORDS | VALUES,
})  # fmt: skip
ODD_QUERY = st.dictionaries(
    st.sampled_from(["op", "target", "build", "shape", "after", "limit", "stage", "a", "b", "state",
                     "digest", "bench"]) | WORDS,
    WORDS | SHAPES | DIGESTS | st.integers().map(str), max_size=3,
)  # fmt: skip
SHAPE = "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=2048,world=8"
RIGHT_QUERY = {"op": OP, "target": TARGET, "digest": "digest", "shape": SHAPE, "a": "digest",
               "b": "digest"}  # fmt: skip
RIGHT = {
    **report("digest"), "op": OP, "target": TARGET, "mode": "graph", "text": "slower",
    "signature": "A" * 86 + "==", "shape": SHAPE,
}  # fmt: skip
"""Right for every route but for `shapes` and `stage`, whose fields differ."""


@st.composite
def bodies(draw: Any) -> Any:
    """A right body with some fields changed, or anything."""
    shapes = draw(st.sampled_from([[SHAPE], [{"op": OP, "shape": SHAPE, "calls": 2}]]))
    stage = draw(st.sampled_from(["stable", "canary", "candidate"]))
    right = {**RIGHT, "shapes": shapes, "stage": stage}
    changes = draw(FIELDS)
    kept = draw(st.integers(0, 2))
    few = dict(list(changes.items())[:kept])
    return draw(st.sampled_from([right, {**right, **few}, {**right, **few}, changes])) | {}


@st.composite
def queries(draw: Any) -> dict[str, str]:
    return {**draw(st.sampled_from([RIGHT_QUERY, RIGHT_QUERY, {}])), **draw(ODD_QUERY)}


PAGES = ("/", "/operation", "/artifacts", "/artifact", "/shape", "/findings", "/nodes", "/api")


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)]
)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, str, list[Any]]]:
    """A service with something in each table, a digest that it has, and its routes."""
    with opened(request.param, tmp_path_factory.mktemp("any")) as served:
        served.push(body(3))
        made = placed(served)
        make_stable(served, made)
        yield served, made, served.routes() + [("GET", path) for path in PAGES]


def hold(filled: tuple[Served, str, list[Any]], data: Any) -> None:
    """One request that may be anything, and one that is nearly right."""
    served, digest, routes = filled
    method, path = data.draw(st.sampled_from(routes))
    while "{" in path:
        before, _, rest = path.partition("{")
        name, _, after = rest.partition("}")
        known = {"op": OP, "target": TARGET}.get(name, "1")
        known = data.draw(st.sampled_from(["close", "acknowledge"])) if name == "action" else known
        word = data.draw(st.sampled_from([known, known, known, None]))
        word = data.draw(WORDS) if word is None else word
        path = before + quote(word.encode(errors="replace"), safe="") + after
    text = json.dumps(data.draw(bodies() | VALUES)).replace(
        '"digest": "digest"', f'"digest": "{digest}"'
    )
    content = (
        data.draw(st.just(text.encode()) | st.binary(max_size=50)) if method == "POST" else None
    )
    query = {k: v.replace("digest", digest) for k, v in data.draw(queries()).items()}
    query = {
        k.encode(errors="replace").decode(): v.encode(errors="replace").decode()
        for k, v in query.items()
    }
    headers = {"content-type": "application/json"}
    if data.draw(st.booleans()):
        headers["x-tftune-node"] = data.draw(st.sampled_from(["a", "b" * 300, "c\x7f<"]))
    answer = served.ask(method, path, content=content, params=query, headers=headers)
    if takes := re.search(r"it takes: ([a-z, ]+)", answer.text):
        query = {name: word for name, word in query.items() if name in takes[1].split(", ")}
        answer = served.ask(method, path, content=content, params=query, headers=headers)
    assert answer.status_code < 500, (method, path, query, content, answer.text)
    if answer.status_code >= 400 and answer.headers["content-type"] == "application/json":
        assert isinstance(answer.json()["detail"], str)


COUNTS = 120, pytest.param(1500, marks=pytest.mark.thorough)


def many(count: int, hold: Callable[[Any], None]) -> None:
    """As many examples, each of which must hold."""

    @settings(max_examples=count, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def holds(data: Any) -> None:
        hold(data)

    holds()


@pytest.mark.parametrize("count", COUNTS)
def test_no_request_is_an_error_of_the_service(
    filled: tuple[Served, str, list[Any]], count: int
) -> None:
    many(count, lambda data: hold(filled, data))


ROWS = body(3).splitlines()


def changed(data: Any) -> bytes:
    """An upload with one thing changed: a value of a row, a byte, or the order of its lines."""
    lines = list(ROWS)
    place = data.draw(st.integers(0, len(lines) - 1))
    row = json.loads(lines[place])
    (kind,) = row
    name = data.draw(st.sampled_from(sorted(row[kind])))
    row[kind][name] = data.draw(VALUES)
    lines[place] = json.dumps(row).encode()
    if data.draw(st.booleans()):
        lines = data.draw(st.permutations(lines))
    text = b"\n".join(lines)
    cut = data.draw(st.integers(0, len(text)))
    return data.draw(st.sampled_from([text, text[:cut], text[:cut] + b"\xff" + text[cut:]]))


@pytest.mark.parametrize("count", COUNTS)
def test_no_upload_is_an_error_of_the_service(
    filled: tuple[Served, str, list[Any]], count: int
) -> None:
    def hold(data: Any) -> None:
        assert filled[0].push(changed(data)).status_code in (200, 409, 422)

    many(count, hold)


def test_a_planted_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("sqlite", tmp_path) as served:
        monkeypatch.setattr("tftune.serve.views.nodes", lambda database: 1 / 0)
        assert served.get("/nodes").status_code == 500
