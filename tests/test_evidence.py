"""Which rows are current, what a speed-up is, which BSP form stood beside, and what ties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import stored

from tftune.db import evidence
from tftune.db.trial import Failure, Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config

SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=8)
COPY, TRANSPOSE = (Config("bsp", form=form) for form in ("gather_copy", "local_transpose"))
PUSH, PULL = SPACE.complete(Config("push")), SPACE.complete(Config("pull"))


def row(config: Config, *us: float, bsp: tuple[float, ...] = (), **changes: Any) -> Trial:
    outcome = changes.pop("outcome", None) or Measurement(us, bsp)
    same = {"revision": installed(SHAPE.op, config.variant), "created": "1"}
    return stored.row(SHAPE, config, outcome, **same | changes)


def test_a_row_is_current_while_the_installed_code_is_its_own() -> None:
    assert evidence.is_current(row(PUSH, 5.0))
    assert not evidence.is_current(row(PUSH, 5.0, revision="a"))


def test_the_newest_code_of_each_variant_is_by_time_and_rows_keep_their_order() -> None:
    new = row(PUSH, 5.0, revision="new", created="2")
    old = row(PUSH, 6.0, revision="old", created="1")
    pull = row(PULL, 7.0, revision="old", created="0")
    assert evidence.of_newest_code([new, old, pull]) == [new, pull]
    assert evidence.of_newest_code([pull, old, new]) == [pull, new]


def test_the_code_with_most_rows_is_counted_for_each_shape() -> None:
    few = row(PUSH, 5.0, revision="few", created="9")
    many = [row(PUSH, us, revision="many") for us in (6.0, 7.0)]
    elsewhere = replace(few, shape=replace(SHAPE, m=128))
    rows = [few, *many, elsewhere]
    assert evidence.of_most_measured_code(rows) == [*many, elsewhere]
    assert evidence.of_most_measured_code([few, many[0]]) == [few], "the first of two with as many"


@pytest.mark.parametrize(("unknown", "others"), [(True, {"new", "none"}), (False, {"new"})])
def test_runs_of_another_build(unknown: bool, others: set[str]) -> None:
    builds = {
        "same": {"triton": "3.6.1", "multicast": "off"},
        "new": {"triton": "3.7.0"},
        "none": {},
        "multicast": {"triton": "3.6.0", "multicast": "on"},
    }
    runs = [Run(name, "h200x8", "node", each, "2026-01-01", {}) for name, each in builds.items()]
    here = {"triton": "3.6.0"}
    assert evidence.other_build(runs, here, unknown=unknown) == others | {"multicast"}
    assert evidence.other_build(runs, here | {"multicast": "on"}, unknown=False) >= {"same"}


def test_a_speedup_is_of_shared_rounds_less_what_their_form_of_bsp_is_slower() -> None:
    bsp = row(COPY, 12.0)
    shared = row(PUSH, 5.0, 5.0, 5.0, bsp=(10.0, 10.0, 20.0))
    assert evidence.over_bsp(shared, 5.0, 12.0) == (2.0, 2.0, 4.0)
    assert evidence.over_bsp(shared, 5.0, 7.5) == (1.5, 1.5, 3.0), "beside a weaker form"
    assert evidence.over_bsp(row(PUSH, 6.0), 6.0, 12.0) == (2.0, 2.0, 2.0)
    assert evidence.time_ratio(shared, bsp) == 0.5 and evidence.speedup_interval(shared) == (2, 4)
    assert evidence.time_ratio(row(PUSH, 6.0), bsp) == 0.5, "without shared rounds by medians"
    form = row(TRANSPOSE, 18.0, bsp=(36.0,))
    assert evidence.time_ratio(form, bsp) == 1.5, "forms of BSP by their medians"
    assert evidence.speedup_interval(form) == (1.0, 1.0)


def test_a_failure_has_no_speedup() -> None:
    failed = row(PUSH, outcome=Failure("hang", "late"))
    assert evidence.time_ratio(failed, row(COPY, 12.0)) is None
    assert evidence.time_ratio(row(PUSH, 6.0), replace(failed, config=COPY)) is None
    with pytest.raises(ValueError, match="failed: late"):
        evidence.over_bsp(failed, 1.0, 1.0)


def test_the_form_beside_a_row_shares_its_samples_or_was_the_fastest_before_it() -> None:
    early, late = row(COPY, 12.0, created="1"), row(TRANSPOSE, 10.0, created="3")
    final = row(TRANSPOSE, 11.0, created="9", stage="final")
    forms = evidence.BspForms((trial.config, trial) for trial in (early, late, final))
    assert forms.beside(row(PUSH, 5.0, bsp=(11.0,), created="0")) == TRANSPOSE
    assert forms.beside(row(PUSH, 5.0, bsp=(12.5,), created="2")) == COPY
    assert forms.beside(row(PUSH, 5.0, bsp=(12.5,), created="4")) == TRANSPOSE
    assert forms.beside(row(PUSH, 5.0, bsp=(12.5,), created="0")) is None
    assert forms.beside(row(PUSH, 5.0, created="4")) is None
    assert forms.fastest_us == {COPY: 12.0, TRANSPOSE: 10.0}


def test_final_rows_conclude_a_search_that_ended_before_them() -> None:
    finals = {PUSH: row(PUSH, 5.0, created="2"), PULL: row(PULL, 5.0, created="4")}
    assert list(evidence.concluding(finals, [row(COPY, 9.0, created="3")])) == [PULL]
    assert evidence.concluding(finals, []) == finals


def test_bsp_wins_ties_and_a_library_gemm_by_chunks_is_not_fused() -> None:
    assert not evidence.is_surely_faster((1.009, 2.0)) and evidence.is_surely_faster((1.01, 2.0))
    assert evidence.is_surely_faster((1.009, 2.0), discount=1.44)
    assert not evidence.is_surely_faster((1.0, 2.0), discount=1.44)
    assert evidence.is_fused("push")
    assert not evidence.is_fused("bsp") and not evidence.is_fused("bsp_chunked")


def test_the_strongest_form_is_the_fastest_that_could_be_measured() -> None:
    weak, best = row(TRANSPOSE, 11.0), row(COPY, 10.0)
    failed = row(COPY, outcome=Failure("crash", "died"))
    assert evidence.strongest([weak, best, failed]) is best
    assert evidence.strongest([failed]) is None is evidence.strongest([])


def test_what_shares_rounds_ties_within_one_percent_and_else_where_intervals_overlap() -> None:
    best = row(PUSH, 10.0, 10.0, bsp=(20.0, 20.0))
    assert evidence.tied(row(PULL, 10.05, 10.05, bsp=(20.0, 20.0)), best)
    assert not evidence.tied(row(PULL, 10.2, 10.2, bsp=(20.0, 20.0)), best)
    assert evidence.tied(
        row(PULL, 10.0, 12.0, bsp=(20.0, 20.5)),
        replace(best, outcome=Measurement((10.0,), (19.0,))),
    )
    assert not evidence.tied(row(PULL, outcome=Failure("hang", "late")), best)


def test_intervals_overlap_where_they_touch_and_not_where_they_miss() -> None:
    overlap = evidence.overlap
    assert overlap((1.0, 2.0), (2.0, 3.0)) and overlap((2.0, 3.0), (1.0, 2.0))
    assert overlap((1.0, 9.0), (2.0, 3.0)) and overlap((2.0, 3.0), (1.0, 9.0))
    assert not overlap((1.0, 2.0), (2.1, 3.0)) and not overlap((2.1, 3.0), (1.0, 2.0))
