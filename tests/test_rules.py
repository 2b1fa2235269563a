"""Constant rules beside the selector, and how scores are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import synthetic
from synthetic import LARGE, SHAPES, SMALL, rows, shape

from tftune.db.target import Target
from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.models.baselines import NEAREST, Rule, rules
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import percentile, score_of, selector_of, strongest_form
from tftune.models.tree.trainer import train_layout

OP = "all_gather_gemm"


CHIP = Target.parse("h200x8").chip


Rows = Callable[..., list[Trial]]


def of(trials: Sequence[Trial], bench: str = "model") -> Dataset:
    return load(trials, OP, "h200x8", "graph", bench)


@pytest.fixture(scope="module")
def dataset(make_rows: Rows) -> Dataset:
    return of(make_rows(paper()))


@pytest.fixture(scope="module")
def measured(make_rows: Rows) -> Dataset:
    return of(make_rows(paper(), bench="node"), "node")


def test_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.95) == 3.0 and percentile([1.0], 0.95) == 1.0


def rules_of(data: Dataset) -> dict[str, Rule]:
    return rules(data.op, CHIP, {place: data.best(place) for place in data.shapes}, data.bsp)


def test_rules_say_what_their_names_say(dataset: Dataset) -> None:
    """Each in turn below and above its threshold; the default of a variant is the operation's
    own."""
    found = rules_of(dataset)
    small, large = dataset.shapes[3], dataset.shapes[-1]
    variants = {name: (rule(small).variant, rule(large).variant) for name, rule in found.items()}
    assert variants["the paper: pull below M=128, push above"] == ("pull", "push")
    assert variants["vLLM: BSP below 4096 tokens, push above"] == ("bsp", "push")
    assert variants["Triton-distributed: BSP below 100 GFLOP, push above"] == ("bsp", "push")
    assert found["always BSP"](small) == dataset.bsp(small)


def test_the_nearest_shape_answers_with_its_best_where_that_is_possible(measured: Dataset) -> None:
    rest = measured.only(place for place in measured.shapes if place.m not in (1, 8192))  # type: ignore[attr-defined]
    assert rules_of(rest)[NEAREST](paper()[0]) == rest.oracle(paper()[1]).config
    best = rest.oracle(paper()[12]).config
    assert best.variant != "bsp" and rules_of(rest)[NEAREST](paper()[13]) == best
    tiny = rest.only([paper()[12]])
    impossible = measured.why_invalid(paper()[0], best) is not None
    assert impossible and rules(OP, CHIP, {paper()[12]: best}, tiny.bsp)[NEAREST](
        paper()[0]
    ) == tiny.bsp(paper()[0])


@pytest.mark.parametrize("bench", ["node", "model"])
def test_the_rows_are_judged_whatever_source_is_installed_and_modelled_ones_too(
    make_rows: Rows, bench: str
) -> None:
    data = of(make_rows(paper(), bench=bench), bench)
    old = replace(data, kernels=dict.fromkeys(data.kernels, "0" * 12))
    selector, fused = selector_of(old, train_layout(old)), 0
    for place in data.shapes:
        assert selector.select(place).config == data.best(place)
        fused += data.best(place).variant != "bsp"
    assert fused > 5


def test_the_strongest_form_is_named_as_the_selector_would_name_it() -> None:
    """Where fused configs answer, too; beyond what was measured that of the measured shape of the
    nearest size."""
    slow = {
        c: law if c in (SMALL, LARGE) else lambda asked: 1.0 for c, law in synthetic.LAWS.items()
    }
    copied = synthetic.REGISTERED
    laws = slow | {
        synthetic.BSP: lambda asked: 50.0 + asked.m / 100,
        copied: lambda asked: 70.0 + asked.m / 400,
    }  # type: ignore[attr-defined]
    data = synthetic.dataset(rows(SHAPES, laws))
    rule = strongest_form(data, selector_of(data, train_layout(data)))
    for place in data.shapes:
        assert rule(place) == data.bsp(place)
    assert {rule(shape(m)) for m in (300, 1500)} == {synthetic.BSP} and {
        rule(shape(m)) for m in (4500, 7000)
    } == {copied}
    assert (rule(shape(4)), rule(shape(16384))) == (synthetic.BSP, copied)


def test_the_bootstrap_draws_whole_groups(dataset: Dataset) -> None:
    """Two groups, of which one loses nothing: the interval reaches from the one to the other. One
    group alone has no spread."""
    good, bad = dataset.shapes[:7], dataset.shapes[7:]
    picks = {place: dataset.oracle(place).config for place in good} | {
        place: dataset.bsp(place) for place in bad
    }
    found = score_of(dataset, picks, [good, bad])
    loss = score_of(dataset, {place: picks[place] for place in bad}, [bad])
    assert (
        found.geomean_interval == (1.0, loss.geomean_regret)
        and loss.geomean_interval == (loss.geomean_regret,) * 2
    )
