"""Where to split: what a tree loses is the criterion, one split is looked ahead, and a split that saves too little is not made."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tftune.models.grow import Branch, Grower


def cost(branch: Branch, losses: np.ndarray) -> float:
    """What the leaves lose together."""
    if branch.sides:
        return sum(cost(side, losses) for side in branch.sides)
    return float(losses[branch.rows].sum(axis=0).min())


def depth(branch: Branch) -> int:
    return 1 + max(map(depth, branch.sides)) if branch.sides else 0


def test_it_splits_where_another_config_is_better() -> None:
    points = np.array([[float(size), 7.0] for size in range(10)])
    losses = np.array([[0.0, 0.5] if size < 4 else [0.5, 0.0] for size in range(10)])
    found = Grower(losses, points, max_depth=3, least_gain=0.01).grow()
    assert (found.feature, found.between) == (0, (3.0, 4.0)) and depth(found) == 1 and cost(found, losses) == 0


def test_one_split_is_looked_ahead() -> None:
    """An exclusive or: no first split saves anything, whichever it is; two do."""
    points = np.array(list(itertools.product(range(4), range(4))), dtype=float)
    losses = np.array([[0.0, 1.0] if (x < 2) == (y < 2) else [1.0, 0.0] for x, y in points])
    assert cost(Grower(losses, points, max_depth=2, least_gain=0.01).grow(), losses) == 0


def test_a_split_must_save_its_gain() -> None:
    points, losses = np.array([[0.0], [1.0]]), np.array([[0.0, 0.1], [0.1, 0.0]])
    assert depth(Grower(losses, points, 3, least_gain=0.05).grow()) == 1
    assert depth(Grower(losses, points, 3, least_gain=0.11).grow()) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_a_tree_never_loses_more_than_one_config_and_keeps_every_row(rows: list[tuple[int, int, float, float]]) -> None:
    table = np.array(rows, dtype=float)
    points, losses = table[:, :2], table[:, 2:]
    found = Grower(losses, points, max_depth=4, least_gain=0.01).grow()
    assert cost(found, losses) <= losses.sum(axis=0).min() + 1e-9 and depth(found) <= 4
    assert sorted(leaf_rows(found)) == list(range(len(rows)))


def leaf_rows(branch: Branch) -> list[int]:
    return [row for side in branch.sides for row in leaf_rows(side)] if branch.sides else [int(row) for row in branch.rows]
