"""The trained decision as frozen values: splits on named features, and leaves that name a config or abstain. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tftune.kernels.space import Config

OWN = "this very shape was measured"
"""The only step to an answer that is not in the tree."""


@dataclass(frozen=True)
class Leaf:
    """What to run for the shapes that end here."""

    config: Config
    bsp: Config
    """The best BSP form of these shapes: the answer where `config` may not be used."""
    rows: int
    """Training shapes that end here."""
    worst_regret: float
    """Of `config`, time over the oracle's, over the shapes that speak for it."""
    speedup_low: float | None
    """The lower bound of the speed-up over BSP, least over the shapes that speak for it; None where `config` is BSP."""
    reason: str
    """In words; it says how many shapes speak for `config`: of those that end here those where it was measured to be faster than BSP, or of
    those nearby, where there is none. A measured shape that is worse off has an answer of its own."""
    kernel_hash: str
    """Of `config`'s variant, as it was measured."""
    otherwise: Config | None = None
    """Of the same variant, for shapes that `config` does not fit."""

    @property
    def abstains(self) -> bool:
        return self.config.variant == "bsp"

    def to_dict(self) -> dict[str, Any]:
        also = {} if self.otherwise is None else {"otherwise": self.otherwise.to_dict()}
        return {
            "config": self.config.to_dict(), **also, "bsp": self.bsp.to_dict(), "rows": self.rows, "worst_regret": self.worst_regret,
            "speedup_low": self.speedup_low, "reason": self.reason, "kernel_hash": self.kernel_hash,
        }  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Shapes whose feature is at most `threshold` go to `below`, the others to `above`."""

    feature: str
    threshold: float
    below: Node
    above: Node


Node = Leaf | Split


@dataclass(frozen=True)
class Tree:
    """One trained tree. `measured`: for each field of a shape, the values that training shapes had."""

    op: str
    mode: str
    root: Node
    measured: tuple[tuple[str, tuple[int | str, ...]], ...]
    own: tuple[tuple[tuple[int | str, ...], Leaf], ...] = ()
    """Shapes (the values of their fields) that were measured with something faster than what their leaf names, and that answer."""

    def walk(self, features: Mapping[str, float]) -> tuple[Leaf, tuple[str, ...]]:
        """The leaf of these features, and the steps to it, as in `m = 64 <= 100`."""
        return walk(self.root, features)

    def answer(self, shape: Sequence[int | str], features: Mapping[str, float]) -> tuple[Leaf, tuple[str, ...]]:
        """As `walk`, but for a shape (the values of its fields) that has an answer of its own."""
        found = dict(self.own).get(tuple(shape))
        return (found, (OWN,)) if found else self.walk(features)

    def leaves(self) -> Iterator[Leaf]:
        """From the smallest values to the largest."""
        yield from leaves_of(self.root)

    def answers(self) -> Iterator[Leaf]:
        """The leaves, then the answers of single shapes: in the order of the numbers that a compiled tree returns."""
        yield from self.leaves()
        yield from (leaf for _, leaf in self.own)

    @property
    def depth(self) -> int:
        """The most splits on the way to a leaf."""
        return _depth(self.root)

    def features(self) -> set[str]:
        """The features that its splits ask for."""
        return _features(self.root)


def own_leaf(config: Config, bsp: Config, speedup_low: float | None, kernel_hash: str) -> Leaf:
    """The answer of a single shape: the fastest that is known there."""
    over = "" if speedup_low is None else f", at least {speedup_low:.2f} times as fast as BSP"
    label = "BSP" if config.variant == "bsp" else config.variant
    return Leaf(config, bsp, 1, 1.0, speedup_low, f"{label} is the fastest known on this very shape{over}", kernel_hash)


def walk(at: Node, features: Mapping[str, float]) -> tuple[Leaf, tuple[str, ...]]:
    """As `Tree.walk`, from any node."""
    steps = []
    while isinstance(at, Split):
        low = features[at.feature] <= at.threshold
        steps.append(f"{at.feature} = {features[at.feature]:g} {'<=' if low else '>'} {at.threshold:g}")
        at = at.below if low else at.above
    return at, tuple(steps)


def leaves_of(at: Node) -> Iterator[Leaf]:
    """From the smallest values to the largest."""
    if isinstance(at, Leaf):
        yield at
    else:
        yield from leaves_of(at.below)
        yield from leaves_of(at.above)


def _features(at: Node) -> set[str]:
    return set() if isinstance(at, Leaf) else {at.feature} | _features(at.below) | _features(at.above)


def _depth(at: Node) -> int:
    return 0 if isinstance(at, Leaf) else 1 + max(_depth(at.below), _depth(at.above))
