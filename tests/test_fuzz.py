"""Bad input, by the thousand: a loader that refuses with one sentence, a selector that never
raises, and commands that then work."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from synthetic import SHAPES, decodes, rows, shape
from synthetic import content as written

from tftune import doctor
from tftune.db.target import Machine
from tftune.db.trial import MODES
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import MAX_WORLD
from tftune.kernels.flash_decode import HEAD_DIMS, FlashDecode
from tftune.models.artifact import digest, parse_artifact, read_artifact
from tftune.models.export import stamped
from tftune.models.selector import Selector
from tftune.report.diff import diff
from tftune.report.explain import explain

OP, BUILD = "all_gather_gemm", {"triton": "3.6.0", "driver": "580.1"}
OFTEN = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
SIZES = st.one_of(st.integers(1, 1 << 14), st.integers(1, 1 << 62), st.just(10**400))
WORLDS = st.integers(1, 64)
GEMM = shape(4096, 3072, 3072)
DECODE = FlashDecode(8, 64, 8, 128, 8192, 2)
ANY = {
    OP: st.builds(
        lambda m, n, k, world, *words: AllGatherGemm(m * world, n, k * world, world, *words),
        SIZES, SIZES, SIZES, WORLDS, st.sampled_from(["fp16", "bf16"]), st.sampled_from("km"),
        st.sampled_from(["kn", "nk"]),
    ),
    "flash_decode": st.builds(
        lambda batch, heads, group, head_dim, pages, world, output, page: FlashDecode(
            batch, heads * group * world, heads * world, head_dim, pages * max(page, 1), world,
            "fp16", output, page
        ),
        SIZES, SIZES, st.integers(1, 16), st.sampled_from(HEAD_DIMS), SIZES, WORLDS,
        st.sampled_from(["all", "heads"]),
        st.sampled_from([0, 16]),
    ),
}  # fmt: skip
NEAR = {
    OP: st.builds(
        lambda m, n, k: shape(2 * m, n, k),
        st.integers(1, 1 << 13),
        st.integers(1600, 10300),
        st.integers(1600, 10300),
    )
    | st.builds(
        lambda m, dtype: replace(GEMM, m=2 * m, n=4096, k=4096, dtype=dtype),
        st.integers(1, 1 << 13),
        st.sampled_from(["fp16", "bf16"]),
    ),
    "flash_decode": st.builds(
        lambda batch, n: replace(DECODE, batch=batch, kv_len=n),
        st.integers(1, 32),
        st.integers(1, 1 << 17),
    ),
}
ASKED = {
    OP: [
        SHAPES[1],
        shape(96),
        *(replace(GEMM, m=m) for m in (2, 96, 4096, 10**400)),
        replace(SHAPES[2], dtype="fp16"),
    ],
    "flash_decode": [replace(DECODE, kv_len=n) for n in (64, 3000, 8192, 60_000, 10**400)],
}
WORDS = ("push", "bsp", "fused", "m", "kv_len", "graph", "always push", "bf16", OP, "flash_decode")
FIELDS = (
    "variant", "m", "x", "build", "triton", "at", "leaves", "shapes", "selector", "unknown",
    "geomean_regret", "groups", "layout", "rule",
)  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from([10**400, "x" * 300, *WORDS]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=6,
)
MACHINES = st.none() | st.builds(
    Machine,
    st.sampled_from(["h200x8", "mi300x8", "abacus", "h200x2"]),
    st.sampled_from(["sm_90", "gfx942"]),
    st.sampled_from([{}, BUILD]),
)
HERE = Machine("h200x2", "sm_90", BUILD)


class Content(dict[str, Any]):
    """A document that a failing example does not print."""

    def __repr__(self) -> str:
        return f"<artifact of {self.get('op')!r:.80}>"


@pytest.fixture(scope="module", params=[OP, "flash_decode"])
def content(request: pytest.FixtureRequest) -> dict[str, Any]:
    """An artifact with everything that one may have, of each operation: two modes, loans, trees, a
    rule, reports and a stamp."""
    report = {
        "shapes": 9,
        "selector": {"geomean_regret": 1.1, "unknown": 2},
        "groups": {ASKED[request.param][0].layer: [1.1, 1.2]},
    }
    if request.param == OP:
        lent = [replace(place, dtype="fp16") for place in SHAPES[:12]]
        found = written([*rows(), *rows(mode="eager"), *rows(lent)], BUILD)
    else:
        found = written([*decodes(16), *decodes(8, "eager")], BUILD)
    found["modes"]["eager"]["layouts"][0]["rule"] = "nearest measured shape"
    layout = found["modes"]["graph"]["layouts"][0]["layout"]
    title = ",".join(f"{name}={value}" for name, value in layout.items())
    held_out = {mode: {title: report} for mode in MODES}
    return Content(stamped(found | {"held_out": held_out}, BUILD, 4))


def parts(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Every part of a document by its path."""
    found = {path: value}
    if isinstance(value, list):
        value = dict(enumerate(value))
    for name, part in value.items() if isinstance(value, dict) else ():
        found |= parts(part, (*path, name))
    return found


