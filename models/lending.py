"""Which layouts another one may answer for: those that run the same code, where rows of both showed
that they agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tftune.db.evidence import BSP
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.models.artifact import Layout, Lent
from tftune.models.dataset import Dataset
from tftune.models.evaluate import percentile
from tftune.models.layout import LayoutModel

LEAST_PAIRS, LEAST_SHAPES = 20, 3
"""Pairs of a shape's sizes and a config, and shapes' sizes among them, that must have been measured
in both layouts."""
MOST_ERROR = 0.08
"""Log speed-up by which 95 % of these pairs may differ at most."""


def lent(
    parts: Mapping[Layout, Dataset], models: Mapping[Layout, LayoutModel]
) -> dict[Layout, Lent]:
    """The layouts without a tree of their own that some layout with one answers for."""
    by_layout = {}
    for layout, part in parts.items():
        if layout in models and models[layout].spans:
            continue
        donors = [
            other
            for other, model in models.items()
            if model.spans and _same_code(part.op, layout, other)
        ]
        agreed = [one for other in donors if (one := _agreement(part, parts[other])) is not None]
        if agreed:
            by_layout[layout] = min(agreed, key=lambda one: one.error)
    return by_layout


def _same_code(op: str, one: Layout, other: Layout) -> bool:
    """Whether two layouts differ in nothing that changes the code path."""
    shape = operation(op).shape
    mine, its = shape.named(one), shape.named(other)
    return mine.keys() == its.keys() and all(
        mine[name] == its[name] or name in shape.SAME_CODE for name in mine
    )


def _agreement(one: Dataset, other: Dataset) -> Lent | None:
    """How far speed-ups of pairs measured in both differ; None where they are too few, or differ
    too much."""
    twins = {shape.sizes_key: shape for shape in other.shapes}
    pairs = [(shape, twins[shape.sizes_key]) for shape in one.shapes if shape.sizes_key in twins]
    errors = [error for shape, twin in pairs for error in _errors(one, shape, other, twin)]
    if len(errors) < LEAST_PAIRS or len(pairs) < LEAST_SHAPES:
        return None
    if (error := percentile(errors, 0.95)) > MOST_ERROR:
        return None
    return Lent(one.shapes[0].layout, other.shapes[0].layout, round(error, 4), len(errors))


def _errors(one: Dataset, shape: Shape, other: Dataset, twin: Shape) -> Iterator[float]:
    """Log differences of the speed-ups of fused configs measured in rounds of the final stage or of
    a matrix at both shapes. They are over the fastest form of BSP among those measured at both: one
    layout may have been measured since another form was added."""
    times, its = one.times_us[shape], other.times_us[twin]
    both = sorted(times.keys() & its.keys())
    if not (forms := [config for config in both if config.variant == BSP]):
        return
    bsp_us, its_bsp_us = min(times[form] for form in forms), min(its[form] for form in forms)
    for config in both:
        if config.variant != BSP and one.is_final(shape, config) and other.is_final(twin, config):
            yield abs(math.log(bsp_us / times[config]) - math.log(its_bsp_us / its[config]))
