"""Warm start: what won at the shapes nearest to this one, by rows of whatever kernel, world or
layout, or by an artifact.

Such rows say nothing of today's times here, but their winners are worth a try, fitted to this
shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from math import log2

from tftune.db.evidence import BSP, Place
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.distance import distance
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.shape import Shape, size_of
from tftune.kernels.core.space import Config

Shipped = Callable[[Shape, str], Sequence[Config]]
"""Shape and mode to the configs that an artifact names for the shapes nearest to it."""
LAYERS = 2
"""Layers (all sizes but the one that grows with the work) whose winners are tried: the nearest
ones."""
NEAR = 1.1
"""A variant whose best config took so many times the winner's time is not carried to another
shape."""


def neighbours(shape: Shape, others: Iterable[Shape], layers: int = LAYERS) -> list[Shape]:
    """The shape of the same size in each of the nearest layers, this one among them, and the next
    smaller and the next larger one.

    >>> from tftune.kernels.all_gather_gemm import AllGatherGemm as G
    >>> [s.m for s in neighbours(G(40, 512, 512, 2), [G(m, 512, 512, 2) for m in (8, 32, 64, 128)])]
    [32, 64]
    """
    by_layer = groups(others, _layer).values()
    ranked = sorted(by_layer, key=lambda layer: _between_layers(shape, layer[0]))
    return [neighbour for layer in ranked[:layers] for neighbour in _beside(shape, layer)]


def _layer(shape: Shape) -> tuple[object, ...]:
    return tuple(getattr(shape, field.name) for field in fields(shape) if field.name != shape.SIZE)


def _between_layers(one: Shape, other: Shape) -> float:
    """The distance but for the size that grows with the work."""
    return distance(one, other) - abs(log2(size_of(one) / size_of(other)))


def _beside(shape: Shape, layer: Sequence[Shape]) -> list[Shape]:
    size = size_of(shape)
    same = [other for other in layer if size_of(other) == size]
    below = sorted((other for other in layer if size_of(other) < size), key=size_of)[-1:]
    above = sorted((other for other in layer if size_of(other) > size), key=size_of)[:1]
    return [*same, *below, *above]


class PastWinners:
    """The fastest fused config of each variant, where it came near the fastest of all, for each
    shape and mode of some rows."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._best: dict[Place, dict[str, tuple[float, Config]]] = {}
        self.learn(trials)

    def learn(self, trials: Iterable[Trial]) -> None:
        """Take in more rows, whose configs are complete."""
        for trial in trials:
            if (
                trial.config.variant != BSP
                and isinstance(trial.outcome, Measurement)
                and trial.outcome.speedup is not None
            ):
                best = self._best.setdefault((trial.shape, trial.mode), {})
                new = trial.outcome.speedup, trial.config
                best[trial.config.variant] = max(best.get(trial.config.variant, new), new)

    def near(self, shape: Shape, mode: str) -> list[Config]:
        """The winners of the neighbours in this mode, the nearest shape's first, each once."""
        shapes = neighbours(shape, (other for other, searched in self._best if searched == mode))
        return list(
            dict.fromkeys(config for other in shapes for config in self._winners((other, mode)))
        )

    def _winners(self, place: Place) -> list[Config]:
        ranked = sorted(self._best[place].values(), reverse=True)
        return [config for speedup, config in ranked if speedup * NEAR >= ranked[0][0]]
