"""The figures of a page as SVG, with the words that a screen reader says instead, and those that
are written as PNG files too. Imported only by the report."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import groupby

from matplotlib.figure import Figure

from tftune.kernels.core.shape import size_of
from tftune.report import figures
from tftune.report.series import Series, symbol
from tftune.report.svg import svg
from tftune.report.tables import Line, label, variants_of

DOTS_PER_INCH = 180


def overviews(series: Sequence[Series], title: str) -> tuple[dict[str, str], dict[str, bytes]]:
    """The best speed-up against the size: by mode, as SVG and as PNG. Modes without a speed-up are
    left out."""
    drawn, files = {}, {}
    for mode, group in groupby(series, key=lambda each: each.mode):
        of_mode = list(group)
        if (figure := figures.overview_figure(of_mode)) is not None:
            drawn[mode] = svg(figure, f"overview {mode}", _said_of_all(of_mode))
            files[f"speedup_{mode}"] = png(figure, f"{title}, mode {mode}")
    return drawn, files


def speedup_panels(series: Sequence[Series]) -> list[str]:
    """The speed-up of every variant, a figure for each series; all share their y axis."""
    limits = figures.ratio_limits(series)
    return [
        svg(figures.speedup_figure(each, limits), f"speed-up {_id(each)}", _said(each, True))
        for each in series
    ]


def time_panels(series: Sequence[Series]) -> list[str]:
    """The time of every variant, a figure for each series."""
    return [
        svg(figures.time_figure(each), f"time {_id(each)}", _said(each, False)) for each in series
    ]


def scaling_panels(groups: Sequence[Sequence[Line]]) -> list[str]:
    """Strong scaling, a figure for each problem."""
    return [
        svg(figures.scaling_figure(lines), f"scaling {lines[0].mode} {lines[0].shape.problem}",
            f"Time in µs against the number of ranks for {lines[0].shape.problem}, {lines[0].word}")
        for lines in groups
    ]  # fmt: skip


def png(figure: Figure, title: str) -> bytes:
    """The figure as a PNG under a title that says what it shows."""
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 28 * figures.PIXEL)
    share = height / (height + 28 * figures.PIXEL)
    for ax in figure.axes:
        box = ax.get_position()
        ax.set_position((box.x0, box.y0 * share, box.width, box.height * share))
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, share))
    figure.suptitle(title, x=0.01, y=0.985, ha="left", va="top", fontsize=12, fontweight="bold")
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    return buffer.getvalue()


def _id(series: Series) -> str:
    return f"{series.mode} {series.layout} {series.title}"


def _said_of_all(series: Sequence[Series]) -> str:
    best = [figures.best_beside_bsp(line) for each in series for line in each.lines]
    ratios = [pair[1].ratio for pair in best if pair is not None]
    size = symbol(series[0].lines[0].shape.SIZE)
    return (
        f"Best speed-up over BSP against {size}, mode {series[0].mode}, {series[0].lines[0].word}: "
        f"{min(ratios):.2f} to {max(ratios):.2f} times, {len(ratios)} shapes in {len(series)} lines"
    )


def _said(series: Series, ratios: bool) -> str:
    """The first and the last point of each variant's line."""
    lines, size = series.lines, symbol(series.lines[0].shape.SIZE)
    ends = []
    for variant in variants_of(lines):
        having = [line for line in lines if variant in line.by_variant]
        shown = [(size_of(line.shape), _value(line, variant, ratios)) for line in having]
        if shown := [each for each in shown if each[1]]:
            ends.append(f"{label(variant)} {shown[0][1]} at {size} = {shown[0][0]}"
                        f", {shown[-1][1]} at {shown[-1][0]}")  # fmt: skip
    what = "Speed-up over BSP" if ratios else "Time in µs"
    head = f"{what} against {size}, mode {series.mode}, {lines[0].word}, {series.title}"
    return f"{head}: {'; '.join(ends)}"


def _value(line: Line, variant: str, ratios: bool) -> str:
    if not ratios:
        return f"{line.median_us(variant):,.1f}"
    speedup = figures.speedups(line).get(variant)
    return "" if speedup is None else f"{speedup.ratio:.2f}"
