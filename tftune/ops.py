"""The operations as a layer calls them: what is selected for this shape runs, on every rank alike. For inference: there is no backward.

Called eagerly it is a plain function, as its host time counts; traced by torch.compile it is one operator, `tftune::all_gather_gemm`,
which a graph holds as it holds a matmul.
"""

from __future__ import annotations

import torch

import tftune
from tftune.kernels.all_gather_gemm import host
from tftune.kernels.flash_decode import host as decode_host
from tftune.kernels.workspace import Workspace

EAGER_PLANS = 64
"""Shapes whose plans are kept in eager mode: a server's prefill may have any M, and a plan of BSP holds a whole gathered A."""


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
    warms up before a capture must prepare what the capture runs; eager plans are forgotten where there are many, so a call that is
    captured must not say `eager`. The first call of a shape compiles and allocates. Call `tftune.bind(group)` once before, so that all
    ranks have agreed on what they select. Under torch.compile the result is copied to
    `out`, where there is one. Raises ValueError where operands do not fit.
    """
    if torch.compiler.is_compiling():
        c = traced_all_gather_gemm(a, b, workspace.handle, shard, b_layout, mode)
        return c if out is None else out.copy_(c)
    key = (tftune._default, a.shape, b.shape, a.dtype, shard, b_layout, mode)
    known = workspace.plans.get(key)
    if known is None or not host.placed_well(a, b, workspace):
        shape = host.shape_of(a, b, workspace, shard, b_layout)
        config = tftune.select_kernel(shape, mode).config  # loads, where nothing is loaded
        known = host.prepare(shape, config, workspace), shape.m, shape.n
        _make_room(workspace)
        workspace.plans[tftune._default, *key[1:]] = known
    plan, m, n = known
    c = a.new_empty(m, n) if out is None else host.check_out(out, (m, n), a)
    plan(a, b, c)
    return c


def _make_room(workspace: Workspace) -> None:
    """Drop the oldest eager plan of too many, with its buffers, which are freed in stream order. Those of graphs stay: graphs hold
    their addresses."""
    eager = [key for key in workspace.plans if key[-1] == "eager"]
    if len(eager) >= EAGER_PLANS:
        del workspace.plans[eager[0]]


@torch.library.custom_op("tftune::all_gather_gemm", mutates_args=())
def traced_all_gather_gemm(a: torch.Tensor, b: torch.Tensor, workspace: str, shard: str, b_layout: str, mode: str) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and C is new."""
    return all_gather_gemm(a, b, Workspace.of(workspace), shard=shard, b_layout=b_layout, mode=mode)


@traced_all_gather_gemm.register_fake
def _(a: torch.Tensor, b: torch.Tensor, workspace: str, shard: str, b_layout: str, mode: str) -> torch.Tensor:
    ranks = Workspace.of(workspace).world if shard == "m" else 1
    return a.new_empty(a.shape[0] * ranks, b.shape[0 if b_layout == "nk" else 1])


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
