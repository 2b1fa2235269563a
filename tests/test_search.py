"""The search over a fake bench: what is measured in which order, what a second start does, and that
failures are results."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections import Counter
from dataclasses import replace

import pytest
from fake_bench import (
    FORMS,
    OPERATION,
    OTHER,
    SMALL,
    SPACE,
    TARGET,
    FakeBench,
    Stopped,
    failing,
    plain,
    run,
    time_us,
    use,
)

from tftune.db import evidence
from tftune.db.store import Store, StoreError
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.distance import distance
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Choice, Config
from tftune.tuner.search import session
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.opening import Knowledge
from tftune.tuner.search.search import EFFORTS, Effort, _for_finals
from tftune.tuner.search.session import Rows

pytestmark = pytest.mark.usefixtures("tiny")


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
    fused = [
        (config, mode)
        for _, config, mode, stage in bench.asked
        if stage == "search" and config.variant != "bsp"
    ]
    assert fused[::2] == [(config, "graph") for config, _ in fused[1::2]]


@pytest.mark.parametrize("moment", [0, 1, 3, 5, 17, 25])
def test_an_interrupted_search_goes_on_where_it_stopped(store: Store, moment: int) -> None:
    stopped, resumed = Stopped(moment), FakeBench()
    with pytest.raises(KeyboardInterrupt):
        run(store, stopped)
    kept = store.trials()
    assert len(kept) == moment
    (best, _) = run(store, resumed)
    assert store.trials()[:moment] == kept and not set(stopped.asked[:moment]) & set(resumed.asked)
    counts = Counter(
        (trial.shape, trial.config, trial.mode, trial.stage) for trial in store.trials()
    )
    assert max(counts.values()) == 1 and best.evaluations == 12 and store.check() == []


def test_more_effort_goes_on_from_less(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, FakeBench(), modes=("graph",))
    monkeypatch.setitem(EFFORTS, "more", Effort(20, 2, "for tests"))
    bench = FakeBench()
    (best,) = run(store, bench, modes=("graph",), effort="more")
    assert len(bench.of("search")) == 8 and best.evaluations == 20
    assert bench.of("final")[0] == FORMS[1], "final rows older than the search are measured again"


def test_exhaustive_effort_tries_every_feasible_config(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def narrowed(choice: Choice, warps: tuple[int, ...]) -> Choice:
        values = warps if choice.name == "num_warps" else (choice.default,)
        return replace(choice, values=values, default=values[0])

    warps = {"pull": (4,), "push": (4, 8)}
    fused = {name: tuple(narrowed(c, warps[name]) for c in SPACE.choices(name)) for name in warps}
    variants = {"bsp": SPACE.choices("bsp")} | fused
    space = replace(SPACE, variants=variants, rules=(), defaults=lambda shape, chip: FORMS)
    use(monkeypatch, space)
    (best,) = run(store, FakeBench(), modes=("graph",), effort="exhaustive")
    assert best.evaluations == best.feasible == len(list(space.configs(SMALL, TARGET.chip))) == 9


def test_rows_of_another_kernel_do_not_hold(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, FakeBench(), modes=("graph",))
    original = evidence.installed
    for module in (evidence, session):
        monkeypatch.setattr(
            module,
            "installed",
            lambda op, variant: "changed" if variant == "push" else original(op, variant),
        )
    bench = FakeBench()
    run(store, bench, modes=("graph",))
    assert {config.variant for config in bench.of("search")} >= {"push"}
    assert not set(bench.of("search")) & set(FORMS)
    rows = Rows(OPERATION, bench, store)
    assert {
        trial.revision
        for trial in rows.searched((SMALL, "graph")).values()
        if trial.config.variant == "push"
    } == {"changed"}


def test_rows_of_another_bench_are_not_taken(store: Store) -> None:
    run(store, FakeBench(), modes=("graph",))
    replay = FakeBench()
    replay.name = "replay"
    run(store, replay, modes=("graph",))
    assert len(replay.of("search")) == 12


def test_failures_are_rows_and_the_search_ends_well(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EFFORTS, "more", Effort(40, 2, "for tests"))
    (best, _) = run(store, FakeBench(failing), effort="more")
    failures = [
        trial.outcome
        for trial in store.trials(mode="graph", stage="search")
        if isinstance(trial.outcome, Failure)
    ]
    assert best.evaluations == 40 and isinstance(best.winner.outcome, Measurement)
    assert {failure.kind for failure in failures} == {"compile", "crash"}
    assert "RuntimeError: a bug of the bench" in {failure.text for failure in failures}


def test_a_mode_without_bsp_is_left_out_and_said(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(
        shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str
    ) -> Outcome:
        if config.variant == "bsp" and mode == "eager":
            return Failure("hang", "it passed its deadline")
        return plain(shape, config, mode, baseline, stage)

    bench = FakeBench(broken)
    with caplog.at_level(logging.WARNING):
        bests = run(store, bench)
    assert [best.mode for best in bests] == ["graph"] and "mode eager" in caplog.text
    assert bench.of("search", mode="eager") == list(FORMS) * 2, (
        "each form has a second chance, and nothing else is tried"
    )


def test_where_nothing_can_be_measured_the_first_reason_is_said(store: Store) -> None:
    bench = FakeBench(lambda *question: Failure("crash", "no link between the GPUs"))
    with pytest.raises(
        ValueError,
        match=r"nothing could be measured on mi300x8 \(4 trials failed\); the first failure: no "
        r"link",
    ):
        run(store, bench)
    assert len(store.trials()) == 8 and bench.restarts == []


def test_a_store_error_ends_the_search(store: Store) -> None:
    def full(*question: object) -> Outcome:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        run(store, FakeBench(full))


def test_a_budget_stops_and_is_shared_by_the_shapes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = itertools.count()
    monkeypatch.setattr("tftune.tuner.search.search.time.monotonic", lambda: float(next(now)))
    monkeypatch.setitem(EFFORTS, "more", Effort(1000, 2, "for tests"))
    small, other = run(
        store, FakeBench(), (SMALL, OTHER), modes=("graph",), effort="more", budget_s=60.0
    )
    assert 15 < small.evaluations < 40 and 15 < other.evaluations < 40


def test_without_time_every_shape_still_has_bsp_and_its_defaults_and_the_end_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def drawn(*_: object) -> None:
        raise AssertionError("a place was prepared for trials that cannot come")

    bench = FakeBench()
    with monkeypatch.context() as patched:
        patched.setattr("tftune.tuner.search.search_stage.SearchStage._track", drawn)
        bests = run(store, bench, (SMALL, OTHER), budget_s=0.0)
    assert [best.evaluations for best in bests] == [5] * 4
    assert bench.of("final") == [] and {best.winner.stage for best in bests} == {"search"}
    assert (
        "stopped by the budget: 20 of 48 trials, 16 final ones left; the same command goes on"
        in caplog.text
    )
    caplog.clear()
    run(store, FakeBench(), (SMALL, OTHER))
    assert "stopped" not in caplog.text and len(store.trials(stage="search")) == 48


def test_a_budget_binds_the_drawing_of_a_pool(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the time at most, and each shape an equal part of what is left of that: here the
    first took none."""
    given, of, began = list[float](), Feasible.of, time.monotonic()
    monkeypatch.setattr(
        Feasible,
        "of",
        lambda *asked, until=math.inf: given.append(until - began) or of(*asked, until=until),
    )
    run(store, FakeBench(), (SMALL, OTHER), modes=("graph",), pool=8, budget_s=1000.0)
    assert given == [pytest.approx(200, abs=20), pytest.approx(400, abs=20)]


