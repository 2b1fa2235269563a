"""The operations as a layer calls them: what is selected for this shape runs, on every rank alike.

Called eagerly it is a plain function; traced by torch.compile it is one operator,
`tftune::all_gather_gemm` and the like. So it is where an operand needs a gradient
(`tftune.gradients`): without one, call under `torch.no_grad`. Attention has no backward, and
refuses operands that need one. Where no rank has a row or a sequence, the result is empty.

Every operation takes its operands as its host does, and runs the config that `select_kernel` names.
`mode` is how the layer will run, `graph` (captured, the default), `eager`, or `graph:512` (captured
up to so many tokens). It is not read off the stream, since the call that warms up before a capture
must prepare what the capture runs. The first call of a shape compiles and allocates. All shapes
share the workspace's buffers, which take a few times the memory of the largest one. A captured
graph is valid as long as the workspace lives. Under torch.compile, and where a gradient is needed,
the result is copied to `out`, where there is one.

Call `tftune.bind(group)` once before, so that all ranks have agreed on what they select. Every rank
gives the same sizes: with TFTUNE_CHECK=1 each call compares them, at the cost of a synchronisation,
and refuses ranks that differ. The examples below begin with these lines, run once::

    tftune.bind(dist.group.WORLD)
    workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
"""

from __future__ import annotations

import torch

import tftune
from tftune import casts, gradients, operators
from tftune.gathered import all_gather_gemm_with_gathered as all_gather_gemm_with_gathered
from tftune.gathered import traced_all_gather_gemm_with_gathered
from tftune.kernels.all_reduce.host import checked_eps
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.flash_decode.lengths import Facts
from tftune.operator import differentiated, mode_at


@operators.ALL_GATHER_GEMM.declared
def all_gather_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    *,
    shard: str = "",
    b_layout: str = "",
    mode: str = "graph",
    keep_gathered: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """C[M,N] = all_gather(A) @ B.

    `shard` is "m" where each rank has tokens, rows of A, and "k" where it has columns of A.
    `b_layout` is "nk" for the weight of `nn.Linear`, [N, K], and "kn" for [K, N]. Where they are
    left out, the sizes of A and B tell; where several fit, as with a square B, they must be given.

    With shard="m" every rank gives M / world rows of A. Where tokens do not divide, pad each rank's
    rows up to the same number, with anything finite, and leave out the rows of C that come of
    padding: those of rank r begin at r * M / world. An `a` of `workspace.empty` is a layout of its
    own, whose peers may read it where it lies.

    The gradient of B needs the gathered A, which by default is gathered once more. With
    `keep_gathered` it is kept, world times the bytes of A, and C comes from BSP, which has it: one
    exchange less. The gradient of A is a `gemm_reduce_scatter` in the same workspace. `mode` and
    `out`: see `tftune.ops`. Raises ValueError where operands do not fit.

    A column-parallel layer: this rank's tokens, and its rows of the weight [N of all ranks, K]::

        tokens = torch.randn(8, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y = tftune.ops.all_gather_gemm(tokens, weight, workspace, shard="m", b_layout="nk")
        assert y.shape == (8 * workspace.world, 48)
    """
    shard, b_layout = operators.layout_of(a, b, workspace, shard, b_layout)
    if keep_gathered and differentiated(b):
        words = workspace.handle, shard, b_layout, mode
        c: torch.Tensor = traced_all_gather_gemm_with_gathered(a, b, *words)[0]
        return c if out is None else out.copy_(c)
    return operators.ALL_GATHER_GEMM.call((a, b), workspace, (shard, b_layout), mode, out)


