"""What a modelled speed-up is divided by before its config answers, and how that is said. Standard
library only."""

from __future__ import annotations

MODEL_ERROR = 1.44
"""How many times the analytic model may overstate a speed-up over BSP: 95 % of configs stay below,
out of sample (benchmarks/model.py). No fused config answers by modelled times unless it is faster
by more than this."""


def discount_of(bench: str) -> float:
    """What a speed-up by times of that bench is divided by before its config answers."""
    return MODEL_ERROR if bench == "model" else 1.0


def discount() -> str:
    """What a modelled speed-up must exceed before a fused config answers, in words."""
    return f"more than the discount of {MODEL_ERROR} on modelled speed-ups"


def discounted(ratio: float) -> str:
    """A modelled speed-up after the discount, in words.

    >>> discounted(1.41)
    '0.98 times after the discount of 1.44 on modelled speed-ups'
    """
    return (
        f"{ratio / MODEL_ERROR:.2f} times after the discount of {MODEL_ERROR} on modelled speed-ups"
    )
