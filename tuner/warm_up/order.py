"""What a warm-up is to confirm at one shape, and what the ranks that do so share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tftune.db.journal import Journal, NoJournal
from tftune.db.trial import Outcome, Trial, now
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.clock import HostBarrier
from tftune.tuner.bench.ranks import Ranks


@dataclass(frozen=True)
class Order:
    """What to confirm at one shape, and what its rows say."""

    shape: Shape
    mode: str
    forms: tuple[Config, ...]
    """The forms of BSP; the first is the one that outputs are held against."""
    candidates: tuple[Config, ...]
    budget_s: float
    """After compiling."""
    deadline_s: float
    """The deadline of each config's first launches and of all timing, in seconds."""
    target: str
    run: str

    def row(self, config: Config, outcome: Outcome) -> Trial:
        """The row of one outcome, taken now."""
        code = installed(self.shape.op, config.variant)
        key = self.shape, config, self.mode, self.target, "node", self.run
        return Trial(*key, code, outcome, "warm_up", now())

    def without(self, configs: Iterable[Config]) -> Order:
        """The same but for these configs."""
        out = set(configs)
        forms = tuple(form for form in self.forms if form not in out)
        candidates = tuple(config for config in self.candidates if config not in out)
        return replace(self, forms=forms, candidates=candidates)


@dataclass
class Site:
    """What all shapes of a warm-up share on one rank."""

    workspace: Workspace
    journal: Journal | NoJournal
    barrier: HostBarrier
    start_together: Callable[[], None]
    """Queues a barrier of all ranks on the GPU."""
    cache_bytes: int
    now: Callable[[], float] = time.monotonic
    ranks: Ranks = field(init=False)

    def __post_init__(self) -> None:
        self.ranks = Ranks(self.workspace)

    @property
    def emulated(self) -> bool:
        return self.workspace.arch == "interpreter"

    def wait(self) -> None:
        """Return when all that this rank queued has ended."""
        if self.workspace.device.type == "cuda":
            import torch

            torch.cuda.synchronize()
