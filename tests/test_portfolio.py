"""The matrix: which pairs it measures at sizes alike, in shared rounds where there are some, that
it resumes, and what it says of those not measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fake_bench import BOTH, FORMS, OTHER, SMALL, SPACE, TARGET, FakeBench, Stopped, plain
from stored import RUN

from tftune.db.store import Store
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.search import matrix_stage as portfolio
from tftune.tuner.search.matrix_stage import Matrix, fill
from tftune.tuner.search.opening import Knowledge
from tftune.tuner.search.recipes import fitted
from tftune.tuner.search.search import search

OP = "all_gather_gemm"
PUSH, PULL = (
    SPACE.complete(Config(variant, block_m=16, block_n=64, num_warps=4))
    for variant in ("push", "pull")
)
LARGE_TILE = Config("push", **dict(PUSH.knobs) | {"group_m": 8})
"""Impossible: there is one row tile."""
TWO = (SMALL, OTHER)


@contextmanager
def scouted(
    path: Path,
    shapes: Sequence[Shape] = TWO,
    modes: tuple[str, ...] = BOTH,
    bench: FakeBench | None = None,
) -> Iterator[Store]:
    """A database in which these shapes were scouted."""
    with Store.open(path) as store:
        search(OP, shapes, modes, bench or FakeBench(), store, effort="scout", pool=8)
        yield store


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with scouted(path) as store:
        yield store


Pick = Callable[[Sequence[Trial], str], tuple[Config, ...]]


def pick(trials: Sequence[Trial], mode: str) -> tuple[Config, ...]:
    assert {trial.stage for trial in trials} == {"search"}
    return (PUSH, LARGE_TILE) if mode == "graph" else (PULL,)


def run(
    store: Store,
    bench: FakeBench,
    shapes: Sequence[Shape] = TWO,
    modes: tuple[str, ...] = BOTH,
    pick: Pick = pick,
    **more: float,
) -> Matrix:
    return fill(OP, shapes, modes, bench, store, pick, **more)


def wanted(store: Store, shape: Shape) -> set[Config]:
    """The configs that both modes want: the defaults and the portfolio."""
    defaults = {SPACE.complete(config) for config in SPACE.defaults(shape, TARGET.chip)}
    return defaults | {PUSH, PULL}


def test_every_config_is_measured_at_every_shape_in_every_mode(store: Store) -> None:
    bench = FakeBench()
    matrix = run(store, bench)
    for shape in (SMALL, OTHER):
        for mode in BOTH:
            asked = bench.of("matrix", shape, mode)
            assert wanted(store, shape) == set(asked) and len(asked) == len(set(asked))
            assert asked[0] == FORMS[1], (
                "the strongest form of BSP, beside which the others are measured"
            )
        assert set(bench.of("matrix", shape, "graph")) == set(bench.of("matrix", shape, "eager"))
    assert set(bench.announced) == {(shape, config) for shape, config, _, _ in bench.asked}
    assert bench.restarts == [0]
    assert matrix.pairs == len(bench.asked) and not matrix.missing and not matrix.failed
    assert set(matrix.configs) == {config for _, config, _, _ in bench.asked} | {LARGE_TILE}
    first = [*bench.of("matrix", SMALL, "graph"), LARGE_TILE]
    assert sorted(matrix.configs[: len(first)]) == sorted(first) and matrix.configs[0] == FORMS[1]
    assert matrix.invalid == {"group_m must be 1 where there is one row tile": 4}
    assert (
        "4 pairs are impossible: group_m must be 1 where there is one row tile"
        in matrix.sentences()
    )
    assert [best.winner.stage for best in matrix.best] == ["matrix"] * 4


OWN = Config("push", **dict(PUSH.knobs) | {"comm_programs": 32})


def searched(config: Config, us: float) -> Trial:
    """A row of a search beside the strongest form of BSP, which takes 16 us."""
    key = SMALL, config, "graph", TARGET.name, "model", RUN.id, installed(SMALL.op, config.variant)
    return Trial(*key, Measurement((us,) * 3, (16.0,) * 3), "search", "2026-11-22")


@pytest.mark.parametrize(
    ("own_us", "push_us", "measured"),
    [
        (1.0, None, True),
        (1.0, 1.02, True),
        (1.0, 1.005, False),
        (1.0, 0.9, False),
        (15.0, None, False),
    ],
)
def test_a_shapes_own_best_is_measured_there_alone_unless_what_is_measured_ties_with_it(
    store: Store, own_us: float, push_us: float | None, measured: bool
) -> None:
    """PUSH is of the portfolio, and the defaults take 7 us or more."""
    store.add_run(RUN)
    store.add_trial(searched(OWN, own_us))
    if push_us is not None:
        store.add_trial(searched(PUSH, push_us))
    bench = FakeBench()
    matrix = run(store, bench)
    assert {(shape, mode) for shape, config, mode, _ in bench.asked if config == OWN} == (
        {(SMALL, "graph")} if measured else set()
    )
    assert (OWN in matrix.configs) == measured
    assert set(bench.of("matrix")) == wanted(store, SMALL) | ({OWN} if measured else set())
    assert set(bench.of("matrix", OTHER)) == wanted(store, OTHER) and not matrix.missing


def test_an_unknown_mode_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="mode='cuda_graph' is not one of graph, eager"):
        run(store, FakeBench(), modes=("cuda_graph",))


def test_variants_that_were_hopeless_in_every_search_nearby_are_not_tried_by_their_defaults(
    tmp_path: Path,
) -> None:
    def slow_pull(shape: Shape, config: Config, *rest: object) -> Outcome:
        if config.variant != "pull" or (shape, rest[0]) in kept:
            return plain(shape, config, *rest)  # type: ignore[arg-type]
        return Measurement((100.0,) * 3, () if rest[1] is None else (16.0,) * 3)

    for kept in ([], [(OTHER, "eager")]):
        bench, counted = FakeBench(slow_pull), FakeBench(slow_pull)
        with scouted(tmp_path / f"{len(kept)}.db", bench=bench) as store:
            run(store, counted, pick=lambda trials, mode: (PUSH,))
        pulls = [shape for shape, config, _, _ in counted.asked if config.variant == "pull"]
        assert len(pulls) == 4 * len(kept), "one search in which it was within reach is enough"
        assert {"bsp", "push", "staged"} <= {config.variant for _, config, _, _ in counted.asked}


def test_shapes_choose_from_searches_at_sizes_like_theirs(path: Path) -> None:
    """Windows of two doublings, and a doubling on either side; of a layout with few searches
    nearby, all."""
    shapes = [
        SMALL.parse(f"m={m},n={n},k=8192,world=8")
        for n in (512, 1024)
        for m in (1, 4, 16, 64, 256, 1024, 4096)
    ]
    asked: list[frozenset[int]] = []

    def remembered(trials: Sequence[Trial], mode: str) -> tuple[Config, ...]:
        assert mode == "graph"
        asked.append(frozenset(trial.shape.m for trial in trials))  # type: ignore[attr-defined]
        return (PUSH,)

    def run_at(*asked_for: Shape) -> None:
        asked.clear()
        run(store, FakeBench(), asked_for, ("graph",), remembered)

    with scouted(path, shapes, ("graph",)) as store:
        for m, near in (
            (4, {1, 4, 16}),
            (7, {1, 4, 16}),
            (8, {4, 16, 64}),
            (31, {4, 16, 64}),
            (32, {16, 64, 256}),
            (1000, {256, 1024, 4096}),
        ):
            run_at(replace(shapes[0], m=m), replace(shapes[-1], m=m))
            assert asked == [near], "once for shapes that share their searches"
        run_at(replace(shapes[0], m=1 << 20))
        assert asked == [{1, 4, 16, 64, 256, 1024, 4096}]


@pytest.mark.parametrize("moment", [0, 1, 7, 20])
def test_a_stopped_matrix_goes_on_where_it_stopped(store: Store, moment: int) -> None:
    stopped, resumed, whole = Stopped(moment), FakeBench(), FakeBench()
    with pytest.raises(KeyboardInterrupt):
        run(store, stopped)
    matrix = run(store, resumed)
    assert not matrix.missing and len(resumed.asked) == matrix.pairs - moment
    assert not set(stopped.asked[:moment]) & set(resumed.asked)
    assert run(store, whole).pairs == matrix.pairs and whole.asked == [] == whole.restarts


def test_what_the_budget_left_out_is_missing_and_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    monkeypatch.setattr(portfolio.time, "monotonic", lambda: next(clock))
    bench = FakeBench()
    matrix = run(store, bench, budget_s=2.5)
    assert {place for place, _ in matrix.missing} == {(OTHER, "eager")}
    assert len(bench.asked) + len(matrix.missing) == matrix.pairs
    assert matrix.sentences()[-1] == f"missing: {len(matrix.missing)} configs at {OTHER}, eager"


def test_a_matrix_goes_through_the_grid_in_leaps(path: Path) -> None:
    """Whole families, and those measured first lie apart: so is what a matrix knows whose time was
    too short."""
    shapes = [replace(SMALL, m=m, n=n) for n in (64, 128, 192, 256, 320) for m in (8, 16)]
    bench = FakeBench()
    with scouted(path, shapes, ("graph",)) as store:
        run(store, bench, shapes, ("graph",))
    order = list(dict.fromkeys(shape for shape, *_ in bench.asked))
    assert [(shape.n, shape.m) for shape in order] == [
        (n, m) for n in (64, 320, 192, 128, 256) for m in (8, 16)
    ]


def test_a_failed_pair_is_data_and_not_tried_again(store: Store) -> None:
    def failing(shape: Shape, config: Config, *rest: object) -> Outcome:
        return Failure("resources", "too little") if config == PUSH else plain(shape, config, *rest)  # type: ignore[arg-type]

    matrix, again = run(store, FakeBench(failing)), FakeBench()
    assert {(trial.shape, trial.mode) for trial in matrix.failed} == {
        (shape, mode) for shape in (SMALL, OTHER) for mode in BOTH
    }
    assert not matrix.missing and any("too little" in sentence for sentence in matrix.sentences())
    assert run(store, again).failed == matrix.failed and again.asked == []


def test_configs_share_rounds_where_the_bench_has_rounds(store: Store) -> None:
    class Shared(FakeBench):
        groups: list[tuple[Shape, str, Config, tuple[Config, ...]]]

        def together(
            self, shape: Shape, configs: Sequence[Config], mode: str, baseline: Config
        ) -> list[Outcome]:
            self.groups.append((shape, mode, baseline, tuple(configs)))
            return [
                plain(shape, config, mode, baseline, "matrix") for config in (baseline, *configs)
            ]

    bench = Shared()
    bench.groups, bench.compare = [], bench.together
    matrix = run(store, bench)
    assert [(shape, mode) for shape, mode, _, _ in bench.groups] == [
        (shape, mode) for shape in (SMALL, OTHER) for mode in BOTH
    ]
    assert all(
        baseline == FORMS[1] and baseline not in configs for _, _, baseline, configs in bench.groups
    )
    assert bench.asked == []
    assert matrix.pairs == sum(1 + len(configs) for _, _, _, configs in bench.groups)
    assert not matrix.missing


def test_a_shape_that_was_never_searched_is_measured_beside_the_likeliest_form_of_bsp(
    store: Store,
) -> None:
    new, bench = SMALL.parse("m=2,n=3584,k=8192,world=8"), FakeBench()
    matrix = run(store, bench, (new,))
    likeliest = SPACE.complete(SPACE.fallbacks(new, TARGET.chip)[0])
    for mode in BOTH:
        asked = bench.of("matrix", new, mode)
        assert asked[0] == likeliest
        assert set(asked) == wanted(store, new)
        assert len(asked) == len(set(asked))
    assert bench.baselines.count(None) == 2 and set(bench.baselines) == {None, likeliest}
    assert not matrix.missing and len(matrix.best) == 2


@pytest.mark.parametrize(
    "other", ["m=8,n=3584,k=8192,world=8,dtype=bf16", "m=8,n=3584,k=8192,world=8,shard=m"]
)
def test_a_layout_that_was_never_searched_is_refused(store: Store, other: str) -> None:
    """Before anything is measured."""
    bench, shapes = FakeBench(), (SMALL, SMALL.parse(other))
    said = (
        rf"no shape of the layout of {other} was searched in mode graph or eager with the "
        r"kernels as they are.*tftune search all_gather"
    )
    with pytest.raises(ValueError, match=said):
        run(store, bench, shapes)
    assert bench.asked == [] and not store.trials(stage="matrix")


def test_a_layout_searched_with_other_kernels_was_never_searched(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.evidence.installed", lambda op, variant: "another")
    with pytest.raises(
        ValueError, match=r"no shape of the layout of .* so that no portfolio can be chosen"
    ):
        run(store, FakeBench())


def test_scouting_asks_no_study_and_measures_nothing_twice(store: Store) -> None:
    rows = Counter((trial.shape, trial.mode, trial.stage) for trial in store.trials())
    assert {stage for _, _, stage in rows} == {"search"} and set(rows.values()) == {5}, (
        "the defaults: no model, no former rows"
    )
    again = FakeBench()
    known = Knowledge(former=won_before())
    search(OP, TWO, BOTH, again, store, effort="scout", pool=8, knowledge=known)
    for shape in (SMALL, OTHER):
        assert again.of("search", shape)[:2] == [PUSH, PULL], "as they won"
        made = {
            each for config in (PUSH, PULL) for each in fitted(SPACE, shape, TARGET.chip, config)
        }
        assert set(again.of("search", shape)[2:]) == made - {PUSH, PULL}


def won_before() -> list[Trial]:
    """Rows of another kernel: PUSH and PULL were the fastest at a shape nearby."""
    nearby = SMALL.parse("m=4,n=3584,k=8192,world=8")
    slow = Config("push", **dict(PUSH.knobs) | {"num_stages": 2})
    times = {PUSH: 10.0, PULL: 12.0, slow: 11.0}
    where = "graph", TARGET.name, "model", "r", "old"
    return [
        Trial(nearby, config, *where, Measurement((us,), (20.0,)), "final")
        for config, us in times.items()
    ]
