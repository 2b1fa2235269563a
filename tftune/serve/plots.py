"""Plots of the service's pages as SVG without styles of its own: the page's policy allows none, and
its style sheet colours them for both schemes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tftune.kernels.core.shape import size_of
from tftune.report.series import DASH, TIMES, Series, symbol
from tftune.report.tables import BENCH_WORDS, Line, discounted_text, label

WIDTH, HEIGHT = 316, 190
LEFT, RIGHT, TOP, BOTTOM = 38, 12, 12, 34
"""Margins of the frame, in units of the drawing, for what is written beside it."""
STEPS = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Between two marks of the vertical axis."""
MARKS = 5
"""Lines across a plot at most."""
DIGIT, GAP = 6.2, 6
"""Width of a digit, and what is between two sizes that are both written, in units."""


def speedups(series: Series) -> str:
    """The speed-up of each size's fastest config over BSP, with its interval; a hollow mark where
    BSP is the fastest. "" where no size has a speed-up."""
    lines = [line for line in series.lines if line.ratio is not None]
    if not lines:
        return ""
    scale = _Scale(lines)
    parts = [*_frame(scale, lines), *_line(scale, lines), *map(scale.mark, lines)]
    word = BENCH_WORDS[lines[0].winner.bench]
    said = ", ".join(f"{size_of(line.shape)}: {_ratio(line):.2f}" for line in lines)
    name = f"Speed-up over BSP, {word}, by {symbol(lines[0].shape.SIZE)}: {said}"
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}' role='img' "
        f"aria-label='{escape(name, quote=True)}'>{''.join(parts)}</svg>"
    )


def _ratio(line: Line) -> float:
    return line.ratio.ratio if line.ratio is not None else math.nan


class _Scale:
    """Where values stand in the frame: sizes by their logarithm, speed-ups from 0 or a bit below
    the least."""

    def __init__(self, lines: Sequence[Line]) -> None:
        sizes = [math.log2(size_of(line.shape)) for line in lines]
        bounds = [bound for line in lines for bound in (line.ratio or (1.0, 1.0, 1.0))]
        self.least, self.most = min(sizes), max(sizes)
        span = max(max(bounds), 1.1) - min(*bounds, 0.9)
        self.step = next((step for step in STEPS if span / step <= MARKS), span / MARKS)
        self.low = math.floor(min(*bounds, 0.95) / self.step) * self.step
        self.high = math.ceil(max(*bounds, 1.05) / self.step) * self.step

    def x(self, line: Line) -> float:
        width = WIDTH - LEFT - RIGHT
        if self.most == self.least:
            return LEFT + width / 2
        share = (math.log2(size_of(line.shape)) - self.least) / (self.most - self.least)
        return round(LEFT + 8 + share * (width - 16), 1)

    def y(self, ratio: float) -> float:
        share = (ratio - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    def mark(self, line: Line) -> str:
        """A mark with its interval; a browser shows the title to who points at it."""
        assert line.ratio is not None
        x, variant = self.x(line), label(line.winner.config.variant)
        low, high = self.y(line.ratio.low), self.y(line.ratio.high)
        said = f"{variant}, {line.ratio.ratio:.2f}{TIMES}"
        if line.ratio.low < line.ratio.high:
            said += f" ({line.ratio.low:.2f}{DASH}{line.ratio.high:.2f})"
        said += discounted_text(line, TIMES)
        kind = "won" if line.fused_wins else "lost"
        bar = f"<path class='bar' d='M{x} {low}V{high}'/>" if low != high else ""
        text = escape(f"{symbol(line.shape.SIZE)} = {size_of(line.shape)}: {said}")
        return (
            f"<g>{bar}<circle class='{kind}' cx='{x}' cy='{self.y(line.ratio.ratio)}' r='3.2'>"
            f"<title>{text}</title></circle></g>"
        )


def _frame(scale: _Scale, lines: Sequence[Line]) -> list[str]:
    """The rules across, BSP's among them, and what is written at both axes."""
    right, parts = WIDTH - RIGHT, []
    for number in range(round((scale.high - scale.low) / scale.step) + 1):
        value = scale.low + number * scale.step
        parts.append(f"<path class='rule' d='M{LEFT} {scale.y(value)}H{right}'/>")
        shown = f"{value:.2f}".rstrip("0").rstrip(".")
        parts.append(
            f"<text x='{LEFT - 6}' y='{scale.y(value) + 3.5}' text-anchor='end'>{shown}</text>"
        )
    parts.append(f"<path class='bsp' d='M{LEFT} {scale.y(1.0)}H{right}'/>")
    last = -math.inf
    for line in lines:
        text = str(size_of(line.shape))
        half = DIGIT * len(text) / 2
        if (x := scale.x(line)) - half >= last + GAP:
            at = f"x='{x}' y='{HEIGHT - BOTTOM + 14}' text-anchor='middle'"
            parts.append(f"<text {at}>{text}</text>")
            last = x + half
    title = escape(symbol(lines[0].shape.SIZE))
    middle = (LEFT + right) / 2
    return [*parts, f"<text x='{middle}' y='{HEIGHT - 4}' text-anchor='middle'>{title}</text>"]


def _line(scale: _Scale, lines: Sequence[Line]) -> list[str]:
    points = " ".join(f"{scale.x(line)},{scale.y(_ratio(line))}" for line in lines)
    return [f"<polyline class='curve' points='{points}'/>"] if len(lines) > 1 else []
