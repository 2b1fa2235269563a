"""The words that a shell completes: operations, targets, named sets, fields of a shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import typer

from tftune.kernels.core.registry import OPS, Operation, operation


def operations(incomplete: str) -> list[str]:
    return _beginning(OPS, incomplete)


def targets(incomplete: str) -> list[str]:
    """Machines of the usual sizes."""
    from tftune.db.target import usual_targets

    return _beginning(usual_targets(), incomplete)


def shape(ctx: typer.Context, incomplete: str) -> list[str]:
    """A field of the operation's shape that is not yet given."""
    known = _operation(ctx)
    return [] if known is None else _fields(known, incomplete)


def shapes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Sets of the operation, or a field of its shape."""
    known = _operation(ctx)
    if known is None:
        return []
    before, _, last = incomplete.rpartition(";")
    head = f"{before};" if before else ""
    sets = [] if "=" in last else _beginning(known.shape_sets, last)
    return [f"{head}{word}" for word in [*sets, *_fields(known, last)]]


def _operation(ctx: typer.Context) -> Operation | None:
    # An option that still lacks its value leaves the arguments before it where they were.
    words = [ctx.params.get("op"), *ctx.args]
    return next((operation(word) for word in words if word in OPS), None)


def _fields(known: Operation, incomplete: str) -> list[str]:
    given, comma, last = incomplete.rpartition(",")
    names = {part.partition("=")[0] for part in given.split(",")}
    free = [f"{field.name}=" for field in fields(known.shape) if field.name not in names]
    return [f"{given}{comma}{word}" for word in _beginning(free, last)]


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
