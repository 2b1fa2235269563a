"""Committed rows of `tftune audit`: compressed, since only tests read them."""

from __future__ import annotations

import lzma
from pathlib import Path

from tftune.db.audit import Audit

FOLDER = Path(__file__).resolve().parent.parent / "db/audits/mi300x8"


def audited(op: str) -> list[Audit]:
    """Every kernel of an operation that Triton 3.7.1 compiled for gfx942."""
    return _rows(f"{op}-gfx942")


def spilled_elsewhere() -> list[Audit]:
    """Kernels that spill by Triton 3.6.0, or on gfx950."""
    return _rows("spilled-elsewhere")


def _rows(name: str) -> list[Audit]:
    text = lzma.decompress((FOLDER / f"{name}.jsonl.xz").read_bytes()).decode()
    return [Audit.from_json(line) for line in text.splitlines()]
