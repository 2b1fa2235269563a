"""The grown tree: shapes between, what is estimated there, and that measurements alone speak for a fused leaf."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.chips import H200
from tftune.kernels.distance import distance
from tftune.kernels.space import Config
from tftune.models import between as between_module
from tftune.models import grown
from tftune.models.between import Estimate, between
from tftune.models.dataset import Dataset, load
from tftune.models.features import names, vector
from tftune.models.grown import Grown
from tftune.models.timeline import predict
from tftune.models.train import train
from tftune.models.tree import Leaf, Node, Split

OP = "all_gather_gemm"
SHAPES = tuple(AllGatherGemm(m, n, k, 8) for n, k in ((2048, 4096), (4096, 4096), (4096, 8192)) for m in (16, 64, 1024))
Rows = Callable[..., list[Trial]]


@pytest.fixture(scope="module")
def rows(make_rows: Rows) -> list[Trial]:
    """A full matrix whose fused times are 1.3 times what the model says."""

    def slower(trial: Trial) -> Trial:
        found = trial.outcome
        assert isinstance(found, Measurement)
        factor = 1.0 if trial.config.variant == "bsp" else 1.3
        return replace(trial, stage="matrix", outcome=replace(found, samples_us=tuple(factor * us for us in found.samples_us)))

    return [slower(trial) for trial in make_rows(SHAPES, bench="node")]


@pytest.fixture(scope="module")
def dataset(rows: list[Trial]) -> Dataset:
    return load(rows, OP, "h200x8", "graph", "node")


def test_shapes_between_have_sizes_that_layers_have() -> None:
    found = between(SHAPES)
    assert {shape.m for shape in found} == {16, 32, 64, 128, 256, 512, 1024} and {shape.k for shape in found} == {4096, 8192}
    assert {shape.n for shape in found} == {1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192}, "twice beyond"
    assert not set(found) & set(SHAPES) and len(found) == len(set(found)) and {shape.world for shape in found} == {8}


def test_layouts_and_worlds_stay_apart() -> None:
    mixed = (*SHAPES[:2], *(replace(shape, shard="m", n=8192) for shape in SHAPES[:2]), *(replace(shape, world=4) for shape in SHAPES[:1]))
    found = between(mixed)
    sizes: dict[tuple[str, int], tuple[set[int], set[int]]] = {}
    for shape in found:
        rows, columns = sizes.setdefault((shape.shard, shape.world), (set(), set()))
        rows.add(shape.m)
        columns.add(shape.n)
    around = {1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096}
    assert sizes == {
        ("k", 8): ({16, 32, 64}, around),
        ("m", 8): ({16, 32, 64}, {4 * n for n in around}),
        ("k", 4): ({16}, around - {2048}),
    }
    assert {shape.k for shape in found} == {4096}


def test_an_estimate_learns_how_far_the_model_is_off(dataset: Dataset) -> None:
    config, middle = dataset.listed[-1], AllGatherGemm(64, 3072, 4096, 8)
    assert dataset.why_invalid(middle, config) is None
    bsp = dataset.bsp(SHAPES[0])
    (losses,) = Estimate(dataset).losses([middle], [bsp, config], np.array([[True, True]]))
    expected = math.log(1.3 * predict(middle, config, "graph", H200) / predict(middle, bsp, "graph", H200))
    assert losses[1] - losses[0] == pytest.approx(expected, abs=0.05) and min(losses) == 0


def test_what_is_impossible_loses_what_bsp_loses(dataset: Dataset) -> None:
    tall = SPACE.complete(replace_knobs(dataset.listed[-1], block_m=256, block_n=128, num_warps=8))
    small = AllGatherGemm(32, 3072, 4096, 8)
    assert dataset.why_invalid(small, tall) is not None
    losses = Estimate(dataset).losses([small], [dataset.bsp(SHAPES[0]), tall], np.array([[True, False]]))
    assert losses[0, 0] == losses[0, 1]


def is_possible(config: Config) -> bool:
    return all(SPACE.why_invalid(shape, config, H200) is None for shape in SHAPES)


def test_searched_rows_alone_are_covered_by_what_is_near_the_fastest_somewhere(make_rows: Rows) -> None:
    """What was tried at one shape only, and is the fastest there, is looked at everywhere, by estimates; what is slow everywhere is not."""
    rows = [replace(row, stage="search") for row in make_rows(SHAPES, bench="node")]
    known = {row.config for row in rows}
    once, slow = (
        next(config for config in SPACE.configs(SHAPES[3], H200, (name,)) if config not in known and is_possible(config))
        for name in ("push", "pull")
    )
    bsp_us = {row.shape: row.outcome.samples_us[0] for row in rows if row.config.variant == "bsp"}  # type: ignore[union-attr]

    def tried(shape: AllGatherGemm, config: Config, times: float) -> Trial:
        like = next(row for row in rows if row.config.variant == config.variant)
        return replace(like, shape=shape, config=config, outcome=Measurement((times * bsp_us[shape],) * 3, (bsp_us[shape],) * 3, 1e-4))

    searched = load([*rows, tried(SHAPES[3], once, 0.1), *(tried(shape, slow, 2.0) for shape in SHAPES)], OP, "h200x8", "graph", "node")
    assert not searched.listed
    made = Grown(searched)
    assert once in made.configs and slow not in made.configs
    elsewhere, column = searched.shapes.index(SHAPES[4]), made.configs.index(once)
    as_bsp = searched.loss(SHAPES[4], searched.bsp(SHAPES[4]))
    assert made.losses[elsewhere, column] != pytest.approx(as_bsp * (1 + as_bsp / grown.TAIL)), "not what BSP loses: it is possible there"
    assert train(searched).walk(dict(zip(names(OP), vector(OP, SHAPES[3]), strict=True)))[0].config == once


def test_an_estimate_is_higher_the_less_its_trees_agree(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between shapes where the model is off by another factor each the forest's trees disagree, and a cautious estimate rises."""
    times = {s: {c: us * (1 + s.n / s.m / 100) for c, us in found.items()} for s, found in dataset.times_us.items()}
    uneven = replace(dataset, times_us=times)
    configs = [uneven.bsp(SHAPES[0]), *(config for config in uneven.listed if config.variant != "bsp")]
    shapes = between(SHAPES)[::10]
    possible = np.array([[uneven.why_invalid(shape, config) is None for config in configs] for shape in shapes])
    estimate = Estimate(uneven)
    cautious = estimate.losses(shapes, configs, possible)
    monkeypatch.setattr(between_module, "CAUTION", 0.0)
    bold = estimate.losses(shapes, configs, possible)
    rise = (cautious - cautious[:, :1]) - (bold - bold[:, :1])
    assert (rise[possible] >= -1e-9).all() and rise.max() > 0.01


