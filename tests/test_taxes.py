"""Taxes: statistics on made times, rows, the command and figures."""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from command_line import Ran, Tftune, refused
from hypothesis import given
from hypothesis import strategies as st

from tftune.db.evidence import counting
from tftune.db.row_files import read_rows
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import EVIDENCE, STAGES, Measurement, Trial
from tftune.kernels.core.chips import H200
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.models.dataset import load
from tftune.report import figures
from tftune.studies.taxes import bench as taxes
from tftune.studies.taxes.arms import BSP, CLOCKED, FUSED, Arm, Gap, arms
from tftune.studies.taxes.figure import Waterfall, section
from tftune.studies.taxes.job import case_of, measured, stored
from tftune.studies.taxes.rows import Case, current, splits
from tftune.studies.taxes.split import interaction, shapley, split
from tftune.tuner.bench.sandbox import Broken

ROOT = Path(__file__).resolve().parent.parent
TARGET = Target.parse("h200x2")
SIZES = {
    "all_gather_gemm": "m=32,n=64,k=64,world=2",
    "flash_decode": "batch=1,q_heads=4,kv_heads=2,head_dim=64,kv_len=32,world=2,dtype=bf16",
    "gemm_all_reduce": "m=16,n=32,k=64,world=2,dtype=fp16",
}
OPS = tuple(SIZES)
GAP = Gap(kernels=2, trips=1.25, peers=1)
STEPS = ("transpose", "gather", "gemm")
KERNEL_US, TRIP_US, WAIT_US, FUSED_US = 1.5, 4.0, 7.0, 30.0
PAID_US = {"launch": 2 * KERNEL_US, "wait": WAIT_US, "memory": 1.25 * TRIP_US}
SUM_US = sum(PAID_US.values())


def case(op: str, world: int = 2) -> Case:
    shape: Any = operation(op).shape.parse(SIZES[op].replace("world=2", f"world={world}"))
    return case_of(shape, (), TARGET, None)


def additive(arm: Arm, more_us: float = 0.0) -> float:
    """The time of an arm on a bench whose taxes only add up; `more_us` where all meet."""
    if arm == BSP:
        return FUSED_US + SUM_US
    if arm.base == "bsp":
        return FUSED_US + SUM_US + max(arm.late, 0) - (5 if arm.without else 0)
    waits = arm.waits == "all"
    meet = more_us if waits and arm.trips and arm.kernels > 1 else 0.0
    late = 0.5 * max(arm.late, 0)
    return FUSED_US + arm.kernels * KERNEL_US + arm.trips * TRIP_US + waits * WAIT_US + late + meet


def made(gap: Gap = GAP, rounds: int = 41, noise: float = 0.0, **more: float) -> dict[Arm, Any]:
    """Times of every arm. A round's noise is common to its arms, as where a clock drops."""
    drawn = random.Random(3)
    common = [drawn.uniform(0, noise) for _ in range(rounds)]
    return {arm: [additive(arm, **more) + us for us in common] for arm in arms(gap, STEPS, False)}


# Statistics.


def test_on_an_additive_bench_nothing_is_left_and_shares_are_what_was_added() -> None:
    found = split(made(noise=2.0), GAP)
    for name, us in PAID_US.items():
        for estimate in (found.taxes[name], found.shapley[name]):
            assert estimate.value == pytest.approx(us)
            assert estimate.low <= estimate.value <= estimate.high
    assert found.residual and abs(found.residual.value) < 1e-9
    assert found.interaction and abs(found.interaction.value) < 1e-9
    assert found.saved_us.value == pytest.approx(SUM_US)
    assert found.late["bsp"].value == pytest.approx(1.0)
    assert found.late["fused"].value == pytest.approx(0.5)
    without = {name: us.value for name, us in found.without_us.items()}
    assert without == pytest.approx(dict.fromkeys(STEPS, 5))


def test_a_planted_interaction_is_found_and_shared_equally() -> None:
    found = split(made(more_us=6.0), GAP)
    assert found.interaction and found.interaction.value == pytest.approx(6.0)
    shares = {name: share.value for name, share in found.shapley.items()}
    assert shares == pytest.approx({name: us + 2.0 for name, us in PAID_US.items()})