@st.composite
def steps(draw: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    """The path to a part, each field being as likely as those beside it, however much they hold."""
    path: tuple[Any, ...] = ()
    while isinstance(value, dict | list) and value and (not path or draw(st.integers(0, 3))):
        names = sorted(value) if isinstance(value, dict) else range(len(value))
        path += (draw(st.sampled_from(names)),)
        value = value[path[-1]]
    return path


@st.composite
def mutants(draw: Callable[[Any], Any], content: dict[str, Any]) -> Any:
    """The document with one part taken out, or something else in its place: anything, or what is
    elsewhere and of its kind. A failing example says which part."""
    every = parts(content)
    place = draw(steps(content) | st.sampled_from(list(every)))
    alike = [part for part in every.values() if type(part) is type(every[place])]
    new = draw(st.just(...) | JSON | st.sampled_from(alike))
    found = Content(json.loads(json.dumps(content)))
    note(f"{place} is {new!r:.300}")
    if not place:
        return None if new is ... else new
    part: Any = found
    for name in place[:-1]:
        part = part[name]
    if new is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = new
    return found


def answers(selector: Selector, shapes: list[Shape]) -> bool:
    """Whether every answer says why, is given again to an equal shape, and is a config that is
    possible for its shape: BSP for more ranks than a node has, for which none may be."""
    chip = next(iter(selector.artifacts.values())).target.chip
    return all(
        (found := selector.select(shape, mode)).reason
        and found.config.variant in (space := operation(shape.op).space).variants
        and (
            space.why_invalid(shape, found.config, chip) is None
            or (shape.to_dict()["world"] > MAX_WORLD and found.config.variant == "bsp")
        )
        and selector.select(replace(shape), mode) is found
        for shape in shapes
        for mode in MODES
    )


@OFTEN
@given(st.data(), MACHINES)
def test_any_shape_on_any_machine_is_answered(
    content: dict[str, Any], data: Any, machine: Machine | None
) -> None:
    shapes = data.draw(st.lists(ANY[content["op"]] | NEAR[content["op"]], min_size=1, max_size=6))
    assert answers(Selector(parse_artifact(content), machine=machine), shapes)


@OFTEN
@given(st.data())
def test_a_part_that_is_another_is_refused_or_answers(content: dict[str, Any], data: Any) -> None:
    """As it may come from another tftune, with a digest that fits: one sentence, or answers that
    are possible."""
    try:
        artifact = parse_artifact(data.draw(mutants(content)))
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert answers(Selector(artifact, machine=HERE), ASKED[content["op"]])


@OFTEN
@given(st.data(), MACHINES)
def test_a_signed_file_is_refused_or_all_commands_work(
    content: dict[str, Any], tmp_path: Path, data: Any, machine: Machine | None
) -> None:
    """`doctor`, `explain` and `diff` read fields that no answer needs."""
    other = data.draw(mutants(content))
    signed = other | {"sha256": digest(other)} if isinstance(other, dict) else other
    (path := tmp_path / "a.json").write_text(json.dumps(signed))
    told = doctor._artifact(path, machine, "there is no GPU to be seen")
    assert json.dumps(told) and all(doctor._artifact_sentences([told]))
    try:
        artifact = read_artifact(path)
    except ValueError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        assert told["why_not"] == [str(error)]
        return
    sound, trials = parse_artifact(content), rows(SHAPES[:2]) if content["op"] == OP else decodes(2)
    for difference in (diff(artifact, sound), diff(sound, artifact)):
        assert json.dumps(difference.to_dict()) and all(difference.sentences())
    selector = Selector(artifact, allow_modelled=True, machine=machine)
    for mode in MODES:
        for asked in ASKED[content["op"]]:
            why = explain(selector, asked, mode, trials)
            assert json.dumps(why.to_dict()) and all(why.sentences())


@OFTEN
@given(st.data(), st.sampled_from(["cut", "flip", "insert"]))
def test_a_file_with_a_byte_wrong_is_refused(
    content: dict[str, Any], tmp_path: Path, data: Any, how: str
) -> None:
    text = json.dumps(content).encode()
    at, byte = data.draw(st.integers(1, len(text) - 2)), bytes([data.draw(st.integers(0, 255))])
    bad = {
        "cut": text[:at],
        "flip": text[:at] + byte + text[at + 1 :],
        "insert": text[:at] + byte + text[at:],
    }[how]
    (path := tmp_path / "a.json").write_bytes(bad)
    try:
        # a space more, the same byte again
        assert read_artifact(path).digest == content["sha256"] == digest(json.loads(bad))
    except ValueError as error:
        assert str(path) in str(error) and "\n" not in str(error)


@given(JSON)
def test_any_json_is_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "a.json"
    path.write_text(json.dumps(value))
    with pytest.raises(ValueError, match=r"a\.json"):
        read_artifact(path)
