"""Answers for tools and other languages: many shapes at once, by an artifact that the service
has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tftune.db.trial import shape_of
from tftune.kernels.core.shape import Shape
from tftune.models.selector import Selector
from tftune.serve import artifacts
from tftune.serve.database import Database
from tftune.serve.refusal import Refusal

KEPT = 64
"""Selectors that are kept, each with the answers that it gave."""


@lru_cache(maxsize=KEPT)
def _selector(database: Database, op: str, target: str, digest: str) -> Selector:
    return Selector(artifacts.parsed(database, digest, op, target))


def selector_at(
    database: Database, op: str, target: str, stage: str, build: str | None
) -> Selector:
    """What selects at a stage. Raises Refusal 404 where there is no artifact."""
    digest = artifacts.digest_at(database, op, target, stage, build)
    return _selector(database, op, target, digest)


def stable_selector(database: Database, op: str, target: str) -> Selector | None:
    """What selects at stage stable, if there is an artifact."""
    with database.reading() as connection:
        digest = artifacts.at_stage(connection, op, target, "stable")
    return None if digest is None else _selector(database, op, target, digest)


def parsed_shapes(op: str, texts: Sequence[str], start: int = 0) -> list[Shape]:
    """The shapes of an operation. Raises Refusal 422 with the place of the first that is none;
    places are counted from `start`."""
    shapes = []
    for place, text in enumerate(texts, start):
        try:
            shapes.append(shape_of(op, text))
        except (KeyError, ValueError) as error:
            raise Refusal(422, f"shapes[{place}] is no shape of {op}: {error}") from error
    return shapes
