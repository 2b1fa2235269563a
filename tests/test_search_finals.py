"""The final stage of a search: a fresh world, rounds that finalists share, who ties with the
winner, and the machine's state at its end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest
from fake_bench import BOTH, OPERATION, OTHER, SMALL, Answer, FakeBench, plain, run, time_us

from tftune.db.evidence import overlap, speedup_interval
from tftune.db.store import Store
from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Compare
from tftune.tuner.search.final_stage import final_stage
from tftune.tuner.search.session import Rows

pytestmark = pytest.mark.usefixtures("tiny")


def test_the_final_stage_measures_the_same_portfolio_everywhere_in_a_fresh_world(
    store: Store,
) -> None:
    bench = FakeBench()
    bests = run(store, bench, (SMALL, OTHER))
    assert len(bench.restarts) == 1
    assert {stage for *_, stage in bench.asked[: bench.restarts[0]]} == {"search"}
    assert {stage for *_, stage in bench.asked[bench.restarts[0] :]} == {"final"}
    for mode in ("graph", "eager"):
        small, other = set(bench.of("final", SMALL, mode)), set(bench.of("final", OTHER, mode))
        assert len({config for config in small & other if config.variant != "bsp"}) >= 2, (
            "regret must be defined at both shapes"
        )
    assert {best.winner.stage for best in bests} == {best.bsp.stage for best in bests} == {"final"}
    assert all(set(best.by_variant) == {"bsp", "pull", "staged", "push"} for best in bests)
    assert [best.winner.config.variant for best in bests] == ["push", "pull"] * 2


def noisy(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
    """Seven rounds that scatter by 3 %; the ratio to BSP of the same rounds scatters with them."""
    us = time_us(shape, config, mode)
    samples = tuple(us * (0.97 + 0.01 * place) for place in range(7))
    return Measurement(samples, () if baseline is None else (16.0,) * 7)


def test_the_tie_set_holds_the_winner_and_what_noise_cannot_tell_from_it(store: Store) -> None:
    (best,) = run(store, FakeBench(noisy), modes=("graph",))
    finals = {
        trial.config: trial.outcome
        for trial in store.trials(stage="final")
        if isinstance(trial.outcome, Measurement)
    }
    assert best.tied[0] == best.winner.config
    low = finals[best.winner.config].speedup_interval
    assert low is not None
    for config, outcome in finals.items():
        high = outcome.speedup_interval or (1.0, 1.0)
        assert (config in best.tied) == (high[1] >= low[0] and low[1] >= high[0])


class PairingBench(FakeBench):
    """Has rounds to share: finalists drift together, round by round, and BSP with them."""

    @property
    def compare(self) -> Compare:  # type: ignore[override]
        return self.together

    def __init__(
        self,
        answer: Answer = plain,
        us: Callable[[Config], float] = lambda config: time_us(SMALL, config, "graph"),
    ) -> None:
        super().__init__(answer)
        self.us = us
        self.groups: list[tuple[Shape, str, tuple[Config, ...]]] = []
        self.read = 0

    def conditions(self) -> dict[str, object]:
        self.read += 1
        return {"0": {"sm_mhz": 1980.0 - 100 * len(self.groups)}}

    def together(
        self, shape: Shape, configs: Sequence[Config], mode: str, baseline: Config
    ) -> list[Outcome]:
        self.groups.append((shape, mode, (baseline, *configs)))
        drift = [1 + 0.1 * (number % 5) + 0.01 * len(self.groups) for number in range(9)]
        bsp = tuple(16 * d for d in drift)
        return [
            Measurement(tuple(self.us(config) * d for d in drift), bsp)
            for config in (baseline, *configs)
        ]


def near_us(config: Config) -> float:
    """Some configs of push are 0.5 % and some 2 % slower than the fastest."""
    if config.variant == "bsp":
        return time_us(SMALL, config, "graph")
    return (
        10 * {32: 1.0, 64: 1.005, 128: 1.02}[config["block_n"]] * (1 + (config.variant != "push"))
    )


def near(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
    """Seven rounds that scatter by 3 %: they tell no two configs of push apart."""
    return Measurement(
        tuple(near_us(config) * (0.97 + 0.01 * place) for place in range(7)),
        (near_us(baseline),) * 7 if baseline else (),
    )


def test_finalists_of_a_place_are_measured_in_the_same_rounds(store: Store) -> None:
    bench = PairingBench(near, near_us)
    (best,) = run(store, bench, modes=("graph",))
    (_, _, own), (_, _, everything) = bench.groups
    assert bench.of("final") == [] and len(bench.restarts) == 1
    assert own[0] == everything[0] == Config("bsp", form="gather_copy")
    assert {config.variant for config in own[1:]} == {"pull", "staged", "push"}
    assert set(own) < set(everything), "the winner's rivals are timed beside it"
    finals = store.trials(stage="final")
    assert [trial.config for trial in finals] == [*own, *everything]
    assert (
        len(
            {
                trial.outcome.bsp_samples_us
                for trial in finals
                if isinstance(trial.outcome, Measurement)
            }
        )
        == 2
    )
    assert best.winner.id == finals[len(own) + everything.index(best.winner.config)].id, (
        "the newer row counts"
    )


def test_pairs_tell_apart_what_separate_rounds_cannot(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.tuner.search.final_stage.RIVALS", 12)
    bench = PairingBench(near, near_us)
    (best,) = run(
        store, bench, modes=("graph",), variants=("pull", "push"), seed=0
    )  # whose draws try all three
    push = [config for config in bench.groups[-1][2] if config.variant == "push"]
    assert {config["block_n"] for config in push} == {32, 64, 128}
    assert set(best.tied) == {config for config in push if config["block_n"] < 128}
    searched = Rows(OPERATION, bench, store).searched((SMALL, "graph"))
    assert all(
        overlap(speedup_interval(searched[config]), speedup_interval(searched[best.winner.config]))
        for config in push
    )


def test_shared_rounds_are_measured_once(store: Store) -> None:
    run(store, PairingBench(), (SMALL, OTHER))
    trials, runs = store.trials(), store.runs()
    again = PairingBench()
    run(store, again, (SMALL, OTHER))
    assert again.groups == [] == again.asked and store.trials() == trials and store.runs() == runs


def test_a_budget_ends_the_final_stage_between_places(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The winners of a place share their rounds, or have none; what is left is counted, and the
    next search makes it."""
    bench, places = PairingBench(), list(itertools.product((SMALL, OTHER), BOTH))
    run(store, bench, (SMALL, OTHER), budget_s=0.0)
    assert bench.groups == []
    rows, now = Rows(OPERATION, bench, store), itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(now)))
    monkeypatch.setattr("tftune.tuner.search.final_stage.time", clock)
    left = final_stage(rows, places, 2, 3.0)
    assert [(shape, mode) for shape, mode, _ in bench.groups] == places[:2] and left == 8
    assert {len(group) for *_, group in bench.groups} == {4}
    assert final_stage(rows, places, 2, math.inf) == 0
    assert [(shape, mode) for shape, mode, _ in bench.groups] == places


