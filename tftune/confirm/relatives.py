"""What artifacts of related machines name for a shape: proposals, which never serve unmeasured.

A relative is a machine whose GPUs have the same architecture (H100, H200 and GH200), with any
number of GPUs, any Triton and any layout of the same operation.
"""

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
    from tftune.models.answerer import Answerer
    from tftune.models.artifact import Artifact, Layout

NAMED = 4
"""Configs that one artifact names for a shape."""


def artifacts(op: str, target: Target) -> list[Artifact]:
    """The measured artifacts that ship for an operation on this target or its relatives, the
    nearest machine first."""
    from tftune.models.artifact import SHIPPED, read_artifact

    readable = []
    for path in sorted(SHIPPED.glob(f"{op}__*.json")):
        try:
            readable.append(read_artifact(path))
        except ValueError:  # of another version: proposals are not needed
            continue
    related = (one for one in readable if one.target.chip.arch == target.chip.arch)

    def remoteness(artifact: Artifact) -> tuple[bool, float]:
        """Another chip is further than another number of GPUs."""
        other = artifact.target
        return other.chip.name != target.chip.name, abs(log2(other.gpus / target.gpus))

    return sorted((one for one in related if not one.modelled), key=remoteness)


def proposals(found: Sequence[Artifact]) -> Callable[[Shape, str], list[Config]]:
    """A function of shape and mode: what each of these artifacts names for the shape, by its layout
    most like the shape's own; nothing that is BSP."""

    @cache
    def answerer(artifact: Artifact, mode: str, layout: Layout) -> Answerer:
        from tftune.models.answerer import Answerer, Terms
        from tftune.models.tree.codegen import compiled

        model = artifact.modes[mode].layouts[layout]
        find = compiled(artifact.op, model.root) if model.root is not None else lambda shape: 0
        return Answerer(model, Terms(artifact.target.chip, lambda config, kernel: None), find)

    def named(artifact: Artifact, shape: Shape, mode: str) -> list[Config]:
        layouts = artifact.modes[mode].layouts if mode in artifact.modes else ()
        moved = {layout: other for layout in layouts if (other := _moved(shape, layout))}
        for layout, other in sorted(moved.items(), key=lambda item: distance(shape, item[1])):
            shortlist = answerer(artifact, mode, layout).shortlist(other)
            fused = (config for config in shortlist if config.variant != "bsp")
            if listed := list(islice(fused, NAMED)):
                return listed
        return []

    def configs(shape: Shape, mode: str) -> list[Config]:
        every = (config for artifact in found for config in named(artifact, shape, mode))
        return list(dict.fromkeys(every))

    return configs


def _moved(shape: Shape, layout: Layout) -> Shape | None:
    """The shape in another layout; None where its sizes do not fit there."""
    sizes = {name: size for name, size in shape.to_dict().items() if name not in shape.LAYOUT}
    try:
        return type(shape).from_dict(sizes | shape.named(layout))
    except ValueError:  # a size that so many GPUs cannot share
        return None
