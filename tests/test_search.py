"""The search over a fake bench: what is measured in which order, what a second start does, and that failures are results."""

from __future__ import annotations

import itertools
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from tftune.db.store import Store, StoreError
from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE as WHOLE
from tftune.kernels.chips import Chip
from tftune.kernels.distance import distance
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Choice, Config, Space
from tftune.tuner import rows as rows_module
from tftune.tuner.benches import Bench, Compare, ModelBench, ReplayBench
from tftune.tuner.rows import Rows, speedups
from tftune.tuner.samplers import SAMPLERS
from tftune.tuner.search import EFFORTS, Best, Effort, search, study_name
from tftune.tuner.stats import overlap

TARGET = Target.parse("mi300x8")
KEPT = {"block_m": (16,), "block_n": (32, 64, 128), "rows_per_flag": (16, 128), "k_per_flag": (256, 1024)}
SPACE = replace(
    WHOLE,
    variants={
        variant: tuple(replace(c, values=KEPT.get(c.name, c.values), default=KEPT.get(c.name, c.values)[0]) for c in choices)
        for variant, choices in WHOLE.variants.items()
    },
)
OPERATION = replace(operation("all_gather_gemm"), space=SPACE)
SMALL, OTHER = (AllGatherGemm(m=m, n=3584, k=8192, world=8) for m in (1, 8))
FORMS = tuple(config for config in SPACE.defaults(SMALL, TARGET.chip) if config.variant == "bsp")
Answer = Callable[[Shape, Config, str, Config | None, str], Outcome]


def time_us(shape: Shape, config: Config, mode: str, chip: Chip | None = None) -> float:
    """gather_copy is the stronger BSP; push with many stages and few programs win, and in eager mode pull."""
    if config.variant == "bsp":
        return 16.0 if config["form"] == "gather_copy" else 17.0
    best = "push" if mode == "graph" else "pull"
    return 7.0 + 2 * (config.variant != best) + config["comm_programs"] / 16 + 4 / config["num_stages"] + 0.001 * config["block_n"]


