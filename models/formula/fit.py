"""Fit time formulas, and judge them on shapes held out.

A formula's weights are found by least squares of relative errors, none negative (Lawson and Hanson
1974), its bends by ridge regression of the logarithm of what the weights miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from tftune.kernels.core.shape import Shape, size_of
from tftune.models.dataset import Dataset
from tftune.models.formula.arrays import Times
from tftune.models.formula.formula import BELOW, LEAST_US, Formula
from tftune.models.tree.tree import Sizes

LEAST_ROWS = 8
"""Shapes that a config must have been measured on to have a formula of its own; with fewer it has
that of its variant."""
RIDGE = 5.0
"""Penalty of a bend, in squared logarithms of one shape; a tenth of it for the constant."""
FAMILY_GROUPS, SIZE_GROUPS = 6, 5
"""Into how many groups families of shapes, and sizes, are dealt to be held out."""


@dataclass(frozen=True, eq=False)
class Formulas:
    """`weights` [configs, terms] and `bends` [configs, curves]; `least` and `most` [configs]: the
    sizes between which each was measured."""

    weights: np.ndarray
    bends: np.ndarray
    least: np.ndarray
    most: np.ndarray

    def logs(self, times: Times, sizes: Sequence[Sizes]) -> np.ndarray:
        """[shapes, configs]: logarithms of estimated microseconds at these sizes; NaN where a
        formula does not hold."""
        size = np.array([one[times.place] for one in sizes])[:, None]
        holds = (self.least <= BELOW * size) & (size <= self.most)
        return np.where(holds, self.everywhere(times, sizes), np.nan)

    def everywhere(self, times: Times, sizes: Sequence[Sizes]) -> np.ndarray:
        """[shapes, configs]: logarithms of estimated microseconds, as `Formula.us` gives them."""
        place = times.place
        size = np.array([one[place] for one in sizes])[:, None]
        logs: np.ndarray = (
            np.log(np.maximum((times.terms_at(sizes) * self.weights).sum(axis=2), LEAST_US))
            + times.curves_at(sizes) @ self.bends.T
        )
        for number in np.flatnonzero((size < self.least).any(axis=0)):
            below = [int(row) for row in np.flatnonzero(size[:, 0] < self.least[number])]
            own, least = [sizes[row] for row in below], int(self.least[number])
            bent_as = [(*one[:place], least, *one[place + 1 :]) for one in own]
            logs[below, number] += (times.curves_at(bent_as) - times.curves_at(own)) @ self.bends[
                number
            ]
        return logs

    def values(self) -> tuple[Formula, ...]:
        """As our own values."""

        def rounded(weights: Any, bends: Any, least: Any, most: Any) -> Formula:
            bent = tuple(bends) if bends.any() else ()
            exact = Formula(tuple(weights), bent, int(least), int(most))
            return Formula.from_list(exact.to_list())

        return tuple(map(rounded, self.weights, self.bends, self.least, self.most))


def fit_formulas(times: Times, rows: np.ndarray) -> Formulas:
    """The formulas of the shapes with these numbers."""
    logs, terms, curves = times.logs[rows], times.terms[rows], times.curves[rows]
    weights, bends = np.zeros(terms.shape[1:]), np.zeros((terms.shape[1], curves.shape[1]))
    variants = np.array([config.variant for config in times.configs])
    for variant in dict.fromkeys(variants):
        alike = variants == variant
        common = _weights(terms[:, alike].reshape(-1, terms.shape[2]), logs[:, alike].ravel())
        for number in np.flatnonzero(alike):
            if np.isfinite(logs[:, number]).sum() < LEAST_ROWS:
                weights[number] = common
            else:
                weights[number] = _weights(terms[:, number], logs[:, number])
                bends[number] = _bends(terms[:, number] @ weights[number], curves, logs[:, number])
    seen = np.isfinite(logs)
    size = np.array([times.sizes[row][times.place] for row in rows])[:, None]
    least = np.where(seen, size, np.iinfo(np.int64).max).min(axis=0)
    most = np.where(seen, size, 0).max(axis=0)
    return Formulas(weights, bends, np.minimum(least, most), most)


def _weights(terms: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Least squares of relative errors; zeros where nothing was measured."""
    seen = np.isfinite(logs)
    if not seen.any():
        return np.zeros(terms.shape[1])
    relative = terms[seen] / np.exp(logs[seen])[:, None]
    return np.asarray(nnls(relative, np.ones(len(relative)))[0])


