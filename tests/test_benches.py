"""The model bench and the replay bench, and searches on the latter."""

from __future__ import annotations

import pytest
from fake_bench import OTHER, SMALL, TARGET, FakeBench, run

from tftune.db.store import Store
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Bench, ModelBench, ReplayBench

SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=8)
BSP = Config("bsp", form="gather_copy")
PUSH = Config("push", block_m=64)


def predicted(shape: Shape, config: Config, mode: str, chip: Chip) -> float:
    assert chip is TARGET.chip
    return {"bsp": 10.0, "push": 8.0}[config.variant] * (5 if mode == "eager" else 1)


def row(outcome: Outcome, config: Config = PUSH, stage: str = "search") -> Trial:
    return Trial(
        SHAPE, config, "graph", "mi300x8", "node", "run", "hash", outcome, stage, "2026-01-01"
    )


def test_the_model_bench_gives_one_sample_and_bsp_beside_it() -> None:
    bench: Bench = ModelBench(TARGET, predicted)
    assert bench.measure(SHAPE, BSP, "graph", None) == Measurement((10.0,), ())
    assert bench.measure(SHAPE, PUSH, "graph", BSP) == Measurement((8.0,), (10.0,))
    assert bench.measure(SHAPE, PUSH, "eager", BSP, stage="final") == Measurement((40.0,), (50.0,))


def test_replay_answers_the_row_as_it_is() -> None:
    measured = Measurement((3.0, 4.0), (6.0, 6.0), 1e-3)
    failed = Failure("hang", "it passed its deadline")
    bench: Bench = ReplayBench(TARGET, [row(measured), row(failed, BSP)])
    assert bench.measure(SHAPE, PUSH, "graph", BSP) is measured
    assert bench.measure(SHAPE, BSP, "graph", None) is failed


def test_replay_prefers_the_stage_then_the_newest_row() -> None:
    first, second, final = (Measurement((us,)) for us in (1.0, 2.0, 3.0))
    bench = ReplayBench(TARGET, [row(final, stage="final"), row(first), row(second)])
    assert bench.measure(SHAPE, PUSH, "graph", None) is second
    assert bench.measure(SHAPE, PUSH, "graph", None, stage="final") is final
    assert (
        ReplayBench(TARGET, [row(first)]).measure(SHAPE, PUSH, "graph", None, stage="final")
        is first
    )


def test_replay_knows_what_has_a_row_and_the_model_any_config() -> None:
    bench = ReplayBench(
        TARGET, [row(Measurement((1.0,))), row(Failure("hang", "late"), BSP, stage="final")]
    )
    assert bench.known(SHAPE, "graph") == {PUSH, BSP} and bench.known(SHAPE, "eager") == set()
    model: Bench = ModelBench(TARGET, predicted)
    assert model.known(SHAPE, "graph") is None


def test_replay_of_what_was_never_measured_says_so() -> None:
    outcome = ReplayBench(TARGET, [row(Measurement((1.0,)))]).measure(SHAPE, PUSH, "eager", None)
    assert isinstance(outcome, Failure) and outcome.kind == "invalid"
    assert (
        "never measured" in outcome.text and "eager" in outcome.text and str(SHAPE) in outcome.text
    )


@pytest.mark.usefixtures("tiny")
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


@pytest.mark.usefixtures("tiny")
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


@pytest.mark.usefixtures("tiny")
def test_replay_of_a_mode_without_rows_leaves_it_out(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    run(store, FakeBench(), modes=("graph",))
    (best,) = run(store, ReplayBench(TARGET, store.trials()))
    assert best.mode == "graph" and f"{SMALL} in mode eager is left out" in caplog.text
