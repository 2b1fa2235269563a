"""Training: our tree says what scikit-learn's says, loses less than any constant rule, and abstains where it is not sure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models import train as training
from tftune.models.dataset import Dataset, load
from tftune.models.features import names, vector
from tftune.models.leaves import distinct, make_leaf, round_between
from tftune.models.leaves import measured as measured_values
from tftune.models.packed import pack, unpack
from tftune.models.train import choose, own_answers, train
from tftune.models.tree import Leaf, Node, Split, Tree

OP = "all_gather_gemm"
BSP = Config("bsp", form="gather_copy")
PUSH = SPACE.complete(Config("push"))
Rows = Callable[..., list[Trial]]


def features(shape: Shape) -> dict[str, float]:
    return dict(zip(names(OP), vector(OP, shape), strict=True))


@pytest.fixture(scope="module")
def dataset(make_rows: Rows) -> Dataset:
    """The model's times, but what is not BSP takes twice as long up to M=4, so that BSP is the fastest there."""
    rows = make_rows((*paper(), *paper(shard="m")[::3]))
    return load([twice(row) if row.shape.m <= 4 and row.config.variant != "bsp" else row for row in rows], OP, "h200x8", "graph", "model")


def twice(row: Trial) -> Trial:
    found = row.outcome
    assert isinstance(found, Measurement)
    return replace(row, outcome=replace(found, samples_us=tuple(2 * us for us in found.samples_us)))


@pytest.fixture(scope="module")
def tree(dataset: Dataset) -> Tree:
    return train(dataset)


def splits(at: Node) -> Iterator[Split]:
    if isinstance(at, Split):
        yield at
        yield from splits(at.below)
        yield from splits(at.above)


def test_it_uses_both_kinds_of_leaves(tree: Tree) -> None:
    assert {leaf.abstains for leaf in tree.leaves()} == {True, False}


