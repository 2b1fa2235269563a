"""The report's figures, drawn with matplotlib: time, speed-up, tree, failures. Imported only by the
report.

Few colours, one per variant wherever it appears; lines are labelled where they end instead of in a
legend.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib
import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tftune.db.evidence import speedup
from tftune.db.trial import FAILURES, MODES, Failure, Trial
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.models.layout import LayoutModel
from tftune.models.tree.tree import Leaf, Node, Split, depth_of, leaves_of
from tftune.report.tables import BENCH_WORDS, Line, label, variants_of

INK, QUIET, FAINT = "#22262b", "#6b7280", "#e5e7eb"
COLOURS = {
    "bsp": "#8a8f98",
    "pull": "#2b6cb0", "staged": "#b83280", "push": "#dd6b20", "push_ce": "#b7791f", "bsp_chunked": "#4a5568",
    "gather": "#2b6cb0", "no_wait": "#0f8b8d", "fused": "#2f855a", "fused_heads": "#805ad5", "persistent": "#dd6b20",
    "persistent_ll": "#c53030",
}  # fmt: skip
SPARE_COLOURS = ("#2f855a", "#805ad5", "#b83280", "#b7791f")
MOST_FAMILIES = 4
"""Rows of panels in one figure; the table below it shows every shape."""
STYLE: dict[Any, Any] = {
    "font.size": 9, "text.color": INK, "axes.labelcolor": QUIET, "axes.edgecolor": "#c5c9d0", "axes.linewidth": 0.8, "axes.titlesize": 10,
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.grid.axis": "y",
    "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 0.8, "xtick.color": QUIET, "ytick.color": QUIET,
    "xtick.major.size": 0, "ytick.major.size": 0, "xtick.minor.size": 0, "ytick.minor.size": 0, "figure.facecolor": "white",
}  # fmt: skip


def style() -> AbstractContextManager[None]:
    """Everything that the figures change of matplotlib's defaults; enter it around drawing and
    saving."""
    return matplotlib.rc_context(STYLE)


def colour(variant: str) -> str:
    """The variant's colour, the same in every figure and page."""
    return COLOURS.get(variant) or SPARE_COLOURS[sum(variant.encode()) % len(SPARE_COLOURS)]


@dataclass(frozen=True)
class Across:
    """What a figure's x axis is: a field of the shapes; and what a row of panels has in common."""

    field: Callable[[Line], str]
    panel: Callable[[Line], str]

    def at(self, line: Line) -> int:
        return int(getattr(line.shape, self.field(line)))


def _others(line: Line) -> str:
    """Every field but the size, as the shape writes them."""
    return "  ".join(
        part for part in str(line.shape).split(",") if not part.startswith(f"{line.shape.SIZE}=")
    )


SIZES = Across(lambda line: line.shape.SIZE, _others)
WORLDS = Across(lambda line: "world", lambda line: line.shape.problem.replace(",", "  "))


Ends = dict[str, tuple[float, float]]
"""Where each variant's line ends, for its label."""


def _panels(
    lines: Sequence[Line],
    across: Across,
    draw: Callable[[Axes, list[Line], Across], Ends],
    y_axis: Callable[[Axes], None],
    y_title: str,
) -> Figure:
    """A grid of panels, a row for each family (the first few) and a column for each mode; a row
    shares its y axis."""
    families = list(dict.fromkeys(map(across.panel, lines)))[:MOST_FAMILIES]
    modes = [mode for mode in MODES if any(line.mode == mode for line in lines)]
    figure = Figure(figsize=(max(5.8 * len(modes), 6.6), 3.7 * len(families)), layout="constrained")
    grid = figure.subplots(len(families), len(modes), squeeze=False, sharey="row")
    for family, panels in zip(families, grid, strict=True):
        chosen = [
            [line for line in lines if across.panel(line) == family and line.mode == mode]
            for mode in modes
        ]
        drawn = [
            draw(ax, sorted(part, key=across.at), across) if part else {}
            for ax, part in zip(panels, chosen, strict=True)
        ]
        for ax, mode, part, ends in zip(panels, modes, chosen, drawn, strict=True):
            ax.set_title(f"{mode}   {family}", fontsize=9, color=QUIET, pad=10)
            _size_axis(ax, part, across)
            y_axis(ax)
            _end_labels(ax, ends)
        panels[0].set_ylabel(f"{y_title}, {BENCH_WORDS[lines[0].winner.bench]}")
    return figure


