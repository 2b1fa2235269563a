"""From times of forms under several distributions of lengths to the trees K, G and D, and what they
are worth on distributions and shapes held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.facts import DEPTH, GATHER_US, GRAPHS, REUSE, FactsModel, answer, asked, values
from tftune.models.forms import Form, forms_of
from tftune.models.tree.thresholds import round_between
from tftune.models.tree.tree import Leaf, Node, Split

SMALLEST = 0.02
"""The least share of what is at stake that a leaf has."""
FOLDS = 5
"""Parts of the shapes, each held out once to find how deep a tree may be."""
GAIN = 0.005
"""The share of a leaf's time that another form than the config as it is must save."""
SMALLEST_GAIN = 0.002
"""The share of all time that a further form must save."""
REUSES = (1, 2, 4, 8, 16, 32, 80, 128)
"""How often facts are used again in what the gate is trained on."""
JUDGED = (1, 8, 80)
"""How often they are in what it is judged on: one call, the layers of a small step, those of a 70B
model."""
FEWEST = 2
"""Distributions of lengths from which on trees are learned."""


@dataclass(frozen=True)
class Case:
    """One shape with one distribution of lengths."""

    shape: Shape
    lengths: str
    config: Config
    """What answers for the shape where nothing is known of lengths."""
    chip: Chip
    times_us: Mapping[Form, float]
    """Times of every form of the config."""

    @property
    def distribution(self) -> str:
        """Its name, without the seed."""
        return self.lengths.partition("/")[0]

    @property
    def facts(self) -> Any:
        """The facts of rank 0."""
        module = operation(self.shape.op).module("lengths")
        return module.Facts.of(module.Lengths.parse(self.lengths).local(self.shape, 0))

    def values(self, told: bool = True, reuse: int | None = None) -> dict[str, float]:
        """Features by name, those of its facts among them where it is `told`."""
        return values(self.shape, self.config, self.chip, self.facts if told else None, reuse)


def case(
    shape: Shape,
    lengths: str,
    config: Config,
    chip: Chip,
    time_us: Callable[[Config], float | None],
) -> Case | None:
    """The case of a config that answers for a shape; None where a form of it has no time.
    `time_us`: of a config with these lengths."""
    times = {form: time_us(form.applied(shape, config, chip)) for form in forms_of(shape.op)}
    known = {form: us for form, us in times.items() if us is not None}
    return Case(shape, lengths, config, chip, known) if len(known) == len(times) else None


@dataclass(frozen=True)
class _Table:
    """Cases as arrays: times [cases, forms], features by name."""

    forms: tuple[Form, ...]
    times: np.ndarray
    features: list[dict[str, float]]

    @classmethod
    def of(cls, cases: Sequence[Case], forms: Sequence[Form]) -> _Table:
        times = np.array([[each.times_us[form] for form in forms] for each in cases])
        return cls(tuple(forms), times, [each.values() for each in cases])


def train(cases: Sequence[Case], gather_us: float | None = None) -> FactsModel | None:
    """The model of these cases, judged on those held out; None where they are of fewer than FEWEST
    distributions. A tree that loses there does not answer: K gives way to the config as it is, G to
    K, and D says no. `gather_us`: as measured; None where it was not."""
    if len(_distributions(cases)) < FEWEST:
        return None
    cost = GATHER_US if gather_us is None else gather_us
    fields, held_out = fitted(cases, cost), judged(cases, cost)
    us = _held_out_us(held_out)
    if us["never"] >= us["as_it_is"]:
        fields["known"] = Leaf((0,), len(cases), 0.0, ())
    if us["told"] >= min(us["never"], us["as_it_is"]):
        fields["gathered"] = fields["known"]
    if us["gated"] >= us["ungated"]:
        fields["gate"] = Leaf((0,), len(cases), 0.0, ())
    return FactsModel(**fields, measured=gather_us is not None, held_out=held_out)


