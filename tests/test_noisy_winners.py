"""Configs that noise alone tells apart: a search's table and a report name one winner of the same
rows. Times drift between rounds, and BSP's with them; both compare configs beside BSP."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from stored import RUN

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.report.tables import lines
from tftune.tuner.search.final_stage import best_of

SHAPE = AllGatherGemm(64, 3584, 8192, 8)
SPACE = operation("all_gather_gemm").space
BSP = SPACE.fallbacks(SHAPE)[0]
PUSHES = tuple(
    SPACE.complete(Config("push", block_m=block_m, rows_per_flag=64)) for block_m in (16, 32, 64)
)


def noisy(draw: random.Random, mode: str) -> dict[Config, Trial]:
    """Final rows of BSP and of three configs of one true time, each in rounds of its own, whose
    clock is off by up to 5 %."""
    found = {}
    for number, config in enumerate((BSP, *PUSHES)):
        offset, rounds = draw.uniform(0.95, 1.05), range(12)
        bsp = tuple(12.0 * offset * draw.gauss(1, 0.01) for _ in rounds)
        us = bsp if config == BSP else tuple(10.0 * offset * draw.gauss(1, 0.01) for _ in rounds)
        key = SHAPE, config, mode, RUN.target, RUN.bench, RUN.id
        code = installed(SHAPE.op, config.variant)
        instant = f"2026-11-25T00:00:{number:02}+00:00"
        found[config] = Trial(*key, code, Measurement(us, bsp), "final", instant)
    return found


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_a_search_and_a_report_name_one_winner(mode: str) -> None:
    flips = 0
    for seed in range(200):
        rows = noisy(random.Random(seed), mode)
        searched = SimpleNamespace(searched=lambda place, rows=rows: rows)
        best = best_of(searched, (SHAPE, mode), rows, rows[BSP], 4)  # type: ignore[arg-type]
        (line,) = lines(rows.values())
        assert (line.winner, line.by_variant) == (best.winner, best.by_variant)
        medians = {config: rows[config].outcome.median_us for config in PUSHES}
        flips += best.winner.config != min(medians, key=medians.__getitem__)
    assert flips > 50, "medians of different rounds would name another one"
