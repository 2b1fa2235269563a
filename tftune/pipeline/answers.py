"""What artifacts answer for the layers of a model, and what a step gains by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tftune.db.target import Target
from tftune.loading import selector_of
from tftune.models.artifact import Artifact, read_artifact
from tftune.models.selection import Selection
from tftune.pipeline.model_shapes import WAYS, Layer


@dataclass(frozen=True)
class Answer:
    """What runs at one layer, and its times."""

    layer: Layer
    mode: str
    selection: Selection
    bsp_us: float
    now_us: float

    @property
    def gain(self) -> float:
        return self.bsp_us / self.now_us

    def to_dict(self) -> dict[str, Any]:
        chosen = self.selection
        return {
            "layer": self.layer.name, "op": self.layer.shape.op, "shape": str(self.layer.shape),
            "mode": self.mode, "calls": self.layer.calls, "ways": list(self.layer.ways),
            "config": str(chosen.config), "source": chosen.source, "bsp_us": round(self.bsp_us, 2),
            "now_us": round(self.now_us, 2), "gain": round(self.gain, 4),
            "interval": chosen.interval and list(chosen.interval),
        }  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step of the model, run in one way: the calls of all its layers."""

    way: str
    mode: str
    m: int
    calls: int
    bsp_us: float
    now_us: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "way": self.way, "mode": self.mode, "m": self.m, "calls": self.calls,
            "bsp_us": round(self.bsp_us, 1), "now_us": round(self.now_us, 1),
        }  # fmt: skip


def answers(
    layers: Sequence[Layer],
    modes: Sequence[str],
    paths: Sequence[Path],
    folder: Path,
    target: Target,
) -> list[Answer]:
    """What `tftune.bind` of the folder answers for each layer; those without rows of their very
    shape are left out. `paths`: the artifacts in it that were just written."""
    if not paths:
        return []
    known = {artifact.op: artifact for artifact in map(read_artifact, paths)}
    modelled = any(artifact.modelled for artifact in known.values())
    selector = selector_of(folder, target.name, modelled)
    answered = []
    for layer in layers:
        for mode in modes:
            chosen = selector.select(layer.shape, mode)
            now_us = chosen.expected_us
            if now_us is not None and _has(known.get(layer.shape.op), layer, mode):
                low = chosen.interval[0] if chosen.interval else 1.0
                bsp_us = chosen.bsp_us or now_us * low
                answered.append(Answer(layer, mode, chosen, bsp_us, now_us))
    return answered


def _has(artifact: Artifact | None, layer: Layer, mode: str) -> bool:
    """Whether the artifact has rows of this very shape."""
    served = artifact.modes.get(mode) if artifact else None
    model = served.layouts.get(layer.shape.layout) if served else None
    return model is not None and any(known.sizes == layer.shape.sizes_key for known in model.known)


def steps(layers: Sequence[Layer], answered: Sequence[Answer]) -> list[Step]:
    """The steps all of whose layers were measured, by way, mode and M."""
    measured_steps = []
    sizes = sorted({layer.m for layer in layers})
    for way in WAYS:
        for mode in dict.fromkeys(answer.mode for answer in answered):
            for m in sizes:
                wanted = {each for each in layers if way in each.ways and each.m == m}
                known = [a for a in answered if a.mode == mode and a.layer in wanted]
                if wanted and {answer.layer for answer in known} == wanted:
                    measured_steps.append(_step(way, mode, m, known))
    return measured_steps


def _step(way: str, mode: str, m: int, known: Sequence[Answer]) -> Step:
    calls = sum(answer.layer.calls for answer in known)
    bsp_us = sum(answer.layer.calls * answer.bsp_us for answer in known)
    return Step(way, mode, m, calls, bsp_us, sum(a.layer.calls * a.now_us for a in known))
