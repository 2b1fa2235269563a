"""Time formulas: the same in numpy, where they are fitted, and in plain Python, where they answer;
and what is held out to judge them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from synthetic import (
    BSP,
    CHIP,
    LARGE,
    LAWS,
    LAYERS,
    ROWS,
    SHAPES,
    SMALL,
    TARGET,
    dataset,
    law,
    row,
    rows,
    shape,
)

from tftune.db.trial import Measurement
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import selector_of
from tftune.models.formula.arrays import Times
from tftune.models.formula.fit import LEAST_ROWS, Formulas, fit_formulas, held_out, judge
from tftune.models.formula.formula import BELOW, Formula, curves
from tftune.models.layout import Known, LayoutModel
from tftune.models.selector import Selector
from tftune.models.tree.tree import Leaf

DATA = dataset()
EVERY = np.arange(len(SHAPES))


@dataclass(frozen=True)
class Random:
    """Formulas with random weights and bends for the default configs of one operation, and the
    selector that answers by them: BSP takes a second, so that each question for one config alone is
    answered by its formula."""

    ends: tuple[Shape, Shape]

    @property
    def configs(self) -> tuple[Config, ...]:
        op = operation(self.ends[0].op)
        defaults = (config for end in self.ends for config in op.space.defaults(end, CHIP))
        return tuple(sorted({*map(op.space.complete, defaults)}))

    @property
    def data(self) -> Dataset:
        """BSP's time at one end."""
        shape = self.ends[0]
        forms = [config for config in self.configs if config.variant == "bsp"]
        trials = [row(shape, config, Measurement((9.0,))) for config in forms]
        return load(trials, shape.op, TARGET, "graph", "node")

    def formulas(self, seed: int) -> tuple[Formula, ...]:
        random = np.random.default_rng(seed)
        features = operation(self.ends[0].op).module("features")
        count = len(curves([0.0] * len(features.SCALES)))

        def formula(least: int) -> Formula:
            weights = tuple(random.uniform(0, 2, len(features.TERMS)))
            made = Formula(weights, tuple(random.uniform(-0.02, 0.02, count)), least, 1 << 20)
            return Formula.from_list(made.to_list())

        return tuple(map(formula, random.choice([16, 300, 5000], len(self.configs)).tolist()))

    def selector(self, formulas: tuple[Formula, ...], number: int) -> Selector:
        """A selector of one config beside BSP."""
        bsp, known = next(c for c in self.configs if c.variant == "bsp"), self.ends[0]
        slow = replace(
            formulas[0], weights=(1e6, *[0.0] * (len(formulas[0].weights) - 1)), bends=(), least=1
        )
        places = tuple(Known(end.sizes_key, 0, None, ((0, 1e6),)) for end in self.ends)
        model = LayoutModel(
            known.op, "graph", known.layout, (bsp, self.configs[number]), ("", ""),
            (slow, formulas[number]), places,
            Leaf((0, 1), 1, 0.01, ()), True, 0.01,
        )  # fmt: skip
        return selector_of(self.data, model)

    def numpy(self, formulas: tuple[Formula, ...], sizes: tuple[int, ...]) -> np.ndarray:
        """Microseconds of each config, as the trainer estimates them; NaN where a formula does not
        hold."""
        arrays = (
            np.array([getattr(f, name) for f in formulas])
            for name in ("weights", "bends", "least", "most")
        )
        return np.exp(Formulas(*arrays).logs(Times(self.data, self.configs), [sizes])[0])


GEMM = Random(
    (
        AllGatherGemm(2, 64, 256, 2, "bf16", "m", "nk"),
        AllGatherGemm(16384, 32768, 16384, 2, "bf16", "m", "nk"),
    )
)
DECODE = Random((FlashDecode(1, 1, 1, 64, 16, 2), FlashDecode(64, 128, 8, 256, 1 << 16, 2)))
ASKED = {
    "all_gather_gemm": (GEMM, st.builds(
        lambda m, n, k: AllGatherGemm(2 * m, n, 64 * k, 2, "bf16", "m", "nk"),
        st.integers(2, 8192), st.integers(64, 32768), st.integers(4, 256),
    )),
    "flash_decode": (DECODE, st.builds(
        lambda batch, heads, group, dim, length: FlashDecode(
            batch, heads * group, heads, dim, length, 2),
        st.integers(1, 64), st.integers(1, 8), st.integers(1, 16), st.sampled_from([64, 128, 256]),
        st.integers(16, 1 << 16),
    )),
}  # fmt: skip


@pytest.mark.parametrize("op", ASKED)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_a_formula_answers_what_the_trainer_estimated(op: str, data: Any, seed: int) -> None:
    """At random sizes, below the least one that was measured, too."""
    made, asked = ASKED[op][0], data.draw(ASKED[op][1])
    assume(asked not in made.ends)
    fused = [number for number, config in enumerate(made.configs) if config.variant != "bsp"]
    formulas, number = made.formulas(seed), data.draw(st.sampled_from(fused))
    us = made.numpy(formulas, asked.sizes_key)[number]
    found = made.selector(formulas, number).select(asked)
    formula, size = formulas[number], getattr(asked, asked.SIZE)
    possible = operation(op).space.why_invalid(asked, made.configs[number], CHIP) is None
    outside = formula.least > BELOW * size or size > formula.most
    assert math.isnan(us) == outside == (not formula.holds(size))
    assert (found.config == made.configs[number]) == (possible and not math.isnan(us))
    if found.config == made.configs[number]:
        assert found.expected_us == pytest.approx(us, rel=1e-9)


