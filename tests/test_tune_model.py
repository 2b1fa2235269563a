"""`tftune tune --model`: it ends with artifacts of what was measured, whatever ended it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from command_line import Tftune, refused

import tftune as public
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Failure, Trial
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.registry import operation
from tftune.models.timeline.simulator import predict
from tftune.pipeline.measure import WINDOW, Measuring
from tftune.pipeline.model_config import read_config
from tftune.pipeline.model_shapes import BATCHES, PREFILL, Model, model_shapes
from tftune.pipeline.places import Stake
from tftune.pipeline.proposals import Proposals
from tftune.pipeline.ranks import ModelRanks, NodeRanks
from tftune.tuner.bench.benches import ModelBench
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.search.session import Rows

LLAMA = "llama-3.1-8b.json"
ON_MODEL = f"tune --model {LLAMA} --tp 2 --on model --target h200x2"
FEW = "--batches 2,64 --prefill 1024"
MEASURING = f"{ON_MODEL} {FEW} --budget 60s"


@pytest.fixture
def here(root: Path, tmp_path: Path) -> Path:
    """The test's folder, with the config.json of Llama 3.1 8B."""
    shutil.copy(root / "tests/fixtures/models" / LLAMA, tmp_path)
    return tmp_path


@pytest.fixture
def visited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after one later visit of each shape that proposes nothing."""
    monkeypatch.setattr("tftune.pipeline.measure.MORE", 0)


def trials(folder: Path) -> list[Trial]:
    with Store.open(folder / "tftune.db", write=False) as store:
        return store.trials()


def exactly_known(folder: Path, model: Model) -> bool:
    """Whether the folder's artifacts have rows of every shape, and answer by them."""
    selector = public.load(folder, target="h200x2", allow_modelled=True)
    found = [(shape, selector.select(shape)) for shape in model.shapes]
    return all(
        answer.near == (shape.sizes_key,) and "on this shape" in answer.reason
        for shape, answer in found
    )


def test_every_shape_of_llama_is_answered_by_rows_of_its_own(
    here: Path, tftune: Tftune, visited_once: None
) -> None:
    ran = tftune(f"{ON_MODEL} --budget 60s")
    assert ran.code == 0, ran.err
    model = model_shapes(read_config(here / LLAMA), 2, "both", BATCHES, PREFILL)
    assert len(model.shapes) == 125 and exactly_known(here / "tftune-artifacts", model)
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 100 and max(map(len, lines[:170])) <= 80
    assert lines[1].split() == ["layer", "M", "BSP", "us", "now", "us", "gain", "runs"]
    assert sum(line.startswith("gather + qkv_proj ") for line in lines) == 11
    assert sum(line.startswith("all-reduce with norm ") for line in lines) == 12
    assert 'next: tftune.bind(group, path="tftune-artifacts", allow_modelled=True)' in ran.err


def test_its_json_has_every_layer_and_step(here: Path, tftune: Tftune) -> None:
    ran = tftune(f"{ON_MODEL} {FEW} --plan all-reduce --budget 20s --out found --json")
    found = json.loads(ran.out)
    assert found["times"] == "modelled" and found["unmeasured"] == 0
    assert [Path(path).parent.name for path in found["artifacts"]] == ["found", "found"]
    assert len(found["layers"]) == 4 * 3
    (step,) = [s for s in found["steps"] if (s["way"], s["m"]) == ("all-reduce with GEMM", 64)]
    calls = [
        (layer["calls"], layer["bsp_us"])
        for layer in found["layers"]
        if layer["op"] == "gemm_all_reduce" and "m=64," in layer["shape"]
    ]
    assert step["calls"] == 64
    assert step["bsp_us"] == pytest.approx(sum(count * us for count, us in calls), rel=1e-3)


def test_a_budget_of_a_second_ends_with_artifacts(here: Path, tftune: Tftune) -> None:
    ran = tftune(f"{ON_MODEL} --budget 1s")
    assert ran.code == 0 and "artifact: tftune-artifacts/" in ran.out
    assert list((here / "tftune-artifacts").glob("*__h200x2.json"))


def test_what_has_rows_is_not_measured_again(here: Path, tftune: Tftune) -> None:
    tftune(f"{ON_MODEL} {FEW} --plan all-reduce --budget 20s")
    before = Counter((trial.shape, trial.config) for trial in trials(here))
    assert tftune(f"{ON_MODEL} {FEW} --plan all-reduce --budget 20s").code == 0
    after = Counter((trial.shape, trial.config) for trial in trials(here))
    fresh = [trial for trial in trials(here) if not before[trial.shape, trial.config]]
    again = {
        shape for (shape, config), count in (after - before).items() if config.variant == "bsp"
    }
    assert again <= {trial.shape for trial in fresh}, "BSP runs only beside what was never tried"


def test_it_goes_on_after_a_kill(here: Path, tftune: Tftune, visited_once: None) -> None:
    assert signalled(here, signal.SIGKILL).returncode == -signal.SIGKILL
    stored = {trial.id for trial in trials(here)}
    assert len(stored) == 20 and tftune(MEASURING).code == 0
    assert stored < {trial.id for trial in trials(here)}
    model = model_shapes(read_config(here / LLAMA), 2, "both", (2, 64), (1024,))
    assert exactly_known(here / "tftune-artifacts", model)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)]
)
def test_a_stopped_command_writes_its_artifacts(here: Path, number: signal.Signals) -> None:
    process = signalled(here, number)
    assert process.returncode == 130 and "artifact: tftune-artifacts/" in process.stdout
    assert "stopped; what finished is stored" in process.stderr
    assert list((here / "tftune-artifacts").glob("*.json"))