def _held_out_us(held_out: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, float]:
    """Times of all distributions together: K, the config as it is, G with facts that cost nothing;
    and, of every reuse, with the gate and without. Nothing where nothing was held out."""
    us = dict.fromkeys(("never", "as_it_is", "told", "gated", "ungated"), 0.0)
    for by_reuse in held_out.values():
        for number, totals in enumerate(by_reuse.values()):
            us["gated"] += totals["gated"]
            us["ungated"] += min(totals["never"], totals["as_it_is"])
            if not number:
                us["never"] += totals["never"]
                us["as_it_is"] += totals["as_it_is"]
                us["told"] += totals["told"]
    return us


def fitted(cases: Sequence[Case], gather_us: float) -> dict[str, Any]:
    """The fields of a model that trees and their cases are."""
    op = cases[0].shape.op
    forms = cover(cases)
    known, gathered, grown = _choosers(cases, forms)
    gate = _gate(cases, forms, grown, gather_us)
    return {
        "op": op, "forms": forms, "known": known, "gathered": gathered,
        "gate": gate, "gather_us": gather_us, "cases": len(cases),
        "lengths": tuple(sorted({each.lengths for each in cases})),
        "layouts": tuple(sorted({each.shape.layout for each in cases}, key=str)),
    }  # fmt: skip


def cover(cases: Sequence[Case]) -> tuple[Form, ...]:
    """The config as it is, then, greedily, the forms that save most of what is left: GRAPHS
    at most."""
    every = tuple(cases[0].times_us)
    times = _Table.of(cases, every).times
    picked = [next(number for number, form in enumerate(every) if form.is_identity)]
    had, whole = times[:, picked[0]], times[:, picked[0]].sum()
    while len(picked) < GRAPHS:
        saved = np.maximum(had[:, None] - times, 0).sum(axis=0)
        best = int(saved.argmax())
        if saved[best] < SMALLEST_GAIN * whole:
            break
        picked.append(best)
        had = np.minimum(had, times[:, best])
    return tuple(every[number] for number in picked)


def _choosers(
    cases: Sequence[Case], forms: Sequence[Form], grown: Grown | None = None
) -> tuple[Node, Node, Grown]:
    """K and G: which form, by known features and by all; and how each was grown. `grown`: as of
    more cases."""
    table, op = _Table.of(cases, forms), cases[0].shape.op
    found = [
        _chooser(table.features, asked(op, told=told), table.times, cases, growth)
        if grown is None or growth is not None
        else (Leaf((0,), len(cases), 0.0, ()), None)
        for told, growth in zip((False, True), grown or (None, None), strict=True)
    ]
    (known, first), (told, second) = found
    return known, told, (first, second)


def _gate(cases: Sequence[Case], forms: Sequence[Form], grown: Grown, gather_us: float) -> Node:
    """D: whether gathering saves more than its cost, by known features and reuse.

    What it saves at a distribution is judged by trees that saw the others, since trees that saw it
    flatter themselves.
    """
    order: list[Case] = []
    saved: list[float] = []
    for name in _distributions(cases):
        order += [each for each in cases if each.distribution == name]
        saved += _saved(cases, forms, grown, name)
    features, times, repeated = [], [], []
    for reuse in REUSES:
        for each, us in zip(order, saved, strict=True):
            features.append(each.values(told=False, reuse=reuse))
            times.append((us * reuse, gather_us))
            repeated.append(each)
    names = (*asked(cases[0].shape.op, told=False), REUSE)
    return _chooser(features, names, np.array(times), repeated)[0]


def _distributions(cases: Sequence[Case]) -> list[str]:
    return sorted({each.distribution for each in cases})


def _saved(cases: Sequence[Case], forms: Sequence[Form], grown: Grown, name: str) -> list[float]:
    """What G saves over K at the cases of one distribution, by trees of the others."""
    known, told, _ = _choosers([each for each in cases if each.distribution != name], forms, grown)
    table = _Table.of([each for each in cases if each.distribution == name], forms)
    return [
        float(times[answer(known, found)] - times[answer(told, found)])
        for times, found in zip(table.times, table.features, strict=True)
    ]


