"""What won near a shape before: rows of earlier kernels, or of other worlds, say nothing of today's times here, but their winners are worth
a try."""

from __future__ import annotations

from collections.abc import Iterable

from tftune.db.trial import Measurement, Trial
from tftune.kernels.distance import distance
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config, Space
from tftune.tuner.rows import BSP, Place, completed


class Former:
    """The fastest fused config of each variant beside BSP, for each shape and mode of some rows, whatever kernel they are of."""

    def __init__(self, space: Space, trials: Iterable[Trial]) -> None:
        self._best: dict[Place, dict[str, tuple[float, Config]]] = {}
        for trial in completed(space, trials):
            if trial.config.variant != BSP and isinstance(trial.outcome, Measurement) and trial.outcome.speedup is not None:
                best = self._best.setdefault((trial.shape, trial.mode), {})
                best[trial.config.variant] = max(best.get(trial.config.variant, (0.0, trial.config)), (trial.outcome.speedup, trial.config))

    def near(self, shape: Shape, mode: str, places: int) -> list[Config]:
        """The winners of so many nearest shapes, this one among them, in this mode: the nearest shape's first, each once."""
        ranked = sorted((place for place in self._best if place[1] == mode), key=lambda place: distance(shape, place[0]))
        return list(dict.fromkeys(config for place in ranked[:places] for _, config in self._best[place].values()))
