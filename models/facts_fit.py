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
from tftune.models.facts import DEPTH, GATHER_US, GRAPHS, FactsModel, answer, values
from tftune.models.forms import Form, forms_of
from tftune.models.tree.thresholds import round_between
from tftune.models.tree.tree import Leaf, Node, Split

_LIMITS = {"max_depth": DEPTH, "min_weight_fraction_leaf": 0.01, "random_state": 0}
"""Of a tree: what is at stake in a leaf is 1 % of all at least."""
GAIN = 0.005
"""Of the time in a leaf, that another form than the config as it is must save."""
SMALLEST_GAIN = 0.002
"""Of all time, that a further form must save."""
REUSES = (1, 2, 4, 8, 16, 32, 80, 128)
"""Of what the gate is trained on."""
JUDGED = (1, 8, 80)
"""Of what it is judged on: one call, the layers of a small step, those of a 70B model."""
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
    """Of every form of the config."""

    @property
    def distribution(self) -> str:
        """Its name, without the seed."""
        return self.lengths.partition("/")[0]

    @property
    def facts(self) -> Any:
        """Of rank 0."""
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
    distributions. `gather_us`: as measured; None where it was not."""
    distributions = sorted({each.distribution for each in cases})
    if len(distributions) < FEWEST:
        return None
    found = _fitted(cases, GATHER_US if gather_us is None else gather_us)
    return FactsModel(
        **found, measured=gather_us is not None, held_out=judged(cases, found["gather_us"])
    )  # fmt: skip


def _fitted(cases: Sequence[Case], gather_us: float) -> dict[str, Any]:
    """The fields of a model."""
    op = cases[0].shape.op
    forms = cover(cases)
    known, gathered = _choosers(cases, forms)
    return {
        "op": op, "forms": forms, "known": known, "gathered": gathered,
        "gate": _gate(cases, forms, gather_us), "gather_us": gather_us, "cases": len(cases),
        "lengths": tuple(sorted({each.lengths for each in cases})),
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


def _choosers(cases: Sequence[Case], forms: Sequence[Form]) -> tuple[Node, Node]:
    """K and G: which form, by known features and by all."""
    table = _Table.of(cases, forms)
    asked = sorted(cases[0].values(told=False))
    every = sorted(table.features[0])
    return _chooser(table.features, asked, table.times), _chooser(
        table.features, every, table.times
    )


def _gate(cases: Sequence[Case], forms: Sequence[Form], gather_us: float) -> Node:
    """D: whether gathering saves more than its cost, by known features and reuse.

    What it saves at a distribution is judged by trees that saw the others, since trees that saw it
    flatter themselves.
    """
    saved = np.concatenate([_saved(cases, forms, name) for name in _distributions(cases)])
    order = [each for name in _distributions(cases) for each in cases if each.distribution == name]
    features, costs = [], []
    for reuse in REUSES:
        for each, us in zip(order, saved, strict=True):
            features.append(each.values(told=False, reuse=reuse))
            costs.append((us * reuse, gather_us))
    return _chooser(features, sorted(features[0]), np.array(costs))


def _distributions(cases: Sequence[Case]) -> list[str]:
    return sorted({each.distribution for each in cases})


def _saved(cases: Sequence[Case], forms: Sequence[Form], name: str) -> np.ndarray:
    """What G saves over K at the cases of one distribution, by trees of the others."""
    others = [each for each in cases if each.distribution != name]
    mine = [each for each in cases if each.distribution == name]
    known, gathered = _choosers(others, forms)
    table = _Table.of(mine, forms)
    rows = range(len(mine))
    by_known, by_facts = (
        table.times[rows, [answer(tree, found) for found in table.features]]
        for tree in (known, gathered)
    )
    return np.asarray(by_known - by_facts)


def _chooser(
    features: Sequence[Mapping[str, float]], asked: Sequence[str], times: np.ndarray
) -> Node:
    """A tree that names columns of `times` [cases, answers].

    scikit-learn grows three: two classifiers of the best answers, weighted by the time at stake,
    and a regressor of what each answer loses. Each leaf names what takes least time in all of its
    cases, the first column unless another saves GAIN. The tree with the least time is returned.
    """
    columns = np.array([[found[name] for name in asked] for found in features])
    stake = times.max(axis=1) - times.min(axis=1)
    if not stake.sum() > 0:
        return Leaf((0,), len(times), 0.0, ())
    best, excess = times.argmin(axis=1), times - times.min(axis=1, keepdims=True)
    grown = [
        DecisionTreeClassifier(criterion=criterion, **_LIMITS).fit(columns, best, stake)
        for criterion in ("gini", "entropy")
    ]
    grown.append(DecisionTreeRegressor(**_LIMITS).fit(columns, excess))
    every = np.arange(len(times))
    nodes = [_pruned(tree.tree_, columns, asked, times, every, 0) for tree in grown]
    rows = range(len(times))
    return min(nodes, key=lambda at: times[rows, [answer(at, each) for each in features]].sum())


def _pruned(
    tree: Any,
    columns: np.ndarray,
    asked: Sequence[str],
    times: np.ndarray,
    cases: np.ndarray,
    index: int,
) -> Node:
    """scikit-learn's subtree as our own values, for these cases; a leaf where both sides agree."""
    if tree.children_left[index] < 0:
        total = times[cases].sum(axis=0)
        best = int(total.argmin())
        answer = best if total[best] < (1 - GAIN) * total[0] else 0
        return Leaf((answer,), len(cases), 0.0, ())
    column = int(tree.feature[index])
    low = columns[cases, column] <= tree.threshold[index]
    below, above = (
        _pruned(tree, columns, asked, times, cases[side], child)
        for side, child in (
            (low, tree.children_left[index]), (~low, tree.children_right[index])
        )
    )  # fmt: skip
    if isinstance(below, Leaf) and isinstance(above, Leaf) and below.candidates == above.candidates:
        return Leaf(below.candidates, len(cases), 0.0, ())
    ends = float(columns[cases[low], column].max()), float(columns[cases[~low], column].min())
    return Split(asked[column], round_between(*ends), below, above)


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
    as_it_is: float
    """The config that answers for the shape, facts or not."""
    best: float
    """Of the forms that the model chose from, the fastest each time, nothing gathered."""
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

    Shapes are halved by their sizes' order: those at even places are held out from trees that learn
    of the odd ones, and the other way round.
    """
    sizes = sorted({each.shape for each in cases})
    halves = [set(sizes[::2]), set(sizes[1::2])]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name in _distributions(cases):
        folds = [
            (
                [e for e in cases if e.distribution != name and e.shape not in half],
                [e for e in cases if e.distribution == name and e.shape in half],
            )
            for half in halves
        ]
        pairs = [(_fitted(seen, gather_us), held) for seen, held in folds if seen and held]
        if pairs and all(len(model["lengths"]) >= FEWEST for model, _ in pairs):
            found[name] = {
                str(reuse): _totals(pairs, gather_us, reuse).to_dict() for reuse in reuses
            }
    return found


def _totals(
    pairs: Sequence[tuple[Mapping[str, Any], Sequence[Case]]], gather_us: float, reuse: int
) -> Totals:
    share = gather_us / reuse
    sums = dict.fromkeys(("never", "always", "gated", "as_it_is", "best"), 0.0)
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
            found = (known, told + share, gated, times[0], min(times))
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
