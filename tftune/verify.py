"""Do an artifact's times hold here and now? A few answers are measured again; where they hold, the
artifact says with which build."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tftune.db.evidence import paired_speedup
from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact
from tftune.models.layout import Known, LayoutModel
from tftune.report.tables import ratio_text
from tftune.tuner.bench.benches import Bench

BUDGET_S = 45.0
"""No sample is begun after this long, so that all of it takes less than a minute."""


@dataclass(frozen=True)
class Sample:
    """A measured shape that a fused config answers."""

    mode: str
    shape: Shape
    config: Config
    bsp: Config
    """BSP's fastest form there."""
    speedup_low: float
    """The lower bound of the speed-up over it."""


@dataclass(frozen=True)
class Check:
    """What a sample came to."""

    sample: Sample
    outcome: Outcome

    @property
    def holds(self) -> bool:
        """Whether the config still is no slower than BSP."""
        return isinstance(self.outcome, Measurement) and (self.outcome.speedup or 0.0) >= 1

    @property
    def verdict(self) -> str:
        """What changed since the artifact was made, in words."""
        if isinstance(self.outcome, Failure):
            return f"failed ({self.outcome.kind}): {self.outcome.text}"
        promised, (_, high) = self.sample.speedup_low, self.outcome.speedup_interval or (0.0, 0.0)
        if not self.holds:
            return "slower than BSP"
        return f"slower than the {promised:.2f} it was trained on" if high < promised else "holds"

    def row(self) -> list[str]:
        """The cells of a table."""
        sample, outcome = self.sample, self.outcome
        ratio = paired_speedup(outcome) if isinstance(outcome, Measurement) else None
        which = [str(sample.shape), sample.mode, sample.config.variant]
        return [*which, f"{sample.speedup_low:.2f}x", ratio_text(ratio), self.verdict]

    def to_dict(self) -> dict[str, Any]:
        outcome = self.outcome
        return {
            "shape": str(self.sample.shape),
            "mode": self.sample.mode,
            "config": self.sample.config.to_dict(),
            "holds": self.holds,
            "promised": self.sample.speedup_low,
            "speedup": outcome.speedup if isinstance(outcome, Measurement) else None,
            "verdict": self.verdict,
        }


HEAD = ["shape", "mode", "variant", "at least", "over BSP now", "verdict"]


def measured_shapes(artifact: Artifact, mode: str) -> Iterator[Shape]:
    """The shapes whose times the artifact has in one mode."""
    for model in artifact.modes[mode].layouts.values() if mode in artifact.modes else ():
        for known in model.known:
            yield _shape(model, known)


def _shape(model: LayoutModel, known: Known) -> Shape:
    shape = operation(model.op).shape
    sizes = dict(zip(shape.coordinates(), known.sizes, strict=True))
    return shape.from_dict(shape.named(model.layout) | sizes)


def samples(artifact: Artifact, count: int) -> list[Sample]:
    """So many measured shapes that a fused config answers, by turns from each mode and layout and
    spread over its sizes; those of a kernel that has changed are left out.

    Raises ValueError where none is left: then there is nothing that measuring a few could show.
    """
    parts = [list(_samples(model, artifact.target.chip)) for model in artifact.models()]
    spread = [part[:: max(1, len(part) * len(parts) // count)] for part in parts]
    turns = [sample for turn in zip_longest(*spread) for sample in turn if sample is not None]
    if not turns:
        raise ValueError(
            f"no fused answer of the artifact for {artifact.op} on {artifact.target} is of the "
            f"kernels installed here; run `tftune search {artifact.op}` and "
            f"`tftune export {artifact.op}`"
        )
    return turns[:count]


def _samples(model: LayoutModel, chip: Chip) -> Iterator[Sample]:
    space = operation(model.op).space
    for known in model.known:
        config, kernel = model.configs[known.best], model.kernels[known.best]
        if known.interval is None or kernel != installed(model.op, config.variant):
            continue
        shape = _shape(model, known)
        times = [(us, n) for n, us in known.times_us if model.configs[n].variant == "bsp"]
        bsp = model.configs[min(times)[1]]
        form = space.concrete(shape, bsp, chip) or bsp
        yield Sample(model.mode, shape, config, form, known.interval[0])


def check(
    picked: Sequence[Sample],
    bench: Bench,
    clock: Callable[[], float] = time.monotonic,
    told: Callable[[Sample, Config, Outcome], None] = lambda sample, config, outcome: None,
) -> list[Check]:
    """Measure each sample beside BSP's fastest form, as long as the budget lasts. `told` hears each
    outcome: of BSP, then of the sample's config."""
    until, checks = clock() + BUDGET_S, []
    for sample in picked:
        bench.ahead(sample.shape, [sample.config])
    for sample in picked:
        if clock() < until:
            outcome = bench.measure(sample.shape, sample.bsp, sample.mode, None)
            told(sample, sample.bsp, outcome)
            if not isinstance(outcome, Failure):
                outcome = bench.measure(sample.shape, sample.config, sample.mode, sample.bsp)
                told(sample, sample.config, outcome)
            checks.append(Check(sample, outcome))
    return checks


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is another now, as in `triton 3.6.0 -> 3.7.1`."""
    return [
        f"{name} {before.get(name)} -> {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
