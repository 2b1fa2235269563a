"""What to try at a shape by its sizes alone: defaults, what the analytic model makes of them, and
small changes of a config that was fast.

The model puts configs in an order here; none of its times is shown. So a chip without measured
constants may borrow a relative's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tftune.db.evidence import BSP
from tftune.kernels.core.chip import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import ordering
from tftune.tuner.search.local_refinement import around, descend


def defaults(shape: Shape, mode: str, chip: Chip | None) -> Iterator[Config]:
    """The default of each fused variant and, where the model can order configs, the best that it
    sees on the way down from there: by turns, the fastest first."""
    space = operation(shape.op).space
    sound = [space.complete(c) for c in space.defaults(shape, chip) if c.variant != BSP]
    time_us = _modelled(shape, mode, chip)
    if chip is None or time_us is None:
        yield from sound
        return

    def times_us(configs: Sequence[Config]) -> list[float]:
        return list(map(time_us, configs))

    possible = [config for config in sound if space.why_invalid(shape, config, chip) is None]
    ways = [descend(space, shape, chip, [config], times_us) for config in possible]
    best = [min(way, key=time_us) for way in ways]
    for pair in zip(sorted(best, key=time_us), sorted(possible, key=time_us), strict=True):
        yield from pair


def changes(shape: Shape, mode: str, config: Config, chip: Chip | None) -> list[Config]:
    """The possible configs that differ from this one in one knob, in the model's order where it has
    one. None of them where the chip is not known: then most would not run."""
    if chip is None:
        return []
    configs = around(operation(shape.op).space, shape, chip, config, repaired=False)
    time_us = _modelled(shape, mode, chip)
    return configs if time_us is None else sorted(configs, key=time_us)


def _modelled(shape: Shape, mode: str, chip: Chip | None) -> Callable[[Config], float] | None:
    """The model's time of a config, by the chip's constants or a relative's; None where neither is
    known."""
    predict = None if chip is None else ordering(chip, getattr(shape, "world", 1))
    if chip is None or predict is None:
        return None
    return lambda config: predict(shape, config, mode, chip)
