"""The operations as a layer calls them: what is selected for this shape runs, on every rank alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tftune
from tftune.kernels.all_gather_gemm import host
from tftune.kernels.flash_decode import host as decode_host

if TYPE_CHECKING:
    import torch

    from tftune.kernels.workspace import Workspace


def all_gather_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    *,
    shard: str = "k",
    b_layout: str = "kn",
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """C[M,N] = all_gather(A) @ B by the config that `select_kernel` names for this shape; operands as in the operation's host.

    `mode` is how the layer will run, `graph` (captured, the default) or `eager`: it is not read off the stream, since the call that
    warms up before a capture must prepare what the capture runs. The first call of a shape compiles and allocates. Call
    `tftune.bind(group)` once before, so that all ranks have agreed on what they select. Raises ValueError where operands do not fit.
    """
    shape = host.shape_of(a, b, workspace, shard, b_layout)
    config = tftune.select_kernel(shape, mode).config
    return host.all_gather_gemm(a, b, workspace, config, shard=shard, b_layout=b_layout, out=out)


def flash_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor,
    workspace: Workspace,
    *,
    table: torch.Tensor | None = None,
    output: str = "all",
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of one token of each sequence over all ranks' parts of its cache, by the config that `select_kernel` names for this shape.

    Operands as in the operation's host; `mode` and `tftune.bind` as above. Raises ValueError where operands do not fit."""
    shape = decode_host.shape_of(q, k, v, lengths, table, workspace, output)
    config = tftune.select_kernel(shape, mode).config
    return decode_host.flash_decode(q, k, v, lengths, workspace, config, table=table, output=output, out=out)
