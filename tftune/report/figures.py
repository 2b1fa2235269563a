"""The report's figures, drawn with matplotlib: speed-up and time against the size, and strong
scaling. Imported only by the report.

One colour and one mark for each variant wherever it appears, from the palette that people with
colour blindness tell apart (Okabe and Ito 2008). A line's name stands at its end, tied to it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib
import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tftune.db.evidence import BSP, Speedup
from tftune.kernels.core.shape import size_of
from tftune.report.series import TIMES, Series, equation, symbol
from tftune.report.tables import Line, label, variants_of

INK, QUIET, RULE, FAINT = "#22262b", "#5c636e", "#b4bac3", "#e4e7eb"
PAGE, BAND = "#fdfdfe", "#eef5f1"
"""The greys: the page gives each another value where a reader prefers a dark one."""
BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE = (
    "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7",
)  # fmt: skip
"""Okabe and Ito's colours, without black, and yellow, which is faint on white."""


@dataclass(frozen=True)
class Look:
    """How a variant is drawn."""

    colour: str
    mark: str
    """A marker of matplotlib: a second cue beside the colour."""


LOOKS = {
    "bsp": Look(QUIET, "o"),
    "pull": Look(BLUE, "s"), "staged": Look(PURPLE, "D"), "push": Look(VERMILION, "o"),
    "push_ce": Look(ORANGE, "^"), "bsp_chunked": Look(SKY, "v"), "relay": Look(PURPLE, "D"),
    "gather": Look(SKY, "v"), "no_wait": Look(ORANGE, "^"), "fused": Look(GREEN, "s"),
    "fused_heads": Look(PURPLE, "D"), "persistent": Look(VERMILION, "o"),
    "persistent_ll": Look(BLUE, "P"),
    "one_shot": Look(VERMILION, "o"), "two_shot": Look(BLUE, "s"), "one_shot_ll": Look(GREEN, "D"),
    "one_shot_lamport": Look(PURPLE, "P"),
    "vendor": Look(SKY, "v"), "vendor_ce": Look(GREEN, "P"),
}  # fmt: skip
SPARE_LOOKS = (Look(VERMILION, "o"), Look(BLUE, "s"), Look(GREEN, "D"), Look(ORANGE, "^"))
"""Looks of variants that other packages bring."""
PIXEL = 1 / 72
"""Inches: a figure's points are pixels of the page."""
WIDE, NARROW = (640, 350), (316, 240)
"""Pixels of a figure of all series, and of one series."""
RATIOS = (
    (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50),
    (0.3, 0.5, 0.7, 1, 1.2, 1.5, 2, 3),
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5),
)
"""Ticks of a ratio axis: of the first list that has a few in its range."""
FEWEST_TICKS = 3
STYLE: dict[Any, Any] = {
    "font.size": 11, "text.color": INK, "axes.labelcolor": QUIET, "axes.edgecolor": RULE,
    "axes.linewidth": 1, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.grid.axis": "y", "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 1,
    "axes.facecolor": "none", "figure.facecolor": PAGE, "xtick.color": RULE, "ytick.color": RULE,
    "xtick.labelcolor": QUIET, "ytick.labelcolor": QUIET, "ytick.major.size": 0,
    "xtick.minor.size": 0, "ytick.minor.size": 0, "xtick.major.size": 3, "svg.fonttype": "none",
    "lines.linewidth": 1.8, "axes.labelsize": 11, "xtick.labelsize": 10.5, "ytick.labelsize": 10.5,
}  # fmt: skip
Ends = dict[str, tuple[float, float]]
"""Where each variant's line ends, for its name."""


def style() -> AbstractContextManager[None]:
    """Everything that the figures change of matplotlib's defaults; enter it around drawing and
    saving."""
    return matplotlib.rc_context(STYLE)


def look(variant: str) -> Look:
    """The variant's colour and mark, the same in every figure."""
    return LOOKS.get(variant) or SPARE_LOOKS[sum(variant.encode()) % len(SPARE_LOOKS)]


