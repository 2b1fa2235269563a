"""The matrix: which pairs it measures, in shared rounds where there are some, that it resumes, and what it says of those not measured."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fake_bench import FORMS, OTHER, SMALL, SPACE, TARGET, FakeBench, plain

from tftune.db.store import Store
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.tuner import portfolio
from tftune.tuner.opening import Knowledge
from tftune.tuner.portfolio import Matrix, fill
from tftune.tuner.recipes import fitted
from tftune.tuner.search import search

PUSH, PULL = (SPACE.complete(Config(variant, block_m=16, block_n=64, num_warps=4)) for variant in ("push", "pull"))
LARGE_TILE = Config("push", **dict(PUSH.knobs) | {"group_m": 8})
"""Impossible: there is one row tile."""
BOTH = ("graph", "eager")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Two shapes scouted in both modes."""
    with Store.open(tmp_path / "a.db") as store:
        search("all_gather_gemm", (SMALL, OTHER), BOTH, FakeBench(), store, effort="scout", pool=8)
        yield store


def pick(trials: Sequence[Trial], mode: str) -> tuple[Config, ...]:
    assert {trial.stage for trial in trials} == {"search"}
    return (PUSH, LARGE_TILE) if mode == "graph" else (PULL,)


def run(store: Store, bench: FakeBench, **more: float) -> Matrix:
    return fill("all_gather_gemm", (SMALL, OTHER), BOTH, bench, store, pick, **more)


def wanted(store: Store, shape: Shape) -> set[Config]:
    """Of both modes: the defaults, and the portfolio."""
    defaults = {SPACE.complete(config) for config in SPACE.defaults(shape, TARGET.chip)}
    return defaults | {PUSH, PULL}


def test_every_config_is_measured_at_every_shape_in_every_mode(store: Store) -> None:
    bench = FakeBench()
    matrix = run(store, bench)
    for shape in (SMALL, OTHER):
        for mode in BOTH:
            asked = bench.of("matrix", shape, mode)
            assert wanted(store, shape) <= set(asked) and len(asked) == len(set(asked))
            assert asked[0] == FORMS[1], "the strongest form of BSP, beside which the others are measured"
        assert set(bench.of("matrix", shape, "graph")) == set(bench.of("matrix", shape, "eager"))
    assert set(bench.announced) == {(shape, config) for shape, config, _, _ in bench.asked} and bench.restarts == [0]
    assert matrix.pairs == len(bench.asked) and not matrix.missing and not matrix.failed
    assert matrix.portfolio[:3] == (PUSH, LARGE_TILE, PULL) and matrix.invalid == {"group_m must be 1 where there is one row tile": 4}
    assert "4 pairs are impossible: group_m must be 1 where there is one row tile" in matrix.sentences()
    assert [best.winner.stage for best in matrix.best] == ["matrix"] * 4


def test_each_shapes_own_best_is_measured_everywhere_unless_the_portfolio_ties_with_it(store: Store) -> None:
    bench = FakeBench()
    own = run(store, bench).portfolio[3:]
    for mode in BOTH:
        rows = [trial for trial in store.trials(shape=SMALL, mode=mode, stage="search") if trial.config.variant != "bsp"]
        best = min(rows, key=lambda trial: trial.outcome.median_us).config  # type: ignore[union-attr]
        assert best in own and all(best in bench.of("matrix", *place) for place in itertools.product((SMALL, OTHER), BOTH))
    again = FakeBench()
    tying = fill("all_gather_gemm", (SMALL, OTHER), BOTH, again, store, lambda trials, mode: own)
    assert tying.portfolio == own and again.asked == []


@pytest.mark.parametrize("moment", [0, 1, 7, 20])
def test_a_stopped_matrix_goes_on_where_it_stopped(store: Store, moment: int) -> None:
    def stopping(*question: object) -> Outcome:
        if len(stopped.asked) > moment:
            raise KeyboardInterrupt
        return plain(*question)  # type: ignore[arg-type]

    stopped, resumed, whole = FakeBench(stopping), FakeBench(), FakeBench()
    with pytest.raises(KeyboardInterrupt):
        run(store, stopped)
    matrix = run(store, resumed)
    assert not matrix.missing and len(resumed.asked) == matrix.pairs - moment
    assert not set(stopped.asked[:moment]) & set(resumed.asked)
    assert run(store, whole).pairs == matrix.pairs and whole.asked == [] == whole.restarts


