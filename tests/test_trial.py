"""The values of a trial: what they refuse, what they say of themselves, and how they become a row
and come back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored import row

from tftune.db.trial import FAILURES, Failure, Measurement, Trial, median_interval
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config

SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=8, dtype="bf16")
MEASURED = Measurement((10.0, 12.5, 11.25), (20.0, 25.0, 22.5), check_error=0.0004)


def trial(**changes: Any) -> Trial:
    config = Config("push", block_m=64, k_per_flag=256)
    return replace(row(SHAPE, config, MEASURED), **changes)


@pytest.mark.parametrize("samples", [(), (0.0,), (-1.0,), (math.inf,), (math.nan,)])
def test_samples_must_be_positive_and_finite(samples: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        Measurement(samples)


def test_bsp_samples_are_of_the_same_rounds() -> None:
    with pytest.raises(ValueError, match="2 samples but 1 of BSP"):
        Measurement((1.0, 2.0), (1.0,))


def test_speedup_is_taken_round_by_round() -> None:
    """The median of the ratios (here 2), not the ratio of the medians (here 1.5)."""
    measured = Measurement((1.0, 2.0, 4.0), (3.0, 3.0, 8.0))
    assert measured.speedups == (3.0, 1.5, 2.0)
    assert measured.speedup == 2.0


def test_without_bsp_there_is_no_speedup() -> None:
    assert Measurement((1.0,)).speedup is None
    assert Measurement((1.0,)).speedup_interval is None


def test_configs_of_the_same_rounds_compare_in_pairs() -> None:
    """Round by round the first is 10 % slower, though both drift by far more."""
    drift = (1.0, 1.5, 2.0, 4.0, 1.0, 3.0)
    slow, fast = (
        Measurement(tuple(us * d for d in drift), tuple(9.0 * d for d in drift))
        for us in (5.5, 5.0)
    )
    assert slow.paired_interval(fast) == pytest.approx((1.1, 1.1))
    assert fast.paired_interval(slow) == pytest.approx((1 / 1.1, 1 / 1.1))
    assert slow.paired_interval(replace(fast, bsp_samples_us=(9.0,) * 6)) is None
    assert Measurement((1.0,)).paired_interval(Measurement((1.0,))) is None


def test_a_measurement_can_doubt_itself() -> None:
    assert Measurement((100.0, 101.0, 102.0)).why_unstable() is None
    assert Measurement((100.0,)).why_unstable() is None
    assert (
        Measurement((90.0, 100.0, 110.0)).why_unstable()
        == "the median 100.0 us has an interval of 90.0 to 110.0 us over 3 rounds"
    )


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 0, 0), (5, 0, 4), (6, 0, 5), (8, 0, 7), (9, 1, 7), (10, 1, 8), (20, 5, 14), (100, 39, 60)],
)
def test_median_interval_takes_the_ranks_of_the_published_table(
    count: int, low: int, high: int
) -> None:
    """Ranks of the 95 % interval of a median (Conover 1999, 3.2), counted from 0; the whole range
    below 6."""
    samples = tuple(float(i) for i in reversed(range(count)))
    assert median_interval(samples) == (low, high)


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60))
def test_the_interval_holds_the_median(samples: list[float]) -> None:
    measured = Measurement(tuple(samples))
    low, high = measured.interval_us
    assert min(samples) <= low <= measured.median_us <= high <= max(samples)


def test_an_unknown_kind_of_failure_lists_the_kinds() -> None:
    with pytest.raises(
        ValueError, match=f"'slow' is no kind of failure; the kinds are {', '.join(FAILURES)}"
    ):
        Failure("slow", "")


OUTCOMES = [
    MEASURED,
    Measurement((10.0,)),
    Measurement((10.0, 11.0), stopped_early=True),
    *(Failure(kind, f"why it was {kind}: 'quoted',\nü") for kind in FAILURES),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_trial_comes_back_from_its_row(outcome: Any) -> None:
    before = trial(outcome=outcome)
    after = Trial.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before
    assert after.id == before.id
    assert (after.shape, after.config) == (SHAPE, before.config)


@given(st.lists(st.floats(0.01, 1e7), min_size=1, max_size=5))
def test_rounding_happens_once(samples: list[float]) -> None:
    once = Trial.from_dict(trial(outcome=Measurement(tuple(samples))).to_dict())
    assert Trial.from_dict(once.to_dict()) == once


def test_every_part_of_the_content_changes_the_id() -> None:
    changed = [
        trial(shape=replace(SHAPE, m=65)), trial(config=Config("pull", block_m=64, k_per_flag=256)),
        trial(mode="eager"),
        trial(target="h200x4"), trial(bench="model"), trial(run="r2"), trial(revision="r9"),
        trial(stage="final"),
        trial(outcome=Failure("hang", "")), trial(outcome=replace(MEASURED, stopped_early=True)),
        trial(outcome=replace(MEASURED, check_error=None)),
    ]  # fmt: skip
    ids = {each.id for each in (trial(), *changed)}
    assert len(ids) == len(changed) + 1
    assert trial().id == trial().id


def test_a_number_stays_what_it_is_but_minus_zero() -> None:
    """An id is of the very numbers, and SQLite turns -0.0 into 0.0."""
    content = trial().to_dict() | {"us": [10, 12.5, 11.25], "check_error": 0}
    assert json.dumps(Trial.from_dict(content).to_dict()) == json.dumps(content)
    assert repr(Trial.from_dict(content | {"check_error": -0.0}).to_dict()["check_error"]) == "0.0"


def test_a_long_value_is_cut_in_its_error() -> None:
    with pytest.raises(ValueError, match=r"mode='aaa.*' is not one of graph, eager") as refused:
        trial(mode="a" * 10_000)
    assert len(str(refused.value)) < 100
