"""How a layout answers: rows of this shape, then of the sizes beside it, then the tree of its
families, then BSP."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

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
    REGISTERED,
    ROWS,
    SHAPES,
    SMALL,
    WEIGHTS,
    law,
    model,
    possible,
    scaled,
    selector,
    shape,
    stale,
)

from tftune.db.discount import MODEL_ERROR
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.space import Config
from tftune.models.layout import Known
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.models.tree.tree import Leaf, Split

EXACT = selector(model())
OTHER_LAYER = st.tuples(
    st.sampled_from(range(1664, 10241, 64)), st.sampled_from(range(1792, 10241, 256))
).filter(lambda nk: nk not in LAYERS)
"""(N, K) that were not measured, up to 1.25 times outside of those that were."""


def fastest(asked: AllGatherGemm, laws: Any = LAWS) -> tuple[float, Config]:
    """By the laws, of what is possible."""
    return min((laws[config](asked), config) for config in possible(asked, laws))


def is_fallback(found: Selection) -> bool:
    """BSP, and nothing that could be taken for a time."""
    nothing = found.expected_us is found.bsp_us is found.interval is found.speedup is None
    named = found.source, found.config.variant, found.near
    return named == ("fallback", "bsp", ()) and nothing


def test_a_measured_shape_is_answered_by_what_was_the_fastest_there() -> None:
    variants = set()
    for place in SHAPES:
        (us, config), bsp_us = fastest(place), LAWS[BSP](place)
        found = EXACT.select(place)
        assert (found.config, found.source, found.near) == (config, "measured", (place.sizes_key,))
        assert (found.expected_us, found.bsp_us) == (us, bsp_us)
        assert found.speedup == pytest.approx(bsp_us / us)
        said = f"push was measured to be {found.speedup:.2f} times as fast as BSP on this shape"
        assert said in found.reason
        assert EXACT.path(place) == () and EXACT.leaf(place) is None
        variants.add(config)
    assert variants == {SMALL, LARGE}


def test_a_measured_shape_where_bsp_is_the_fastest_says_so_and_names_its_form() -> None:
    found = selector(model(weights=scaled(2, SMALL, LARGE))).select(SHAPES[-1])
    assert (found.config, found.source) == (BSP, "measured")
    assert (found.interval, found.speedup) == (None, 1.0)
    said = "no fused config was measured to be surely 1 % faster than BSP on this shape"
    assert found.reason == said


@given(st.sampled_from(LAYERS), st.sampled_from(list(pairwise(ROWS))), st.floats(0, 1))
def test_between_two_sizes_the_estimate_lies_between_their_times_and_what_wins_at_both_answers(
    layer: tuple[int, int], ends: tuple[int, int], share: float
) -> None:
    """Times do not fall as M grows; here formulas are exact, so that the estimate is, too."""
    least, most = ends
    m = 2 * round(math.exp(math.log(least) + share * math.log(most / least)) / 2)
    asked = shape(m, *layer)
    found, below, above = EXACT.select(asked), shape(least, *layer), shape(most, *layer)
    if m in ends:
        assert found.source == "measured"
        return
    us, config = fastest(asked)
    assert found.expected_us is not None and found.source == "interpolated"
    assert LAWS[found.config](asked) == pytest.approx(us, rel=0.005)
    assert found.expected_us == pytest.approx(us, rel=0.005)
    assert found.near == (below.sizes_key, above.sizes_key)
    if fastest(below)[1] == fastest(above)[1]:
        assert found.config == config
        assert LAWS[config](below) <= found.expected_us <= LAWS[config](above)
        assert "from the sizes measured below and above" in found.reason


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_between_two_sizes_a_formula_that_is_off_is_corrected_by_what_it_missed_there(
    factor: float,
) -> None:
    """Twice or half as long as every formula says: answers are those of the rows."""
    shapes, weights, asked = SHAPES[:6], scaled(factor, *WEIGHTS), shape(1000, *LAYERS[0])
    rows = replace(model(shapes, weights), formulas=model(shapes).formulas)
    found = selector(rows).select(asked)
    us = law(found.config, weights[found.config])(asked)
    assert found.source == "interpolated" and found.expected_us == pytest.approx(us, rel=0.01)


@given(st.data())
def test_an_estimate_never_leaves_the_times_beside_it_whatever_the_formulas_say(data: Any) -> None:
    """Random times that do not fall as M grows, under formulas that know nothing of them."""
    shapes = [shape(m) for m in ROWS]
    steps = st.lists(st.floats(1, 4), min_size=len(ROWS), max_size=len(ROWS))
    times = [
        [20.0 * math.prod(grows[: n + 1]) for n in range(len(ROWS))]
        for grows in (data.draw(steps), data.draw(steps))
    ]
    rows = tuple(
        Known(place.sizes_key, 0, None, ((0, bsp), (1, us)))
        for place, bsp, us in zip(shapes, *times, strict=True)
    )
    found = selector(replace(model(shapes), known=rows, error=0.0))
    number = data.draw(st.integers(0, len(ROWS) - 2))
    half = data.draw(st.integers(ROWS[number] // 2 + 1, ROWS[number + 1] // 2 - 1))
    answer = found.select(shape(2 * half))
    assert answer.config in (BSP, SMALL, LARGE)
    assert answer.expected_us is not None and answer.bsp_us is not None
    if answer.config != LARGE:
        below, above = times[0 if answer.config == BSP else 1][number : number + 2]
        assert below / (1 + 1e-9) <= answer.expected_us <= above * (1 + 1e-9)


@given(OTHER_LAYER, st.integers(4, 4096))
def test_a_family_that_was_never_measured_is_answered_from_the_tree(
    layer: tuple[int, int], half: int
) -> None:
    """By the fastest, or by BSP where the two are within what estimates err by."""
    asked = shape(2 * half, *layer)
    found, (us, _) = EXACT.select(asked), fastest(asked)
    assert (found.source, found.near) == ("interpolated", (SHAPES[0].sizes_key,))
    assert EXACT.leaf(asked) == EXACT.answerer(asked, "graph").model.root  # type: ignore[union-attr]
    assert EXACT.path(asked) == ()
    if LAWS[BSP](asked) > 1.05 * us:
        assert LAWS[found.config](asked) == pytest.approx(us, rel=0.002)
        assert found.expected_us == pytest.approx(us, rel=0.002)
        assert "from measured shapes of other families" in found.reason
        assert "90 % interval" in found.reason


OUTSIDE = ", where what was measured for dtype=bf16,shard=m,b_layout=nk,world=2 holds"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"m": 2}, f"m=2 is outside of 4 to 8192{OUTSIDE}"),
        ({"m": 8194}, f"m=8194 is outside of 4 to 8192{OUTSIDE}"),
        ({"n": 960}, f"n=960 is outside of 1024 to 16384{OUTSIDE}"),
        ({"n": 16448}, f"n=16448 is outside of 1024 to 16384{OUTSIDE}"),
        ({"k": 768}, "k=768 is outside of "),
        ({"k": 32768}, "k=32768 is outside of "),
        ({"m": 10**400}, f"m of more than 63 bits is outside of 4 to 8192{OUTSIDE}"),
    ],
)
def test_beyond_what_was_measured_the_answer_is_bsp_and_says_which_size(
    changed: dict[str, int], sentence: str
) -> None:
    asked = replace(shape(64, 3072, 3072), **changed)
    found = EXACT.select(asked)
    assert is_fallback(found) and sentence in found.reason
    assert EXACT.path(asked) == EXACT.shortlist(asked) == () and EXACT.leaf(asked) is None
    assert SPACE.why_invalid(asked, found.config, CHIP) is None


def test_beyond_the_sizes_of_its_own_family_the_tree_answers_and_beyond_all_sizes_bsp() -> None:
    shapes = [place for place in SHAPES if (place.n, place.k) != (4096, 4096) or place.m <= 512]
    found = selector(model(shapes))
    beyond = found.select(shape(2048))
    assert beyond.source == "interpolated" and "other families" in beyond.reason
    assert found.leaf(shape(2048)) is not None
    assert found.select(shape(4)).source == "interpolated"  # half of the least that was measured
    assert is_fallback(found.select(shape(16384))) and is_fallback(found.select(shape(2)))


@pytest.mark.parametrize("changes", [{"spans": False}, {"root": None}])
def test_few_families_speak_for_themselves_alone(changes: dict[str, Any]) -> None:
    found = selector(replace(model(SHAPES[:6]), **changes))
    assert found.select(SHAPES[0]).source == "measured"
    assert found.select(shape(64, *LAYERS[0])).source == "interpolated"
    other = found.select(shape(64, 2048, 2304))
    said = "was measured for 1 family of shapes, and this shape is not between two shapes of one"
    assert is_fallback(other) and said in other.reason
    assert is_fallback(found.select(shape(4, *LAYERS[0])))


@pytest.mark.parametrize(
    ("asked", "field"), [(shape(64), "error"), (shape(64, 3072, 3072), "leaf_error")]
)
def test_bsp_answers_unless_the_estimate_lies_above_what_such_estimates_err_by(
    asked: AllGatherGemm, field: str
) -> None:
    """Each kind of estimate by its own error; the interval grows with it and holds the ratio."""
    sure, unsure = (selector(model(**{field: error})).select(asked) for error in (0.01, 1.0))
    assert sure.config == SMALL and sure.speedup is not None and sure.interval is not None
    assert sure.interval[0] < sure.speedup < sure.interval[1] < 1.05 * sure.interval[0]
    assert (unsure.config, unsure.source) == (BSP, "interpolated")
    assert (unsure.interval, unsure.speedup) == (None, 1.0)
    assert unsure.reason.startswith("push is estimated to be ")
    decided = (
        "more than 1.95 times is asked for, as such estimates err by 172% (standard deviation)"
    )
    assert unsure.reason.endswith(f"; {decided}: BSP")


def test_what_is_between_two_sizes_at_one_end_only_errs_as_the_tree_does() -> None:
    """LARGE is not possible at M = 32: between 32 and 128 nothing below bounds its time."""
    quick, asked = scaled(2, SMALL), shape(100)
    assert selector(model(weights=quick)).select(asked).config == LARGE
    assert selector(model(weights=quick, leaf_error=0.5)).select(asked).config == BSP
    assert selector(model(weights=quick, error=0.5)).select(asked).config == LARGE


def test_bsp_answers_by_the_form_that_is_the_strongest_for_the_shape() -> None:
    """A registered gather costs more a call and less a byte; a rule forbids it below 4 MB."""
    slow = scaled(3, SMALL, LARGE)
    registered = (30.0, 0.0, 12.0, 0.1, 1.2, 0.3, 0.0)
    weights = {BSP: slow.pop(BSP), REGISTERED: registered, **slow}
    found = selector(model(weights=weights))
    laws, forms = {form: law(form, weights[form]) for form in (BSP, REGISTERED)}, set()
    for layer in ((4096, 4096), (8192, 8192), (3072, 3072)):
        for m in (16, 700, 1500, 3000, 6000):
            asked = shape(m, *layer)
            answer, (us, _) = found.select(asked), fastest(asked, laws)
            assert laws[answer.config](asked) == pytest.approx(us, rel=0.01)
            assert answer.expected_us == answer.bsp_us == pytest.approx(us, rel=0.01)
            forms.add(answer.config)
    assert forms == {BSP, REGISTERED}


def test_where_nothing_is_known_the_operations_rule_names_the_form() -> None:
    """Registered buffers from a gathered A of 4 MB on; without a target the first form."""
    for m, form in ((2, BSP), (16384, REGISTERED)):
        asked = shape(m)
        assert EXACT.select(asked).config == form == SPACE.fallbacks(asked, CHIP)[0]
        assert Selector().select(asked).config == BSP


def test_a_config_that_breaks_a_rule_here_gives_way_to_the_next() -> None:
    """LARGE by its formula everywhere, but impossible up to M = 64."""
    quick = model(weights=scaled(0.5, LARGE))
    found = selector(quick)
    for layer in ((4096, 4096), (3072, 3072)):
        assert found.select(shape(64, *layer)).config == SMALL
        assert found.select(shape(66, *layer)).config == LARGE
    only = replace(quick, root=Leaf((0, 2), 30, 0.02, ()))
    none = selector(only).select(shape(64, 3072, 3072))
    assert none.config == BSP
    assert "push would be the fastest: block_m must not exceed M" in none.reason


def test_what_was_the_fastest_with_another_source_does_not_answer() -> None:
    """At a measured shape then the sizes beside it answer, since its rows say nothing of the
    others' rank; BSP where none is left."""
    found = selector(stale(model(), SMALL))
    at = found.select(shape(32))
    assert at.config != SMALL and at.source == "interpolated"
    none = selector(stale(model(), SMALL, LARGE)).select(shape(32))
    assert none.config == BSP and "0" * 12 in none.reason
    assert "all_gather_gemm/push has changed: its revision here is" in none.reason
    assert selector(stale(model(), SMALL), check_source=False).select(shape(32)).config == SMALL
    for asked in (shape(2048), shape(700), shape(2048, 3072, 3072)):
        assert found.select(asked) == EXACT.select(asked)
    tree = found.select(shape(32, 3072, 3072))
    assert tree.config == BSP and tree.expected_us == tree.bsp_us
    assert "push would be the fastest: all_gather_gemm/push has changed" in tree.reason
    assert list(found.disabled()) == [f"{OP}/push"] and EXACT.disabled() == {}


