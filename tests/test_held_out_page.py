"""The page on selection shows how each artifact that ships does on shapes held out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"\| (`(\w+)`(?: with RMSNorm)?, (\d)x (H\d00)(?:, .*?)?) \| .* \|")
LAYOUTS = {
    "fp16, along K": "dtype=fp16,shard=k,b_layout=kn",
    "engines": "dtype=bf16,shard=m,b_layout=nk",
    "with RMSNorm": "norm=rms",
    "pages of 16": "dtype=bf16,output=heads,page_size=16,",
    "pages of 64": "dtype=bf16,output=heads,page_size=64,",
}
"""What a title says, and the layout that it means."""
PLAIN = {
    "all_gather_gemm": LAYOUTS["engines"],
    "all_reduce": "norm=none",
    "flash_decode": "dtype=fp16,output=all",
}
"""What a title without any of them means."""


def shown() -> dict[str, tuple[str, str, str]]:
    """By title the operation, target and row of the page."""
    page = (ROOT / "docs/selection.md").read_text()
    lines = page.partition("\n## Held out\n")[2].splitlines()
    return {
        found[1]: (found[2], f"{found[4].lower()}x{found[3]}", line)
        for line in lines
        if (found := ROW.fullmatch(line))
    }


def figures(title: str, op: str, target: str) -> str:
    """The row that the artifact says; pages count shapes whose answer was timed."""
    document = json.loads((ROOT / f"models/artifacts/{op}__{target}.json").read_text())
    said = [layout for words, layout in LAYOUTS.items() if words in title]
    part = said[0] if said else PLAIN.get(op, "")
    world = f"world={target.partition('x')[2]}"
    mode = "eager" if title.endswith(", eager") else "graph"
    reports: dict[str, Any] = document["held_out"][mode]
    (report,) = (
        each for name, each in reports.items() if part in f"{name}," and world in name.split(",")
    )
    score = report["selector"]
    gain = score["oracle_gain_captured"]
    cells = (
        title, report["shapes"] - score["unknown"],
        *(f"{score[f'{name}_regret']:.3f}" for name in ("geomean", "p95", "worst")),
        "none" if gain < 0.005 else f"{gain:.2f}", score["slower_than_bsp"],
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def test_the_page_has_rows_of_every_machine() -> None:
    assert {target for _, target, _ in shown().values()} == {
        "h200x2", "h200x4", "h200x8", "h100x2",
    }  # fmt: skip
    assert len(shown()) >= 28


@pytest.mark.parametrize("title", shown())
def test_a_row_is_what_the_artifact_says(title: str) -> None:
    op, target, line = shown()[title]
    assert line == figures(title, op, target)
