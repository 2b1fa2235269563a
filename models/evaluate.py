"""How much time the selector loses on shapes it has not seen, through the path that serves them, beside constant rules."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tftune.db.target import Target
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset
from tftune.models.features import names, vector
from tftune.models.selector import Artifact, Selector
from tftune.models.train import train
from tftune.models.tree import Tree

SLOWER = 1.02
"""More than this over BSP's time counts as slower than BSP."""


@dataclass(frozen=True)
class Score:
    """How one rule did over the held-out shapes."""

    geomean_regret: float
    p95_regret: float
    worst_regret: float
    worst_shape: str
    oracle_gain_captured: float | None
    """Share of the log speed-up over BSP that the oracle has; None where the oracle is BSP everywhere."""
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
    selector: Score
    rules: dict[str, Score]
    """`always BSP`, and `always <variant>`: the best of its configs that were measured on most shapes, with BSP where it was not."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        score = self.selector
        return (
            f"{self.split}, {self.shapes} shapes in {self.folds} folds: regret {score.geomean_regret:.3f} (geomean), "
            f"{score.p95_regret:.3f} (p95), {score.worst_regret:.3f} (worst, {score.worst_shape}); "
            f"{score.slower_than_bsp} more than 2 % slower than BSP"
        )


Rule = Callable[[Shape], Config]


def evaluate(dataset: Dataset, fit: Callable[[Dataset], Tree] = train) -> Evaluation:
    """Hold out each family in turn where there are at least 3, else each octave of the operation's first feature (M)."""
    split, folds = _folds(dataset)
    chosen: dict[str, dict[Shape, Config]] = defaultdict(dict)
    for held in folds:
        rest = [shape for shape in dataset.shapes if shape not in held]
        for name, rule in _rules(dataset.only(rest or held), fit).items():
            chosen[name].update({shape: rule(shape) for shape in held})
    scores = {name: _score(dataset, picks) for name, picks in chosen.items()}
    complete = sum(dataset.oracle(shape).complete for shape in dataset.shapes)
    return Evaluation(split, len(folds), len(dataset.shapes), complete, scores.pop("selector"), scores)


def _folds(dataset: Dataset) -> tuple[str, list[list[Shape]]]:
    by_family = _group(dataset.shapes, lambda shape: shape.family)
    if len(by_family) >= 3:
        return "one family of shapes held out at a time", by_family
    size = names(dataset.op)[0]
    by_octave = _group(dataset.shapes, lambda shape: math.floor(math.log2(vector(dataset.op, shape)[0])))
    if len(by_octave) >= 2:
        return f"one octave of {size} held out at a time", by_octave
    return "nothing held out (all shapes are of one octave), so these are the training shapes", by_octave


def _group(shapes: Iterable[Shape], key: Callable[[Shape], object]) -> list[list[Shape]]:
    groups: dict[object, list[Shape]] = defaultdict(list)
    for shape in shapes:
        groups[key(shape)].append(shape)
    return list(groups.values())


def _rules(seen: Dataset, fit: Callable[[Dataset], Tree]) -> dict[str, Rule]:
    """The selector trained on what was seen, and the constant rules."""
    fused = sorted({config.variant for config in seen.candidates()} - {"bsp"})
    constant = {f"always {variant}": _constant(seen.op, seen.target, variant) for variant in fused}
    return {"selector": _selector(seen, fit(seen)), "always BSP": seen.bsp, **constant}


def _selector(seen: Dataset, tree: Tree) -> Rule:
    """The production path. Its kernel hashes are not compared: the rows are judged, whatever source is installed here."""
    artifact = Artifact(seen.op, Target.parse(seen.target), seen.bench, {seen.mode: tree})
    selector = Selector(artifact, allow_modelled=True, check_source=False)
    return lambda shape: selector.select(shape, seen.mode).config


def _constant(op: str, target: str, variant: str) -> Rule:
    """Always the variant, with the config that the operation itself would take for the shape: what a library without a tuner does. BSP
    where the variant has none."""
    space, chip = operation(op).space, Target.parse(target).chip

    def rule(shape: Shape) -> Config:
        defaults = [space.complete(config) for config in space.defaults(shape, chip)]
        return next((config for config in defaults if config.variant == variant), defaults[0])

    return rule


def _score(dataset: Dataset, picks: dict[Shape, Config]) -> Score:
    times = {shape: us for shape, config in picks.items() if (us := dataset.time_us(shape, config)) is not None}
    regrets = {shape: math.exp(dataset.log_regret(shape, picks[shape]) or 0.0) for shape in times}
    worst = max(regrets, key=regrets.__getitem__, default=None)
    gained = math.fsum(math.log(dataset.bsp_us(shape) / us) for shape, us in times.items())
    possible = math.fsum(math.log(dataset.bsp_us(shape) / dataset.oracle(shape).us) for shape in times)
    return Score(
        geomean_regret=_rounded(math.exp(math.fsum(map(math.log, regrets.values())) / max(len(regrets), 1))),
        p95_regret=_rounded(percentile(list(regrets.values()) or [1.0], 0.95)),
        worst_regret=_rounded(max(regrets.values(), default=1.0)),
        worst_shape="" if worst is None else str(worst),
        oracle_gain_captured=_rounded(gained / possible) if possible > 1e-9 else None,
        slower_than_bsp=sum(us > SLOWER * dataset.bsp_us(shape) for shape, us in times.items()),
        unknown=len(picks) - len(times),
    )


def _rounded(value: float) -> float:
    return round(value, 4)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed.

    >>> percentile([1.0, 1.1, 1.2, 1.3], 0.5)
    1.1
    """
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]
