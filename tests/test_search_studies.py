"""The search and Optuna: every sampler drives it, and its study in the database holds the rows, by
a name that changes with the space."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf
from pathlib import Path

import optuna
import pytest
from fake_bench import (
    BOTH,
    OPERATION,
    OTHER,
    SMALL,
    SPACE,
    TARGET,
    FakeBench,
    failing,
    run,
    time_us,
)

from tftune.db.evidence import time_ratio
from tftune.db.store import Store
from tftune.db.trial import Failure, Measurement, Trial
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Choice, Config
from tftune.tuner.search import opening
from tftune.tuner.search import search_stage as stage
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.opening import NOTHING_KNOWN, Knowledge, Opening
from tftune.tuner.search.residual_correction import Correction
from tftune.tuner.search.samplers import SAMPLERS, Proposer
from tftune.tuner.search.search import EFFORTS, Effort, study_name
from tftune.tuner.search.search_stage import SearchStage
from tftune.tuner.search.session import Rows

pytestmark = pytest.mark.usefixtures("tiny")


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
    assert [trial.state.name == "FAIL" for trial in study.trials] == [
        isinstance(row.outcome, Failure) for row in rows
    ]
    assert study.best_value == pytest.approx(
        min(r.outcome.median_us for r in rows if isinstance(r.outcome, Measurement)) / 16, rel=1e-3
    )


def test_a_lost_study_is_made_again_from_the_rows(store: Store) -> None:
    bench = FakeBench()
    run(store, bench, modes=("graph",))
    name = study_name(OPERATION, SMALL, "graph", bench)
    optuna.delete_study(study_name=name, storage=store.optuna_storage())
    run(store, bench, modes=("graph",))
    assert len(optuna.load_study(study_name=name, storage=store.optuna_storage()).trials) == 12


def test_a_search_that_ended_is_concluded_again_without_being_prepared_or_measured(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another seed may consider other configs, so that it is prepared anew."""
    drawn, pool = list[Shape](), SearchStage._pool

    def counted(stage: SearchStage, shape: Shape, until: float = inf) -> tuple[Config, ...]:
        drawn.append(shape)
        return pool(stage, shape, until)

    monkeypatch.setattr(SearchStage, "_pool", counted)
    first = run(store, FakeBench(), (SMALL, OTHER))
    assert {*drawn} == {SMALL, OTHER} and all(best.off_by for best in first)
    drawn.clear()
    trials, runs, bench = store.trials(), store.runs(), FakeBench()
    assert run(store, bench, (SMALL, OTHER)) == first and not drawn
    assert bench.asked == [] == bench.restarts and store.trials() == trials and store.runs() == runs
    run(store, FakeBench(), (SMALL, OTHER), seed=1)
    assert {*drawn} == {SMALL, OTHER}


def test_a_resumed_search_tells_its_sampler_of_every_row_before_it_asks(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failures among them: a sampler that starts from nothing proposes what is known to be slow."""
    run(store, FakeBench(failing), modes=("graph",))
    heard = list[tuple[Config, float | None] | None]()

    class Listening(Proposer):
        def tell(self, config: Config, ratio: float | None) -> None:
            heard.append((config, ratio))
            super().tell(config, ratio)

        def ask(self) -> Config | None:
            heard.append(None)
            return super().ask()

    place = (SMALL, "graph")
    rows = Rows(OPERATION, FakeBench(), store)
    known = [
        (config, time_ratio(trial, rows.bsp(place)))
        for config, trial in rows.searched(place).items()
    ]  # type: ignore[arg-type]
    monkeypatch.setattr(stage, "Proposer", Listening)
    monkeypatch.setitem(EFFORTS, "more", Effort(14, 2, "for tests"))
    run(store, FakeBench(failing), modes=("graph",), effort="more")
    assert len(known) == 12 and None in [ratio for _, ratio in known]
    assert (
        heard[:12] == known and heard[12] is None and len([entry for entry in heard if entry]) == 14
    )


def test_the_seed_of_a_sampler_is_of_the_command_and_of_the_place(
    store: Store,
    tmp_path: Path,
) -> None:
    def tried(seed: int) -> list[Config]:
        with Store.open(tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}.db") as fresh:
            bench = FakeBench()
            run(fresh, bench, modes=("graph",), seed=seed)
            return bench.of("search")

    first = tried(0)
    assert tried(0) == first and tried(1) != first and set(tried(1)[:5]) == set(first[:5])
    stages = [
        SearchStage(
            Rows(OPERATION, FakeBench(), store),
            EFFORTS["tiny"],
            "random",
            (),
            seed,
            None,
            NOTHING_KNOWN,
        )
        for seed in (0, 1)
    ]
    seeds = {
        each._seed((shape, mode)) for each in stages for shape in (SMALL, OTHER) for mode in BOTH
    }
    assert len(seeds) == 8


def test_the_model_is_asked_about_a_part_that_changes_with_the_seed(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "PREDICTED_FROM", 5)
    rows = Rows(OPERATION, FakeBench(), store)
    feasible = Feasible(SPACE, list(SPACE.configs(SMALL, TARGET.chip, ("push",)))[:60])

    def named(seed: int) -> list[Config]:
        return Opening(rows, tuple(SPACE.variants), Knowledge(time_us), seed).predicted(
            (SMALL, "graph"), feasible
        )

    assert named(0) == named(0) and len({tuple(named(seed)) for seed in range(4)}) > 1


def test_the_rows_of_each_shape_correct_the_model_for_the_next(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learned = list[tuple[Shape, int]]()

    class Listening(Correction):
        def learn(self, trials: Iterable[Trial]) -> None:
            told = list(trials)
            learned.extend((shape, len(told)) for shape in {trial.shape for trial in told})
            super().learn(told)

    monkeypatch.setattr(opening, "Correction", Listening)
    run(store, FakeBench(), (SMALL, OTHER), modes=("graph",), knowledge=Knowledge(time_us))
    assert learned == [(SMALL, 12), (OTHER, 12)]


def test_the_name_of_a_study_changes_with_the_space() -> None:
    fewer = replace(
        SPACE,
        variants={
            **SPACE.variants,
            "bsp": (Choice("form", ("gather_copy",), "fewer forms", "gather_copy"),),
        },
    )
    names = {
        study_name(replace(OPERATION, space=space), SMALL, "graph", FakeBench())
        for space in (SPACE, fewer)
    }
    assert len(names) == 2
    assert all(name.startswith(f"all_gather_gemm/{SMALL}/graph/mi300x8/model/") for name in names)
