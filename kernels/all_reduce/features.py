"""What the selector's tree may look at: named integers and ratios of a shape that a person can
read; and what an estimate of a config's time goes by. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.space import Config

FEATURES: dict[str, tuple[str, Callable[[AllReduce], float]]] = {
    "m": ("rows of x", lambda s: s.m),
    "n": ("elements of a row", lambda s: s.n),
    "world": ("ranks", lambda s: s.world),
    "message_kb": ("kilobytes of x on one rank", lambda s: s.message_bytes / 1024),
    "one_shot_kb": (
        "kilobytes that one rank sends in one shot",
        lambda s: (s.world - 1) * s.message_bytes / 1024,
    ),
    "row_kb": ("kilobytes of one row", lambda s: s.n * s.element_bytes / 1024),
}
SCALES = ("m", "n")
"""The features of which a formula's smooth correction is a function, see `scales`."""
TERMS = ("call", "elements", "pieces of a program", "rows of a program", "elements of a program")
"""What the time of one config grows with, see `timing`."""


def timing(config: Config, units: int) -> Callable[[int, int], tuple[float, ...]]:
    """The values of TERMS as a function of (m, n), for one config on a chip of so many units.

    A config's time is taken to be a weighted sum of them: one call; elements of x; pieces, rows and
    elements of the program that has most. All are scaled so that weights are near 1.
    """
    knobs: dict[str, Any] = dict(config.knobs)
    rows, parts = knobs.get("rows_per_flag", 1), knobs.get("parts", 1)
    programs = knobs.get("programs", units)

    def terms(m: int, n: int) -> tuple[float, ...]:
        pieces = ceil(-(-m // rows) * parts / programs)
        held = pieces * rows * n / parts
        return 1.0, m * n / 1e6, pieces / 10, ceil(m / programs) / 10, held / 1e5

    return terms


def scales(m: int, n: int) -> tuple[float, float]:
    """The values of SCALES as logarithms, near 0 for sizes in the middle of those that layers
    have."""
    return log2(m) / 3 - 2, log2(n) - 13


_SGLANG = "SGLang on H200: one shot up to 128 KB, two shots above"
_VLLM = "vLLM on H100: two shots up to 8 MB, the library above"
RIVALS = (
    (_SGLANG, "message_kb", 129, "one_shot", "two_shot"),
    (_VLLM, "message_kb", 8193, "two_shot", "bsp"),
)
"""Rules in use elsewhere, which stand beside the selector in reports: title, feature, its bound,
the variant below it, and from it on. Sources: SGLang, configs of custom_all_reduce_v2; the times of
vLLM's issue 42324. Both are of other kernels."""