def signalled(folder: Path, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """The ended process of the command, which got the signal at its 20th row."""
    run = f"import stand_ins; stand_ins.signalled({MEASURING.split()}, row=20, number={number:d})"
    paths = str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", run]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tune gemm_all_reduce --model x.json", "--model names the shapes, and OP was given"),
        (f"{ON_MODEL} --batches 1,x", "--batches '1,x' has 'x'"),
        (f"{ON_MODEL} --budget 0s", "--budget '0s' is no duration"),
        (f"tune --model {LLAMA} --tp 4 --on model --target h200x2", "world=4"),
        ("tune --model none.json --on model --target h200x2", "none.json: No such file"),
    ],
)
def test_wrong_words_are_refused(here: Path, tftune: Tftune, words: str, said: str) -> None:
    assert refused(tftune(words), said)


def rows_of_ranks(folder: Path, budget_s: float) -> list[Trial]:
    """Two shapes measured by a world of emulated ranks in which push kills a rank."""
    import planted
    from killed import EMULATED

    plants = dict.fromkeys(("bsp", "bsp_chunked", "push_ce", "pull"), "slow")
    planted.serve_planted(plants | {"push": "killed", "staged": "fast"})
    known, target = operation("all_gather_gemm"), EMULATED
    bench = NodeBench(target, 1 << 20, emulated=True)
    ranks = NodeRanks(target, 2, 1 << 20, emulated=True)
    try:
        with Store.open(folder / "tftune.db") as store:
            rows = Rows(known, bench, store)
            measuring = Measuring(
                {known.name: rows}, {known.name: Proposals(rows, None)}, ranks, bench
            )
            measuring.run(
                [Stake((shape, "graph"), 1.0) for shape in (planted.SHAPE, planted.OTHER)], budget_s
            )
            return store.trials()
    finally:
        ranks.close()


def sums(
    folder: Path, m: Iterable[int], ranks: type[ModelRanks], proposals: type[Proposals] = Proposals
) -> list[Trial]:
    """Rows of all_reduce on two H200 by the analytic model, until nothing is left to try."""
    target, known = Target.parse("h200x2"), operation("all_reduce")
    bench = ModelBench(target, predict)
    with Store.open(folder / "tftune.db") as store:
        rows = Rows(known, bench, store)
        proposed = {known.name: proposals(rows, None)}
        measuring = Measuring({known.name: rows}, proposed, ranks(target, predict), bench)
        places = [(AllReduce(each, 1024, 2), "graph") for each in m]
        measuring.run([Stake(place, 1.0) for place in places], 600.0)
        return store.trials()


def test_ranks_do_not_wait_for_the_proposals_of_every_place(
    tmp_path: Path, visited_once: None
) -> None:
    """1,800 shapes took 90 s of a node before the first of them was measured."""
    asked: list[object] = []

    class Slow(Proposals):
        def _listed(self, place: Any) -> list[Any]:
            asked.append(place)
            return super()._listed(place)

    class Late(ModelRanks):
        def start(self) -> float:
            assert len(asked) == WINDOW
            return super().start()

    found = sums(tmp_path, range(1, 3 * WINDOW), Late, Slow)
    assert len({trial.shape for trial in found}) == 3 * WINDOW - 1 == len(asked)
    assert len(asked) == len(set(asked)), "each place is listed once, later visits included"


def test_a_form_of_bsp_that_crashed_is_not_the_first_again(tmp_path: Path) -> None:
    firsts = []

    class Crashing(ModelRanks):
        def confirm(self, order: Any) -> Any:
            first = order.forms[0]
            firsts.append(first["form"])
            crash = {first: Failure("crash", "ended")} if first["form"] == "one_shot" else {}
            outcomes, left = super().confirm(order)
            return outcomes | crash, left

    sums(tmp_path, (8, 16), Crashing)
    assert firsts[0] == "one_shot" and "one_shot" not in firsts[1:]


def test_forms_of_bsp_that_a_short_visit_left_out_are_measured_later(tmp_path: Path) -> None:
    class Short(ModelRanks):
        short = True

        def confirm(self, order: Any) -> Any:
            found, left = super().confirm(order)
            left_out, self.short = order.forms[1:] if self.short else (), False
            return {config: us for config, us in found.items() if config not in left_out}, left

    found = sums(tmp_path, (8,), Short)
    forms = {trial.config["form"] for trial in found if trial.config.variant == "bsp"}
    assert forms == {"library", "one_shot", "two_shot"}


def test_a_rank_that_dies_costs_a_row_and_its_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visited_once: None
) -> None:
    import planted

    monkeypatch.setattr("tftune.tuner.warm_up.world.serve", planted.serve)  # put back afterwards
    monkeypatch.setenv(planted.PLANTS, "")
    rows = rows_of_ranks(tmp_path, 60.0)
    assert {row.shape for row in rows} == {planted.SHAPE, planted.OTHER}
    assert {row.bench for row in rows} == {"node"}
    died = [row for row in rows if row.config.variant == "push"]
    assert died and len(died) == len({row.config for row in died}), "none is tried a second time"
    assert all(isinstance(row.outcome, Failure) and row.outcome.kind == "crash" for row in died)
    staged = [row for row in rows if row.config.variant == "staged"]
    assert len({row.shape for row in staged}) == 2
    assert all(not isinstance(row.outcome, Failure) for row in staged)
