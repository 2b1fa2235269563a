"""The dataset: which row counts, what an oracle is, and which configs are worth choosing from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset, cover, load, portfolio

OP, TARGET = "all_gather_gemm", "h200x8"
SHAPE = AllGatherGemm(m=256, n=3584, k=8192, world=8)
BSP, COPY = Config("bsp", form="local_transpose"), Config("bsp", form="gather_copy")
PUSH = SPACE.complete(Config("push", block_m=128))
Rows = Callable[..., list[Trial]]


def row(
    config: Config, *us: float, bsp: tuple[float, ...] = (), stage: str = "final", code: str = "a", created: str = "1", **changed: object
) -> Trial:
    trial = Trial(SHAPE, config, "graph", TARGET, "node", "run", code, Measurement(us, bsp, 1e-4), stage, created)
    return replace(trial, **changed)  # type: ignore[arg-type]


def failure(config: Config, kind: str, created: str) -> Trial:
    return replace(row(config, 1.0, created=created), outcome=Failure(kind, "it did"))


def of(*trials: Trial) -> Dataset:
    return load(trials, OP, TARGET, "graph", "node")


def test_only_the_rows_asked_for() -> None:
    others = [row(PUSH, 1.0, mode="eager"), row(PUSH, 1.0, target="mi300x8"), row(PUSH, 1.0, bench="model")]
    assert of(row(BSP, 70.0), *others).rows == 1


def test_final_counts_before_search_and_newer_before_older() -> None:
    found = of(
        row(BSP, 70.0, created="1"), row(BSP, 60.0, created="3"), row(BSP, 65.0, created="2"), row(BSP, 50.0, stage="search", created="9")
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
    found = of(row(BSP, 70.0), row(Config("push", block_m=128), 50.0), row(Config("push", warp_speed=9), 40.0))
    assert found.time_us(SHAPE, PUSH) == 50.0 and found.rows == 2


def test_a_fused_time_is_the_ratio_of_shared_rounds() -> None:
    """The push was measured on a slow day: both took twice as long. Its time stands beside BSP's of the other day."""
    found = of(row(BSP, 70.0), row(PUSH, 100.0, bsp=(140.0,)))
    assert found.time_us(SHAPE, PUSH) == pytest.approx(50.0)
    assert found.oracle(SHAPE).config == PUSH and found.oracle(SHAPE).us == pytest.approx(50.0)


def test_an_eager_time_is_the_median_since_there_bsp_drifts_most() -> None:
    rows = [row(BSP, 70.0, mode="eager"), row(PUSH, 60.0, bsp=(140.0,), mode="eager")]
    eager = load(rows, OP, TARGET, "eager", "node")
    captured = of(*(replace(trial, mode="graph") for trial in rows))
    assert (eager.time_us(SHAPE, PUSH), captured.time_us(SHAPE, PUSH)) == (60.0, pytest.approx(30.0))


def test_bsp_beside_many_configs_counts_as_fast_as_it_was_alone() -> None:
    """In the matrix BSP took 88 us and the push 80; alone BSP had taken 77: the push is the slower one, and no leaf may name it."""
    found = of(row(BSP, 77.0, stage="search"), row(BSP, 88.0, stage="matrix"), row(PUSH, 80.0, stage="matrix", bsp=(88.0,)))
    assert found.time_us(SHAPE, BSP) == 77.0 and found.time_us(SHAPE, PUSH) == pytest.approx(80.0)
    assert found.speedup_low(SHAPE, PUSH) == pytest.approx(77 / 80) and not found.allowed(SHAPE, PUSH)
    assert found.bsp_us(SHAPE) == found.oracle(SHAPE).us == 77.0


def test_the_oracle_is_of_final_rows_and_says_if_it_is_complete() -> None:
    lucky = SPACE.complete(Config("push", block_m=64))
    found = of(row(BSP, 70.0), row(PUSH, 50.0, bsp=(70.0,)), row(lucky, 45.0, bsp=(70.0,), stage="search"))
    assert found.oracle(SHAPE).config == PUSH and found.oracle(SHAPE).evaluations == 3 and not found.oracle(SHAPE).complete
    assert found.log_regret(SHAPE, lucky) == 0.0


def test_160_evaluations_make_an_oracle_complete() -> None:
    configs = [config for _, config in zip(range(159), SPACE.configs(SHAPE, variants=("push",)), strict=False)]
    assert of(row(BSP, 70.0), *(row(config, 80.0) for config in configs)).oracle(SHAPE).complete


def test_loss_is_bsps_where_the_speedup_is_not_sure() -> None:
    unsure = row(PUSH, 50.0, 50.0, 50.0, bsp=(40.0, 70.0, 70.0))
    found = of(row(BSP, 70.0), unsure)
    assert found.speedup_low(SHAPE, PUSH) < 1 and not found.allowed(SHAPE, PUSH)
    assert found.loss(SHAPE, PUSH) == pytest.approx(math.log(70 / 50))


def test_separate_intervals_where_no_rounds_were_shared() -> None:
    found = of(row(BSP, 70.0, 72.0), row(PUSH, 50.0, 60.0))
    assert found.speedup_low(SHAPE, PUSH) == pytest.approx(70 / 60)


def test_a_config_no_longer_valid_is_not_allowed() -> None:
    wide = SPACE.complete(Config("push", block_m=256, block_n=256, group_m=1, num_warps=4))
    found = of(row(BSP, 70.0), row(wide, 10.0, bsp=(70.0,)))
    assert "accumulators" in str(found.why_invalid(SHAPE, wide)) and not found.allowed(SHAPE, wide)