def best_beside_bsp(line: Line) -> tuple[str, Speedup] | None:
    """The variant other than BSP with the greatest speed-up over it; None where none has one."""
    ratios = speedups(line)
    best = max(ratios, key=lambda variant: ratios[variant].ratio, default=None)
    return None if best is None else (best, ratios[best])


def speedups(line: Line) -> dict[str, Speedup]:
    """The speed-up over BSP of every other variant that has one."""
    return {name: verdict.ratio for name, verdict in line.verdicts.items() if name != BSP}


def overview_figure(series: Sequence[Series]) -> Figure | None:
    """The best speed-up over BSP against the size: a thin line for each series of one mode, a thick
    one for those of the paper, and a mark for the variant of each point. None without a speed-up.
    """
    drawn = [(each, [(line, best_beside_bsp(line)) for line in each.lines]) for each in series]
    points = {
        each: [(size_of(line.shape), *best) for line, best in curve if best is not None]
        for each, curve in drawn
    }
    points = {each: curve for each, curve in points.items() if curve}
    if not points:
        return None
    figure, ax = _frame(WIDE, left=62, right=114, bottom=44, top=34)
    ends: Ends = {}
    for each, curve in points.items():
        xs, ys = [size for size, _, _ in curve], [ratio.ratio for _, _, ratio in curve]
        ax.plot(xs, ys, color=INK if each.is_papers else RULE, lw=2 if each.is_papers else 0.9,
                zorder=4 if each.is_papers else 2)  # fmt: skip
        if each.is_papers:
            ends[_paper_name(each, list(points))] = xs[-1], ys[-1]
    _mark_variants(ax, points)
    _size_axis(ax, [line for each in points for line in each.lines])
    _ratio_axis(ax, *ax.get_ylim())
    ax.set_ylabel(f"speed-up over BSP, {series[0].lines[0].word}")
    ax.axhline(1, color=QUIET, lw=1.5, zorder=1)
    _names_at_ends(ax, ends | {BSP: (ax.get_xlim()[1], 1.0)}, dict.fromkeys(ends, INK))
    figure.legend(loc="upper left", ncols=6, frameon=False, handletextpad=0.1, columnspacing=1.2,
                  bbox_to_anchor=(0, 1), borderaxespad=0.2, fontsize=11)  # fmt: skip
    return figure


def _mark_variants(ax: Axes, points: Mapping[Series, Sequence[tuple[int, str, Speedup]]]) -> None:
    """A mark for each point, by variant; those of the paper's series are larger."""
    for variant in sorted({name for curve in points.values() for _, name, _ in curve}):
        for is_papers in (True, False):
            marked = [
                (size, ratio.ratio)
                for each, curve in points.items()
                for size, name, ratio in curve
                if name == variant and each.is_papers == is_papers
            ]
            ax.scatter(
                [x for x, _ in marked], [y for _, y in marked], s=46 if is_papers else 21,
                marker=look(variant).mark, color=look(variant).colour, edgecolors=PAGE,
                linewidths=0.6, zorder=5 if is_papers else 3,
                label=variant if is_papers else None,
            )  # fmt: skip


def _paper_name(series: Series, beside: Sequence[Series]) -> str:
    """What tells the paper's series apart: the sizes in which they differ."""
    papers = [each for each in beside if each.is_papers]
    first = papers[0].lines[0].shape.to_dict()
    mine = series.lines[0].shape
    differing = [
        name
        for name in (*mine.coordinates(), *mine.LAYOUT)
        if name != mine.SIZE
        and any(each.lines[0].shape.to_dict()[name] != first[name] for each in papers)
    ]
    shown = ", ".join(equation(name, mine.to_dict()[name]) for name in differing)
    return f"paper, {shown}" if shown else "paper"