KINDS = shape(32), shape(20), shape(32, 3072, 3072)
"""Shapes that are measured, between two sizes, and of another family."""


def test_modes_never_mix() -> None:
    """In eager mode all that is fused is faster still; what is captured knows nothing of it."""
    both = selector(model(weights=scaled(4, SMALL, LARGE)), model(mode="eager"))
    for asked in KINDS:
        assert both.select(asked, "graph").config == BSP
        assert both.select(asked, "eager").config == both.shortlist(asked, "eager")[0] == SMALL
    found = EXACT.select(shape(32), "eager")
    assert is_fallback(found) and EXACT.shortlist(shape(32), "eager") == ()
    assert found.reason == f"mode 'eager' was never measured for {OP} on h200x2; only graph"


def test_two_layouts_each_answer_by_their_own_rows() -> None:
    halves = [replace(place, dtype="fp16") for place in SHAPES]
    both = selector(model(), model(halves, scaled(4, SMALL, LARGE)))
    assert both.answerer(shape(32), "graph").model.layout == ENGINE  # type: ignore[union-attr]
    for m in (32, 20):
        assert both.select(shape(m)).config == SMALL
        assert both.select(replace(shape(m), dtype="fp16")).config == BSP


@pytest.mark.parametrize("m", [32, 20])
def test_modelled_times_name_a_fused_config_only_past_the_models_error(m: int) -> None:
    for factor, served in ((1.0, SMALL), (MODEL_ERROR, BSP)):
        made = model(weights=scaled(factor, SMALL))
        modelled = selector(made, bench="model", allow_modelled=True)
        found = modelled.select(shape(m, 3072, 3072))
        assert (found.config, found.source) == (served, "modelled")
        assert "measured to be" not in found.reason
        assert "times after the discount of 1.44 on modelled speed-ups" in found.reason
    assert found.reason.endswith("0.88 times after the discount of 1.44 on modelled speed-ups: BSP")
    refused = selector(model(), bench="model").select(shape(m))
    assert is_fallback(refused)
    assert "modelled, not measured; load it with allow_modelled=True" in refused.reason


