"""How an operation describes one of its calls: stages that follow one another in lanes, which run
side by side. Standard library only.

An operation's `timeline.py` has one function, `describe(costs, shape, config, mode) -> Call`;
`costs` is a `tftune.models.timeline.costs.Costs`, which knows what a chip takes for each thing.
`tftune.models.timeline.simulator` plays the call: lanes compete for memory and links, and wait for
one another.
"""

from __future__ import annotations

from typing import NamedTuple

LAUNCH, WAIT, MEMORY = "launch", "wait", "memory"
"""The three taxes (arXiv 2511.02168): dispatching kernels; waiting for peers or the last byte;
intermediates in memory and back."""


class Gate(NamedTuple):
    """What a stage waits for: that another lane has done so many units, and then so many
    microseconds."""

    lane: int
    units: float
    flight_us: float = 0.0


class Stage(NamedTuple):
    """One stretch of a lane."""

    us: float
    """Microseconds where nothing else uses memory or links."""
    memory_bytes: float = 0.0
    """To and from this GPU's memory meanwhile, by all programs of the lane together."""
    link_bytes: float = 0.0
    """Over this GPU's links meanwhile, in one direction."""
    units: float = 1.0
    """How far a lane gets in it, counted in whatever its gates count."""
    after: Gate | None = None
    tax: str = ""
    """Which tax its time is; "" where it is the work itself. Time that it waits for a gate is WAIT,
    unless the stage itself is LAUNCH."""


class Call(NamedTuple):
    """One call on one rank; ranks are alike, so that what this rank's lanes send is what it
    receives."""

    lanes: tuple[list[Stage], ...]
    """The last lane computes: its end is the call's, and its waiting is the call's."""
    world: int
    joined: float = 1.0
    """How much faster the last lane works once all others have ended, since their programs join
    it."""
