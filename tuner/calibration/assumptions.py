"""Constants that no question of a calibration measures, by a rule of thumb each.

Only for a chip that lacks them, and marked as assumed wherever the chip is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tftune.kernels.core.chip import Chip
from tftune.kernels.core.chips import H200, MI300X

Ask = Callable[..., list[Any]]
"""A method of `Prober` and its arguments to the answers of all ranks."""
Rule = Callable[[Chip, Ask, int], float]


def _clock(ask: Ask) -> float:
    """Clocks of the slowest rank's units in a microsecond."""
    return float(min(ask("clock_mhz")))


def _l2_share() -> float:
    """The share of 64 bytes for each clock and unit that H200 reaches at its 1,755 MHz."""
    return H200.rates.l2_bytes_per_us / (64 * 1755 * H200.units)


RULES: dict[str, tuple[str, Rule]] = {
    "shared_bytes_per_us": (
        "128 bytes for each clock of a unit (CUDA programming guide, CDNA 3 white paper)",
        lambda chip, ask, chain: 128 * _clock(ask),
    ),
    "l2_bytes_per_us": (
        "of 64 bytes for each clock and unit the share that H200 reaches",
        lambda chip, ask, chain: 64 * _clock(ask) * chip.units * _l2_share(),
    ),
    "fabric_bytes_per_us": (
        "as on MI300X",
        lambda chip, ask, chain: MI300X.rates.fabric_bytes_per_us,
    ),
    "load_us": (
        "twice the latency of idle memory, as measured here",
        lambda chip, ask, chain: 2 * float(max(ask("load", chain, False))),
    ),
    "unit_flops_per_us": (
        "a unit alone is no faster than with all others, as measured here",
        lambda chip, ask, chain: chip.known("matrix_flops_per_us") / chip.units,
    ),
    "triton_share": ("as on H200", lambda chip, ask, chain: H200.rates.triton_share),
    "descriptor_us": ("as on H200", lambda chip, ask, chain: H200.rates.descriptor_us),
    "skew_us": ("as on H200", lambda chip, ask, chain: H200.links.skew_us),
}  # fmt: skip
"""By constant: the rule in words, and its formula on chip, ranks and bytes of a chain of loads."""


def made(chip: Chip, ask: Ask, world: int, chain: int) -> dict[str, float]:
    """What the chip lacks for a model of so many ranks and a rule can give; a rule that rests on
    what could not be measured gives nothing."""
    constants: dict[str, float] = {}
    for name in (name for name in chip.missing(world) if name in RULES):
        if name != "unit_flops_per_us" or chip.constant("matrix_flops_per_us"):
            value = RULES[name][1](chip, ask, chain)
            constants |= {name: value} if value > 0 else {}
    return constants