@pytest.mark.parametrize(("budget_s", "places", "ranks", "left"), [
    (100, 88, False, 20), (100, 2, True, 20), (100, 30, True, 39), (100, 88, True, 50),
    (1000, 88, True, 200), (math.inf, 88, True, 0),
])  # fmt: skip
def test_winners_of_many_shapes_are_measured_within_the_budget(
    budget_s: float, places: int, ranks: bool, left: float
) -> None:
    bench = FakeBench()
    bench.compare = (lambda *_: []) if ranks else None
    assert _for_finals(budget_s, places, bench) == pytest.approx(left)


def test_the_winners_of_the_nearest_shapes_are_tried(store: Store) -> None:
    far = AllGatherGemm(m=8192, n=3584, k=8192, world=8)
    assert (
        distance(SMALL, OTHER)
        == 3
        < distance(SMALL, far)
        == 13
        < distance(SMALL, AllGatherGemm(1, 3584, 8192, 8, "bf16")) + 10
    )
    first = {best.mode: best for best in run(store, FakeBench())}
    bench = FakeBench()
    run(store, bench, (OTHER,))
    winners = [
        first[mode].by_variant[variant].config
        for mode in ("graph", "eager")
        for variant in ("push", "pull")
    ]
    assert set(winners) <= set(bench.of("search", OTHER)[:8])


