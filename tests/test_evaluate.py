"""Evaluation: shapes of a layout are held out, the production path answers, and constant rules
stand beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import synthetic
from synthetic import LAYERS, ROWS, SHAPES, rows, shape

from tftune.db.trial import Failure, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.baselines import NEAREST
from tftune.models.dataset import Dataset, configs_of, load
from tftune.models.evaluate import Evaluation, evaluate, score_of
from tftune.models.formula.formula import Formula
from tftune.models.layout import Known, LayoutModel
from tftune.models.tree.trainer import train_layout
from tftune.models.tree.tree import Leaf

OP = "all_gather_gemm"
ENDS = {ROWS[0], ROWS[-1]}
Rows = Callable[..., list[Trial]]


def of(trials: Sequence[Trial], bench: str = "model") -> Dataset:
    return load(trials, OP, "h200x8", "graph", bench)


@pytest.fixture(scope="module")
def dataset(make_rows: Rows) -> Dataset:
    return of(make_rows(paper()))


@pytest.fixture(scope="module")
def families(make_rows: Rows) -> Dataset:
    shapes = [AllGatherGemm(m, n, 8192, 8) for n in (1024, 3584, 7168) for m in (16, 1024)]
    return of(make_rows(tuple(shapes)))


def constant(part: Dataset, config: Config) -> LayoutModel:
    """What names one config for every shape in range, whatever was measured."""
    configs, place = (part.bsp(part.shapes[0]), config), part.shapes[0]
    count = len(operation(part.op).module("features").TERMS)
    formulas = tuple(Formula((us, *[0.0] * (count - 1)), (), 1, 1 << 40) for us in (100.0, 1.0))
    known = tuple(
        Known(shape.sizes_key, 1, (100.0, 100.0), ((0, 100.0), (1, 1.0))) for shape in part.shapes
    )
    leaf = Leaf((0, 1), len(known), 0.01, ())
    kernels = "", part.kernels[config.variant]
    return LayoutModel(
        part.op, part.mode, place.layout, configs, kernels, formulas, known, leaf, True, 0.01
    )


class Recorded:
    """Trains, or answers as it is told, and keeps what it was given to learn from."""

    def __init__(
        self,
        train: Callable[[Dataset], LayoutModel] = lambda part: synthetic.model(list(part.shapes)),
    ) -> None:
        self.train = train
        self.seen: list[tuple[Shape, ...]] = []

    def __call__(self, part: Dataset) -> LayoutModel:
        self.seen.append(part.shapes)
        return self.train(part)


def report_of(*asked: Any, **options: Any) -> Evaluation:
    found = evaluate(*asked, **options)
    assert found is not None
    return found


def test_neither_the_family_nor_the_size_of_what_is_judged_was_seen_in_training() -> None:
    """But for the least and the greatest size, beyond which nothing is answered: there the family
    alone is held out."""
    data, train, judged = synthetic.dataset(), Recorded(), list[Shape]()

    def each(work: Callable[[Any], Any], folds: Iterable[Any]) -> Iterable[Any]:
        for learned, asked in folds:
            layers, sizes = {place.layer for place in learned}, {place.m for place in learned}
            assert sizes >= ENDS
            assert all(
                place.layer not in layers and (place.m not in sizes or place.m in ENDS)
                for place in asked
            )
            judged.extend(asked)
            yield work((learned, asked))

    report = report_of(data, train, each=each)
    assert report.split == "family and m held out at once"
    assert sorted(judged) == sorted(SHAPES)
    assert report.shapes == len(SHAPES)
    assert report.folds == len(train.seen)
    for seen in train.seen:
        assert len({place.layer for place in seen}) == len(LAYERS) - 1
    assert evaluate(data, train) == evaluate(data, train, "any") == report


def test_of_one_family_sizes_alone_are_held_out(dataset: Dataset) -> None:
    train = Recorded(train_layout)
    report = report_of(dataset, train)
    assert report.shapes == 12 and report.folds == len(train.seen) == 5
    left = [place.m for seen in train.seen for place in paper() if place not in seen]
    assert sorted(left) == [place.m for place in paper()][1:-1]


def test_a_size_is_held_out_of_every_family_where_it_lies_between_two_others() -> None:
    shapes = [*SHAPES, shape(16384, *LAYERS[0])]
    train = Recorded()
    report = report_of(synthetic.dataset(rows(shapes)), train, "m")
    assert report.split == "one m held out at a time, but for the least and the greatest"
    assert report.folds == len(ROWS) - 1
    assert report.shapes == len(LAYERS) * (len(ROWS) - 2) + 1
    ends = {(m, shape(m, *layer).layer) for layer in LAYERS for m in ENDS} - {
        (8192, shape(8, *LAYERS[0]).layer)
    }
    for m, seen in zip(ROWS[1:], train.seen, strict=True):
        left = {place for place in shapes if place not in seen}
        inner = {place for place in shapes if place.m == m and (m, place.layer) not in ends}
        assert left == inner != set()


def test_three_families_are_held_out_whole(families: Dataset) -> None:
    train = Recorded(train_layout)
    report = report_of(families, train, "family")
    assert report.split == "one family of shapes held out at a time"
    assert report.folds == 3
    assert report.shapes == 6
    widths = sorted(sorted({place.n for place in seen}) for seen in train.seen)
    assert widths == [[1024, 3584], [1024, 7168], [3584, 7168]]
    assert [len(seen) for seen in train.seen] == [4, 4, 4]


def test_the_regret_of_each_family_is_told(families: Dataset) -> None:
    report = report_of(families, split="family")
    assert list(report.groups) == ["n=1024,k=8192", "n=3584,k=8192", "n=7168,k=8192"]
    assert math.prod(mean for mean, _ in report.groups.values()) ** (1 / 3) == pytest.approx(
        report.selector.geomean_regret, abs=1e-3
    )
    assert max(worst for _, worst in report.groups.values()) == report.selector.worst_regret > 1
    both = report_of(synthetic.dataset(), Recorded())
    assert set(both.groups) == {place.layer for place in SHAPES}, "whatever was held out"


def test_rules_and_figures(dataset: Dataset) -> None:
    report = report_of(dataset, split="m")
    always = report.rules["always BSP"]
    assert {"always BSP", "always pull", "always staged", "always push", NEAREST} < set(
        report.rules
    )
    assert always.oracle_gain_captured == 0 and always.slower_than_bsp == 0 and always.unknown == 0
    assert report.rules["always pull"].slower_than_bsp > 5, (
        "pull reads A again for each column tile"
    )
    for found in (report.selector, *report.rules.values()):
        assert found.geomean_interval[0] <= found.geomean_regret <= found.geomean_interval[1]
        assert 1 <= found.geomean_regret <= found.p95_regret <= found.worst_regret
    assert report.selector.geomean_regret < always.geomean_regret
    assert report.to_dict()["selector"]["geomean_regret"] == report.selector.geomean_regret
    assert "one m held out at a time" in str(report) and "12 shapes in 12 folds" in str(report)


def slow_pull(dataset: Dataset) -> Config:
    pulls = [config for config in configs_of(dataset) if config.variant == "pull"]
    return next(pull for pull in pulls if (pull["block_m"], pull["split_k"]) == (16, 1))


@pytest.mark.parametrize("split", ["any", "m"])
def test_a_perfect_and_a_bad_model(dataset: Dataset, split: str) -> None:
    """The figures are those of the choice: what each shape's own best costs, or one pull config,
    whatever was fitted."""
    pull = slow_pull(dataset)
    report = report_of(dataset, lambda part: constant(part, pull), split)
    assert report.selector.unknown == 0
    assert report.selector.slower_than_bsp > 5 and report.selector.oracle_gain_captured is not None
    assert report.selector.oracle_gain_captured < 0 and report.selector.worst_regret > 3
    inner = dataset.shapes[1:-1]
    lost = [dataset.log_regret(place, pull) or 0.0 for place in inner]
    assert report.selector.geomean_regret == pytest.approx(
        math.exp(sum(lost) / len(lost)), abs=1e-4
    )
    assert report.selector.worst_shape == str(inner[lost.index(max(lost))])
    perfect = score_of(dataset, {place: dataset.oracle(place).config for place in inner}, [inner])
    assert perfect.geomean_regret == 1
    assert perfect.worst_regret == 1
    assert perfect.slower_than_bsp == 0
    assert perfect.oracle_gain_captured == 1


@pytest.mark.thorough
def test_exact_rows_lose_almost_nothing_on_shapes_of_no_family_and_size_that_was_seen() -> None:
    """The least and the greatest N and K are those of several families, so that no fold lacks
    them."""
    shapes = [shape(m, n, k) for n in (2048, 4096, 8192) for k in (2048, 8192) for m in ROWS]
    report = report_of(synthetic.dataset(rows(shapes)))
    assert report.selector.geomean_regret < 1.003
    assert report.selector.worst_regret < 1.05
    assert report.selector.slower_than_bsp == 0 == report.selector.unknown
    assert (report.selector.oracle_gain_captured or 0) > 0.98
    known = [score.geomean_regret for score in report.rules.values() if not score.unknown]
    assert len(known) >= 2 and report.selector.geomean_regret < min(known)


def test_a_choice_that_failed_there_is_counted_as_unknown(make_rows: Rows) -> None:
    trials = make_rows(paper())
    pull = next(
        row.config for row in trials if row.config.variant == "pull" and row.config["block_n"] == 32
    )
    failing = [
        replace(r, outcome=Failure("crash", "gone")) if (r.config, r.shape.m) == (pull, 4096) else r
        for r in trials
    ]  # type: ignore[attr-defined]
    broken, sound = (
        evaluate(of(each), lambda part: constant(part, pull), "m") for each in (failing, trials)
    )
    assert broken is not None
    assert sound is not None
    assert broken.selector.unknown == 1
    assert sound.selector.unknown == 0
    assert broken.shapes == sound.shapes == 12
    assert broken.selector.geomean_regret < sound.selector.geomean_regret


@pytest.mark.parametrize("split", ["any", "family", "m"])
def test_what_is_held_out_is_unseen_outside_of_the_matrix_too(split: str) -> None:
    """Two sizes of a family that is judged were measured by a search alone."""
    outside = {shape(m, 4096, 4096) for m in (32, 512)}
    trials = [
        replace(trial, stage="search") if trial.shape in outside else trial for trial in rows()
    ]
    data, folds = synthetic.dataset(trials), list[tuple[Sequence[Shape], Sequence[Shape]]]()
    assert set(data.shapes) - set(data.matrix) == outside

    def each(work: Callable[[Any], Any], given: Iterable[Any]) -> Iterable[Any]:
        folds.extend(given)
        return map(work, folds)

    train = Recorded()
    assert evaluate(data, train, split, each=each) is not None and len(train.seen) == len(folds) > 2
    for seen, (learned, asked) in zip(train.seen, folds, strict=True):
        assert set(seen) == set(learned) and not outside & set(asked)
        if split != "m":
            assert {place.layer for place in asked}.isdisjoint(place.layer for place in seen)
        if split == "m":  # of the families judged
            families, sizes = {place.layer for place in asked}, {place.m for place in asked}
            alike = [place for place in seen if place.layer in families]
            assert sizes.isdisjoint(place.m for place in alike)
    assert any(outside & set(learned) for learned, _ in folds), "elsewhere they are learned from"


def test_folds_may_be_judged_in_any_order_by_others() -> None:
    data = synthetic.dataset()

    def backwards(work: Callable[[Any], Any], folds: Iterable[Any]) -> Iterable[Any]:
        return [work(fold) for fold in reversed(list(folds))]

    assert evaluate(data, Recorded(), each=backwards) == evaluate(data, Recorded())


@pytest.mark.parametrize("split", ["any", "family", "m"])
def test_one_shape_holds_nothing_out(make_rows: Rows, split: str) -> None:
    assert evaluate(of(make_rows(paper()[3:4])), split=split) is None


def test_one_family_and_the_ends_of_sizes_hold_nothing_out(
    dataset: Dataset, families: Dataset
) -> None:
    assert evaluate(dataset, split="family") is None and evaluate(families, split="m") is None


def test_an_unknown_split_is_refused(dataset: Dataset) -> None:
    with pytest.raises(ValueError, match=r"there is no split 'moon'; there are any, family, m$"):
        evaluate(dataset, split="moon")
