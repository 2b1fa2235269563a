"""Draw the diagrams of the pages, docs/diagrams/*.svg: `python docs/draw.py`.

They are schematic: no length in them is a measured time. What a diagram says is written into its
file as the description, so that a test can hold it against this script. They are narrow, so that
they can be read on a telephone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

FOLDER = Path(__file__).resolve().parent / "diagrams"
GREY, BLUE, ORANGE, GREEN, PURPLE = "#e6e6e6", "#a6cee8", "#f5c396", "#a8dcc8", "#e3bcd3"
"""Tints of colours that colour-blind readers tell apart (Okabe and Ito 2008)."""

TAXES = {
    "BSP": [
        ("launch", 0.5, GREY), ("exchange", 3.0, ORANGE), ("wait", 1.1, PURPLE),
        ("launch", 0.5, GREY), ("reload", 0.9, GREEN), ("GEMM", 4.0, BLUE),
    ],
    "fused": [("launch", 0.5, GREY), ("GEMM, tile by tile,\nas chunks of A arrive", 4.9, BLUE)],
}  # fmt: skip
"""Width of each part of a call, left to right, without a unit."""

FLOW = [
    ("search", "check each config on all ranks,\nthen time it beside BSP", ORANGE),
    ("rows", "SQLite: every trial, every sample,\nfailures too", GREY),
    ("train, export", "time formulas and a small tree,\njudged on shapes held out", GREEN),
    ("artifact", "one JSON file: answers, evidence,\nthe kernels they hold for", GREY),
    ("select_kernel(shape)", "in the server: standard library\nonly, no measuring", BLUE),
    ("tftune.ops", "launches the fused kernel, or BSP", BLUE),
]

FLAGS = {
    "rank 0": ["store chunk 0", "fence, set flag 0", "store chunk 1", "fence, set flag 1"],
    "rank 1": ["wait for flag 0", "tiles of chunk 0", "wait for flag 1", "tiles of chunk 1"],
}

SELECTING = [
    ("Is there an artifact of this machine,\nlayout, kernel source and Triton?", "no",
     "BSP: fallback"),
    ("Was this very shape measured?", "yes", "its fastest config: measured"),
    ("Are smaller and larger sizes\nof the family measured?", "yes", "between them: interpolated"),
    ("Does the tree name configs\nthat are surely faster?", "yes", "one of them: interpolated"),
    ("Else", "", "BSP"),
]  # fmt: skip

SAYS: dict[str, Any] = {"taxes": TAXES, "flow": FLOW, "flags": FLAGS, "selecting": SELECTING}


def sheet(width: float, height: float) -> tuple[Any, Axes]:
    """An empty drawing, in inches; its coordinates are inches, too."""
    figure = pyplot.figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, width: float, height: float, colour: str) -> None:
    style = "round,pad=0,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, fc=colour, ec="#555555"))


def label(axes: Axes, x: float, y: float, text: str, size: float = 9.5, **style: Any) -> None:
    axes.text(x, y, text, size=size, **{"ha": "center", "va": "center", **style})


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#333333"})


def taxes() -> Any:
    figure, axes = sheet(5.0, 2.6)
    heads = {"BSP": "BSP: one kernel after another", "fused": "fused: one kernel"}
    for row, (name, parts) in enumerate(TAXES.items()):
        x, y = 0.1, 1.55 - 1.1 * row
        label(axes, x, y + 0.7, heads[name], 10, ha="left", weight="bold")
        for part, width, colour in parts:
            box(axes, x, y, 0.47 * width, 0.5, colour)
            if part != "launch":
                label(axes, x + 0.235 * width, y + 0.25, part, 8.5)
            x += 0.47 * width + 0.02
    box(axes, 0.1, 0.08, 0.2, 0.16, GREY)
    label(axes, 0.36, 0.15, "launch", 8.5, ha="left")
    label(axes, 4.9, 0.15, "schematic, not measured", 8, ha="right", color="#555555")
    return figure


def flow() -> Any:
    figure, axes = sheet(4.6, 0.82 * len(FLOW) + 0.1)
    for step, (name, meaning, colour) in enumerate(FLOW):
        y = 0.82 * (len(FLOW) - 1 - step) + 0.1
        box(axes, 0.1, y, 1.65, 0.55, colour)
        label(axes, 0.925, y + 0.275, name, 10, weight="bold")
        label(axes, 1.9, y + 0.275, meaning, 9.5, ha="left")
        if step:
            arrow(axes, (0.925, y + 0.82), (0.925, y + 0.55))
    return figure


def flags() -> Any:
    figure, axes = sheet(5.0, 3.7)
    for column, (rank, steps) in enumerate(FLAGS.items()):
        x = 0.1 + 2.75 * column
        label(axes, x + 1.03, 3.5, f"a program on {rank}", 10, weight="bold")
        for step, text in enumerate(steps):
            y = 2.9 - 0.55 * step - 0.72 * column
            signal = "flag" in text
            box(axes, x, y, 2.06, 0.42, ORANGE if signal else BLUE)
            label(axes, x + 1.03, y + 0.21, text, 9.5)
            if column == 0 and signal:
                arrow(axes, (x + 2.06, y + 0.21), (x + 2.75, y + 0.04))
    label(axes, 2.5, 0.1, "chunks and flags lie in the memory of rank 1", 9, color="#555555")
    return figure


def selecting() -> Any:
    figure, axes = sheet(5.0, 0.78 * len(SELECTING) + 0.1)
    for step, (question, word, answer) in enumerate(SELECTING):
        y = 0.78 * (len(SELECTING) - 1 - step) + 0.1
        last = not word
        box(axes, 0.05, y, 2.55, 0.55, GREY)
        label(axes, 1.325, y + 0.275, question, 9)
        box(axes, 3.1, y, 1.85, 0.55, ORANGE if answer.startswith("BSP") else BLUE)
        label(axes, 4.025, y + 0.275, answer.replace(": ", ":\n"), 9)
        arrow(axes, (2.6, y + 0.275), (3.1, y + 0.275))
        label(axes, 2.83, y + 0.38, word, 8.5)
        if not last:
            arrow(axes, (1.325, y), (1.325, y - 0.23))
            label(axes, 1.5, y - 0.11, "yes" if word == "no" else "no", 8.5)
    return figure


def draw(folder: Path = FOLDER) -> None:
    matplotlib.rcParams["svg.hashsalt"] = "tftune"
    for make in (taxes, flow, flags, selecting):
        name, figure = make.__name__, make()
        description = {"Date": None, "Description": json.dumps(SAYS[name])}
        figure.savefig(folder / f"{name}.svg", metadata=description)
        pyplot.close(figure)


if __name__ == "__main__":
    draw()
