"""The trained decision as frozen values: splits on named features, and leaves that name a config or abstain. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tftune.kernels.space import Config

OWN = "this very shape was measured"
"""The only step to an answer that is not in the tree."""


OWN_FIELDS = ("config", "bsp", "speedup_low", "kernel_hash")
"""What is written of such an answer: all else follows."""


@dataclass(frozen=True)
class Leaf:
    """What to run for the shapes that end here."""

    config: Config
    bsp: Config
    """The best BSP form of these shapes: the answer where `config` may not be used."""
    rows: int
    """Training shapes that end here."""
    worst_regret: float
    """Of `config` over those shapes: time over the oracle's."""
    speedup_low: float | None
    """The lower bound of the speed-up over BSP, least over those shapes; None where `config` is BSP."""
    reason: str
    kernel_hash: str
    """Of `config`'s variant, as it was measured."""

    @property
    def abstains(self) -> bool:
        return self.config.variant == "bsp"

    def to_dict(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(), "bsp": self.bsp.to_dict(), "rows": self.rows, "worst_regret": self.worst_regret,
            "speedup_low": self.speedup_low, "reason": self.reason, "kernel_hash": self.kernel_hash,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Leaf:
        """Raises KeyError or TypeError where a part is missing, unknown, or of another kind."""
        leaf = cls(**{**values, "config": Config.from_dict(values["config"]), "bsp": Config.from_dict(values["bsp"])})
        knobs = [value for config in (leaf.config, leaf.bsp) for value in config.to_dict().values()]
        texts, numbers = (leaf.reason, leaf.kernel_hash), (leaf.rows, leaf.worst_regret, leaf.speedup_low or 0)
        if not all(isinstance(v, str | int) for v in knobs) or not all(isinstance(v, str) for v in texts) or not leaf.reason:
            raise TypeError(f"a leaf holds {dict(values)}")
        if not all(isinstance(v, int | float) for v in numbers):
            raise TypeError(f"a leaf holds the numbers {numbers}")
        return leaf


@dataclass(frozen=True)
class Split:
    """Shapes whose feature is at most `threshold` go to `below`, the others to `above`."""

    feature: str
    threshold: float
    below: Node
    above: Node

    def to_dict(self) -> dict[str, Any]:
        return {"feature": self.feature, "threshold": self.threshold, "below": self.below.to_dict(), "above": self.above.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Split:
        return cls(values["feature"], float(values["threshold"]), node(values["below"]), node(values["above"]))


Node = Leaf | Split


def node(values: Mapping[str, Any]) -> Node:
    """The leaf or split of such a mapping; raises KeyError, TypeError or ValueError where it is neither."""
    return Split.from_dict(values) if "feature" in values else Leaf.from_dict(values)


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
        yield from _leaves(self.root)

    def answers(self) -> Iterator[Leaf]:
        """The leaves, then the answers of single shapes: in the order of the numbers that a compiled tree returns."""
        yield from self.leaves()
        yield from (leaf for _, leaf in self.own)

    def features(self) -> set[str]:
        """The features that its splits ask for."""
        return _features(self.root)

    def to_dict(self) -> dict[str, Any]:
        measured = {name: list(values) for name, values in self.measured}
        own = [{"shape": list(shape), **{name: leaf.to_dict()[name] for name in OWN_FIELDS}} for shape, leaf in self.own]
        return {"op": self.op, "mode": self.mode, "measured": measured, "root": self.root.to_dict(), "own": own}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Tree:
        measured = tuple((name, tuple(seen)) for name, seen in sorted(values["measured"].items()))
        return cls(values["op"], values["mode"], node(values["root"]), measured, tuple(map(_own, values.get("own", []))))


def own_leaf(config: Config, bsp: Config, speedup_low: float | None, kernel_hash: str) -> Leaf:
    """The answer of a single shape: the fastest that is known there."""
    over = "" if speedup_low is None else f", at least {speedup_low:.2f} times as fast as BSP"
    label = "BSP" if config.variant == "bsp" else config.variant
    return Leaf(config, bsp, 1, 1.0, speedup_low, f"{label} is the fastest known on this very shape{over}", kernel_hash)


def _own(values: Mapping[str, Any]) -> tuple[tuple[int | str, ...], Leaf]:
    """One answer of `Tree.own`; raises KeyError or TypeError where it is none."""
    shape, parts = tuple(values["shape"]), {name: value for name, value in values.items() if name != "shape"}
    config, bsp = (Config.from_dict(parts.pop(name)) for name in ("config", "bsp"))
    leaf = own_leaf(config, bsp, **parts)
    Leaf.from_dict(leaf.to_dict())  # raises where a part is of another kind
    if not shape or not all(isinstance(value, int | str) for value in shape):
        raise TypeError(f"a shape of its own holds {shape}")
    return shape, leaf


def walk(at: Node, features: Mapping[str, float]) -> tuple[Leaf, tuple[str, ...]]:
    """As `Tree.walk`, from any node."""
    steps = []
    while isinstance(at, Split):
        low = features[at.feature] <= at.threshold
        steps.append(f"{at.feature} = {features[at.feature]:g} {'<=' if low else '>'} {at.threshold:g}")
        at = at.below if low else at.above
    return at, tuple(steps)


def _leaves(at: Node) -> Iterator[Leaf]:
    if isinstance(at, Leaf):
        yield at
    else:
        yield from _leaves(at.below)
        yield from _leaves(at.above)


def _features(at: Node) -> set[str]:
    return set() if isinstance(at, Leaf) else {at.feature} | _features(at.below) | _features(at.above)
