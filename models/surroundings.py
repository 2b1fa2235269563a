"""What the measured speed-ups of a layout say of a shape among them. Standard library only."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from math import dist
from typing import NamedTuple

from tftune.kernels.core.registry import operation
from tftune.models.config_times import ConfigTimes
from tftune.models.gains import FAR, Around, Gains, Point, Ranking, logs_of, nearest
from tftune.models.layout import LayoutModel
from tftune.models.tree.tree import Sizes

FAMILIES_KEPT = 64
"""Families for which the shapes within reach are kept: the layers of a few models."""
PLACES_KEPT = 256
"""Places of which the estimates are kept: since sizes fill tiles whole, a family's prompts of up to
8192 tokens lie at 78 places."""


class Named(NamedTuple):
    """The config that stands for a variant at a shape, and its estimated time."""

    us: float
    bsp_us: float
    number: int
    near: tuple[Sizes, ...]
    """The measured shape that the config is of, and the nearest ones."""
    error: float
    """Error of the logarithm of the speed-up."""


class Place:
    """What measured shapes say of the sizes that fill the same tiles."""

    def __init__(self, around: Around, gains: Gains, bsp_logs: Sequence[float]) -> None:
        self._around, self._bsp_logs = around, bsp_logs
        self.numbers = around.numbers
        """The measured shapes near it, the nearest first."""
        self.ranking = Ranking(around, gains.logs)

    @cached_property
    def bsp_log(self) -> float | None:
        """The logarithm of BSP's time; None where too few shapes are near."""
        return self._around.estimate(self._bsp_logs)


class Surroundings:
    """The measured shapes of a layout, ready to be asked."""

    def __init__(self, model: LayoutModel, gains: Gains, times: ConfigTimes) -> None:
        self._model, self._gains, self._times = model, gains, times
        shape, is_recipe = operation(model.op).shape, operation(model.op).space.is_recipe
        self._place = shape.coordinates().index(shape.SIZE)
        self._near = lru_cache(FAMILIES_KEPT)(self._near_family)
        self._at = lru_cache(PLACES_KEPT)(self._place_at)
        self._is_recipe = [is_recipe(config) for config in model.configs]

    def named(
        self, sizes: Sizes, bsp_us: float | None, why_not: Callable[[int], str | None]
    ) -> Iterator[Named]:
        """For each variant that may run at these sizes its config, the highest speed-up first;
        nothing where too few shapes are near. `bsp_us`: BSP's time, where it is known. `why_not`:
        why the config of a number may not answer, or None.

        The config is the fastest of its variant at the nearest shape, of those that by their
        formulas take about as long here as the fastest of them."""
        around = self._at(logs_of(sizes, self._place))
        bsp_log = around.bsp_log if bsp_us is None else math.log(bsp_us)
        if bsp_log is None:
            return
        us_of = self._formulas_at(sizes, why_not)
        for log, variant in around.ranking:
            listed = ((place, self._fastest[place].get(variant)) for place in around.numbers)
            those = ((place, number) for place, number in listed if number is not None)
            chosen = nearest((us, one) for one in those if (us := us_of(one[1])) is not None)
            if chosen is not None:
                place, number = chosen
                beside = list(dict.fromkeys((place, *around.numbers[:3])))
                near = tuple(self._model.known[other].sizes for other in beside[:3])
                us = math.exp(bsp_log - log)
                yield Named(us, math.exp(bsp_log), number, near, self._gains.error)

    def _formulas_at(
        self, sizes: Sizes, why_not: Callable[[int], str | None]
    ) -> Callable[[int], float | None]:
        """Each config's time at these sizes by its formula; None where it may not answer."""
        curve = self._times.curve(sizes)

        @cache
        def us(number: int) -> float | None:
            if why_not(number) is not None:
                return None
            return self._times.us(number, sizes, curve)

        return us

    def _place_at(self, point: Point) -> Place:
        return Place(Around(point, self._within_reach(point)), self._gains, self._bsp_logs)

    def _within_reach(self, place: Point) -> list[tuple[int, Point]]:
        """The measured shapes that may be near."""
        points, size = self._near(self._family(place)), place[self._place]
        first = bisect_left(points, size - FAR, key=self._size)
        last = bisect_right(points, size + FAR, key=self._size)
        return points[first:last]

    def _near_family(self, family: Point) -> list[tuple[int, Point]]:
        return [one for one in self._points if dist(family, self._family(one[1])) <= FAR]

    @cached_property
    def _points(self) -> list[tuple[int, Point]]:
        """Where each measured shape lies, with its number, in the order of the size that grows."""
        places = [logs_of(known.sizes, self._place) for known in self._model.known]
        return sorted(enumerate(places), key=self._size)

    def _family(self, point: Point) -> Point:
        """Doublings of the other sizes."""
        return point[: self._place] + point[self._place + 1 :]

    def _size(self, point: tuple[int, Point]) -> float:
        """Doublings of the size that grows."""
        return point[1][self._place]

    @cached_property
    def _bsp_logs(self) -> list[float]:
        """The logarithm of BSP's time at each measured shape."""
        bsp = {n for n, config in enumerate(self._model.configs) if config.variant == "bsp"}
        return [
            math.log(min(us for number, us in known.times_us if number in bsp))
            for known in self._model.known
        ]

    @cached_property
    def _fastest(self) -> list[dict[str, int]]:
        """For each measured shape the numbers of the fastest configs that are kept, by variant: of
        a config and the recipe that names it the recipe, which follows the shape."""
        configs = self._model.configs
        return [
            {
                configs[number].variant: number
                for _, _, number in sorted(
                    (-us, self._is_recipe[number], number) for number, us in known.times_us
                )
            }
            for known in self._model.known
        ]
