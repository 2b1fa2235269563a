"""Why a config was selected: the path in the tree, its leaf, and the measured shapes nearest to the one asked about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tftune.db.trial import Trial
from tftune.diff import held_out
from tftune.kernels.shape import Shape
from tftune.models.selector import Artifact, Selection, Selector
from tftune.models.tree import Leaf, Node, Tree
from tftune.models.validity import stamp
from tftune.tables import Line, label, lines, measurement, ratio_text, variants_of


@dataclass(frozen=True)
class Explanation:
    """One answer of a selector, and what it rests on."""

    shape: Shape
    mode: str
    target: str
    selection: Selection
    path: tuple[str, ...]
    leaf: Leaf | None
    """Of the tree, whether it is served or not; None where the tree says nothing about the shape."""
    origin: list[str]
    """What the artifact rests on, in sentences."""
    nearest: list[Line]

    def to_dict(self) -> dict[str, Any]:
        return {
            "shape": str(self.shape), "mode": self.mode, "target": self.target, "config": self.selection.config.to_dict(),
            "source": self.selection.source, "reason": self.selection.reason, "path": list(self.path),
            "leaf": self.leaf.to_dict() if self.leaf else None, "origin": self.origin, "nearest": [line.to_dict() for line in self.nearest],
        }  # fmt: skip

    def sentences(self) -> Iterator[str]:
        """The answer as lines of text, without the table of the nearest shapes."""
        yield f"{self.selection.config}"
        yield f"  {basis(self.selection)} {self.shape} in mode {self.mode} on {self.target}"
        yield f"  why: {self.selection.reason}"
        if self.leaf:
            yield "  path: " + (", then ".join(self.path) or "the tree is a single leaf")
            yield f"  leaf: {self.leaf.config}, {leaf_text(self.leaf)}"
        yield from (f"  {sentence}" for sentence in self.origin)


def explain(selector: Selector, shape: Shape, mode: str, rows: Sequence[Trial], count: int = 3) -> Explanation:
    """The selector's answer for a shape, with the `count` nearest shapes among the rows of the artifact's target and bench."""
    artifact = selector.artifacts.get(shape.op)
    selection, path = selector.select(shape, mode), selector.path(shape, mode)
    leaf = selector.leaf(shape, mode)
    mine = [row for row in rows if artifact and (row.target, row.bench, row.mode) == (artifact.target.name, artifact.bench, mode)]
    nearest = sorted(lines(mine), key=lambda line: _apart(shape, line.shape))[:count]
    origin = [*_origin(artifact, shape, mode)] if artifact else []
    return Explanation(shape, mode, artifact.target.name if artifact else "no target", selection, path, leaf, origin, nearest)


def _apart(one: Shape, other: Shape) -> float:
    """Their distance; a size beyond floats is infinitely far from all."""
    from tftune.kernels.distance import distance

    try:
        return distance(one, other)
    except OverflowError:
        return math.inf


def _origin(artifact: Artifact, shape: Shape, mode: str) -> Iterator[str]:
    """What the artifact rests on: rows, build, and how it does on shapes held out, those like this one among them."""
    found = artifact.document
    versions = ", ".join(f"{name} {version}" for name, version in stamp(found).items() if name in ("driver", "torch", "triton"))
    yield f"artifact: {artifact.path}, digest {artifact.digest[:12]}, {found['rows']:,} rows, {found['created'][:10]}"
    yield f"times are of: {versions or 'no build'}"
    modelled = "" if artifact.bench == "node" else ", both as modelled"
    if regret := held_out(found, mode):
        where = _judged(found["held_out"][mode])
        yield f"held out in mode {mode}: regret {regret:.3f} (geometric mean{where}), 1 being the fastest config known{modelled}"
    if group := found["held_out"].get(mode, {}).get("groups", {}).get(shape.layer):
        yield "held out with all of {}: {:.3f}, at worst {:.3f}".format(shape.layer, *group)


def basis(selection: Selection) -> str:
    """What an answer rests on, before its shape: times of this very shape only where its reason says so."""
    return "fallback for" if selection.source == "fallback" else f"from {selection.source} times, for"


def _judged(report: Mapping[str, Any]) -> str:
    """At how many of the shapes held out an answer had a time, where some had none."""
    unknown = report["selector"].get("unknown", 0)
    return f" of {report['shapes'] - unknown} of {report['shapes']} shapes, the other answers having no time there" if unknown else ""


def leaf_text(leaf: Leaf) -> str:
    """What a leaf rests on: training shapes that end in it, and the figures of those that speak for its config, here or nearby."""
    ending = f"{leaf.rows} training shape{'s' if leaf.rows != 1 else ''}" if leaf.rows else "no training shape but those nearby"
    regret = f"regret at most {leaf.worst_regret:.2f}"
    if leaf.speedup_low is None:
        return f"{ending}, {regret}"
    return f"{ending}; where measured to be faster: {regret}, at least {leaf.speedup_low:.2f}x over BSP"


def tree_text(tree: Tree) -> str:
    """The tree, one indented line for each condition and leaf; and how many shapes have an answer of their own."""
    own = [f"{len(tree.own)} measured shapes are answered by what was the fastest there instead"] if tree.own else []
    return "\n".join([*_node_text(tree.root, ""), *own])


def _node_text(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield f"{indent}{node.config}: {leaf_text(node)}"
        return
    for child, sign in ((node.below, "<="), (node.above, ">")):
        yield f"{indent}{node.feature} {sign} {node.threshold:g}"
        yield from _node_text(child, indent + "  ")


def nearest_table(nearest: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the nearest shapes: the median of each variant with its 95 % interval."""
    variants = variants_of(nearest)
    head = ["nearest shape", *(f"{label(variant)} us" for variant in variants), "winner", "over BSP"]
    return head, [[str(line.shape), *_times(line, variants), label(line.winner.config.variant), ratio_text(line.ratio)] for line in nearest]


def _times(line: Line, variants: Sequence[str]) -> Iterator[str]:
    for variant in variants:
        if variant not in line.by_variant:
            yield "-"
            continue
        found = measurement(line.by_variant[variant])
        low, high = found.interval_us
        yield f"{found.median_us:,.1f}" + (f" ({low:,.1f}-{high:,.1f})" if low < high else "")
