"""A trained tree as plain ifs: the function that answers at dispatch, and a Python module of it for who does not install tftune.

Both come from the same text, so that a threshold means the same in the module and in the running selector. Standard library only.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.source import ROOT
from tftune.kernels.space import Config
from tftune.models.packed import unpack
from tftune.models.tree import Leaf, Node, Tree
from tftune.models.validity import stamp

FAR = 2
"""How many times a size may lie below the least or above the greatest that was measured, and still be answered."""
HEAD = "# Written by tftune from "
"""How a module begins; a file that begins otherwise is somebody's own."""
Find = Callable[[Any], int | None]
"""From a shape to the number of its leaf, from the smallest values to the largest; None where nothing was measured near it."""


@cache
def expressions(op: str) -> dict[str, str]:
    """Each feature of an operation as it is written in its folder, an expression of the shape `s`.

    Raises ValueError where a feature uses another name than those of the shape, of builtins and of math.

    >>> expressions("all_gather_gemm")["m"]
    's.m'
    """
    body = ast.parse((ROOT / op / "features.py").read_text()).body
    declared = next(node.value for node in body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "FEATURES")
    assert isinstance(declared, ast.Dict)
    found = {}
    for name, value in zip(declared.keys, declared.values, strict=True):
        feature, lambdas = ast.literal_eval(name or ast.Constant(None)), [n for n in ast.walk(value) if isinstance(n, ast.Lambda)]
        if len(lambdas) != 1 or [argument.arg for argument in lambdas[0].args.args] != ["s"]:
            raise ValueError(f"the feature {feature!r} of {op} is not written as one lambda of the shape s")
        found[feature] = _of_the_shape(op, feature, lambdas[0].body)
    return found


def _of_the_shape(op: str, feature: str, body: ast.expr) -> str:
    known = {"s", "int", "float", "min", "max", "abs", *vars(math)}
    if unknown := sorted({node.id for node in ast.walk(body) if isinstance(node, ast.Name)} - known):
        raise ValueError(f"the feature {feature!r} of {op} uses {unknown[0]!r}; it may use the shape s, min, max, abs and math's functions")
    return ast.unparse(body)


def function(name: str, tree: Tree) -> str:
    """The source of a `Find`. Raises ValueError where a feature is unknown, or a threshold is no finite number; that or TypeError where a
    shape of its own is none."""
    ifs, count = _ifs(tree.root, expressions(tree.op), 0, "    ")
    own = {operation(tree.op).shape(*shape): count + number for number, (shape, _) in enumerate(tree.own)}
    first = list(_own(name, tree.op, own)) if own else []
    table = [f"{name.upper()}_OWN = {{", *(f"    {shape.key!r}: {number}," for shape, number in own.items()), "}", ""] if own else []
    return "\n".join([*table, f"def {name}(s):", *_once(tree.op, [*first, *_near(tree), *ifs])]) + "\n"


def _once(op: str, lines: Sequence[str]) -> Iterator[str]:
    """The lines, each field of the shape being looked up once: a field and the feature of its name are the same value."""
    text = "\n".join(lines)
    used = [field.name for field in fields(operation(op).shape) if re.search(rf"\bs\.{field.name}\b", text)]
    if used:
        yield f"    {', '.join(used)}{',' * (len(used) == 1)} = {', '.join(f's.{name}' for name in used)}{',' * (len(used) == 1)}"
        text = re.sub(rf"\bs\.({'|'.join(used)})\b", r"\1", text)
    yield text


def _own(name: str, op: str, shapes: Iterable[Shape]) -> Iterator[str]:
    """The lines that answer single shapes; few shapes get as far as the table, since most have another size."""
    size = operation(op).shape.SIZE
    sizes = sorted({int(getattr(shape, size)) for shape in shapes})
    yield f"    if s.{size} in {{{', '.join(map(repr, sizes))}}} and (own := {name.upper()}_OWN.get(s.key)) is not None:"
    yield "        return own"


def _near(tree: Tree) -> Iterator[str]:
    """The lines that turn away what is far from all that was measured."""
    shape = operation(tree.op).shape
    known = [field.name for field in fields(shape)]
    for field, seen in tree.measured:
        kind = str if field in shape.WORDS else int
        if field not in known or not seen or not all(isinstance(value, kind) for value in seen):
            raise ValueError(f"it says that {field!r} was measured at {seen}; a shape of {tree.op} has {', '.join(known)}")
        if kind is str or field == "world":
            yield f"    if s.{field} not in {seen!r}:"
        else:
            yield f"    if not {int(seen[0]) / FAR!r} <= s.{field} <= {int(seen[-1]) * FAR!r}:"
        yield "        return None"


