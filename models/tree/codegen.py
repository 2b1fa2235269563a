"""A tree as plain ifs: the function that finds a shape's leaf at dispatch. Standard library
only."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from tftune.kernels.core.registry import operation
from tftune.models.tree.tree import Leaf, Node

Find = Callable[[Any], int]
"""From a shape to the number of its leaf, from the smallest values to the largest."""


def _features_file(op: str) -> Path:
    return Path(operation(op).module("features").__file__)


@cache
def expressions(op: str) -> dict[str, str]:
    """Each feature of an operation as it is written in its folder, an expression of the shape `s`.

    Raises ValueError where a feature uses another name than those of the shape, of builtins and of
    math.

    >>> expressions("all_gather_gemm")["m"]
    's.m'
    """
    body = ast.parse(_features_file(op).read_text()).body
    declared = next(
        node.value
        for node in body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "FEATURES"
    )
    if not isinstance(declared, ast.Dict):
        raise ValueError(f"FEATURES of {op} is not written as a dict")
    expression_of = {}
    for name, value in zip(declared.keys, declared.values, strict=True):
        feature = ast.literal_eval(name or ast.Constant(None))
        lambdas = [n for n in ast.walk(value) if isinstance(n, ast.Lambda)]
        if len(lambdas) != 1 or [argument.arg for argument in lambdas[0].args.args] != ["s"]:
            raise ValueError(
                f"the feature {feature!r} of {op} is not written as one lambda of the shape s"
            )
        expression_of[feature] = _of_the_shape(op, feature, lambdas[0].body)
    return expression_of


def _of_the_shape(op: str, feature: str, body: ast.expr) -> str:
    known = {"s", "int", "float", "min", "max", "abs", *vars(math)}
    if unknown := sorted(
        {node.id for node in ast.walk(body) if isinstance(node, ast.Name)} - known
    ):
        raise ValueError(
            f"the feature {feature!r} of {op} uses {unknown[0]!r}; it may use the shape s, min, "
            "max, abs and math's functions"
        )
    return ast.unparse(body)


def function(op: str, root: Node, name: str = "find") -> str:
    """The source of a `Find`. Raises ValueError where a feature is unknown, or a threshold is no
    finite number."""
    ifs, _ = _ifs(root, expressions(op), 0, "    ")
    return "\n".join([f"def {name}(s):", *_once(op, ifs)]) + "\n"


def _once(op: str, lines: Sequence[str]) -> Iterator[str]:
    """The lines, each field of the shape being looked up once: a field and the feature of its name
    are the same value."""
    text = "\n".join(lines)
    used = [
        field.name
        for field in fields(operation(op).shape)
        if re.search(rf"\bs\.{field.name}\b", text)
    ]
    if used:
        yield (
            f"    {', '.join(used)}{',' * (len(used) == 1)} = "
            f"{', '.join(f's.{name}' for name in used)}{',' * (len(used) == 1)}"
        )
        text = re.sub(rf"\bs\.({'|'.join(used)})\b", r"\1", text)
    yield text


def _ifs(
    node: Node,
    features: Mapping[str, str],
    leaf: int,
    indent: str,
    known: frozenset[str] = frozenset(),
) -> tuple[list[str], int]:
    """The lines of a node whose first leaf has this number, and the number of the next leaf. What
    is computed is kept under the name of its feature, for the nodes below; `known` are those that
    already are."""
    if isinstance(node, Leaf):
        return [f"{indent}return {leaf}"], leaf + 1
    if not math.isfinite(node.threshold):
        raise ValueError(f"the threshold of {node.feature!r} is {node.threshold}")
    if node.feature not in features:
        raise ValueError(
            f"its tree asks for the feature {node.feature!r}; there are {', '.join(features)}"
        )
    value = features[node.feature]
    if value != f"s.{node.feature}":
        value = node.feature if node.feature in known else f"({node.feature} := {value})"
        known = known | {node.feature}
    below, leaf = _ifs(node.below, features, leaf, indent + "    ", known)
    above, leaf = _ifs(node.above, features, leaf, indent, known)
    return [f"{indent}if {value} <= {node.threshold!r}:", *below, *above], leaf


def compiled(op: str, root: Node) -> Find:
    """The tree as a function of the shape, several times as fast as walking it."""
    names = dict(vars(math))
    exec(function(op, root), names)
    find: Find = names["find"]
    return find
