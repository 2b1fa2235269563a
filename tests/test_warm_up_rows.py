"""Rows of stage `warm_up` are stored; nobody takes them for a search's who does not ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import EVIDENCE, STAGES, Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.models.dataset import load
from tftune.pipeline.training_job import sources
from tftune.report.tables import lines
from tftune.tuner.bench.benches import ReplayBench
from tftune.tuner.search.session import Rows

OP, TARGET = "all_gather_gemm", "h200x8"
SHAPE, OTHER = (AllGatherGemm(m, 3584, 8192, 8) for m in (64, 96))
OLD = Run("run", TARGET, "node", {"triton": "3.6.0"}, "2026-11-21T00:00:00Z", {})
NEW = Run("warm", TARGET, "node", {"triton": "3.7.1"}, "2026-11-23T00:00:00Z", {})


@pytest.fixture
def rows(make_rows: Callable[..., list[Trial]]) -> list[Trial]:
    return make_rows((SHAPE,), bench="node")


def warmed(trial: Trial) -> Trial:
    """The same config a day later, twice as slow beside BSP."""
    found = trial.outcome
    assert isinstance(found, Measurement)
    slower = replace(found, samples_us=tuple(2 * us for us in found.samples_us))
    stage = {"stage": "warm_up", "created": "2026-11-23", "run": "warm", "outcome": slower}
    return replace(trial, **stage)  # type: ignore[arg-type]


def test_training_reads_them_only_where_they_are_asked_for(rows: list[Trial]) -> None:
    push = next(t for t in rows if t.config.variant == "push")
    elsewhere = [replace(warmed(trial), shape=OTHER) for trial in rows]
    both = [*rows, warmed(push), *elsewhere]
    only, asked = load(both, OP, TARGET, "graph", "node"), ([*EVIDENCE, "warm_up"])
    assert only.shapes == (SHAPE,) and only.rows == len(rows)
    everything = load(both, OP, TARGET, "graph", "node", stages=asked)
    assert everything.shapes == (SHAPE, OTHER) and everything.rows == len(both)
    with pytest.raises(ValueError, match=r"\(0 such rows\); run `tftune search"):
        load(elsewhere, OP, TARGET, "graph", "node")


def test_a_final_row_counts_before_one_of_a_warm_up(rows: list[Trial]) -> None:
    push = next(t for t in rows if t.config.variant == "push")
    found = load([*rows, warmed(push)], OP, TARGET, "graph", "node", stages=STAGES)
    assert found.measurement(SHAPE, operation(OP).space.complete(push.config)) == push.outcome


def test_their_build_is_not_taken_for_the_newest(rows: list[Trial]) -> None:
    (source,) = sources([*rows, *map(warmed, rows)], [OLD, NEW])
    assert list(source.trials) == rows and list(source.runs) == [OLD] and source.current == rows
    assert sources([warmed(rows[0])], [NEW]) == []


def test_tables_leave_them_out(rows: list[Trial]) -> None:
    (line,) = lines([*rows, *map(warmed, rows)])
    assert line.winner in rows and line.bsp in rows
    assert lines([warmed(trial) for trial in rows]) == []


def test_a_replay_never_answers_with_one(rows: list[Trial]) -> None:
    bench = ReplayBench(Target.parse(TARGET), [*rows, *map(warmed, rows)])
    assert bench.measure(SHAPE, rows[0].config, "graph", None) == rows[0].outcome
    assert not ReplayBench(Target.parse(TARGET), [warmed(rows[0])]).known(SHAPE, "graph")


def test_a_search_resumes_beside_them(rows: list[Trial], store: Store) -> None:
    """They are neither what was searched nor finals, and break nothing."""
    store.add_run(NEW)
    store.add_run(replace(OLD, id="run"))
    trials = [replace(rows[0], stage="search"), *map(warmed, rows)]
    for trial in trials:
        store.add_trial(trial)
    assert len(store.trials(stage="warm_up")) == len(rows)
    bench = ReplayBench(Target.parse(TARGET), rows)
    bench.name = "node"  # type: ignore[misc]
    found = Rows(operation(OP), bench, store)
    place = SHAPE, "graph"
    assert list(found.finals(place)) == [] and list(found.matrix(place)) == []
    assert len(found.searched(place)) <= 1
