"""Residual correction: a forest learns from rows of other shapes by how much the model is wrong."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from stored import trial

from tftune.db.trial import Failure, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chip import RATE_NAMES, constants
from tftune.kernels.core.chips import H200, Chip
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.features import pair_vector
from tftune.models.timeline.simulator import predict
from tftune.tuner.search import residual_correction as correction
from tftune.tuner.search.pools import pool
from tftune.tuner.search.residual_correction import Correction

HERE = AllGatherGemm(48, 3584, 8192, 2)
SHAPES = [replace(HERE, m=m) for m in (16, 32, 64, 128)]
HASH = installed("all_gather_gemm", "push")


def modelled(shape: Shape, config: Config, mode: str, chip: Chip) -> float:
    return 10.0 + config["block_n"] / 16


def really(config: Config) -> float:
    """Deep pipelines are twice as fast as the model says."""
    return (10.0 + config["block_n"] / 16) * (0.5 if config["num_stages"] >= 4 else 1.0)


def rows(shapes: list[AllGatherGemm], kernel: str = HASH, times: float = 1.0) -> list[Trial]:
    return [
        trial(
            shape=shape,
            config=config,
            revision=kernel,
            mode="graph",
            outcome=Measurement((times * really(config),)),
        )
        for shape in shapes
        for config in pool(SPACE, shape, H200, "push", 60)
    ]


def made(trials: list[Trial]) -> Correction:
    found = Correction(SPACE, H200, "graph", modelled, pair_vector)
    found.learn(trials)
    return found


CONFIGS = pool(SPACE, HERE, H200, "push", 40)
TRUTH = np.log([really(config) for config in CONFIGS])


def test_what_the_model_gets_wrong_at_other_shapes_is_put_right() -> None:
    alone = made([]).hints(HERE, CONFIGS)
    assert alone == pytest.approx(
        [log(modelled(HERE, config, "graph", H200)) for config in CONFIGS], abs=1e-5
    )
    corrected = made(rows(SHAPES)).hints(HERE, CONFIGS)
    assert np.std(corrected - TRUTH) < 0.1 < 0.25 < np.std(alone - TRUTH)


def test_rows_of_the_shape_itself_are_for_the_search_to_learn_from() -> None:
    assert list(made(rows([HERE] * 1, times=7.0)).hints(HERE, CONFIGS)) == list(
        made([]).hints(HERE, CONFIGS)
    )


def test_a_row_of_the_present_kernel_counts_before_one_of_another() -> None:
    both = [*rows(SHAPES), *rows(SHAPES, kernel="earlier", times=3.0)]
    for trials in (both, both[::-1]):
        assert list(made(trials).hints(HERE, CONFIGS)) == pytest.approx(
            list(made(rows(SHAPES)).hints(HERE, CONFIGS))
        )


def test_the_nearest_shapes_are_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    far = [replace(shape, n=512, k=1024, dtype="bf16") for shape in SHAPES]
    monkeypatch.setattr(correction, "ROWS", 240)
    mixed = made([*rows(far, times=5.0), *rows(SHAPES)])
    assert list(mixed.hints(HERE, CONFIGS)) == pytest.approx(
        list(made(rows(SHAPES)).hints(HERE, CONFIGS))
    )


def test_few_rows_other_modes_and_failures_correct_nothing() -> None:
    few = rows(SHAPES)[: correction.LEAST - 1]
    others = [replace(row, mode="eager") for row in rows(SHAPES)] + [
        replace(row, outcome=Failure("hang", "x")) for row in rows(SHAPES)
    ]
    for trials in (few, others):
        assert list(made(trials).hints(HERE, CONFIGS)) == list(made([]).hints(HERE, CONFIGS))


def test_without_numbers_of_a_pair_the_model_stays_as_it_is() -> None:
    plain = Correction(SPACE, H200, "graph", modelled, None)
    plain.learn(rows(SHAPES))
    assert exp(plain.hints(HERE, CONFIGS[:1])[0]) == pytest.approx(
        modelled(HERE, CONFIGS[0], "graph", H200)
    )
    assert len(plain.hints(HERE, [])) == 0


def test_one_gpu_alone_learns_only_from_worlds_of_one_rank() -> None:
    """`tftune calibrate` measures no links there, so that two ranks have no modelled time."""
    rates = {name: value for name, value in H200.sourced if name in RATE_NAMES}
    alone = replace(H200, sourced=constants(**rates), assumed=())
    found = Correction(SPACE, alone, "graph", predict, pair_vector)
    found.learn(rows(SHAPES))
    here = replace(HERE, world=1)
    configs = pool(SPACE, here, alone, "push", 5)
    modelled_us = [predict(here, config, "graph", alone) for config in configs]
    assert np.exp(found.hints(here, configs)) == pytest.approx(modelled_us, rel=1e-4)
