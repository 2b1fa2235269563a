"""What an artifact says about one layout in one mode; `answerer` answers for a shape by it.
Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tftune.db.trial import Interval
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.models.formula.formula import Formula
from tftune.models.gains import Gains
from tftune.models.tree.tree import Node, Sizes

Source = Literal["measured", "interpolated", "modelled", "fallback"]

NEAR = 2.0
"""How many times a size may lie outside of what was measured (docs/notebook.md, 2026-11-27)."""
SIZE_BITS = 63
"""The most bits of a size: those of tensors are signed 64-bit integers, and features of larger ones
may overflow a float."""


@dataclass(frozen=True)
class Known:
    """One measured shape."""

    sizes: Sizes
    best: int
    """Number of the config that answers: the fastest that is surely faster than BSP, else BSP's
    fastest form."""
    interval: Interval | None
    """95 % interval of its speed-up over BSP; None where it is a form of BSP."""
    times_us: tuple[tuple[int, float], ...]
    """Numbers and comparable times of the configs that may answer near it, BSP's forms among
    them."""

    def to_list(self) -> list[Any]:
        times = [value for number, us in self.times_us for value in (number, float(f"{us:.4g}"))]
        interval = None if self.interval is None else [round(bound, 4) for bound in self.interval]
        return [list(self.sizes), self.best, interval, times]


@dataclass(frozen=True)
class LayoutModel:
    """Everything that is known of one layout in one mode."""

    op: str
    mode: str
    layout: tuple[int | str, ...]
    """The values of `Shape.LAYOUT`."""
    configs: tuple[Config, ...]
    kernels: tuple[str, ...]
    """The revision that was measured of each config's variant; "" for forms of BSP."""
    formulas: tuple[Formula, ...]
    """The formula of each config."""
    known: tuple[Known, ...]
    root: Node | None
    """The tree; None where too little was measured for one."""
    spans: bool
    """Whether the tree may answer for families that were never measured."""
    error: float
    """Error of the logarithm of a speed-up that is estimated between two measured sizes of a
    family: root mean square."""
    gains: Gains | None = None
    """Measured speed-ups, where they say more of other families than formulas of times do."""

    @property
    def title(self) -> str:
        """As in `dtype=bf16,shard=m,b_layout=nk,world=2`."""
        return layout_text(self.op, self.layout)


def layout_text(op: str, layout: Sequence[int | str]) -> str:
    """A layout's fields with their values."""
    named = operation(op).shape.named(layout)
    return ",".join(f"{name}={value}" for name, value in named.items())


def size_text(name: str, value: int | str) -> str:
    """`m=64`; a size that no tensor has is not written out, since Python prints no integer of more
    than 4,300 digits."""
    large = isinstance(value, int) and value.bit_length() > SIZE_BITS
    return f"{name} of more than {SIZE_BITS} bits" if large else f"{name}={value}"


def interval_text(interval: Interval, percent: int) -> str:
    """`90 % interval 1.02 to 1.10`."""
    low, high = (f"{end:.2f}" for end in interval)
    if low == high:  # as narrow as that: an interval without width reads as a mistake
        low, high = (f"{end:.3f}" for end in interval)
    return f"{percent} % interval {low} to {high}"


def families_text(count: int) -> str:
    """`1 family of shapes`, `3 families of shapes`."""
    return f"{count} famil{'y' if count == 1 else 'ies'} of shapes"


def known_from(values: Any) -> Known:
    """A measured shape from its list; raises TypeError where it is none."""
    match values:
        case [[*sizes], int() as best, interval, [*times]] if len(times) % 2 == 0 and all(
            type(size) is int for size in sizes
        ):
            numbers, times_us = map(int, times[::2]), map(float, times[1::2])
            pairs = tuple(zip(numbers, times_us, strict=True))
            ends = None if interval is None else (float(interval[0]), float(interval[1]))
            return Known(tuple(sizes), best, ends, pairs)
    raise TypeError(f"a measured shape is {values!r:.80}")
