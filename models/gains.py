"""How many times as fast as BSP a variant is at sizes that were not measured, from the measured
shapes around them. Standard library only.

Times of GEMMs jump where tiles and waves are full, for BSP and for a fused kernel alike; their
ratio does not. So a plane through the logarithms of measured speed-ups, to which near shapes count
most, often errs less than the ratio of two formulas of times. Which config has that speed-up is
told by formulas: tiles that fit the rows of a near shape may not fit these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import islice
from math import dist, exp, inf, log2
from operator import mul
from typing import Any, TypeVar

from tftune.models.tree.tree import Sizes

T = TypeVar("T")

WIDTH = 1.0
"""Doublings of the sizes over which a measured shape's weight falls to 0.61."""
FAR = 2.5
"""Doublings from which on a shape does not count."""
LEAST, MOST = 4, 32
"""Shapes that a plane needs, and the nearest ones that it takes."""
RIDGE = 0.5
"""Penalty of a slope: what one shape weighs a doubling away."""
TILE = 128
"""The most rows of a tile."""
TRIED, ALIKE = 8, 1.05
"""How many near shapes may name a config, and how many times the least time of these by formulas it
may take."""


@dataclass(frozen=True)
class Gains:
    """Measured speed-ups of variants at the known shapes of a layout."""

    error: float
    """Error of the logarithm of an estimate, families and sizes held out."""
    logs: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """By variant, for each known shape: the logarithm of BSP's time over that of the variant's
    fastest config; None where none was measured."""

    def to_dict(self) -> dict[str, Any]:
        rounded = {
            variant: [None if one is None else round(one, 4) for one in logs]
            for variant, logs in self.logs.items()
        }
        return {"error": self.error, "logs": rounded}

    @classmethod
    def from_dict(cls, values: Any) -> Gains:
        """Raises TypeError where the values are none of gains."""
        match values:
            case {"error": int() | float() as error, "logs": {**logs}} if all(
                map(_is_row, logs.values())
            ):
                rows: dict[Any, Any] = logs
                return cls(float(error), {str(name): tuple(row) for name, row in rows.items()})
        raise TypeError(f"gains are {values!r:.80}")


def _is_row(value: Any) -> bool:
    """Whether it is a list of numbers and None."""
    numbers = int, float, type(None)
    return isinstance(value, list) and all(type(one) in numbers for one in value)


Point = tuple[float, ...]


class Around:
    """The measured shapes near one place."""

    def __init__(self, place: Point, points: Iterable[tuple[int, Point]]) -> None:
        """`points`: with their numbers, logarithms of the sizes, as `place`; those beyond FAR in
        one size may be left out."""
        self._place = place
        near = [(d, n, point) for n, point in points if (d := dist(place, point)) <= FAR]
        near.sort()
        self.numbers = [number for _, number, _ in near]
        """The nearest first."""
        self._near = dict(zip(self.numbers, near, strict=True))

    def estimate(self, values: Sequence[float | None]) -> float | None:
        """The value at the place, of a plane through the values of the shapes by number; None where
        too few are near. It ends at the lowest and the highest value."""
        known = self.known(values)
        return self.plane(values, known) if known else None

    def known(self, values: Sequence[float | None]) -> list[int]:
        """The shapes of a plane, by number, the nearest first; none where they are too few."""
        seen_at = (number for number in self.numbers if values[number] is not None)
        known = list(islice(seen_at, MOST))
        return known if len(known) >= LEAST else []

    def plane(self, values: Sequence[float | None], known: Sequence[int]) -> float:
        """The value at the place, of the plane of least weighted squares through these shapes,
        whose slopes have a penalty; the nearest shape weighs 1."""
        away, _, points = zip(*map(self._near.__getitem__, known), strict=True)
        raw = [exp(-0.5 * (each / WIDTH) ** 2) for each in away]
        weights = [weight / raw[0] for weight in raw]
        offsets = [
            [size - own for size in column]
            for column, own in zip(zip(*points, strict=True), self._place, strict=True)
        ]
        seen: list[float] = [values[number] for number in known]  # type: ignore[misc]
        columns = [*offsets, seen]
        rows = [[sum(weights), *(sum(map(mul, weights, other)) for other in columns)]]
        for place, column in enumerate(offsets):
            weighted = list(map(mul, weights, column))
            row = [other[place + 1] for other in rows]  # as symmetric as it is
            row += [sum(map(mul, weighted, other)) for other in columns[place:]]
            row[place + 1] += RIDGE
            rows.append(row)
        return min(max(_last_of(rows[::-1]), min(seen)), max(seen))


def padded(size: int) -> int:
    """The rows of whole tiles: 1, 2, 3, 4, 6, 8, 12, ... up to four tiles of the largest, and then
    multiples of it.

    >>> [padded(rows) for rows in (5, 17, 35, 48, 97, 700)]
    [6, 24, 48, 48, 128, 768]
    """
    step = min(TILE, max(1, 1 << max(0, (size - 1).bit_length() - 2)))
    return -(-size // step) * step


def logs_of(sizes: Sizes, place: int) -> Point:
    """Where these sizes lie: doublings in each of them. The one at `place` grows, and fills tiles
    whole."""
    whole = (*sizes[:place], padded(sizes[place]), *sizes[place + 1 :])
    return tuple(log2(max(size, 1)) for size in whole)


def nearest(listed: Iterable[tuple[float, T]]) -> T | None:
    """The first of some that takes about as long as the fastest of them. `listed`: estimated times,
    the nearest shape's first; None where all are infinite."""
    tried = list(islice(listed, TRIED))
    most = ALIKE * min((us for us, _ in tried), default=inf)
    return next((named for us, named in tried if us <= most < inf), None)


def _last_of(rows: list[list[float]]) -> float:
    """The unknown that stands first in each row of a positive definite system, whose rows are in
    the reverse order, by elimination."""
    count = len(rows)
    for step, row in enumerate(rows[:-1]):
        pivot = count - 1 - step
        for other in rows[step + 1 :]:
            factor = other[pivot] / row[pivot]
            for column in (*range(pivot), count):
                other[column] -= factor * row[column]
    return rows[-1][-1] / rows[-1][0]


class Ranking:
    """Estimated logarithms of speed-ups at one place and their variants, the largest first. What
    was worked out is kept for who asks again."""

    def __init__(self, around: Around, gains: Mapping[str, Sequence[float | None]]) -> None:
        known = {variant: around.known(gains[variant]) for variant in sorted(gains, reverse=True)}
        self._variants = [variant for variant, shapes in known.items() if shapes]
        self._highest = [
            (-max(map(gains[variant].__getitem__, known[variant])), place)  # type: ignore
            for place, variant in enumerate(self._variants)
        ]
        heapify(self._highest)
        self._estimate = cache(lambda variant: around.plane(gains[variant], known[variant]))

    def __iter__(self) -> Iterator[tuple[float, str]]:
        """No estimate is above the highest value that it is of: a plane is worked out where that
        one's turn has come."""
        waiting, estimated = self._highest.copy(), set[int]()
        while waiting:
            log, place = heappop(waiting)
            variant = self._variants[place]
            if place in estimated:
                yield -log, variant
            else:
                estimated.add(place)
                heappush(waiting, (-self._estimate(variant), place))
