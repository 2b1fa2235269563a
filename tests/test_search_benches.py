"""Searches on stored rows and on the analytic model."""

from __future__ import annotations

import pytest
from fake_bench import OTHER, SMALL, TARGET, FakeBench, run

from tftune.db.store import Store
from tftune.db.trial import Measurement
from tftune.tuner.bench.benches import ReplayBench

pytestmark = pytest.mark.usefixtures("tiny")


def test_replay_tries_what_has_a_row_in_each_mode_and_nothing_else(store: Store) -> None:
    """Rows of both shapes, but in eager mode a third of SMALL's: the portfolio and the sampler stay
    within them."""
    run(store, FakeBench(), (SMALL, OTHER))
    whole = [trial for trial in store.trials() if trial.stage == "search"]
    fused = [
        trial
        for trial in whole
        if (trial.shape, trial.mode) == (SMALL, "eager") and trial.config.variant != "bsp"
    ]
    few = fused[::3]
    rows = [trial for trial in whole if trial not in fused or trial in few]
    best = run(store, ReplayBench(TARGET, rows), (SMALL, OTHER), effort="default")
    replayed = store.trials(bench="replay")
    told, known = ({(t.shape, t.config, t.mode) for t in part} for part in (replayed, rows))
    assert told == known
    assert all(isinstance(trial.outcome, Measurement) for trial in replayed)
    counts = [12, 2 + len(few), 12, 12]
    assert [(found.evaluations, found.feasible) for found in best] == [(n, n) for n in counts]


def test_replay_of_a_shape_without_rows_is_a_sentence_and_stores_nothing(store: Store) -> None:
    run(store, FakeBench(), modes=("graph",))
    bench = ReplayBench(TARGET, store.trials())
    with pytest.raises(
        ValueError,
        match=rf"no rows of {OTHER} on mi300x8 in mode graph or eager to replay; .*tftune trials "
        r"import",
    ):
        run(store, bench, (SMALL, OTHER))
    with pytest.raises(ValueError, match=rf"no rows of {SMALL} on mi300x8 in mode eager"):
        run(store, bench, modes=("eager",))
    assert not store.trials(bench="replay")


def test_replay_of_a_mode_without_rows_leaves_it_out(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    run(store, FakeBench(), modes=("graph",))
    (best,) = run(store, ReplayBench(TARGET, store.trials()))
    assert best.mode == "graph" and f"{SMALL} in mode eager is left out" in caplog.text
