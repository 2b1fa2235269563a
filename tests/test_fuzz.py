"""Bad input, by the thousand: a loader that refuses with one sentence, a selector that never raises, and commands that then work."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tftune import doctor
from tftune.db.target import Machine
from tftune.db.trial import MODES, Trial
from tftune.diff import diff
from tftune.explain import explain
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.chips import H200
from tftune.kernels.flash_decode import HEAD_DIMS, FlashDecode
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.source import kernel_hash
from tftune.kernels.space import MAX_WORLD
from tftune.models.dataset import load
from tftune.models.export import Provenance, document, provenance, stamped
from tftune.models.selector import Selector, digest, parse_artifact, read_artifact
from tftune.models.train import train
from tftune.models.tree import Leaf, Split, Tree, own_leaf

OP, BUILD = "all_gather_gemm", {"triton": "3.6.0", "driver": "580.1"}
OFTEN = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
SIZES = st.one_of(st.integers(1, 1 << 14), st.integers(1, 1 << 62), st.just(10**400))
WORLDS = st.integers(1, 64)
GEMM = AllGatherGemm(4096, 3584, 8192, 8)
DECODE = FlashDecode(8, 64, 8, 128, 8192, 8)
ANY = {
    OP: st.builds(
        lambda m, n, k, world, *words: AllGatherGemm(m * world, n, k * world, world, *words),
        SIZES, SIZES, SIZES, WORLDS, st.sampled_from(["fp16", "bf16"]), st.sampled_from("km"), st.sampled_from(["kn", "nk"]),
    ),
    "flash_decode": st.builds(
        lambda batch, heads, group, head_dim, pages, world, output, page: FlashDecode(
            batch, heads * group * world, heads * world, head_dim, pages * max(page, 1), world, "fp16", output, page
        ),
        SIZES, SIZES, st.integers(1, 16), st.sampled_from(HEAD_DIMS), SIZES, WORLDS, st.sampled_from(["all", "heads"]),
        st.sampled_from([0, 16]),
    ),
}  # fmt: skip
NEAR = {
    OP: st.builds(lambda m: replace(GEMM, m=m), st.integers(1, 1 << 14)),
    "flash_decode": st.builds(lambda batch, n: replace(DECODE, batch=batch, kv_len=n), st.integers(1, 32), st.integers(1, 1 << 17)),
}
ASKED = {
    OP: [replace(GEMM, m=m) for m in (1, 96, 4096, 10**400)],
    "flash_decode": [replace(DECODE, kv_len=n) for n in (64, 3000, 8192, 60_000, 10**400)],
}
WORDS = ("push", "bsp", "fused", "m", "kv_len", "graph", "LEAST", OP, "flash_decode")
FIELDS = ("variant", "m", "feature", "x", "build", "triton", "at", "leaves", "shapes", "selector", "unknown", "geomean_regret", "groups")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from([10**400, "x" * 300, *WORDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=6,
)
MACHINES = st.none() | st.builds(
    Machine, st.sampled_from(["h200x8", "mi300x8", "abacus"]), st.sampled_from(["sm_90", "gfx942"]), st.sampled_from([{}, BUILD])
)
HERE = Machine("h200x8", "sm_90", BUILD)


def decode_tree(mode: str) -> Tree:
    """A leaf for each variant, and a shape with an answer of its own: by hand, since no rows of this operation are made for tests."""
    op = operation("flash_decode")
    first = {config.variant: op.space.complete(config) for config in reversed(op.space.defaults(DECODE, H200))}
    low, source = {name: None if name == "bsp" else 1.25 for name in first}, {name: kernel_hash(op.name, name) for name in first}
    leaves = [Leaf(c, first["bsp"], 3, 1.1, low[v], f"{v} is the fastest", source[v], c if low[v] else None) for v, c in first.items()]
    root: Leaf | Split = leaves[0]
    cuts = [("kv_len", 128), ("cache_mb", 16.5), ("kv_len", 2999), ("groups", 64), ("kv_len", 1 << 14), ("kv_len", 1 << 16)]
    for leaf, (feature, threshold) in zip(leaves[1:], cuts, strict=True):
        root = Split(feature, threshold, root, leaf)
    measured = {name: (value,) for name, value in DECODE.to_dict().items()} | {"batch": (1, 8), "kv_len": (64, 8192, 65_536)}
    own = own_leaf(first["fused"], first["bsp"], 1.25, source["fused"])
    return Tree(op.name, mode, root, tuple(sorted(measured.items())), ((replace(DECODE, kv_len=64).key[1:], own),))


@pytest.fixture(scope="module", params=[OP, "flash_decode"])
def content(request: pytest.FixtureRequest, make_rows: Callable[..., list[Trial]]) -> dict[str, Any]:
    """An artifact with everything that one may have, of each operation."""
    report = {"shapes": 9, "selector": {"geomean_regret": 1.1, "unknown": 2}, "groups": {ASKED[request.param][0].layer: [1.1, 1.2]}}
    if request.param == OP:
        datasets = {mode: load(make_rows(paper(), mode, bench="node"), OP, "h200x8", mode, "node") for mode in MODES}
        trees, origin = {mode: train(dataset) for mode, dataset in datasets.items()}, provenance(datasets, {}, BUILD)
    else:
        trees = {mode: decode_tree(mode) for mode in MODES}
        origin = Provenance(request.param, "h200x8", "node", BUILD, {"fused": kernel_hash(request.param, "fused")}, 9, "0")
    return stamped(document(trees, replace(origin, held_out=dict.fromkeys(MODES, report))), BUILD, 4)


def parts(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Every part of a document by its path."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {path: value} | {place: found for name, part in inside for place, found in parts(part, (*path, name)).items()}


@st.composite
def steps(draw: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    """The path to a part, each field being as likely as those beside it, however much they hold."""
    path: tuple[Any, ...] = ()
    while isinstance(value, dict | list) and value and (not path or draw(st.integers(0, 3))):
        path += (draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value)))),)
        value = value[path[-1]]
    return path


@st.composite
def mutants(draw: Callable[[Any], Any], content: dict[str, Any]) -> Any:
    """The document with one part taken out, or something else in its place: anything, or what is elsewhere and of its kind."""
    every = parts(content)
    place = draw(steps(content) | st.sampled_from(list(every)))
    alike = [part for part in every.values() if type(part) is type(every[place])]
    new, found = draw(st.just(...) | JSON | st.sampled_from(alike)), json.loads(json.dumps(content))
    if not place:
        return None if new is ... else new
    part = found
    for name in place[:-1]:
        part = part[name]
    if new is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = new
    return found


def answers(selector: Selector, shapes: list[Shape]) -> bool:
    """Whether every answer says why, is given again to an equal shape, and is a config that is possible for its shape: BSP for more ranks
    than a node has, for which none may be."""
    chip = next(iter(selector.artifacts.values())).target.chip
    return all(
        (found := selector.select(shape, mode)).reason
        and found.config.variant in (space := operation(shape.op).space).variants
        and (
            space.why_invalid(shape, found.config, chip) is None or (shape.to_dict()["world"] > MAX_WORLD and found.config.variant == "bsp")
        )
        and selector.select(replace(shape), mode) is found
        for shape in shapes
        for mode in (*MODES, "no mode")
    )


@OFTEN
@given(st.data(), MACHINES)
def test_any_shape_on_any_machine_is_answered(content: dict[str, Any], data: Any, machine: Machine | None) -> None:
    shapes = data.draw(st.lists(ANY[content["op"]] | NEAR[content["op"]], min_size=1, max_size=6))
    assert answers(Selector(parse_artifact(content), machine=machine), shapes)


@OFTEN
@given(st.data())
def test_a_part_that_is_another_is_refused_or_answers(content: dict[str, Any], data: Any) -> None:
    """As it may come from another tftune, with a digest that fits: one sentence, or answers that are possible."""
    try:
        artifact = parse_artifact(data.draw(mutants(content)))
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert answers(Selector(artifact, machine=HERE), ASKED[content["op"]])


@OFTEN
@given(st.data(), MACHINES)
def test_a_signed_file_is_refused_or_all_commands_work(
    content: dict[str, Any], make_rows: Callable[..., list[Trial]], tmp_path: Path, data: Any, machine: Machine | None
) -> None:
    """`doctor`, `explain` and `diff` read fields that no answer needs."""
    other = data.draw(mutants(content))
    (path := tmp_path / "a.json").write_text(json.dumps(other | {"sha256": digest(other)} if isinstance(other, dict) else other))
    path.with_suffix(".py").write_bytes(b"# Written by tftune from \xff")
    told = doctor._artifact(path, machine, "there is no GPU to be seen")
    assert json.dumps(told) and all(doctor._artifact_sentences([told]))
    try:
        artifact = read_artifact(path)
    except ValueError as error:
        assert "\n" not in str(error) and str(path) in str(error) and told["why_not"] == [str(error)]
        return
    sound, rows = parse_artifact(content), make_rows(paper()[::9], bench="node") if content["op"] == OP else []
    for difference in (diff(artifact, sound), diff(sound, artifact)):
        assert json.dumps(difference.to_dict()) and all(difference.sentences())
    for mode in MODES:
        for shape in ASKED[content["op"]]:
            why = explain(Selector(artifact, allow_modelled=True, machine=machine), shape, mode, rows)
            assert json.dumps(why.to_dict()) and all(why.sentences())


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
