"""The node bench on emulated ranks: each way to fail is a row of its kind, and the next config is
measured all the same."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from itertools import islice
from types import SimpleNamespace

import pytest

from tftune.db import target as machine
from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.cache_selftest import CopyRates
from tftune.tuner.bench.faults import FAULTS, injected
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import MATRIX, Deadlines, Rounds
from tftune.tuner.bench.sandbox import Broken, World

SHAPE = AllGatherGemm(7, 40, 66, 2)
BSP, GATHER_COPY, PUSH, *_, PULL = SPACE.defaults(SHAPE)
OTHER_PUSH = dict(PUSH.knobs) | {"group_m": 1}
FAULTY = {
    Config("push", **OTHER_PUSH | {"num_stages": stages, "num_warps": warps}): fault
    for (stages, warps), fault in {
        (2, 4): "hang",
        (2, 8): "crash",
        (3, 8): "wrong",
        (3, 4): "oom",
        (4, 8): "rank_error",
    }.items()
}


@pytest.fixture(scope="module")
def bench() -> Iterator[NodeBench]:
    deadlines = Deadlines(check=6.0)
    bench = NodeBench(
        Target.parse("h200x2"),
        1 << 20,
        emulated=True,
        deadlines=deadlines,
        rounds=Rounds(2, 4, 6),
        inject=lambda s, c: FAULTY.get(c),
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
            assert (
                len(outcome.samples_us)
                == len(outcome.bsp_samples_us)
                == (2 if outcome.stopped_early else 4)
            )
    assert len(bench.starts_s) == 1


def test_final_stage_takes_more_rounds_and_is_never_stopped_early(bench: NodeBench) -> None:
    outcome = bench.measure(SHAPE, PUSH, "graph", BSP, stage="final")
    assert isinstance(outcome, Measurement)
    assert len(outcome.samples_us) == 6 and not outcome.stopped_early


@pytest.mark.parametrize("config", FAULTY, ids=FAULTY.values())
def test_a_fault_is_a_failure_of_its_kind_and_the_search_goes_on(
    bench: NodeBench, config: Config
) -> None:
    began, recovered, fault = time.monotonic(), len(bench.recoveries_s), FAULTY[config]
    outcome = bench.measure(SHAPE, config, "graph", BSP)
    assert isinstance(outcome, Failure)
    assert outcome.kind == FAULTS[fault].kind and injected(outcome) == fault, outcome
    assert time.monotonic() - began < 20
    broken = bench._world is not None and not bench._world.alive
    assert broken == (fault != "oom"), (
        "an allocation that fails while preparing leaves the ranks sound"
    )
    assert isinstance(bench.measure(SHAPE, PULL, "graph", BSP), Measurement)
    assert len(bench.recoveries_s) == recovered + broken
    assert not broken or bench.starts_s[-1] <= bench.recoveries_s[-1] < time.monotonic() - began


def _failing(bench: NodeBench, monkeypatch: pytest.MonkeyPatch, times: int) -> list[Config]:
    """The check of BSP's first form fails so many times: on the first of them with its world.
    Returns what was checked."""
    checked, check = list[Config](), bench._check

    def flaky(world: World, shape: Shape, config: Config, fault: str | None) -> float | Failure:
        checked.append(config)
        if config != BSP or checked.count(BSP) > times:
            return check(world, shape, config, fault)
        if checked.count(BSP) == 1:
            world.kill()
            raise Broken("hang", "the machine slept")
        return Failure("crash", "the machine slept again")

    monkeypatch.setattr(bench, "_check", flaky)
    bench.restart()
    return checked


def test_what_the_baseline_fails_at_once_is_no_config_s_fault(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checked = _failing(bench, monkeypatch, 1)
    for config in (PUSH, PULL):
        assert isinstance(bench.measure(SHAPE, config, "graph", BSP), Measurement)
    assert checked == [BSP, BSP, PUSH, PULL] and "tried again: the machine slept" in caplog.text


def test_a_baseline_that_fails_twice_is_named_and_not_tried_for_each_config(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is measured itself."""
    checked = _failing(bench, monkeypatch, 2)
    for config in (PUSH, PULL):
        outcome = bench.measure(SHAPE, config, "graph", BSP)
        assert outcome == Failure("crash", "BSP beside it failed: the machine slept again")
    assert checked == [BSP, BSP]
    assert isinstance(bench.measure(SHAPE, BSP, "graph", None), Measurement)
    assert isinstance(bench.measure(SHAPE, PUSH, "graph", BSP), Measurement)


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
    assert world is not None and world._shared is not None
    folder, ranks = world._shared.path, [process for process, _ in world._ranks]
    assert folder.exists() and all(process.is_alive() for process in ranks)
    bench.close()
    assert not folder.exists()
    assert len(ranks) == 2 and not any(process.is_alive() for process in ranks)