def _size_axis(ax: Axes, lines: Sequence[Line], across: Across) -> None:
    if not (sizes := sorted({across.at(line) for line in lines})):
        return
    shown = sizes[:: -(-len(sizes) // 14)]
    ax.set_xscale("log", base=2)
    ax.set_xticks(shown, [_short(size) for size in shown], fontsize=8)
    ax.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    name = across.field(lines[0])
    ax.set_xlabel(name.upper() if len(name) == 1 else name)
    low, high = min(sizes), max(sizes)
    span = math.log2(high / low) or 1.0
    ax.set_xlim(
        low / 2 ** (0.04 * span), high * 2 ** (0.13 * span)
    )  # room for the labels where the lines end


def _short(size: int) -> str:
    """A large power of two as people say it.

    >>> _short(8192), _short(131_072), _short(100_000)
    ('8192', '128K', '100000')
    """
    return f"{size // 1024}K" if size >= 16_384 and size % 1024 == 0 else str(size)


def _end_labels(ax: Axes, ends: Ends) -> None:
    """Names at the line ends, moved apart where two would overlap. Both axes are logarithmic."""
    low, high = (math.log(limit) for limit in ax.get_ylim())
    ordered = sorted(ends.items(), key=lambda end: end[1][1])
    heights = _apart([(math.log(y) - low) / (high - low) for _, (_, y) in ordered])
    for (variant, (x, _)), height in zip(ordered, heights, strict=True):
        ax.annotate(
            label(variant), (x, math.exp(low + height * (high - low))), xytext=(7, 0), textcoords="offset points", va="center",
            color=colour(variant), fontweight="bold", annotation_clip=False,
        )  # fmt: skip


def _apart(heights: Sequence[float], gap: float = 0.06, top: float = 0.98) -> list[float]:
    """Ascending heights, each at least a gap above the one before, and none above the top where
    there is room below.

    >>> [round(height, 2) for height in _apart([0.2, 0.21, 0.97, 0.98])]
    [0.2, 0.26, 0.92, 0.98]
    """
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], placed[i + 1] - gap if i + 1 < len(placed) else top)
    return placed


def time_figure(lines: Sequence[Line]) -> Figure:
    """Time of each variant's best config against the size, both logarithmic; a filled mark is the
    fastest at its size."""
    return _panels(lines, SIZES, _draw_times, _time_axis, "µs for one call")


def scaling_figure(lines: Sequence[Line]) -> Figure | None:
    """The same for one problem on more and more ranks, beside halving with every doubling; None
    where each has one number of ranks."""
    worlds: dict[str, set[int]] = {}
    for line in lines:
        worlds.setdefault(line.shape.problem, set()).add(WORLDS.at(line))
    scaled = sorted(
        (line for line in lines if len(worlds[line.shape.problem]) > 1),
        key=lambda line: -len(worlds[line.shape.problem]),
    )
    return _panels(scaled, WORLDS, _draw_scaling, _time_axis, "µs for one call") if scaled else None


def _draw_scaling(ax: Axes, lines: Sequence[Line], across: Across) -> Ends:
    first = min(lines, key=across.at)
    start, fastest_us = across.at(first), first.median_us(first.winner.config.variant)
    xs = [across.at(line) for line in lines]
    ax.plot(xs, [fastest_us * start / x for x in xs], color=FAINT, lw=1.8, ls=(0, (4, 3)), zorder=1)
    return _draw_times(ax, lines, across)


def _draw_times(ax: Axes, lines: Sequence[Line], across: Across) -> Ends:
    ends: Ends = {}
    for variant in variants_of(lines):
        having = [line for line in lines if variant in line.by_variant]
        xs, ys = [across.at(line) for line in having], [line.median_us(variant) for line in having]
        fills = [
            colour(variant) if line.winner.config.variant == variant else "white" for line in having
        ]
        ax.plot(xs, ys, color=colour(variant), lw=1.8, zorder=2 if variant == "bsp" else 3)
        ax.scatter(xs, ys, s=26, zorder=4, edgecolors=colour(variant), linewidths=1.3, color=fills)
        ends[variant] = (xs[-1], ys[-1])
    return ends


