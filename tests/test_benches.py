"""The model bench and the replay bench."""

from __future__ import annotations

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Bench, ModelBench, ReplayBench

TARGET = Target.parse("mi300x8")
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
