"""Operators that return the gathered A itself, which the gradient of a weight needs. The library
gathers: tftune's kernels keep A in the workspace only until the next call but one."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.library import infer_schema

from tftune.kernels.all_gather_gemm import host
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.shape import check_kind
from tftune.operator import begun_at_16, define
from tftune.operators import layout_of


def all_gather_gemm_with_gathered(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    *,
    shard: str = "",
    b_layout: str = "",
    mode: str = "graph",
) -> tuple[torch.Tensor, torch.Tensor]:
    """C[M,N] = all_gather(A) @ B and the gathered A [M,K], by the library's gather and GEMM;
    operands and words as in `all_gather_gemm`.

    It runs BSP, whatever is selected: a fused call would move A once for C, and the library once
    more for the gathered A, while BSP moves A once. The gathered A has no gradient of its own. With
    shard="k" it is stored [K,M]. Raises ValueError where operands do not fit.

    The activations of a column-parallel layer, kept for another layer that reads them::

        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        tokens = torch.randn(8, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y, whole = tftune.ops.all_gather_gemm_with_gathered(
            tokens, weight, workspace, shard="m", b_layout="nk"
        )
        assert whole.shape == (8 * workspace.world, 64)
    """
    check_kind("a", a, torch.Tensor, "a torch.Tensor")
    check_kind("b", b, torch.Tensor, "a torch.Tensor")
    shard, b_layout = layout_of(a, b, workspace, shard, b_layout)
    result: tuple[torch.Tensor, torch.Tensor] = traced_all_gather_gemm_with_gathered(
        a, b, workspace.handle, shard, b_layout, mode
    )
    return result


def _all_gather_gemm_with_gathered(
    a: torch.Tensor, b: torch.Tensor, workspace: str, shard: str, b_layout: str, mode: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same as an operator: `workspace` is the handle of one. `mode` is that of the operators
    in its backward."""
    if a.dim() == 2 and not a.shape[0]:  # no rank has a row
        return a.new_empty(0, b.shape[0 if b_layout == "nk" else 1]), _empty(a, workspace, shard)
    a, b = (
        begun_at_16("all_gather_gemm_with_gathered", name, operand)
        for name, operand in (("a", a), ("b", b))
    )
    host.shape_of(a, b, Workspace.of(workspace), shard, b_layout)
    whole = _gather(a, workspace, shard)
    return whole @ (b.t() if b_layout == "nk" else b), whole


def _fake_all_gather_gemm_with_gathered(
    a: torch.Tensor, b: torch.Tensor, workspace: str, shard: str, b_layout: str, mode: str
) -> tuple[torch.Tensor, torch.Tensor]:
    whole = _empty(a, workspace, shard)
    return a.new_empty(whole.shape[0], b.shape[0 if b_layout == "nk" else 1]), whole


def _gather(a: torch.Tensor, workspace: str, shard: str) -> torch.Tensor:
    """A of all ranks [M,K], by the library: rows behind each other or, with shard "k", columns,
    stored [K,M]. It waits: a collective beside a kernel that waits for the other ranks could take
    the units that they need. Has no gradient."""
    place = Workspace.of(workspace)
    if not a.numel():
        return _empty(a, workspace, shard)
    rows = a if shard == "m" else a.t()
    if place.world == 1:
        whole = rows.clone(memory_format=torch.contiguous_format)
    else:
        whole = a.new_empty(place.world * rows.shape[0], rows.shape[1])
        dist.all_gather_into_tensor(whole, rows.contiguous(), group=place.group)
    return whole if shard == "m" else whole.t()


def _empty(a: torch.Tensor, workspace: str, shard: str) -> torch.Tensor:
    """The gathered A without values."""
    ranks, (rows, columns) = Workspace.of(workspace).world, a.shape
    return (
        a.new_empty(ranks * rows, columns)
        if shard == "m"
        else a.new_empty(ranks * columns, rows).t()
    )


traced_all_gather_gemm_with_gathered = define(
    "all_gather_gemm_with_gathered",
    infer_schema(_all_gather_gemm_with_gathered, mutates_args=()),
    _all_gather_gemm_with_gathered,
    _fake_all_gather_gemm_with_gathered,
)
define("gather", infer_schema(_gather, mutates_args=()), _gather, _empty)
