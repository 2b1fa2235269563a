"""The artifacts that come with tftune; those of an older schema are skipped until they are exported
again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tftune.models.artifact import SCHEMA, SHIPPED

PATHS = sorted(SHIPPED.glob("*.json"))


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _old(path: Path) -> pytest.MarkDecorator:
    found = document(path)["schema"] if path.exists() else None
    return pytest.mark.skipif(
        found != SCHEMA,
        reason=f"{path.name} is of schema {found}, and this tftune reads {SCHEMA}: export it again",
    )


def each(modelled: bool | None = None) -> list[Any]:
    """Every shipped artifact as a parameter of a test; or those whose times are modelled, or
    measured."""
    kept = [path for path in PATHS if modelled is None or document(path)["modelled"] == modelled]
    return [pytest.param(path, marks=_old(path), id=path.stem) for path in kept]


def needs(op: str, target: str) -> pytest.MarkDecorator:
    """A test that asks this artifact."""
    return _old(SHIPPED / f"{op}__{target}.json")
