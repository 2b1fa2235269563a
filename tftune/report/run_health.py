"""What a measured run says about its machine, in one line: clocks, temperature and power, and
whether caches were cold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tftune.db.target import Target
from tftune.db.trial import Run
from tftune.tuner.bench.cache_selftest import CopyRates

FALL = 0.1
"""The share by which the SM clock may fall between the first trial and the last: more than this is
said. A GPU that is hot or at its power limit slows down."""
_COPY = "copy_gb_s"
_OTHER = (_COPY, "chip")
"""Readings that are of no single GPU."""
_AMD = {
    "sm_mhz": ("clock", "gfx_0", "clk"),
    "memory_mhz": ("clock", "mem_0", "clk"),
    "celsius": ("temperature", "hotspot"),
    "watts": ("power", "socket_power"),
}
"""Where `amd-smi metric` has what nvidia-smi gives flat. From its documentation; not seen on a
machine."""


def sentence(run: Run) -> str:
    """The line of one run: the slowest clocks and the hottest GPU at both ends, the copy rates, and
    every doubt that they raise."""
    readings = (("at the first trial", run.clocks), ("after the last", run.ended))
    known = [f"{when} {_summary(reading)}" for when, reading in readings if _gpus(reading)]
    said = known or ["clocks and temperature unknown: neither nvidia-smi nor amd-smi told them"]
    if rates := _copies(run):
        cold, warm = rates.cold / 1e3, rates.warm / 1e3
        said.append(f"a copy reached {cold:.0f} GB/s cold and {warm:.0f} GB/s warm")
    return "; ".join([*said, *doubts(run)])


def doubts(run: Run) -> list[str]:
    """Why the times of a run may be off, a sentence each: caches that were not cold, a GPU that
    slowed down."""
    rates = _copies(run)
    warm = rates.why_not_cold(Target.parse(run.target).chip) if rates else None
    return [*filter(None, [warm]), *_falls(run)]


def _gpus(reading: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The known numbers of each GPU."""
    gpus = {gpu: values for gpu, values in reading.items() if gpu not in _OTHER}
    numbers = {gpu: {name: _number(values, name) for name in _AMD} for gpu, values in gpus.items()}
    return {
        gpu: known
        for gpu, values in numbers.items()
        if (known := {name: n for name, n in values.items() if n is not None})
    }


def _number(values: Any, name: str) -> float | None:
    """One number of a GPU, from the flat form or from AMD's nested one, where it may be a number or
    {"value": ..., "unit": ...}."""
    if name in values:
        return values[name]  # type: ignore[no-any-return]
    for key in (*_AMD[name], "value"):
        values = values.get(key) if isinstance(values, Mapping) else values
    return float(values) if isinstance(values, int | float) else None


def _summary(reading: Mapping[str, Any]) -> str:
    gpus = _gpus(reading).values()
    sm, memory = ([gpu[name] for gpu in gpus if name in gpu] for name in ("sm_mhz", "memory_mhz"))
    celsius, watts = ([gpu[name] for gpu in gpus if name in gpu] for name in ("celsius", "watts"))
    parts = [f"{name} {min(mhz):.0f} MHz" for name, mhz in (("SM", sm), ("memory", memory)) if mhz]
    return ", ".join(
        [*parts, *(f"{max(n):.0f} {unit}" for n, unit in ((celsius, "C"), (watts, "W")) if n)]
    )


def _falls(run: Run) -> Iterator[str]:
    first, last = _gpus(run.clocks), _gpus(run.ended)
    for gpu, values in first.items():
        before, after = values.get("sm_mhz"), last.get(gpu, {}).get("sm_mhz")
        if before and after is not None and after < (1 - FALL) * before:
            share = 100 * (1 - after / before)
            yield (
                f"the SM clock of GPU {gpu} fell by {share:.0f} %, from {before:.0f} to "
                f"{after:.0f} MHz: let it cool and search again"
            )


def _copies(run: Run) -> CopyRates | None:
    stored = run.ended.get(_COPY) or run.clocks.get(_COPY)
    return CopyRates.of_gb_s(stored) if stored else None
