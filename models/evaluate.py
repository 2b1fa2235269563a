"""How much time the selector loses on shapes it has not seen, through the path that serves them, beside constant rules."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from tftune.db.target import Target
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset
from tftune.models.rules import Rule, rules
from tftune.models.selector import Artifact, Selector
from tftune.models.train import train
from tftune.models.tree import Tree

SLOWER = 1.02
"""More than this over BSP's time counts as slower than BSP."""
FAMILIES = 3
"""With fewer families, octaves of the first size are held out where nobody says what."""
RESAMPLES = 400
"""Bootstrap samples of what was held out together."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Score:
    """How one rule did over the held-out shapes. Intervals hold 95 % of the bootstrap's samples, in which whole groups (what was held
    out together) are drawn with replacement: the shapes of one family go together."""

    geomean_regret: float
    geomean_interval: Interval
    p95_regret: float
    p95_interval: Interval
    worst_regret: float
    worst_shape: str
    oracle_gain_captured: float | None
    """Share of the log speed-up over BSP that the oracle has; None where the oracle is BSP everywhere."""
    captured_interval: Interval | None
    slower_than_bsp: int
    """Shapes more than 2 % slower than BSP."""
    unknown: int
    """Shapes whose chosen config has no time: never measured there, or failed. They are in no other figure."""


@dataclass(frozen=True)
class Evaluation:
    """Regret (time over the oracle's) of the selector and of constant rules, on shapes that training did not see."""

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
    """Of each group held out, the selector's regret: geometric mean and worst. Without groups in which no answer has a time."""
    rules: dict[str, Score]
    """The constant rules in use elsewhere (`rules.py`)."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        score = self.selector
        return (
            f"{self.split}, {self.shapes} shapes in {self.folds} folds: regret {score.geomean_regret:.3f} (geomean), "
            f"{score.p95_regret:.3f} (p95), {score.worst_regret:.3f} (worst, {score.worst_shape}); "
            f"{score.slower_than_bsp} more than 2 % slower than BSP"
        )


Key = Callable[[Shape], str]
Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def splits(dataset: Dataset) -> dict[str, tuple[str, Key]]:
    """What may be held out together: for each name a sentence, and what shapes of one group share."""
    size = dataset.shapes[0].SIZE
    return {
        "family": ("one family of shapes held out at a time", lambda shape: shape.layer),
        "octave": (f"one octave of {size} held out at a time", lambda shape: f"{size} from {2 ** int(math.log2(getattr(shape, size)))}"),
        "world": ("one world size held out at a time", lambda shape: f"world={shape.to_dict().get('world')}"),
    }


def evaluate(dataset: Dataset, fit: Callable[[Dataset], Tree] = train, split: str | None = None, each: Each = map) -> Evaluation:
    """Hold out each group of the split in turn. Without a split: families where there are at least 3, else octaves of the
    size that grows (M). Where there is a matrix, its shapes are judged, since regret is defined there; the others only train, and are held
    out with their group. `each`: as `map`, and may work on several groups at once. Raises ValueError for an unknown split."""
    sentence, groups = folds(dataset, split)
    matrix = set(dataset.matrix or dataset.shapes)
    judged = {name: asked for name, group in groups.items() if (asked := [shape for shape in group if shape in matrix])}
    chosen: dict[str, dict[Shape, Config]] = defaultdict(dict)
    for found in each(partial(_asked, dataset, fit), [(groups[name], asked) for name, asked in judged.items()]):
        for name, picks in found.items():
            chosen[name].update(picks)
    scores = {name: score_of(dataset, picks, list(judged.values())) for name, picks in chosen.items()}
    oracles = [dataset.oracle(shape) for asked in judged.values() for shape in asked]
    counts = [oracle.evaluations for oracle in oracles]
    complete = sum(oracle.complete for oracle in oracles)
    by_group = {name: found for name, asked in judged.items() if (found := _regret(dataset, chosen["selector"], asked))}
    selector = scores.pop("selector")
    return Evaluation(sentence, len(judged), len(oracles), complete, (min(counts), max(counts)), selector, by_group, scores)


def _regret(dataset: Dataset, picks: Mapping[Shape, Config], shapes: Sequence[Shape]) -> tuple[float, float] | None:
    """Geometric mean and worst of these choices at these shapes; None where none has a time."""
    lost = [found for shape in shapes if (found := dataset.log_regret(shape, picks[shape])) is not None]
    return (_rounded(math.exp(sum(lost) / len(lost))), _rounded(math.exp(max(lost)))) if lost else None


def _asked(dataset: Dataset, fit: Callable[[Dataset], Tree], fold: tuple[list[Shape], list[Shape]]) -> dict[str, dict[Shape, Config]]:
    """What each rule, the selector among them, answers to the shapes of a fold that are judged, having seen none of its shapes."""
    held, asked = fold
    seen = dataset.only([shape for shape in dataset.shapes if shape not in held] or held)
    rule_of = {"selector": _selector(seen, fit(seen)), **rules(seen)}
    return {name: {shape: rule(shape) for shape in asked} for name, rule in rule_of.items()}


def folds(dataset: Dataset, split: str | None) -> tuple[str, dict[str, list[Shape]]]:
    """What is held out, in a sentence, and the groups of shapes by what they share, one of which is held out at a time."""
    known = splits(dataset)
    if split is not None and split not in known:
        raise ValueError(f"there is no split {split!r}; there are {', '.join(known)}")
    groups = {name: _group(dataset.shapes, key) for name, (_, key) in known.items()}
    chosen = split or ("family" if len(groups["family"]) >= FAMILIES else "octave")
    if len(groups[chosen]) >= 2:
        return known[chosen][0], groups[chosen]
    return f"nothing held out (all shapes are of one {chosen}), so these are the training shapes", groups[chosen]


def _group(shapes: Iterable[Shape], key: Key) -> dict[str, list[Shape]]:
    groups: dict[str, list[Shape]] = defaultdict(list)
    for shape in shapes:
        groups[key(shape)].append(shape)
    return dict(groups)


def _selector(seen: Dataset, tree: Tree) -> Rule:
    """The production path. Its kernel hashes are not compared: the rows are judged, whatever source is installed here."""
    artifact = Artifact(seen.op, Target.parse(seen.target), seen.bench, {seen.mode: tree})
    selector = Selector(artifact, allow_modelled=True, check_source=False)
    return lambda shape: selector.select(shape, seen.mode).config


def score_of(dataset: Dataset, picks: Mapping[Shape, Config], groups: Sequence[Sequence[Shape]]) -> Score:
    """The figures of these choices; `groups`: what the bootstrap draws."""
    times = {shape: us for shape, config in picks.items() if (us := dataset.time_us(shape, config)) is not None}
    lost = {shape: dataset.log_regret(shape, picks[shape]) or 0.0 for shape in times}
    gained = {shape: math.log(dataset.bsp_us(shape) / us) for shape, us in times.items()}
    possible = {shape: math.log(dataset.bsp_us(shape) / dataset.oracle(shape).us) for shape in times}
    worst = max(lost, key=lost.__getitem__, default=None)
    known = [[(lost[s], gained[s], possible[s]) for s in group if s in times] for group in groups]
    figures, drawn = _figures(np.array([row for group in known for row in group]).reshape(-1, 3)), _bootstrap(known)
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
    """Geometric mean and 95th percentile of the regret, and the share of the oracle's gain. `rows`: [shapes, 3], logarithms of the regret,
    of the speed-up over BSP, and of the oracle's."""
    if not len(rows):
        return 1.0, 1.0, math.nan
    possible = float(rows[:, 2].sum())
    captured = float(rows[:, 1].sum()) / possible if possible > 1e-9 else math.nan
    return math.exp(float(rows[:, 0].mean())), math.exp(percentile(rows[:, 0].tolist(), 0.95)), captured


def _bootstrap(groups: Sequence[Sequence[tuple[float, float, float]]]) -> np.ndarray:
    """The figures of each sample, [samples, 3]: as many groups as there are, drawn with replacement (Efron 1979; a fixed seed)."""
    parts, random = [np.array(group).reshape(-1, 3) for group in groups], np.random.default_rng(0)
    draws = random.integers(len(parts), size=(RESAMPLES, len(parts)))
    return np.array([_figures(np.concatenate([parts[number] for number in draw])) for draw in draws])


def _middle(values: np.ndarray) -> Interval:
    found = values[np.isfinite(values)]
    return (_rounded(float(np.quantile(found, 0.025))), _rounded(float(np.quantile(found, 0.975)))) if len(found) else (0.0, 0.0)


def _rounded(value: float) -> float:
    return round(value, 4)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed.

    >>> percentile([1.0, 1.1, 1.2, 1.3], 0.5)
    1.1
    """
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]
