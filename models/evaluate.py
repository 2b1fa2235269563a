"""How much time the selector loses on shapes it has not seen, through the path that serves them,
beside constant rules."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from tftune.db.target import Target
from tftune.db.trial import Interval
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.shape import Shape, size_of
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact, Mode
from tftune.models.baselines import Rule, rules
from tftune.models.dataset import Dataset
from tftune.models.formula.fit import held_out
from tftune.models.layout import LayoutModel
from tftune.models.selector import Selector
from tftune.models.tree.trainer import train_layout

SLOWER = 1.02
"""More than this over BSP's time counts as slower than BSP."""
RESAMPLES = 400
"""Bootstrap samples of what was held out together."""
Fold = tuple[Sequence[Shape], Sequence[Shape]]
"""Shapes to learn from, and shapes to judge."""


@dataclass(frozen=True)
class Score:
    """How one rule did over the held-out shapes. Intervals hold 95 % of the bootstrap's samples, in
    which whole groups (what was held out together) are drawn with replacement: the shapes of one
    family go together."""

    geomean_regret: float
    geomean_interval: Interval
    p95_regret: float
    p95_interval: Interval
    worst_regret: float
    worst_shape: str
    oracle_gain_captured: float | None
    """Share of the log speed-up over BSP that the oracle has; None where the oracle is BSP
    everywhere."""
    captured_interval: Interval | None
    slower_than_bsp: int
    """Shapes more than 2 % slower than BSP's fastest form."""
    unknown: int
    """Shapes whose chosen config has no time: never measured there, or failed. They are in no other
    figure."""


@dataclass(frozen=True)
class Evaluation:
    """Regret (time over the oracle's) of the selector and of constant rules, on shapes that
    training did not see."""

    split: str
    """What was held out together."""
    folds: int
    shapes: int
    complete_oracles: int
    """Shapes whose oracle is of an exhausted space or of at least 160 configs."""
    oracle_evaluations: tuple[int, int]
    """The fewest and the most configs that an oracle is the best of."""
    selector: Score
    groups: dict[str, tuple[float, float]]
    """The selector's regret in each family judged: geometric mean and worst. Without families in
    which no answer has a time."""
    rules: dict[str, Score]
    """The constant rules in use elsewhere (`baselines.py`), and the strongest form of BSP as the
    selector would name it."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        score = self.selector
        return (
            f"{self.split}, {self.shapes} shapes in {self.folds} folds: regret "
            f"{score.geomean_regret:.3f} (geomean), "
            f"{score.p95_regret:.3f} (p95), {score.worst_regret:.3f} (worst, {score.worst_shape}); "
            f"{score.slower_than_bsp} more than 2 % slower than BSP"
        )


Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
Train = Callable[[Dataset], LayoutModel]


def splits(dataset: Dataset) -> dict[str, tuple[str, list[Fold]]]:
    """What may be held out of the rows of one layout: for each name a sentence, and its folds."""
    size, shapes = dataset.shapes[0].SIZE, dataset.shapes
    both: list[Fold] = [
        ([shapes[row] for row in learned], [shapes[row] for row in judged])
        for learned, judged in held_out(dataset)
    ]
    return {
        "any": (f"family and {size} held out at once", both),
        "family": ("one family of shapes held out at a time", _folds(shapes, _layer)),
        size: (
            f"one {size} held out at a time, but for the least and the greatest",
            _folds(_inner(shapes), size_of, shapes),
        ),
    }


def _layer(shape: Shape) -> str:
    return shape.layer


def _inner(shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes that have a smaller and a larger one of their family."""
    sizes = {layer: [*map(size_of, family)] for layer, family in groups(shapes, _layer).items()}
    ends = {layer: (min(of_layer), max(of_layer)) for layer, of_layer in sizes.items()}
    return [shape for shape in shapes if size_of(shape) not in ends[shape.layer]]


def _folds(
    shapes: Sequence[Shape], key: Callable[[Shape], object], among: Sequence[Shape] | None = None
) -> list[Fold]:
    folds = [
        ([shape for shape in among or shapes if shape not in set(group)], group)
        for group in groups(shapes, key).values()
    ]
    return [(learned, judged) for learned, judged in folds if learned]


def evaluate(
    dataset: Dataset, train: Train = train_layout, split: str = "any", each: Each = map
) -> Evaluation | None:
    """Judge what is trained on the rows of one layout. Where there is a matrix, its shapes are
    judged, since regret is defined there; the others only train. None where there are too few
    shapes to hold any out. `each`: as `map`, and may work on several folds at once. Raises
    ValueError for an unknown split."""
    known = splits(dataset)
    if split not in known:
        raise ValueError(f"there is no split {split!r}; there are {', '.join(known)}")
    sentence, folds = known[split]
    matrix = set(dataset.matrix or dataset.shapes)
    folds = [
        (learned, asked)
        for learned, judged in folds
        if (asked := [shape for shape in judged if shape in matrix])
    ]
    if not folds:
        return None
    chosen: dict[str, dict[Shape, Config]] = defaultdict(dict)
    for found in each(partial(_asked, dataset, train), folds):
        for name, picks in found.items():
            chosen[name].update(picks)
    judged = [shape for _, asked in folds for shape in asked]
    families = groups(judged, _layer)
    scores = {
        name: score_of(dataset, picks, list(families.values())) for name, picks in chosen.items()
    }
    oracles = [dataset.oracle(shape) for shape in judged]
    counts = [oracle.evaluations for oracle in oracles]
    by_family = {
        name: found
        for name, asked in families.items()
        if (found := _regret(dataset, chosen["selector"], asked))
    }
    return Evaluation(
        sentence, len(folds), len(judged), sum(oracle.complete for oracle in oracles),
        (min(counts), max(counts)), scores.pop("selector"), by_family, scores,
    )  # fmt: skip


