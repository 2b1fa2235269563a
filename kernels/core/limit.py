"""The least time of one call, *computed* from the rates of a chip: what an operation's `limit.py`
says of a shape. Standard library only.

No call can end before its slowest resource has done its part, nor before one flag has flown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The least microseconds of each resource on one rank."""

    compute: float
    memory: float
    links: float
    flag: float
    in_turn: bool = False
    """Whether what goes over the links is known only when compute and memory have done their part;
    else all work at once."""

    @property
    def bound(self) -> str:
        """The resource that takes longest."""
        return max(("compute", "memory", "links"), key=lambda name: float(getattr(self, name)))

    @property
    def us(self) -> float:
        local = max(self.compute, self.memory)
        return (local + self.links if self.in_turn else max(local, self.links)) + self.flag
