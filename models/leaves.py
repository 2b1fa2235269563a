"""What every tree is made of, however its splits were found: features worth asking, thresholds that read well, leaves with a reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset
from tftune.models.tree import Leaf

AS_FAST = 1.005
"""Times over the least up to which BSP is called the fastest."""


def distinct(rows: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """The features that order the shapes in different ways; of those that agree, the first, which is the plainest.

    >>> distinct([{"m": 1, "n": 8, "area": 8}, {"m": 2, "n": 8, "area": 16}, {"m": 4, "n": 4, "area": 16}])
    ('m', 'n', 'area')
    >>> distinct([{"m": 1, "n": 8, "area": 8}, {"m": 2, "n": 8, "area": 16}])
    ('m', 'n')
    """
    found: dict[tuple[int, ...], str] = {}
    for name in rows[0]:
        order = {value: rank for rank, value in enumerate(sorted({row[name] for row in rows}))}
        found.setdefault(tuple(order[row[name]] for row in rows), name)
    return tuple(found.values())


def round_between(low: float, high: float, part: tuple[float, float] = (0.25, 0.75)) -> float:
    """A number t with low <= t < high that reads well, from a part of the gap: a power of two, else one of few digits.

    >>> round_between(64, 128), round_between(64, 256), round_between(1, 2), round_between(0, 1)
    (100.0, 128.0, 1.5, 0.5)
    >>> round_between(64, 128, (0, 0.25)), round_between(512, 1024, (0.75, 1))
    (64.0, 1000.0)
    """
    least, most = (low + share * (high - low) for share in part)
    middle = (least + most) / 2
    tried = [2.0 ** round(math.log2(middle))] if middle >= 1 else []
    tried += [float(f"{middle:.{digits}g}") for digits in range(1, 17)]
    return next((value for value in tried if least <= value <= most and value < high), low)


def measured(shapes: Sequence[Shape]) -> tuple[tuple[str, tuple[int | str, ...]], ...]:
    """Values seen of each field: the world size and words (dtype, layouts) are never interpolated, sizes not far beyond their range."""
    return tuple((name, tuple(sorted({shape.to_dict()[name] for shape in shapes}))) for name in sorted(shapes[0].to_dict()))


def total_loss(dataset: Dataset, shapes: Sequence[Shape], config: Config) -> float:
    return math.fsum(dataset.loss(shape, config) for shape in shapes)


def best_bsp(dataset: Dataset, shapes: Sequence[Shape]) -> Config:
    """The BSP form that is valid for most of these shapes (A sharded along M needs its own), then the one that loses least."""
    forms = sorted({dataset.bsp(shape) for shape in shapes})
    valid = {form: [shape for shape in shapes if dataset.why_invalid(shape, form) is None] for form in forms}
    return min(forms, key=lambda form: (-len(valid[form]), total_loss(dataset, valid[form], form)))


def make_leaf(
    dataset: Dataset,
    shapes: Sequence[Shape],
    configs: Sequence[Config],
    config: Config,
    *,
    rows: int | None = None,
    asked: int | None = None,
    nearby: bool = False,
) -> Leaf:
    """The leaf that names this config for these shapes, and says why. `rows`: how many of them end there, and `asked`: how many were asked
    that these are of, where it is not all; `nearby`: whether some of them end elsewhere."""
    worst = max(dataset.loss(shape, config) for shape in shapes)
    low = None if config.variant == "bsp" else min(dataset.speedup_low(shape, config) for shape in shapes)
    count = f"{len(shapes)} of {asked}" if asked not in (None, len(shapes)) else str(len(shapes))
    on = f"{count} training shape{'s' * (count != '1')}{' nearby' * nearby}"
    return Leaf(
        config=config,
        bsp=best_bsp(dataset, shapes),
        rows=len(shapes) if rows is None else rows,
        worst_regret=round(math.exp(worst), 4),
        speedup_low=None if low is None else round(low, 4),
        reason=_reason(dataset, shapes, configs, config, low, worst, on),
        kernel_hash=dataset.kernels[config.variant],
    )


def _reason(
    dataset: Dataset, shapes: Sequence[Shape], configs: Sequence[Config], config: Config, low: float | None, worst: float, on: str
) -> str:
    """`low`: the lower bound of the speed-up, None where the config is BSP. `worst`: the most it loses, in log regret."""
    how = "predicted" if dataset.bench == "model" else "measured"
    if low is not None:
        return f"{config.variant} is {how} to be at least {low:.2f} times as fast as BSP on {on}"
    rivals = {rival: _unguarded_loss(dataset, shapes, rival) for rival in configs if rival.variant != "bsp"}
    rival = min(rivals, key=rivals.__getitem__, default=None)
    if rival is None or rivals[rival] >= total_loss(dataset, shapes, config):
        if worst > math.log(AS_FAST):
            return f"no config is {how} to be better than BSP on all of {on}, where BSP takes up to {math.exp(worst):.2f} times the least"
        return f"BSP is {how} to be the fastest on {on}"
    sure = min(dataset.speedup_low(shape, rival) for shape in shapes)
    if sure >= 1:
        return f"{rival.variant} is faster on {on}, but not expected to be on the mean of the shapes between"
    return f"{rival.variant} may be faster, but the lower bound of its speed-up over BSP is {sure:.2f} on one of {on}: BSP until it is 1"


def _unguarded_loss(dataset: Dataset, shapes: Sequence[Shape], config: Config) -> float:
    """Summed log regret if the config were run whatever its bound; infinite where it was not measured."""
    losses = [dataset.log_regret(shape, config) for shape in shapes]
    return math.inf if None in losses else math.fsum(loss for loss in losses if loss is not None)