def test_it_agrees_with_scikit_learn_on_every_training_shape(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without merging, each shape gets the choice of the very leaf that scikit-learn puts it into."""
    monkeypatch.setattr(training, "MERGE_LOSS", -math.inf)
    monkeypatch.setattr(training, "_same_leaf", lambda one, other: False)
    tree, configs = train(dataset), dataset.configs
    told = distinct([features(shape) for shape in dataset.shapes])
    points = [[features(shape)[name] for name in told] for shape in dataset.shapes]
    table = [[dataset.loss(shape, config) for config in configs] for shape in dataset.shapes]
    places = DecisionTreeRegressor(max_depth=5, random_state=0).fit(points, table).apply(points)
    for place, shape in zip(places, dataset.shapes, strict=True):
        together = [other for there, other in zip(places, dataset.shapes, strict=True) if there == place]
        leaf, _ = tree.walk(features(shape))
        assert leaf.config == choose(dataset, together, configs) and leaf.rows == len(together)


def test_every_training_shape_loses_what_its_leaf_says_at_most(dataset: Dataset, tree: Tree) -> None:
    for shape in dataset.shapes:
        leaf, _ = tree.walk(features(shape))
        assert dataset.loss(shape, leaf.config) <= math.log(leaf.worst_regret) + 1e-4
    assert sum(leaf.rows for leaf in tree.leaves()) == len(dataset.shapes)


def test_it_loses_less_than_any_single_config(dataset: Dataset, tree: Tree) -> None:
    lost = sum(dataset.loss(shape, tree.walk(features(shape))[0].config) for shape in dataset.shapes)
    for config in dataset.configs:
        assert lost <= sum(dataset.loss(shape, config) for shape in dataset.shapes) + 0.005 * len(dataset.shapes)


def test_a_fused_leaf_is_faster_than_bsp_on_each_of_its_shapes(dataset: Dataset, tree: Tree) -> None:
    for shape in dataset.shapes:
        leaf, _ = tree.walk(features(shape))
        assert leaf.abstains or (leaf.speedup_low or 0) >= 1 <= dataset.speedup_low(shape, leaf.config)


def test_boundary_values_go_below(tree: Tree) -> None:
    for split in splits(tree.root):
        alone = replace(tree, root=replace(split, below=_leaf("below"), above=_leaf("above")))
        assert alone.walk({split.feature: split.threshold})[0].reason == "below"
        assert alone.walk({split.feature: math.nextafter(split.threshold, math.inf)})[0].reason == "above"


def _leaf(reason: str) -> Leaf:
    return Leaf(BSP, BSP, 1, 1.0, None, reason, "")


def test_thresholds_read_well(tree: Tree) -> None:
    assert all(len(f"{split.threshold:g}") <= 6 and float(f"{split.threshold:g}") == split.threshold for split in splits(tree.root))


def measured(shape: Shape, config: Config, us: tuple[float, ...], bsp_us: tuple[float, ...] = ()) -> Trial:
    return Trial(shape, config, "graph", "h200x8", "node", "run", "code", Measurement(us, bsp_us, 1e-4), "final")


@pytest.mark.parametrize(("bench", "fast"), [("node", 80.0), ("model", 60.0)])
def test_the_gap_beside_a_fused_leaf_is_left_to_bsp(bench: str, fast: float) -> None:
    """Push is faster from M=64 to 1024, and slower on either side."""
    push = SPACE.complete(Config("push", block_m=16, group_m=1, rows_per_flag=16))
    rows = [measured(shape, BSP, (100.0,) * 3) for shape in paper()]
    rows += [measured(shape, push, (fast if 64 <= shape.m <= 1024 else 125.0,) * 3, (100.0,) * 3) for shape in paper()]
    tree = train(load([replace(row, bench=bench) for row in rows], OP, "h200x8", "graph", bench))
    sides = {shape.m: tree.walk(features(shape))[0].abstains for shape in paper()}
    turns = [(low, high) for low, high in zip(sides, list(sides)[1:], strict=False) if sides[low] != sides[high]]
    assert turns == [(32, 64), (1024, 2048)]
    for low, high in turns:
        middle = tree.walk(features(AllGatherGemm(m=(low + high) // 2, n=3584, k=8192, world=8)))[0]
        assert middle.abstains


@pytest.mark.parametrize(("bsp_us", "abstains"), [((98.0, 98.0, 98.0), True), ((150.0, 150.0, 150.0), False)])
def test_an_unsure_speedup_makes_every_leaf_abstain(bsp_us: tuple[float, ...], abstains: bool) -> None:
    """And a sure one none of them; of a grown tree, none of those in which measured shapes end."""
    rows = [measured(shape, BSP, (bsp_us[0],)) for shape in paper()[8:]]
    rows += [measured(shape, PUSH, (95.0, 97.0, 99.0), bsp_us) for shape in paper()[8:]]
    dataset = load(rows, OP, "h200x8", "graph", "node")
    assert {leaf.abstains for leaf in training._fitted(dataset).leaves()} == {abstains}
    tree = train(dataset)
    assert {tree.walk(features(shape))[0].abstains for shape in paper()[8:]} == {abstains}
    assert not abstains or {leaf.abstains for leaf in tree.leaves()} == {True}


def test_a_measured_shape_is_answered_by_what_was_the_fastest_there() -> None:
    """One leaf for three shapes: on the first another config is 20 % faster than the leaf's, on the second 4 %, on the third 20 % but in
    rows of the search stage alone, or without beating BSP for sure."""
    first, second, third = paper()[9:12]
    staged, unsure = SPACE.complete(Config("staged")), SPACE.complete(Config("pull"))
    rows = [measured(shape, BSP, (100.0,) * 3) for shape in (first, second, third)]
    rows += [measured(shape, PUSH, (80.0,) * 3, (100.0,) * 3) for shape in (first, second, third)]
    rows += [measured(shape, staged, (us,) * 3, (100.0,) * 3) for shape, us in ((first, 64.0), (second, 77.0), (third, 120.0))]
    rows += [replace(measured(third, SPACE.complete(Config("push", num_stages=2)), (64.0,) * 3, (100.0,) * 3), stage="search")]
    rows += [measured(third, unsure, (60.0,) * 3, (100.0, 59.0, 100.0))]
    dataset = load(rows, OP, "h200x8", "graph", "node")
    tree = Tree(OP, "graph", make_leaf(dataset, dataset.shapes, (BSP, PUSH), PUSH), measured_values(dataset.shapes))
    tree, trained = replace(tree, own=own_answers(dataset, tree)), train(dataset)
    assert trained.own == own_answers(dataset, trained), "a trained tree has them"
    assert [(shape, leaf.config) for shape, leaf in tree.own] == [(first.key[1:], staged)]
    leaf, steps = tree.answer(first.key[1:], features(first))
    assert (leaf.config, leaf.speedup_low, steps) == (staged, 1.5625, ("this very shape was measured",)) and "at least 1.56" in leaf.reason
    assert tree.answer(second.key[1:], features(second)) == tree.walk(features(second))
    assert unpack(json.loads(json.dumps(pack(tree)))) == tree


def test_a_shape_that_was_only_searched_and_is_slower_with_what_its_leaf_names_is_answered_by_bsp() -> None:
    first, second = paper()[9:11]
    rows = [measured(shape, BSP, (100.0,) * 3) for shape in (first, second)] + [measured(first, PUSH, (60.0,) * 3, (100.0,) * 3)]
    rows += [measured(second, PUSH, (101.0,) * 3, (100.0,) * 3)]
    dataset = load([replace(row, stage="search") if row.shape == second else row for row in rows], OP, "h200x8", "graph", "node")
    leaf = Leaf(PUSH, BSP, 2, 1.0, 1.6, "push", "code")
    assert [(shape, own.config) for shape, own in own_answers(dataset, Tree(OP, "graph", leaf, ()))] == [(second.key[1:], BSP)]


def test_the_reason_names_the_rival_and_the_next_best_may_win() -> None:
    shape, pull = paper()[9], SPACE.complete(Config("pull"))
    rows = [measured(shape, BSP, (100.0,) * 3), measured(shape, PUSH, (80.0,) * 3, (79.0, 100.0, 100.0))]
    dataset = load([*rows, measured(shape, pull, (90.0,) * 3, (95.0,) * 3)], OP, "h200x8", "graph", "node")
    leaf = make_leaf(dataset, [shape], (BSP, PUSH), choose(dataset, [shape], (BSP, PUSH)))
    assert leaf.abstains and leaf.reason.startswith("push may be faster, but the lower bound of its speed-up over BSP is 0.99")
    assert choose(dataset, [shape], (BSP, PUSH, pull)) == pull


def test_one_shape_is_enough(make_rows: Rows) -> None:
    tree = train(load(make_rows(paper()[:1]), OP, "h200x8", "graph", "model"))
    assert isinstance(tree.root, Leaf) and tree.root.rows == 1


def test_what_was_measured_is_written_down(tree: Tree) -> None:
    words = {"b_layout": ("kn",), "dtype": ("fp16",), "shard": ("k", "m"), "world": (8,)}
    assert dict(tree.measured) == words | {"m": tuple(2**i for i in range(14)), "n": (3584,), "k": (8192,)}


def test_a_tree_survives_its_dictionary(tree: Tree) -> None:
    assert unpack(json.loads(json.dumps(pack(tree)))) == tree


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.sampled_from([(0.25, 0.75), (0.0, 0.25), (0.75, 1.0)]))
def test_a_round_threshold_separates_its_neighbours(one: float, other: float, part: tuple[float, float]) -> None:
    low, high = min(one, other), max(one, other)
    if low < high:
        assert low <= round_between(low, high, part) < high