@operators.FLASH_DECODE.declared
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
    facts: Facts | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of one token of each sequence over all ranks' parts of its cache.

    q: [batch, q_heads, head_dim], the same on every rank; k and v: this rank's cache, [batch,
    kv_len, kv_heads, head_dim] or, with `table`, pages; lengths: int32 [batch], tokens of each
    sequence here, 0 to kv_len. fp16 or bf16. output "all": [batch, q_heads, head_dim] on every
    rank; "heads": this rank's heads. `facts`: what the host knows of this rank's lengths; the
    config follows them, in plans of its own (under torch.compile there is one plan, and they are
    refused). Lengths are in device memory. The first call of a shape outside a capture checks them,
    and every call with TFTUNE_CHECK=1. Unchecked lengths above kv_len act as kv_len, negative ones
    as 0. Raises ValueError where operands do not fit.

    One token of 2 sequences, 8 query heads on 2, 16 cached tokens of each on this rank::

        options = {"dtype": torch.float16, "device": workspace.device}
        q = torch.ones(2, 8, 64, **options)
        k, v = torch.randn(2, 2, 16, 2, 64, **options)
        lengths = torch.full((2,), 16, dtype=torch.int32, device=workspace.device)
        out = tftune.ops.flash_decode(q, k, v, lengths, workspace)
        assert out.shape == q.shape
    """
    operands, config = (q, k, v, lengths, table), None
    if facts is not None and q.shape[0]:
        if torch.compiler.is_compiling():
            raise ValueError("facts choose among plans, and a compiled graph has one; leave it out")
        shape = operators.FLASH_DECODE.host.shape_of(*operands, workspace, output)
        config = tftune.select_kernel(shape, mode_at(mode, shape), facts).config
    return operators.FLASH_DECODE.call(operands, workspace, (output,), mode, out, config=config)


@operators.FLASH_PREFILL.declared
def flash_prefill(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    workspace: Workspace,
    *,
    causal: str = "yes",
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of all tokens of each sequence, on this GPU's heads alone.

    q: [batch, seq_len, q_heads, head_dim]; k and v: [batch, seq_len, kv_heads, head_dim]; fp16 or
    bf16. causal "yes": a token attends to itself and to those before it. Any workspace will do:
    nothing is exchanged. torch's attention has no argument for its output: where it is selected,
    `out` costs a copy. Raises ValueError where operands do not fit.

    2 sequences of 16 tokens, 8 query heads on 2 of this rank::

        options = {"dtype": torch.float16, "device": workspace.device}
        q = torch.randn(2, 16, 8, 64, **options)
        k, v = torch.randn(2, 2, 16, 2, 64, **options)
        out = tftune.ops.flash_prefill(q, k, v, workspace)
        assert out.shape == q.shape
    """
    return operators.FLASH_PREFILL.call((q, k, v), workspace, (causal,), mode, out)


@operators.ALL_REDUCE.declared
def all_reduce(
    x: torch.Tensor,
    workspace: Workspace,
    *,
    residual: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    mode: str = "graph",
    eps: float | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum of x over ranks, [m, n]; with residual and weight, the normalised rows and the new
    residual, [2, m, n]. eps: of RMSNorm, 1e-6 where it is None. Raises ValueError where operands do
    not fit.

    Where a layer ends::

        x = torch.randn(3, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.ones(64, dtype=torch.bfloat16, device=workspace.device)
        hidden, residual = tftune.ops.all_reduce(x, workspace, residual=x, weight=weight)
        assert hidden.shape == residual.shape == (3, 64)
    """
    numbers = () if eps is None else (checked_eps(eps),)
    return operators.ALL_REDUCE.call((x, residual, weight), workspace, (), mode, out, *numbers)


@operators.GEMM_REDUCE_SCATTER.declared
def gemm_reduce_scatter(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    *,
    b_layout: str = "nk",
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """This rank's rows of the sum over ranks of a @ b, [M/world, N]. M is a multiple of
    the world: pad tokens up to the next one. Raises ValueError where operands do not fit.

    A row-parallel layer: all tokens, this rank's columns of the input and of the weight [N, K]::

        world = workspace.world
        x = torch.randn(8 * world, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y = tftune.ops.gemm_reduce_scatter(x, weight, workspace)
        assert y.shape == (8, 48)
    """
    return operators.GEMM_REDUCE_SCATTER.call((a, b), workspace, (b_layout,), mode, out)


@operators.GEMM_ALL_REDUCE.declared
def gemm_all_reduce(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    *,
    b_layout: str = "nk",
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum over ranks of a @ b, [M, N], the same to the bit on every rank where a fused kernel
    is selected; all else as in `gemm_reduce_scatter`, for any M::

        x = torch.randn(3, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y = tftune.ops.gemm_all_reduce(x, weight, workspace)
        assert y.shape == (3, 48)
    """
    return operators.GEMM_ALL_REDUCE.call((a, b), workspace, (b_layout,), mode, out)


@operators.MERGE_ATTENTION.declared
def merge_attention(
    o: torch.Tensor,
    lse: torch.Tensor,
    workspace: Workspace,
    *,
    output: str = "heads",
    base: str = "e",
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The attention over all ranks' parts of a KV cache, from each rank's own: [batch, own heads,
    head_dim]. Two micro-batches in flight need a workspace each. Raises ValueError where operands
    do not fit.

    Behind an engine's own attention over this rank's tokens::

        o = torch.randn(2, 8, 64, dtype=torch.bfloat16, device=workspace.device)
        lse = torch.randn(2, 8, device=workspace.device)
        merged = tftune.ops.merge_attention(o, lse, workspace)
        assert merged.shape == (2, 8 // workspace.world, 64)
    """
    return operators.MERGE_ATTENTION.call((o, lse), workspace, (output, base), mode, out)


gradients.register()
casts.register()
