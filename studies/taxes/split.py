"""From times of arms (`kernels.core.taxes`) to three taxes, their Shapley shares, and what they
leave unexplained.

Every estimate is made in each round by itself, of times that share the round; what is told is the
median over rounds with its distribution-free interval, as everywhere (`db.trial`). Launch and
memory are slopes by least squares; the wait is a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import factorial, fsum
from statistics import linear_regression, median
from typing import Any

from tftune.db.trial import Measurement, median_interval
from tftune.studies.taxes.arms import (
    ADDED,
    BASES,
    BSP,
    CLOCKED,
    FUSED,
    LATE_US,
    LAUNCH,
    MEMORY,
    WAIT,
    Arm,
    Gap,
    cube,
)

Times = Mapping[Arm, Sequence[float]]
"""Samples of each arm, in the order of the rounds that all share."""


@dataclass(frozen=True)
class Estimate:
    """The median over rounds, and its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Iterable[float]) -> Estimate:
        numbers = tuple(samples)
        return cls(median(numbers), *median_interval(numbers))


def shapley(times: Mapping[frozenset[str], float]) -> dict[str, float]:
    """Each factor's mean share in the time that all of them add, over every order in which they
    could be added (Shapley 1953). The shares add up to the time with all less the time with none.
    Raises KeyError where a set is missing.

    >>> shapley({frozenset(): 1.0, frozenset("a"): 3.0})
    {'a': 2.0}
    """
    names = sorted(frozenset[str]().union(*times))
    return {
        name: _share(name, [other for other in names if other != name], times) for name in names
    }


def _share(name: str, others: Sequence[str], times: Mapping[frozenset[str], float]) -> float:
    orders = factorial(len(others) + 1)
    return fsum(
        factorial(size) * factorial(len(others) - size) / orders
        * (times[frozenset((*before, name))] - times[frozenset(before)])
        for size in range(len(others) + 1)
        for before in combinations(others, size)
    )  # fmt: skip


def interaction(times: Mapping[frozenset[str], float]) -> float:
    """What all factors add together beyond what each adds alone; 0 where they do not meet.

    >>> interaction({frozenset(): 1.0, frozenset("a"): 3.0, frozenset("b"): 2.0, \
frozenset("ab"): 5.0})
    1.0
    """
    none, names = times[frozenset()], frozenset[str]().union(*times)
    alone = fsum(times[frozenset((name,))] - none for name in sorted(names))
    return times[names] - none - alone


@dataclass(frozen=True)
class Split:
    """The taxes of one shape and mode. Times in microseconds."""

    gap: Gap
    bsp_us: Estimate
    fused_us: Estimate
    saved_us: Estimate
    """BSP's time less the fused one's."""
    per_kernel_us: Estimate
    per_trip_us: Estimate
    taxes: Mapping[str, Estimate]
    """By factor, 0 where BSP does not pay it: slope or difference times what BSP does more."""
    shapley: Mapping[str, Estimate]
    """By factor that BSP pays; empty where it pays none."""
    interaction: Estimate | None
    residual: Estimate | None
    """The share of `saved_us` that the taxes do not explain; None where BSP is not surely
    slower."""
    late: Mapping[str, Estimate]
    """What BSP and the fused call take for each microsecond that one rank is late."""
    clocked_us: Estimate | None
    """What a program of the fused call waits, by the device's clock."""
    without_us: Mapping[str, Estimate]
    """What BSP is shorter by when a step is left out."""

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        gap = fields.pop("gap")
        more = {"more_kernels": gap["kernels"], "more_round_trips": gap["trips"]}
        return more | {"peers": gap["peers"]} | fields


def split(times: Times, gap: Gap) -> Split:
    """The taxes that these times say. Raises KeyError where an arm is missing that the gap
    needs."""
    per_kernel = _slopes(times, [(n, Arm("fused", kernels=n)) for n in ADDED])
    trips = [(added, Arm("fused", kernels=1, trips=added)) for added in gap.trips_added]
    per_trip = _slopes(times, trips)
    nothing = [0.0] * len(times[BSP])
    wait = _less(times[Arm("fused", waits="all")], times[FUSED]) if gap.peers else nothing
    taxes = {
        LAUNCH: [gap.kernels * us for us in per_kernel],
        WAIT: wait,
        MEMORY: [gap.trips * us for us in per_trip],
    }
    saved = _less(times[BSP], times[FUSED])
    corners = _corners(times, gap)
    shares = [shapley(corner) for corner in corners]
    late = {
        base: _slopes(times, [(us, Arm(base, late=us)) for us in LATE_US])
        for base in (BASES if gap.peers else ())
    }
    return Split(
        gap=gap,
        bsp_us=Estimate.of(times[BSP]),
        fused_us=Estimate.of(times[FUSED]),
        saved_us=Estimate.of(saved),
        per_kernel_us=Estimate.of(per_kernel),
        per_trip_us=Estimate.of(per_trip),
        taxes={name: Estimate.of(us) for name, us in taxes.items()},
        shapley={name: Estimate.of(each[name] for each in shares) for name in gap.factors},
        interaction=Estimate.of(map(interaction, corners)) if gap.factors else None,
        residual=_residual(saved, list(taxes.values())),
        late={base: Estimate.of(slopes) for base, slopes in late.items()},
        clocked_us=Estimate.of(times[CLOCKED]) if CLOCKED in times else None,
        without_us={
            arm.without: Estimate.of(_less(times[BSP], us))
            for arm, us in times.items()
            if arm.without
        },
    )


@dataclass(frozen=True)
class Modelled:
    """The same split by the analytic model: predicted, never measured. `taxes` are what BSP pays
    more of each, in microseconds; `work_us` what else it takes longer."""

    bsp_us: float
    fused_us: float
    taxes: Mapping[str, float]
    work_us: float

    def to_dict(self) -> dict[str, Any]:
        return {"times": "modelled", **asdict(self)}


def times_of(found: Mapping[Arm, Measurement]) -> dict[Arm, tuple[float, ...]]:
    """The samples of each arm, which all are of the same rounds."""
    return {arm: measurement.samples_us for arm, measurement in found.items()}


def _slopes(times: Times, arms: Sequence[tuple[float, Arm]]) -> list[float]:
    """The slope of each round over places, of which there are two at least."""
    rounds = zip(*(times[arm] for _, arm in arms), strict=True)
    places = [place for place, _ in arms]
    return [linear_regression(places, samples).slope for samples in rounds]


def _less(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [mine - its for mine, its in zip(one, other, strict=True)]


def _corners(times: Times, gap: Gap) -> list[dict[frozenset[str], float]]:
    """The times of every set of factors, round by round."""
    arms = cube(gap)
    rounds = zip(*(times[arm] for arm in arms.values()), strict=True)
    return [dict(zip(arms, samples, strict=True)) for samples in rounds]


def _residual(saved: Sequence[float], taxes: Sequence[Sequence[float]]) -> Estimate | None:
    if median_interval(tuple(saved))[0] <= 0:
        return None
    explained, whole_us = (fsum(each) for each in zip(*taxes, strict=True)), median(saved)
    return Estimate.of((us - told) / whole_us for us, told in zip(saved, explained, strict=True))
