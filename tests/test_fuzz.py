"""Bad input, by the thousand: a loader that refuses with one sentence, and a selector that never raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tftune.db.target import Machine
from tftune.db.trial import MODES, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.models.dataset import load
from tftune.models.export import document, provenance
from tftune.models.selector import Selector, digest, parse_artifact, read_artifact
from tftune.models.train import train

OP = "all_gather_gemm"
OFTEN = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
SIZES = st.one_of(st.integers(1, 1 << 14), st.integers(1, 1 << 62))
SHAPES = st.builds(
    lambda m, n, k, world, *words: AllGatherGemm(m * world, n, k * world, world, *words),
    SIZES, SIZES, SIZES, st.integers(1, 64), st.sampled_from(["fp16", "bf16"]), st.sampled_from("km"), st.sampled_from(["kn", "nk"]),
)  # fmt: skip
NEAR = st.builds(lambda m: AllGatherGemm(m, 3584, 8192, 8), st.integers(1, 1 << 14))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(["push", "bsp", "m", "graph", OP]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["variant", "m", "feature", "x"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
MACHINES = st.none() | st.builds(
    Machine, st.sampled_from(["h200x8", "mi300x8", "abacus"]), st.sampled_from(["sm_90", "gfx942"]), st.just({})
)


@pytest.fixture(scope="module")
def content(make_rows: Callable[..., list[Trial]]) -> dict[str, Any]:
    datasets = {mode: load(make_rows(paper(), mode, bench="node"), OP, "h200x8", mode, "node") for mode in MODES}
    return document({mode: train(dataset) for mode, dataset in datasets.items()}, provenance(datasets, {}, {"triton": "3.6.0"}))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every part of a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, part in inside for place in places(part, (*path, name)))]


def changed(content: dict[str, Any], place: tuple[Any, ...], new: Any) -> Any:
    """A copy of the document in which one part is another; `...` takes it out."""
    found = json.loads(json.dumps(content))
    if not place:
        return new
    part = found
    for name in place[:-1]:
        part = part[name]
    if new is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = new
    return found


def answers(selector: Selector, shapes: list[AllGatherGemm]) -> bool:
    """Whether every answer is a config that is possible for its shape, says why, and is given again to an equal shape."""
    chip = next(iter(selector.artifacts.values())).target.chip
    return all(
        (found := selector.select(shape, mode)).reason
        and found.config.variant in SPACE.variants
        and SPACE.why_invalid(shape, found.config, chip) is None
        and selector.select(replace(shape), mode) is found
        for shape in shapes
        for mode in (*MODES, "no mode")
    )


@OFTEN
@given(st.lists(SHAPES | NEAR, min_size=1, max_size=6), MACHINES)
def test_any_shape_on_any_machine_is_answered(content: dict[str, Any], shapes: list[AllGatherGemm], machine: Machine | None) -> None:
    assert answers(Selector(parse_artifact(content), machine=machine), shapes)


@OFTEN
@given(st.data(), JSON | st.just(...))
def test_a_part_that_is_another_is_refused_or_answers(content: dict[str, Any], data: Any, new: Any) -> None:
    """As it may come from another tftune, with a digest that fits: one sentence, or answers that are possible."""
    place = data.draw(st.sampled_from(places(content)))
    try:
        other = changed(content, place, new)
        artifact = parse_artifact(other)
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert answers(
        Selector(artifact, machine=Machine("h200x8", "sm_90", {"triton": "3.6.0"})),
        [AllGatherGemm(m, 3584, 8192, 8) for m in (1, 96, 4096)],
    )


@OFTEN
@given(st.data(), st.sampled_from(["cut", "flip", "insert"]))
def test_a_file_with_a_byte_wrong_is_refused(content: dict[str, Any], tmp_path: Path, data: Any, how: str) -> None:
    text = json.dumps(content).encode()
    at, byte = data.draw(st.integers(1, len(text) - 2)), bytes([data.draw(st.integers(0, 255))])
    bad = {"cut": text[:at], "flip": text[:at] + byte + text[at + 1 :], "insert": text[:at] + byte + text[at:]}[how]
    (path := tmp_path / "a.json").write_bytes(bad)
    try:
        assert read_artifact(path).digest == content["sha256"] == digest(json.loads(bad))  # a space more, the same byte again
    except ValueError as error:
        assert str(path) in str(error) and "\n" not in str(error)


@given(JSON)
def test_any_json_is_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "a.json"
    path.write_text(json.dumps(value))
    with pytest.raises(ValueError, match=r"a\.json"):
        read_artifact(path)