def speedup_figure(series: Series, limits: tuple[float, float] | None = None) -> Figure:
    """BSP's time over each variant's, in the same rounds, against the size; a bar is a 95 %
    interval. `limits`: of the y axis, where several figures share them."""
    figure, ax = _frame(NARROW, left=42, right=90, bottom=40, top=8)
    ends: Ends = {}
    by_size = [(size_of(line.shape), speedups(line)) for line in series.lines]
    for variant in variants_of(series.lines):
        points = [(size, ratios[variant]) for size, ratios in by_size if variant in ratios]
        if not points:
            continue
        shown = look(variant)
        xs, ys = [size for size, _ in points], [ratio.ratio for _, ratio in points]
        ax.plot(xs, ys, color=shown.colour, marker=shown.mark, ms=4.5, zorder=3)
        bars = [(size, ratio) for size, ratio in points if ratio.low < ratio.high]
        ax.vlines(
            [size for size, _ in bars], [r.low for _, r in bars], [r.high for _, r in bars],
            color=shown.colour, lw=4, alpha=0.4, zorder=2,
        )  # fmt: skip
        ends[variant] = xs[-1], ys[-1]
    _size_axis(ax, series.lines)
    _ratio_axis(ax, *(limits or ax.get_ylim()))
    ax.axhline(1, color=QUIET, lw=1.5, zorder=1)
    _names_at_ends(ax, ends | {BSP: (size_of(series.lines[-1].shape), 1.0)})
    return figure


def ratio_limits(series: Sequence[Series]) -> tuple[float, float]:
    """The least and the greatest speed-up of some series, and a little room beyond."""
    ratios = [
        ratio.ratio for each in series for line in each.lines for ratio in speedups(line).values()
    ]
    return min(ratios, default=1.0) / 1.1, max(ratios, default=1.0) * 1.1


def time_figure(series: Series) -> Figure:
    """Time of each variant's best config against the size, both logarithmic; a filled mark is the
    fastest at its size."""
    figure, ax = _frame(NARROW, left=50, right=90, bottom=40, top=8)
    ends = _draw_times(ax, series.lines, [size_of(line.shape) for line in series.lines])
    _size_axis(ax, series.lines)
    _time_axis(ax)
    _names_at_ends(ax, ends)
    return figure


def scaling_figure(lines: Sequence[Line]) -> Figure:
    """The same for the lines of one problem on more and more ranks, beside halving with every
    doubling."""
    ordered = sorted(lines, key=_world)
    figure, ax = _frame(NARROW, left=50, right=90, bottom=40, top=8)
    first, xs = ordered[0], [_world(line) for line in ordered]
    fastest_us = first.median_us(first.winner.config.variant)
    ideal = [fastest_us * xs[0] / x for x in xs]
    ax.plot(xs, ideal, color=RULE, ls=(0, (4, 3)), zorder=1)
    ends = _draw_times(ax, ordered, xs)
    _x_axis(ax, xs, "ranks")
    _time_axis(ax)
    _names_at_ends(ax, ends)
    return figure


def _world(line: Line) -> int:
    return int(line.shape.to_dict()["world"])


def _draw_times(ax: Axes, lines: Sequence[Line], xs: Sequence[int]) -> Ends:
    ends: Ends = {}
    for variant in variants_of(lines):
        having = [
            (x, line) for x, line in zip(xs, lines, strict=True) if variant in line.by_variant
        ]
        places, times = [x for x, _ in having], [line.median_us(variant) for _, line in having]
        shown = look(variant)
        fills = [
            shown.colour if line.winner.config.variant == variant else PAGE for _, line in having
        ]
        ax.plot(places, times, color=shown.colour, zorder=2 if variant == BSP else 3)
        ax.scatter(
            places, times, s=22, marker=shown.mark, zorder=4, edgecolors=shown.colour,
            linewidths=1.3, color=fills,
        )  # fmt: skip
        ends[variant] = places[-1], times[-1]
    return ends


def _frame(
    size: tuple[int, int], *, left: float, right: float, bottom: float, top: float
) -> tuple[Figure, Axes]:
    """A figure of so many pixels with one pair of axes, and margins in pixels for what stands
    beside them."""
    width, height = size
    figure = Figure(figsize=(width * PIXEL, height * PIXEL), dpi=72)
    box = left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height
    return figure, figure.add_axes(box)


def _size_axis(ax: Axes, lines: Sequence[Line]) -> None:
    _x_axis(ax, [size_of(line.shape) for line in lines], symbol(lines[0].shape.SIZE))


