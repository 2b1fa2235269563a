"""The tree of a matrix: grown on the measured shapes and on those between them, whose losses are estimated.

A leaf names a fused config only if measured shapes speak for it: its own, none of which may be known to be no faster than BSP with it,
and one of which must be faster with confidence; or, where none lies in it, or none of the matrix, those nearest to it, too, of which no
more may speak against it than for it. An estimate says where to split, and which of the configs that are left loses least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tftune.kernels.distance import distance
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.between import Estimate, between
from tftune.models.dataset import Dataset
from tftune.models.features import names, vector
from tftune.models.grow import BARRED, Branch, Grower
from tftune.models.leaves import distinct, make_leaf, measured, round_between
from tftune.models.tree import Leaf, Node, Split, Tree

DEPTH = 7
LEAST_GAIN = 0.2
"""Log regret of one measured shape, summed, that a split must save."""
BETWEEN = 3.0
"""Weight of all shapes between, relative to that of all measured ones."""
CAUTION = 0.02
"""Added to the estimated loss of fused configs: what is 2 % faster by an estimate is not known to be faster."""
NEAREST = 3
"""Measured shapes that speak for or against a config at each shape between."""


@dataclass(frozen=True, eq=False)
class Grown:
    """What the leaves of one dataset are made from."""

    dataset: Dataset

    @cached_property
    def configs(self) -> tuple[Config, ...]:
        """The strongest forms of BSP, then what was measured on every shape."""
        forms = sorted({self.dataset.bsp(shape) for shape in self.dataset.shapes})
        return (*forms, *(config for config in self.dataset.listed if config.variant != "bsp"))

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
        data, many = self.dataset, len(self.dataset.shapes)
        fused = np.array([config.variant != "bsp" for config in self.configs])
        guessed = Estimate(data).losses(self.shapes, self.configs) + CAUTION * fused
        known = np.array([[data.loss(shape, config) for config in self.configs] for shape in data.shapes])
        known = np.where(self._untried, guessed[:many], known)
        return np.concatenate([known, guessed[many:] * BETWEEN * many / max(len(guessed) - many, 1)])

    @cached_property
    def _untried(self) -> np.ndarray:
        """[measured shapes, configs]: possible, at a shape that is none of the matrix, and never tried there."""
        data = self.dataset
        return np.array(
            [[config not in data.outcomes[shape] and data.why_invalid(shape, config) is None for config in self.configs]
             for shape in data.shapes]
        )  # fmt: skip

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
        """The config that loses least over these shapes, of those that the measured ones speak for."""
        members, witnesses = rows[rows < len(self.dataset.shapes)], self._witnesses(rows)
        against, sure = self.barred[witnesses].sum(axis=0), self.sure[witnesses]
        spoken_for = sure.any(axis=0) & (against <= sure.sum(axis=0)) & ~self.barred[members].any(axis=0)
        totals = np.where(spoken_for, self.losses[rows].sum(axis=0), np.inf)
        config = self.configs[int(totals.argmin())]
        shapes = [self.dataset.shapes[place] for place in witnesses]
        held = [shape for shape in shapes if config.variant == "bsp" or self.dataset.allowed(shape, config)]
        return make_leaf(self.dataset, held, self.configs, config, rows=len(members))

    def _witnesses(self, rows: np.ndarray) -> np.ndarray:
        """The measured shapes of a leaf; where none of them is of the matrix, so that few of the configs were tried there, those nearest
        to its shapes, too."""
        members, matrix = rows[rows < len(self.dataset.shapes)], set(self.dataset.matrix or self.dataset.shapes)
        if any(self.dataset.shapes[place] in matrix for place in members):
            return members
        return np.unique(np.concatenate([members, *(self._nearest[place] for place in rows)]))

    @cached_property
    def _nearest(self) -> np.ndarray:
        """[shapes, NEAREST]: the numbers of measured shapes, of the matrix where there is one; itself, where it is one of them."""
        data, matrix = self.dataset, set(self.dataset.matrix or self.dataset.shapes)
        far = np.array([[distance(shape, other) if other in matrix else np.inf for other in data.shapes] for shape in self.shapes])
        return np.argsort(far, axis=1, kind="stable")[:, :NEAREST]