@dataclass(frozen=True)
class _Growth:
    """How a tree is grown by scikit-learn: a classifier of the best answers, weighted by the time
    at stake, or a regressor of what each answer loses; depth 0: one leaf."""

    kind: str
    depth: int

    def leaves(self, columns: np.ndarray, times: np.ndarray) -> tuple[Any, dict[int, int]]:
        """The tree, None for one leaf, and what each of its leaves names."""
        stake = times.max(axis=1) - times.min(axis=1)
        if not self.depth or not stake.sum() > 0:
            return None, {0: _least(times)}
        limits = {"max_depth": self.depth, "min_weight_fraction_leaf": SMALLEST, "random_state": 0}
        if self.kind == "classifier":
            tree = DecisionTreeClassifier(**limits).fit(columns, times.argmin(axis=1), stake)
        else:
            tree = DecisionTreeRegressor(**limits).fit(columns, times - times.min(1, keepdims=True))
        ends = tree.apply(columns)
        return tree, {int(end): _least(times[ends == end]) for end in np.unique(ends)}

    def held_out_us(self, columns: np.ndarray, times: np.ndarray, cases: Sequence[Case]) -> float:
        """The time of what it names for shapes that it did not see, a part of them at a time."""
        part = _parts([each.shape for each in cases], FOLDS)
        total = 0.0
        for number in range(FOLDS):
            out = part == number
            if out.any() and not out.all():
                tree, named = self.leaves(columns[~out], times[~out])
                ends = np.zeros(out.sum(), int) if tree is None else tree.apply(columns[out])
                answers = [named[int(end)] for end in ends]
                total += float(times[out][np.arange(out.sum()), answers].sum())
        return total


def _parts(shapes: Sequence[Shape], count: int) -> np.ndarray:
    """0 to count - 1 for each: shapes in the order of their sizes, dealt in turn."""
    place = {shape: number for number, shape in enumerate(sorted({*shapes}))}
    return np.array([place[shape] % count for shape in shapes])


Grown = tuple[_Growth | None, _Growth | None]
GROWTHS = tuple(
    _Growth(kind, depth) for depth in range(DEPTH + 1) for kind in ("classifier", "regressor")
)


def _least(times: np.ndarray) -> int:
    """The answer that takes least time in all of these cases; the first one, unless another saves
    GAIN."""
    total = times.sum(axis=0)
    best = int(total.argmin())
    return best if total[best] < total[0] - GAIN * abs(total[0]) else 0


def _chooser(
    features: Sequence[Mapping[str, float]],
    names: Sequence[str],
    times: np.ndarray,
    cases: Sequence[Case],
    growth: _Growth | None = None,
) -> tuple[Node, _Growth | None]:
    """A tree that names columns of `times` [cases, answers], and how it was grown.

    Of GROWTHS the one whose answers take least time for shapes that it did not see; the first
    column everywhere where none saves GAIN so. `growth`: one that is known already.
    """
    columns = np.array([[found[name] for name in names] for found in features])
    if growth is None:
        lost = {each: each.held_out_us(columns, times, cases) for each in GROWTHS}
        growth = min(GROWTHS, key=lost.__getitem__)
        first = times[:, 0].sum()
        if not lost[growth] < first - GAIN * abs(first):
            return Leaf((0,), len(times), 0.0, ()), None
    tree, named = growth.leaves(columns, times)
    every = np.arange(len(times))
    if tree is None:
        return Leaf((named[0],), len(times), 0.0, ()), growth
    return _node(tree.tree_, named, columns, names, every, 0), growth


def _node(
    tree: Any,
    named: Mapping[int, int],
    columns: np.ndarray,
    names: Sequence[str],
    cases: np.ndarray,
    index: int,
) -> Node:
    """scikit-learn's subtree as our own values, for these cases; a leaf where both sides agree."""
    if tree.children_left[index] < 0:
        return Leaf((named[index],), len(cases), 0.0, ())
    column = int(tree.feature[index])
    low = columns[cases, column] <= tree.threshold[index]
    children = (low, tree.children_left[index]), (~low, tree.children_right[index])
    below, above = (
        _node(tree, named, columns, names, cases[side], child) for side, child in children
    )
    if isinstance(below, Leaf) and isinstance(above, Leaf) and below.candidates == above.candidates:
        return Leaf(below.candidates, len(cases), 0.0, ())
    ends = float(columns[cases[low], column].max()), float(columns[cases[~low], column].min())
    return Split(names[column], round_between(*ends), below, above)


