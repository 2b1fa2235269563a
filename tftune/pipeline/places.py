"""Shapes and modes to measure, with what is at stake at each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tftune.db.evidence import BSP, Place
from tftune.kernels.core.chip import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import ordering
from tftune.pipeline.bench_factory import world_of
from tftune.pipeline.model_shapes import Layer
from tftune.tuner.search.session import Rows

INNER = 512
"""Columns that an operation without GEMM counts as, where nothing tells its time."""


@dataclass(frozen=True)
class Stake:
    """One shape in one mode, and the microseconds that a step of the model spends on it."""

    place: Place
    us: float

    @property
    def shape(self) -> Shape:
        return self.place[0]


def stakes(layers: Iterable[Layer], modes: Sequence[str], chip: Chip) -> list[Stake]:
    """What to measure for these layers, most time at stake first."""
    calls: dict[Shape, int] = {}
    for layer in layers:
        calls[layer.shape] = calls.get(layer.shape, 0) + layer.calls
    all_stakes = [
        Stake((shape, mode), count * expected_us(shape, mode, chip))
        for shape, count in calls.items()
        for mode in modes
    ]
    return sorted(all_stakes, key=lambda stake: -stake.us)


def expected_us(shape: Shape, mode: str, chip: Chip) -> float:
    """What BSP takes by the analytic model, the strongest form of it; where nothing is known of the
    chip, a number that grows with the work: it only puts shapes in an order."""
    world = world_of(shape)
    if predict := ordering(chip, world):
        return min(predict(shape, form, mode, chip) for form in forms(shape, chip))
    work = 1.0
    for name in shape.coordinates():
        work *= getattr(shape, name)
    return work * (1 if "k" in shape.coordinates() else INNER) / world / 1e9


def forms(shape: Shape, chip: Chip) -> tuple[Config, ...]:
    """BSP's forms at a shape, the likeliest to be the fastest first: it is what results are held
    against."""
    space = operation(shape.op).space
    wanted = (*space.fallbacks(shape, chip), *space.defaults(shape, chip))
    listed = dict.fromkeys(space.complete(config) for config in wanted if config.variant == BSP)
    return tuple(form for form in listed if space.why_invalid(shape, form, chip) is None)


def is_known(rows: Rows, place: Place) -> bool:
    """Whether a place has rows of BSP, and of a fused config, of the code that is installed."""
    fused = any(config.variant != BSP for config in rows.searched(place))
    return rows.bsp(place) is not None and fused


def unknown(wanted: Sequence[Stake], rows: Mapping[str, Rows]) -> list[Stake]:
    """The places that are still to be measured."""
    return [stake for stake in wanted if not is_known(rows[stake.shape.op], stake.place)]
