"""Draw two figures from what is committed: docs/speedup.svg, BSP's time over the fastest kernel's,
by M; and docs/block.svg, where a block's time goes.

usage: python docs/figure.py

The points are written into each file as its description, so that a test can hold it against what
was measured.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from statistics import mean

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

    curves = {}
    for target in TARGETS:
        world = Target.parse(target).gpus
        paper = set(operation("all_gather_gemm").shape_sets["paper"](world=world))
        trials = (trial for trial in speedup.read(target) if trial.shape in paper)
        rows = [(row.shape, row.winner) for row in speedup.lines(trials, "graph")]
        curves[target] = sorted((s.to_dict()["m"], round(speedup.speedup(w), 3)) for s, w in rows)
    return curves


def parts() -> dict[str, dict[str, float]]:
    """By case of `benchmarks/llama.py`, the microseconds of each form, the mean of its runs."""
    log = (ROOT / "db/tuned/llama-70b-h200x4-2026-11-26.log").read_text()
    line = re.compile(r"^RESULT llama 70b (\w+ M=\d+) world=4 (.*)$", re.MULTILINE)
    samples: dict[str, dict[str, list[float]]] = {}
    for case, forms in line.findall(log):
        for form, us in re.findall(r"(\w+)_us=([\d.]+)", forms):
            samples.setdefault(case, {}).setdefault(form, []).append(float(us))
    return {c: {f: round(mean(us), 1) for f, us in forms.items()} for c, forms in samples.items()}


FORMS = {"pass": "with tftune", "compiled": "torch.compile"}


def draw_block(path: Path) -> None:
    """The prompt alone. At a decode step the block as it is, captured, takes as long as with the
    pass, and torch.compile makes it slower."""
    from matplotlib import pyplot

    cases = parts()
    us = cases["prefill M=4096"]
    figure, axes = pyplot.subplots(figsize=(5.6, 1.7), layout="constrained")
    for place, (form, name) in enumerate(FORMS.items()):
        waits, last = max(us[form] - us["alone"], 0), place == len(FORMS) - 1
        axes.barh(place, us["alone"], color="#b9c6cf", label="computing" if last else None)
        axes.barh(place, waits, left=us["alone"], color="#d55e00",
                  label="exchange that is not hidden" if last else None)  # fmt: skip
        text = f" {us[form]:,.0f} us"
        if form == "pass":
            text += f", {us['compiled'] / us[form]:.2f} times as fast"
        axes.annotate(text, (us["alone"] + waits, place), va="center", fontsize=9)
        axes.annotate(f"{name} ", (0, place), va="center", ha="right", fontsize=9)
    axes.set_xlim(0, 1.5 * us["compiled"])
    axes.axis("off")
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, 0), ncols=2,
                handlelength=1, columnspacing=1)  # fmt: skip
    axes.set_title("A block of Llama 3 70B, prompt of 4096, 4x H200, captured", fontsize=10)
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(cases)})


def draw(path: Path) -> None:
    from matplotlib import pyplot

    curves = points()
    figure, axes = pyplot.subplots(figsize=(5.6, 3.2), layout="constrained")
    for target, values in curves.items():
        name, colour = TARGETS[target]
        axes.plot(*zip(*values, strict=True), marker="o", markersize=4, color=colour, label=name)
    axes.axhline(1, color="#666666", linewidth=1, linestyle="--")
    axes.annotate("BSP: collective, then GEMM", (1, 1), xytext=(0, 4),
                  textcoords="offset points", color="#666666", fontsize=9)  # fmt: skip
    axes.set_xscale("log", base=2)
    shown = [m for m, _ in curves["h200x8"]][::2]
    axes.set_xticks(shown, [str(m) for m in shown])
    axes.set_ylim(0.9, 2.2)
    axes.set_xlabel("M (tokens)")
    axes.set_ylabel("BSP / fastest kernel, measured")
    axes.set_title("all_gather_gemm, N = 3584, K = 8192, fp16, A along K, captured", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=3, loc="upper left", fontsize=9)
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(curves)})


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tftune"
    draw(ROOT / "docs" / "speedup.svg")
    draw_block(ROOT / "docs" / "block.svg")