def test_what_the_taxes_do_not_explain_is_the_residual() -> None:
    times = made()
    times[BSP] = [us + 0.25 * SUM_US for us in times[BSP]]
    found = split(times, GAP)
    assert found.residual and found.residual.value == pytest.approx(0.2)


def test_where_bsp_is_not_surely_slower_there_is_no_residual() -> None:
    times = made()
    times[BSP] = [us + (1 if number % 2 else -1) for number, us in enumerate(times[FUSED])]
    assert split(times, GAP).residual is None


def test_one_rank_pays_for_launches_and_memory_alone() -> None:
    gap = Gap(kernels=1, trips=1.0, peers=0)
    times = {arm: [additive(arm)] * 5 for arm in arms(gap, ("attend", "merge"), False)}
    found = split(times, gap)
    assert found.taxes["wait"].value == 0 and set(found.shapley) == {"launch", "memory"}
    assert not found.late and found.taxes["launch"].value == pytest.approx(KERNEL_US)


def test_a_missing_arm_is_no_zero() -> None:
    times = made()
    del times[Arm("fused", kernels=3)]
    with pytest.raises(KeyError):
        split(times, GAP)


@given(st.lists(st.floats(1, 1e4), min_size=8, max_size=8))
def test_shapley_shares_add_up_and_do_not_depend_on_names(us: list[float]) -> None:
    sets = [frozenset(found) for size in range(4) for found in combinations("abc", size)]
    times = dict(zip(sets, us, strict=True))
    shares = shapley(times)
    assert sum(shares.values()) == pytest.approx(times[sets[7]] - times[sets[0]], abs=1e-6)
    swap = {"a": "b", "b": "a", "c": "c"}
    swapped = shapley({frozenset(swap[name] for name in key): us for key, us in times.items()})
    assert {swap[name]: share for name, share in swapped.items()} == pytest.approx(shares)
    flat = {key: 5.0 + 2.0 * len(key) for key in sets}
    assert shapley(flat) == pytest.approx(dict.fromkeys("abc", 2.0)) and interaction(flat) == 0


# Rows and the command.


