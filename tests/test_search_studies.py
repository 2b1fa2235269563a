"""The search and Optuna: every sampler drives it, and its study in the database holds the rows, by a name that changes with the space."""

from __future__ import annotations

from dataclasses import replace

import optuna
import pytest
from fake_bench import OPERATION, SMALL, SPACE, FakeBench, failing, run

from tftune.db.store import Store
from tftune.db.trial import Failure, Measurement
from tftune.kernels.space import Choice
from tftune.tuner.samplers import SAMPLERS
from tftune.tuner.search import study_name

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
