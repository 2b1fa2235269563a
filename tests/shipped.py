"""The artifacts that come with tftune."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tftune.models.artifact import SHIPPED

PATHS = sorted(SHIPPED.glob("*.json"))


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def each(modelled: bool | None = None) -> list[Any]:
    """Every shipped artifact as a parameter of a test; or those whose times are modelled, or
    measured."""
    kept = [path for path in PATHS if modelled is None or document(path)["modelled"] == modelled]
    return [pytest.param(path, id=path.stem) for path in kept]
