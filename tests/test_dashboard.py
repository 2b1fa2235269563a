"""optuna-dashboard opens a tftune database: it lists the studies of a search and gives their
trials."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import optuna_dashboard
import pytest

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.models.timeline.simulator import predict
from tftune.tuner.bench.benches import ModelBench
from tftune.tuner.search.search import search, study_name

SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=8)
BENCH = ModelBench(Target.parse("mi300x8"), predict)
Get = Callable[[str], Any]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "tftune.db"
    with Store.open(path) as store:
        search(
            "all_gather_gemm", (SHAPE,), ("graph", "eager"), BENCH, store, effort="quick", pool=20
        )
    return path


@pytest.fixture(scope="module")
def get(database: Path) -> Get:
    """get(path): the JSON that `optuna-dashboard sqlite:///tftune.db` answers, without a socket."""
    app = optuna_dashboard.wsgi(f"sqlite:///{database}")

    def answer(path: str) -> Any:
        environ: dict[str, Any] = {"PATH_INFO": path}
        setup_testing_defaults(environ)
        status: list[str] = []
        body = b"".join(app(environ, lambda line, headers, exc_info=None: status.append(line)))  # type: ignore[arg-type, return-value]
        assert status == ["200 OK"], body
        return json.loads(body)

    return answer


def test_the_dashboard_lists_the_study_of_each_shape_and_mode(get: Get) -> None:
    names = {summary["study_name"] for summary in get("/api/studies")["study_summaries"]}
    assert names == {
        study_name(operation("all_gather_gemm"), SHAPE, mode, BENCH) for mode in ("graph", "eager")
    }


def test_the_dashboard_gives_the_trials_of_a_study(get: Get, database: Path) -> None:
    with Store.open(database, write=False) as store:
        rows = {mode: store.trials(mode=mode, stage="search") for mode in ("graph", "eager")}
    for summary in get("/api/studies")["study_summaries"]:
        mode = "graph" if "/graph/" in summary["study_name"] else "eager"
        trials = get(f"/api/studies/{summary['study_id']}")["trials"]
        assert len(trials) == len(rows[mode]) == 24
        for trial, row in zip(trials, rows[mode], strict=True):
            shown = {param["name"]: param["param_external_value"] for param in trial["params"]}
            variant = row.config.variant
            assert shown == {"variant": variant} | {
                f"{variant}.{name}": str(value) for name, value in row.config.knobs
            }
            assert (
                trial["state"] == "Complete"
                and {"key": "trial", "value": row.id} in trial["user_attrs"]
            )
