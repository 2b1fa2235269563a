"""A tree means the same as JSON, as a running function and as a module: at every threshold, and one step beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.registry import OPS
from tftune.kernels.source import kernel_hash
from tftune.kernels.space import Config
from tftune.models import plain
from tftune.models.export import Provenance, document, export, write
from tftune.models.features import names, vector
from tftune.models.packed import unpack
from tftune.models.selector import SHIPPED, Selector, parse_artifact, read_artifact
from tftune.models.tree import Leaf, Split, Tree, own_leaf

OP = "all_gather_gemm"
BSP = Config("bsp", form="gather_copy")
PUSHES = Config("push", block_m=64), Config("push", block_m=128)
SIZES = st.integers(1, 1 << 17)
SHAPES = st.builds(
    lambda m, n, k, world, *words: AllGatherGemm(m * world, n, k * world, world, *words),
    SIZES, SIZES, SIZES, st.sampled_from([2, 4]), st.sampled_from(["fp16", "bf16"]), st.sampled_from("km"), st.sampled_from(["kn", "nk"]),
)  # fmt: skip
MODULE = Provenance(OP, "h200x4", "node", {"triton": "3.6.0"}, {}, 1, "0")


def features(shape: AllGatherGemm) -> dict[str, float]:
    return dict(zip(names(OP), vector(OP, shape), strict=True))


@st.composite
def trees(draw: Callable[[Any], Any], shapes: list[AllGatherGemm], depth: int = 4) -> Any:
    """A tree whose thresholds are values that these shapes have, or one step beside them; its leaves are numbered."""
    numbers = iter(range(1 << depth))

    def node(left: int) -> Any:
        if not left or draw(st.integers(0, 5)) == 0:
            otherwise = draw(st.sampled_from([None, *PUSHES]))
            return Leaf(Config("push", block_m=64), BSP, 1, 1.0, 1.5, f"{next(numbers)}: 1.50 times", "x", otherwise)
        feature = draw(st.sampled_from(names(OP)))
        value = features(draw(st.sampled_from(shapes)))[feature]
        beside = draw(st.sampled_from([value, math.nextafter(value, -math.inf), math.nextafter(value, math.inf), value - 1, value + 1]))
        return Split(feature, beside, node(left - 1), node(left - 1))

    return Tree(OP, "graph", node(depth), ())


@given(st.data())
def test_json_function_and_module_agree_at_every_threshold(data: Any) -> None:
    shapes = data.draw(st.lists(SHAPES, min_size=1, max_size=8))
    shapes += [replace(s, m=s.m + step * s.world) for s in shapes for step in (-1, 1) if s.m + step * s.world > 0]
    own = {shape.key[1:]: own_leaf(PUSHES[number % 2], BSP, 1.5, str(number)) for number, shape in enumerate(shapes[::3])}
    tree = replace(data.draw(trees(shapes)), own=tuple(own.items()) if data.draw(st.booleans()) else ())
    content = json.loads(json.dumps(document({"graph": tree}, MODULE)))
    again, module = unpack(content["trees"]["graph"]), dict[str, Any]()
    exec(plain.module(content), module)
    find, leaves = plain.compiled(tree), list(tree.answers())
    for shape in shapes:
        number = find(shape)
        assert number is not None and number == module["graph"](shape)
        answer = tree.answer(shape.key[1:], features(shape))[0]
        assert leaves[number] == answer == again.answer(shape.key[1:], features(shape))[0]
        assert answer == own.get(shape.key[1:], answer) or not tree.own
        named = [module["CONFIGS"][place] for place in module["ANSWERS"]["graph"][number]]
        assert named == [config.to_dict() for config in (answer.config, answer.otherwise) if config is not None]


@given(SHAPES, st.sampled_from(["m", "n", "k"]), st.sampled_from([-1, 0, 1]))
def test_the_function_turns_away_what_the_selector_calls_far(shape: AllGatherGemm, name: str, step: int) -> None:
    """The hull is written twice, as ifs and as sentences: they end at the same integer."""
    content = parse_artifact(document(dict.fromkeys(["graph"], HULL), MODULE))
    selector, edge = Selector(content, check_source=False), {"m": (32, 16384), "n": (256, 4096), "k": (512, 16384)}[name]
    for value in (*edge, shape.m):
        try:
            near = replace(shape, **{"m": 64, "n": 512, "k": 8192, "world": 4, name: value + step * (4 if name == "k" else 1)}, shard="k")
        except ValueError:
            continue
        assert (
            (plain.compiled(HULL)(near) is None)
            == (selector.select(near).source == "fallback")
            == bool(selector._why_not(content, near, "graph"))
        )


HULL = Tree(OP, "graph", Leaf(BSP, BSP, 1, 1.0, None, "BSP is measured", "x"), (
    ("b_layout", ("kn", "nk")), ("dtype", ("fp16",)), ("k", (1024, 8192)), ("m", (64, 8192)), ("n", (512, 2048)), ("shard", ("k", "m")),
    ("world", (4,)),
))  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_every_feature_is_one_expression_and_means_what_its_lambda_says(op: str) -> None:
    texts, shape = plain.expressions(op), AllGatherGemm(48, 328, 1056, 4, "bf16", "m", "nk")
    assert tuple(texts) == names(op)
    if op == OP:
        assert [float(eval(text, {"s": shape, **vars(math)})) for text in texts.values()] == list(vector(op, shape))


def test_a_feature_that_needs_more_than_the_shape_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one/features.py").write_text('FEATURES: dict = {"tall": ("tall", lambda s: helper(s.m))}')
    (tmp_path / "two/features.py").write_text('FEATURES: dict = {"tall": ("tall", helper)}')
    monkeypatch.setattr(plain, "ROOT", tmp_path)
    with pytest.raises(ValueError, match="the feature 'tall' of one uses 'helper'; it may use the shape s"):
        plain.expressions("one")
    with pytest.raises(ValueError, match="the feature 'tall' of two is not written as one lambda of the shape s"):
        plain.expressions("two")


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (replace(HULL, root=Split("m", math.inf, HULL.root, HULL.root)), "the threshold of 'm' is inf"),
        (replace(HULL, root=Split("moon", 1.0, HULL.root, HULL.root)), "asks for the feature 'moon'"),
        (replace(HULL, measured=(("m) or print(1", (1,)),)), r"says that 'm\) or print\(1' was measured"),
        (replace(HULL, measured=(("m", ()),)), r"says that 'm' was measured at \(\)"),
        (replace(HULL, measured=(("LEAST", (1,)),)), r"says that 'LEAST' was measured"),
    ],
)
def test_what_is_no_tree_of_this_tftune_is_refused(tree: Tree, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        plain.compiled(tree)


@pytest.fixture(scope="module")
def written(make_rows: Callable[..., list[Trial]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tftune.models.dataset import load
    from tftune.models.export import provenance
    from tftune.models.train import train

    dataset = load(make_rows(paper(), bench="node"), OP, "h200x8", "graph", "node")
    return export(
        {"graph": train(dataset)}, tmp_path_factory.mktemp("a") / "a.json", provenance({"graph": dataset}, {}, {"triton": "3.6.0"})
    )


def test_the_module_answers_alone_and_refuses_what_it_was_not_timed_on(written: Path) -> None:
    module: dict[str, Any] = {}
    exec(written.with_suffix(".py").read_text(), module)
    artifact, shape = read_artifact(written), AllGatherGemm(m=4096, n=3584, k=8192, world=8)
    selector, mine = Selector(artifact), {variant: kernel_hash(OP, variant) for variant in SPACE.variants}
    assert module["SHA256"] == artifact.digest
    assert module["choose"](shape, "graph", "h200x8", mine, "3.6.1") == selector.select(shape).config.to_dict()
    for arguments in (
        (shape, "eager", "h200x8", mine, "3.6.1"), (shape, "graph", "h200x4", mine, "3.6.1"), (shape, "graph", "h200x8", {}, "3.6.1"),
        (shape, "graph", "h200x8", mine, "3.7.0"), (replace(shape, world=2), "graph", "h200x8", mine, "3.6.1"),
        (replace(shape, m=1 << 20), "graph", "h200x8", mine, "3.6.1"),
    ):  # fmt: skip
        assert module["choose"](*arguments) is None


def test_a_modelled_module_answers_only_when_allowed(written: Path) -> None:
    module: dict[str, Any] = {}
    exec(plain.module(json.loads(written.read_text()) | {"modelled": True}), module)
    shape, mine = AllGatherGemm(m=4096, n=3584, k=8192, world=8), {variant: kernel_hash(OP, variant) for variant in SPACE.variants}
    assert module["choose"](shape, "graph", "h200x8", mine, "3.6.0") is None
    assert module["choose"](shape, "graph", "h200x8", mine, "3.6.0", allow_modelled=True)["variant"] != "bsp"


def test_a_measured_module_that_does_not_say_its_triton_answers_nothing(written: Path) -> None:
    content, shape = json.loads(written.read_text()), AllGatherGemm(m=4096, n=3584, k=8192, world=8)
    mine = {variant: kernel_hash(OP, variant) for variant in SPACE.variants}
    for build, modelled, fused in (({}, False, False), ({"triton": ""}, False, False), ({}, True, True), ({"triton": "3.6"}, True, True)):
        module: dict[str, Any] = {}
        exec(plain.module(content | {"build": build, "modelled": modelled}), module)
        found = [module["choose"](shape, "graph", "h200x8", mine, triton, allow_modelled=True) for triton in ("3.6.0", "")]
        assert (bool(found[0]), bool(found[1])) == (fused, fused and not build)


def test_a_knob_of_numbers_and_words_has_its_place_in_a_module() -> None:
    """As a file of another tftune may have it: what it says is stale, and doctor still holds it against its module."""
    leaves = (Leaf(config, BSP, 1, 1.0, 1.5, "push is the fastest", "x") for config in PUSHES)
    content, module = document({"graph": replace(HULL, root=Split("m", 96.0, *leaves))}, MODULE), dict[str, Any]()
    for group in content["trees"]["graph"]["configs"]:
        group["values"] = [["wide" if value == 128 else value for value in values] for values in group["values"]]
    exec(plain.module(content), module)
    assert [config["block_m"] for config in module["CONFIGS"]] == [64, "wide"]


def test_a_file_of_somebody_else_is_not_replaced(written: Path, tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("print()")
    with pytest.raises(ValueError, match=r"would replace .*setup.py, which tftune did not write; name another place with --out"):
        write(json.loads(written.read_text()), tmp_path / "setup.json")
    with pytest.raises(ValueError, match=r"would replace .*a.py"):
        write(json.loads(written.read_text()), tmp_path / "a.py")
    assert [path.name for path in tmp_path.iterdir()] == ["setup.py"]


def test_every_shipped_artifact_has_its_module_and_both_are_small() -> None:
    for path in SHIPPED.glob("*.json"):
        said = f"run `python -m tftune.models.plain {path.name}`"
        assert path.with_suffix(".py").read_text() == plain.module(json.loads(path.read_text())), said
        assert path.stat().st_size <= 100_000 and path.with_suffix(".py").stat().st_size <= 100_000
    assert {path.stem for path in SHIPPED.glob("[a-z]*.py")} == {path.stem for path in SHIPPED.glob("*.json")}
