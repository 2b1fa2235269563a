"""Who won, of the same rows: a search's table, a report, and what `select` is trained on name one
answer, also where noise alone tells configs apart, forms of BSP differ, or stages do.

Captured, times drift between rounds, and BSP's with them: configs are compared beside BSP. Eager,
BSP's own drift is larger (docs/notebook.md): medians are compared."""

from __future__ import annotations

import random
from itertools import islice
from types import SimpleNamespace

import pytest
from stored import RUN

from tftune.db.evidence import measurement
from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.models.dataset import load
from tftune.report.tables import lines
from tftune.tuner.search.final_stage import best_of

SHAPE = AllGatherGemm(64, 3584, 8192, 8)
SPACE = operation("all_gather_gemm").space
BSP = SPACE.fallbacks(SHAPE)[0]
PUSHES = tuple(
    SPACE.complete(Config("push", block_m=block_m, rows_per_flag=64)) for block_m in (16, 32, 64)
)


def noisy(draw: random.Random, mode: str) -> list[Trial]:
    """A search's row of BSP; then final rows of BSP and of three configs of one true time, each in
    rounds of its own, whose clock is off by up to 5 %."""
    found = []
    for number, config in enumerate((BSP, BSP, *PUSHES)):
        offset, rounds = draw.uniform(0.95, 1.05), range(12)
        bsp = tuple(12.0 * offset * draw.gauss(1, 0.01) for _ in rounds)
        us = bsp if config == BSP else tuple(10.0 * offset * draw.gauss(1, 0.01) for _ in rounds)
        key = SHAPE, config, mode, RUN.target, RUN.bench, RUN.id
        code = installed(SHAPE.op, config.variant)
        instant = f"2026-11-25T00:00:{number:02}+00:00"
        stage = "final" if number else "search"
        found.append(Trial(*key, code, Measurement(us, bsp), stage, instant))
    return found


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_a_search_and_a_report_name_one_winner(mode: str) -> None:
    flips = 0
    for seed in range(200):
        first, *final = noisy(random.Random(seed), mode)
        finals = {trial.config: trial for trial in final}
        searched = SimpleNamespace(searched=lambda place, first=first: {first.config: first})
        best = best_of(searched, (SHAPE, mode), finals, finals[BSP], 4)  # type: ignore[arg-type]
        (line,) = lines([first, *final])
        assert (line.winner, line.by_variant) == (best.winner, best.by_variant)
        medians = {config: measurement(finals[config]).median_us for config in PUSHES}
        flips += best.winner.config != min(medians, key=medians.__getitem__)
    assert flips > 50 if mode == "graph" else flips == 0, "medians may name another one"


def drawn(draw: random.Random, mode: str) -> list[Trial]:
    """Rows of up to three forms of BSP and some configs, of both stages, in rounds that a form
    shared. Most true times lie within a few percent."""
    trials = []
    forms = SPACE.fallbacks(SHAPE)[: draw.randint(1, 3)]
    chip = Target.parse(RUN.target).chip
    some = [c for v in ("push", "pull") for c in islice(SPACE.configs(SHAPE, chip, (v,)), 2)]
    true_us = {config: draw.gauss(10, 0.4) for config in (*forms, *some)}
    for number in range(draw.randint(4, 14)):
        config, beside = draw.choice([*forms, *some]), draw.choice(forms)
        offset, rounds = draw.uniform(0.97, 1.03), range(9)
        bsp = tuple(true_us[beside] * offset * draw.gauss(1, 0.01) for _ in rounds)
        us = tuple(true_us[config] * offset * draw.gauss(1, 0.01) for _ in rounds)
        stage = draw.choice(["search", "search", "final", "matrix"])
        for measured, times in {beside: bsp, config: bsp if config == beside else us}.items():
            key = SHAPE, measured, mode, RUN.target, RUN.bench, RUN.id
            code = installed(SHAPE.op, measured.variant)
            instant = f"2026-11-25T00:00:{number:02}+00:00"
            trials.append(Trial(*key, code, Measurement(times, bsp), stage, instant))
    return trials


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_a_table_says_what_select_is_trained_on(mode: str) -> None:
    """Ratios beside a weaker form, and rows of a search that its final rows did not confirm, made
    a report name another winner than `select` at 247 measured places (2026-11-26)."""
    answers = set()
    for seed in range(300):
        rows = drawn(random.Random(seed), mode)
        (line,) = lines(rows)
        best = load(rows, SHAPE.op, RUN.target, mode, RUN.bench).best(SHAPE)
        assert line.answer.config == best, f"seed {seed}"
        assert line.verdict is not None and line.verdict.answers == (best.variant != "bsp")
        answers.add(best.variant)
    assert answers == {"bsp", "push", "pull"}
