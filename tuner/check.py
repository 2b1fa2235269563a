"""Is a config right? Asked on every rank before it is timed: a stale flag poll is wrong and fast."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.workspace import Workspace

if TYPE_CHECKING:
    import torch

CALLS = 3
"""Back-to-back calls for each seed: both generations are used, and one is used again."""


class References:
    """Inputs and reference results of one shape on one rank, for each seed; made once, since every config is held against them."""

    def __init__(self, shape: Shape, workspace: Workspace, seeds: int = 2) -> None:
        """Collective: every rank at once."""
        module = operation(shape.op).module("reference")
        self.inputs = [module.make_inputs(shape, workspace.rank, seed, workspace.device) for seed in range(seeds)]
        self.results = [module.reference(shape, *inputs, workspace.group) for inputs in self.inputs]
        self.tolerance: float = module.tolerance(shape)

    def error(self, plan: Any, workspace: Workspace) -> float:
        """The largest norm(C - reference) / norm(reference) over seeds and calls; infinite where C holds a NaN. Collective."""
        worst = 0.0
        for inputs, result in zip(self.inputs, self.results, strict=True):
            poison(workspace)
            outputs = [result.new_full(result.shape, math.nan, dtype=inputs[0].dtype) for _ in range(CALLS)]
            for output in outputs:
                plan(*inputs, output)
            worst = max([worst, *(relative_error(output, result) for output in outputs)])
        return worst


def relative_error(output: torch.Tensor, reference: torch.Tensor) -> float:
    """norm(output - reference) / norm(reference), infinite where it is not a number."""
    error = float(((output.float() - reference).norm() / reference.norm()).item())
    return error if math.isfinite(error) else math.inf


def poison(workspace: Workspace) -> None:
    """Fill this rank's payload with NaN, so that a chunk read before it arrives shows. Collective.

    A barrier before: a peer may still pull from this rank's last call, which has ended here. And one after: no rank starts
    before all have poisoned.
    """
    _barrier(workspace)
    workspace.payload_tensor.fill_(255)
    _barrier(workspace)


def _barrier(workspace: Workspace) -> None:
    import torch
    import torch.distributed as dist

    if workspace.device.type == "cuda":
        torch.cuda.synchronize()
    dist.barrier(group=workspace.group)
    if workspace.device.type == "cuda":
        torch.cuda.synchronize()