# What it is worth.


@dataclass(frozen=True)
class Totals:
    """Microseconds of all cases of a distribution that was held out, a call each, what gathering
    costs a call included."""

    never: float
    """By K."""
    always: float
    """By G, facts gathered each time."""
    gated: float
    """By G where D says so, else by K."""
    told: float
    """By G, without what gathering costs: facts that the host has."""
    as_it_is: float
    """The config that answers for the shape, facts or not."""
    best: float
    """The fastest of the forms that the model chose from, each time, nothing gathered."""
    gathered: int
    """Cases where D says so."""
    cases: int

    @property
    def wins(self) -> bool:
        """Whether the gate takes strictly less time than both always and never gathering."""
        return self.gated < min(self.never, self.always)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def judged(
    cases: Sequence[Case], gather_us: float, reuses: Sequence[int] = JUDGED
) -> dict[str, dict[str, dict[str, Any]]]:
    """By distribution and reuse: the `Totals` of trees that saw neither the distribution nor any
    shape of these sizes.

    Shapes are halved by the order of their sizes; each half is held out from trees that
    learn of the other.
    """
    sides = _parts([each.shape for each in cases], 2)
    halves = [{e.shape for e, own in zip(cases, sides, strict=True) if own == n} for n in (0, 1)]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name in _distributions(cases):
        folds = [
            (
                [e for e in cases if e.distribution != name and e.shape not in half],
                [e for e in cases if e.distribution == name and e.shape in half],
            )
            for half in halves
        ]
        pairs = [(fitted(seen, gather_us), held) for seen, held in folds if seen and held]
        if pairs and all(len(model["lengths"]) >= FEWEST for model, _ in pairs):
            found[name] = {
                str(reuse): totals(pairs, gather_us, reuse).to_dict() for reuse in reuses
            }
    return found


def totals(
    pairs: Sequence[tuple[Mapping[str, Any], Sequence[Case]]], gather_us: float, reuse: int
) -> Totals:
    share = gather_us / reuse
    sums = dict.fromkeys(("never", "always", "gated", "told", "as_it_is", "best"), 0.0)
    gathered = cases = 0
    for fields, held in pairs:
        model = FactsModel(**fields, measured=False)
        for each in held:
            times = [each.times_us[form] for form in model.forms]
            known, told = (
                each.times_us[model.form(each.shape, each.config, each.chip, facts)]
                for facts in (None, each.facts)
            )
            does = model.worth_gathering(each.shape, each.config, each.chip, reuse)
            gated = told + share if does else known
            found = (known, told + share, gated, told, times[0], min(times))
            for name, us in zip(sums, found, strict=True):
                sums[name] += us
            gathered += does
            cases += 1
    return Totals(**sums, gathered=gathered, cases=cases)


def regret(fitted: FactsModel, cases: Sequence[Case]) -> dict[str, float]:
    """Geometric means of time over the fastest of all forms: of the config as it is, of K, of G,
    and of the best of the model's forms."""
    logs = {"as it is": 0.0, "K": 0.0, "G": 0.0, "cover": 0.0}
    for each in cases:
        best = min(each.times_us.values())
        told = {
            "as it is": each.times_us[fitted.forms[0]],
            "K": each.times_us[fitted.form(each.shape, each.config, each.chip)],
            "G": each.times_us[fitted.form(each.shape, each.config, each.chip, each.facts)],
            "cover": min(each.times_us[form] for form in fitted.forms),
        }
        for name, us in told.items():
            logs[name] += math.log(us / best)
    return {name: math.exp(total / len(cases)) for name, total in logs.items()}
