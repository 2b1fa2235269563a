"""The results as tables of a page: each shape with the winning config as text. Standard library
only."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Any

from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import size_of
from tftune.kernels.core.space import Config
from tftune.report.series import DASH, TIMES, Series, layout_title, symbol
from tftune.report.tables import Line, discounted_text, label, variants_of

MOST_OPEN = 60
"""Shapes of a table that is open."""


def results(op: str, series: Sequence[Series]) -> str:
    """A table for each mode and layout, the paper's shapes apart; the first of all is open
    unless it is long."""
    made: list[str] = []
    for mode, of_mode in groupby(series, key=lambda each: each.mode):
        made.append(f"<h3>Mode {escape(mode)}</h3>")
        for (layout, is_papers), part in groupby(of_mode, _part):
            group = list(part)
            title = layout_title(op, layout) + (", the paper's shapes" if is_papers else "")
            is_open = len(made) == 1 and sum(len(each.lines) for each in group) <= MOST_OPEN
            made.append(folded(title, shapes_of(group), _table(op, group), is_open=is_open))
    return "".join(made)


def _part(series: Series) -> tuple[tuple[int | str, ...], bool]:
    return series.layout, series.is_papers


def shapes_of(series: Sequence[Series]) -> str:
    """How many shapes some series have, in words."""
    count = sum(len(each.lines) for each in series)
    return f"{count} shape{'s' if count != 1 else ''}"


def folded(title: str, count: str, body: str, *, is_open: bool) -> str:
    """A part of a page that opens and closes."""
    word = " open" if is_open else ""
    summary = f"{escape(title)} <span class='quiet'>&middot; {escape(count)}</span>"
    return f"<details{word}><summary>{summary}</summary>\n{body}</details>\n"


def scrolled(table: str, name: str) -> str:
    """A table in a box of its own that scrolls where the page is narrow; the keyboard reaches
    it."""
    named = f"role='region' aria-label='{escape(name, quote=True)}' tabindex='0'"
    return f"<div class='scroll' {named}>{table}</div>\n"


def _table(op: str, series: Sequence[Series]) -> str:
    lines = [line for each in series for line in each.lines]
    variants, with_interval = variants_of(lines), any(has_interval(line) for line in lines)
    word = lines[0].word
    whose = ", the paper's shapes" if series[0].is_papers else ""
    title = f"Mode {series[0].mode}, {layout_title(op, series[0].layout)}{whose}, {word}"
    caption = (
        f"The winner's speed-up over BSP, {word}, and the time of each variant's best config, the "
        "winner's in bold. Below the times: the winning config."
    )
    size = symbol(lines[0].shape.SIZE)
    first = [size, "speed-up", *(["95 % interval"] if with_interval else [])]
    heads = (
        f"<tr>{''.join(_head(name, 2) for name in first)}"
        f"<th scope='colgroup' colspan='{len(variants)}'>time, µs ({word})</th>"
        f"{_head('configs tried', 2)}</tr>\n<tr>{''.join(map(_head, map(label, variants)))}</tr>"
    )
    columns = len(first) + len(variants) + 1
    bodies = "\n".join(_body(each, variants, with_interval, columns) for each in series)
    table = f"<table><thead>{heads}</thead>\n{bodies}</table>"
    return f"<p class='quiet'>{escape(caption)}</p>{scrolled(table, title)}"


def _head(name: str, rows: int = 1) -> str:
    """A column's head; a name of two words may take two lines, at `_` and not at a hyphen."""
    spanned = f" rowspan='{rows}'" if rows > 1 else ""
    text = escape(name).replace("_", "_<wbr>").replace("-", "&#8209;")
    return f"<th scope='col'{spanned}>{text}</th>"


def _body(series: Series, variants: Sequence[str], with_interval: bool, columns: int) -> str:
    head = f"<tr><th scope='rowgroup' colspan='{columns}'>{escape(series.name)}</th></tr>"
    rows = "\n".join(_row(line, variants, with_interval, columns) for line in series.lines)
    return f"<tbody>{head}\n{rows}</tbody>"


def _row(line: Line, variants: Sequence[str], with_interval: bool, columns: int) -> str:
    """A row of numbers, and one of the winning config as text."""
    winner = line.winner.config.variant
    shown = [_cell(ratio_text(line))]
    if with_interval:
        shown.append(_cell(interval_text(line)))
    for variant in variants:
        us = f"{line.median_us(variant):,.1f}" if variant in line.by_variant else DASH
        shown.append(_cell(us, "best" if variant == winner else ""))
    shown.append(_cell(f"{line.evaluations:,}"))
    text = escape(config_text(line.shape.op, line.winner.config))
    return (
        f"<tr><th scope='row' rowspan='2'>{size_of(line.shape)}</th>{''.join(shown)}</tr>"
        f"<tr><td class='config' colspan='{columns - 1}'><code>{text}</code></td></tr>"
    )


def _cell(text: str, name: str = "") -> str:
    return f"<td{f' class={name}' if name else ''}>{escape(text)}</td>"


def has_interval(line: Line) -> bool:
    """Whether rounds were shared with BSP, so that the speed-up has an interval."""
    return line.ratio is not None and line.ratio.low < line.ratio.high


def interval_text(line: Line) -> str:
    """The bounds of the speed-up; nothing where there is no interval."""
    if line.ratio is None or not has_interval(line):
        return ""
    return f"{line.ratio.low:.2f}{DASH}{line.ratio.high:.2f}"


def ratio_text(line: Line) -> str:
    """The speed-up as `1.23x`, whether it is a tie with BSP, and a dash where there is no BSP."""
    if line.ratio is None:
        return DASH
    return f"{'tie, ' if line.ties_with_bsp else ''}{line.ratio.ratio:.2f}{TIMES}" + (
        discounted_text(line, TIMES)
    )


def config_text(op: str, config: Config) -> str:
    """A config without the knobs that have their default.

    >>> config_text("all_gather_gemm", Config("push", block_m=16, num_warps=8))
    'push(block_m=16)'
    """
    knobs = named_knobs(op, config)
    return f"{config.variant}({', '.join(f'{name}={value}' for name, value in knobs)})"


def named_knobs(op: str, config: Config) -> list[tuple[str, Any]]:
    """The knobs of a config that do not have their default, with their values."""
    choices = operation(op).space.variants.get(config.variant, ())
    defaults = {choice.name: choice.default for choice in choices}
    return [(name, value) for name, value in config.knobs if value != defaults.get(name)]
