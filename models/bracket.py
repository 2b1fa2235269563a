"""Shapes that differ in one size: a few are measured, those between them are bounded by these.

The time of one config does not fall as the size grows. So between a smaller shape and a larger one
a config takes at most what it takes at the larger, and BSP at least what it takes at the smaller.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log
from typing import Any

from tftune.db.evidence import BSP
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, size_of
from tftune.models.selection import Selection

MARGIN = 1.02
"""What bounds must show that two measurements of their own moments support."""
WIDEST = 4.0
"""The widest ratio of two sizes where BSP won that speaks for those between: between sizes further
apart a kernel may still win."""
Answers = dict[Shape, Selection]


def families(shapes: Iterable[Shape]) -> list[list[Shape]]:
    """The shapes that differ only in the size that grows with the work, the smallest first."""
    return [sorted(family, key=size_of) for family in groups(shapes, _family).values()]


def _family(shape: Shape) -> tuple[Any, ...]:
    fields = shape.to_dict().items()
    return (shape.op, *(value for name, value in fields if name != shape.SIZE))


class Bracket:
    """The measured shapes of a process, and what they say of shapes between them."""

    def __init__(self) -> None:
        self._measured: dict[tuple[Any, ...], list[tuple[int, Shape, Selection]]] = {}

    def confirm(self, shape: Shape, mode: str, selection: Selection) -> None:
        """Take in an answer; one that is not measured bounds nothing."""
        key = mode, *_family(shape)
        others = [one for one in self._measured.get(key, []) if one[1] != shape]
        new = [(size_of(shape), shape, selection)] if selection.source == "measured" else []
        self._measured[key] = sorted([*others, *new], key=lambda one: one[0])

    def select(self, shape: Shape, mode: str) -> Selection | None:
        """The answer for a shape between two measured ones; None where they do not bound it."""
        known = self._measured.get((mode, *_family(shape)), []) if self._measured else []
        place = bisect([size for size, _, _ in known], size_of(shape))
        if not 0 < place < len(known):
            return None
        return between(shape, known[place - 1][1:], known[place][1:])


def step(family: Sequence[Shape], answers: Answers) -> list[Shape]:
    """The shapes of a family to measure next; empty where all have an answer.

    Fills in what lies between two measured shapes that bound it. The smallest and the largest come
    first, then the middle of each gap.
    """
    missing = [shape for shape in dict.fromkeys((family[0], family[-1])) if shape not in answers]
    if missing:
        return missing
    for low, high, gap in _gaps(family, answers):
        answers |= _filled(gap, low, high, answers)
    return [_middle(gap, low, high) for low, high, gap in _gaps(family, answers)]


def _gaps(family: Sequence[Shape], answers: Answers) -> list[tuple[Shape, Shape, list[Shape]]]:
    """Runs of shapes without an answer, between the answered ones beside them."""
    known = [number for number, shape in enumerate(family) if shape in answers]
    return [
        (family[low], family[high], list(family[low + 1 : high]))
        for low, high in pairwise(known)
        if high - low > 1
    ]


def _filled(gap: Sequence[Shape], low: Shape, high: Shape, answers: Answers) -> Answers:
    selections = {
        shape: between(shape, (low, answers[low]), (high, answers[high])) for shape in gap
    }
    return {shape: selection for shape, selection in selections.items() if selection is not None}


def _middle(gap: Sequence[Shape], low: Shape, high: Shape) -> Shape:
    middle = (size_of(low) * size_of(high)) ** 0.5
    return min(gap, key=lambda shape: abs(log(size_of(shape) / middle)))


def between(
    shape: Shape, low: tuple[Shape, Selection], high: tuple[Shape, Selection]
) -> Selection | None:
    """The answer for a shape between two measured ones; None where they do not bound it.

    A fused config answers where BSP's time at the smaller is above its own at the larger. BSP
    answers where it won at both, at most a factor of 4 apart.
    """
    (_, smaller), (large, larger) = low, high
    if None in (smaller.bsp_us, smaller.expected_us, larger.bsp_us, larger.expected_us):
        return None
    said = f"between {_name(low[0])} and {_name(large)}, measured here"
    near = (low[0].sizes_key, large.sizes_key)
    bsp_us = _on_line(shape, (low[0], smaller.bsp_us), (large, larger.bsp_us))
    if smaller.config.variant == larger.config.variant == BSP:
        forms = (one.config for one in (smaller, larger) if _is_possible(shape, one))
        form = next(forms, None)
        if form is None or size_of(large) > WIDEST * size_of(low[0]):
            return None
        reason = f"{said}: BSP is as fast at both"
        return Selection(form, "interpolated", reason, bsp_us, bsp_us, near=near)
    least = (smaller.bsp_us or 0.0) / (larger.expected_us or 1.0)
    if larger.config.variant == BSP or least < MARGIN or not _is_possible(shape, larger):
        return None
    most = (larger.bsp_us or 0.0) / min(smaller.expected_us or 1.0, larger.expected_us or 1.0)
    reason = (
        f"{said}: {larger.config.variant} takes at most {larger.expected_us:.1f} us and BSP at "
        f"least {smaller.bsp_us:.1f} us"
    )
    us = _on_line(shape, (low[0], smaller.expected_us), (large, larger.expected_us))
    return Selection(
        larger.config, "interpolated", reason, us, bsp_us, (least, max(least, most)), near
    )


def _is_possible(shape: Shape, answer: Selection) -> bool:
    """Whether this config can be had here: an engine's all-reduce takes so many bytes."""
    return operation(shape.op).space.why_invalid(shape, answer.config) is None


def _on_line(
    shape: Shape, low: tuple[Shape, float | None], high: tuple[Shape, float | None]
) -> float:
    """The time at a size, on the straight line of time over size."""
    (small, small_us), (large, large_us) = low, high
    part = (size_of(shape) - size_of(small)) / (size_of(large) - size_of(small))
    return (small_us or 0.0) + part * ((large_us or 0.0) - (small_us or 0.0))


def _name(shape: Shape) -> str:
    return f"{shape.SIZE}={size_of(shape)}"
