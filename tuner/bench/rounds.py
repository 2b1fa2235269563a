"""How long a trial on a node may take, and how many rounds it is timed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tftune.db.trial import Interval, median_interval
from tftune.kernels.core.space import Config


@dataclass(frozen=True)
class Deadlines:
    """Seconds that each phase of a trial may take before the world is killed; `time` is for two
    configs."""

    compile: float = 120.0
    prepare: float = 60.0
    check: float = 30.0
    time: float = 30.0


@dataclass(frozen=True)
class Rounds:
    """Rounds of one trial. In the search stage a config is looked at after `probe` rounds and after
    each doubling of them."""

    probe: int = 4
    search: int = 15
    final: int = 41
    margin: float = 0.8
    """A config whose ratio BSP / config lies, with its upper bound, below this share of the best
    one's lower bound cannot win and is stopped. Far from 1, since a handful of rounds know the
    ratio badly and the best so far is partly luck; BSP's ratio is 1."""
    final_margin: float = 0.0
    """The same for configs that are compared in the same rounds, after `probe` of them; 0: all are
    measured to the end."""

    def cannot_win(self, samples: Sequence[tuple[float, ...]], best: float) -> bool:
        """Whether the last config is surely slower than the best so far, by the margin; never where
        it is the baseline. `samples`: of the same rounds, the baseline's first."""
        _, high = ratio(samples[0], samples[-1])
        return len(samples) > 1 and high < self.margin * best

    def contenders(self, probed: Mapping[Config, tuple[float, ...]]) -> list[Config]:
        """The configs that go on after `probe` rounds: the first, which is the baseline, and what
        is not surely slower than the best; none where all were measured to the end."""
        if not self.final_margin:
            return []
        first = next(iter(probed))
        bounds = {config: ratio(probed[first], times) for config, times in probed.items()}
        least = self.final_margin * max(low for low, _ in bounds.values())
        return [config for config in probed if config == first or bounds[config][1] >= least]


def ratio(bsp_us: tuple[float, ...], times_us: tuple[float, ...]) -> Interval:
    """The ratio BSP / config in the same rounds: its lower and its upper bound, each with 95 %
    confidence (both with 90 %): all of 4 rounds, and all but one of 8 on either side."""
    return median_interval(
        tuple(bsp / us for bsp, us in zip(bsp_us, times_us, strict=True)), confidence=0.9
    )


DEADLINES = Deadlines()
ROUNDS = Rounds()
MATRIX = Rounds(probe=3, final=13, final_margin=0.8)
"""For many configs on many shapes: fewer rounds, and those few for what is a quarter slower than
another."""
