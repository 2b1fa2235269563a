"""Random shapes of a layout, what each config is estimated to take there, and trees over them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.tree import BaseDecisionTree, DecisionTreeRegressor

from tftune.kernels.core.shape import Shape
from tftune.models.dataset import Dataset
from tftune.models.features import vector
from tftune.models.formula.arrays import Times
from tftune.models.formula.fit import fit_formulas
from tftune.models.portfolio import greedy
from tftune.models.tree.tree import Leaf, Node, Split

LOST, LOST_MOST = 0.003, 0.05
"""Log time that the candidates of a leaf may lose to all configs, by their formulas: in the mean
over shapes, and at 99 of 100."""
LEAST_SHAPES = 20
"""Lattice shapes in a leaf at least."""
CAPPED = 0.2
"""Log time that a config loses counts up to this: how much too slow it is makes no difference to a
choice."""
CANDIDATES, FORMS = 4, 2
"""Fused configs of a leaf, and forms of BSP, at most: each costs 2 us when a shape is first asked
for."""
SMALLEST_SHARE = 3e-4
"""Mean log time over the shapes of a leaf that a further candidate must save."""
LATTICE = 2000
"""Random shapes among the measured ones, on which a leaf's candidates are found."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Shapes, and what each config takes, or is estimated to take, there."""

    features: np.ndarray
    """[shapes, features]."""
    logs: np.ndarray
    """[shapes, configs]: logarithms of microseconds, infinite where a config is not possible."""
    is_bsp: np.ndarray

    @classmethod
    def of(cls, times: Times) -> Lattice:
        data, shapes = times.data, _random_shapes(times.data)
        formulas = fit_formulas(times, np.arange(len(data.shapes)))
        logs = formulas.logs(times, [shape.sizes_key for shape in shapes])
        possible = np.isfinite(logs) & times.possible_at(shapes)
        features = np.array([vector(data.op, shape) for shape in shapes])
        return cls(features, np.where(possible, logs, np.inf), times.is_bsp)

    @property
    def lost(self) -> np.ndarray:
        """[shapes, configs]: log time over the fastest of the same kind, a fused config or a form
        of BSP; CAPPED at most."""
        capped = np.full(self.logs.shape, CAPPED)
        for kind in (self.is_bsp, ~self.is_bsp):
            part = self.logs[:, kind]
            least = part.min(axis=1, keepdims=True, initial=np.inf)
            lost = part - np.where(np.isfinite(least), least, 0.0)
            capped[:, kind] = np.minimum(np.where(np.isfinite(part), lost, CAPPED), CAPPED)
        return capped

    def tree(self, leaves: int, least: int = LEAST_SHAPES) -> DecisionTreeRegressor:
        """scikit-learn's tree of what each config loses, of so many leaves at most, each with so
        many shapes at least."""
        least = least if leaves > 1 else len(self.features)
        tree = DecisionTreeRegressor(
            max_leaf_nodes=max(leaves, 2), min_samples_leaf=least, random_state=0
        )
        return tree.fit(self.features, self.lost)

    def candidates(self, tree: DecisionTreeRegressor) -> dict[int, list[int]]:
        """The numbers of the configs to choose from in each leaf, by scikit-learn's number of the
        leaf."""
        ends, lost = tree.apply(self.features), self.lost
        kinds = ((~self.is_bsp, CANDIDATES), (self.is_bsp, FORMS))
        return {
            int(end): [
                number
                for kind, most in kinds
                for number in _covering(lost[ends == end], kind, most)
            ]
            for end in np.unique(ends)
        }

    def is_enough(
        self, tree: DecisionTreeRegressor, candidates: Mapping[int, Sequence[int]]
    ) -> bool:
        """Whether the candidates of the leaves lose little: the mean over shapes, and all but one
        in 100."""
        lost, ends = np.where(self.is_bsp, np.inf, self.lost), tree.apply(self.features)
        least = np.array(
            [lost[row, candidates[end]].min(initial=CAPPED) for row, end in enumerate(ends)]
        )
        return bool(least.mean() <= LOST and np.quantile(least, 0.99) <= LOST_MOST)


