"""The tree of measured rows: grown on the measured shapes and on those between them, whose losses are estimated.

Its configs are those of the matrix, where there is one. Rows of searches alone have most configs at few shapes: of the best of each shape
those are taken that keep the time lost small everywhere, what was not tried being estimated.

A leaf names a fused config only if a measured shape in it, or nearest to one of it, is faster than BSP with confidence with it, and if its
shapes are on the mean at least LEAST_SPEEDUP times as fast as BSP with it, by the lower bound where that was measured, elsewhere by the
estimate. A measured shape that is not gets an answer of its own (`train.own_answers`). An estimate also says where to split, and which of
the configs that are left loses least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tftune.kernels.distance import OTHER_LAYOUT
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.between import Estimate, between
from tftune.models.dataset import MATRIX_SIZE, Dataset, greedy
from tftune.models.features import names, vector
from tftune.models.grow import BARRED, Branch, Grower
from tftune.models.leaves import distinct, make_leaf, measured, round_between
from tftune.models.tree import Leaf, Node, Split, Tree

DEPTH = 12
LEAST_GAIN = 0.05
"""Log regret of one measured shape, summed, that a split must save."""
BETWEEN = 10.0
"""Weight of all shapes between, relative to that of all measured ones: these have answers of their own where a leaf is bad for them."""
TAIL = 0.1
"""Log regret that counts twice: a shape that loses much counts for more than many that lose a little."""
LEAST_SPEEDUP = 1.02
NEAR = 1.05
"""Time over the fastest's up to which a config may stand for a shape where there is no matrix."""
NEAREST = 3
"""Measured shapes that speak for a config at each shape."""
FAILED = 0.8
"""The speed-up that what failed counts with."""
BESIDE = 1.0
"""Doublings, summed over the sizes, from a leaf to the shapes that its other config is chosen for."""