def test_below_the_least_measured_size_the_bend_is_that_of_the_least() -> None:
    """What a correction says of sizes where nothing was measured is nothing."""
    bent = Formula((1.0, *[0.0] * 6), (0.0, 1.0, *[0.0] * 8), 512, 8192)
    formulas = tuple(bent for _ in GEMM.configs)
    times = [GEMM.numpy(formulas, (m, 4096, 4096))[0] for m in (128, 256, 512, 1024)]
    assert times[0] == times[1] == times[2] < times[3]
    assert math.isnan(GEMM.numpy(formulas, (127, 4096, 4096))[0])


def test_a_fit_of_exact_times_finds_them_again_at_sizes_between_and_other_layers() -> None:
    times = Times(DATA, (BSP, SMALL, LARGE))
    sizes = [
        shape(m, n, k) for n, k in (*LAYERS, (3072, 5120), (6000, 2048)) for m in (90, 300, 5000)
    ]
    found = fit_formulas(times, EVERY).logs(times, [asked.sizes_key for asked in sizes])
    exact = [[math.log(LAWS[config](asked)) for config in times.configs] for asked in sizes]
    assert np.abs(found - exact).max() < 0.002
    assert (fit_formulas(times, EVERY).weights >= 0).all()


def test_a_smooth_error_of_the_terms_is_bent_away() -> None:
    """BSP takes up to 30 % longer as K grows, which no term says."""
    bent = {**LAWS, BSP: lambda asked: LAWS[BSP](asked) * (asked.k / 2048) ** 0.2}
    shapes = [
        shape(m, n, k) for n in (2048, 8192) for k in (2048, 3072, 4096, 6144, 8192) for m in ROWS
    ]
    times = Times(dataset(rows(shapes, bent)), (BSP, SMALL, LARGE))
    fitted = fit_formulas(times, np.arange(len(shapes)))
    straight = replace(fitted, bends=0 * fitted.bends)
    errors = [
        np.abs(each.logs(times, times.sizes) - times.logs)[:, 0].mean()
        for each in (fitted, straight)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_a_config_with_few_rows_has_the_formula_of_its_variant() -> None:
    """One of LARGE's rows is enough to answer there; to be bent it must be measured at some
    shapes."""
    few = Config("push", **dict(LARGE.knobs) | {"num_stages": 4})
    laws = {**LAWS, few: law(few, (12.0, 0.0, 4.5, 1.0, 1.0, 0.1, 0.0))}
    there = rows(SHAPES, laws)
    kept = [
        trial
        for trial in there
        if trial.config != few or trial.shape in SHAPES[3 : 3 + LEAST_ROWS - 1]
    ]
    times = Times(dataset(kept), (BSP, SMALL, LARGE, few))
    found = fit_formulas(times, EVERY)
    assert not found.bends[3].any()
    assert found.bends[2].any()
    assert (found.weights[3] != found.weights[2]).any()
    assert (found.least[3], found.most[3]) == (128, 8192), "of the shapes where it was measured"
    whole = fit_formulas(Times(dataset(there), times.configs), EVERY)
    assert whole.bends[3].any()


def test_a_formula_is_written_in_few_digits_and_read_again() -> None:
    formula = Formula((1.23456789, 0.0), (0.000123456,), 8, 8192)
    again = Formula.from_list(formula.to_list())
    assert (
        again == Formula((1.2346, 0.0), (0.0001235,), 8, 8192) == Formula.from_list(again.to_list())
    )


@pytest.mark.parametrize(
    "values",
    [None, [], [[1.0], [], 8], [["1"], [], 8, 9], [[True], [], 8, 9], [[math.nan], [], 8, 9],
        [[1.0], [math.inf], 8, 9],
     [[1.0], [], "8", 9], [[1.0], [], 8, None]],
)  # fmt: skip
def test_what_is_no_formula_is_refused(values: Any) -> None:
    with pytest.raises(TypeError, match="a formula is "):
        Formula.from_list(values)


def test_too_few_shapes_hold_nothing_out() -> None:
    few = dataset(rows(SHAPES[:4]))
    assert list(held_out(few)) == [] == list(judge(Times(few, (BSP, SMALL))).errors)


def test_formulas_of_exact_times_lose_nothing_held_out() -> None:
    found = judge(Times(DATA, (BSP, SMALL, LARGE)))
    assert len(found.lost) == len(SHAPES)
    assert math.fsum(found.lost.values()) < 0.001 * len(SHAPES)
    assert max(map(abs, found.errors.values())) < 0.01
