"""Whether the fields of a row that came from outside are what they must be. Standard library
only."""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

from tftune.kernels.core.chip import SLUG

_UNITS = ("mhz", "celsius", "watts")
"""How a reading's name ends where it is a number."""
_DEPTH = 8
"""Levels of a run's readings at most; amd-smi makes five."""
LARGEST_US = 1e12
"""The longest time of a row, eleven days: squares of much larger ones leave the range of a
formula's floats."""
_TARGET = re.compile(rf"{SLUG.pattern}x[1-9][0-9]*")
"""Names of machines become names of files: no other character, so never a path."""
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?)?")
"""UTC, so that instants sort as text."""


def times_of(row: dict[str, Any], name: str) -> tuple[float, ...]:
    """The times of that name; raises ValueError with the first that is none. One that rounds to
    0.00 would not read back."""
    times = row[name]
    if not isinstance(times, list):
        raise ValueError(f"{name}={shown(times)} must be a list of times")
    # Whole lists first, since nearly all are of floats alone and there are millions; `Measurement`
    # sees what is not finite.
    if times and not (
        set(map(type, times)) == {float} and round(min(times), 2) > 0 and max(times) <= LARGEST_US
    ):
        for us in times:
            if not is_number(us) or round(us, 2) <= 0 or us > LARGEST_US:
                raise ValueError(
                    f"{name} has {shown(us)}: times must be numbers, positive and at most "
                    f"{LARGEST_US:g}, in microseconds with two decimals"
                )
    return tuple(times)


def refuse_all_but_text(row: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        value = row[name]
        if type(value) is not str or not (value.isascii() or is_text(value)):
            raise ValueError(f"{name}={shown(value)} must be text")


def refuse_all_but_words(row: dict[str, Any], names: Iterable[str]) -> None:
    """Raise ValueError where one of these fields is no text, or cannot be printed as it is."""
    refuse_all_but_text(row, names)
    for name in names:
        if not row[name].isprintable():
            raise ValueError(f"{name}={shown(row[name])} must be text without control characters")


@lru_cache(maxsize=64)
def refuse_all_but_target(text: str) -> None:
    if not _TARGET.fullmatch(text):
        raise ValueError(
            f"target={shown(text)} must be <chip>x<number of GPUs>, of small letters, digits and "
            "hyphens"
        )


def refuse_all_but_instant(name: str, text: str) -> None:
    """Raise ValueError where it is no instant of UTC in ISO 8601, and not empty."""
    try:
        sound = not text or bool(_INSTANT.fullmatch(text) and datetime.fromisoformat(text))
    except ValueError:
        sound = False
    if not sound:
        raise ValueError(
            f"{name}={shown(text)} must be an instant of UTC, as in 2026-11-25T10:00:00+00:00"
        )


def refuse_all_but_readings(name: str, value: Any) -> None:
    """Raise ValueError where it is not what `Run.clocks` says."""
    by_gpu = isinstance(value, dict) and all(isinstance(gpu, dict) for gpu in value.values())
    if not by_gpu or not _is_reading(value):
        raise ValueError(
            f"{name}={shown(value)} must give each GPU its readings by name, those in "
            f"{', '.join(_UNITS)} as numbers or null"
        )
    copies = value.get("copy_gb_s")
    if copies and not (is_number(copies.get("cold")) and is_number(copies.get("warm"))):
        raise ValueError(f"copy_gb_s={shown(copies)} of {name} must have the numbers cold and warm")


def _is_reading(value: Any, name: str = "", depth: int = _DEPTH) -> bool:
    """Whether a tool that reads a GPU may have said it."""
    if name.endswith(_UNITS):
        return value is None or is_number(value)
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else (("", part) for part in value)
        return depth > 0 and all(
            is_word(inner) and _is_reading(part, inner, depth - 1) for inner, part in parts
        )
    return value is None or isinstance(value, bool) or is_word(value) or is_number(value)


def is_text(value: Any) -> bool:
    """Whether it is text that a file can hold: half of a surrogate pair, which JSON can write, is
    not."""
    return isinstance(value, str) and value.encode(errors="ignore").decode() == value


def is_word(value: Any) -> bool:
    """Whether it is text that can be printed as it is."""
    return is_text(value) and value.isprintable()


def is_number(value: Any) -> bool:
    """Whether it is a number, finite as a float; true and false are none."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def shown(value: Any) -> str:
    """The value in an error: 60 characters of it at most."""
    return f"{reprlib.repr(value):.60}"
