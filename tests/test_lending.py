"""Lending: a layout answers for another one of the same code, where rows of both agree; as an
estimate, with the error that they showed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from synthetic import (
    BSP,
    ENGINE,
    LARGE,
    LAWS,
    SHAPES,
    SMALL,
    Law,
    dataset,
    learned,
    model,
    rows,
    selector,
    shape,
)

from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config
from tftune.models.answerer import Answerer
from tftune.models.artifact import Lent
from tftune.models.dataset import load
from tftune.models.evaluate import selector_of
from tftune.models.lending import LEAST_PAIRS, LEAST_SHAPES, MOST_ERROR

HALF = ("fp16", "m", "nk", 2)
"""The same code, another dtype."""
TWINS = tuple(replace(place, dtype="fp16") for place in SHAPES)
LENT = Lent(HALF, ENGINE, 0.05, 40)
LENDING = selector(model(), lent=[LENT])


def slower(fused: float) -> dict[Config, Law]:
    """Laws by which all that is fused takes so many times as long."""
    return {
        c: (lambda asked, c=c: round(LAWS[c](asked) * (1.0 if c == BSP else fused), 2))
        for c in LAWS
    }


def lending(twins: Sequence[Trial], mode: str = "graph") -> dict[Any, Lent]:
    """What is lent where the engine layout has all its rows."""
    return dict(learned(dataset([*rows(mode=mode), *twins], mode)).lent)


def test_rows_of_both_that_agree_lend_all_others() -> None:
    found = lending(rows(TWINS[:12], slower(1.02)))
    pairs = sum(place.m >= 128 for place in TWINS[:12]) + 12
    assert found == {HALF: Lent(HALF, ENGINE, pytest.approx(math.log(1.02), abs=1e-3), pairs)}


def test_rows_that_disagree_lend_nothing() -> None:
    assert lending(rows(TWINS[:12], slower(math.exp(MOST_ERROR) + 0.02))) == {}
    twins = [*rows(TWINS[:9], slower(1.0)), *rows(TWINS[9:12], slower(1.2))]
    assert lending(twins) == {}, "one pair of ten is enough"


def test_few_pairs_lend_nothing() -> None:
    """A pair is of a fused config at sizes that both layouts have."""
    few = rows(TWINS[2:12])
    assert sum(trial.config.variant != "bsp" for trial in few) == 18 < LEAST_PAIRS
    assert lending(few) == {}


@pytest.mark.parametrize(("count", "lent"), [(2, False), (3, True)])
def test_many_pairs_of_few_shapes_lend_nothing(count: int, lent: bool) -> None:
    tiles = [
        SMALL.from_dict(SMALL.to_dict() | {"num_stages": stages, "block_n": n})
        for stages in (2, 4, 5)
        for n in (32, 64, 128)
    ]
    laws = LAWS | dict.fromkeys(tiles, LAWS[SMALL])
    twins = rows(TWINS[:count], laws)
    assert sum(trial.config.variant != "bsp" for trial in twins) >= LEAST_PAIRS
    assert LEAST_SHAPES == 3
    assert bool(lending([*rows(SHAPES[:count], laws), *twins])) == lent


def test_rows_of_a_search_are_no_evidence_of_agreement() -> None:
    assert lending(rows(TWINS[:12], stage="search")) == {}


@pytest.mark.parametrize("changed", [{"shard": "k", "b_layout": "kn"}, {"b_layout": "kn"}])
def test_another_code_path_is_not_lent_however_well_rows_agree(changed: dict[str, str]) -> None:
    other = [replace(place, **changed) for place in SHAPES[:12]]  # type: ignore[arg-type]
    forms = {BSP: BSP if "shard" not in changed else Config("bsp", form="gather_copy")}
    assert lending(rows(other, {forms.get(c, c): law for c, law in LAWS.items()})) == {}


def test_a_layout_with_a_tree_of_its_own_borrows_nothing_and_one_without_lends_nothing() -> None:
    assert lending(rows(TWINS)) == {}
    some = [*rows(SHAPES[:12]), *rows(TWINS[:12])]
    assert learned(dataset(some)).lent == {}, "two families answer for no other"


def test_modes_lend_apart() -> None:
    """Captured rows of both agree; eager ones were taken of one layout alone."""
    trials = [*rows(), *rows(TWINS[:12]), *rows(mode="eager")]
    graph, eager = (
        learned(load(trials, "all_gather_gemm", "h200x2", mode, "node"))
        for mode in ("graph", "eager")
    )
    assert graph.lent.keys() == {HALF} and not eager.lent


@pytest.mark.parametrize(
    "asked", [shape(32), shape(20), shape(32, 3072, 3072)], ids=["measured", "between", "tree"]
)
def test_a_lent_answer_is_an_estimate_names_the_layout_and_errs_more(asked: AllGatherGemm) -> None:
    """Even where the other layout's rows are of these very sizes."""
    own, lent = selector(model()).select(asked), LENDING.select(replace(asked, dtype="fp16"))
    assert lent.config == own.config == SMALL and lent.source == "interpolated"
    assert lent.expected_us == pytest.approx(own.expected_us, rel=0.01) and lent.near
    assert (
        "with dtype=bf16,shard=m,b_layout=nk,world=2, which agrees within 5.0% (40 pairs)"
        in lent.reason
    )
    assert own.interval is not None and lent.interval is not None and lent.speedup is not None
    assert lent.interval[1] / lent.interval[0] > 1.05 * own.interval[1] / own.interval[0]
    assert lent.interval[0] < lent.speedup < lent.interval[1]


