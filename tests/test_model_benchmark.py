"""benchmarks/model.py: its figures by hand, and that the committed rows keep what docs/notebook.md
says."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import model
import pytest

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import predict

SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=4)
PUSH = [
    Config("push", block_m=rows, block_n=columns)
    for rows in (16, 32, 64)
    for columns in (32, 64, 128, 256)
]


def trial(config: Config, us: float, **fields: str) -> Trial:
    return replace(
        Trial(SHAPE, config, "graph", "h200x4", "node", "r", "k", Measurement((us,))), **fields
    )


def test_a_configs_time_is_the_median_of_its_rows_whatever_their_kernel() -> None:
    trials = [trial(PUSH[0], us, revision=str(us)) for us in (10.0, 30.0, 11.0)]
    failed = replace(trials[0], config=PUSH[1], outcome=Failure("hang", ""))
    assert model.times([*trials, failed, trial(PUSH[1], 1.0, mode="eager")], "graph") == {
        SHAPE: {PUSH[0]: 11.0}
    }


def test_a_score_by_hand() -> None:
    """Twelve configs, modelled 10 % high in the right order, the best of which is then put last."""
    measured = {config: 10.0 + number for number, config in enumerate(PUSH)}
    right = model.score(measured, lambda config: 1.1 * measured[config])
    assert right.errors == pytest.approx([0.1] * 12)
    assert right.spearman == pytest.approx(1) and right.regret == 1
    late = {config: 1.1 * us for config, us in measured.items()} | {PUSH[0]: 100.0}
    wrong = model.score(measured, late.__getitem__)
    assert wrong.regret == 1.1 and wrong.spearman < 0.6
    both = model.result([right, wrong])
    assert both["mdape"] == pytest.approx(0.1) and both["top10"] == 0.5


def test_what_ranks_all_alike_has_no_rank_correlation() -> None:
    measured = {config: float(n + 1) for n, config in enumerate(PUSH)}
    assert model.score(measured, lambda config: 1.0).spearman == 0


def test_a_fit_finds_the_constants_that_made_the_times() -> None:
    """Rows made by the model with other constants: the fit comes back to them from those of the
    chip."""
    other = H200.with_constants({"load_us": 0.6, "skew_us": 9.0})
    shapes = [AllGatherGemm(m=m, n=3584, k=8192, world=4) for m in (1, 64, 1024)]
    knobs = dict(block_m=16, rows_per_flag=16, k_per_flag=8192, split_k=1)
    configs = [
        Config(v, **knobs, block_n=n, num_stages=s)
        for v, n, s in product(("push", "pull"), (64, 128), (2, 4))
    ]
    rows = {
        shape: {config: predict(shape, config, "graph", other) for config in configs}
        for shape in shapes
    }
    found = model.fitted(rows, "graph", H200)
    assert found.rates.load_us == pytest.approx(0.6, rel=0.05)
    assert found.links.skew_us == pytest.approx(9.0, rel=0.1)


@pytest.mark.thorough
def test_the_committed_rows_out_of_sample() -> None:
    """The bars of the model: 15 % of error, 0.85 of rank correlation, the first ten near the best
    of 90 % of shapes."""
    rows = model.times(model.read("h200x2"), "graph")
    outside = {shape: measured for shape, measured in rows.items() if not model.in_fit(shape)}
    assert len(outside) > len(rows) / 2

    def figures_of(modelled: model.Model) -> dict[str, float]:
        return model.result(model.scores(outside, modelled).values())

    figures = figures_of(lambda shape, config: predict(shape, config, "graph", H200))
    assert figures["mdape"] < 0.15 and figures["spearman"] > 0.85, figures
    assert figures["top10"] > 0.9, figures
    plain = figures_of(lambda shape, config: model.roofline(shape, config, H200))
    assert plain["mdape"] > 3 * figures["mdape"] and plain["spearman"] < 0.5 * figures["spearman"]


def test_the_figures_of_a_machine_with_rows_of_fitted_shapes_and_of_one_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for target, fitted in (("h200x8", "fitted to: 12 shapes"), ("h200x1", "fitted to: no row")):
        monkeypatch.setattr(sys, "argv", ["model.py", "--seeds", "0", "--target", target])
        model.main()
        printed = capsys.readouterr().out
        assert fitted in printed and "RESULT model mdape=" in printed


@pytest.mark.thorough
def test_a_warm_search_needs_half_of_a_cold_one() -> None:
    rows = model.read("h200x4", every=True)
    ratio, lines = model.warm_over_cold(rows, Target.parse("h200x4"), "graph", 40, 600)
    assert ratio < 0.5 and len(lines) == 2
