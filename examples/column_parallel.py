"""A column-parallel layer as serving engines have it: bf16, weights [N, K], gather along tokens.

torchrun --nproc-per-node 8 examples/column_parallel.py
python examples/column_parallel.py --cpu
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from ranks import bind, relative_error, start

import tftune
from tftune.ops import all_gather_gemm

LIMIT = 2.0**-8
"""One rounding to bf16."""


class ColumnParallelLinear(torch.nn.Module):
    """y = all_gather(x) @ weight.T. x: this rank's tokens [tokens / world, K]; weight: its [N, K].
    Where tokens do not divide, pad each rank's to the same number."""

    def __init__(self, weight: torch.Tensor, workspace: tftune.Workspace, mode: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.workspace, self.mode = workspace, mode

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # tftune runs what was the fastest for this shape: a fused kernel, or BSP (the library's
        # all-gather, then its GEMM). The first call of a shape compiles and allocates.
        return all_gather_gemm(
            x, self.weight, self.workspace, shard="m", b_layout="nk", mode=self.mode
        )


def make(workspace: tftune.Workspace, mode: str) -> tuple[ColumnParallelLinear, torch.Tensor]:
    """A layer and tokens; small ones where ranks are emulated."""
    tokens, n, k = (16, 96, 256) if workspace.arch == "interpreter" else (512, 3584, 8192)
    torch.manual_seed(workspace.rank)
    options = {"dtype": torch.bfloat16, "device": workspace.device}
    weight = torch.randn(n, k, **options) * k**-0.5
    return ColumnParallelLinear(weight, workspace, mode), torch.randn(tokens, k, **options)


def checked(layer: ColumnParallelLinear, x: torch.Tensor, y: torch.Tensor) -> str:
    """What ran, and its error against a gather and a product in fp32; raises where it is large."""
    world = layer.workspace.world
    gathered = x.new_empty(world * len(x), x.shape[1])
    dist.all_gather_into_tensor(gathered, x, group=layer.workspace.group)
    error = relative_error(y, gathered.float() @ layer.weight.float().t())
    if not error < LIMIT:
        raise ValueError(f"the error {error:.1e} must be below {LIMIT:.1e}")
    shape = tftune.AllGatherGemm(*y.shape, x.shape[1], world, x.dtype, "m", "nk")
    selection = tftune.select_kernel(shape, layer.mode)
    how = selection.reason if selection.source == "fallback" else selection.source
    ran = f"{selection.config.variant} ({how}) on {world} ranks"
    return f"checked {shape}: {ran}, error {error:.1e}, below {LIMIT:.1e}"


def example(workspace: tftune.Workspace, artifact: str | None) -> str:
    bind(workspace, artifact)
    layer, x = make(workspace, "eager")
    return checked(layer, x, layer(x))


if __name__ == "__main__":
    start(example, payload_bytes=1 << 26)