def _x_axis(ax: Axes, values: Sequence[int], name: str) -> None:
    """A logarithmic axis with as many values named as there is room for."""
    low, high = min(values), max(values)
    span = math.log2(high / low) or 1.0
    ax.set_xscale("log", base=2)
    ax.set_xlim(low / 2 ** (0.04 * span), high * 2 ** (0.04 * span))
    ticks = _ticks(values, span / (15 if _pixels(ax) > 300 else 5))
    ax.set_xticks(ticks, [short(size) for size in ticks])
    ax.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    ax.set_xlabel(name)


def _pixels(ax: Axes) -> float:
    return float(ax.get_window_extent().width)


def _ticks(values: Sequence[int], least: float) -> list[int]:
    """The values that occur most often, each `least` doublings or more away from all others."""
    kept: list[int] = []
    for value, _ in sorted(Counter(values).items(), key=lambda item: (-item[1], -item[0])):
        if all(abs(math.log2(value / other)) >= least for other in kept):
            kept.append(value)
    return sorted(kept)


def short(size: int) -> str:
    """A large power of two as people say it.

    >>> short(8192), short(131_072), short(100_000)
    ('8192', '128K', '100000')
    """
    return f"{size // 1024}K" if size >= 16_384 and size % 1024 == 0 else str(size)


def _names_at_ends(ax: Axes, ends: Ends, colours: Mapping[str, str] | None = None) -> None:
    """A name beside the end of each line, tied to it by a thin one; moved apart where two would
    overlap. Both axes are logarithmic."""
    low, high = (math.log(limit) for limit in ax.get_ylim())
    height = float(ax.get_window_extent().height)
    ordered = sorted(ends.items(), key=lambda end: end[1][1])
    heights = apart(
        [(math.log(y) - low) / (high - low) for _, (_, y) in ordered], 12.5 / height, 1 - 4 / height
    )
    for (name, (x, y)), at in zip(ordered, heights, strict=True):
        colour = (colours or {}).get(name) or look(name).colour
        text = ax.annotate(
            label(name), (x, y), xytext=(1.0, at), textcoords=("axes fraction", "axes fraction"),
            va="center", annotation_clip=False, fontsize=10.5, color=INK,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 1, "shrinkA": 0, "shrinkB": 3,
                        "relpos": (0, 0.5)},
        )  # fmt: skip
        text.set_position((1 + 14 / _pixels(ax), at))


def apart(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Ascending heights moved until each is a gap above the one before: those that are too near
    spread around their mean. None lies above the top where there is room below.

    >>> [round(height, 2) for height in apart([0.2, 0.22, 0.5, 0.98], 0.06, 0.98)]
    [0.18, 0.24, 0.5, 0.98]
    """
    groups: list[list[float]] = []  # of what each height asks for its group's lowest place
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-2]) + gap * len(groups[-2]) > _lowest(groups[-1]):
            upper = groups.pop()
            groups[-1] += [asked - gap * len(groups[-1]) for asked in upper]
    placed = [_lowest(group) + gap * i for group in groups for i in range(len(group))]
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], placed[i + 1] - gap if i + 1 < len(placed) else top)
    return placed


def _lowest(asked: Sequence[float]) -> float:
    return sum(asked) / len(asked)


def _time_axis(ax: Axes) -> None:
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(
        matplotlib.ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 500 else (1.0,))
    )
    ax.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    ax.yaxis.set_major_formatter(
        matplotlib.ticker.FuncFormatter(lambda us, _: f"{us:,.0f}" if us >= 1 else f"{us:g}")
    )


def _ratio_axis(ax: Axes, low: float, high: float) -> None:
    """A logarithmic axis of ratios around the line of BSP, at 1."""
    low, high = min(low, 0.85) / 1.03, max(high, 1.15) * 1.03
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    within = [[tick for tick in ticks if low <= tick <= high] for ticks in RATIOS]
    ticks = next((candidate for candidate in within if len(candidate) >= FEWEST_TICKS), within[-1])
    ax.set_yticks(ticks, [f"{tick:g}{TIMES}" for tick in ticks])
    ax.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    ax.axhspan(1, high, color=BAND, lw=0, zorder=0)
