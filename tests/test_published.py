"""benchmarks/published.py: errors by hand, and the table in docs/mi300x.md is what it prints."""

from __future__ import annotations

from pathlib import Path

import published
import pytest


def test_an_error_is_zero_within_the_published_range() -> None:
    assert published.Figure("a", 1.0, 2.0, 1.5, "s").error == 0
    assert published.Figure("a", 1.0, 2.0, 2.5, "s").error == pytest.approx(0.25)
    assert published.Figure("a", 1.0, 2.0, 0.9, "s").cells() == (
        "a",
        "1 to 2 x",
        "0.9 x",
        "-10%",
        "s",
    )


def test_links_add_up_over_peers() -> None:
    assert [published.gathered_gb_s(world) for world in (2, 4, 8)] == pytest.approx(
        [47, 141, 325], rel=0.03
    )


def test_the_page_has_the_printed_table(root: Path) -> None:
    missing = [
        line for line in published.table() if line not in (root / "docs/mi300x.md").read_text()
    ]
    assert missing == [], (
        "run `python benchmarks/published.py` and put its table into docs/mi300x.md"
    )
