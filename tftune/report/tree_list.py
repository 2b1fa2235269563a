"""The selector's trees as nested lists of a page, whose leaves wrap where it is narrow. Standard
library only."""

from __future__ import annotations

from collections import Counter
from html import escape

from tftune.models.layout import LayoutModel
from tftune.models.tree.tree import Leaf, Node, features_of, leaves_of
from tftune.report.results_table import config_text
from tftune.report.tables import label


def tree_list(model: LayoutModel) -> str:
    """A layout's tree: each branch with its condition, each leaf with the configs that its formulas
    choose among. Raises ValueError where there is none."""
    if model.root is None:
        raise ValueError(f"{model.title} has no tree")
    if isinstance(model.root, Leaf):
        return f"<ul class='tree'><li>any shape: {_leaf(model, model.root)}</li></ul>\n"
    return f"<ul class='tree'>{_branches(model, model.root)}</ul>\n"


def _branches(model: LayoutModel, node: Node) -> str:
    if isinstance(node, Leaf):
        return _leaf(model, node)
    made = []
    for child, sign in ((node.below, "≤"), (node.above, ">")):
        condition = f"{node.feature} {sign} {node.threshold:,.10g}"
        below = _branches(model, child)
        body = f": {below}" if isinstance(child, Leaf) else f"<ul>{below}</ul>"
        made.append(f"<li><span class='if'>{escape(condition)}</span>{body}</li>\n")
    return "".join(made)


def _leaf(model: LayoutModel, leaf: Leaf) -> str:
    """The config of a leaf that comes near the fastest most often, and what else it considers."""
    first, *others = (model.configs[number] for number in leaf.candidates)
    text = escape(config_text(model.op, first))
    shapes = f"{leaf.rows} shape{'s' if leaf.rows != 1 else ''}"
    counts = Counter(label(config.variant) for config in others)
    also = ", ".join(name if n == 1 else f"{n} of {name}" for name, n in counts.items())
    beside = f"; or {also}" if also else ""
    return f"<code>{text}</code> <span class='quiet'>({shapes}{escape(beside)})</span>"


def leaf_count(model: LayoutModel) -> int:
    """How many leaves a tree has."""
    return len(list(leaves_of(model.root))) if model.root is not None else 0


def features(models: list[LayoutModel]) -> list[str]:
    """The features that some trees ask for, sorted."""
    roots = [model.root for model in models if model.root is not None]
    return sorted(set().union(*map(features_of, roots)))