def test_the_portfolio_holds_bsp_and_few_configs(make_rows: Rows) -> None:
    dataset = load(make_rows(paper()), OP, TARGET, "graph", "model")
    chosen = portfolio(dataset, size=4)
    assert {dataset.bsp(shape) for shape in dataset.shapes} <= set(chosen) and len(chosen) <= 4
    assert dataset.configs == portfolio(dataset) and len(dataset.configs) <= 10
    kept = sum(min(dataset.loss(shape, config) for config in chosen) for shape in dataset.shapes)
    alone = sum(dataset.loss(shape, dataset.bsp(shape)) for shape in dataset.shapes)
    assert kept < 0.7 * alone


def test_a_config_tried_on_one_shape_of_many_is_a_candidate_only_if_it_won_there_again(make_rows: Rows) -> None:
    rows = make_rows(paper())
    once = SPACE.complete(Config("push", block_m=16, block_n=64, group_m=1, num_warps=4, rows_per_flag=16))
    for stage, known in (("search", False), ("final", True)):  # the fastest of a search is fast by luck; measured again it counts
        tried = [*rows, replace(rows[-1], config=once, stage=stage, outcome=Measurement((1.0,), (100.0,)))]
        assert (once in load(tried, OP, TARGET, "graph", "model").candidates()) == known


def test_a_small_family_has_its_own_candidates(make_rows: Rows) -> None:
    own = AllGatherGemm(m=1024, n=3584, k=8192, world=8, dtype="bf16")
    rows = make_rows(paper()) + make_rows((own,))
    only_there = SPACE.complete(Config("push", block_m=64, block_n=64))
    rows.append(replace(rows[-1], shape=own, config=only_there, outcome=Measurement((1.0,), (100.0,))))
    assert only_there in load(rows, OP, TARGET, "graph", "model").candidates()


def test_a_portfolio_without_room_for_bsp() -> None:
    with pytest.raises(ValueError, match="a portfolio of 0 is smaller than the 1 best BSP forms"):
        portfolio(of(row(BSP, 70.0), row(COPY, 75.0)), size=0)


def test_shapes_without_bsp_are_skipped() -> None:
    other = replace(SHAPE, m=512)
    found = of(row(BSP, 70.0), replace(row(PUSH, 50.0), shape=other))
    assert found.shapes == (SHAPE,) and found.skipped == (other,)


def test_nothing_to_learn_from_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"no row of all_gather_gemm on h200x8 in mode graph from the node bench.*run `tftune search"):
        of(row(PUSH, 50.0))
    with pytest.raises(ValueError, match="mode='fast' is not one of graph, eager"):
        load([], OP, TARGET, "fast", "node")


def test_the_digest_is_of_the_set_of_rows() -> None:
    one, two = row(BSP, 70.0), row(PUSH, 50.0)
    assert of(one, two).rows_digest == of(two, one).rows_digest != of(one).rows_digest


OTHER = replace(SHAPE, n=7168)
LISTED = SPACE.complete(Config("push", block_m=64, block_n=64, k_per_flag=256))


def matrix(*pairs: tuple[AllGatherGemm, Config], failed: tuple[AllGatherGemm, ...] = ()) -> Dataset:
    rows = [replace(row(config, 50.0, bsp=(70.0,), stage="matrix"), shape=shape) for shape, config in pairs]
    bad = [replace(failure(LISTED, "hang", "2"), shape=shape, stage="matrix") for shape in failed]
    return of(*rows, *bad, *(replace(row(BSP, 70.0, stage="matrix"), shape=shape) for shape in (SHAPE, OTHER)))


def test_a_missing_pair_of_a_matrix_is_an_error_that_names_it() -> None:
    found = matrix((SHAPE, LISTED), (SHAPE, PUSH))
    assert found.matrix == (SHAPE, OTHER) and set(found.listed) == {LISTED, PUSH}
    with pytest.raises(ValueError, match=r"2 pairs .* at 1 of 2 shapes, such as push.* at m=256,n=7168.*--portfolio"):
        found.refuse_missing()


def test_a_failed_or_impossible_pair_or_a_default_is_none_that_is_missing() -> None:
    matrix((SHAPE, LISTED), (OTHER, LISTED)).refuse_missing()
    matrix((SHAPE, LISTED), failed=(OTHER,)).refuse_missing()
    tall = SPACE.complete(Config("push", block_m=256, block_n=128, rows_per_flag=512))
    small = replace(SHAPE, m=16)
    assert SPACE.why_invalid(small, tall) is not None
    matrix((SHAPE, tall), (OTHER, tall), (small, BSP)).refuse_missing()
    own = next(SPACE.complete(config) for config in SPACE.defaults(SHAPE, Target.parse(TARGET).chip) if config.variant == "push")
    assert matrix((SHAPE, own)).listed == ()


def test_the_cover_is_of_all_rows_however_few_shapes_have_them() -> None:
    there = [row(BSP, 90.0, stage="search"), row(LISTED, 60.0, bsp=(90.0,), stage="search")]
    rows = [row(BSP, 70.0, stage="search"), row(PUSH, 50.0, bsp=(70.0,), stage="search"), *(replace(one, shape=OTHER) for one in there)]
    assert set(cover(rows, OP, TARGET, "graph", "node")) == {BSP, PUSH, LISTED}
