"""What artifacts answer for the layers of a model, and what a step gains by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tftune.db.target import Machine
from tftune.db.trial import Interval
from tftune.models.artifact import read_artifact
from tftune.models.selector import Selector
from tftune.pipeline.model_shapes import WAYS, Layer


@dataclass(frozen=True)
class Answer:
    """What runs at one layer, and its times."""

    layer: Layer
    mode: str
    config: str
    variant: str
    source: str
    bsp_us: float
    now_us: float
    interval: Interval | None
    """Of BSP's time over it; None where it is BSP."""

    @property
    def gain(self) -> float:
        return self.bsp_us / self.now_us

    def to_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer.name, "op": self.layer.shape.op, "shape": str(self.layer.shape),
            "mode": self.mode, "calls": self.layer.calls, "ways": list(self.layer.ways),
            "config": self.config, "source": self.source, "bsp_us": round(self.bsp_us, 2),
            "now_us": round(self.now_us, 2), "gain": round(self.gain, 4),
            "interval": None if self.interval is None else list(self.interval),
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


def selector_of(paths: Iterable[Path], modelled: bool, machine: Machine | None) -> Selector:
    """What answers by these artifacts on a machine, as `tftune.bind` would there."""
    found = [read_artifact(path) for path in paths]
    return Selector(*found, allow_modelled=modelled, machine=machine)


def answers(layers: Sequence[Layer], modes: Sequence[str], selector: Selector) -> list[Answer]:
    """What rows of its very shape answer for each layer, those without such rows left out."""
    found = []
    for layer in layers:
        for mode in modes:
            chosen = selector.select(layer.shape, mode) if _has(selector, layer, mode) else None
            if chosen is None or chosen.expected_us is None:
                continue
            low = chosen.interval[0] if chosen.interval else 1.0
            now_us = chosen.expected_us
            named = str(chosen.config), chosen.config.variant, chosen.source
            times = chosen.bsp_us or now_us * low, now_us
            found.append(Answer(layer, mode, *named, *times, chosen.interval))
    return found


def _has(selector: Selector, layer: Layer, mode: str) -> bool:
    """Whether the artifact has rows of this very shape."""
    shape = layer.shape
    artifact = selector.artifacts.get(shape.op)
    served = artifact.modes.get(mode) if artifact else None
    model = served.layouts.get(shape.layout) if served else None
    return model is not None and any(known.sizes == shape.sizes_key for known in model.known)


def steps(layers: Sequence[Layer], answered: Sequence[Answer]) -> list[Step]:
    """The steps all of whose layers were measured, by way, mode and M."""
    found = []
    sizes = sorted({layer.shape.to_dict()["m"] for layer in layers})
    for way in WAYS:
        for mode in dict.fromkeys(answer.mode for answer in answered):
            for m in sizes:
                wanted = {each for each in layers if way in each.ways and _m(each) == m}
                known = [a for a in answered if a.mode == mode and a.layer in wanted]
                if wanted and {answer.layer for answer in known} == wanted:
                    found.append(_step(way, mode, m, known))
    return found


def _m(layer: Layer) -> int:
    return int(layer.shape.to_dict()["m"])


def _step(way: str, mode: str, m: int, known: Sequence[Answer]) -> Step:
    calls = sum(answer.layer.calls for answer in known)
    bsp_us = sum(answer.layer.calls * answer.bsp_us for answer in known)
    return Step(way, mode, m, calls, bsp_us, sum(a.layer.calls * a.now_us for a in known))
