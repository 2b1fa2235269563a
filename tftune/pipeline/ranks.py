"""Where orders are carried out: in one world of ranks on this node, or by the analytic model."""

from __future__ import annotations

import time
from pathlib import Path
from uuid import uuid4

from tftune.db.evidence import BSP
from tftune.db.target import Target, build
from tftune.db.trial import Measurement, Outcome, Run, Trial
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Predict
from tftune.tuner.bench.shared_dir import Shared
from tftune.tuner.bench.worker import WorldSpec
from tftune.tuner.warm_up.order import Order
from tftune.tuner.warm_up.world import Supervisor


class NodeRanks(Supervisor):
    """As many ranks of this machine as take part; a hang or a crash costs them a fresh world. It
    can be started before its first order, so that a budget begins when ranks are ready, and again
    before winners are timed."""

    def __init__(
        self, target: Target, world: int, payload_bytes: int, emulated: bool = False
    ) -> None:
        """`payload_bytes`: what the largest shape needs of one generation. Starts nothing yet."""
        self._folder = Shared.make()
        cache_bytes = 0 if emulated else target.chip.cache_bytes
        spec = WorldSpec(Path(), world, emulated, payload_bytes, cache_bytes)
        run = Run(uuid4().hex[:12], target.name, "node", build(), "", {})
        super().__init__(spec, self._folder.path / "failures.jsonl", run, {})
        self.run = run.id

    def start(self) -> float:
        """Have a fresh world ready; returns the seconds that it took. Raises `sandbox.Broken` where
        none starts."""
        began = time.monotonic()
        self._world.kill()
        self._world.start()
        return time.monotonic() - began

    def close(self) -> None:
        super().close()
        self._folder.remove()


class ModelRanks:
    """Predicted times, one sample each; nothing runs."""

    run = ""

    def __init__(self, target: Target, predict: Predict) -> None:
        self._chip, self._predict = target.chip, predict

    def start(self) -> float:
        return 0.0

    def confirm(self, order: Order) -> tuple[dict[Config, Outcome], list[Trial]]:
        configs = (*order.forms, *order.candidates)
        times = {c: self._predict(order.shape, c, order.mode, self._chip) for c in configs}
        bsp_us = min(us for config, us in times.items() if config.variant == BSP)
        return {config: Measurement((us,), (bsp_us,)) for config, us in times.items()}, []

    def close(self) -> None:
        """Nothing to end."""


Ranks = NodeRanks | ModelRanks
