"""From rows to trees: which rows one tree is made of, and what its artifact says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tftune.db.trial import Run, Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.pipeline.training_job import Source, choose, fit, newest_build, sources


def run(name: str, started: str, triton: str) -> Run:
    return Run(name, "h200x8", "node", {"triton": triton}, started, {})


@pytest.fixture
def rows(make_rows: Callable[..., list[Trial]]) -> list[Trial]:
    return make_rows(paper()[4:7], bench="node")


def source(rows: list[Trial], *runs: Run) -> Source:
    return choose(sources(rows, runs), "all_gather_gemm", None, None, "here")


def test_rows_of_an_older_triton_are_left_out_and_the_artifact_is_stamped_with_the_other(
    rows: list[Trial], caplog: pytest.LogCaptureFixture
) -> None:
    last = paper()[6]
    mixed = [replace(trial, run="new" if trial.shape == last else "old") for trial in rows]
    found = source(mixed, run("new", "2026-11-22", "3.7.1"), run("old", "2026-11-21", "3.6.0"))
    assert newest_build(found) == {"triton": "3.7.1"}
    assert {trial.run for trial in found.current} == {"new"}
    assert fit(found).datasets["graph"].shapes == (last,)
    left = sum(trial.run == "old" for trial in mixed)
    assert (
        f"{left} of {len(mixed)} rows of all_gather_gemm on h200x8 are left out: the newest run "
        "has Triton 3.7.1" in caplog.text
    )


@pytest.mark.parametrize(
    "runs", [(), (run("old", "2026-11-21", "3.6.0"), run("new", "2026-11-22", "3.6.1"))]
)
def test_rows_that_compile_alike_are_one_source(
    runs: tuple[Run, ...], rows: list[Trial], caplog: pytest.LogCaptureFixture
) -> None:
    mixed = [replace(trial, run="new" if trial.shape == paper()[6] else "old") for trial in rows]
    assert source(mixed, *runs).current == mixed and caplog.text == ""
