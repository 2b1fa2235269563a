"""How much a search may try, by name."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Effort:
    """How much a search may try."""

    trials: int | None
    """For each shape and mode; None: every feasible config."""
    finalists: int
    """Configs of each mode that are measured again on every shape, beside each shape's own
    winners."""
    meaning: str
    sampled: bool = True
    """False: only what is likely to be fast is tried, no study hears of it, and nothing is measured
    again."""

    @property
    def most(self) -> float:
        """Trials of a shape and mode, at most."""
        return inf if self.trials is None else self.trials


EFFORTS = {
    "quick": Effort(24, 4, "24 trials for each shape and mode: a first look"),
    "default": Effort(64, 8, "64 trials for each shape and mode"),
    "thorough": Effort(
        192, 8, "192 trials for each shape and mode: what a default search is judged by"
    ),
    "exhaustive": Effort(
        None, 8, "every feasible config of each shape and mode: hours on a node; give a budget"
    ),
    "scout": Effort(
        48,
        0,
        "only the defaults, the model's best and what won nearby, once: for --portfolio to go on "
        "from",
        sampled=False,
    ),
}