def _covering(lost: np.ndarray, kind: np.ndarray, most: int) -> list[int]:
    """At most so many configs of a kind that together lose least at these shapes, greedily. `lost`:
    [shapes, configs]."""
    columns = np.flatnonzero(kind & (lost < CAPPED).any(axis=0))
    had = np.full(len(lost), CAPPED)
    picked = greedy(lost[:, columns], had, most, SMALLEST_SHARE)
    picked = picked or greedy(lost[:, columns], had, 1)  # one, however little it saves
    return [int(columns[number]) for number in picked]


def _random_shapes(data: Dataset) -> list[Shape]:
    """Random shapes of the layout: the size that grows anywhere between the least and the greatest
    measured, the others near those of a measured family."""
    random, first = np.random.default_rng(0), data.shapes[0]
    columns = {
        name: sorted({getattr(shape, name) for shape in data.shapes})
        for name in first.coordinates()
    }
    units = {name: math.gcd(*seen) for name, seen in columns.items()}
    shapes: dict[Shape, None] = {}
    for _ in range(4 * LATTICE):
        family, sizes = data.shapes[int(random.integers(len(data.shapes)))], dict[str, int]()
        for name, seen in columns.items():
            if name == first.SIZE:
                sizes[name] = round(math.exp(random.uniform(math.log(seen[0]), math.log(seen[-1]))))
            else:
                near, unit = getattr(family, name) * 2 ** random.uniform(-0.5, 0.5), units[name]
                sizes[name] = max(round(min(max(near, seen[0]), seen[-1]) / unit), 1) * unit
        if (shape := _like(first, sizes)) is not None:
            shapes[shape] = None
        if len(shapes) == LATTICE:
            break
    return list(shapes) or list(data.shapes)


def _like(shape: Shape, sizes: dict[str, int]) -> Shape | None:
    """The shape with these sizes, the one that grows rounded up to what ranks can share; None where
    they do not fit each other."""
    fields = shape.to_dict() | sizes
    world = fields.get("world", 1)
    for size in (sizes[shape.SIZE], -(-sizes[shape.SIZE] // world) * world):
        try:
            return type(shape)(**fields | {shape.SIZE: size})
        except ValueError:
            continue
    return None


def plain_tree(
    known: Sequence[str], features: np.ndarray, tree: BaseDecisionTree, leaves: Mapping[int, Leaf]
) -> Node:
    """Our own values of scikit-learn's tree, with thresholds that read well. `known`: names of the
    features; `leaves`: what answers in each, by scikit-learn's number of it."""
    arrays = tree.tree_
    paths = tree.decision_path(features).toarray().astype(bool)

    def node(index: int) -> Node:
        if arrays.children_left[index] < 0:
            return leaves[index]
        below = arrays.children_left[index]
        above = arrays.children_right[index]
        column = int(arrays.feature[index])
        low = float(features[paths[:, below], column].max())
        high = float(features[paths[:, above], column].min())
        sides = node(below), node(above)
        return _merged(*sides) or Split(known[column], round_between(low, high), *sides)

    return node(0)


def round_between(low: float, high: float, part: tuple[float, float] = (0.25, 0.75)) -> float:
    """A number t with low <= t < high that reads well, from a part of the gap: a power of two, else
    one of few digits.

    >>> round_between(64, 128), round_between(64, 256), round_between(1, 2), round_between(0, 1)
    (100.0, 128.0, 1.5, 0.5)
    """
    least, most = (low + share * (high - low) for share in part)
    middle = (least + most) / 2
    tried = [2.0 ** round(math.log2(middle))] if middle >= 1 else []
    tried += [float(f"{middle:.{digits}g}") for digits in range(1, 17)]
    return next((value for value in tried if least <= value <= most and value < high), low)


def _merged(below: Node, above: Node) -> Leaf | None:
    """One leaf in place of two with the same candidates."""
    if not isinstance(below, Leaf) or not isinstance(above, Leaf):
        return None
    if set(below.candidates) != set(above.candidates):
        return None
    near = tuple(dict.fromkeys([*below.near, *above.near]))
    return Leaf(below.candidates, below.rows + above.rows, max(below.error, above.error), near[:3])