def test_a_large_loss_counts_for_more_than_many_small_ones(dataset: Dataset) -> None:
    made = Grown(dataset)
    lost = np.array([[dataset.loss(shape, config) for config in made.configs] for shape in dataset.shapes])
    tried = np.array([[config in dataset.outcomes[shape] for config in made.configs] for shape in dataset.shapes])
    assert made.losses[: len(lost)][tried] == pytest.approx((lost + lost**2 / grown.TAIL)[tried]) and lost[tried].max() > grown.TAIL


def replace_knobs(config: object, **knobs: int) -> object:
    return type(config).from_dict(config.to_dict() | knobs)  # type: ignore[attr-defined]


def leaves(at: Node, values: dict[str, tuple[float, float]] | None = None) -> Iterator[Leaf]:
    if isinstance(at, Split):
        yield from leaves(at.below)
        yield from leaves(at.above)
    else:
        yield at


def test_training_takes_it_for_a_matrix_and_each_fused_leaf_is_spoken_for(dataset: Dataset) -> None:
    tree = train(dataset)
    told = [(leaf, shape) for shape in dataset.shapes for leaf in [tree.walk(features(shape))[0]]]
    assert sum(leaf.rows for leaf in leaves(tree.root)) == len(SHAPES)
    assert all(leaf.abstains or dataset.why_invalid(s, leaf.config) or dataset.allowed(s, leaf.config) for leaf, s in told)
    assert all(leaf.abstains or (leaf.speedup_low or 0) >= 1 for leaf in leaves(tree.root))
    assert any(not leaf.abstains for leaf, _ in told)


def features(shape: AllGatherGemm) -> dict[str, float]:
    return dict(zip(names(OP), vector(OP, shape), strict=True))


def test_an_estimate_alone_makes_no_leaf_fused(rows: list[Trial], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every measured speed-up is unsure, all leaves abstain, whatever the estimates say."""

    def unsure(trial: Trial) -> Trial:
        found = trial.outcome
        assert isinstance(found, Measurement)
        bsp = tuple(0.5 * us if number % 3 == 0 else us for number, us in enumerate(found.bsp_samples_us))
        return trial if trial.config.variant == "bsp" else replace(trial, outcome=replace(found, bsp_samples_us=bsp))

    dataset = load([unsure(trial) for trial in rows], OP, "h200x8", "graph", "node")
    grower = Grown(dataset)
    monkeypatch.setattr(grown, "LEAST_SPEEDUP", 1e-9)
    assert not np.array([[dataset.allowed(s, c) for c in grower.configs if c.variant != "bsp"] for s in dataset.shapes]).any()
    assert all(leaf.abstains for leaf in leaves(grower.tree().root))


def test_what_a_leaf_names_is_faster_than_bsp_on_the_mean_of_its_shapes(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the bar is out of reach all leaves abstain, although measured shapes are faster for sure."""
    assert any(not leaf.abstains for leaf in leaves(Grown(dataset).tree().root))
    monkeypatch.setattr(grown, "LEAST_SPEEDUP", 50.0)
    assert all(leaf.abstains for leaf in leaves(Grown(dataset).tree().root))


def test_a_leaf_names_another_config_for_shapes_nearby_that_it_does_not_fit(dataset: Dataset) -> None:
    """The one of its variant that is possible there and loses least there by the estimate; none where it fits everything nearby."""
    grower, place = Grown(dataset), 3
    alike = [number for number, config in enumerate(grower.configs) if config.variant == "push"]
    first, second, third = alike[:3]
    spoken_for = np.full(len(grower.configs), True)
    grower.__dict__["possible"] = np.full((len(grower.shapes), len(grower.configs)), True)
    assert grower._otherwise(np.array([place]), first, spoken_for) is None
    grower.possible[place, first] = False
    guessed = grower._guessed.copy()
    guessed[place, :], guessed[place, second], guessed[place, third] = 0.5, 0.2, 0.1
    guessed[place, first] = 0.0
    grower.__dict__["_guessed"] = guessed
    assert grower._otherwise(np.array([place]), first, spoken_for) == grower.configs[third]
    grower.possible[place, third] = False
    assert grower._otherwise(np.array([place]), first, spoken_for) == grower.configs[second]
    spoken_for[alike] = False
    assert grower._otherwise(np.array([place]), first, spoken_for) is None


def test_distances_are_those_of_the_kernels_room(dataset: Dataset) -> None:
    grower = Grown(dataset)
    for one, other in ((0, 5), (3, 3), (1, len(grower.shapes) - 1)):
        assert grower._far[one, other] == pytest.approx(distance(grower.shapes[one], grower.shapes[other]))
