"""How long one call takes on this rank: captured in a graph or from an idle queue, candidates and
BSP in turn, caches cold.

A sample is the time of one call in microseconds. The supervisor takes the slowest rank of each
round.
"""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tftune.kernels.core import engine_all_reduce

if TYPE_CHECKING:
    import torch

Call = Callable[..., None]
Operands = Sequence[tuple[Any, ...]]
"""Sets of what a call takes: the operation's inputs, then its output."""
SLEEP_CYCLES = 200_000
"""About 0.1 ms at 1.8 GHz: the host queues a whole round behind it, so that no launch is on the
clock in graph mode."""


MOST_COPIES = 512
"""Sets of operands at most."""


def copies(bytes_per_call: int, cache_bytes: int) -> int:
    """Sets of operands to rotate over so that each call finds the last-level cache cold: three
    times the cache goes by in between, unless a call touches less than a 170th of the cache.

    >>> copies(58_720_256, 62_914_560)
    5
    """
    return (
        min(MOST_COPIES, 2 + 3 * cache_bytes // max(bytes_per_call, 1))
        if bytes_per_call < 3 * cache_bytes
        else 2
    )


LEAD_US, SHORT_US = 10_000.0, 1_000.0
"""How long a graph runs untimed before it is timed, and from which length of a replay on."""


class HostBarrier:
    """Ranks of one node leave `wait` within a microsecond or so: each spins on counters in one
    shared file of int64."""

    def __init__(self, path: Path, rank: int, world: int) -> None:
        with path.open("r+b") as file:
            self._counters = memoryview(mmap.mmap(file.fileno(), 8 * world)).cast("q")
        self._rank = rank

    def wait(self) -> None:
        mine = self._counters[self._rank] + 1
        self._counters[self._rank] = mine
        while min(self._counters) < mine:
            pass


class GraphCall:
    """One call for each set of operands, captured in one CUDA or HIP graph, as servers run it."""

    def __init__(self, call: Call, operands: Operands) -> None:
        import torch

        self.calls = len(operands)
        self._graph = torch.cuda.CUDAGraph()
        captured = torch.cuda.graph(self._graph, capture_error_mode="thread_local")
        with engine_all_reduce.capturing(), captured:
            for one in operands:
                call(*one)

    def replay(self) -> None:
        self._graph.replay()


def turns(count: int, number: int) -> list[int]:
    """The order in which so many calls take their turn in the round of that number: another one
    each round, the same on all ranks.

    A chip that reaches its power limit runs slower after a call that draws much and faster after
    one that draws little. With a fixed order one config always followed the same neighbour: BSP at
    M = 8192 on 2x H200 took 1714 us behind a slow config and 2100 us behind a fast one
    (2026-11-22).

    >>> turns(3, 0), turns(3, 1) != turns(3, 0) or turns(3, 2) != turns(3, 0)
    ([0, 1, 2], True)
    """
    order = list(range(count))
    if number:
        Random(number).shuffle(order)
    return order


Agree = Callable[[list[float]], list[float]]
"""From this rank's numbers to the largest of all ranks, the same on every rank."""


def graph_rounds(
    graphs: Sequence[GraphCall], rounds: int, start_together: Callable[[], None], agree: Agree
) -> list[list[float]]:
    """Microseconds per call of each graph in each round; the graphs take turns. `start_together`
    queues a barrier of all ranks.

    Before each timed replay the graph runs untimed: once, since the first collective of a library
    after many other kernels takes some 40 us longer (on 4x H200 BSP of flash_decode, first of 33
    configs in turn, took 68 us a call instead of 54, and a baseline should not be charged for its
    neighbours); and as often as LEAD_US takes, so that clocks are what the graph's own power draw
    makes them. `agree` keeps ranks in step. Caches stay cold: the rotation goes by between two uses
    of the same operands.
    """
    import torch

    events: list[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = [[] for _ in graphs]
    leads = [1] * len(graphs)
    for number in range(rounds + 1):
        for place in turns(len(graphs), number):
            graph = graphs[place]
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(SLEEP_CYCLES)
            for _ in range(leads[place]):
                graph.replay()
            start_together()
            start.record()
            graph.replay()
            end.record()
            events[place].append((start, end))
        torch.cuda.synchronize()
        if number == 0:  # the round that warms up says how long a replay takes
            leads = [
                lead(us)
                for us in agree([1e3 * pairs[0][0].elapsed_time(pairs[0][1]) for pairs in events])
            ]
    return [
        [1e3 * start.elapsed_time(end) / graph.calls for start, end in pairs[1:]]
        for graph, pairs in zip(graphs, events, strict=True)
    ]


def lead(replay_us: float) -> int:
    """Untimed replays before a timed one. Replays that draw little power, being short, need one
    only.

    >>> lead(300.0), lead(1500.0), lead(20_000.0)
    (1, 7, 1)
    """
    return max(1, math.ceil(LEAD_US / replay_us)) if replay_us >= SHORT_US else 1


def eager_rounds(
    calls: Sequence[Call], operands: Operands, rounds: int, barrier: HostBarrier
) -> list[list[float]]:
    """Microseconds of one call from an idle queue, launches included, of each call in each round;
    operands rotate.

    Before each timed call the same call runs three times untimed: right after other kernels a
    library's collective takes far longer to launch (BSP on 4x H200 at M=1: 260 us instead of 148;
    after one untimed call, but 30 other configs before it, still 15 to 20 us), and a baseline
    should not be charged for its neighbours.
    """
    import torch

    samples: list[list[float]] = [[] for _ in calls]
    turn = 0
    for _ in range(rounds + 1):  # the first warms up
        for call, times in zip(calls, samples, strict=True):
            for timed in (False, False, False, True):
                turn += 1
                one = operands[turn % len(operands)]
                start = torch.cuda.Event(enable_timing=True)
                end = torch.cuda.Event(enable_timing=True)
                torch.cuda.synchronize()
                barrier.wait()
                start.record()
                call(*one)
                end.record()
                end.synchronize()
                if timed:
                    times.append(1e3 * start.elapsed_time(end))
    return [times[1:] for times in samples]


def host_rounds(
    calls: Sequence[Call], operands: Operands, rounds: int, barrier: HostBarrier
) -> list[list[float]]:
    """The same on emulated ranks, by the host's clock: it exercises the protocol and says nothing
    about speed."""
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        for call, times in zip(calls, samples, strict=True):
            barrier.wait()
            start = time.perf_counter()
            call(*operands[turn % len(operands)])
            times.append(1e6 * (time.perf_counter() - start))
    return samples
