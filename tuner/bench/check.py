"""Is a config right? Asked on every rank before it is timed: a stale flag poll is wrong and
fast."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.runtime.operands import placed
from tftune.tuner.bench.ranks import Ranks

if TYPE_CHECKING:
    import torch

ORDER = (0, 1, 1, 0, 0, 1)
"""Which inputs each back-to-back call takes: both generations of a workspace are used and used
again, each time with other data."""
SEEDS = range(max(ORDER) + 1)
"""Seeds of the inputs that belong to the check; those of the first seed are timed, too."""
SMALLEST = 2.0**-126
"""The least normal fp32 number."""
DELAY_CYCLES, DELAY_S = 400_000, 0.1
"""How late one rank starts: about 0.2 ms on a GPU, far longer than a chunk's flight."""


class References:
    """Inputs and reference results of one shape on one rank, for two seeds; made once, since every
    config is held against them."""

    def __init__(self, shape: Shape, workspace: Workspace, **data: str) -> None:
        """Collective: every rank at once. `data`: what `make_inputs` is told beside, such as
        lengths."""
        module = operation(shape.op).module("reference")
        rank, device = workspace.rank, workspace.device
        made = (module.make_inputs(shape, rank, seed, device, **data) for seed in SEEDS)
        self.inputs = [placed(shape, inputs, workspace) for inputs in made]
        self.results = [module.reference(shape, *inputs, workspace.group) for inputs in self.inputs]
        self.tolerance: float = module.tolerance(shape)

    def error(self, plan: Any, workspace: Workspace) -> float:
        """The largest relative error over back-to-back calls, some ranks being late. Collective."""
        poison(workspace)
        outputs = [
            self.results[seed].new_full(
                self.results[seed].shape, math.nan, dtype=self.inputs[seed][0].dtype
            )
            for seed in ORDER
        ]
        for call, (seed, output) in enumerate(zip(ORDER, outputs, strict=True)):
            # Late twice in a row: while it catches up, nobody else is held back.
            if call // 2 % workspace.world == workspace.rank:
                delay(workspace)
            plan(*self.inputs[seed], output)
        return max(
            relative_error(output, self.results[seed])
            for seed, output in zip(ORDER, outputs, strict=True)
        )


def relative_error(output: torch.Tensor, reference: torch.Tensor) -> float:
    """The largest norm(output - reference) / norm(reference) of a row, of the last dimension;
    infinite where it is not a number.

    By row, since in the norm of a large matrix a stale block of one tile would drown. A row much
    smaller than the others is held against a tenth of the mean row, whose rounding it shares. Where
    all of the reference is zero (empty sequences), zero is right.
    """
    rows = reference.norm(dim=-1)
    scale = rows.clamp(min=max(0.1 * float(reference.norm()) / rows.numel() ** 0.5, SMALLEST))
    error = float(((output.float() - reference).norm(dim=-1) / scale).max().item())
    return error if math.isfinite(error) else math.inf


def delay(workspace: Workspace) -> None:
    import torch

    if workspace.device.type == "cuda":
        torch.cuda._sleep(DELAY_CYCLES)
    else:
        time.sleep(DELAY_S)


def poison(workspace: Workspace) -> None:
    """Fill this rank's payload with NaN, so that a chunk read before it arrives shows. Collective.

    A barrier before: a peer may still pull from this rank's last call, which has ended here. And
    one after: no rank starts before all have poisoned.
    """
    ranks = Ranks(workspace)
    ranks.barrier()
    workspace.payload_tensor.fill_(255)
    ranks.barrier()