def test_each_leaf_of_the_tree_chooses_among_its_own() -> None:
    leaves = (
        Leaf((0, 1), 15, 0.02, ((8, 2048, 2048),)),
        Leaf((0, 2), 15, 0.02, ((512, 2048, 2048),)),
    )
    root = Split("m", 100.0, *leaves)
    found = selector(replace(model(), root=root))
    below, above = shape(100, 3072, 3072), shape(102, 3072, 3072)
    assert found.path(below) == ("m = 100 <= 100",) and found.path(above) == ("m = 102 > 100",)
    assert (found.leaf(below), found.leaf(above)) == (root.below, root.above)
    assert (found.select(below).config, found.select(above).config) == (SMALL, LARGE)
    assert found.select(above).near == ((512, 2048, 2048),)


def test_a_speed_up_outside_of_its_interval_is_not_told() -> None:
    """The interval is of rounds that both shared; BSP's fastest time may be of a slower moment."""
    made = model()
    place = next(number for number, known in enumerate(made.known) if known.interval is not None)
    known = replace(made.known[place], interval=(1.64, 2.07))
    times = tuple((number, 50.0 if number == known.best else 200.0) for number, _ in known.times_us)

    def answer(times_us: tuple[tuple[int, float], ...]) -> Selection:
        rows = list(made.known)
        rows[place] = replace(known, times_us=times_us)
        return selector(replace(made, known=tuple(rows))).select(SHAPES[place])

    apart = answer(times)
    shared = answer(tuple((number, min(us, 100.0)) for number, us in times))
    assert apart.source == shared.source == "measured"
    assert apart.expected_us == shared.expected_us == 50.0
    assert apart.bsp_us is apart.speedup is None and apart.interval == (1.64, 2.07)
    assert apart.reason == (
        "push was measured to be 1.64 to 2.07 times as fast as BSP on this shape (95 % interval)"
    )
    assert shared.speedup == 2.0 and "2.00 times as fast" in shared.reason