def fake(
    shape: Any, asked: Mapping[str, Sequence[Arm]], *_: object
) -> dict[str, dict[Arm, Measurement]]:
    """A bench whose taxes add up."""
    found = {}
    for mode, each in asked.items():
        samples = {
            arm: tuple(additive(arm) + 0.01 * n + (mode == "eager") for n in range(5))
            for arm in each
        }
        found[mode] = {arm: Measurement(us, samples[BSP], 0.001) for arm, us in samples.items()}
    return found


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A database with the taxes of one shape of each operation."""
    with Store.open(tmp_path / "t.db") as store:
        for op in OPS:
            measured(case(op), TARGET, store, fake)
    return tmp_path / "t.db"


def test_rows_are_measured_once_and_read_back(filled: Path, tmp_path: Path) -> None:
    def refuse(*_: object) -> Any:
        raise AssertionError("measured again")

    with Store.open(filled) as store:
        for op in OPS:
            found = measured(case(op), TARGET, store, refuse)
            assert found.keys() == {"graph", "eager"} and CLOCKED in found["graph"]
        assert store.check() == [] and store.trials() == []
        store.export_rows(tmp_path / "rows.jsonl")
        rows = store.trials(condition=None)
    assert read_rows(tmp_path / "rows.jsonl")[1] == rows
    with Store.open(tmp_path / "u.db") as store:
        assert store.import_rows(tmp_path / "rows.jsonl") == (len(rows), 0)
        assert stored(case(OPS[0]), TARGET, store).keys() == {"graph", "eager"}


def test_another_config_or_a_missing_arm_is_measured_again(filled: Path) -> None:
    mine = case(OPS[0])
    other = replace(mine, config=next(
        config for config in operation(OPS[0]).space.configs(mine.shape, None)
        if config.variant == "push" and config != mine.config
    ))  # fmt: skip
    with Store.open(filled) as store:
        assert stored(other, TARGET, store) == {}
        gone = "DELETE FROM tft_trials WHERE op = :op AND condition = :arm"
        store.execute(gone, {"op": OPS[0], "arm": "tax=fused,late=50"})
        assert stored(mine, TARGET, store).keys() == {"eager"}


def test_rows_reach_neither_training_nor_tables_nor_searches(filled: Path) -> None:
    """Not even where their stage is asked for beside them."""
    with Store.open(filled) as store:
        rows = store.trials(condition=None)
    assert {row.stage for row in rows} == {"tax"} and "tax" not in EVIDENCE
    assert counting(rows, []) == []
    mine = [row for row in rows if row.op == OPS[0] and row.mode == "graph"]
    for stages in (EVIDENCE, tuple(STAGES)):
        with pytest.raises(ValueError, match="no row of all_gather_gemm"):
            load(mine, OPS[0], TARGET.name, "graph", "node", stages)


def test_stage_and_condition_go_together() -> None:
    mine = case(OPS[0])
    row = Trial(
        mine.shape, mine.config, "graph", "h200x2", "node", "r", "r1",
        Measurement((1.0,), (1.0,)), "tax", "", "tax=fused",
    )  # fmt: skip
    assert Trial.from_dict(row.to_dict()) == row
    for wrong in (dict(stage="final"), dict(condition="")):
        with pytest.raises(ValueError, match="only those"):
            replace(row, **wrong)  # type: ignore[arg-type]


def test_a_row_of_no_arm_does_not_count(filled: Path) -> None:
    """As one that another version pushed to a database that all share."""
    with Store.open(filled) as store:
        rows = store.trials(condition=None)
    assert current([*rows, replace(rows[0], condition="tax=push")], []) == rows


def test_the_fastest_rows_name_what_is_held_against_each_other() -> None:
    mine = case(OPS[0])
    slow, fast = (
        Trial(mine.shape, with_stages(mine.config, stages), "graph", "h200x2", "node", "r",
              installed(OPS[0], "push"), Measurement((us,), (20.0,)), "final", str(us))
        for us, stages in ((9.0, 5), (5.0, 3))
    )  # fmt: skip
    chosen = case_of(mine.shape, [slow, fast], TARGET, None)
    assert chosen.config == fast.config and chosen.form == mine.form
    with pytest.raises(ValueError, match="isolated with push, not with pull"):
        case_of(mine.shape, [], TARGET, "pull")
    other: Any = operation("flash_prefill").named_set(operation("flash_prefill").main_set, 1)[0]
    with pytest.raises(ValueError, match="operations that have are all_gather_gemm, flash_decode"):
        case_of(other, [], TARGET, None)


def with_stages(config: Config, stages: int) -> Config:
    return Config(config.variant, **dict(config.knobs) | {"num_stages": stages})


@pytest.fixture
def study(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> Tftune:
    """`study taxes` on a machine of two GPUs, whose taxes add up."""
    monkeypatch.setattr(taxes, "measure", fake)
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: TARGET)
    return lambda line: tftune(f"study taxes {line}")


def test_the_command_prints_a_table_and_a_result(study: Tftune) -> None:
    words = f"{OPS[0]} {SIZES[OPS[0]]}"
    code, out, _ = study(words)
    assert code == 0
    assert re.search(r"launch +3.00 +3.00 to 3.00 +\d+% +3.00 +-?\d", out)
    for said in (
        "residual: -20%",
        "explain what is saved does not hold here",
        "HBM bytes: not measured",
        "a rank late by 1 us costs bsp 1.00 us",
    ):
        assert said in out
    last = out.strip().splitlines()[-1]
    assert last.startswith("RESULT taxes op=all_gather_gemm target=h200x2 m=32 n=64 k=64 world=2")
    assert "launch_us=3.00 wait_us=7.00 memory_us=8.00 residual=-0.200" in last
    code, out, _ = study(f"{words} --json")
    (document,) = json.loads(out)
    assert code == 0 and document["measured"]["taxes"]["wait"]["value"] == 7.0
    table = (ROOT / "docs/taxes.md").read_text().partition("An estimate is")[2].partition("Rows")[0]
    fields = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    listed = {name for cell in fields for name in re.findall(r"`(\w+)`", cell)} - {"field"}
    assert listed == set(document["measured"])
    assert document["modelled"]["times"] == "modelled"


def test_one_rank_says_that_nothing_is_exchanged(study: Tftune) -> None:
    ran: Ran = study(f"flash_decode {SIZES['flash_decode'].replace('world=2', 'world=1')}")
    assert ran.code == 0 and "one rank has nobody to exchange with" in ran.out


def test_a_budget_that_is_over_says_how_many_are_missing(
    study: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([0.0, 0.0, 99.0, 99.0])
    monkeypatch.setattr("tftune.studies.taxes.command.monotonic", lambda: next(ticks))
    ran = study(f"{OPS[0]} {SIZES[OPS[0]]};m=64,n=64,k=64,world=2 --budget 10s")
    assert ran.code == 2 and "1 of 2 shapes were measured" in ran.err


def test_ranks_that_break_are_one_sentence(study: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise Broken("crash", "rank 1 was killed")

    monkeypatch.setattr(taxes, "measure", broken)
    ran = study(f"{OPS[0]} {SIZES[OPS[0]]}")
    assert refused(ran, f"the arms of {SIZES[OPS[0]]} could not be measured: ", "rank 1 was killed")


def test_without_a_gpu_the_model_is_named(tftune: Tftune) -> None:
    assert "--on model" in tftune(f"study taxes {OPS[0]} {SIZES[OPS[0]]}").err


@pytest.mark.parametrize("op", OPS)
def test_the_modelled_split_adds_up_and_says_that_it_is_modelled(op: str, tftune: Tftune) -> None:
    known = operation(op)
    shape = known.named_set(known.main_set, 8)[0]
    found = case_of(shape, (), Target.parse("h200x8"), None).modelled(H200)
    assert found is not None
    assert sum(found.taxes.values()) + found.work_us == pytest.approx(found.bsp_us - found.fused_us)
    out = tftune(f"study taxes {op} {shape} --on model --target h200x8").out
    assert "MODELLED" in " ".join(out.split()) and "none was measured" in out


def test_splits_are_of_the_newest_whole_group(filled: Path) -> None:
    with Store.open(filled) as store:
        rows = store.trials(condition=None)
    found = splits(rows)
    assert [case.shape.op for case, _ in found] == list(OPS)
    assert all(each.taxes["launch"].value == pytest.approx(each.gap.kernels * KERNEL_US)
               for _, each in found)  # fmt: skip
    assert splits([row for row in rows if row.condition != "tax=fused,kernels=3"]) == []


# Figures.


def test_bars_lead_from_bsp_to_fused_whatever_the_signs() -> None:
    fall = Waterfall("measured", 50.0, 30.0, {"launch": 4.0, "wait": 22.0, "memory": -1.0})
    assert fall.steps["rest"] == pytest.approx(-5.0)
    assert fall.bars == [
        ("BSP", 0.0, 50.0), ("launch", 46.0, 4.0), ("wait", 24.0, 22.0), ("memory", 24.0, 1.0),
        ("rest", 25.0, 5.0), ("fused", 0.0, 30.0),
    ]  # fmt: skip
    assert fall.sentence() == (
        "measured: BSP 50.0 us, launch 4.0, wait 22.0, memory -1.0, rest -5.0, fused 30.0 us"
    )


def test_a_report_draws_them_beside_the_modelled_split(filled: Path) -> None:
    with Store.open(filled) as store:
        rows = [row for row in store.trials(condition=None) if row.op == OPS[0]]
    with figures.style():
        text = section(rows)
    assert "wait, measured" in text and "wait, modelled" in text and "residual -20%" in text
    assert "Taxes of m=32,n=64,k=64,world=2. measured: BSP 45.0 us" in text
    assert section([]) == section(rows[:5]) == ""


@pytest.mark.parametrize("op", OPS)
def test_the_figures_of_the_page_are_what_the_model_says(op: str) -> None:
    says = run_path(str(ROOT / "docs/taxes_figure.py"))["says"]
    text = (ROOT / f"docs/taxes-{op}.svg").read_text()
    said = text.partition("<dc:description>")[2].partition("</dc:description>")[0]
    known = says(op)
    assert json.loads(html.unescape(said)) == known, "run `python docs/taxes_figure.py`"
    page = (ROOT / "docs/taxes.md").read_text()
    assert f"![MODELLED: BSP {known['bsp_us']:.0f} us, fused {known['fused_us']:.0f} us" in page
    assert f"](taxes-{op}.svg)" in page
