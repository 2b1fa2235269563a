"""A session that measured another form of BSP beside an earlier one's: its ratios name their form,
so rows of both are evidence of one scale."""

from __future__ import annotations

import pytest
import speedup

from tftune.db.evidence import BspForms
from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.dataset import Dataset, load
from tftune.models.lending import _errors

SHAPE = AllGatherGemm(1024, 3584, 8192, 2)
PLAIN, REGISTERED = Config("bsp", form="gather_copy"), Config("bsp", form="gather_copy_registered")
PUSH = Config("push", block_m=128)
OTHER = Config("push", block_m=64)
NOON, EVENING = 12, 20


def row(
    config: Config, us: float, bsp_us: float, hour: int, stage: str, shape: Shape = SHAPE
) -> Trial:
    """Rows of one hour and stage share BSP's samples where they share its time."""
    outcome = Measurement((us,) * 9, (bsp_us + hour / 1000,) * 9, check_error=0.0)
    created = f"2026-11-22T{hour:02}:00:00Z"
    return Trial(shape, config, "graph", "h200x2", "node", "r", "r1", outcome, stage, created)


def bsp(form: Config, us: float, hour: int, stage: str, shape: Shape = SHAPE) -> Trial:
    """A form that was its own baseline."""
    return row(form, us + hour / 1000, us, hour, stage, shape)


def sessions(drift: float = 1.0, shape: Shape = SHAPE) -> list[Trial]:
    """At noon plain buffers took 100 us. In the evening registered ones were 10 % faster, in their
    own rounds; the node was slower by `drift`."""
    return [
        bsp(PLAIN, 100.0, NOON, "search", shape),
        bsp(PLAIN, 100.0, NOON, "final", shape),
        row(PUSH, 50.0, 100.0, NOON, "final", shape),
        row(REGISTERED, 90.0 * drift, 99.0 * drift, EVENING - 1, "search", shape),
        bsp(REGISTERED, 90.0 * drift, EVENING, "final", shape),
        row(OTHER, 45.0 * drift, 90.0 * drift, EVENING, "final", shape),
    ]


def dataset(rows: list[Trial]) -> Dataset:
    return load(rows, "all_gather_gemm", "h200x2", "graph", "node")


@pytest.mark.parametrize("drift", [1.0, 1.3])
def test_rows_beside_either_form_are_on_one_scale(drift: float) -> None:
    """Whatever the node's speed was in the evening."""
    data = dataset(sessions(drift))
    times = data.times_us[SHAPE]
    by_form = {config["form"]: us for config, us in times.items() if config.variant == "bsp"}
    assert by_form["gather_copy"] == pytest.approx(100, rel=1e-3)
    assert by_form["gather_copy_registered"] == pytest.approx(100 / 1.1, rel=1e-3)
    push = {config["block_m"]: us for config, us in times.items() if config.variant == "push"}
    assert push[128] == pytest.approx(50, rel=1e-3)
    assert push[64] == pytest.approx(100 / 1.1 / 2, rel=1e-3)
    assert data.bsp(SHAPE)["form"] == "gather_copy_registered"
    assert data.oracle(SHAPE).config["block_m"] == 64


def test_a_form_that_no_ratio_connects_is_not_on_the_scale() -> None:
    rows = [(trial.config, trial) for trial in sessions()]
    forms = BspForms(rows)
    assert set(forms.times_us(PLAIN)) == {PLAIN, REGISTERED}
    assert forms.beside(rows[3][1]) == PLAIN and forms.beside(rows[5][1]) == REGISTERED
    apart = BspForms([pair for pair in rows if pair[1].stage == "final"])
    assert set(apart.times_us(PLAIN)) == {PLAIN}


def test_a_table_does_not_hold_ratios_to_different_forms_beside_each_other() -> None:
    """The plain form's ratio is 2.0, the registered one's 2.0 of less: the newest form counts."""
    rows = [*sessions(), row(PUSH, 46.0, 90.0, EVENING, "final")]
    (line,) = speedup.lines(rows[:3], "graph")
    assert line.winner.config == PUSH and speedup.speedup(line.winner) == pytest.approx(2, rel=1e-2)
    (line,) = speedup.lines([*rows[:2], row(PUSH, 40.0, 100.0, NOON, "final"), *rows[3:6]], "graph")
    assert line.winner.config == OTHER and line.best["bsp"].config == REGISTERED
    (line,) = speedup.lines(rows, "graph")
    assert line.winner.config == OTHER


def test_a_layout_lends_by_ratios_to_forms_that_both_have() -> None:
    """Measured again with registered buffers, one layout's speed-ups are lower by 10 %; the other
    one's were not measured since."""
    twin = AllGatherGemm(1024, 3584, 8192, 2, dtype="bf16")
    old = [*sessions(shape=twin)[:3]]
    one, other = dataset(old), dataset(sessions())
    assert one.bsp_us(twin) > 1.05 * other.bsp_us(SHAPE)
    assert list(_errors(one, twin, other, SHAPE)) == [pytest.approx(0, abs=1e-3)]
    none = dataset(
        [bsp(REGISTERED, 90.0, EVENING, "final", twin), row(PUSH, 50, 90, EVENING, "final", twin)]
    )
    assert list(_errors(none, twin, dataset(sessions()[:3]), SHAPE)) == []
