"""From times of forms under several distributions of lengths to the trees K and G, and what they
are worth on distributions and shapes held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.facts import DEPTH, GRAPHS, FactsModel, asked, values
from tftune.models.forms import Form, forms_of
from tftune.models.portfolio import greedy
from tftune.models.tree.lattice import plain_tree
from tftune.models.tree.tree import Leaf, Node

SMALLEST = 0.02
"""The least share of what is at stake that a leaf has."""
FOLDS = 5
"""Parts of the shapes, each held out once to find how deep a tree may be."""
GAIN = 0.005
"""The share of a leaf's time that another form than the config as it is must save."""
SMALLEST_GAIN = 0.002
"""The share of all time that a further form must save."""
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

    def values(self) -> dict[str, float]:
        """Features by name, those of its facts among them."""
        return values(self.shape, self.config, self.chip, self.facts)


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


def train(cases: Sequence[Case]) -> FactsModel | None:
    """The model of these cases, judged on those held out; None where they are of fewer than FEWEST
    distributions. A tree that loses there does not answer: K gives way to the config as it is, G to
    K."""
    if len(_distributions(cases)) < FEWEST:
        return None
    model, held_out = fitted(cases), judged(cases)
    as_it_is, known_us, told_us = (
        sum(totals[name] for totals in held_out.values()) for name in ("as_it_is", "known", "told")
    )
    known = Leaf((0,), len(cases), 0.0, ()) if known_us >= as_it_is else model.known
    gathered = known if told_us >= min(known_us, as_it_is) else model.gathered
    return replace(model, known=known, gathered=gathered, held_out=held_out)


def fitted(cases: Sequence[Case]) -> FactsModel:
    """The trees of these cases, before they are judged."""
    op, forms = cases[0].shape.op, cover(cases)
    features, times = [each.values() for each in cases], _times(cases, forms)
    known, gathered = (
        _chooser(features, asked(op, told=told), times, cases) for told in (False, True)
    )
    return FactsModel(
        op, forms, known, gathered, len(cases),
        tuple(sorted({each.lengths for each in cases})),
        tuple(sorted({each.shape.layout for each in cases}, key=str)),
    )  # fmt: skip


def _times(cases: Sequence[Case], forms: Sequence[Form]) -> np.ndarray:
    """[cases, forms], in microseconds."""
    return np.array([[each.times_us[form] for form in forms] for each in cases])


def cover(cases: Sequence[Case]) -> tuple[Form, ...]:
    """The config as it is, then, greedily, the forms that save most of what is left: GRAPHS
    at most."""
    every = tuple(cases[0].times_us)
    times = _times(cases, every)
    first = next(number for number, form in enumerate(every) if form.is_identity)
    had = times[:, first]
    picked = greedy(times, had, GRAPHS - 1, SMALLEST_GAIN * had.mean())
    return tuple(every[number] for number in (first, *picked))


def _distributions(cases: Sequence[Case]) -> list[str]:
    return sorted({each.distribution for each in cases})


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
) -> Node:
    """A tree that names columns of `times` [cases, answers]: of GROWTHS the one whose answers take
    least time for shapes that it did not see; the first column everywhere where none saves GAIN
    so."""
    columns = np.array([[row[name] for name in names] for row in features])
    lost = {each: each.held_out_us(columns, times, cases) for each in GROWTHS}
    growth = min(GROWTHS, key=lost.__getitem__)
    first = times[:, 0].sum()
    if not lost[growth] < first - GAIN * abs(first):
        return Leaf((0,), len(times), 0.0, ())
    tree, named = growth.leaves(columns, times)
    if tree is None:
        return Leaf((named[0],), len(times), 0.0, ())
    cases_in = Counter(map(int, tree.apply(columns)))
    leaves = {end: Leaf((named[end],), count, 0.0, ()) for end, count in cases_in.items()}
    return plain_tree(names, columns, tree, leaves)


# What it is worth.


@dataclass(frozen=True)
class Totals:
    """Microseconds of all cases of a distribution that was held out, a call each."""

    as_it_is: float
    """The config that answers for the shape, facts or not."""
    known: float
    """By K."""
    told: float
    """By G, with facts that the caller gives."""
    best: float
    """The fastest of the forms that the model chose from, each time."""
    cases: int


def judged(cases: Sequence[Case]) -> dict[str, dict[str, float]]:
    """By distribution: the `Totals` of trees that saw neither the distribution nor any shape of
    these sizes.

    Shapes are halved by the order of their sizes; each half is held out from trees that
    learn of the other.
    """
    sides = _parts([each.shape for each in cases], 2)
    halves = [{e.shape for e, own in zip(cases, sides, strict=True) if own == n} for n in (0, 1)]
    totals_of: dict[str, dict[str, float]] = {}
    for name in _distributions(cases):
        folds = [
            (
                [e for e in cases if e.distribution != name and e.shape not in half],
                [e for e in cases if e.distribution == name and e.shape in half],
            )
            for half in halves
        ]
        pairs = [(fitted(seen), held) for seen, held in folds if seen and held]
        if pairs and all(len(model.lengths) >= FEWEST for model, _ in pairs):
            totals_of[name] = asdict(totals(pairs))
    return totals_of


def totals(pairs: Sequence[tuple[FactsModel, Sequence[Case]]]) -> Totals:
    """Those of all cases, each by the model beside it."""
    rows = []
    for model, held in pairs:
        for each in held:
            known, told = (
                each.times_us[model.form(each.shape, each.config, each.chip, facts)]
                for facts in (None, each.facts)
            )
            times = [each.times_us[form] for form in model.forms]
            rows.append((times[0], known, told, min(times)))
    as_it_is, known_us, told_us, best = (sum(column) for column in zip(*rows, strict=True))
    return Totals(as_it_is, known_us, told_us, best, len(rows))
