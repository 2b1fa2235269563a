"""The tree of one layout as frozen values: splits on named features, and leaves that name the
configs to choose from.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Sizes = tuple[int, ...]
"""A shape's coordinates, in the order of `Shape.coordinates`."""


@dataclass(frozen=True)
class Leaf:
    """What may answer for the shapes that end here."""

    candidates: tuple[int, ...]
    """Numbers of configs, BSP's forms among them: whose formula gives the least time answers."""
    rows: int
    """Measured shapes that end here."""
    error: float
    """Standard deviation of the logarithm of measured over estimated speed-up here, of shapes held
    out."""
    near: tuple[Sizes, ...]
    """Measured shapes that say most of this leaf."""

    def to_list(self) -> list[Any]:
        return [list(self.candidates), self.rows, self.error, [list(sizes) for sizes in self.near]]


@dataclass(frozen=True)
class Split:
    """Shapes whose feature is at most `threshold` go to `below`, the others to `above`."""

    feature: str
    threshold: float
    below: Node
    above: Node


Node = Leaf | Split
DEEPEST = 32
"""Splits on the way to a leaf at most: each is one level of indentation in generated code."""


def walk(at: Node, features: Mapping[str, float]) -> tuple[Leaf, tuple[str, ...]]:
    """The leaf of these features, and the steps to it, as in `m = 64 <= 100`."""
    steps = []
    while isinstance(at, Split):
        low = features[at.feature] <= at.threshold
        steps.append(
            f"{at.feature} = {features[at.feature]:g} {'<=' if low else '>'} {at.threshold:g}"
        )
        at = at.below if low else at.above
    return at, tuple(steps)


def leaves_of(at: Node) -> Iterator[Leaf]:
    """From the smallest values to the largest: the order of the numbers that generated code
    returns."""
    if isinstance(at, Leaf):
        yield at
    else:
        yield from leaves_of(at.below)
        yield from leaves_of(at.above)


def features_of(at: Node) -> set[str]:
    """The features that its splits ask for."""
    if isinstance(at, Leaf):
        return set()
    return {at.feature} | features_of(at.below) | features_of(at.above)


def depth_of(at: Node) -> int:
    """The most splits on the way to a leaf."""
    return 0 if isinstance(at, Leaf) else 1 + max(depth_of(at.below), depth_of(at.above))


def pack(at: Node) -> list[Any]:
    """As plain data: a split is [feature, threshold, below, above]."""
    if isinstance(at, Leaf):
        return at.to_list()
    return [at.feature, at.threshold, pack(at.below), pack(at.above)]


def unpack(values: Any, left: int = DEEPEST) -> Node:
    """The node of such data; raises TypeError or ValueError where it is none."""
    match values:
        case [str() as feature, int() | float() as threshold, below, above]:
            if not left:
                raise ValueError(f"its tree has more than {DEEPEST} splits on the way to a leaf")
            return Split(
                feature, float(threshold), unpack(below, left - 1), unpack(above, left - 1)
            )
        case [[*numbers], int() as rows, int() | float() as error, [*near]] if _is_sizes(
            numbers
        ) and all(map(_is_sizes, near)):
            return Leaf(tuple(numbers), rows, float(error), tuple(map(tuple, near)))
    raise TypeError(f"a branch of the tree is {values!r:.80}")


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)
