"""What a search is told before its first trial: the model, rows of other kernels, worlds and
layouts, and a shipped artifact's configs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from math import log2
from typing import TYPE_CHECKING

from tftune.db.target import Target
from tftune.kernels.core.distance import distance
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config

if TYPE_CHECKING:
    from tftune.db.store import Store
    from tftune.models.artifact import Artifact, Layout
    from tftune.models.layout import Answerer
    from tftune.tuner.search.opening import Knowledge

NAMED = 4
"""Configs that an artifact names for a shape."""


def knowledge(
    op: str, target: Target, shapes: Sequence[Shape], store: Store, *, with_model: bool
) -> Knowledge:
    """Of some shapes of one operation on a target. Rows of the database itself count, whatever
    their target, but modelled ones do not. `with_model`: whether the analytic model knows enough of
    the chip."""
    from tftune.cli.bench_factory import former_rows
    from tftune.models.features import pair_vector
    from tftune.models.timeline.simulator import predict
    from tftune.tuner.search.opening import Knowledge

    stored = (trial for trial in store.trials(op=op) if trial.bench == "node")
    former = tuple(
        {trial.id: trial for trial in (*former_rows(op, target, shapes), *stored)}.values()
    )
    return Knowledge(
        predict if with_model else None, pair_vector, former, shipped(artifacts(op, target))
    )


def artifacts(op: str, target: Target) -> list[Artifact]:
    """The shipped artifacts of this target, or else of its relatives: the same chip with another
    number of GPUs, the nearest first."""
    from tftune.models.artifact import SHIPPED, read_artifact

    found = []
    for path in SHIPPED.glob(f"{op}__*.json"):
        try:
            found.append(read_artifact(path))
        except ValueError:  # of another version: a search needs none
            continue
    alike = [
        artifact
        for artifact in found
        if artifact.target.chip.name == target.chip.name and not artifact.modelled
    ]
    ranked = sorted(alike, key=lambda artifact: abs(log2(artifact.target.gpus / target.gpus)))
    return [artifact for artifact in ranked if artifact.target.name == target.name] or ranked


def shipped(found: Sequence[Artifact]) -> Callable[[Shape, str], list[Config]]:
    """What each of these artifacts names for a shape, of the layout that names anything and is most
    like the shape's own; nothing that is BSP."""

    @cache
    def answerer(artifact: Artifact, mode: str, layout: Layout) -> Answerer:
        from tftune.models.layout import Answerer, Terms
        from tftune.models.tree.codegen import compiled

        model = artifact.modes[mode].layouts[layout]
        find = compiled(artifact.op, model.root) if model.root is not None else lambda shape: 0
        return Answerer(model, Terms(artifact.target.chip, lambda config, kernel: None), find)

    def named(artifact: Artifact, shape: Shape, mode: str) -> list[Config]:
        layouts = artifact.modes[mode].layouts if mode in artifact.modes else ()
        moved = {layout: other for layout in layouts if (other := _moved(shape, layout))}
        for layout, other in sorted(moved.items(), key=lambda item: distance(shape, item[1])):
            fused = (
                config
                for config in answerer(artifact, mode, layout).shortlist(other)
                if config.variant != "bsp"
            )
            if listed := list(islice(fused, NAMED)):
                return listed
        return []

    def configs(shape: Shape, mode: str) -> list[Config]:
        return list(
            dict.fromkeys(config for artifact in found for config in named(artifact, shape, mode))
        )

    return configs


def _moved(shape: Shape, layout: Layout) -> Shape | None:
    """The shape in another layout; None where its sizes do not fit there."""
    sizes = {name: size for name, size in shape.to_dict().items() if name not in shape.LAYOUT}
    try:
        return type(shape).from_dict(sizes | shape.named(layout))
    except ValueError:  # a size that so many GPUs cannot share
        return None
