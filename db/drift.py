"""Has a time moved? A sequential test on the times of one leaf, measured again and again. Standard
library only.

The test is a CUSUM (Page, Biometrika 41, 1954) of self-starting form (Hawkins, The Statistician 36,
1987): each check is compared with the mean and the spread of those before it, so that neither must
be known, and noise of any size gives the same false alarms. Three changes make it fit timings:

* A score counts at most `CLIP` (winsorised, after Lucas and Crosier, Communications in Statistics
  11, 1982), so that no single outlier is a finding.
* A spread below `LEAST_SPREAD` counts as that: a drift of a tenth of a percent is no finding.
* What looks like drift is not learned from: else the baseline would follow it.

tests/test_drift.py simulates it with the noise of committed rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

BASELINE = 12
"""Checks that are learned from before the first is judged."""
SLACK = 1.0
"""In spreads: a shift of twice as much is what the sum finds soonest."""
LIMIT = 8.0
"""The sum above which the time has moved. Found by simulation, see tests/test_drift.py."""
CLIP = 3.5
"""In spreads: what one check may add."""
HELD = 3.0
"""The sum above which checks are judged, and not learned from."""
LEAST_SPREAD = 0.005
"""The least standard deviation of logarithms of times that is believed. Half of the finals that
were repeated in another session on H200 differ by more than 0.7 % (committed rows, mode graph)."""
TOO_NOISY = 0.015
"""A spread above which 5 % may take more than 10 checks to find."""


@dataclass(frozen=True)
class Moved:
    """A time that has moved."""

    checks: int
    """How many it took, from where the sum began to grow."""
    ratio: float
    """The times of those checks over the baseline's, geometric means."""
    low: float
    high: float
    """95 % interval of the ratio, by the baseline's spread."""


@dataclass(frozen=True)
class Judged:
    """What a series of checks says."""

    moved: Moved | None
    baseline_us: float
    """The geometric mean of what was learned."""
    spread: float
    """Standard deviation of the logarithms learned; 0 for fewer than two."""
    learned: int
    """Checks that were learned from."""

    @property
    def too_noisy(self) -> bool:
        """Whether 5 % may take more than 10 checks to find."""
        return self.learned >= BASELINE and self.spread > TOO_NOISY


def judge(times_us: Iterable[float]) -> Judged:
    """What the medians of a leaf's checks say, in their order, up to the first finding; raises
    ValueError for none, and for one that is not positive.

    >>> steady = [100.0, 100.4, 99.7, 100.1] * 6
    >>> judge(steady).moved is None
    True
    >>> moved = judge([*steady, *[105.0] * 10]).moved
    >>> moved.checks <= 10, 1.04 < moved.ratio < 1.06
    (True, True)
    """
    logs = []
    for us in times_us:
        if not us > 0:
            raise ValueError(f"a time of {us} us cannot be judged: it must be positive")
        logs.append(math.log(us))
    if not logs:
        raise ValueError("there are no times to judge; run `tftune verify OP --watch`")
    series = _Series(logs[0])
    for value in logs[1:]:
        if (moved := series.take(value)) is not None:
            break
    else:
        moved = None
    return Judged(moved, math.exp(series.mean), series.spread, series.learned)


class _Series:
    """The sums and what was learned, after some checks."""

    def __init__(self, first: float) -> None:
        self.mean, self.learned, self._squares = first, 1, 0.0
        self._sums = {1: 0.0, -1: 0.0}
        self._since: dict[int, list[float]] = {1: [], -1: []}
        """The checks since each sum was 0."""

    @property
    def spread(self) -> float:
        return math.sqrt(self._squares / (self.learned - 1)) if self.learned > 1 else 0.0

    def take(self, value: float) -> Moved | None:
        """Judge a check, then learn from it where nothing looks like drift."""
        if self.learned >= BASELINE:
            score = self._score(value)
            for sign, total in self._sums.items():
                self._sums[sign] = max(0.0, total + sign * score - SLACK)
                self._since[sign] = [*self._since[sign], value] if self._sums[sign] else []
                if self._sums[sign] >= LIMIT:
                    return self._moved(self._since[sign])
        if max(self._sums.values()) < HELD:
            self.learned += 1
            step = value - self.mean
            self.mean += step / self.learned
            self._squares += step * (value - self.mean)
        return None

    def _score(self, value: float) -> float:
        """How far the check lies from those learned, as a standard normal number: Student's t for
        unknown mean and spread, made normal by Wallace's formula (Annals of Mathematical Statistics
        30, 1959), and clipped."""
        count, freedom = self.learned, self.learned - 1
        scale = max(self.spread, LEAST_SPREAD) * math.sqrt((count + 1) / count)
        t = (value - self.mean) / scale
        size = math.sqrt(freedom * math.log1p(t * t / freedom))
        normal = size * (8 * freedom + 1) / (8 * freedom + 3)
        return math.copysign(min(normal, CLIP), t)

    def _moved(self, checks: list[float]) -> Moved:
        shift = sum(checks) / len(checks) - self.mean
        spread = max(self.spread, LEAST_SPREAD)
        wide = 1.96 * spread * math.sqrt(1 / len(checks) + 1 / self.learned)
        low, high = math.exp(shift - wide), math.exp(shift + wide)
        return Moved(len(checks), math.exp(shift), low, high)
