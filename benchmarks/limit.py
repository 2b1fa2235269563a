"""The physical limit of one all_gather_gemm call, *computed* from the rates of its chip, and how near a *measured* time comes to it.

No call can end before its slowest resource has done its part, nor before one flag has flown. A share of 1 is hardly reached: the
GEMM's last step waits for the last transfer, so that the two never overlap from end to end. Where B alone is read for long, it is, to the
percent that the rates are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.chips import Chip

LARGE, SMALL = 1024, 128
"""M from which, and up to which, shares are averaged: there the GEMM decides, here reading B and latency."""
BEST_FLOPS_PER_US = {"h200": 2 * 8192 * 3584 * 8192 / 680}
"""By chip: the best rate that any GEMM was seen to reach, where it is above the library's of kernels/chips.py. On one H200 a Triton GEMM
with tensor descriptors takes 680 us at M = 8192 (docs/measured.md, the core alone)."""


@dataclass(frozen=True)
class Limit:
    """The least microseconds of each resource on one rank, all resources working at once."""

    compute: float
    memory: float
    links: float
    flag: float

    @property
    def bound(self) -> str:
        """The resource that takes longest."""
        return max(("compute", "memory", "links"), key=lambda name: float(getattr(self, name)))

    @property
    def us(self) -> float:
        return max(self.compute, self.memory, self.links) + self.flag


def limit(shape: AllGatherGemm, chip: Chip) -> Limit:
    """2 M N K operations at the best rate that a GEMM reached; B and this rank's shard of A read and C written once, caches being cold; the
    shard sent to W - 1 peers; one flight of a flag. Rates are those of kernels/chips.py.

    The gathered A is not charged to memory: a kernel may use what arrives while it is in the cache.

    >>> from tftune.kernels.chips import H200
    >>> limit(AllGatherGemm(8192, 3584, 8192, 8), H200).bound
    'compute'
    """
    own = (shape.k * shape.n + shape.m * shape.n) * shape.element_bytes + shape.shard_bytes
    sent = (shape.world - 1) * shape.shard_bytes
    rate = max(chip.matrix_flops_per_us, BEST_FLOPS_PER_US.get(chip.name, 0.0))
    return Limit(shape.flops / rate, own / chip.hbm_bytes_per_us, sent / chip.link_rate(shape.world), chip.flag_us)


@dataclass(frozen=True)
class Share:
    """One shape's computed limit beside the measured time of its winner, in microseconds."""

    m: int
    limit: Limit
    winner_us: float

    @property
    def reached(self) -> float:
        return self.limit.us / self.winner_us


def shares(times: Iterable[tuple[AllGatherGemm, float]], chip: Chip) -> list[Share]:
    return [Share(shape.m, limit(shape, chip), us) for shape, us in times]


def table(rows: Iterable[Share]) -> Iterator[str]:
    """Markdown: what each resource needs at least (computed), which one bounds, the winner (measured), and the share it reaches."""
    yield "| M | compute | memory | links | limit (computed) | bound by | winner (measured) | limit / winner |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        least = row.limit
        parts = f"{least.compute:.1f} | {least.memory:.1f} | {least.links:.1f} | {least.us:.1f} | {least.bound}"
        yield f"| {row.m} | {parts} | {row.winner_us:.1f} | {row.reached:.2f} |"


def geomean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def result(rows: Sequence[Share], **names: object) -> str:
    """The RESULT line: the geometric mean of the shares over large and over small M, each with its count of shapes."""
    parts = {
        f"m_from_{LARGE}": [row.reached for row in rows if row.m >= LARGE],
        f"m_to_{SMALL}": [row.reached for row in rows if row.m <= SMALL],
    }
    told = [f"{name}={value}" for name, value in names.items()]
    told += [f"{part}={geomean(found):.3f} shapes_{part}={len(found)}" for part, found in parts.items() if found]
    return " ".join(["RESULT limit", *told])