Timed = Callable[..., tuple[int, bool]]


@pytest.fixture
def idle() -> NodeBench:
    return NodeBench(Target.parse("h200x2"), 1 << 20, emulated=True)


@pytest.fixture
def timed(idle: NodeBench, monkeypatch: pytest.MonkeyPatch) -> Timed:
    """timed(ratios, mode): rounds that a search takes, and whether it stops early, where BSP /
    config goes through these ratios, the last for ever."""

    def run(ratios: list[float], mode: str = "graph") -> tuple[int, bool]:
        clock = iter([*ratios, *[ratios[-1]] * 100])

        def rounds(
            world: object, shape: object, configs: object, mode: str, count: int
        ) -> list[tuple[float, ...]]:
            return [(10.0,) * count, tuple(10.0 / ratio for ratio in islice(clock, count))]

        monkeypatch.setattr(idle, "_slowest", rounds)
        samples, stopped = idle._time(None, SHAPE, [BSP, PUSH], mode, "search")  # type: ignore[arg-type]
        assert len(samples[0]) == len(samples[1])
        return len(samples[1]), stopped

    return run


def test_what_cannot_win_beside_bsp_is_stopped_after_the_probe(timed: Timed) -> None:
    assert timed([0.79]) == (4, True)
    assert timed([0.81]) == (15, False)
    assert timed([0.5, 0.5, 0.5, 0.9]) == (15, False), (
        "one round of four that could win keeps it in"
    )


def test_what_cannot_win_beside_the_best_so_far_is_stopped(timed: Timed) -> None:
    assert timed([1.5]) == (15, False)
    assert timed([1.19]) == (4, True)
    assert timed([1.21]) == (15, False)
    assert timed([1.19], mode="eager") == (15, False), "each mode has its own best"
    assert timed([1.5]) == (15, False)
    assert timed([1.21]) == (15, False)
    assert timed([1.19]) == (4, True), "a slower one took nothing from the best"


def test_a_lucky_round_is_outweighed_at_the_second_look(timed: Timed) -> None:
    assert timed([0.5, 1.4, 0.5]) == (8, True)
    assert timed([0.5, 1.4, 0.5, 1.4, 0.5]) == (15, False)


def test_the_best_counts_with_its_lower_bound(timed: Timed) -> None:
    """A median of 3 with half of its rounds at 1 proves nothing about another at 1."""
    assert timed([1.0, 3.0] * 7 + [3.0]) == (15, False)
    assert timed([1.0]) == (15, False)


def test_the_baseline_itself_is_never_stopped(
    monkeypatch: pytest.MonkeyPatch, idle: NodeBench, timed: Timed
) -> None:
    timed([2.0])
    monkeypatch.setattr(
        idle, "_slowest", lambda world, shape, configs, mode, count: [(10.0,) * count]
    )
    samples, stopped = idle._time(None, SHAPE, [BSP], "graph", "search")  # type: ignore[arg-type]
    assert len(samples[0]) == 15 and not stopped


