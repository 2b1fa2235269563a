"""What a rank's facts change: two trees, one over features of a shape's config, one over those of
its facts as well.

As in Seer (arXiv 2403.17017), K answers from features that are always known, and G where the caller
gives facts (how full the cache is, how uneven). Each names a `Form`, so that a rank may follow its
own facts. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.forms import Form, forms_of
from tftune.models.tree.codec import layout_of
from tftune.models.tree.tree import Leaf, Node, Split, features_of, leaves_of, pack, unpack

GRAPHS = 4
"""Forms of a model at most: an engine that captures keeps one graph of each."""
DEPTH = 4
"""Splits on the way to a leaf of these trees at most."""


@dataclass(frozen=True)
class FactsModel:
    """What one operation does with facts, in one mode."""

    op: str
    forms: tuple[Form, ...]
    """Those that the trees name, the config as it is first."""
    known: Node
    gathered: Node
    cases: int
    """A shape with a distribution of lengths."""
    lengths: tuple[str, ...]
    layouts: tuple[tuple[int | str, ...], ...]
    """The layouts of the cases' shapes. For another one the trees say nothing: full caches in one
    layout were measured, and ragged ones in another do not speak for them."""
    held_out: Mapping[str, Any] = field(default_factory=dict)
    """Times on distributions and shapes held out, as `facts_fit.judged` gives them."""

    def form(self, shape: Shape, config: Config, chip: Chip, facts: Any = None) -> Form:
        """The form of the config that answers for a shape, by the gathered tree; without facts by
        the known one."""
        at = self.known if facts is None else self.gathered
        return self.forms[answer(at, _Asked(shape, config, chip, facts))]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "forms": [list(form.doublings) for form in self.forms],
            "known": pack(self.known), "gathered": pack(self.gathered),
            "cases": self.cases, "lengths": list(self.lengths),
            "layouts": [list(layout) for layout in self.layouts], "held_out": dict(self.held_out),
        }  # fmt: skip


def answer(at: Node, features: Mapping[str, float]) -> int:
    """What the leaf of these features names."""
    while isinstance(at, Split):
        at = at.below if features[at.feature] <= at.threshold else at.above
    return at.candidates[0]


class _Asked(dict[str, float]):
    """Features that are worked out when a tree asks for them: an engine selects at every step."""

    def __init__(self, shape: Shape, config: Config, chip: Chip, facts: Any) -> None:
        super().__init__()
        self._of = shape, config, chip, facts
        if facts is not None:
            facts.check(shape)

    def __missing__(self, name: str) -> float:
        shape, config, chip, facts = self._of
        of_config, told = _declared(shape.op)
        if name in told:
            return told[name][1](shape, config, chip, facts)
        return of_config[name][1](shape, config, chip)


def values(shape: Shape, config: Config, chip: Chip, facts: Any = None) -> dict[str, float]:
    """Every feature by name: those of the config that answers for a shape, and of the facts. Raises
    ValueError where the facts cannot be this shape's."""
    features = _Asked(shape, config, chip, facts)
    return {name: float(features[name]) for name in asked(shape.op, told=facts is not None)}


Declared = Mapping[str, tuple[str, Callable[..., float]]]


@lru_cache
def _declared(op: str) -> tuple[Declared, Declared]:
    """Features of an operation's configs, and of facts; empty where it has none."""
    module = operation(op).module("features")
    return getattr(module, "OF_CONFIG", {}), getattr(module, "GATHERED", {})


def asked(op: str, *, told: bool) -> tuple[str, ...]:
    """The features that trees may ask for: those of the config that answers, which say what a shape
    makes of it, and, where facts are told, theirs. Sizes of shapes are not among them: trees
    over them do not hold for other shapes."""
    of_config, gathered = _declared(op)
    return (*of_config, *(gathered if told else ()))


def read(op: str, content: Mapping[str, Any]) -> FactsModel:
    """The model of such a dict; raises KeyError, TypeError or ValueError where it is none."""
    forms = tuple(Form(op, tuple(map(int, steps))) for steps in content["forms"])
    if unknown := [form for form in forms if form not in forms_of(op)]:
        raise ValueError(f"it names the form {unknown[0].doublings}, which {op} does not have")
    if not forms or not forms[0].is_identity or len(forms) > GRAPHS:
        raise ValueError(f"it has {len(forms)} forms: the first is the config as it is, 1 to 4")
    known, gathered = (unpack(content[name], DEPTH) for name in ("known", "gathered"))
    layouts = (layout_of(op, operation(op).shape.named(each)) for each in content["layouts"])
    lengths, held_out = tuple(map(str, content["lengths"])), dict(content["held_out"])
    cases = int(content["cases"])
    model = FactsModel(op, forms, known, gathered, cases, lengths, tuple(layouts), held_out)
    _check(model, "known", {*asked(op, told=False)})
    _check(model, "gathered", {*asked(op, told=True)})
    return model


def _check(model: FactsModel, name: str, features: set[str]) -> None:
    at: Node = getattr(model, name)
    if unknown := sorted(features_of(at) - features):
        raise ValueError(f"its tree {name} asks for {unknown[0]!r}, which {model.op} has not")
    for leaf in leaves_of(at):
        if len(leaf.candidates) != 1 or leaf.candidates[0] >= len(model.forms):
            raise ValueError(f"a leaf of its tree {name} names {leaf.candidates}")


def rules(model: FactsModel) -> list[str]:
    """The two trees as lines that a person reads."""
    said = []
    forms = [str(form) for form in model.forms]
    for title, at in (("K, without facts", model.known), ("G, with facts", model.gathered)):
        said += [f"{title}:", *(f"  {line}" for line in _lines(at, forms))]
    return said


def _lines(at: Node, answers: list[str], indent: str = "") -> list[str]:
    if isinstance(at, Leaf):
        return [f"{indent}{answers[at.candidates[0]]} ({at.rows} cases)"]
    lines = []
    for sign, side in (("<=", at.below), (">", at.above)):
        inner = _lines(side, answers, indent + "  ")
        condition = f"{indent}{at.feature} {sign} {at.threshold:g}: "
        lines += [condition + inner[0].strip()] if len(inner) == 1 else [condition.rstrip(), *inner]
    return lines
