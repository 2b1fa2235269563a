"""Evaluation: shapes are held out, the production path answers, and constant rules stand beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from tftune.db.trial import Failure, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import evaluate, percentile, score_of
from tftune.models.rules import rules
from tftune.models.train import train
from tftune.models.tree import Leaf, Tree

OP = "all_gather_gemm"
Rows = Callable[..., list[Trial]]


@pytest.fixture(scope="module")
def dataset(make_rows: Rows) -> Dataset:
    return load(make_rows(paper()), OP, "h200x8", "graph", "model")


def test_an_octave_is_never_seen_in_training(dataset: Dataset) -> None:
    seen: list[set[int]] = []

    def fit(part: Dataset) -> Tree:
        seen.append({shape.m for shape in part.shapes})  # type: ignore[attr-defined]
        return train(part)

    report = evaluate(dataset, fit)
    assert report.split == "one octave of m held out at a time" and report.folds == report.shapes == len(seen) == 14
    assert sorted(next(iter({shape.m for shape in paper()} - part)) for part in seen) == sorted(shape.m for shape in paper())


def test_three_families_are_held_out_whole(make_rows: Rows) -> None:
    families = [AllGatherGemm(m=m, n=n, k=8192, world=8) for n in (1024, 3584, 7168) for m in (64, 1024)]
    seen: list[set[int]] = []

    def fit(part: Dataset) -> Tree:
        seen.append({shape.n for shape in part.shapes})  # type: ignore[attr-defined]
        return train(part)

    report = evaluate(load(make_rows(tuple(families)), OP, "h200x8", "graph", "model"), fit)
    assert report.split == "one family of shapes held out at a time" and report.folds == 3 and report.shapes == 6
    assert sorted(map(sorted, seen)) == [[1024, 3584], [1024, 7168], [3584, 7168]]


def test_the_regret_of_each_group_is_told(make_rows: Rows) -> None:
    families = [AllGatherGemm(m=m, n=n, k=8192, world=8) for n in (1024, 3584, 7168) for m in (16, 1024)]
    dataset = load(make_rows(tuple(families)), OP, "h200x8", "graph", "model")
    report = evaluate(dataset)
    assert list(report.groups) == ["n=1024,k=8192", "n=3584,k=8192", "n=7168,k=8192"]
    assert math.prod(mean for mean, _ in report.groups.values()) ** (1 / 3) == pytest.approx(report.selector.geomean_regret, abs=1e-3)
    assert max(worst for _, worst in report.groups.values()) == report.selector.worst_regret


def test_rules_and_figures(dataset: Dataset) -> None:
    report = evaluate(dataset)
    always = report.rules["always BSP"]
    assert {"always BSP", "always pull", "always staged", "always push", "nearest measured shape"} < set(report.rules)
    assert always.oracle_gain_captured == 0 and always.slower_than_bsp == 0 and always.unknown == 0
    assert report.rules["always pull"].slower_than_bsp > 5, "pull reads A again for each column tile"
    for found in (report.selector, *report.rules.values()):
        assert found.geomean_interval[0] <= found.geomean_regret <= found.geomean_interval[1]
        assert 1 <= found.geomean_regret <= found.p95_regret <= found.worst_regret
    assert report.selector.geomean_regret < always.geomean_regret
    assert report.to_dict()["selector"]["geomean_regret"] == report.selector.geomean_regret
    assert "one octave of m held out" in str(report) and "14 shapes" in str(report)


def test_a_perfect_and_a_bad_tree(dataset: Dataset) -> None:
    """The figures are those of the choice: what each shape's own BSP costs, or one pull config, whatever was fitted."""
    pull = next(
        config for config in dataset.candidates() if config.variant == "pull" and config["block_m"] == 16 and config["split_k"] == 1
    )
    report = evaluate(dataset, lambda part: _constant(part, pull))
    assert report.selector.slower_than_bsp > 5 and report.selector.oracle_gain_captured is not None
    assert report.selector.oracle_gain_captured < 0 and report.selector.worst_regret > 3


def _constant(part: Dataset, config: Config) -> Tree:
    leaf = Leaf(config, part.bsp(part.shapes[0]), 1, 1.0, 1.0, "test", part.kernels[config.variant])
    return Tree(part.op, part.mode, leaf, (("world", (8,)),))


