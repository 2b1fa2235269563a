"""What a search is told before its first trial: the model, rows of other kernels, worlds and layouts, and a shipped artifact's configs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import log2
from typing import TYPE_CHECKING

from tftune.db.target import Target
from tftune.kernels.distance import distance
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config

if TYPE_CHECKING:
    from tftune.db.store import Store
    from tftune.models.artifact import Artifact, Layout
    from tftune.models.layout import Answerer
    from tftune.tuner.opening import Knowledge

NAMED = 4
"""Configs that an artifact names for a shape."""


def knowledge(op: str, target: Target, shapes: Sequence[Shape], store: Store, *, with_model: bool) -> Knowledge:
    """Of some shapes of one operation on a target. Rows of the database itself count, whatever their target, but modelled ones do not.
    `with_model`: whether the analytic model knows enough of the chip."""
    from tftune.machine import former_rows
    from tftune.models.features import pair_vector
    from tftune.models.timeline import predict
    from tftune.tuner.opening import Knowledge

    stored = (trial for trial in store.trials(op=op) if trial.bench == "node")
    former = tuple({trial.id: trial for trial in (*former_rows(op, target, shapes), *stored)}.values())
    return Knowledge(predict if with_model else None, pair_vector, former, shipped(artifacts(op, target)))


def artifacts(op: str, target: Target) -> list[Artifact]:
    """The shipped artifacts of this target, or else of its relatives: the same chip with another number of GPUs, the nearest first."""
    from tftune.models.artifact import SHIPPED, read_artifact

    found = []
    for path in SHIPPED.glob(f"{op}__*.json"):
        try:
            found.append(read_artifact(path))
        except ValueError:  # of another version: a search needs none
            continue
    alike = [artifact for artifact in found if artifact.target.chip.name == target.chip.name and not artifact.modelled]
    ranked = sorted(alike, key=lambda artifact: abs(log2(artifact.target.gpus / target.gpus)))
    return [artifact for artifact in ranked if artifact.target.name == target.name] or ranked


def shipped(found: Sequence[Artifact]) -> Callable[[Shape, str], list[Config]]:
    """What each of these artifacts names for a shape, of the layout that is most like the shape's own; nothing that is BSP."""
    answerers: dict[tuple[Layout, str], list[Answerer]] = {}

    def configs(shape: Shape, mode: str) -> list[Config]:
        key = shape.layout, mode
        if key not in answerers:
            answerers[key] = [answerer for artifact in found for answerer in _likest(artifact, shape, mode)]
        return list(dict.fromkeys(config for answerer in answerers[key] for config in _named(answerer, shape)))

    return configs


def _likest(artifact: Artifact, shape: Shape, mode: str) -> Iterator[Answerer]:
    """What answers for the layout most like the shape's own, if any does."""
    from tftune.models.layout import Answerer, Terms
    from tftune.models.plain import compiled

    models = artifact.modes[mode].layouts.values() if mode in artifact.modes else ()
    near = {model: distance(shape, other) for model in models if (other := _moved(shape, model.layout))}
    for model in sorted(near, key=near.__getitem__)[:1]:
        find = compiled(shape.op, model.root) if model.root is not None else lambda shape: 0
        yield Answerer(model, Terms(artifact.target.chip, lambda config, kernel: None), find)


def _moved(shape: Shape, layout: Layout) -> Shape | None:
    """The shape in another layout; None where its sizes do not fit there."""
    try:
        return type(shape).from_dict(shape.to_dict() | dict(zip(shape.LAYOUT, layout, strict=True)))
    except ValueError:  # a size that so many GPUs cannot share
        return None


def _named(answerer: Answerer, shape: Shape) -> Iterator[Config]:
    other = _moved(shape, answerer.model.layout)
    fused = (config for config in answerer.shortlist(other) if config.variant != "bsp") if other else iter(())
    return islice(fused, NAMED)
