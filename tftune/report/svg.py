"""A matplotlib figure as SVG for a page: text stays text, and greys follow the reader's colour
scheme. Imported only by the report."""

from __future__ import annotations

import re
from html import escape
from io import StringIO

import matplotlib
from matplotlib.figure import Figure

from tftune.report import figures

VARIABLES = {
    figures.INK: "--ink", figures.QUIET: "--quiet", figures.RULE: "--rule",
    figures.FAINT: "--faint", figures.PAGE: "--page", figures.BAND: "--band",
    figures.BLUE: "--blue",
}  # fmt: skip
"""Colours that the page's style sheet sets, by the ones that figures are drawn with."""

NOT_OURS = (
    (r"<metadata>.*?</metadata>", ""),
    (r"<style.*?</style>", ""),  # it would hold for the whole page
    (r"<defs>\s*</defs>", ""),
    (r"<!--.*?-->", ""),
    (r'<g id="[^"]*"', "<g"),  # nothing names it, and other figures have the same
    (r" font-family: [^;]*;", ""),
    (r' transform="rotate\(-0 [^"]*"', ""),
    (r"(\d\.\d)\d+", r"\1"),
    (r"xlink:href", "href"),
    (r"\s*\n\s*", "\n"),
)
"""What matplotlib writes that the page says better, or not at all, and what stands instead."""


def svg(figure: Figure, name: str, description: str) -> str:
    """The figure as an `<svg>` element that a screen reader calls by its description.

    `name`: unlike that of any other figure of the page, since its ids are made of it.
    """
    buffer = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.id": None}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    drawn = buffer.getvalue()
    width, height = (round(inches * 72) for inches in figure.get_size_inches())
    body = drawn[drawn.index(">", drawn.index("<svg")) + 1 :]
    for pattern, instead in NOT_OURS:
        body = re.sub(pattern, instead, body, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, f"var({variable})")
    head = f"role='img' aria-label='{escape(description, quote=True)}'"
    size = f"viewBox='0 0 {width} {height}' style='width:{width}px'"
    return f"<svg {size} {head}>{body.strip()}"
