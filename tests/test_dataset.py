"""The dataset: which row counts, what an oracle is, and which few configs are together near the
fastest."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stored

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.space import Config
from tftune.models.dataset import Dataset, configs_of, load
from tftune.models.portfolio import cover, forms, greedy, loss, portfolio

OP, TARGET = "all_gather_gemm", "h200x8"
SHAPE = AllGatherGemm(m=256, n=3584, k=8192, world=8)
BSP, COPY = Config("bsp", form="local_transpose"), Config("bsp", form="gather_copy")
PUSH = SPACE.complete(Config("push", block_m=128))


def row(
    config: Config,
    *us: float,
    bsp: tuple[float, ...] = (),
    stage: str = "final",
    code: str = "a",
    created: str = "1",
    **changed: Any,
) -> Trial:
    same = {"revision": code, "stage": stage, "created": created}
    return stored.row(SHAPE, config, Measurement(us, bsp, 1e-4), **same | changed)


def failure(config: Config, kind: str, created: str) -> Trial:
    return replace(row(config, 1.0, created=created), outcome=Failure(kind, "it did"))


def of(*trials: Trial) -> Dataset:
    return load(trials, OP, TARGET, "graph", "node")


def test_only_the_rows_asked_for() -> None:
    others = {"mode": "eager"}, {"target": "mi300x8"}, {"bench": "model"}
    assert of(row(BSP, 70.0), *(row(PUSH, 1.0, **other) for other in others)).rows == 1


def test_final_counts_before_search_and_newer_before_older() -> None:
    found = of(
        row(BSP, 70.0, created="1"),
        row(BSP, 60.0, created="3"),
        row(BSP, 65.0, created="2"),
        row(BSP, 50.0, stage="search", created="9"),
    )
    assert found.time_us(SHAPE, BSP) == 60.0


def test_a_newer_failure_counts_too() -> None:
    found = of(row(BSP, 70.0), row(PUSH, 50.0, created="1"), failure(PUSH, "hang", created="2"))
    assert found.time_us(SHAPE, PUSH) is None and not found.allowed(SHAPE, PUSH)


def test_rows_of_an_older_kernel_are_left_out() -> None:
    old = replace(row(PUSH, 50.0, code="old", created="1"), shape=replace(SHAPE, m=512))
    found = of(row(BSP, 70.0, code="b"), old, row(PUSH, 55.0, code="new", created="2"))
    assert found.kernels == {"bsp": "b", "push": "new"} and found.rows == 2


def test_an_absent_knob_is_its_default_and_a_knob_that_is_gone_is_left_out() -> None:
    found = of(
        row(BSP, 70.0),
        row(Config("push", block_m=128), 50.0),
        row(Config("push", warp_speed=9), 40.0),
    )
    assert found.time_us(SHAPE, PUSH) == 50.0 and found.rows == 2


def test_a_fused_time_is_the_ratio_of_shared_rounds() -> None:
    """The push was measured on a slow day: both took twice as long. Its time stands beside BSP's of
    the other day."""
    slow = row(BSP, 140.0, created="0"), row(PUSH, 100.0, bsp=(140.0,))
    found = of(row(BSP, 70.0), *slow)
    assert found.time_us(SHAPE, PUSH) == pytest.approx(50.0)
    assert found.oracle(SHAPE).config == PUSH and found.oracle(SHAPE).us == pytest.approx(50.0)


def test_a_time_whose_baseline_nobody_knows_is_the_median() -> None:
    """It shared its rounds with no form of BSP that has a row, and no form had been searched before
    it."""
    alone, late = row(BSP, 70.0), row(BSP, 140.0, stage="search", created="9")
    assert of(alone, row(PUSH, 100.0, bsp=(140.5,))).time_us(SHAPE, PUSH) == 100.0
    assert of(alone, late, row(PUSH, 100.0, bsp=(140.5,))).time_us(SHAPE, PUSH) == 100.0
    assert of(alone, row(PUSH, 100.0)).time_us(SHAPE, PUSH) == 100.0


def test_a_row_of_a_search_stood_beside_the_form_that_led_when_it_was_measured() -> None:
    """The gather took 80 us and then the copy 60. The push shared its rounds with the gather, the
    pull with the copy, of which only the second sets the scale: it is the form of most rows."""
    pull, other = SPACE.complete(Config("pull")), SPACE.complete(Config("push", block_m=64))
    found = of(
        row(BSP, 80.0, stage="search", created="1"),
        row(PUSH, 41.0, bsp=(82.0,), stage="search", created="2"),
        row(COPY, 60.0, stage="search", created="3"),
        row(pull, 50.0, bsp=(100.0,), stage="search", created="4"),
        row(other, 90.0, bsp=(120.0,), stage="search", created="5"),
    )
    assert found.time_us(SHAPE, pull) == pytest.approx(30.0)
    assert found.time_us(SHAPE, other) == pytest.approx(45.0)
    assert found.time_us(SHAPE, PUSH) == 41.0, "its form has no ratio to the other one's"
    assert found.bsp(SHAPE) == COPY and found.bsp_us(SHAPE) == 60.0


def test_an_eager_time_is_the_median_since_there_bsp_drifts_most() -> None:
    rows = [
        row(BSP, 140.0, mode="eager", created="0"),
        row(BSP, 70.0, mode="eager"),
        row(PUSH, 60.0, bsp=(140.0,), mode="eager"),
    ]
    eager = load(rows, OP, TARGET, "eager", "node")
    captured = of(*(replace(trial, mode="graph") for trial in rows))
    assert eager.time_us(SHAPE, PUSH) == 60.0
    assert captured.time_us(SHAPE, PUSH) == pytest.approx(30.0)
    again = load([row(BSP, 65.0, mode="eager", stage="search"), *rows], OP, TARGET, "eager", "node")
    assert (eager.bsp_us(SHAPE), again.bsp_us(SHAPE)) == (70.0, 65.0), (
        "of BSP the least median of any stage"
    )


def test_bsp_beside_many_configs_counts_as_fast_as_it_was_alone() -> None:
    """In the matrix BSP took 88 us and the push 80; alone BSP had taken 77. The ratio of their
    shared rounds is what holds: the push takes 70 us where BSP takes 77."""
    found = of(
        row(BSP, 77.0, stage="search"),
        row(BSP, 88.0, stage="matrix"),
        row(PUSH, 80.0, stage="matrix", bsp=(88.0,)),
    )
    assert found.time_us(SHAPE, BSP) == found.bsp_us(SHAPE) == 77.0
    assert found.time_us(SHAPE, PUSH) == pytest.approx(70.0)
    assert found.speedup(SHAPE, PUSH)[:2] == (
        pytest.approx(1.1),
        pytest.approx(1.1),
    ) and found.allowed(SHAPE, PUSH)
    slower = of(
        row(BSP, 77.0, stage="search"),
        row(BSP, 88.0, stage="matrix"),
        row(PUSH, 90.0, stage="matrix", bsp=(88.0,)),
    )
    assert slower.speedup(SHAPE, PUSH)[1] == pytest.approx(88 / 90)
    assert not slower.allowed(SHAPE, PUSH)
    assert slower.bsp_us(SHAPE) == slower.oracle(SHAPE).us == 77.0


def test_the_oracle_is_of_final_rows_and_says_if_it_is_complete() -> None:
    lucky = SPACE.complete(Config("push", block_m=64))
    found = of(
        row(BSP, 70.0), row(PUSH, 50.0, bsp=(70.0,)), row(lucky, 45.0, bsp=(70.0,), stage="search")
    )
    assert found.oracle(SHAPE).config == PUSH
    assert found.oracle(SHAPE).evaluations == 3
    assert not found.oracle(SHAPE).complete
    assert found.log_regret(SHAPE, lucky) == 0.0


def test_160_evaluations_make_an_oracle_complete() -> None:
    configs = [
        config
        for _, config in zip(range(159), SPACE.configs(SHAPE, variants=("push",)), strict=False)
    ]
    assert of(row(BSP, 70.0), *(row(config, 80.0) for config in configs)).oracle(SHAPE).complete


def test_loss_is_bsps_where_the_speedup_is_not_sure() -> None:
    unsure = row(PUSH, 50.0, 50.0, 50.0, bsp=(40.0, 70.0, 70.0))
    found = of(row(BSP, 40.0, 70.0, 70.0), unsure)
    assert found.speedup(SHAPE, PUSH)[1] < 1 and not found.allowed(SHAPE, PUSH)
    assert loss(found, PUSH) == pytest.approx([math.log(70 / 50)])
    sure = of(
        row(BSP, 70.0, 70.0, 70.0), replace(unsure, outcome=Measurement((50.0,) * 3, (70.0,) * 3))
    )
    assert sure.allowed(SHAPE, PUSH) and loss(sure, PUSH) == [0.0]


def test_separate_intervals_where_no_rounds_were_shared() -> None:
    found = of(row(BSP, 70.0, 72.0), row(PUSH, 50.0, 60.0))
    assert found.speedup(SHAPE, PUSH) == pytest.approx((71 / 55, 70 / 60, 72 / 50))
    assert found.speedup(SHAPE, COPY) == (0.0, 0.0, 0.0), "never measured"


def test_the_interval_of_a_ratio_to_another_form_is_moved_to_the_fastest_and_never_up() -> None:
    """Beside the gather the push was 1.4 times as fast, and the copy 1.25 times: beside the copy
    the push is 1.12 times as fast."""
    rounds = Measurement((50.0,) * 3, (65.0, 70.0, 75.0))
    rows = [
        row(BSP, 65.0, 70.0, 75.0),
        replace(row(PUSH, 1.0), outcome=rounds),
        row(COPY, *(us / 1.25 for us in rounds.bsp_samples_us)),
    ]
    copied = replace(
        rows[2], outcome=replace(rows[2].outcome, bsp_samples_us=rounds.bsp_samples_us)
    )  # type: ignore[type-var]
    one, two = of(*rows[:2]), of(*rows[:2], copied)
    assert one.speedup(SHAPE, PUSH) == pytest.approx((1.4, 1.3, 1.5))
    assert two.bsp(SHAPE) == COPY and two.speedup(SHAPE, PUSH) == pytest.approx((1.12, 1.04, 1.2))


def test_a_config_no_longer_valid_is_not_allowed() -> None:
    wide = SPACE.complete(Config("push", block_m=256, block_n=256, group_m=1, num_warps=4))
    found = of(row(BSP, 70.0), row(wide, 10.0, bsp=(70.0,)))
    assert "accumulators" in str(found.why_invalid(SHAPE, wide)) and not found.allowed(SHAPE, wide)


def test_the_best_is_what_is_faster_than_bsp_for_sure_of_final_rows_where_there_are_any() -> None:
    lucky = SPACE.complete(Config("push", block_m=64))
    unsure = SPACE.complete(Config("push", block_m=32))
    searched = row(lucky, 45.0, bsp=(70.0,), stage="search")
    doubted = row(unsure, 30.0, 30.0, 30.0, bsp=(20.0, 70.0, 70.0))
    assert of(row(BSP, 70.0), searched).best(SHAPE) == lucky
    assert of(row(BSP, 70.0), searched, row(PUSH, 50.0, bsp=(70.0,)), doubted).best(SHAPE) == PUSH
    assert of(row(BSP, 70.0), row(COPY, 60.0), doubted).best(SHAPE) == COPY


def test_a_config_joins_where_it_saves_a_thousandth_of_the_time() -> None:
    small, large, had = 0, 1, np.array([0.1, 0.1])
    halved, saving = np.array([[0.1, 0.0], [0.0998, 0.1]]), np.array([[0.1, 0.0], [0.09, 0.1]])
    assert greedy(halved, had, 9, 1e-3) == [large], "the other one saves half as much"
    assert greedy(saving, had, 9, 1e-3) == [large, small] == greedy(halved, had, 9)
    assert greedy(saving, had, 1, 1e-3) == [large] and greedy(np.zeros((1, 0)), had[:1], 9) == []


def test_a_portfolio_without_room_is_the_best_form_of_bsp() -> None:
    found = of(row(BSP, 70.0), row(COPY, 75.0), row(PUSH, 50.0, bsp=(70.0,)))
    assert portfolio(found, configs_of(found), 0) == (BSP,)
    assert portfolio(found, configs_of(found), 2) == (BSP, PUSH)


def test_a_form_of_bsp_loses_much_where_it_was_never_measured() -> None:
    """One form was measured once and is the best there; the other one loses a fifth there."""
    once, everywhere = COPY, BSP
    times = {1: {everywhere: 10.0}, 2: {everywhere: 10.0}, 3: {everywhere: 12.0, once: 10.0}}
    best = {m: min(found, key=found.__getitem__) for m, found in times.items()}
    data: Any = SimpleNamespace(
        shapes=tuple(times),
        times_us=times,
        bsp=best.__getitem__,
        bsp_us=lambda m: times[m][best[m]],
    )
    assert forms(data, 2) == sorted([once, everywhere]) and forms(data, 1) == [everywhere]


@pytest.mark.parametrize(("speedup", "sure"), [(1.43, False), (1.45, True)])
def test_a_modelled_speed_up_counts_above_what_the_model_errs_by(
    speedup: float,
    sure: bool,
) -> None:
    """1.44: 95 % of configs stay below that error, out of sample (docs/notebook.md)."""
    rows = row(BSP, 70.0), row(PUSH, 70.0 / speedup, bsp=(70.0,))
    data = load((replace(each, bench="model") for each in rows), OP, TARGET, "graph", "model")
    assert data.allowed(SHAPE, PUSH) == sure


def test_shapes_without_bsp_are_skipped() -> None:
    other = replace(SHAPE, m=512)
    found = of(row(BSP, 70.0), replace(row(PUSH, 50.0), shape=other))
    assert found.shapes == (SHAPE,) and found.skipped == (other,)


def test_nothing_to_learn_from_says_what_to_do() -> None:
    said = "no row of all_gather_gemm on h200x8 in mode graph from the node bench"
    with pytest.raises(ValueError, match=f"{said}.*run `tftune search"):
        of(row(PUSH, 50.0))
    with pytest.raises(ValueError, match="mode='fast' is not one of graph, eager"):
        load([], OP, TARGET, "fast", "node")


def test_the_digest_is_of_the_set_of_rows() -> None:
    one, two = row(BSP, 70.0), row(PUSH, 50.0)
    assert of(one, two).rows_digest == of(two, one).rows_digest != of(one).rows_digest


OTHER = replace(SHAPE, n=7168)
LISTED = SPACE.complete(Config("push", block_m=64, block_n=64, k_per_flag=256))


def test_the_matrix_is_of_the_shapes_with_such_a_row_and_its_rows_are_final() -> None:
    searched, third = replace(row(PUSH, 50.0, stage="search"), shape=OTHER), replace(SHAPE, m=512)
    hung = replace(failure(LISTED, "hang", "2"), stage="matrix", shape=third)
    shapes = [
        replace(row(BSP, 70.0, stage="search"), shape=shape) for shape in (SHAPE, OTHER, third)
    ]
    found = of(*shapes, row(LISTED, 50.0, stage="matrix"), row(PUSH, 40.0), searched, hung)
    assert found.matrix == (SHAPE, third) and found.only([OTHER]).matrix == ()
    final = [(SHAPE, LISTED), (SHAPE, PUSH), (third, LISTED)]
    asked = [
        (shape, config)
        for shape in found.shapes
        for config in (BSP, PUSH, LISTED)
        if found.is_final(shape, config)
    ]
    assert sorted(asked) == sorted(final)


def test_the_cover_is_of_all_rows_however_few_shapes_have_them() -> None:
    there = [row(BSP, 90.0, stage="search"), row(LISTED, 60.0, bsp=(90.0,), stage="search")]
    rows = [
        row(BSP, 70.0, stage="search"),
        row(PUSH, 50.0, bsp=(70.0,), stage="search"),
        *(replace(one, shape=OTHER) for one in there),
    ]
    assert set(cover(rows, OP, TARGET, "graph", "node")) == {BSP, PUSH, LISTED}


def test_what_is_possible_follows_the_chip_rather_than_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A target whose chip was described again is another machine."""
    rows, target = (row(BSP, 70.0), row(PUSH, 50.0)), Target.parse(TARGET)
    assert of(*rows).why_invalid(SHAPE, PUSH) is None
    tiny = replace(target.chip, units=4)
    monkeypatch.setattr(Target, "parse", lambda name: replace(target, chip=tiny))
    assert of(*rows).why_invalid(SHAPE, PUSH) == SPACE.why_invalid(SHAPE, PUSH, tiny) is not None
    copied = pickle.loads(pickle.dumps(of(*rows)))
    assert copied.why_invalid(SHAPE, PUSH) == of(*rows).why_invalid(SHAPE, PUSH)
