"""How often the programs of one die find what they read in its L2, by playing an LRU cache.

Programs are dealt to dies in turn. A die has so many units, each of which runs one program at a
time and takes the next one in order when it ends. A program reads one stream (the keys and values
of a head) from its beginning. Programs that begin together drift apart: they would otherwise read
every block at the same moment, and plain LRU would hit far more often than was measured. DRIFT is
the one parameter of that; `benchmarks/l2.py` fits it to figures of arXiv 2511.02132 and prints the
errors on the rest. Standard library only; every figure is modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

DIE_L2_BYTES = 4 << 20
"""Of one die of MI300X (CDNA 3 white paper)."""
LINES = 64
"""Pieces in which the cache is played; a stream is as many of them as its bytes are."""
DRIFT = 0.06
"""Programs that begin together are apart by up to this share of a whole stream."""
WINDOWS, WAVES = (0.2, 0.6), 2
"""Where in the sequence of programs the play begins, and how many programs each unit plays."""

Program = Callable[[int], tuple[int, float]]
"""Of a die's program of that number in its order: its stream, and how many bytes of it it reads."""


@dataclass(frozen=True)
class Die:
    """One die: its units, and the bytes of its L2."""

    units: int
    l2_bytes: int = DIE_L2_BYTES


def hit_rate(die: Die, program: Program, count: int, drift: float | None = None) -> float:
    """The share of reads that the L2 serves, of `count` programs, from 0 to 1.

    Two stretches of the sequence are played, each from an empty cache. Streams that are shorter
    than one line count as one.
    """
    hits = reads = 0
    for window in WINDOWS:
        played = min(count, WAVES * die.units)
        first = int((count - played) * window)
        found = _play(
            die,
            [program(first + number) for number in range(played)],
            DRIFT if drift is None else drift,
        )
        hits, reads = hits + found[0], reads + found[1]
    return hits / max(reads, 1)


def _play(die: Die, programs: list[tuple[int, float]], drift: float) -> tuple[int, int]:
    """Hits and reads of these programs, taken in order by the die's units."""
    line = die.l2_bytes / LINES
    queue = iter([(stream, max(1, round(size / line))) for stream, size in programs])
    pick = Random(0)
    spread = drift * max((size for _, size in programs), default=0.0) / line
    waits = [pick.uniform(0, spread) for _ in range(die.units)]
    running: list[tuple[int, int] | None] = [next(queue, None) for _ in range(die.units)]
    at = [0] * die.units
    cache: dict[tuple[int, int], None] = {}
    hits = reads = tick = 0
    while any(running):
        for unit, program in enumerate(running):
            if program is None or tick < waits[unit]:
                continue
            stream, length = program
            key = stream, at[unit]
            reads += 1
            if key in cache:
                hits += 1
                del cache[key]
            elif len(cache) >= LINES:
                del cache[next(iter(cache))]
            cache[key] = None
            at[unit] += 1
            if at[unit] == length:
                running[unit], at[unit] = next(queue, None), 0
        tick += 1
    return hits, reads
