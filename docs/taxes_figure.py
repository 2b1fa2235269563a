"""Draw docs/taxes-*.svg: from BSP's time to a fused config's, tax by tax, MODELLED for 8x H200.

usage: python docs/taxes_figure.py

No time in these figures was measured. What a figure says is written into its file as the
description, so that a test can hold it against the model.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from tftune.db.target import Target
from tftune.kernels.core.registry import operation
from tftune.studies.taxes.figure import Waterfall, figure
from tftune.studies.taxes.job import case_of

FOLDER = Path(__file__).resolve().parent
TARGET = Target.parse("h200x8")
SHAPES = {
    "all_gather_gemm": "m=512,n=3584,k=8192,world=8",
    "flash_decode": "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=8192,world=8",
    "gemm_all_reduce": "m=1,n=8192,k=28672,world=8",
}


def fall(op: str) -> Waterfall:
    """The modelled taxes of the shape of an operation, of its default configs."""
    case = case_of(operation(op).shape.parse(SHAPES[op]), (), TARGET, None)
    split = case.modelled(TARGET.chip)
    assert split is not None
    return Waterfall.modelled(split)


def says(op: str) -> dict[str, object]:
    """What the figure of an operation says, to a hundredth of a microsecond."""
    waterfall = asdict(fall(op))
    rounded = {name: round(us, 2) for name, us in waterfall["taxes"].items()}
    times = {name: round(waterfall[name], 2) for name in ("bsp_us", "fused_us")}
    return {"shape": SHAPES[op], "word": waterfall["word"], **times, "taxes": rounded}


def draw(op: str, path: Path) -> None:
    import matplotlib

    from tftune.report import figures

    with figures.style(), matplotlib.rc_context({"svg.hashsalt": "tftune"}):
        drawn = figure([fall(op)])
        drawn.savefig(path, metadata={"Date": None, "Description": json.dumps(says(op))})


if __name__ == "__main__":
    for name in SHAPES:
        draw(name, FOLDER / f"taxes-{name}.svg")