def test_a_choice_that_failed_there_is_counted_as_unknown(make_rows: Rows) -> None:
    rows = make_rows(paper())
    pull = next(row.config for row in rows if row.config.variant == "pull" and row.config["block_n"] == 32)
    failing = [replace(r, outcome=Failure("crash", "gone")) if (r.config, r.shape.m) == (pull, 8192) else r for r in rows]  # type: ignore[attr-defined]
    report = evaluate(load(failing, OP, "h200x8", "graph", "model"), lambda part: _constant(part, pull))
    assert report.selector.unknown == 1


def test_a_layout_not_seen_in_training_is_served_by_bsp(make_rows: Rows) -> None:
    """Three families, of which one has its own dtype: held out, the production path answers BSP for it, whatever the tree says."""
    large = paper()[-3:]
    shapes = (*large, *(replace(shape, n=7168) for shape in large), *(replace(shape, n=1024, dtype="bf16") for shape in large))
    dataset = load(make_rows(shapes), OP, "h200x8", "graph", "model")
    slow = next(config for config in dataset.candidates() if config.variant == "pull")

    def fit(part: Dataset) -> Tree:
        return replace(_constant(part, slow), measured=train(part).measured)

    assert evaluate(dataset, fit).selector.slower_than_bsp == 6


def test_one_octave_holds_nothing_out_and_says_so(make_rows: Rows) -> None:
    report = evaluate(load(make_rows(paper()[3:4]), OP, "h200x8", "graph", "model"))
    assert report.split.startswith("nothing held out") and report.folds == 1 and report.selector.unknown == 0


def test_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.95) == 3.0 and percentile([1.0], 0.95) == 1.0


def test_rules_say_what_their_names_say(dataset: Dataset) -> None:
    """Each in turn below and above its threshold; the default of a variant is the operation's own."""
    found = rules(dataset)
    small, large = dataset.shapes[3], dataset.shapes[-1]
    variants = {name: (rule(small).variant, rule(large).variant) for name, rule in found.items()}
    assert variants["the paper: pull below M=128, push above"] == ("pull", "push")
    assert variants["vLLM: BSP below 4096 tokens, push above"] == ("bsp", "push")
    assert variants["Triton-distributed: BSP below 100 GFLOP, push above"] == ("bsp", "push")
    assert found["always BSP"](small) == dataset.bsp(small)


def test_the_nearest_shape_answers_with_its_best_where_that_is_possible(dataset: Dataset) -> None:
    rest = dataset.only(shape for shape in dataset.shapes if shape.m not in (1, 8192))  # type: ignore[attr-defined]
    assert rules(rest)["nearest measured shape"](paper()[0]) == rest.oracle(paper()[1]).config
    best = rest.oracle(paper()[12]).config
    assert rules(rest)["nearest measured shape"](paper()[13]) == best
    tiny = rest.only([paper()[12]])
    impossible = dataset.why_invalid(paper()[0], best) is not None
    assert impossible and rules(tiny)["nearest measured shape"](paper()[0]) == tiny.bsp(paper()[0])


@pytest.mark.parametrize(("other", "captured", "slower"), [(4, 0.0, 0), (2, -0.0957, 2)])
def test_world_sizes_are_held_out_where_there_are_several(other: int, captured: float, slower: int, make_rows: Rows) -> None:
    """A world size never measured is served by BSP: by its first form, which between two GPUs is not its fastest where A is large."""
    shapes = tuple(replace(shape, world=world) for world in (other, 8) for shape in paper()[4::4])
    several = load(make_rows(shapes), OP, "h200x8", "graph", "model")
    report = evaluate(several, split="world")
    assert report.split == "one world size held out at a time" and report.folds == 2
    assert (report.selector.oracle_gain_captured, report.selector.slower_than_bsp) == (captured, slower)
    assert evaluate(several, split="family").split.startswith("nothing held out (all shapes are of one family)")
    with pytest.raises(ValueError, match=r"there is no split 'moon'; there are family, octave, world"):
        evaluate(several, split="moon")


def test_the_bootstrap_draws_whole_groups(dataset: Dataset) -> None:
    """Two groups, of which one loses nothing: the interval reaches from the one to the other. One group alone has no spread."""
    good, bad = dataset.shapes[:7], dataset.shapes[7:]
    picks = {shape: dataset.oracle(shape).config for shape in good} | {shape: dataset.bsp(shape) for shape in bad}
    found = score_of(dataset, picks, [good, bad])
    loss = score_of(dataset, {shape: picks[shape] for shape in bad}, [bad])
    assert found.geomean_interval == (1.0, loss.geomean_regret) and loss.geomean_interval == (loss.geomean_regret,) * 2