def test_bsp_answers_where_the_speed_up_is_within_what_layouts_differ_by() -> None:
    """LARGE is about 1.2 times as fast at M = 8192."""
    asked = shape(8192, 4096, 4096, HALF)
    for error, config in ((0.02, LARGE), (0.5, BSP)):
        assert selector(model(), lent=[replace(LENT, error=error)]).select(asked).config == config


def test_nothing_is_lent_to_a_third_layout_or_beyond_what_was_measured() -> None:
    for asked in (
        replace(shape(32), dtype="fp16", b_layout="kn"),
        shape(32, layout=("fp16", "m", "nk", 4)),
        shape(9000, layout=HALF),
    ):
        found = LENDING.select(asked)
        assert (found.source, found.config.variant) == ("fallback", "bsp")


def test_what_is_not_possible_for_the_shape_that_runs_does_not_answer() -> None:
    answerer = LENDING.answerer(shape(64, layout=HALF), "graph")
    assert isinstance(answerer, Answerer) and answerer.model.layout == ENGINE
    quick = model(
        weights={
            BSP: (900.0, 0, 0, 0, 0, 0, 0),
            SMALL: (9.0, 0, 0, 0, 0, 0, 0),
            LARGE: (1.0, 0, 0, 0, 0, 0, 0),
        }
    )
    assert selector(quick, lent=[LENT]).select(shape(40, 3072, 3072, HALF)).config == SMALL


def test_a_shortlist_is_lent_too() -> None:
    assert LENDING.shortlist(shape(32, layout=HALF)) == (SMALL, LARGE)[:1]
    assert LENDING.shortlist(shape(512, 3072, 3072, HALF)) == (LARGE, SMALL)


def test_a_shape_measured_in_its_own_layout_is_answered_by_its_own_rows() -> None:
    """The layout that borrows has some rows, by which it was seen to agree."""
    data = dataset([*rows(), *rows(TWINS[:12], slower(1.02))])
    mode = learned(data)
    found = selector(*mode.layouts.values(), lent=list(mode.lent.values())).select(TWINS[1])
    assert found.source == "measured" and found.near == (TWINS[1].sizes_key,)


def test_a_layout_evaluated_alone_is_lent_nothing() -> None:
    part = dataset([*rows(), *rows(TWINS[:12])]).by_layout()[ENGINE]
    assert selector_of(part, model()).select(TWINS[0]).source == "fallback"
