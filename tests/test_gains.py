"""Speed-ups measured around a shape: the plane through them, when they are kept, and what they
answer."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from synthetic import (
    BSP,
    ENGINE,
    LARGE,
    LAWS,
    SHAPES,
    SMALL,
    SPACE,
    Law,
    dataset,
    model,
    rows,
    selector,
    shape,
)

from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.gains import (
    FAR,
    LEAST,
    MOST,
    RIDGE,
    TRIED,
    WIDTH,
    Around,
    Gains,
    Ranking,
    logs_of,
    nearest,
    padded,
)  # fmt: skip
from tftune.models.layout import Known
from tftune.models.tree.codec import pack_layout, unpack_layout
from tftune.models.tree.trainer import train_layout
from tftune.report.explain import Explanation


def points(count: int, seed: int = 1) -> list[tuple[int, tuple[float, ...]]]:
    random = Random(seed)
    return [(number, tuple(random.uniform(0, 3) for _ in range(3))) for number in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_an_estimate_is_the_plane_of_least_squares(seed: int) -> None:
    """As numpy solves it; the rows reach it in any order of sizes."""
    known, random = points(MOST, seed), Random(seed)
    values = [random.uniform(-0.5, 0.5) for _ in known]
    around = Around((1.5, 1.5, 1.5), known)
    places = dict(known)
    offsets = np.array([places[number] for number in around.numbers]) - 1.5
    away = np.linalg.norm(offsets, axis=1)
    assert away.max() < FAR and list(away) == sorted(away)
    weights = np.exp((away[0] ** 2 - away**2) / (2 * WIDTH**2))
    terms = np.c_[np.ones(len(weights)), offsets]
    penalty = RIDGE * np.diag([0.0, 1.0, 1.0, 1.0])
    seen = np.array([values[number] for number in around.numbers])
    expected = np.linalg.solve((terms.T * weights) @ terms + penalty, (terms.T * weights) @ seen)
    assert around.estimate(values) == pytest.approx(expected[0])


def test_what_is_far_or_unmeasured_does_not_count() -> None:
    near = points(LEAST)
    place = (1.5, 1.5, 1.5)
    beyond = [(LEAST, (1.5, 1.5, 1.5 + FAR + 0.1))]
    values: list[float | None] = [0.2] * LEAST
    assert Around(place, near).estimate(values) == pytest.approx(0.2)
    assert Around(place, near + beyond).estimate([*values, 50.0]) == pytest.approx(0.2)
    assert Around(place, near).estimate([None, *values[1:]]) is None
    assert Around(place, []).estimate([]) is None


def test_the_nearest_shapes_count_alone_where_there_are_many() -> None:
    known = points(3 * MOST)
    around = Around((1.5, 1.5, 1.5), known)
    values: list[float | None] = [0.0] * len(known)
    for number in around.numbers[MOST:]:
        values[number] = 9.0
    assert around.estimate(values) == pytest.approx(0.0)
    values[around.numbers[MOST - 1]] = 9.0
    assert around.estimate(values) != pytest.approx(0.0)


def test_an_estimate_does_not_leave_what_was_seen() -> None:
    """A plane through values that grow along a size ends at the highest and the lowest of them."""
    known = [(number, (0.25 * number, 0.0, 0.0)) for number in range(8)]
    values = [0.1 * number for number in range(8)]
    above, below = (Around((place, 0.0, 0.0), known) for place in (3.5, -1.75))
    assert above.estimate(values) == max(values) and below.estimate(values) == min(values)


def test_variants_are_ranked_by_their_estimates() -> None:
    around = Around((1.5, 1.5, 1.5), points(6))
    logs = {"slow": [-0.1] * 6, "fast": [0.3] * 6, "unknown": [None] * 6}
    assert [(round(log, 6), variant) for log, variant in Ranking(around, logs)] == [
        (0.3, "fast"),
        (-0.1, "slow"),
    ]


def with_gains(log: float, error: float = 0.02) -> Any:
    """A layout whose formulas say that push is the faster one, with speed-ups that say `log`."""
    return replace(model(), gains=Gains(error, {"push": (log,) * len(SHAPES)}))


OTHER = shape(64, 3072, 3072)
"""A shape of a family that was not measured."""


def test_a_shape_of_another_family_is_answered_by_what_was_measured_around_it() -> None:
    assert selector(model()).select(OTHER).config == SMALL, "so say the formulas"
    faster, slower = (selector(with_gains(log)).select(OTHER) for log in (0.3, -0.1))
    assert faster.config == SMALL and faster.speedup == pytest.approx(math.exp(0.3), rel=1e-3)
    assert "from measured shapes around it" in faster.reason
    assert faster.bsp_us == pytest.approx(LAWS[BSP](OTHER), rel=0.15), "BSP's own time there"
    assert slower.config == BSP and "0.90 times as fast" in slower.reason
    assert selector(with_gains(0.3)).leaf(OTHER) is None and selector(model()).leaf(OTHER)
    answerer = selector(with_gains(0.3)).answerer(OTHER, "graph")
    around = answerer.around(OTHER)
    assert list(around) == ["push"] and around["push"] == pytest.approx(math.exp(0.3), rel=1e-3)
    assert answerer.around(SHAPES[0]) == answerer.around(shape(64)) == {}, "own rows answer"
    told = Explanation(OTHER, "graph", "h200x2", faster, (), None, (), around, [], []).sentences()
    assert "  around it, times as fast as BSP, estimated from measured shapes: push 1.35" in told
    assert selector(with_gains(0.05, error=0.2)).select(OTHER).config == BSP, "more is asked for"


def test_a_config_whose_tiles_do_not_fit_here_is_passed_over() -> None:
    """At M = 64, the nearest, TALL is the fastest: its tiles of 64 rows fill the chip once. Those
    of M = 70 would do so twice, LARGE's of 128 rows once."""
    tall = SPACE.complete(Config("push", **dict(LARGE.knobs) | {"block_m": 64, "block_n": 64}))
    weights = {
        BSP: (400.0, *[0.0] * 6), tall: (8.0, 12.0, *[0.0] * 5), LARGE: (8.0, 16.0, *[0.0] * 5),
    }  # fmt: skip
    shapes = [shape(m, 8192, k) for k in (2048, 4096, 8192) for m in (32, 64, 256, 512)]
    told = replace(model(shapes, weights), gains=Gains(0.02, {"push": (0.3,) * len(shapes)}))
    found, asked = selector(told), shape(70, 8000, 5120)
    assert [found.select(shape(m, 8192, 4096)).config for m in (64, 256)] == [tall, LARGE]
    assert found.answerer(asked, "graph").around(asked) and found.select(asked).config == LARGE
    assert found.select(shape(60, 8000, 5120)).config == tall