def plain(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
    us = time_us(shape, config, mode)
    return Measurement((us,) * 3, () if baseline is None else (time_us(shape, baseline, mode),) * 3)


class FakeBench:
    """Answers from a function, and remembers what it was asked."""

    name = "model"
    target = TARGET
    starts_s = recoveries_s = ()
    spent_s: dict[str, float] = {}  # noqa: RUF012
    compare: Compare | None = None

    def conditions(self) -> dict[str, object]:
        return {}

    def __init__(self, answer: Answer = plain) -> None:
        self.answer = answer
        self.asked: list[tuple[Shape, Config, str, str]] = []
        self.baselines: list[Config | None] = []
        self.restarts: list[int] = []
        self.announced: set[tuple[Shape, Config]] = set()

    def known(self, shape: Shape, mode: str) -> None: ...

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        self.announced |= {(shape, config) for config in configs}

    def settle(self, timeout_s: float) -> None:
        assert timeout_s > 0 and not self.asked

    def measure(self, shape: Shape, config: Config, mode: str, baseline: Config | None, *, stage: str = "search") -> Outcome:
        self.asked.append((shape, config, mode, stage))
        self.baselines.append(baseline)
        return self.answer(shape, config, mode, baseline, stage)

    def restart(self) -> None:
        self.restarts.append(len(self.asked))

    def close(self) -> None: ...

    def of(self, stage: str, shape: Shape = SMALL, mode: str = "graph") -> list[Config]:
        return [config for s, config, m, g in self.asked if (s, m, g) == (shape, mode, stage)]


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all tables: Optuna takes longer to make its own than most tests here take."""
    path = tmp_path_factory.mktemp("empty") / "a.db"
    with Store.open(path) as store:
        store.optuna_storage()
    return path


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Iterator[Store]:
    with Store.open(Path(shutil.copy(empty, tmp_path))) as store:
        yield store


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small effort over a tenth of the space, since listing a space takes longest here."""
    monkeypatch.setitem(EFFORTS, "tiny", Effort(12, 2, "for tests"))
    use(monkeypatch, SPACE)


def use(monkeypatch: pytest.MonkeyPatch, space: Space) -> None:
    monkeypatch.setattr("tftune.tuner.search.operation", lambda name: replace(OPERATION, space=space))


BOTH = ("graph", "eager")


def run(store: Store, bench: Bench, shapes: tuple[Shape, ...] = (SMALL,), modes: tuple[str, ...] = BOTH, **more: object) -> list[Best]:
    return search("all_gather_gemm", shapes, modes, bench, store, **{"effort": "tiny", "sampler": "random"} | more)  # type: ignore[arg-type]


def test_bsp_is_measured_first_then_the_defaults(store: Store) -> None:
    bench = FakeBench()
    run(store, bench, (SMALL, OTHER))
    for shape, mode in itertools.product((SMALL, OTHER), ("graph", "eager")):
        rows = [trial.config for trial in store.trials(shape=shape, mode=mode, stage="search")]
        assert tuple(rows[:5]) == tuple(map(SPACE.complete, SPACE.defaults(shape, TARGET.chip)))
        assert len(rows) == len(set(rows)) == 12
        assert not [config for config in rows if SPACE.why_invalid(shape, config, TARGET.chip)]


def test_the_strongest_form_of_bsp_is_the_baseline(store: Store) -> None:
    bench = FakeBench()
    run(store, bench, modes=("graph",))
    strong, weak = Config("bsp", form="gather_copy"), Config("bsp", form="local_transpose")
    assert (weak, strong) == FORMS
    assert bench.baselines[:2] == [None, weak]
    assert set(bench.baselines[2:12]) == {strong}
    assert bench.of("final")[0] == strong and bench.baselines[12] is None


def test_both_modes_measure_the_same_configs_one_after_the_other(store: Store) -> None:
    bench = FakeBench()
    run(store, bench)
    assert bench.of("search") == bench.of("search", mode="eager")
    fused = [(config, mode) for _, config, mode, stage in bench.asked if stage == "search" and config.variant != "bsp"]
    assert fused[::2] == [(config, "graph") for config, _ in fused[1::2]]


def test_the_same_command_measures_nothing_twice(store: Store) -> None:
    first = run(store, FakeBench(), (SMALL, OTHER))
    trials, runs = store.trials(), store.runs()
    bench = FakeBench()
    again = run(store, bench, (SMALL, OTHER))
    assert bench.asked == [] == bench.restarts and store.trials() == trials and store.runs() == runs
    assert [(best.shape, best.mode, best.winner.id, best.tied) for best in again] == [
        (best.shape, best.mode, best.winner.id, best.tied) for best in first
    ]


@pytest.mark.parametrize("moment", [0, 1, 3, 5, 17, 25])
def test_an_interrupted_search_goes_on_where_it_stopped(store: Store, moment: int) -> None:
    def interrupted(*question: object) -> Outcome:
        if len(stopped.asked) > moment:
            raise KeyboardInterrupt
        return plain(*question)  # type: ignore[arg-type]

    stopped, resumed = FakeBench(interrupted), FakeBench()
    with pytest.raises(KeyboardInterrupt):
        run(store, stopped)
    kept = store.trials()
    assert len(kept) == moment
    (best, _) = run(store, resumed)
    assert store.trials()[:moment] == kept and not set(stopped.asked[:moment]) & set(resumed.asked)
    counts = Counter((trial.shape, trial.config, trial.mode, trial.stage) for trial in store.trials())
    assert max(counts.values()) == 1 and best.evaluations == 12 and store.check() == []


def test_more_effort_goes_on_from_less(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, FakeBench(), modes=("graph",))
    monkeypatch.setitem(EFFORTS, "more", Effort(20, 2, "for tests"))
    bench = FakeBench()
    (best,) = run(store, bench, modes=("graph",), effort="more")
    assert len(bench.of("search")) == 8 and best.evaluations == 20 and bench.of("final")


def test_exhaustive_effort_tries_every_feasible_config(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"pull": Choice("num_warps", (4,), "warps", 4), "push": Choice("num_warps", (4, 8), "warps", 4)}
    fused = {variant: tuple(replace(choice, values=(choice.default,)) for choice in SPACE.choices(variant)) for variant in one}
    fused = {variant: tuple(one[variant] if c.name == "num_warps" else c for c in choices) for variant, choices in fused.items()}
    space = replace(SPACE, variants={"bsp": SPACE.choices("bsp")} | fused, rules=(), defaults=lambda shape, chip: FORMS)
    use(monkeypatch, space)
    (best,) = run(store, FakeBench(), modes=("graph",), effort="exhaustive")
    assert best.evaluations == best.feasible == len(list(space.configs(SMALL, TARGET.chip))) == 6


def test_rows_of_another_kernel_do_not_hold(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, FakeBench(), modes=("graph",))
    original = rows_module.kernel_hash
    monkeypatch.setattr(rows_module, "kernel_hash", lambda op, variant: "changed" if variant == "push" else original(op, variant))
    bench = FakeBench()
    run(store, bench, modes=("graph",))
    assert {config.variant for config in bench.of("search")} >= {"push"} and not set(bench.of("search")) & set(FORMS)
    rows = Rows(OPERATION, bench, store)
    assert {trial.kernel_hash for trial in rows.searched((SMALL, "graph")).values() if trial.config.variant == "push"} == {"changed"}


def test_rows_of_another_bench_are_not_taken(store: Store) -> None:
    run(store, FakeBench(), modes=("graph",))
    replay = FakeBench()
    replay.name = "replay"
    run(store, replay, modes=("graph",))
    assert len(replay.of("search")) == 12


def failing(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
    """Three of ten configs fail, one of them by an exception that a bench should not raise."""
    digit = config.variant != "bsp" and sum(value for _, value in config.knobs if isinstance(value, int)) // 16 % 10
    if digit and digit < 3:
        return Failure("compile", "it did not compile")
    if digit == 3:
        raise RuntimeError("a bug of the bench")
    return plain(shape, config, mode, baseline, stage)


def test_failures_are_rows_and_the_search_ends_well(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "more", Effort(40, 2, "for tests"))
    (best, _) = run(store, FakeBench(failing), effort="more")
    failures = [trial.outcome for trial in store.trials(mode="graph", stage="search") if isinstance(trial.outcome, Failure)]
    assert best.evaluations == 40 and isinstance(best.winner.outcome, Measurement)
    assert {failure.kind for failure in failures} == {"compile", "crash"}
    assert "RuntimeError: a bug of the bench" in {failure.text for failure in failures}


def test_a_mode_without_bsp_is_left_out_and_said(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    def broken(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
        if config.variant == "bsp" and mode == "eager":
            return Failure("hang", "it passed its deadline")
        return plain(shape, config, mode, baseline, stage)

    bench = FakeBench(broken)
    with caplog.at_level(logging.WARNING):
        bests = run(store, bench)
    assert [best.mode for best in bests] == ["graph"] and "mode eager" in caplog.text
    assert bench.of("search", mode="eager") == list(FORMS) * 2, "each form has a second chance, and nothing else is tried"


def test_where_nothing_can_be_measured_the_first_reason_is_said(store: Store) -> None:
    bench = FakeBench(lambda *question: Failure("crash", "no link between the GPUs"))
    with pytest.raises(ValueError, match=r"nothing could be measured on mi300x8 \(4 trials failed\); the first failure: no link"):
        run(store, bench)
    assert len(store.trials()) == 8 and bench.restarts == []


def test_a_store_error_ends_the_search(store: Store) -> None:
    def full(*question: object) -> Outcome:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        run(store, FakeBench(full))


def test_the_final_stage_measures_the_same_portfolio_everywhere_in_a_fresh_world(store: Store) -> None:
    bench = FakeBench()
    bests = run(store, bench, (SMALL, OTHER))
    assert len(bench.restarts) == 1 and {stage for *_, stage in bench.asked[: bench.restarts[0]]} == {"search"}
    assert {stage for *_, stage in bench.asked[bench.restarts[0] :]} == {"final"}
    for mode in ("graph", "eager"):
        small, other = set(bench.of("final", SMALL, mode)), set(bench.of("final", OTHER, mode))
        assert len({config for config in small & other if config.variant != "bsp"}) >= 2, "regret must be defined at both shapes"
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
    finals = {trial.config: trial.outcome for trial in store.trials(stage="final") if isinstance(trial.outcome, Measurement)}
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

    def __init__(self, answer: Answer = plain, us: Callable[[Config], float] = lambda config: time_us(SMALL, config, "graph")) -> None:
        super().__init__(answer)
        self.us = us
        self.groups: list[tuple[Shape, str, tuple[Config, ...]]] = []
        self.read = 0

    def conditions(self) -> dict[str, object]:
        self.read += 1
        return {"0": {"sm_mhz": 1980.0 - 100 * len(self.groups)}}

    def together(self, shape: Shape, configs: Sequence[Config], mode: str, baseline: Config) -> list[Outcome]:
        self.groups.append((shape, mode, (baseline, *configs)))
        drift = [1 + 0.1 * (number % 5) + 0.01 * len(self.groups) for number in range(9)]
        bsp = tuple(16 * d for d in drift)
        return [Measurement(tuple(self.us(config) * d for d in drift), bsp) for config in (baseline, *configs)]


def near_us(config: Config) -> float:
    """Of the configs of push some are 0.5 % and some 2 % slower than the fastest."""
    if config.variant == "bsp":
        return time_us(SMALL, config, "graph")
    return 10 * {32: 1.0, 64: 1.005, 128: 1.02}[config["block_n"]] * (1 + (config.variant != "push"))


def near(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
    """Seven rounds that scatter by 3 %: they tell no two configs of push apart."""
    return Measurement(tuple(near_us(config) * (0.97 + 0.01 * place) for place in range(7)), (near_us(baseline),) * 7 if baseline else ())


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
    assert len({trial.outcome.bsp_samples_us for trial in finals if isinstance(trial.outcome, Measurement)}) == 2
    assert best.winner.id == finals[len(own) + everything.index(best.winner.config)].id, "the newer row counts"


def test_pairs_tell_apart_what_separate_rounds_cannot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tftune.tuner.finals.RIVALS", 12)
    bench = PairingBench(near, near_us)
    (best,) = run(store, bench, modes=("graph",), variants=("pull", "push"), seed=1)
    push = [config for config in bench.groups[-1][2] if config.variant == "push"]
    assert {config["block_n"] for config in push} == {32, 64, 128}
    assert set(best.tied) == {config for config in push if config["block_n"] < 128}
    searched = Rows(OPERATION, bench, store).searched((SMALL, "graph"))
    assert all(overlap(speedups(searched[config]), speedups(searched[best.winner.config])) for config in push)


def test_shared_rounds_are_measured_once(store: Store) -> None:
    run(store, PairingBench(), (SMALL, OTHER))
    trials, runs = store.trials(), store.runs()
    again = PairingBench()
    run(store, again, (SMALL, OTHER))
    assert again.groups == [] == again.asked and store.trials() == trials and store.runs() == runs


def test_without_time_only_the_winners_share_rounds(store: Store) -> None:
    bench = PairingBench()
    run(store, bench, (SMALL, OTHER), budget_s=0.0)
    assert [(shape, mode) for shape, mode, _ in bench.groups] == list(itertools.product((SMALL, OTHER), BOTH))
    assert {len(group) for *_, group in bench.groups} == {4}


def test_finalists_that_a_bench_cannot_compare_are_failures(store: Store) -> None:
    bench = PairingBench()
    bench.together = lambda *question: 1 / 0  # type: ignore[assignment, method-assign, return-value]
    (best,) = run(store, bench, modes=("graph",))
    assert {trial.outcome.text for trial in store.trials(stage="final") if isinstance(trial.outcome, Failure)} == {
        "ZeroDivisionError: division by zero"
    }
    assert best.winner.stage == "search"


def test_a_run_holds_what_the_machine_was_like_after_the_first_and_the_last_trial(store: Store) -> None:
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


def test_final_rows_older_than_the_search_are_measured_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, FakeBench(), modes=("graph",))
    monkeypatch.setitem(EFFORTS, "more", Effort(13, 2, "for tests"))
    bench = FakeBench()
    run(store, bench, modes=("graph",), effort="more")
    assert len(bench.of("search")) == 1 and bench.of("final")[0] == Config("bsp", form="gather_copy")


def test_without_a_final_bsp_the_rows_of_the_search_decide(store: Store) -> None:
    def broken(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
        return Failure("hang", "late") if stage == "final" else plain(shape, config, mode, baseline, stage)

    (best,) = run(store, FakeBench(broken), modes=("graph",))
    assert best.winner.stage == "search" and best.winner.config.variant == "push"


def test_without_time_every_shape_still_has_bsp_its_defaults_and_its_winners(store: Store) -> None:
    bench = FakeBench()
    bests = run(store, bench, (SMALL, OTHER), budget_s=0.0)
    assert [best.evaluations for best in bests] == [5] * 4
    assert all(len(bench.of("final", shape, mode)) == 4 for shape in (SMALL, OTHER) for mode in ("graph", "eager"))


def test_a_budget_stops_and_is_shared_by_the_shapes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count()
    monkeypatch.setattr("tftune.tuner.search.time.monotonic", lambda: float(next(now)))
    monkeypatch.setitem(EFFORTS, "more", Effort(1000, 2, "for tests"))
    small, other = run(store, FakeBench(), (SMALL, OTHER), modes=("graph",), effort="more", budget_s=60.0)
    assert 15 < small.evaluations < 40 and 15 < other.evaluations < 40


def test_the_winners_of_the_nearest_shapes_are_tried(store: Store) -> None:
    far = AllGatherGemm(m=8192, n=3584, k=8192, world=8)
    assert distance(SMALL, OTHER) == 3 < distance(SMALL, far) == 13 < distance(SMALL, AllGatherGemm(1, 3584, 8192, 8, "bf16")) + 10
    first = {best.mode: best for best in run(store, FakeBench())}
    bench = FakeBench()
    run(store, bench, (OTHER,))
    winners = [first[mode].by_variant[variant].config for mode in ("graph", "eager") for variant in ("push", "pull")]
    assert set(winners) <= set(bench.of("search", OTHER)[:8])


def test_the_models_best_of_each_variant_are_tried(store: Store) -> None:
    bench = FakeBench()
    run(store, bench, modes=("graph",), predict=time_us)
    for variant in ("pull", "staged", "push"):
        times = {config: time_us(SMALL, config, "graph") for config in SPACE.configs(SMALL, TARGET.chip, (variant,))}
        assert min(times.values()) in [times[config] for config in bench.of("search")[5:] if config.variant == variant]


def test_variants_limit_the_search_and_bsp_stays(store: Store) -> None:
    (best,) = run(store, FakeBench(), modes=("graph",), variants=("push",))
    assert set(best.by_variant) == {"bsp", "push"}
    assert {trial.config.variant for trial in store.trials()} == {"bsp", "push"}


def test_replay_tries_what_has_a_row_in_each_mode_and_nothing_else(store: Store) -> None:
    """Rows of both shapes, but in eager mode a third of SMALL's: the portfolio and the sampler stay within them."""
    run(store, FakeBench(), (SMALL, OTHER))
    whole = [trial for trial in store.trials() if trial.stage == "search"]
    few = [trial for trial in whole if (trial.shape, trial.mode) == (SMALL, "eager") and trial.config.variant != "bsp"][::3]
    rows = [trial for trial in whole if (trial.shape, trial.mode) != (SMALL, "eager") or trial.config.variant == "bsp"] + few
    best = run(store, ReplayBench(TARGET, rows), (SMALL, OTHER), effort="default")
    replayed = store.trials(bench="replay")
    assert {(trial.shape, trial.config, trial.mode) for trial in replayed} == {(trial.shape, trial.config, trial.mode) for trial in rows}
    assert all(isinstance(trial.outcome, Measurement) for trial in replayed)
    assert [(found.evaluations, found.feasible) for found in best] == [(12, 12), (2 + len(few), 2 + len(few)), (12, 12), (12, 12)]


def test_replay_of_a_shape_without_rows_is_a_sentence_and_stores_nothing(store: Store) -> None:
    run(store, FakeBench(), modes=("graph",))
    bench = ReplayBench(TARGET, store.trials())
    with pytest.raises(ValueError, match=rf"no rows of {OTHER} on mi300x8 in mode graph or eager to replay; .*tftune trials import"):
        run(store, bench, (SMALL, OTHER))
    with pytest.raises(ValueError, match=rf"no rows of {SMALL} on mi300x8 in mode eager"):
        run(store, bench, modes=("eager",))
    assert not store.trials(bench="replay")


def test_replay_of_a_mode_without_rows_leaves_it_out(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    run(store, FakeBench(), modes=("graph",))
    (best,) = run(store, ReplayBench(TARGET, store.trials()))
    assert best.mode == "graph" and f"{SMALL} in mode eager is left out" in caplog.text


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_drives_the_search(store: Store, sampler: str) -> None:
    (best,) = run(store, FakeBench(), modes=("graph",), sampler=sampler)
    assert best.evaluations == 12


def test_the_study_in_the_database_holds_the_rows(store: Store) -> None:
    bench = FakeBench(failing)
    run(store, bench, modes=("graph",))
    name = study_name(OPERATION, SMALL, "graph", bench)
    study = optuna.load_study(study_name=name, storage=store.optuna_storage())
    rows = store.trials(stage="search")
    assert [trial.user_attrs["trial"] for trial in study.trials] == [row.id for row in rows]
    assert [trial.state.name == "FAIL" for trial in study.trials] == [isinstance(row.outcome, Failure) for row in rows]
    assert study.best_value == pytest.approx(min(r.outcome.median_us for r in rows if isinstance(r.outcome, Measurement)) / 16, rel=1e-3)


def test_a_lost_study_is_made_again_from_the_rows(store: Store) -> None:
    bench = FakeBench()
    run(store, bench, modes=("graph",))
    name = study_name(OPERATION, SMALL, "graph", bench)
    optuna.delete_study(study_name=name, storage=store.optuna_storage())
    run(store, bench, modes=("graph",))
    assert len(optuna.load_study(study_name=name, storage=store.optuna_storage()).trials) == 12


def test_the_name_of_a_study_changes_with_the_space() -> None:
    fewer = replace(SPACE, variants={**SPACE.variants, "bsp": (Choice("form", ("gather_copy",), "fewer forms", "gather_copy"),)})
    names = {study_name(replace(OPERATION, space=space), SMALL, "graph", FakeBench()) for space in (SPACE, fewer)}
    assert len(names) == 2 and all(name.startswith(f"all_gather_gemm/{SMALL}/graph/mi300x8/model/") for name in names)


class Listener:
    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self, total: int) -> None:
        self.told.append(total)

    def advance(self, trial: Trial) -> None:
        self.told.append(trial.id)

    def finish(self) -> None:
        self.told.append("finish")


def test_progress_hears_of_each_committed_trial(store: Store) -> None:
    listener = Listener()
    run(store, FakeBench(), progress=listener)
    assert listener.told == [2 * (12 + 3), *(trial.id for trial in store.trials()), "finish"]


def test_progress_is_finished_when_the_search_is_stopped(store: Store) -> None:
    def stopped(*question: object) -> Outcome:
        raise KeyboardInterrupt

    listener = Listener()
    with pytest.raises(KeyboardInterrupt):
        run(store, FakeBench(stopped), progress=listener)
    assert listener.told[-1] == "finish"


def test_one_run_is_stored_with_the_target_and_the_build(store: Store) -> None:
    run(store, FakeBench(), (SMALL, OTHER))
    (stored,) = store.runs()
    assert (stored.target, stored.bench, stored.clocks) == ("mi300x8", "model", {}) and stored.build["python"]
    assert {trial.run for trial in store.trials()} == {stored.id}


def test_the_model_bench_can_be_searched(store: Store) -> None:
    (best,) = search("all_gather_gemm", [SMALL], ["graph"], ModelBench(TARGET, time_us), store, effort="tiny")  # type: ignore[arg-type]
    assert isinstance(best.winner.outcome, Measurement) and best.winner.outcome.check_error is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"modes": ("lazy",)}, r"no mode 'lazy'; there are graph, eager"),
        ({"effort": "huge"}, r"no effort 'huge'; there are quick, default, exhaustive, scout"),
        ({"sampler": "guess"}, r"no sampler 'guess'; there are lfbo, tpe"),
        ({"variants": ("pool",)}, r"no variant 'pool'; it has bsp, pull, staged, push"),
        ({"shapes": ()}, r"0 shapes and 2 modes"),
        ({"shapes": (AllGatherGemm(1, 3584, 8192, 16),)}, r"needs world=16 GPUs and mi300x8 has 8"),
    ],
)
def test_what_does_not_exist_is_a_sentence_before_anything_is_measured(store: Store, wrong: dict[str, object], sentence: str) -> None:
    bench = FakeBench()
    with pytest.raises(ValueError, match=sentence):
        run(store, bench, **wrong)  # type: ignore[arg-type]
    assert bench.asked == [] and store.runs() == []


def test_a_pool_limits_the_search_and_is_announced_before_it_is_measured(store: Store) -> None:
    bench = FakeBench()
    found = run(store, bench, effort="exhaustive", pool=3)
    asked = {(shape, config) for shape, config, _, _ in bench.asked}
    assert asked == bench.announced
    assert {best.feasible for best in found} == {len(asked)}
