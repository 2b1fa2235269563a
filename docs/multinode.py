"""Draw docs/multinode.svg, the crossover map: simulated speed-ups of the best push over BSP.

usage: python docs/multinode.py
"""

from __future__ import annotations

import json
from pathlib import Path

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200
from tftune.studies.nodes.compare import fine_and_best, study
from tftune.studies.nodes.topology import NICS, Topology

SIZES = (16, 64, 256, 1024, 2048, 8192)
SKEWS_US = (0, 2, 10, 20, 50)
NODES = (2, 4, 8)


def cells(nodes: int) -> list[list[tuple[float, float]]]:
    """For each skew, for each M: BSP over the best push, and over the best with the finest
    flags."""
    fabric = Topology(nodes, 8, NICS["ndr"])
    lines = []
    for skew_us in SKEWS_US:
        line = []
        for m in SIZES:
            shape = AllGatherGemm(m, 3584, 8192, fabric.world)
            fine, best = fine_and_best(study(shape, "graph", H200, fabric, skew_us))
            line.append((round(best.speedup, 2), round(fine.speedup, 2)))
        lines.append(line)
    return lines


def draw(path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tftune"
    from matplotlib import pyplot

    maps = {f"{nodes} x 8 GPUs": cells(nodes) for nodes in NODES}
    figure, panels = pyplot.subplots(len(maps), 1, figsize=(5.6, 7.0), layout="constrained")
    for axes, (name, lines) in zip(panels, maps.items(), strict=True):
        values = [[best for best, _ in line] for line in lines]
        axes.imshow(values, cmap="PuOr", vmin=0, vmax=2, aspect="auto", origin="lower")
        for row, line in enumerate(lines):
            for column, (best, fine) in enumerate(line):
                text = f"{best:.2f}\n({fine:.2f})"
                dark = abs(best - 1) > 0.7
                colour = "white" if dark else "black"
                axes.text(column, row, text, ha="center", va="center", size=7, color=colour)
        axes.set_xticks(range(len(SIZES)), [str(m) for m in SIZES])
        axes.set_yticks(range(len(SKEWS_US)), [str(us) for us in SKEWS_US])
        axes.set_ylabel("skew (us)")
        axes.set_title(f"{name}, NDR: simulated", fontsize=10)
    panels[-1].set_xlabel("M; BSP / best push, in brackets with the finest flags")
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(maps)})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".svg"))