@dataclass(frozen=True, eq=False)
class Grown:
    """What the leaves of one dataset are made from."""

    dataset: Dataset

    @cached_property
    def configs(self) -> tuple[Config, ...]:
        """The strongest forms of BSP, then what was measured on every shape, or covers them."""
        listed = self.dataset.listed or self._cover()
        return (*self._forms, *(config for config in listed if config.variant != "bsp"))

    @cached_property
    def _forms(self) -> tuple[Config, ...]:
        return tuple(sorted({self.dataset.bsp(shape) for shape in self.dataset.shapes}))

    def _cover(self) -> tuple[Config, ...]:
        """Of the configs that come near the fastest of some shape those that together lose least at all of them."""
        data, many = self.dataset, len(self._forms)
        near = {c for shape in data.shapes for c, us in data.times_us[shape].items() if us <= NEAR * data.oracle(shape).us}
        configs = (*self._forms, *sorted(config for config in near if config.variant != "bsp"))
        possible = self._possible(data.shapes, configs)
        lost = self._lost(configs, possible, self._estimate.losses(data.shapes, configs, possible))
        fused = dict(zip(configs[many:], lost[:, many:].T.tolist(), strict=True))
        return tuple(sorted(greedy(fused, lost[:, :many].min(axis=1).tolist(), MATRIX_SIZE - many)))

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The measured ones, then those between."""
        return (*self.dataset.shapes, *between(self.dataset.shapes))

    @cached_property
    def barred(self) -> np.ndarray:
        """[measured shapes, configs]: tried there, and not faster than BSP with confidence."""
        data = self.dataset
        return np.array(
            [[config in data.outcomes[shape] and not data.allowed(shape, config) for config in self.configs] for shape in data.shapes]
        )

    @cached_property
    def sure(self) -> np.ndarray:
        """[measured shapes, configs]: BSP, or faster than it with confidence."""
        data = self.dataset
        return np.array([[config.variant == "bsp" or data.allowed(shape, config) for config in self.configs] for shape in data.shapes])

    @cached_property
    def losses(self) -> np.ndarray:
        """[shapes, configs], weighted."""
        many, guessed = len(self.dataset.shapes), self._guessed
        lost = np.concatenate([self._lost(self.configs, self.possible[:many], guessed[:many]), guessed[many:]])
        lost *= 1 + lost / TAIL
        lost[many:] *= BETWEEN * many / max(len(lost) - many, 1)
        return lost

    def _lost(self, configs: Sequence[Config], possible: np.ndarray, guessed: np.ndarray) -> np.ndarray:
        """[measured shapes, configs]: known, or guessed for what is possible at a shape that is none of the matrix and was never tried."""
        data = self.dataset
        known = np.array([[data.loss(shape, config) for config in configs] for shape in data.shapes])
        tried = np.array([[config in data.outcomes[shape] for config in configs] for shape in data.shapes])
        return np.where(possible & ~tried, guessed, known)

    @cached_property
    def _estimate(self) -> Estimate:
        return Estimate(self.dataset)

    @cached_property
    def _guessed(self) -> np.ndarray:
        """[shapes, configs]: estimated."""
        return self._estimate.losses(self.shapes, self.configs, self.possible)

    @cached_property
    def gains(self) -> np.ndarray:
        """[shapes, configs]: the logarithm of the speed-up over BSP; its lower bound where it was measured, else estimated."""
        data, bsp = self.dataset, np.array([config.variant == "bsp" for config in self.configs])
        found: np.ndarray = self._guessed[:, bsp].min(axis=1)[:, None] - self._guessed
        for row, shape in enumerate(data.shapes):
            for column, config in enumerate(self.configs):
                if config in data.outcomes[shape] and not bsp[column]:
                    found[row, column] = math.log(max(data.speedup_low(shape, config), FAILED))
        return found

    @cached_property
    def possible(self) -> np.ndarray:
        """[shapes, configs]: what the rules allow."""
        return self._possible(self.shapes, self.configs)

    def _possible(self, shapes: Sequence[Shape], configs: Sequence[Config]) -> np.ndarray:
        return np.array([[self.dataset.why_invalid(shape, config) is None for config in configs] for shape in shapes])

    def tree(self, max_depth: int = DEPTH) -> Tree:
        data, many = self.dataset, len(self.dataset.shapes)
        rows = [dict(zip(names(data.op), vector(data.op, shape), strict=True)) for shape in self.shapes]
        told = distinct(rows)
        points = np.array([[row[name] for name in told] for row in rows])
        losses = self.losses.copy()
        losses[:many] += BARRED * self.barred
        root = Grower(losses, points, max_depth, LEAST_GAIN).grow()
        return Tree(data.op, data.mode, self._node(root, told), measured(data.shapes))

    def _node(self, branch: Branch, told: Sequence[str]) -> Node:
        if not branch.sides:
            return self._leaf(branch.rows)
        below, above = (self._node(side, told) for side in branch.sides)
        if isinstance(below, Leaf) and isinstance(above, Leaf) and below.config == above.config:
            return self._leaf(branch.rows)
        return Split(told[branch.feature], round_between(*branch.between), below, above)

    def _leaf(self, rows: np.ndarray) -> Leaf:
        """The config that loses least over these shapes, of those that are spoken for; and the one of its variant that does where its
        rules stand against it nearby."""
        members, bsp = rows[rows < len(self.dataset.shapes)], np.array([config.variant == "bsp" for config in self.configs])
        near = np.unique(np.concatenate([members, *(self._nearest[place] for place in rows)]))
        gained = self.gains[rows].mean(axis=0) >= math.log(LEAST_SPEEDUP)
        spoken_for = bsp | (self.sure[near].any(axis=0) & gained)
        chosen = int(np.where(spoken_for, self.losses[rows].sum(axis=0), np.inf).argmin())
        config = self.configs[chosen]
        evidence = members if self.sure[members, chosen].any() else near
        asked = [self.dataset.shapes[place] for place in evidence]
        held = [shape for shape, sure in zip(asked, self.sure[evidence, chosen], strict=True) if sure]
        leaf = make_leaf(self.dataset, held, self.configs, config, rows=len(members), asked=len(asked), nearby=evidence is near)
        return replace(leaf, otherwise=None if leaf.abstains else self._otherwise(rows, chosen, spoken_for))

    def _otherwise(self, rows: np.ndarray, chosen: int, spoken_for: np.ndarray) -> Config | None:
        """Of the configs of the same variant the one that loses least where this one is impossible, in and beside the leaf."""
        beside = (self._far[:, rows].min(axis=1) <= BESIDE) & ~self.possible[:, chosen]
        alike = spoken_for & [config.variant == self.configs[chosen].variant for config in self.configs]
        helps = alike & self.possible[beside].any(axis=0)
        totals = np.where(helps, self._guessed[beside].sum(axis=0), np.inf)
        return self.configs[int(totals.argmin())] if helps.any() else None

    @cached_property
    def _far(self) -> np.ndarray:
        """[shapes, shapes]: how far two shapes are apart (`kernels.distance`)."""
        fields = [shape.to_dict() for shape in self.shapes]
        found = np.zeros((len(fields), len(fields)))
        for name, value in fields[0].items():
            column = np.array([shape[name] for shape in fields])
            if isinstance(value, int):
                column = np.log2(np.maximum(column, 0.5))
                found += np.abs(column[:, None] - column)
            else:
                found += OTHER_LAYOUT * (column[:, None] != column)
        return found

    @cached_property
    def _nearest(self) -> np.ndarray:
        """[shapes, NEAREST]: the numbers of measured shapes, of the matrix where there is one; itself, where it is one of them."""
        matrix = set(self.dataset.matrix or self.dataset.shapes)
        listed = np.array([shape in matrix for shape in self.dataset.shapes])
        far = np.where(listed, self._far[:, : len(listed)], np.inf)
        return np.argsort(far, axis=1, kind="stable")[:, :NEAREST]
