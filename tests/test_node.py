"""The node bench on emulated ranks: each way to fail is a row of its kind, and the next config is measured all the same."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.space import Config
from tftune.tuner.faults import FAULTS, injected
from tftune.tuner.node import Deadlines, NodeBench, Rounds

SHAPE = AllGatherGemm(7, 40, 66, 2)
BSP, GATHER_COPY, PUSH, PULL = SPACE.defaults(SHAPE)
FAULTY = {
    Config("push", **dict(PUSH.knobs) | {"group_m": 1, "num_stages": stages, "num_warps": warps}): fault
    for (stages, warps), fault in {
        (2, 4): "hang", (2, 8): "crash", (3, 8): "wrong", (3, 4): "oom", (4, 8): "rank_error",
    }.items()
}  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> Iterator[NodeBench]:
    deadlines = Deadlines(check=6.0)
    bench = NodeBench(
        Target.parse("h200x2"), 1 << 20, emulated=True, deadlines=deadlines, rounds=Rounds(2, 4, 6), inject=lambda s, c: FAULTY.get(c)
    )
    yield bench
    bench.close()


def test_every_variant_is_checked_then_timed_beside_bsp(bench: NodeBench) -> None:
    bsp = bench.measure(SHAPE, BSP, "graph", None)
    assert isinstance(bsp, Measurement)
    assert bsp.bsp_samples_us == bsp.samples_us
    for config in (GATHER_COPY, PUSH, PULL):
        for mode in ("graph", "eager"):
            outcome = bench.measure(SHAPE, config, mode, BSP)
            assert isinstance(outcome, Measurement), outcome
            assert outcome.check_error is not None and outcome.check_error < 1e-3
            assert len(outcome.samples_us) == len(outcome.bsp_samples_us) == (2 if outcome.stopped_early else 4)
    assert len(bench.starts_s) == 1


def test_final_stage_takes_more_rounds_and_is_never_stopped_early(bench: NodeBench) -> None:
    outcome = bench.measure(SHAPE, PUSH, "graph", BSP, stage="final")
    assert isinstance(outcome, Measurement)
    assert len(outcome.samples_us) == 6 and not outcome.stopped_early


@pytest.mark.parametrize("config", FAULTY, ids=FAULTY.values())
def test_a_fault_is_a_failure_of_its_kind_and_the_search_goes_on(bench: NodeBench, config: Config) -> None:
    began, recovered, fault = time.monotonic(), len(bench.recoveries_s), FAULTY[config]
    outcome = bench.measure(SHAPE, config, "graph", BSP)
    assert isinstance(outcome, Failure)
    assert outcome.kind == FAULTS[fault].kind and injected(outcome) == fault, outcome
    assert time.monotonic() - began < 20
    broken = bench._world is not None and not bench._world.alive
    assert broken == (fault != "oom"), "an allocation that fails while preparing leaves the ranks sound"
    assert isinstance(bench.measure(SHAPE, PULL, "graph", BSP), Measurement)
    assert len(bench.recoveries_s) == recovered + broken
    assert not broken or bench.starts_s[-1] <= bench.recoveries_s[-1] < time.monotonic() - began


def test_every_fault_has_a_config() -> None:
    assert set(FAULTY.values()) == set(FAULTS)


def test_an_impossible_config_starts_nothing() -> None:
    bench = NodeBench(Target.parse("h200x2"), 1 << 20, emulated=True)
    outcome = bench.measure(SHAPE, Config("bsp", form="gather"), "graph", None)
    assert isinstance(outcome, Failure) and outcome.kind == "invalid"
    assert "sharded along M" in outcome.text
    assert bench.starts_s == []


def test_a_workspace_that_is_too_small_fails_on_all_ranks_alike() -> None:
    bench = NodeBench(Target.parse("h200x2"), 64, emulated=True)
    large = AllGatherGemm(64, 40, 128, 2)
    outcome = bench.measure(large, SPACE.defaults(large)[2], "graph", None)
    bench.close()
    assert isinstance(outcome, Failure) and outcome.kind == "compile"
    assert "gathers 16384 bytes but a generation of the workspace has 4096" in outcome.text


def test_closing_leaves_no_process_and_no_shared_memory() -> None:
    bench = NodeBench(Target.parse("h200x2"), 1 << 20, emulated=True, rounds=Rounds(1, 2, 2))
    assert isinstance(bench.measure(SHAPE, BSP, "eager", None), Measurement)
    world = bench._world
    assert world is not None and world._folder is not None
    folder, ranks = world._folder, [process for process, _ in world._ranks]
    assert folder.exists() and all(process.is_alive() for process in ranks)
    bench.close()
    assert not folder.exists()
    assert len(ranks) == 2 and not any(process.is_alive() for process in ranks)
