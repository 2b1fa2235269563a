"""How many times as fast as BSP a variant is at sizes that were not measured, from the measured
shapes around them. Standard library only.

Times of GEMMs jump where tiles and waves are full, for BSP and for a fused kernel alike; their
ratio does not. So a plane through the logarithms of measured speed-ups, to which near shapes count
most, often errs less than the ratio of two formulas of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import dist, exp, log2
from operator import mul, sub
from typing import Any

from tftune.models.tree.tree import Sizes

WIDTH = 1.0
"""Doublings of the sizes over which a measured shape's weight falls to 0.61."""
FAR = 3.0
"""Doublings from which on a shape does not count."""
LEAST, MOST = 4, 32
"""Shapes that a plane needs, and the nearest ones that it takes."""
RIDGE = 0.5
"""Penalty of a slope: what one shape weighs a doubling away."""


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
                isinstance(listed, list) and all(one is None or _is_number(one) for one in listed)
                for listed in logs.values()
            ):
                return cls(float(error), {str(name): tuple(row) for name, row in logs.items()})
        raise TypeError(f"gains are {values!r:.80}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Around:
    """The measured shapes near one place, the nearest first: their numbers, weights, and distances
    in each size."""

    numbers: tuple[int, ...]
    weights: tuple[float, ...]
    offsets: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, place: Sequence[float], points: Mapping[int, Sequence[float]]) -> Around:
        """`points`: by number, logarithms of the sizes, as `place`."""
        near = sorted(
            (away, number)
            for number, point in points.items()
            if (away := dist(place, point)) <= FAR
        )
        numbers = tuple(number for _, number in near)
        return cls(
            numbers,
            tuple(exp(-0.5 * (away / WIDTH) ** 2) for away, _ in near),
            tuple(tuple(map(sub, points[number], place)) for number in numbers),
        )

    def estimate(self, values: Sequence[float | None]) -> float | None:
        """The value at the place, of a plane through the values of the shapes by number; None where
        too few are near. The plane is that of least weighted squares, whose slopes have a penalty;
        the nearest shape weighs 1. It ends at the lowest and the highest value."""
        seen = [
            (place, value)
            for place, number in enumerate(self.numbers)
            if (value := values[number]) is not None
        ][:MOST]
        if len(seen) < LEAST:
            return None
        most = self.weights[seen[0][0]]
        weights = [self.weights[place] / most for place, _ in seen]
        sizes = zip(*(self.offsets[place] for place, _ in seen), strict=True)
        columns = [[1.0] * len(seen), *sizes, [value for _, value in seen]]
        rows = []
        for number, column in enumerate(columns[:-1]):
            weighted = list(map(mul, weights, column))
            row = [sum(map(mul, weighted, other)) for other in columns]
            row[number] += RIDGE if number else 0.0
            rows.append(row)
        return min(max(_last_of(rows[::-1]), min(columns[-1])), max(columns[-1]))


def logs_of(sizes: Sizes) -> tuple[float, ...]:
    """The place of these sizes: doublings in each of them."""
    return tuple(log2(max(size, 1)) for size in sizes)


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


def ranked(
    around: Around, gains: Mapping[str, Sequence[float | None]]
) -> Iterator[tuple[float, str]]:
    """Estimated logarithms of speed-ups and their variants, the largest first."""
    found = [
        (log, variant)
        for variant, logs in gains.items()
        if (log := around.estimate(logs)) is not None
    ]
    yield from sorted(found, reverse=True)
