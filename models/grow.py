"""Where to split: the tree that loses least time over its shapes when each leaf names one config.

Time lost is the criterion itself, not the variance of a label: a split is worth what the best config of either side saves over the best
one for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

BARRED = 0.1
"""Log regret added, while splits are sought, for a config that no leaf with this shape may name: the shape is split off where it can be."""


LIKELY, AHEAD, FEW = 3, 12, 8
"""Splits of each feature, and of all, that are looked at one split further; with so few rows the best is taken at once."""


@dataclass(frozen=True, order=True)
class Cut:
    """A split: what both sides lose, and the feature's two values between which it is."""

    cost: float
    feature: int
    low: float
    high: float


@dataclass(frozen=True)
class Branch:
    """A split of these rows (numbers) by a feature (number) between two values; or a leaf, where there are no sides."""

    rows: np.ndarray
    feature: int = -1
    between: tuple[float, float] = (0.0, 0.0)
    sides: tuple[Branch, ...] = ()


@dataclass(frozen=True)
class Grower:
    """Finds the splits, looking one split ahead. `losses` [rows, configs] are weighted; `points` [rows, features]."""

    losses: np.ndarray
    points: np.ndarray
    max_depth: int
    least_gain: float
    """What a split must save, in the unit of `losses`."""
    _known: dict[bytes, float] = field(default_factory=dict)
    """What a part loses, split once at most: splits of several features make the same parts."""

    def grow(self) -> Branch:
        return self._branch(np.arange(len(self.losses)), self.max_depth)[0]

    def _branch(self, rows: np.ndarray, depth: int) -> tuple[Branch, float]:
        """The branch, and what it costs: its losses, and the least gain for each split below."""
        alone = float(self.losses[rows].sum(axis=0).min())
        found = self._best_split(rows) if depth and alone > self.least_gain else None
        if found is None:
            return Branch(rows), alone
        sides = [self._branch(part, depth - 1) for part in self._parts(rows, found)]
        cost = self.least_gain + sum(cost for _, cost in sides)
        if cost >= alone:
            return Branch(rows), alone
        return Branch(rows, found.feature, (found.low, found.high), tuple(side for side, _ in sides)), cost

    def _parts(self, rows: np.ndarray, cut: Cut) -> tuple[np.ndarray, np.ndarray]:
        below = self.points[rows, cut.feature] <= cut.low
        return rows[below], rows[~below]

    def _best_split(self, rows: np.ndarray) -> Cut | None:
        """Of the likeliest splits the one whose sides lose least once they are split again."""
        cuts = sorted(self._cuts(rows, LIKELY))[: AHEAD if len(rows) > FEW else 1]
        return min(cuts, key=lambda cut: sum(self._split_once(part) for part in self._parts(rows, cut)), default=None)

    def _split_once(self, rows: np.ndarray) -> float:
        part = rows.tobytes()
        if part not in self._known:
            alone = float(self.losses[rows].sum(axis=0).min())
            self._known[part] = min([alone, *(cut.cost for cut in self._cuts(rows, 1))])
        return self._known[part]

    def _cuts(self, rows: np.ndarray, limit: int) -> Iterator[Cut]:
        """Of each feature the splits that lose least, at most so many. Features that rank these rows alike are summed once."""
        order = rows[np.argsort(self.points[rows], axis=0, kind="stable").T]
        values = self.points.T[np.arange(len(order))[:, None], order]
        ranks = [ranked.tobytes() for ranked in order]
        kept = sorted({ranks.index(rank) for rank in ranks})
        sums = np.cumsum(self.losses[order[kept]], axis=1)
        costs = sums[:, :-1].min(axis=2) + (sums[:, -1:] - sums[:, :-1]).min(axis=2)
        costs = costs[[kept.index(ranks.index(rank)) for rank in ranks]]
        costs[values[:, :-1] >= values[:, 1:]] = np.inf
        for feature, places in enumerate(np.argsort(costs, axis=1, kind="stable")[:, :limit].tolist()):
            for place in places:
                if costs[feature, place] < np.inf:
                    yield Cut(float(costs[feature, place]), feature, float(values[feature, place]), float(values[feature, place + 1]))
