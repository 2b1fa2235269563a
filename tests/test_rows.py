"""Which rows hold for a search, and which of two counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import stored

from tftune.db import target as machine
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import ModelBench
from tftune.tuner.search.session import Rows

BENCH = ModelBench(Target.parse("mi300x8"), lambda shape, config, mode, chip: 8.0)
SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=8)
PLACE = (SHAPE, "graph")
BSP, WEAK = (Config("bsp", form=form) for form in ("gather_copy", "local_transpose"))
PUSH = SPACE.complete(Config("push", block_m=64))


def row(config: Config, outcome: Outcome, second: int = 0, stage: str = "search") -> Trial:
    code, created = installed(SHAPE.op, config.variant), f"2026-01-01T00:00:{second:02}"
    same = {"target": "mi300x8", "bench": "model", "run": "r", "revision": code}
    return stored.row(SHAPE, config, outcome, stage=stage, created=created, **same)


def us(time: float, bsp: float | None = None) -> Measurement:
    return Measurement((time,), () if bsp is None else (bsp,))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "a.db") as store:
        store.add_run(Run("r", "mi300x8", "model", {}, "2026-01-01", {}))
        yield store


def rows(store: Store, *trials: Trial) -> Rows:
    for trial in trials:
        store.add_trial(trial)
    return Rows(operation(SHAPE.op), BENCH, store)


def test_of_two_rows_the_newer_one_counts_whatever_their_order(store: Store) -> None:
    found = rows(store, row(PUSH, us(5), second=9), row(PUSH, us(6), second=1)).searched(PLACE)
    assert [trial.outcome for trial in found.values()] == [us(5)]


def test_an_absent_knob_is_its_default(store: Store) -> None:
    assert list(rows(store, row(Config("push", block_m=64), us(5))).searched(PLACE)) == [PUSH]


def test_rows_of_another_kernel_or_outside_the_space_do_not_hold(store: Store) -> None:
    found = rows(
        store, row(Config("push", block_m=48), us(5)), replace(row(PUSH, us(5)), revision="old")
    )
    assert found.searched(PLACE) == {} and found.places("graph") == []


@pytest.mark.parametrize(("bench", "version", "holds"), [
    ("node", "3.6.1", True), ("node", "3.7.0", False), ("drill", "3.7.0", False),
    ("model", "3.7.0", True), ("node", "", True),
])  # fmt: skip
def test_rows_that_another_triton_compiled_do_not_hold(
    bench: str, version: str, holds: bool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "build", lambda: {"triton": "3.6.0"})
    store.add_run(
        Run("other", "mi300x8", bench, {"triton": version} if version else {}, "2026-01-01", {})
    )
    store.add_trial(replace(row(PUSH, us(5)), bench=bench, run="other"))
    place = SimpleNamespace(name=bench, target=BENCH.target, condition="")
    found = Rows(operation(SHAPE.op), place, store)  # type: ignore[arg-type]
    assert (PUSH in found.searched(PLACE)) == holds


def test_finals_are_those_not_older_than_the_search(store: Store) -> None:
    found = rows(
        store,
        row(BSP, us(9), 1, "final"),
        row(PUSH, us(5), 2),
        row(PUSH, us(5), 2, "final"),
        row(WEAK, us(9), 3, "final"),
    )
    assert set(found.finals(PLACE)) == {PUSH, WEAK} and found.finals((SHAPE, "eager")) == {}


def test_the_winners_are_the_best_of_each_fused_variant(store: Store) -> None:
    pull = SPACE.complete(Config("pull", block_m=64))
    slow = SPACE.complete(Config("push", block_m=32))
    failed = row(SPACE.complete(Config("pull", block_m=32)), Failure("compile", "no"))
    found = rows(
        store,
        row(BSP, us(10)),
        row(slow, us(9, 10)),
        failed,
        row(pull, us(8, 10)),
        row(PUSH, us(6, 10)),
    )
    assert found.winners(PLACE) == [PUSH, pull] and found.ratios(PLACE)[slow] == pytest.approx(0.9)


def test_rivals_are_what_noise_cannot_tell_from_the_winner(store: Store) -> None:
    near, second, far, pull = (
        SPACE.complete(Config(variant, block_m=block_m))
        for variant, block_m in (("push", 32), ("push", 16), ("push", 128), ("pull", 64))
    )

    def scattered(config: Config, least: float) -> Trial:
        return row(config, Measurement((least, least + 0.2, least + 0.4), (10.0,) * 3))

    found = rows(
        store, row(BSP, us(10)), scattered(far, 7.0), scattered(second, 6.2), scattered(PUSH, 6.0),
        scattered(near, 6.1), scattered(pull, 8.0),
    )  # fmt: skip
    assert found.rivals(PLACE, 9) == [near, second] and found.rivals(PLACE, 1) == [near]


def test_a_measured_row_is_committed_then_told(store: Store) -> None:
    told: list[list[Trial]] = []
    found = Rows(operation(SHAPE.op), BENCH, store, lambda trial: told.append(store.trials()))
    trial = found.measure(PLACE, PUSH, BSP, "final")
    assert trial.outcome == us(8, 8) and told == [[trial]] and found.finals(PLACE) == {PUSH: trial}
    assert [run.id for run in store.runs()] == ["r", trial.run]
