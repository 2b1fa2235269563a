"""The selector's shortlist: fused, valid, of this layout, of kernels as they are; and `confirm`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from synthetic import (
    BSP,
    ENGINE,
    LARGE,
    LAWS,
    LAYERS,
    OP,
    ROWS,
    SHAPES,
    SMALL,
    WEIGHTS,
    content,
    law,
    model,
    rows,
    scaled,
    selector,
    shape,
    stale,
)

from tftune.db.target import Machine
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.space import Config
from tftune.models import selector as module
from tftune.models.artifact import parse_artifact
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.models.tree.tree import Leaf

TREE, BETWEEN, MEASURED = shape(512, 3072, 3072), shape(700), shape(512)
"""Answered by the tree, by the sizes below and above, by its own rows."""
PLACES = pytest.mark.parametrize(
    "asked", [TREE, BETWEEN, MEASURED], ids=["tree", "between", "measured"]
)
OTHER = Config("push", **dict(LARGE.knobs) | {"num_stages": 4})
THREE = WEIGHTS | {OTHER: tuple(1.1 * weight for weight in WEIGHTS[LARGE])}
FOUND = selector(model(weights=THREE))


@PLACES
def test_the_fastest_comes_first_and_no_more_than_were_asked_for(asked: AllGatherGemm) -> None:
    times = {config: law(config, THREE[config])(asked) for config in (SMALL, LARGE, OTHER)}
    ranked = tuple(sorted(times, key=times.__getitem__))
    assert len(set(times.values())) == 3 and FOUND.select(asked).config == ranked[0]
    for top in range(5):
        assert FOUND.shortlist(asked, top=top) == ranked[:top]
    assert FOUND.shortlist(asked) == ranked and FOUND.shortlist(asked, "eager") == ()


@PLACES
def test_bsp_is_never_on_it_and_hides_nothing_where_it_is_the_answer(asked: AllGatherGemm) -> None:
    """What it was faster than is worth a try elsewhere."""
    slow = selector(model(weights=scaled(9, SMALL, LARGE, OTHER, weights=THREE)))
    assert slow.select(asked).config == BSP and set(slow.shortlist(asked)) == {SMALL, LARGE, OTHER}


def test_what_is_impossible_for_the_shape_is_left_out() -> None:
    for asked in (shape(64, 3072, 3072), shape(48), shape(32)):
        assert SPACE.why_invalid(asked, LARGE) and FOUND.shortlist(asked) == (SMALL,)


def test_configs_with_rows_here_or_nearby_come_before_the_others_of_the_leaf() -> None:
    """At M = 128 LARGE alone was kept, and OTHER at 512 alone: between the two sizes formulas say
    what OTHER may take."""
    kept = {128: (0, 2), 512: (0, 1, 2, 3)}
    found = model(weights=THREE)
    few = tuple(
        replace(
            known,
            times_us=tuple(
                pair for pair in known.times_us if pair[0] in kept.get(known.sizes[0], (0, 1, 2, 3))
            ),
        )
        for known in found.known
    )
    fast = found.formulas[3]
    named = replace(
        found,
        known=few,
        formulas=(*found.formulas[:3], replace(fast, weights=tuple(w / 9 for w in fast.weights))),
    )
    assert selector(named).shortlist(shape(128)) == (LARGE, OTHER, SMALL), (
        "its own rows first, whatever formulas say of the others"
    )
    assert selector(named).shortlist(shape(256)) == (OTHER, LARGE, SMALL)
    without = replace(named, root=Leaf((0, 2), len(SHAPES), 0.02, ()))
    assert selector(without).shortlist(shape(256)) == (LARGE,)
    assert selector(without).shortlist(shape(128)) == (LARGE, SMALL), (
        "SMALL is of the sizes beside it, 32 and 512"
    )


def test_answers_are_of_this_layout_alone() -> None:
    halves = [replace(place, dtype="fp16") for place in SHAPES]
    both = selector(
        model(), model(halves, {BSP: WEIGHTS[BSP], SMALL: WEIGHTS[SMALL], OTHER: WEIGHTS[LARGE]})
    )
    for asked in (TREE, BETWEEN, MEASURED):
        assert LARGE in both.shortlist(asked) and OTHER not in both.shortlist(asked)
        half = replace(asked, dtype="fp16")
        assert OTHER in both.shortlist(half) and LARGE not in both.shortlist(half)


NOT_APPLIED = [
    {"bench": "model", "allow_modelled": True},
    {"bench": "model"},
    {"bsp_only": "ranks differ"},
]


@PLACES
@pytest.mark.parametrize("changed", NOT_APPLIED, ids=["modelled", "refused", "bsp only"])
def test_without_an_artifact_that_applies_it_is_empty(
    asked: AllGatherGemm, changed: dict[str, Any]
) -> None:
    """Modelled times never ran: nobody knows whether such a config ends."""
    assert selector(model()).shortlist(asked)
    assert selector(model(), **changed).shortlist(asked) == ()


@PLACES
def test_of_another_layout_or_kernel_it_is_empty(asked: AllGatherGemm) -> None:
    found = model()
    assert selector(found).shortlist(replace(asked, shard="k")) == () == Selector().shortlist(asked)
    assert selector(stale(found, SMALL, LARGE)).shortlist(asked) == ()
    assert selector(stale(found, SMALL)).shortlist(asked) == (LARGE,)
    assert selector(stale(found, LARGE)).shortlist(asked) == (SMALL,)


@PLACES
def test_on_another_machine_it_is_empty(asked: AllGatherGemm) -> None:
    document = {
        "target": "h200x2",
        "arch": "sm_90",
        "op": OP,
        "build": {"triton": "3.6.0"},
        "modelled": False,
    }
    found = selector(model())
    artifact = replace(found.artifacts[OP], document=document)
    for machine, applies in (
        (Machine("h200x2", "sm_90", {"triton": "3.6.1"}), True),
        (Machine("h200x2", "sm_90", {"triton": "3.7.0"}), False),
        (Machine("h200x4", "sm_90", {"triton": "3.6.0"}), False),
    ):  # fmt: skip
        assert Selector(artifact, machine=machine).shortlist(asked) == (
            found.shortlist(asked) if applies else ()
        )
    assert found.shortlist(asked)[0] == found.select(asked).config


def test_of_the_rows_of_a_search_it_names_what_they_measured() -> None:
    searched = [replace(trial, stage="search") for trial in rows()]
    found = Selector(parse_artifact(content(searched)))
    measured = {trial.config for trial in searched}
    for m in (8, 20, 128, 700, 2048):
        for n, k in (*LAYERS, (3072, 3072)):
            listed = found.shortlist(shape(m, n, k))
            assert listed and set(listed) <= measured - {BSP}
            assert found.select(shape(m, n, k)).config in (listed[0], BSP)


class TestConfirm:
    ANSWER = Selection(LARGE, "measured", "here")

    @PLACES
    def test_it_answers_from_then_on_in_this_mode_and_for_this_shape(
        self, asked: AllGatherGemm
    ) -> None:
        slow = scaled(3, LARGE)
        found = selector(model(weights=slow), model(weights=slow, mode="eager"))
        before = found.select(asked)
        found.confirm(asked, "graph", self.ANSWER)
        assert before.config != LARGE and found.select(replace(asked)) is self.ANSWER
        assert found.select(asked, "eager") == before
        assert found.select(replace(asked, m=asked.m - 2)).config == before.config

    def test_it_outlives_the_memo(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MEMO", 2)
        found = selector(model())
        found.confirm(TREE, "graph", self.ANSWER)
        for m in range(600, 620, 2):
            found.select(shape(m, 3072, 3072))
        assert found.select(TREE) is self.ANSWER

    def test_an_unknown_mode_is_no_mode_of_its_own(self) -> None:
        with pytest.raises(ValueError, match="mode='cuda_graph' is not one of graph, eager"):
            selector(model()).confirm(TREE, "cuda_graph", self.ANSWER)

    def test_ranks_that_do_not_agree_forget_it(self) -> None:
        found = selector(model())
        found.confirm(TREE, "graph", self.ANSWER)
        assert found.restricted("rank 1 differs").select(TREE).config.variant == "bsp"


def test_the_rows_of_this_file_are_as_it_says() -> None:
    assert TREE.layout == ENGINE
    assert (TREE.n, TREE.k) not in LAYERS
    assert BETWEEN.m not in ROWS
    assert MEASURED in SHAPES
    assert LAWS[BSP](MEASURED) > LAWS[LARGE](MEASURED)
