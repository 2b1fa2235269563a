"""Training: what a layout learns from its rows is what serves, and no measured shape is served by
anything slower than BSP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    BSP,
    CHIP,
    ENGINE,
    LARGE,
    LAWS,
    LAYERS,
    OP,
    ROWS,
    SHAPES,
    SMALL,
    TARGET,
    dataset,
    decodes,
    law,
    learned,
    measured,
    row,
    rows,
    shape,
)

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import selector_of
from tftune.models.layout import LayoutModel
from tftune.models.selector import Selector
from tftune.models.tree.lattice import round_between
from tftune.models.tree.trainer import train_layout
from tftune.models.tree.tree import Leaf, Node, Split, leaves_of

UNSEEN = [
    shape(m, n, k)
    for n, k in ((3072, 3072), (6144, 5120), (7168, 8192), (2560, 6144))
    for m in (12, 48, 100, 300, 1000, 3000, 8000)
]
Rows = Callable[..., list[Trial]]


def trained(data: Dataset) -> tuple[LayoutModel, Selector]:
    model = train_layout(data)
    return model, selector_of(data, model)


@pytest.fixture(scope="module")
def exact() -> tuple[LayoutModel, Selector]:
    return trained(dataset())


def test_exact_times_are_answered_by_what_is_the_fastest_where_nothing_was_measured(
    exact: tuple[LayoutModel, Selector],
) -> None:
    """At other layers and sizes between, wherever the fastest is ahead of BSP by more than
    estimates may err."""
    for asked in UNSEEN:
        possible = [config for config in LAWS if SPACE.why_invalid(asked, config, CHIP) is None]
        found, us = exact[1].select(asked), min(LAWS[config](asked) for config in possible)
        assert found.source == "interpolated"
        assert found.expected_us == pytest.approx(LAWS[found.config](asked), rel=0.01)
        assert LAWS[found.config](asked) <= 1.03 * us


def test_every_measured_shape_is_answered_by_its_own_best(make_rows: Rows) -> None:
    """So it is with noisy rows. Together the answers lose no more than any single config would."""
    data = load(
        make_rows((*paper(), *paper(shard="m")[::3]), bench="node"), OP, "h200x8", "graph", "node"
    )
    for part in data.by_layout().values():
        _, selector = trained(part)
        for place in part.shapes:
            found = selector.select(place)
            assert (found.config, found.source) == (part.best(place), "measured") and part.allowed(
                place, found.config
            )
            assert found.expected_us == part.time_us(place, found.config)
            assert found.bsp_us == part.bsp_us(place)
        lost = sum(part.log_regret(place, part.best(place)) or 0.0 for place in part.shapes)
        for config in {config for place in part.shapes for config in part.times_us[place]}:
            served = [
                (place, config if part.allowed(place, config) else part.bsp(place))
                for place in part.shapes
            ]
            assert lost <= sum(part.log_regret(*each) or 0.0 for each in served) + 1e-9


def noisy(trial: Trial) -> Trial:
    """BSP took a quarter of the time in a third of the rounds: no speed-up below 4 is sure."""
    found = trial.outcome
    assert isinstance(found, Measurement)
    bsp = tuple(
        0.25 * us if number % 3 == 0 else us for number, us in enumerate(found.bsp_samples_us)
    )
    changed = replace(trial, outcome=replace(found, bsp_samples_us=bsp))
    return trial if trial.config.variant == "bsp" else changed


def test_where_no_speed_up_was_sure_bsp_answers_at_measured_shapes_and_between_them() -> None:
    data = dataset([noisy(trial) for trial in rows()])
    _, selector = trained(data)
    assert not any(data.allowed(place, config) for place in SHAPES for config in (SMALL, LARGE))
    for place in (*SHAPES, shape(20), shape(1000, 8192, 8192)):
        assert selector.select(place).config == BSP


@pytest.mark.parametrize("slow", [4, 32])
def test_fused_up_to_some_size_and_bsp_above_both_answer(slow: int) -> None:
    """Above M = 512 all that is fused takes so many times as long: sizes between a win and a loss
    are bounded from both sides."""
    laws = {
        c: (lambda asked, c=c: LAWS[c](asked) * (slow if c != BSP and asked.m > 512 else 1))
        for c in LAWS
    }
    data = dataset(rows(SHAPES, laws))
    _, selector = trained(data)
    for n, k in LAYERS:
        assert {selector.select(shape(m, n, k)).config == BSP for m in (2048, 3000, 8192)} == {True}
        assert {selector.select(shape(m, n, k)).config == BSP for m in (8, 32, 512)} == {False}
        assert selector.select(shape(2000, n, k)).config == BSP


def test_a_config_tried_at_one_shape_answers_there_alone() -> None:
    """The fastest of many tried once is fast by luck, too: it is no candidate elsewhere. In a
    search it counts at its own shape only where no final row says otherwise."""
    once = SPACE.complete(replace_knobs(SMALL, num_stages=4))
    for stage, answers in (("search", SMALL), ("final", once)):
        fast = measured(1.0, LAWS[BSP](shape(32)))
        lucky = row(shape(32), once, fast, stage=stage)
        model, selector = trained(dataset([*rows(), lucky]))
        assert selector.select(shape(32)).config == answers
        assert once not in {selector.select(asked).config for asked in (shape(20), *UNSEEN)}
        assert model.root is not None
        assert once not in {
            model.configs[number] for leaf in leaves_of(model.root) for number in leaf.candidates
        }


def replace_knobs(config: object, **knobs: object) -> object:
    return type(config).from_dict(config.to_dict() | knobs)  # type: ignore[attr-defined]


def test_rows_of_a_search_alone_are_learned_from() -> None:
    _, selector = trained(dataset([replace(trial, stage="search") for trial in rows()]))
    assert selector.select(shape(32)).config == SMALL
    assert selector.select(shape(2048)).config == LARGE


def splits(at: Node) -> Iterator[Split]:
    if isinstance(at, Split):
        yield at
        yield from splits(at.below)
        yield from splits(at.above)


@pytest.fixture(scope="module")
def several() -> LayoutModel:
    """Ten tiles, each the fastest for one range of M and N."""
    laws = dict(LAWS)
    for number, block_n in enumerate((32, 64, 128, 256)):
        for block_m in (16, 32, 64, 128, 256):
            if (config := tile(block_m, block_n)) is not None and len(laws) < 14:
                each = 3.0 * 64 * block_n / 8192 + block_m / 40
                terms = (9.0 + 0.3 * number, each, 0.3 * 8192 / block_m / block_n)
                laws[config] = law(config, (*terms, 1.0, 1.0, 0.1, 0.2))
    layers = [(n, k) for n in (1024, 2048, 4096, 8192, 16384) for k in (2048, 8192)]
    shapes = [
        shape(m, n, k) for n, k in layers for m in (8, 32, 64, 128, 256, 512, 1024, 2048, 8192)
    ]
    return train_layout(dataset(rows(shapes, laws)))


def tile(block_m: int, block_n: int) -> object:
    warps = 8 if block_m * block_n >= 8192 else 4
    config = SPACE.complete(replace_knobs(SMALL, block_m=block_m, block_n=block_n, num_warps=warps))
    return config if SPACE.why_invalid(shape(8192), config, CHIP) is None else None


def test_a_tree_names_few_configs_that_exist_and_forms_of_bsp(several: LayoutModel) -> None:
    assert several.root is not None and several.spans
    leaves = list(leaves_of(several.root))
    assert len(leaves) > 1 and sum(leaf.rows for leaf in leaves) == len(several.known)
    for leaf in leaves:
        named = [several.configs[number] for number in leaf.candidates]
        assert any(config.variant == "bsp" for config in named)
        assert len(set(named)) == len(named) <= 6
        assert 0 < leaf.error < 1
        assert set(leaf.near) <= {known.sizes for known in several.known}
        assert len(leaf.near) <= 3


def test_thresholds_read_well(several: LayoutModel) -> None:
    assert several.root is not None
    assert all(
        len(f"{split.threshold:g}") <= 7 and float(f"{split.threshold:g}") == split.threshold
        for split in splits(several.root)
    )


def test_no_two_leaves_side_by_side_say_the_same(several: LayoutModel) -> None:
    assert several.root is not None
    for split in splits(several.root):
        if isinstance(split.below, Leaf) and isinstance(split.above, Leaf):
            assert set(split.below.candidates) != set(split.above.candidates)


def test_the_same_rows_give_the_same_model(exact: tuple[LayoutModel, Selector]) -> None:
    assert train_layout(dataset(list(reversed(rows())))) == exact[0]


def test_what_was_measured_is_kept_with_the_forms_of_bsp_and_what_is_near_the_fastest(
    exact: tuple[LayoutModel, Selector],
) -> None:
    model = exact[0]
    assert model.layout == ENGINE
    assert {known.sizes for known in model.known} == {place.sizes_key for place in SHAPES}
    for known in model.known:
        place = shape(*known.sizes)
        times = {model.configs[number]: us for number, us in known.times_us}
        assert BSP in times and model.configs[known.best] in times
        assert all(us == pytest.approx(LAWS[config](place)) for config, us in times.items())
        most = 1.3 * LAWS[model.configs[known.best]](place)
        assert all(us < most for config, us in times.items() if config != BSP)


@pytest.mark.parametrize(("count", "spans"), [(1, False), (2, False), (3, True)])
def test_few_families_speak_for_no_other(count: int, spans: bool) -> None:
    shapes = SHAPES[: count * len(ROWS)]
    model, selector = trained(dataset(rows(shapes)))
    assert model.spans == spans
    assert selector.select(shape(64, *LAYERS[0])).source == "interpolated"
    assert selector.select(shape(64, 2560, 2560)).source == (
        "interpolated" if spans else "fallback"
    )


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_shapes_are_enough(count: int) -> None:
    model, selector = trained(dataset(rows(SHAPES[:count])))
    assert model.root is None and not model.spans
    assert [selector.select(place).source for place in SHAPES[:count]] == ["measured"] * count
    assert selector.select(shape(20, *LAYERS[0])).source == (
        "fallback" if count == 1 else "interpolated"
    )


@pytest.mark.parametrize("count", [1, 3, 7, 20, 40])
def test_however_few_shapes_of_flash_decode_are_learned_from(count: int) -> None:
    """Not all of its sizes are features of the tree."""
    trials = decodes(count)
    data = load(trials, "flash_decode", TARGET, "graph", "node")
    (model,) = learned(data).layouts.values()
    selector = selector_of(data, model)
    for place in data.shapes:
        assert selector.select(place).config.variant == (
            "persistent_ll" if place.kv_len < 16384 else "bsp"
        )  # type: ignore[attr-defined]


@given(
    st.floats(-1e9, 1e9),
    st.floats(-1e9, 1e9),
    st.sampled_from([(0.25, 0.75), (0.0, 0.25), (0.75, 1.0)]),
)
def test_a_round_threshold_separates_its_neighbours(
    one: float, other: float, part: tuple[float, float]
) -> None:
    low, high = min(one, other), max(one, other)
    if low < high:
        assert low <= round_between(low, high, part) < high


def test_a_layout_is_learned_from_its_own_rows_alone(exact: tuple[LayoutModel, Selector]) -> None:
    """Rows of another layout beside them change nothing."""
    other: list[AllGatherGemm] = [replace(place, shard="k") for place in SHAPES[::3]]
    laws = {
        replace_knobs(BSP, form="gather_copy"): LAWS[BSP],
        SMALL: lambda asked: 3 * LAWS[BSP](asked),
    }
    both = learned(dataset([*rows(), *rows(other, laws)]))
    assert both.layouts[ENGINE] == exact[0]
    assert set(both.layouts) == {ENGINE, ("bf16", "k", "nk", 2)}
    assert not both.lent