def test_finalists_that_a_bench_cannot_compare_are_failures(store: Store) -> None:
    bench = PairingBench()
    bench.together = lambda *question: 1 / 0  # type: ignore[assignment, method-assign, return-value]
    (best,) = run(store, bench, modes=("graph",))
    assert {
        trial.outcome.text
        for trial in store.trials(stage="final")
        if isinstance(trial.outcome, Failure)
    } == {"ZeroDivisionError: division by zero"}
    assert best.winner.stage == "search"


def test_a_run_holds_what_the_machine_was_like_after_the_first_and_the_last_trial(
    store: Store,
) -> None:
    bench = PairingBench()
    run(store, bench, modes=("graph",))
    (stored,) = store.runs()
    assert stored.clocks == {"0": {"sm_mhz": 1980.0}}
    assert stored.ended == {"0": {"sm_mhz": 1980.0 - 100 * len(bench.groups)}} != stored.clocks
    assert bench.read == 2
    assert stored.started <= store.trials()[0].created


def test_a_stopped_search_has_no_end(store: Store) -> None:
    def stopped(*question: object) -> Outcome:
        if len(bench.asked) > 5:
            raise KeyboardInterrupt
        return plain(*question)  # type: ignore[arg-type]

    bench = PairingBench(stopped)
    with pytest.raises(KeyboardInterrupt):
        run(store, bench)
    (stored,) = store.runs()
    assert stored.clocks and stored.ended == {}


def test_without_a_final_bsp_the_rows_of_the_search_decide(store: Store) -> None:
    def broken(
        shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str
    ) -> Outcome:
        return (
            Failure("hang", "late")
            if stage == "final"
            else plain(shape, config, mode, baseline, stage)
        )

    (best,) = run(store, FakeBench(broken), modes=("graph",))
    assert best.winner.stage == "search" and best.winner.config.variant == "push"
