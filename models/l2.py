"""How often the programs of one die find what they read in its L2, by playing an LRU cache.

Programs are dealt to dies in turn. A die has so many units, each of which runs one program at a
time and takes the next one in order when it ends. A program reads its streams from their beginning,
side by side: the keys and values of a head; a row of tiles of A and a column of B. Programs that
begin together drift apart: they would otherwise read every block at the same moment, and plain LRU
would hit far more often than was measured. They drift more where several dies read the same
stream: "locality weakens when a stream's consumers are spread over XCDs" (rocKE's case study,
section 2.4; the paper's naive head-first). DRIFT and SHARED say how much: they are fitted to half
of the figures published of attention, and GEMM_DRIFT to half of those of GEMMs. docs/l2.md has the
errors on the others. Standard library only; every figure is modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from tftune.kernels.core.tile_order import Grid

DIE_L2_BYTES = 4 << 20
"""Bytes of L2 of one die of MI300X (CDNA 3 white paper), and of MI355X."""
LINES = 32
"""Pieces in which the cache is played; a stream is as many of them as its bytes are."""
DRIFT = 0.08
"""Programs that begin together are apart by up to this share of their longest stream."""
GEMM_DRIFT = 0.055
"""The same of a GEMM's programs; SHARED is common to both."""
SHARED = 0.5
"""By so much more of it where all dies read the same stream: 1 would double it."""
WINDOWS, WAVES = (0.2, 0.6), 2
"""Where in the sequence of programs the play begins, and how many programs each unit plays."""

Reads = tuple[tuple[Hashable, float], ...]
"""Streams that are read side by side, and how many bytes of each."""
Program = Callable[[int], Reads]
"""What the chip's program of that number reads, in the order in which programs are dealt."""


@dataclass(frozen=True)
class Die:
    """One die: its units, how many dies there are, and the bytes of its L2."""

    units: int
    dies: int = 1
    l2_bytes: int = DIE_L2_BYTES


def hit_rate(
    die: Die,
    program: Program,
    count: int,
    drift: float | None = None,
    shared: float | None = None,
    persistent: bool = False,
) -> float:
    """The share of bytes that the first die's L2 serves, from 0 to 1, of `count` programs of the
    chip. `persistent`: each unit takes every `die.units`-th program of its die, where else the
    unit that ends first takes the next one.

    Two stretches of the sequence are played, each from an empty cache. Streams that are shorter
    than one line count as one.

    >>> one_head = lambda number: (("head 0", 1e6),)
    >>> hit_rate(Die(units=4), one_head, 4, drift=0.0)
    0.75
    """
    drift, shared = DRIFT if drift is None else drift, SHARED if shared is None else shared
    here = -(-count // die.dies)
    played = min(here, WAVES * die.units)
    hits = reads = 0.0
    whole = die.units if persistent else 1
    for first in sorted({int((here - played) * share) // whole * whole for share in WINDOWS}):
        numbers = range(first * die.dies, (first + played) * die.dies, die.dies)
        programs = [program(number) for number in numbers]
        readers = _readers(die, program, numbers[: die.units], count) if shared else {}
        drifts = [drift * (1 + shared * _spread(die, reads, readers)) for reads in programs]
        stretch = _play(die, programs, drifts, persistent)
        hits, reads = hits + stretch[0], reads + stretch[1]
    return hits / reads if reads else 0.0


@lru_cache(maxsize=1 << 16)
def gemm_hit_rate(dies: int, grid: Grid, a_bytes: float, b_bytes: float) -> float:
    """The same of a GEMM whose persistent programs are dealt to dies in turn, and whose pieces read
    so many bytes of a row of A and of a column of B. A die has as many units at work as programs.
    Cached: searches ask for the same tiles many times.

    >>> gemm_hit_rate(1, Grid(4, 1, 1, 1, programs=4, xcds=1), 1e5, 1e5)
    0.375
    """
    die = Die(-(-grid.programs // dies), dies)

    def program(number: int) -> Reads:
        slot, place = divmod(number, dies)
        turn, unit = divmod(slot, die.units)
        piece = grid.piece(unit * dies + place, turn)
        if piece is None:
            return ()
        row, column, part = piece
        return (("A", row, part), a_bytes), (("B", column, part), b_bytes)

    return hit_rate(die, program, grid.turns * die.units * dies, GEMM_DRIFT, persistent=True)


def _readers(
    die: Die, program: Program, numbers: Sequence[int], count: int
) -> dict[Hashable, set[int]]:
    """The dies that read each stream while one die runs the programs of these numbers."""
    readers: dict[Hashable, set[int]] = {}
    for number in numbers:
        for other in range(min(die.dies, count - number)):
            for stream, _ in program(number + other):
                readers.setdefault(stream, set()).add(other)
    return readers


def _spread(die: Die, reads: Reads, readers: dict[Hashable, set[int]]) -> float:
    """The share of the other dies that reads the same; of the stream that most of them read."""
    most = max((len(readers.get(stream, ())) for stream, _ in reads), default=1)
    return max(most - 1, 0) / max(die.dies - 1, 1)


def _play(
    die: Die, programs: Sequence[Reads], drifts: Sequence[float], persistent: bool
) -> tuple[float, float]:
    """Bytes that hit, and all bytes, of these programs, taken in order by the die's units."""
    line = die.l2_bytes / LINES
    work = [(reads, _steps(reads, line)) for reads in programs]
    queues = (
        [iter(work[unit :: die.units]) for unit in range(die.units)]
        if persistent
        else [iter(work)] * die.units
    )
    longest = max((size for reads in programs for _, size in reads), default=0.0) / line
    pick = Random(0)
    waits = [pick.uniform(0, longest * drift) for drift in drifts[: die.units]]
    running = [next(queue, None) for queue, _ in zip(queues, waits, strict=False)]
    at = [0] * len(waits)
    cache: dict[tuple[Hashable, int], float] = {}
    hits = total = held = tick = 0.0
    while any(running):
        for unit, program in enumerate(running):
            if program is None or tick < waits[unit]:
                continue
            reads, steps = program
            for stream, size in reads:
                key, piece = (stream, at[unit]), size / steps
                total += piece
                if key in cache:
                    hits += piece
                    held -= cache.pop(key)
                cache[key] = piece
                held += piece
                while held > die.l2_bytes * FULL:
                    held -= cache.pop(next(iter(cache)))
            at[unit] += 1
            if at[unit] == steps:
                running[unit], at[unit] = next(queues[unit], None), 0
        tick += 1
    return hits, total


FULL = 1 + 1e-6
"""How full a cache may be, in its bytes: sums of pieces are rounded."""


def _steps(reads: Reads, line: float) -> int:
    return max(1, round(max((size for _, size in reads), default=0.0) / line))