def _time_axis(ax: Axes) -> None:
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    ax.yaxis.set_major_formatter(
        matplotlib.ticker.FuncFormatter(lambda us, _: f"{us:,.0f}" if us >= 1 else f"{us:g}")
    )


def speedup_figure(lines: Sequence[Line]) -> Figure:
    """BSP's time over each fused variant's, in the same rounds, against the size, with the 95 %
    interval as a bar."""
    return _panels(lines, SIZES, _draw_speedups, _ratio_axis, "speed-up over BSP")


def _draw_speedups(ax: Axes, lines: Sequence[Line], across: Across) -> Ends:
    ends: Ends = {}
    for variant in variants_of(lines):
        found = [
            (across.at(line), speedup(line.by_variant[variant], line.bsp))
            for line in lines
            if variant in line.by_variant
        ]
        points = [(size, *ratio) for size, ratio in found if ratio is not None]
        if variant == "bsp" or not points:
            continue
        xs, ys, lows, highs = zip(*points, strict=True)
        ax.plot(xs, ys, color=colour(variant), lw=1.8, marker="o", ms=4.5, zorder=3)
        ax.vlines(xs, lows, highs, color=colour(variant), lw=4, alpha=0.35, zorder=2)
        ends[variant] = (xs[-1], ys[-1])
    last = max(map(across.at, lines))
    ax.plot((min(map(across.at, lines)), last), (1, 1), color=colour("bsp"), lw=1.8, zorder=1)
    return ends | {"bsp": (last, 1.0)}


