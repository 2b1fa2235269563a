"""How near a *measured* time comes to the physical limit of its call, which an operation's
`limit.py` *computes*."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.report.series import symbol


@dataclass(frozen=True)
class Share:
    """One shape's computed limit beside the measured time of its winner, in microseconds."""

    shape: Shape
    part: str
    """The part of a set that it is averaged in; "" for none."""
    limit: Limit
    winner_us: float

    @property
    def reached(self) -> float:
        return self.limit.us / self.winner_us


def shares(times: Iterable[tuple[Shape, float]], chip: Chip) -> list[Share]:
    """The shares of shapes with the microseconds of their winners."""
    rows = []
    for shape, us in times:
        known = operation(shape.op).module("limit")
        rows.append(Share(shape, known.part(shape, chip), known.limit(shape, chip), us))
    return rows


def table(rows: Sequence[Share]) -> Iterator[str]:
    """Markdown: what each resource needs at least (computed), which one bounds, the winner
    (measured), and the share it reaches."""
    names = varying([row.shape for row in rows])
    parts = ("compute", "memory", "links", "limit (computed)", "bound by")
    heads = (*map(symbol, names), *parts, "winner (measured)", "limit / winner")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        least = row.limit
        each = " | ".join(
            f"{us:.1f}" for us in (least.compute, least.memory, least.links, least.us)
        )
        winner = f"{least.bound} | {row.winner_us:.1f} | {row.reached:.2f}"
        yield f"| {sizes(row.shape, names)} | {each} | {winner} |"


def varying(shapes: Sequence[Shape]) -> list[str]:
    """The fields that tell these shapes apart, and the size that grows."""
    values, size = [shape.to_dict() for shape in shapes], shapes[0].SIZE
    return [n for n in values[0] if n == size or len({each[n] for each in values}) > 1]


def sizes(shape: Shape, names: Sequence[str]) -> str:
    """The first columns of a shape's row."""
    values = shape.to_dict()
    return " | ".join(str(values[name]) for name in names)


def result(rows: Sequence[Share], **names: object) -> str:
    """The RESULT line: the geometric mean of the shares over each part, with its count of
    shapes."""
    told = [f"{name}={value}" for name, value in names.items()]
    for part in sorted({row.part for row in rows} - {""}):
        reached = [row.reached for row in rows if row.part == part]
        told.append(f"{part}={geometric_mean(reached):.3f} shapes_{part}={len(reached)}")
    return " ".join(["RESULT limit", *told])
