"""Lines of a report in the groups that its figures and tables show: shapes that differ in their
size alone. Standard library only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from tftune.db.trial import MODES
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, size_of
from tftune.report.tables import Line

TIMES, DASH = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
"""As a page writes a speed-up, and an interval or a missing time."""
PAPER = "paper"
"""The set of shapes that figures name among the others."""


@dataclass(frozen=True, eq=False)
class Series:
    """The lines of one mode whose shapes differ in `Shape.SIZE` alone, from small to large."""

    title: str
    """The other sizes, as in `N = 3584, K = 8192`."""
    layout: tuple[int | str, ...]
    mode: str
    lines: tuple[Line, ...]
    is_papers: bool = False
    """Whether its shapes are those of the set `paper`."""

    @property
    def name(self) -> str:
        """The title for a heading, which says whether the shapes are the paper's."""
        return (self.title or "all shapes") + (" (paper)" if self.is_papers else "")


def all_series(lines: Iterable[Line]) -> list[Series]:
    """The lines apart by mode, layout and all sizes but one: layouts of the paper first, then those
    with most lines; within a layout the paper's series first."""
    grouped = groups(lines, lambda line: (line.mode, constant_fields(line.shape)))
    made = [_series(mode, alike) for (mode, _), alike in grouped.items()]
    papers = {each.layout for each in made if each.is_papers}
    lengths = Counter(line.shape.layout for each in made for line in each.lines)

    def order(each: Series) -> tuple[int, bool, int, str, bool]:
        layout = each.layout
        place = MODES.index(each.mode), layout not in papers, -lengths[layout], str(layout)
        return *place, not each.is_papers

    return sorted(made, key=order)


def _series(mode: str, lines: Iterable[Line]) -> Series:
    ordered = tuple(sorted(lines, key=lambda line: size_of(line.shape)))
    shape = ordered[0].shape
    return Series(sizes_title(shape), shape.layout, mode, ordered, is_papers(shape))


def constant_fields(shape: Shape) -> str:
    """All fields but the size, layout among them: what a series has in common."""
    parts = str(shape).split(",")
    return ",".join(part for part in parts if not part.startswith(f"{shape.SIZE}="))


def sizes_title(shape: Shape) -> str:
    """The sizes that a series has in common, as in `N = 3584, K = 8192`."""
    names = [name for name in shape.coordinates() if name != shape.SIZE]
    return ", ".join(equation(name, getattr(shape, name)) for name in names)


def equation(name: str, value: object) -> str:
    """As in `N = 3584`, which no line end breaks."""
    return f"{symbol(name)}\u00a0=\u00a0{value}"


def symbol(name: str) -> str:
    """A field as figures and tables write it: M, N and K are capitals in the field.

    >>> symbol("m"), symbol("kv_len")
    ('M', 'kv_len')
    """
    return name.upper() if len(name) == 1 else name


def layout_title(op: str, layout: Sequence[int | str]) -> str:
    """A layout for people, as in `fp16, shard = k, b_layout = kn, 8 ranks`."""
    return ", ".join(_layout_part(*each) for each in operation(op).shape.named(layout).items())


def _layout_part(name: str, value: int | str) -> str:
    if name == "dtype":
        return str(value)
    if name == "world":
        return f"{value}\u00a0rank{'s' if value != 1 else ''}"
    return equation(name, value)


def is_papers(shape: Shape) -> bool:
    """Whether a shape differs from one of the set `paper` in its size alone; False where the
    operation has no such set."""
    return constant_fields(shape) in _papers(shape.op, shape.to_dict()["world"])


@cache
def _papers(op: str, world: int) -> frozenset[str]:
    known = operation(op)
    try:
        shapes = known.named_set(PAPER, world) if PAPER in known.shape_sets else ()
    except ValueError:  # its sizes cannot be shared by so many ranks
        shapes = ()
    return frozenset(map(constant_fields, shapes))