def test_rows_are_those_of_whole_tiles() -> None:
    assert [padded(rows) for rows in range(1, 13)] == [1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 12, 12]
    assert [padded(rows) for rows in (33, 48, 49, 65, 97, 129, 513, 1000, 8192)] == [
        48, 48, 64, 96, 128, 192, 640, 1024, 8192,
    ]  # fmt: skip
    assert logs_of((35, 4096, 4096), 0) == logs_of((48, 4096, 4096), 0)


def test_sizes_that_fill_the_same_tiles_share_their_estimates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no more places are kept than that."""
    monkeypatch.setattr("tftune.models.surroundings.PLACES_KEPT", 2)
    worked_out: list[Any] = []
    plane = Around.plane
    monkeypatch.setattr(Around, "plane", lambda *given: worked_out.append(1) or plane(*given))
    told, fresh = selector(with_gains(0.3)), selector(with_gains(0.3))
    found = told.select(OTHER)
    assert len(worked_out) == 2, "BSP's time and push's speed-up"
    answers = [told.select(shape(m, 3072, 3072)) for m in (62, 60)]
    assert len(worked_out) == 2
    assert answers == [fresh.select(shape(m, 3072, 3072)) for m in (62, 60)]
    for m in (80, 96, 112):
        told.select(shape(m, 3072, 3072))
    assert told.select(OTHER) == found


def test_the_nearest_that_takes_about_as_long_as_the_fastest_is_named() -> None:
    assert nearest([(1.04, "near"), (1.0, "far")]) == "near"
    assert nearest([(1.06, "near"), (1.04, "next"), (1.0, "far")]) == "next"
    assert nearest([(9.0, "near")] * TRIED + [(1.0, "too far")]) == "near"
    assert nearest([(math.inf, "never"), (5.0, "far")]) == "far"
    assert nearest([(math.inf, "never")]) is None and nearest([]) is None


def test_what_answers_is_the_first_to_be_tried_in_place() -> None:
    told = replace(with_gains(0.3), root=None, spans=True)
    assert selector(with_gains(0.3)).shortlist(OTHER)[0] == SMALL
    assert LARGE in selector(with_gains(0.3)).shortlist(shape(512, 3072, 3072))
    assert selector(told).shortlist(OTHER) == ()  # nothing is said of other families


def test_measured_shapes_and_those_between_two_sizes_are_answered_as_before() -> None:
    plain, told = selector(model()), selector(with_gains(-0.1))
    for asked in (SHAPES[0], shape(64)):
        assert plain.select(asked) == told.select(asked)


def test_where_too_few_shapes_are_near_formulas_answer() -> None:
    far = shape(64, 1700, 1700)  # 3.3 doublings from the farthest, and LEAST are not as near
    few = {number: place for number, place in enumerate(SHAPES[: LEAST - 1])}
    told = replace(
        model(),
        gains=Gains(0.02, {"push": tuple(-0.5 if n in few else None for n in range(len(SHAPES)))}),
    )
    assert selector(told).select(far) == selector(model()).select(far)


def test_gains_are_written_and_read_again() -> None:
    told = with_gains(0.25)
    packed = json.loads(json.dumps(pack_layout(told)))
    assert unpack_layout(told.op, told.mode, packed).gains == told.gains
    assert "gains" not in pack_layout(model())


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ({"error": 0.1, "logs": {"push": [0.1]}}, "push has 1 speed-ups, of 30 measured shapes"),
        ({"error": 0.1, "logs": {"pull": [0.1] * 30}}, "the variants of .* are push"),
        ({"error": 0.1, "logs": {"push": [1e9] * 30}}, "a speed-up of push is none"),
        ({"error": -1.0, "logs": {}}, "an error of .* is -1.0"),
        ({"error": math.nan, "logs": {}}, "an error of .* is nan"),
    ],
)
def test_gains_that_no_training_writes_are_refused(gains: dict[str, Any], said: str) -> None:
    packed = pack_layout(model()) | {"gains": gains}
    with pytest.raises(ValueError, match=said):
        unpack_layout("all_gather_gemm", "graph", packed)


@pytest.mark.parametrize(
    "gains",
    [
        None, [], {}, {"error": 0.1}, {"error": 0.1, "logs": [1]}, {"error": "0.1", "logs": {}},
        {"error": 0.1, "logs": {"push": "1" * 30}}, {"error": 0.1, "logs": {"push": [True] * 30}},
    ],
)  # fmt: skip
def test_what_is_no_gains_is_refused(gains: Any) -> None:
    with pytest.raises(TypeError, match="gains are"):
        Gains.from_dict(gains)


def test_a_kernel_measured_at_both_ends_says_more_than_shapes_around() -> None:
    """M = 256 of a family whose M of 128 and 512 have a kernel in common, however high or low the
    speed-ups around are; where they have none, these answer."""
    asked = shape(256)
    assert selector(model()).select(asked).config == LARGE
    for log in (-0.5, 0.9):
        assert selector(with_gains(log)).select(asked) == selector(model()).select(asked)
    told = with_gains(0.2)
    known = tuple(by_bsp(one) if one.sizes[0] == 512 else one for one in told.known)
    apart = selector(replace(told, known=known))
    answer = apart.select(asked)
    assert answer.speedup == pytest.approx(math.exp(0.2), rel=1e-3)
    assert answer.bsp_us == pytest.approx(LAWS[BSP](asked), rel=0.05), "BSP is known at both ends"
    assert apart.answerer(asked, "graph").around(asked) and apart.leaf(asked) is None


def by_bsp(known: Known) -> Known:
    """The shape as if BSP alone had been measured."""
    number = model().configs.index(BSP)
    us = dict(known.times_us)[number]
    return replace(known, best=number, interval=None, times_us=((number, us),))


def jagged(law: Law, by: float) -> Law:
    """The law times a factor that jumps from shape to shape, the same for every config: what
    waves and tiles do to BSP and to a fused kernel alike."""

    def jumping(place: Shape) -> float:
        return law(place) * math.exp(by * Random(str(place)).uniform(-1, 1))

    return jumping


@pytest.mark.parametrize(("by", "kept"), [(0.0, False), (0.5, True)])
def test_gains_are_kept_where_times_jump_and_their_ratio_does_not(by: float, kept: bool) -> None:
    """What is kept answers a family that was not measured as the ratio says."""
    sizes = (2048, 4096, 8192)
    shapes = [shape(m, n, k) for n in sizes for k in sizes for m in (8, 16, 32, 64)]
    laws = {config: jagged(LAWS[config], by) for config in (BSP, SMALL)}
    trained = train_layout(dataset(rows(shapes, laws)))
    assert (trained.gains is not None) == kept
    if trained.gains is not None:
        (logs,) = trained.gains.logs.values()
        assert trained.layout == ENGINE and len(logs) == len(shapes)
        first = trained.known[0]
        place = shape(*first.sizes)
        assert logs[0] == pytest.approx(math.log(LAWS[BSP](place) / LAWS[SMALL](place)), abs=1e-3)
        answer = selector(trained).select(OTHER)
        assert answer.speedup == pytest.approx(LAWS[BSP](OTHER) / LAWS[SMALL](OTHER), rel=0.1)


def test_sizes_become_doublings() -> None:
    assert logs_of((1, 8, 4096, 0), 0) == (0.0, 3.0, 12.0, 0.0)
