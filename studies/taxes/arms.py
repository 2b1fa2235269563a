"""What `tftune study taxes` adds to a call, or leaves out of it, to isolate a tax: arms as values.
Standard library only.

BSP pays three taxes that a fused kernel does not (arXiv 2511.02168). Each has a factor here that
adds it to the fused call: kernels that are launched, a wait for everything, bytes that go through
memory once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

LAUNCH, WAIT, MEMORY = FACTORS = ("launch", "wait", "memory")
WAITS = ("tile", "all", "clocked")
"""How a fused kernel waits for its peers: a constant of its code, see `kernels.device.waits`."""
ADDED, LATE_US = (0, 1, 2, 3, 4), (0, 20, 50)
"""Kernels added, and microseconds that one rank starts late."""
BASES = ("fused", "bsp")


@dataclass(frozen=True, order=True)
class Arm:
    """One call that is timed: a fused config or BSP, and what is otherwise about it.

    Its text is what a row's condition says behind `tax=`.

    >>> str(Arm("fused", kernels=3, trips=1.25)), Arm.parse("fused,kernels=3,trips=1.25").trips
    ('fused,kernels=3,trips=1.25', 1.25)
    """

    base: str
    kernels: int = 0
    """Launched behind the call; each is one program that does nothing."""
    trips: float = 0.0
    """How often the first of these copies the operation's bytes through memory instead."""
    waits: str = "tile"
    """One of WAITS; of BSP always `tile`."""
    late: int = -1
    """Microseconds by which the last rank starts late; -1: no kernel that could delay it."""
    without: str = ""
    """The step of BSP that is left out; its result is then wrong."""

    def __post_init__(self) -> None:
        if self.base not in BASES:
            raise ValueError(f"an arm is of {' or '.join(BASES)}, not of {self.base!r:.40}")
        if self.waits not in WAITS:
            raise ValueError(f"waits={self.waits!r:.40} is not one of {', '.join(WAITS)}")
        if self.base == "bsp" and self.waits != "tile":
            raise ValueError(f"BSP has no kernel of ours that waits, and waits={self.waits}")
        if self.base != "bsp" and self.without:
            raise ValueError(f"only BSP has steps to leave out, and without={self.without:.40}")
        if self.kernels < 0 or not 0 <= self.trips < 1000 or self.late < -1:
            raise ValueError(f"{self.kernels=}, {self.trips=} and {self.late=} cannot be negative")
        if self.trips and not self.kernels:
            raise ValueError(f"trips={self.trips:g} need a kernel that makes them; kernels=0")

    def __str__(self) -> str:
        given = (
            f"{each.name}={value:g}" if isinstance(value, int | float) else f"{each.name}={value}"
            for each in fields(self)[1:]
            if (value := getattr(self, each.name)) != each.default
        )
        return ",".join([self.base, *given])

    @classmethod
    def parse(cls, text: str) -> Arm:
        """The arm of a row; raises ValueError where the text is not what `str` gives of one."""
        base, *parts = text.split(",")
        kinds: dict[str, Any] = dict(kernels=int, trips=float, waits=str, late=int, without=str)
        given: dict[str, Any] = {}
        for part in parts:
            name, _, value = part.partition("=")
            if name not in kinds:
                raise ValueError(f"{text!r:.60} has {name!r:.20}; arms have {', '.join(kinds)}")
            given[name] = kinds[name](value)
        if str(arm := cls(base, **given)) != text:
            raise ValueError(f"{text!r:.60} is written {arm}")
        return arm

    @property
    def whole(self) -> bool:
        """Whether it computes the operation's result, so that it can be checked."""
        return not self.without

    @property
    def alone(self) -> Arm:
        """The same call without what is launched beside it."""
        return Arm(self.base, waits=self.waits, without=self.without)

    @property
    def clocked(self) -> bool:
        """Whether its samples are what programs waited, not what the call took."""
        return self.waits == "clocked"


FUSED, BSP, CLOCKED = Arm("fused"), Arm("bsp"), Arm("fused", waits="clocked")


@dataclass(frozen=True)
class Gap:
    """What BSP does more than the fused call, so many of each."""

    kernels: int
    """Launched."""
    trips: float
    """Times that the operation's bytes go to memory and back."""
    peers: int
    """Whose data is waited for."""

    @property
    def trips_added(self) -> tuple[float, ...]:
        """Round trips of a slope: none to twice as many as BSP makes more, so that the slope is of
        as many bytes; 0 to 4 where it makes none.

        >>> Gap(kernels=2, trips=17.0, peers=0).trips_added
        (0.0, 8.5, 17.0, 25.5, 34.0)
        """
        step = self.trips / 2 or 1.0
        return tuple(round(count * step, 3) for count in ADDED)

    @property
    def factors(self) -> tuple[str, ...]:
        """Those of FACTORS that BSP pays at all."""
        paid = (self.kernels > 0, self.peers > 0, self.trips > 0)
        return tuple(name for name, pays in zip(FACTORS, paid, strict=True) if pays)


def cube(gap: Gap) -> dict[frozenset[str], Arm]:
    """The arm of each set of factors: all of them make a fused call pay what BSP pays. A first
    kernel is added to each, which copies where memory is among the factors, so that no factor
    brings a launch but `launch`."""
    arm_of = {}
    for chosen in product((False, True), repeat=len(gap.factors)):
        paid = frozenset(name for name, pays in zip(gap.factors, chosen, strict=True) if pays)
        arm_of[paid] = Arm(
            "fused",
            kernels=1 + (gap.kernels if LAUNCH in paid else 0),
            trips=gap.trips if MEMORY in paid else 0.0,
            waits="all" if WAIT in paid else "tile",
        )
    return arm_of


def arms(gap: Gap, steps: Sequence[str], clocks: bool) -> tuple[Arm, ...]:
    """Every arm of a shape, each once, BSP first. `steps`: of BSP, each of which is left out once;
    `clocks`: whether the device has one."""
    return tuple(dict.fromkeys(_arms(gap, steps, clocks)))


def _arms(gap: Gap, steps: Sequence[str], clocks: bool) -> Iterator[Arm]:
    yield BSP
    yield FUSED
    yield from (Arm("fused", kernels=count) for count in ADDED)
    yield from (Arm("fused", kernels=1, trips=trips) for trips in gap.trips_added)
    if gap.peers:
        yield Arm("fused", waits="all")
        yield from (Arm(base, late=us) for base in BASES for us in LATE_US)
    yield from cube(gap).values()
    if len(steps) > 1:
        yield from (Arm("bsp", without=step) for step in steps)
    if gap.peers and clocks:
        yield CLOCKED