def _regret(
    dataset: Dataset, picks: Mapping[Shape, Config], shapes: Sequence[Shape]
) -> tuple[float, float] | None:
    """Geometric mean and worst of these choices at these shapes; None where none has a time."""
    lost = [
        log_regret
        for shape in shapes
        if (log_regret := dataset.log_regret(shape, picks[shape])) is not None
    ]
    return (
        (_rounded(math.exp(sum(lost) / len(lost))), _rounded(math.exp(max(lost)))) if lost else None
    )


def _asked(dataset: Dataset, train: Train, fold: Fold) -> dict[str, dict[Shape, Config]]:
    """What each rule, the selector among them, answers to the shapes of a fold that are judged,
    having seen none of its shapes."""
    learned, asked = fold
    seen = dataset.only(learned)
    selector = selector_of(seen, train(seen))
    bsp = strongest_form(seen, selector)
    best = {shape: seen.best(shape) for shape in seen.shapes}
    rule_of: dict[str, Rule] = {"selector": lambda shape: selector.select(shape, seen.mode).config}
    rule_of |= rules(seen.op, Target.parse(seen.target).chip, best, bsp)
    return {name: {shape: rule(shape) for shape in asked} for name, rule in rule_of.items()}


def selector_of(seen: Dataset, model: LayoutModel) -> Selector:
    """The production path. Revisions are not compared: the rows are judged, whatever code is
    installed here."""
    mode = Mode({model.layout: model}, {})
    artifact = Artifact(seen.op, Target.parse(seen.target), seen.bench, {seen.mode: mode})
    return Selector(artifact, allow_modelled=True, check_source=False)


def strongest_form(seen: Dataset, selector: Selector) -> Rule:
    """The form of BSP that the selector would name, were BSP the answer."""

    def rule(shape: Shape) -> Config:
        answerer = selector.answerer(shape, seen.mode)
        listed = () if isinstance(answerer, str) else answerer.shortlist(shape)
        form = next((config for config in listed if config.variant == "bsp"), None)
        return form or seen.bsp(
            min(seen.shapes, key=lambda other: abs(math.log(_volume(shape) / _volume(other))))
        )

    return rule


def _volume(shape: Shape) -> float:
    return math.prod(float(size) for size in shape.sizes_key)


def score_of(
    dataset: Dataset, picks: Mapping[Shape, Config], groups: Sequence[Sequence[Shape]]
) -> Score:
    """The figures of these choices; `groups`: what the bootstrap draws."""
    times = {
        shape: us
        for shape, config in picks.items()
        if (us := dataset.time_us(shape, config)) is not None
    }
    lost = {shape: dataset.log_regret(shape, picks[shape]) or 0.0 for shape in times}
    gained = {shape: math.log(dataset.bsp_us(shape) / us) for shape, us in times.items()}
    possible = {
        shape: math.log(dataset.bsp_us(shape) / dataset.oracle(shape).us) for shape in times
    }
    worst = max(sorted(lost), key=lost.__getitem__, default=None)  # of equals the smallest
    known = [[(lost[s], gained[s], possible[s]) for s in group if s in times] for group in groups]
    figures = _figures(np.array([row for group in known for row in group]).reshape(-1, 3))
    drawn = _bootstrap(known)
    return Score(
        geomean_regret=_rounded(figures[0]),
        geomean_interval=_middle(drawn[:, 0]),
        p95_regret=_rounded(figures[1]),
        p95_interval=_middle(drawn[:, 1]),
        worst_regret=_rounded(math.exp(max(lost.values(), default=0.0))),
        worst_shape="" if worst is None else str(worst),
        oracle_gain_captured=None if math.isnan(figures[2]) else _rounded(figures[2]),
        captured_interval=None if math.isnan(figures[2]) else _middle(drawn[:, 2]),
        slower_than_bsp=sum(us > SLOWER * dataset.bsp_us(shape) for shape, us in times.items()),
        unknown=len(picks) - len(times),
    )


def _figures(rows: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean and 95th percentile of the regret, and the share of the oracle's gain. `rows`:
    [shapes, 3], logarithms of the regret, of the speed-up over BSP, and of the oracle's."""
    if not len(rows):
        return 1.0, 1.0, math.nan
    possible = float(rows[:, 2].sum())
    captured = float(rows[:, 1].sum()) / possible if possible > 1e-9 else math.nan
    lost = rows[:, 0].tolist()
    return math.exp(float(rows[:, 0].mean())), math.exp(percentile(lost, 0.95)), captured


def _bootstrap(groups: Sequence[Sequence[tuple[float, float, float]]]) -> np.ndarray:
    """The figures of each sample, [samples, 3]: as many groups as there are, drawn with replacement
    (Efron 1979; a fixed seed)."""
    parts, random = [np.array(group).reshape(-1, 3) for group in groups], np.random.default_rng(0)
    draws = random.integers(len(parts), size=(RESAMPLES, len(parts)))
    return np.array(
        [_figures(np.concatenate([parts[number] for number in draw])) for draw in draws]
    )


def _middle(values: np.ndarray) -> Interval:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 0.0
    low, high = (_rounded(float(np.quantile(finite, share))) for share in (0.025, 0.975))
    return low, high


def _rounded(value: float) -> float:
    return round(value, 4)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed.

    >>> percentile([1.0, 1.1, 1.2, 1.3], 0.5)
    1.1
    """
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]
