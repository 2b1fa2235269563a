"""Draw docs/speedup.svg from the committed rows: BSP's time over the fastest kernel's, by M.

usage: python docs/figure.py

The points are written into the file as its description, so that a test can hold it against the
rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
TARGETS = {
    "h200x8": ("8x H200", "#0072b2"),
    "h200x4": ("4x H200", "#d55e00"),
    "h200x2": ("2x H200", "#009e73"),
}
"""Colours that colour-blind readers tell apart (Okabe and Ito 2008)."""


def points() -> dict[str, list[tuple[int, float]]]:
    """For each machine (M, BSP / winner) of the set `paper`, captured in a graph."""
    import speedup

    from tftune.db.target import Target
    from tftune.kernels.core.registry import operation

    found = {}
    for target in TARGETS:
        paper = set(
            operation("all_gather_gemm").shape_sets["paper"](world=Target.parse(target).gpus)
        )
        rows = speedup.lines(
            [trial for trial in speedup.read(target) if trial.shape in paper], "graph"
        )
        found[target] = sorted(
            (row.shape.to_dict()["m"], round(speedup.speedup(row.winner), 3)) for row in rows
        )
    return found


def draw(path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tftune"
    from matplotlib import pyplot

    found = points()
    figure, axes = pyplot.subplots(figsize=(5.6, 3.2), layout="constrained")
    for target, values in found.items():
        name, colour = TARGETS[target]
        axes.plot(*zip(*values, strict=True), marker="o", markersize=4, color=colour, label=name)
    axes.axhline(1, color="#666666", linewidth=1, linestyle="--")
    axes.annotate(
        "BSP: collective, then GEMM",
        (1, 1),
        xytext=(0, 4),
        textcoords="offset points",
        color="#666666",
        fontsize=9,
    )
    axes.set_xscale("log", base=2)
    shown = [m for m, _ in found["h200x8"]][::2]
    axes.set_xticks(shown, [str(m) for m in shown])
    axes.set_ylim(0.9, 2.2)
    axes.set_xlabel("M (tokens)")
    axes.set_ylabel("BSP / fastest kernel, measured")
    axes.set_title("all_gather_gemm, N = 3584, K = 8192, fp16, A along K, captured", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=3, loc="upper left", fontsize=9)
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(found)})


if __name__ == "__main__":
    draw(ROOT / "docs" / "speedup.svg")