def _bends(us: np.ndarray, curves: np.ndarray, logs: np.ndarray) -> np.ndarray:
    seen = np.isfinite(logs)
    missed, seen_curves = logs[seen] - np.log(np.maximum(us[seen], LEAST_US)), curves[seen]
    penalty = RIDGE * np.diag([0.1, *[1.0] * (curves.shape[1] - 1)])
    return np.asarray(
        np.linalg.solve(seen_curves.T @ seen_curves + penalty, seen_curves.T @ missed)
    )


def fastest(logs: np.ndarray, among: np.ndarray) -> np.ndarray:
    """[shapes]: the number of the config of least time among those allowed, -1 where there is none.
    Both [shapes, configs]."""
    allowed = np.where(among & np.isfinite(logs), logs, np.inf)
    return np.where(np.isfinite(allowed.min(axis=1)), allowed.argmin(axis=1), -1)


def held_out(data: Dataset) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers of shapes to learn from, and to judge: neither the family nor the size of those
    judged is among those learned from.

    The least and the greatest size stay, since nothing is answered beyond them; they are judged
    with only their family held out. With one family sizes alone are held out.
    """
    families = _dealt(data, FAMILY_GROUPS, lambda shape: shape.layer)
    sizes = _dealt(data, SIZE_GROUPS, size_of, keep_ends=True)
    for family in np.unique(families):
        apart = families != family if families.max() > 0 else np.ones(len(families), dtype=bool)
        for size in np.unique(sizes):
            judged = (families == family) & (sizes == size)
            learned = apart & (sizes != size) if size >= 0 else apart
            if judged.any() and learned.sum() >= LEAST_ROWS and not (learned & judged).any():
                yield np.flatnonzero(learned), np.flatnonzero(judged)


def _dealt(
    data: Dataset, groups: int, key: Callable[[Shape], object], keep_ends: bool = False
) -> np.ndarray:
    """[shapes]: which of so many groups each is held out with; its values are dealt in turn, in
    their order. -1 for the least and the greatest value where these are kept."""
    values = sorted(
        {key(shape) for shape in data.shapes}, key=lambda value: (isinstance(value, str), value)
    )
    inner = values[1:-1] if keep_ends else values
    number = {value: place % groups for place, value in enumerate(inner)}
    return np.array([number.get(key(shape), -1) for shape in data.shapes])


@dataclass(frozen=True)
class Judged:
    """Held-out answers by the number of the shape."""

    errors: dict[int, float]
    """Logarithm of measured over estimated speed-up over BSP, of the fused config estimated to be
    the fastest."""
    lost: dict[int, float]
    """Log regret of the config estimated to be the fastest."""


def judge(times: Times) -> Judged:
    """How formulas answer for shapes held out."""
    errors: dict[int, float] = {}
    lost: dict[int, float] = {}
    for learned, judged in held_out(times.data):
        guessed = fit_formulas(times, learned).logs(times, [times.sizes[row] for row in judged])
        logs = times.logs[judged]
        seen = np.isfinite(logs)
        forms, fused = fastest(guessed, seen & times.is_bsp), fastest(guessed, seen & ~times.is_bsp)
        for place, row in enumerate(judged):
            form, config = forms[place], fused[place]
            if form >= 0 and config >= 0:
                real, estimated = logs[place], guessed[place]
                errors[int(row)] = float(
                    real[form] - real[config] - estimated[form] + estimated[config]
                )
                named = config if estimated[config] < estimated[form] else form
                lost[int(row)] = max(float(real[named] - times.best[row]), 0.0)
    return Judged(errors, lost)