def test_what_the_budget_left_out_is_missing_and_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    monkeypatch.setattr(portfolio.time, "monotonic", lambda: next(clock))
    bench = FakeBench()
    matrix = run(store, bench, budget_s=2.5)
    assert {place for place, _ in matrix.missing} == {(OTHER, "eager")} and len(bench.asked) + len(matrix.missing) == matrix.pairs
    assert matrix.sentences()[-1] == f"missing: {len(matrix.missing)} configs at {OTHER}, eager"


def test_a_matrix_goes_through_the_grid_in_leaps(tmp_path: Path) -> None:
    """Whole families, and those measured first lie apart: so is what a matrix knows whose time was too short."""
    shapes = [replace(SMALL, m=m, n=n) for n in (64, 128, 192, 256, 320) for m in (8, 16)]
    bench = FakeBench()
    with Store.open(tmp_path / "grid.db") as store:
        search("all_gather_gemm", shapes, ("graph",), FakeBench(), store, effort="scout", pool=4)
        fill("all_gather_gemm", shapes, ("graph",), bench, store, pick)
    order = list(dict.fromkeys(shape for shape, *_ in bench.asked))
    assert [(shape.n, shape.m) for shape in order] == [(n, m) for n in (64, 320, 192, 128, 256) for m in (8, 16)]


def test_a_failed_pair_is_data_and_not_tried_again(store: Store) -> None:
    def failing(shape: Shape, config: Config, *rest: object) -> Outcome:
        return Failure("resources", "too little") if config == PUSH else plain(shape, config, *rest)  # type: ignore[arg-type]

    matrix, again = run(store, FakeBench(failing)), FakeBench()
    assert {(trial.shape, trial.mode) for trial in matrix.failed} == {(shape, mode) for shape in (SMALL, OTHER) for mode in BOTH}
    assert not matrix.missing and any("too little" in sentence for sentence in matrix.sentences())
    assert run(store, again).failed == matrix.failed and again.asked == []


def test_configs_share_rounds_where_the_bench_has_rounds(store: Store) -> None:
    class Shared(FakeBench):
        groups: list[tuple[Shape, str, Config, tuple[Config, ...]]]

        def together(self, shape: Shape, configs: Sequence[Config], mode: str, baseline: Config) -> list[Outcome]:
            self.groups.append((shape, mode, baseline, tuple(configs)))
            return [plain(shape, config, mode, baseline, "matrix") for config in (baseline, *configs)]

    bench = Shared()
    bench.groups, bench.compare = [], bench.together
    matrix = run(store, bench)
    assert [(shape, mode) for shape, mode, _, _ in bench.groups] == [(shape, mode) for shape in (SMALL, OTHER) for mode in BOTH]
    assert all(baseline == FORMS[1] and baseline not in configs for _, _, baseline, configs in bench.groups)
    assert bench.asked == [] and matrix.pairs == sum(1 + len(configs) for _, _, _, configs in bench.groups) and not matrix.missing


def test_a_shape_that_was_never_searched_is_refused(store: Store) -> None:
    shapes = (SMALL, SMALL.parse("m=2,n=3584,k=8192,world=8"))
    with pytest.raises(ValueError, match=r"2 of 4 shapes and modes have no measured BSP.*m=2.*--effort scout"):
        fill("all_gather_gemm", shapes, BOTH, FakeBench(), store, pick)


def test_scouting_asks_no_study_and_measures_nothing_twice(store: Store) -> None:
    rows = Counter((trial.shape, trial.mode, trial.stage) for trial in store.trials())
    assert {stage for _, _, stage in rows} == {"search"} and set(rows.values()) == {5}, "the defaults: no model, no former rows"
    again = FakeBench()
    search("all_gather_gemm", (SMALL, OTHER), BOTH, again, store, effort="scout", pool=8, knowledge=Knowledge(former=won_before()))
    for shape in (SMALL, OTHER):
        assert again.of("search", shape)[:2] == [PUSH, PULL], "as they won"
        made = {each for config in (PUSH, PULL) for each in fitted(SPACE, shape, TARGET.chip, config)}
        assert set(again.of("search", shape)[2:]) == made - {PUSH, PULL}


def won_before() -> list[Trial]:
    """Rows of another kernel: PUSH and PULL were the fastest at a shape nearby."""
    nearby, slow = SMALL.parse("m=4,n=3584,k=8192,world=8"), Config("push", **dict(PUSH.knobs) | {"num_stages": 2})
    times = {PUSH: 10.0, PULL: 12.0, slow: 11.0}
    return [Trial(nearby, c, "graph", TARGET.name, "model", "r", "old", Measurement((us,), (20.0,)), "final") for c, us in times.items()]
