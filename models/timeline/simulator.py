"""The modelled time of a config: its operation describes one call as stages in lanes, and this
plays them, event after event.

A lane does its stages one after another. A stage goes at its own pace, slower while the lanes
together ask for more than memory or links can move, and waits for its gate. Whatever is asked of
it, the answer is predicted, never measured: benchmarks/model.py says how good it is, against times
measured on H200.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import NamedTuple

from tftune.db.trial import MODES
from tftune.kernels.core.chips import Chip, with_lent_constants
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, check_word
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import LAUNCH, MEMORY, WAIT, Call, Stage
from tftune.models.timeline.costs import Costs

NOTHING = 1e-9
"""Microseconds, and units, that count as none: rounding."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """How a call spends its time, in microseconds; the three taxes and `work_us` add up to `us`."""

    us: float
    launch_us: float
    """Kernels being dispatched, while nothing is computed."""
    wait_us: float
    """For collectives, flags, peers that come later, and the closing of the call."""
    memory_us: float
    """Intermediates that go to memory and come back."""

    @property
    def work_us(self) -> float:
        return self.us - self.launch_us - self.wait_us - self.memory_us


class _Lane:
    """Where one lane is: its stage, what is left of it, and when it had done how much."""

    __slots__ = ("at", "done", "history", "left", "spans", "stages", "taxes")

    def __init__(self, stages: list[Stage]) -> None:
        self.stages, self.at, self.done = stages, 0, 0.0
        self.left = stages[0].us if stages else 0.0
        self.history = [(0.0, 0.0)]
        self.spans: list[tuple[float, float]] = []
        self.taxes = {LAUNCH: 0.0, WAIT: 0.0, MEMORY: 0.0, "": 0.0}

    @property
    def stage(self) -> Stage | None:
        return self.stages[self.at] if self.at < len(self.stages) else None

    def reached(self, units: float) -> float:
        """When it had done so many units; infinite if it has not yet."""
        if self.history[-1][1] < units - NOTHING:
            return inf
        later, more = self.history[-1]
        for now, done in reversed(self.history):
            if done < units - NOTHING:
                return now + (later - now) * (units - done) / (more - done)
            later, more = now, done
        return later

    def until(self, units: float) -> float:
        """Its own microseconds until then; infinite if this stage does not get there."""
        stage = self.stages[self.at]
        if not stage.units:
            return inf
        needed = self.left - stage.us * (1 - (units - self.done) / stage.units)
        return needed if NOTHING < needed <= self.left else inf

    def go(self, us: float, now: float) -> None:
        stage = self.stages[self.at]
        self.left -= us
        if self.left > NOTHING:
            self.history.append((now, self.done + stage.units * (1 - self.left / stage.us)))
            return
        self.done += stage.units
        self.history.append((now, self.done))
        self.at += 1
        self.left = self.stages[self.at].us if self.at < len(self.stages) else 0.0


def play(call: Call, chip: Chip) -> Timeline:
    """The time of a call. Raises ValueError where a stage waits for what never comes."""
    us, lanes = _played(call, chip)
    taxes = lanes[-1].taxes
    return Timeline(us, taxes[LAUNCH], taxes[WAIT], taxes[MEMORY])


class Gated(NamedTuple):
    """A stage of the last lane that waits."""

    stage: int
    open_us: float
    """When its gate opened."""
    rest_us: float
    """How long the lane works from then on, its later waits left out."""


def gated(call: Call, chip: Chip) -> tuple[float, list[Gated]]:
    """The time of a call, and what of its last lane waits for other lanes; as `play` raises."""
    us, lanes = _played(call, chip)
    waiting, rest_us = [], 0.0
    for number in reversed(range(len(call.lanes[-1]))):
        began, ended = lanes[-1].spans[number]
        rest_us += ended - began
        if gate := call.lanes[-1][number].after:
            open_us = lanes[gate.lane].reached(gate.units) + gate.flight_us
            waiting.append(Gated(number, open_us, rest_us))
    return us, waiting[::-1]


def _played(call: Call, chip: Chip) -> tuple[float, list[_Lane]]:
    """When the call ended, and its lanes as they were then."""
    lanes, now = [_Lane(stages) for stages in call.lanes], 0.0
    memory, links = chip.rates.hbm_bytes_per_us, chip.links_of(call.world).rate(call.world)
    last = lanes[-1]
    while last.stage is not None:
        active, waiting = _sorted(lanes, now)
        slow = _slowed([lane.stages[lane.at] for lane in active], memory, links)
        if (
            call.joined > 1
            and len(active) == 1
            and active[0] is last
            and all(lane.stage is None for lane in lanes[:-1])
        ):
            slow = [slow[0] / call.joined]
        step = min(
            (lane.left * times for lane, times in zip(active, slow, strict=True)), default=inf
        )
        for lane, ready in waiting:
            step = min(step, ready - now if ready < inf else _until_open(lane, lanes, active, slow))
        if step == inf:
            raise ValueError(
                f"stage {last.at} of {len(last.stages)} waits for what never comes: {last.stage}"
            )
        now += step
        for lane, _ in waiting:
            lane.taxes[LAUNCH if lane.stages[lane.at].tax == LAUNCH else WAIT] += step
        for lane, times in zip(active, slow, strict=True):
            lane.taxes[lane.stages[lane.at].tax] += step
            if lane.at == len(lane.spans):
                lane.spans.append((now - step, now))
            lane.spans[lane.at] = (lane.spans[lane.at][0], now)
            lane.go(step / times, now)
    return now, lanes


def _sorted(lanes: list[_Lane], now: float) -> tuple[list[_Lane], list[tuple[_Lane, float]]]:
    """The lanes that go on, and those that wait with the time at which they may go on, infinite
    where it is not known yet."""
    active, waiting = [], []
    for lane in lanes:
        stage = lane.stage
        if stage is None:
            continue
        gate = stage.after
        ready = 0.0 if gate is None else lanes[gate.lane].reached(gate.units) + gate.flight_us
        if ready > now + NOTHING:
            waiting.append((lane, ready))
        else:
            active.append(lane)
    return active, waiting


def _slowed(stages: list[Stage], memory: float, links: float) -> list[float]:
    """How many times longer each of these stages takes while all of them share memory and links."""
    moved = sum(stage.memory_bytes / stage.us for stage in stages if stage.memory_bytes)
    sent = sum(stage.link_bytes / stage.us for stage in stages if stage.link_bytes)
    by_memory, by_links = max(1.0, moved / memory), max(1.0, sent / links)
    return [
        max(by_memory if stage.memory_bytes else 1.0, by_links if stage.link_bytes else 1.0)
        for stage in stages
    ]


def _until_open(lane: _Lane, lanes: list[_Lane], active: list[_Lane], slow: list[float]) -> float:
    """How long until the lane that this one waits for has done enough, if that is in the stage that
    it is in."""
    gate = lane.stages[lane.at].after
    for other, times in zip(active, slow, strict=True):
        if gate is not None and other is lanes[gate.lane]:
            return other.until(gate.units) * times
    return inf


@lru_cache
def _describe(op: str) -> Callable[..., Call]:
    describe: Callable[..., Call] = operation(op).module("timeline").describe
    return describe


@lru_cache
def _costs(chip: Chip, world: int) -> Costs:
    return Costs(chip, world)


def timeline(shape: Shape, config: Config, mode: str, chip: Chip, lengths: str = "") -> Timeline:
    """The modelled time of one call, split into its taxes. `lengths`: of the sequences, as rows of
    an operation name them that has a `lengths.py`; where empty, all are full.

    Raises ValueError for an unknown mode, for lengths that the operation does not have, and, with
    the next command, for a chip whose rates are not all known.
    """
    check_word("mode", mode, MODES)
    costs = _costs(chip, getattr(shape, "world", 1))
    data = {"lengths": operation(shape.op).checked_lengths(lengths)} if lengths else {}
    return play(_describe(shape.op)(costs, shape, config, mode, **data), chip)


def predict(shape: Shape, config: Config, mode: str, chip: Chip, lengths: str = "") -> float:
    """Modelled microseconds of one call, positive and finite; raises as `timeline` does."""
    return timeline(shape, config, mode, chip, lengths).us


def ordering(chip: Chip, world: int) -> Callable[[Shape, Config, str, Chip], float] | None:
    """`predict` for putting configs of so many ranks in an order: with the chip's own constants, or
    with a relative's for those that nobody measured; None where there is no relative."""
    if chip.why_no_model(world) is None:
        return predict
    if (lent := with_lent_constants(chip, world)) is None:
        return None
    return lambda shape, config, mode, _: predict(shape, config, mode, lent)
