"""What a tree may look at, and what a time grows with."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2

from tftune.kernels.core.space import Config

from . import AllSum

FEATURES: dict[str, tuple[str, Callable[[AllSum], float]]] = {
    "m": ("rows", lambda s: s.m),
    "n": ("columns", lambda s: s.n),
}
SCALES = ("m", "n")
TERMS = ("call", "elements", "blocks")


def timing(config: Config, units: int) -> Callable[[int, int], tuple[float, ...]]:
    """The values of TERMS as a function of (m, n)."""
    block = dict(config.knobs).get("block", 1024)
    return lambda m, n: (1.0, m * n / 1e4, ceil(m * n / int(block)) / units)


def scales(m: int, n: int) -> tuple[float, float]:
    return log2(m) / 3 - 1, log2(n) - 9