def _ifs(node: Node, features: Mapping[str, str], leaf: int, indent: str, known: frozenset[str] = frozenset()) -> tuple[list[str], int]:
    """The lines of a node whose first leaf has this number, and the number of the next leaf. What is computed is kept under the name of
    its feature, for the nodes below; `known` are those that already are."""
    if isinstance(node, Leaf):
        return [f"{indent}return {leaf}"], leaf + 1
    if not math.isfinite(node.threshold):
        raise ValueError(f"the threshold of {node.feature!r} is {node.threshold}")
    if node.feature not in features:
        raise ValueError(f"its tree asks for the feature {node.feature!r}; there are {', '.join(features)}")
    value = features[node.feature]
    if value != f"s.{node.feature}":
        value, known = node.feature if node.feature in known else f"({node.feature} := {value})", known | {node.feature}
    below, leaf = _ifs(node.below, features, leaf, indent + "    ", known)
    above, leaf = _ifs(node.above, features, leaf, indent, known)
    return [f"{indent}if {value} <= {node.threshold!r}:", *below, *above], leaf


def compiled(tree: Tree) -> Find:
    """The tree as a function of the shape, several times as fast as walking it."""
    names = dict(vars(math))
    exec(function("find", tree), names)
    find: Find = names["find"]
    return find


def module(document: Mapping[str, Any]) -> str:
    """The Python module of an artifact's document: the trees, what they answer, and the checks without which they may not."""
    trees = {mode: unpack(values) for mode, values in document["trees"].items()}
    configs = sorted({config for tree in trees.values() for leaf in tree.answers() for config in _named(leaf)}, key=_order)
    numbers = {config: number for number, config in enumerate(configs)}
    answers = {mode: [tuple(numbers[config] for config in _named(leaf)) for leaf in tree.answers()] for mode, tree in trees.items()}
    kernels = {leaf.config.variant: leaf.kernel_hash for tree in trees.values() for leaf in tree.answers() if not leaf.abstains}
    used = sorted({n.id for text in expressions(document["op"]).values() for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)})
    imports = [name for name in used if hasattr(math, name)]
    lines = [
        f"{HEAD}the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.",
        f'"""Which config {document["op"]} runs on {document["target"]}, for programs without tftune; tftune.load reads the JSON."""',
        "# ruff: noqa",
        "# fmt: off",
        "# mypy: ignore-errors",
        *([f"from math import {', '.join(imports)}"] if imports else []),
        "",
        *(f"{name.upper()} = {document[name]!r}" for name in ("op", "target", "arch", "modelled", "sha256")),
        f"TRITON = {stamp(document).get('triton', '')!r}",
        f"KERNELS = {kernels!r}",
        "CONFIGS = [",
        *(f"    {config.to_dict()!r}," for config in configs),
        "]",
        f"ANSWERS = {answers!r}",
        "",
        *(function(mode, tree) for mode, tree in trees.items()),
        f"FIND = {{{', '.join(f'{mode!r}: {mode}' for mode in trees)}}}",
        _CHOOSE,
    ]
    return "\n".join(lines)


def _order(config: Config) -> tuple[Any, ...]:
    """As configs are sorted, and of a knob that has numbers and words the numbers first."""
    return config.variant, [(name, isinstance(value, str), value) for name, value in config.knobs]


def _named(leaf: Leaf) -> tuple[Config, ...]:
    """The config of a leaf, and that for shapes which it does not fit."""
    return (leaf.config,) if leaf.otherwise is None else (leaf.config, leaf.otherwise)


_CHOOSE = '''
def choose(s, mode, target, kernels, triton, allow_modelled=False, fits=lambda config: True):
    """The config for the shape `s` in this mode ("graph" or "eager") as a dict, or None where BSP is the answer.

    `s` has the fields and properties that the functions above read, as tftune.AllGatherGemm does (`key`: the operation's name and
    the values of all fields). The caller says what it runs: the
    `target`, the hash of each variant's source in `kernels` (tftune.kernels.source.kernel_hash) and the version of `triton`; where
    these are not those of the times, or measured times do not say their Triton, nothing fused is chosen. Whether a config fits the shape
    is for tftune's rules to say: `fits` is asked, and where it says no, a leaf's other config is tried.
    """
    leaf = FIND[mode](s) if mode in FIND and target == TARGET and allow_modelled >= MODELLED else None
    if leaf is None or not (triton.split(".")[:2] == TRITON.split(".")[:2] if TRITON else MODELLED):
        return None
    configs = [CONFIGS[number] for number in ANSWERS[mode][leaf]]
    sound = [c for c in configs if c["variant"] != "bsp" and kernels.get(c["variant"]) == KERNELS[c["variant"]]]
    return next((config for config in sound if fits(config)), None)
'''


def beside(path: Path) -> Path:
    """Where the module of the artifact at `path` belongs; raises ValueError where a file of somebody else is there."""
    place = path.with_suffix(".py")
    if place == path or (place.exists() and not place.read_text(errors="replace").startswith(HEAD)):
        raise ValueError(f"the artifact's module would replace {place}, which tftune did not write; name another place with --out")
    return place


if __name__ == "__main__":
    for name in sys.argv[1:]:
        beside(Path(name)).write_text(module(json.loads(Path(name).read_text())))