def bsp_samples(outcomes: list[Outcome]) -> list[tuple[float, ...]]:
    """BSP's samples of each measurement."""
    return [outcome.bsp_samples_us for outcome in outcomes if isinstance(outcome, Measurement)]


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_finalists_share_their_rounds(bench: NodeBench, mode: str) -> None:
    outcomes = bench.compare(SHAPE, [PUSH, PULL], mode, BSP)
    assert [isinstance(outcome, Measurement) for outcome in outcomes] == [True] * 3
    shared = bsp_samples(outcomes)
    assert len(set(shared)) == 1 and len(shared[0]) == 6
    bsp, push, pull = outcomes
    assert isinstance(bsp, Measurement)
    assert isinstance(push, Measurement)
    assert isinstance(pull, Measurement)
    assert bsp.samples_us == bsp.bsp_samples_us and push.paired_interval(pull) is not None
    assert push.check_error is not None and not push.stopped_early


def test_in_a_matrix_what_is_far_behind_is_not_measured_to_the_end(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter slower than another is far behind: 10.1 us beside 8, and not 9.9."""
    times, asked = {BSP: 10.0, PUSH: 8.0, PULL: 10.1}, list[list[Config]]()

    def rounds(
        world: object, shape: object, configs: list[Config], mode: str, count: int
    ) -> list[tuple[float, ...]]:
        asked.append(configs)
        return [(times[config],) * count for config in configs]

    monkeypatch.setattr(bench, "_slowest", rounds)
    monkeypatch.setattr(bench, "_rounds", MATRIX)
    found = bench.compare(SHAPE, [PULL, PUSH], "graph", BSP)
    assert [(len(f.samples_us), f.stopped_early) for f in found if isinstance(f, Measurement)] == [
        (13, False),
        (3, True),
        (13, False),
    ]
    assert asked[:2] == [[BSP, PULL, PUSH], [BSP, PUSH]]
    assert [len(samples) for samples in bsp_samples(found)] == [13, 3, 13]
    times[PULL] = 9.9
    assert all(
        len(samples) == 13
        for samples in bsp_samples(bench.compare(SHAPE, [PULL, PUSH], "graph", BSP))
    )


def test_a_finalist_that_cannot_be_timed_is_left_out_of_the_rounds(bench: NodeBench) -> None:
    impossible = Config("bsp", form="gather")
    bsp, failed, push = bench.compare(SHAPE, [impossible, PUSH], "graph", BSP)
    assert isinstance(failed, Failure) and failed.kind == "invalid"
    assert len(set(bsp_samples([bsp, push]))) == 1 and isinstance(push, Measurement)


def test_a_finalist_that_ends_the_world_leaves_the_others_their_own_rounds(
    bench: NodeBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.restart()  # what was found out about the faulty ones in other tests is forgotten
    wrong = next(config for config, fault in FAULTY.items() if fault == "wrong")
    with caplog.at_level(logging.WARNING):
        outcomes = bench.compare(SHAPE, [PULL, wrong, PUSH], "graph", BSP)
    assert isinstance(outcomes[2], Failure) and outcomes[2].kind == "wrong"
    assert len(set(bsp_samples(outcomes))) == 3 == len(bsp_samples(outcomes))
    assert "are timed one by one" in caplog.text


def test_emulated_ranks_say_nothing_about_clocks_or_caches(bench: NodeBench) -> None:
    assert bench.conditions() == {}


def test_copy_rates_are_kept_and_doubted_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = NodeBench(Target.parse("h200x2"), 1 << 20)
    monkeypatch.setattr(machine, "clocks", lambda: {"0": {"sm_mhz": 1980.0}})
    assert real.conditions() == {"0": {"sm_mhz": 1980.0}}
    for rates in (
        [(3.3e6, 4.2e6), (3.2e6, 4.2e6)],
        [(3.1e6, 4e6), (5.5e6, 6e6)],
        [(3e6, 4e6), (5.4e6, 6e6)],
    ):
        world = SimpleNamespace(
            request=lambda method, arguments, deadline_s, rates=rates: [
                CopyRates(*pair) for pair in rates
            ]
        )
        with caplog.at_level(logging.WARNING):
            real._prove_cold(world)  # type: ignore[arg-type]
    assert real.conditions()["copy_gb_s"] == {"cold": 5500.0, "warm": 6000.0}, (
        "of all ranks and worlds the one that looked least cold"
    )
    (warning,) = caplog.messages
    assert (
        "h200x2: caches are not cold: a rotated copy reached 5500 GB/s, and the memory of h200 "
        "gives 4250" in warning
    )