def test_the_models_best_of_a_variant_that_may_win_are_tried_and_of_the_others_the_default(
    store: Store,
) -> None:
    bench = FakeBench()
    run(store, bench, modes=("graph",), knowledge=Knowledge(time_us))
    times = {
        config: time_us(SMALL, config, "graph")
        for config in SPACE.configs(SMALL, TARGET.chip, ("push",))
    }
    tried = bench.of("search")[5:]
    assert min(times.values()) in [times[config] for config in tried if config.variant == "push"]
    assert {config.variant for config in tried} == {"push"}, (
        "pull and staged take a quarter more by the model"
    )
    assert {"pull", "staged"} <= {config.variant for config in bench.of("search")[:5]}


def test_variants_limit_the_search_and_bsp_stays(store: Store) -> None:
    (best,) = run(store, FakeBench(), modes=("graph",), variants=("push",))
    assert set(best.by_variant) == {"bsp", "push"}
    assert {trial.config.variant for trial in store.trials()} == {"bsp", "push"}


class Listener:
    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self, total: int | None, stage: str = "") -> None:
        self.told.append((total, stage))

    def doing(self, what: str) -> None:
        pass

    def advance(self, trial: Trial) -> None:
        self.told.append(trial.id)

    def finish(self) -> None:
        self.told.append("finish")


def test_progress_hears_of_each_committed_trial(store: Store) -> None:
    listener = Listener()
    run(store, FakeBench(), progress=listener)
    searched = [trial.id for trial in store.trials(stage="search")]
    finals = [trial.id for trial in store.trials(stage="final")]
    first, *told = listener.told
    assert told == [*searched, (len(finals), "final"), *finals, "finish"]
    assert len(searched) == 24 and len(finals) >= 6
    variants = len(SPACE.variants) - 1
    assert first == (24 + 2 * (1 + variants), "")  # BSP, and the best of each variant
    again = Listener()
    run(store, FakeBench(), progress=again)
    assert again.told == [(0, ""), (0, "final"), "finish"]


def test_progress_is_finished_when_the_search_is_stopped(store: Store) -> None:
    listener = Listener()
    with pytest.raises(KeyboardInterrupt):
        run(store, Stopped(0), progress=listener)
    assert listener.told[-1] == "finish"


def test_one_run_is_stored_with_the_target_and_the_build(store: Store) -> None:
    run(store, FakeBench(), (SMALL, OTHER))
    (stored,) = store.runs()
    assert (stored.target, stored.bench, stored.clocks) == (
        "mi300x8",
        "model",
        {},
    ) and stored.build["python"]
    assert {trial.run for trial in store.trials()} == {stored.id}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"modes": ("lazy",)}, r"no mode 'lazy'; there are graph, eager"),
        (
            {"effort": "huge"},
            r"no effort 'huge'; there are quick, default, thorough, exhaustive, scout",
        ),
        ({"sampler": "guess"}, r"no sampler 'guess'; there are mixed, lfbo, gp, tpe"),
        ({"variants": ("pool",)}, r"no variant 'pool'; it has bsp, pull, staged, push"),
        ({"shapes": ()}, r"0 shapes and 2 modes"),
        ({"shapes": (AllGatherGemm(1, 3584, 8192, 16),)}, r"needs world=16 GPUs and mi300x8 has 8"),
    ],
)
def test_what_does_not_exist_is_a_sentence_before_anything_is_measured(
    store: Store, wrong: dict[str, object], sentence: str
) -> None:
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
