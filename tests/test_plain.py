"""A tree means the same as JSON, walked, and as a running function: at every threshold, and one
step beside it."""

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
from test_features import SHAPES

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import OPS
from tftune.kernels.core.shape import Shape
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.features import names, vector
from tftune.models.tree import codegen as plain
from tftune.models.tree.tree import (
    DEEPEST,
    Leaf,
    Node,
    Split,
    depth_of,
    features_of,
    leaves_of,
    pack,
    unpack,
    walk,
)

SIZES = st.integers(1, 1 << 17)
GEMMS = st.builds(
    lambda m, n, k, world, *words: AllGatherGemm(m * world, n, k * world, world, *words),
    SIZES, SIZES, SIZES, st.sampled_from([2, 4]), st.sampled_from(["fp16", "bf16"]),
    st.sampled_from("km"), st.sampled_from(["kn", "nk"]),
)  # fmt: skip
DECODES = st.builds(
    lambda batch, heads, group, *rest: FlashDecode(batch, heads * group, heads, *rest),
    SIZES, SIZES, st.integers(1, 16), st.sampled_from([64, 128, 256]), SIZES,
    st.sampled_from([2, 8]),
)  # fmt: skip
ANY = {"all_gather_gemm": GEMMS, "flash_decode": DECODES}
LEAF = Leaf((0, 1), 1, 0.1, ())


def features(shape: Shape) -> dict[str, float]:
    return dict(zip(names(shape.op), vector(shape.op, shape), strict=True))


@st.composite
def trees(draw: Callable[[Any], Any], shapes: list[Shape], depth: int = 4) -> Node:
    """A tree whose thresholds are values that these shapes have, or one step beside them; its
    leaves are numbered by their rows."""
    numbers = iter(range(1 << depth))

    def node(left: int) -> Node:
        if not left or draw(st.integers(0, 5)) == 0:
            return Leaf((0, 1), next(numbers), 0.1, ())
        feature = draw(st.sampled_from(names(shapes[0].op)))
        value = features(draw(st.sampled_from(shapes)))[feature]
        next_to = [math.nextafter(value, end) for end in (-math.inf, math.inf)]
        beside = draw(st.sampled_from([value, *next_to, value - 1, value + 1]))
        return Split(feature, beside, node(left - 1), node(left - 1))

    return node(depth)


def neighbours(shape: Shape) -> list[Shape]:
    """The shapes one step smaller and larger."""
    values, step = shape.to_dict(), shape.to_dict()["world"]
    sizes = [values[shape.SIZE] + by for by in (-step, step)]
    return [type(shape).from_dict(values | {shape.SIZE: size}) for size in sizes if size > 0]


@pytest.mark.parametrize("op", ANY)
@given(data=st.data())
def test_json_walk_and_function_agree_at_every_threshold(op: str, data: Any) -> None:
    shapes = data.draw(st.lists(ANY[op], min_size=1, max_size=8))
    shapes += [beside for shape in shapes for beside in neighbours(shape)]
    tree = data.draw(trees(shapes))
    find, leaves = plain.compiled(op, tree), list(leaves_of(tree))
    assert unpack(json.loads(json.dumps(pack(tree)))) == tree and depth_of(tree) <= 4
    for shape in shapes:
        leaf, steps = walk(tree, features(shape))
        assert leaves[find(shape)] is leaf
        assert all(step.split()[0] in features_of(tree) for step in steps)


def test_boundary_values_go_below() -> None:
    below, above = replace(LEAF, rows=2), replace(LEAF, rows=3)
    tree = Split("m", 64.0, below, above)
    find = plain.compiled("all_gather_gemm", tree)
    assert walk(tree, {"m": 64.0}) == (below, ("m = 64 <= 64",))
    assert walk(tree, {"m": math.nextafter(64.0, math.inf)})[0] == above
    assert [find(AllGatherGemm(m, 8, 8, 2)) for m in (63, 64, 65)] == [0, 0, 1]


@pytest.mark.parametrize("op", OPS)
def test_every_feature_is_one_expression_and_means_what_its_lambda_says(op: str) -> None:
    texts, shape = plain.expressions(op), SHAPES[op]
    assert tuple(texts) == names(op)
    assert [float(eval(text, {"s": shape, **vars(math)})) for text in texts.values()] == list(
        vector(op, shape)
    )


def test_a_feature_that_needs_more_than_the_shape_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "_features_file", lambda op: tmp_path / op)
    for op, feature, sentence in (
        ("one", "lambda s: helper(s.m)", "of one uses 'helper'; it may use the shape s"),
        ("two", "helper", "of two is not written as one lambda of the shape s"),
    ):
        (tmp_path / op).write_text(f'FEATURES: dict = {{"tall": ("tall", {feature})}}')
        with pytest.raises(ValueError, match=f"the feature 'tall' {sentence}"):
            plain.expressions(op)


@pytest.mark.parametrize(
    ("feature", "threshold", "sentence"),
    [
        ("m", math.inf, "the threshold of 'm' is inf"),
        ("m", math.nan, "the threshold of 'm' is nan"),
        ("moon", 1.0, "asks for the feature 'moon'"),
        ("m) or print(1", 1.0, r"asks for the feature 'm\) or print\(1'"),
    ],
)
def test_what_is_no_tree_of_this_tftune_is_refused(
    feature: str, threshold: float, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        plain.compiled("all_gather_gemm", Split(feature, threshold, LEAF, LEAF))


def test_a_function_looks_up_each_field_and_computes_each_feature_once() -> None:
    node: Node = LEAF
    for number in range(6):
        node = Split("gflop" if number % 2 else "m", float(number), LEAF, node)
    text = plain.function("all_gather_gemm", node)
    assert [text.count(part) for part in ("s.m", "s.n", "s.k", ":=")] == [1, 1, 1, 1]


def test_the_deepest_tree_compiles() -> None:
    """Python allows about a hundred levels of indentation."""
    for below in (True, False):
        node: Node = LEAF
        for number in range(DEEPEST):
            node = Split("m", float(number), *((node, LEAF) if below else (LEAF, node)))
        assert depth_of(node) == DEEPEST == len(list(leaves_of(node))) - 1
        find = plain.compiled("all_gather_gemm", unpack(pack(node)))
        assert find(AllGatherGemm(64, 8, 8, 2)) == DEEPEST
        with pytest.raises(ValueError, match=f"more than {DEEPEST} splits"):
            unpack(pack(Split("m", 1.0, node, node)))