def _ratio_axis(ax: Axes) -> None:
    """A logarithmic axis of ratios around the line of BSP, at 1."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    low, high = min(low, 0.8), max(high, 1.25)
    ticks = [
        tick
        for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10, 20, 50)
        if low <= tick <= high
    ]
    ax.set_ylim(low, high)
    ax.set_yticks(ticks, [f"{tick:g}x" for tick in ticks])
    ax.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    ax.axhspan(1, high, color="#f4f7f4", zorder=0)


def failure_figure(trials: Sequence[Trial]) -> Figure | None:
    """Failures by kind, each bar split by variant and labelled with its count; None where nothing
    failed."""
    counts = Counter(
        (trial.outcome.kind, trial.config.variant)
        for trial in trials
        if isinstance(trial.outcome, Failure)
    )
    kinds = [kind for kind in FAILURES if any(found == kind for found, _ in counts)]
    if not kinds:
        return None
    figure = Figure(figsize=(8.4, 0.7 + 0.42 * len(kinds)), layout="constrained")
    ax = figure.subplots()
    ax.grid(False)
    for row, kind in enumerate(kinds):
        _draw_failure_bar(
            ax,
            row,
            {variant: count for (found, variant), count in sorted(counts.items()) if found == kind},
        )
    ax.set_yticks(range(len(kinds)), kinds)
    ax.invert_yaxis()
    ax.xaxis.set_visible(False)
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.3)
    ax.set_xlim(left=0)
    return figure


def _draw_failure_bar(ax: Axes, row: int, counts: Mapping[str, int]) -> None:
    left = 0
    for variant, count in counts.items():
        ax.barh(row, count, left=left, height=0.55, color=colour(variant))
        left += count
    parts = ", ".join(f"{count} {variant}" for variant, count in counts.items())
    ax.annotate(
        f"{left}  ({parts})",
        (left, row),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=QUIET,
    )


MOST_LEAVES = 32
"""Of a figure of a tree: what is deeper than the levels that have no more is summed up."""


@dataclass(frozen=True)
class _Rest:
    """What is left out under one node."""

    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class _Fork:
    """A split of which not all that is below is drawn."""

    split: Split
    below: _Shown
    above: _Shown


_Shown = Leaf | _Rest | _Fork


def _shown(node: Node, levels: int) -> _Shown:
    """The node with so many levels below it."""
    if isinstance(node, Leaf):
        return node
    if not levels:
        return _Rest(tuple(leaves_of(node)))
    return _Fork(node, _shown(node.below, levels - 1), _shown(node.above, levels - 1))


def _ends(shown: _Shown) -> int:
    return _ends(shown.below) + _ends(shown.above) if isinstance(shown, _Fork) else 1


def _depth(shown: _Shown) -> int:
    return 1 + max(_depth(shown.below), _depth(shown.above)) if isinstance(shown, _Fork) else 0


def tree_figure(model: LayoutModel) -> Figure:
    """The tree of a layout from left to right: each branch carries its condition, each leaf the
    configs that its formulas choose among. Of a large tree the first levels, and how many leaves
    follow. Raises ValueError where there is none."""
    if model.root is None:
        raise ValueError(f"{model.title} has no tree")
    shown = _shown(model.root, 0)
    for levels in range(1, 1 + depth_of(model.root)):
        deeper = _shown(model.root, levels)
        shown = deeper if _ends(deeper) <= MOST_LEAVES else shown
    depth = _depth(shown)
    figure = Figure(
        figsize=(2.4 + 1.5 * depth + 5.6, 0.6 + 0.55 * _ends(shown)), layout="constrained"
    )
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set_xlim(-0.1, depth + 3.9)
    ax.set_ylim(_ends(shown) - 0.3, -0.7)
    _draw_node(ax, model, shown, 0, depth, iter(range(_ends(shown))))
    return figure


def _draw_node(
    ax: Axes, model: LayoutModel, node: _Shown, level: int, depth: int, places: Iterator[int]
) -> float:
    """Draw what is under a node, and say at which height it stands."""
    if isinstance(node, Leaf):
        height = next(places)
        _draw_leaf(ax, model, node, depth, height)
        return height
    if isinstance(node, _Rest):
        height = next(places)
        _draw_rest(ax, model, node, depth, height)
        return height
    heights = []
    for child, sign in ((node.below, "\u2264"), (node.above, ">")):
        heights.append(_draw_node(ax, model, child, level + 1, depth, places))
        end = level + 1 if isinstance(child, _Fork) else depth
        ax.plot((level, end), (heights[-1], heights[-1]), color="#c5c9d0", lw=1.2, zorder=1)
        condition = f"{node.split.feature} {sign} {node.split.threshold:,.10g}"
        ax.annotate(
            condition, (level, heights[-1]), xytext=(5, 3), textcoords="offset points", fontsize=8.5
        )
    ax.plot((level, level), heights, color="#c5c9d0", lw=1.2, zorder=1)
    return sum(heights) / 2


def _first(model: LayoutModel, leaf: Leaf) -> Config:
    """The config of a leaf that comes near the fastest most often."""
    return model.configs[leaf.candidates[0]]


def _draw_rest(ax: Axes, model: LayoutModel, rest: _Rest, depth: int, height: float) -> None:
    counts = Counter(_first(model, leaf).variant for leaf in rest.leaves).most_common()
    ax.scatter(
        [depth], [height], s=34, facecolors="none", edgecolors=colour(counts[0][0]), zorder=3
    )
    said = f"{len(rest.leaves)} leaves: " + ", ".join(
        f"{count} {label(variant)}" for variant, count in counts
    )
    ax.annotate(
        said, (depth, height), xytext=(9, -3), textcoords="offset points", color=QUIET, fontsize=8
    )


def _draw_leaf(ax: Axes, model: LayoutModel, leaf: Leaf, depth: int, height: float) -> None:
    config = _first(model, leaf)
    ax.scatter([depth], [height], s=34, color=colour(config.variant), zorder=3)
    others = Counter(label(model.configs[number].variant) for number in leaf.candidates[1:])
    also = "".join(
        f", {count} x {variant}" if count > 1 else f", {variant}"
        for variant, count in others.items()
    )
    shapes = f"{leaf.rows} shape{'s' if leaf.rows != 1 else ''}{f'; or{also[1:]}' if also else ''}"
    ax.annotate(
        label(config.variant), (depth, height), xytext=(9, 2), textcoords="offset points",
        color=colour(config.variant), fontweight="bold",
    )  # fmt: skip
    beside = 15 + 6.2 * len(label(config.variant))
    ax.annotate(
        shapes,
        (depth, height),
        xytext=(beside, 2),
        textcoords="offset points",
        color=QUIET,
        fontsize=8,
    )
    defaults = {
        choice.name: choice.default for choice in operation(model.op).space.choices(config.variant)
    }
    knobs = "  ".join(
        f"{name} {value}" for name, value in config.knobs if value != defaults.get(name)
    )
    ax.annotate(
        knobs, (depth, height), xytext=(9, -8), textcoords="offset points", color=QUIET, fontsize=7
    )
