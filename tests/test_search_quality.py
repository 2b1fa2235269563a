"""benchmarks/search_quality.py: which row counts for a config, what a search ended with, and what
is best known."""

from __future__ import annotations

from dataclasses import replace

import pytest
import search_quality

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.tuner.search.pools import pool

TARGET = Target.parse("h200x2")
SHAPE = AllGatherGemm(384, 3584, 8192, 2)
BSP = SPACE.complete(Config("bsp", form="gather_copy"))
PUSH = pool(SPACE, SHAPE, H200, "push", 200)


def row(number: int, config: Config, us: float, stage: str = "search", **changes: object) -> Trial:
    bsp = () if config == BSP else (100.0,)
    code = installed("all_gather_gemm", config.variant)
    found = Trial(SHAPE, config, "graph", "h200x2", "node", "r", code,
                  Measurement((us,), bsp), stage, f"{number:05}")  # fmt: skip
    return replace(found, **changes)  # type: ignore[arg-type]


def searched(count: int = 170) -> list[Trial]:
    """BSP, then configs of 90 us, the 11th 52 us, the 101st 50 us."""
    times = {10: 52.0, 100: 50.0}
    return [
        row(0, BSP, 100.0),
        *(row(1 + n, config, times.get(n, 90.0)) for n, config in enumerate(PUSH[:count])),
    ]


def judge(rows: list[Trial]) -> search_quality.Judged:
    (found,) = search_quality.judge_all(
        search_quality.current(rows, "all_gather_gemm", TARGET, ("graph",), "node"), TARGET, 64, 160
    )
    return found


def test_the_first_evaluations_are_judged_by_all_of_them() -> None:
    found = judge(searched()[::-1])
    assert (found.ended, found.best, found.evaluations, found.known) == (
        PUSH[10],
        PUSH[100],
        171,
        171,
    )
    assert found.regret == pytest.approx(52 / 50)


def test_what_any_other_stage_measured_counts_too_and_counts_more() -> None:
    better = row(900, PUSH[180], 40.0, "matrix")
    assert judge([*searched(), better]).regret == pytest.approx(52 / 40)
    lucky = [row(901 + n, PUSH[100], 60.0, "final") for n in range(3)]
    assert judge([*searched(), *lucky]).best == PUSH[10], "50 us were luck: three final rows say 60"


def test_a_search_whose_best_is_among_the_first_ends_with_it() -> None:
    rows = [trial for trial in searched() if trial.config != PUSH[100]]
    found = judge(rows)
    assert found.regret == 1.0 and found.ended == found.best == PUSH[10] and found.held


def test_rows_that_do_not_hold_do_not_count() -> None:
    wrong = [row(950, PUSH[150], 10.0, code="earlier"), row(951, PUSH[150], 10.0, target="h200x4"),
             row(952, PUSH[150], 10.0, bench="model"),
             row(953, PUSH[150], 10.0, outcome=Failure("hang", "late")),
             row(954, SPACE.complete(Config("push", block_m=256, num_warps=4)), 10.0)]  # fmt: skip
    assert judge([*searched(), *wrong]).regret == pytest.approx(52 / 50)


def test_too_short_a_search_is_a_sentence_with_both_numbers() -> None:
    with pytest.raises(
        ValueError,
        match=r"searched with 160 evaluations, the longest search has 101; .*--effort thorough",
    ):
        judge(searched(100))


def test_the_table_and_the_result_name_what_is_not_within() -> None:
    found = [judge(searched()), replace(judge(searched()), regret=1.2, allowed=1.1)]
    lines = list(search_quality.table(found, 1.05))
    assert "| 1.040 |" in lines[2] and "| **1.200** | 1.100 (more) |" in lines[3]
    line = search_quality.result(found, 1.05)
    assert (line["shapes"], line["within"], line["worst"]) == ("2", "1", "1.200") and line[
        "bound_held"
    ] in ("0/2", "1/2")
