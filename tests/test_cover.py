"""The portfolio: which few configs cover the shapes of a layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.space import Config
from tftune.models.dataset import configs_of, load
from tftune.models.portfolio import FORMS, MATRIX_SIZE, loss, portfolio
from tftune.models.tree.trainer import train_layout

OP, TARGET = "all_gather_gemm", "h200x8"


Rows = Callable[..., list[Trial]]


def test_the_portfolio_holds_bsp_and_few_configs(make_rows: Rows) -> None:
    dataset = load(make_rows(paper()), OP, TARGET, "graph", "model")
    chosen = portfolio(dataset, configs_of(dataset), 4)
    assert {dataset.bsp(shape) for shape in dataset.shapes} <= set(chosen) and len(chosen) <= 4
    larger = portfolio(dataset, configs_of(dataset), MATRIX_SIZE)
    assert set(chosen) < set(larger) and len(larger) <= MATRIX_SIZE
    kept = np.min([loss(dataset, config) for config in chosen], axis=0)
    alone = sum(dataset.log_regret(shape, dataset.bsp(shape)) or 0.0 for shape in dataset.shapes)
    assert kept.sum() < 0.7 * alone


def test_a_portfolio_is_of_the_candidates_and_of_forms_of_bsp(make_rows: Rows) -> None:
    dataset = load(make_rows(paper()), OP, TARGET, "graph", "model")
    pulls = [config for config in configs_of(dataset) if config.variant == "pull"]
    found = portfolio(dataset, pulls, 9)
    assert {config for config in found if config.variant != "bsp"} <= set(pulls)
    assert len({c for c in found if c.variant == "bsp"}) <= FORMS


def test_each_layout_has_its_own_candidates(make_rows: Rows) -> None:
    own = AllGatherGemm(m=1024, n=3584, k=8192, world=8, dtype="bf16")
    rows = make_rows(paper()) + make_rows((own,))
    only_there = SPACE.complete(Config("push", block_m=64, block_n=64))
    rows.append(
        replace(rows[-1], shape=own, config=only_there, outcome=Measurement((1.0,), (100.0,)))
    )
    parts = load(rows, OP, TARGET, "graph", "model").by_layout()
    assert [len(part.shapes) for part in parts.values()] == [14, 1]
    assert parts[own.layout].shapes == (own,)
    large, small = (train_layout(part) for part in parts.values())
    assert only_there in small.configs and only_there not in large.configs
