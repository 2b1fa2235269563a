"""Which layouts another one may answer for: those that run the same code, where rows of both showed
that they agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
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
    found = {}
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
            found[layout] = min(agreed, key=lambda one: one.error)
    return found


def _same_code(op: str, one: Layout, other: Layout) -> bool:
    """Whether two layouts differ in nothing that changes the code path."""
    shape = operation(op).shape
    return all(
        a == b or name in shape.SAME_CODE
        for name, a, b in zip(shape.LAYOUT, one, other, strict=True)
    )


def _agreement(one: Dataset, other: Dataset) -> Lent | None:
    """How far speed-ups of pairs measured in both differ; None where they are too few, or differ
    too much."""
    twins = {shape.sizes_key: shape for shape in other.shapes}
    errors = [
        abs(_log_speedup(one, shape, config) - _log_speedup(other, twins[shape.sizes_key], config))
        for shape in one.shapes if shape.sizes_key in twins
        for config in _shared(one, shape, other, twins[shape.sizes_key])
    ]  # fmt: skip
    shapes = sum(shape.sizes_key in twins for shape in one.shapes)
    if (
        len(errors) < LEAST_PAIRS
        or shapes < LEAST_SHAPES
        or (error := percentile(errors, 0.95)) > MOST_ERROR
    ):
        return None
    return Lent(one.shapes[0].layout, other.shapes[0].layout, round(error, 4), len(errors))


def _shared(one: Dataset, shape: Shape, other: Dataset, twin: Shape) -> Iterable[Config]:
    """Fused configs measured in rounds of the final stage or of a matrix at both shapes."""
    both = one.times_us[shape].keys() & other.times_us[twin].keys()
    return sorted(
        c for c in both if c.variant != "bsp" and one.is_final(shape, c) and other.is_final(twin, c)
    )


def _log_speedup(data: Dataset, shape: Shape, config: Config) -> float:
    return math.log(data.bsp_us(shape) / data.times_us[shape][config])
