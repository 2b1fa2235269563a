"""The operations as a layer calls them: what is selected for this shape runs, on every rank alike.
For inference: there is no backward.

Called eagerly it is a plain function, as its host time counts; traced by torch.compile it is one
operator, `tftune::all_gather_gemm` and the like, which a graph holds as it holds a matmul.
"""

from __future__ import annotations

from typing import Any

import torch

import tftune
from tftune.db.trial import MODES
from tftune.kernels.all_gather_gemm import AllGatherGemm, host
from tftune.kernels.all_reduce import host as reduce_host
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.shape import Shape, check_word
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode import host as decode_host
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce import host as gemm_all_reduce_host
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter import host as gemm_reduce_scatter_host
from tftune.kernels.runtime.operands import check_out

EAGER_PLANS = 64
"""Shapes whose plans are kept in eager mode: a server's prefill may have any M, and a plan of BSP
holds a whole gathered A."""


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
    """C[M,N] = all_gather(A) @ B by the config that `select_kernel` names for this shape; operands
    as in the operation's host.

    With shard="m" every rank gives as many rows of A as the others, M / world. Where tokens do not
    divide, pad each rank's rows up to the same number, with anything finite, and leave out the rows
    of C that come of padding: those of rank r begin at r * M / world.

    `mode` is how the layer will run, `graph` (captured, the default) or `eager`: it is not read off
    the stream, since the call that warms up before a capture must prepare what the capture runs;
    eager plans are forgotten where there are many, so a call that is captured must not say `eager`.
    The first call of a shape compiles and allocates. Call `tftune.bind(group)` once before, so that
    all ranks have agreed on what they select. Under torch.compile the result is copied to `out`,
    where there is one. Raises ValueError where operands do not fit.

    A column-parallel layer: this rank's tokens, and its rows of the weight [N of all ranks, K]::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        tokens = torch.randn(8, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y = tftune.ops.all_gather_gemm(tokens, weight, workspace, shard="m", b_layout="nk")
        assert y.shape == (8 * workspace.world, 48)
    """
    if torch.compiler.is_compiling():
        c = traced_all_gather_gemm(a, b, workspace.handle, shard, b_layout, mode)
        return c if out is None else out.copy_(c)
    key = (tftune._default, a.shape, b.shape, a.dtype, shard, b_layout, mode)
    known = workspace.calls.get(key)
    if known is None or not host.placed_well(a, b, workspace):
        _check_words(AllGatherGemm, mode, shard=shard, b_layout=b_layout)
        shape = host.shape_of(a, b, workspace, shard, b_layout)
        known = _prepared(host, shape, key, workspace)
    plan, size = known
    c = a.new_empty(size) if out is None else check_out(out, size, a)
    plan(a, b, c)
    return c


def _check_words(kind: type[Shape], mode: str, **words: str) -> None:
    """Raise ValueError for an unknown word: before sizes, which do not fit where a layout is
    misspelt, and before anything is loaded."""
    for name, word in words.items():
        check_word(name, word, kind.WORDS[name])
    check_word("mode", mode, MODES)


def _prepared(
    host: Any, shape: Shape, key: tuple[Any, ...], workspace: Workspace
) -> tuple[Any, tuple[int, ...]]:
    """A plan of what is selected for the shape, and the size of its result; kept under `key`, whose
    last word is the mode. Its first word may be another one by then: where no artifact is loaded,
    selecting loads them."""
    plan = host.prepare(shape, tftune.select_kernel(shape, key[-1]).config, workspace)
    _make_room(workspace)
    known = workspace.calls[tftune._default, *key[1:]] = plan, host.result_size(shape)
    return known


def _make_room(workspace: Workspace) -> None:
    """Drop the oldest eager plan of too many, with its buffers, which are freed in stream order.
    Those of graphs stay: graphs hold their addresses."""
    eager = [key for key in workspace.calls if key[-1] == "eager"]
    if len(eager) >= EAGER_PLANS:
        del workspace.calls[eager[0]]


@torch.library.custom_op("tftune::all_gather_gemm", mutates_args=())
def traced_all_gather_gemm(
    a: torch.Tensor, b: torch.Tensor, workspace: str, shard: str, b_layout: str, mode: str
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and C is new."""
    return all_gather_gemm(a, b, Workspace.of(workspace), shard=shard, b_layout=b_layout, mode=mode)


@traced_all_gather_gemm.register_fake
def _(
    a: torch.Tensor, b: torch.Tensor, workspace: str, shard: str, b_layout: str, mode: str
) -> torch.Tensor:
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
    """Attention of one token of each sequence over all ranks' parts of its cache, by the config
    that `select_kernel` names for this shape.

    q: [batch, q_heads, head_dim], the same on every rank; k and v: this rank's cache, [batch,
    kv_len, kv_heads, head_dim] or, with `table`, pages; lengths: int32 [batch], tokens of each
    sequence here. fp16 or bf16. output "all": [batch, q_heads, head_dim] on every rank; "heads":
    this rank's heads. `mode`, the first call, `tftune.bind` and torch.compile as above. Raises
    ValueError where operands do not fit.

    One token of 2 sequences, 8 query heads on 2, 16 cached tokens of each on this rank::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        options = {"dtype": torch.float16, "device": workspace.device}
        q = torch.ones(2, 8, 64, **options)
        k, v = torch.randn(2, 2, 16, 2, 64, **options)
        lengths = torch.full((2,), 16, dtype=torch.int32, device=workspace.device)
        out = tftune.ops.flash_decode(q, k, v, lengths, workspace)
        assert out.shape == q.shape
    """
    if torch.compiler.is_compiling():
        result = traced_flash_decode(q, k, v, lengths, workspace.handle, table, output, mode)
        return result if out is None else out.copy_(result)
    words = (
        (lengths.shape, lengths.dtype)
        if table is None
        else (lengths.shape, lengths.dtype, table.shape, table.dtype)
    )
    key = (tftune._default, q.shape, k.shape, v.shape, words, q.dtype, output, mode)
    known = workspace.calls.get(key)
    if known is None or not decode_host.placed_well(q, k, v, lengths, table, workspace):
        _check_words(FlashDecode, mode, output=output)
        shape = decode_host.shape_of(q, k, v, lengths, table, workspace, output)
        known = _prepared(decode_host, shape, key, workspace)
    plan, size = known
    result = q.new_empty(size) if out is None else check_out(out, size, q)
    plan(q, k, v, lengths, lengths if table is None else table, result)
    return result


@torch.library.custom_op("tftune::flash_decode", mutates_args=())
def traced_flash_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor,
    workspace: str,
    table: torch.Tensor | None,
    output: str,
    mode: str,
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and the result is new."""
    return flash_decode(
        q, k, v, lengths, Workspace.of(workspace), table=table, output=output, mode=mode
    )


@traced_flash_decode.register_fake
def _(
    q: torch.Tensor,
    k: Any,
    v: Any,
    lengths: Any,
    workspace: str,
    table: Any,
    output: str,
    mode: str,
) -> torch.Tensor:
    ranks = Workspace.of(workspace).world if output == "heads" else 1
    return q.new_empty(q.shape[0], q.shape[1] // ranks, q.shape[2])


def all_reduce(
    x: torch.Tensor,
    workspace: Workspace,
    *,
    residual: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum of x over ranks, [m, n]; with residual and weight, the normalised rows and the new
    residual, [2, m, n], by the config that `select_kernel` names for this shape.

    Operands as in the operation's host; `mode`, the first call, `tftune.bind` and torch.compile as
    in `all_gather_gemm`. Raises ValueError where operands do not fit.

    Where a layer ends::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        x = torch.randn(3, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.ones(64, dtype=torch.bfloat16, device=workspace.device)
        hidden, residual = tftune.ops.all_reduce(x, workspace, residual=x, weight=weight)
        assert hidden.shape == residual.shape == (3, 64)
    """
    if torch.compiler.is_compiling():
        result = traced_all_reduce(x, workspace.handle, residual, weight, mode)
        return result if out is None else out.copy_(result)
    given = [operand for operand in (residual, weight) if operand is not None]
    key = (tftune._default, "all_reduce", x.shape, *(t.shape for t in given), x.dtype, mode)
    known = workspace.calls.get(key)
    if known is None or not reduce_host.placed_well(x, residual, weight, workspace):
        check_word("mode", mode, MODES)
        shape = reduce_host.shape_of(x, residual, weight, workspace)
        known = _prepared(reduce_host, shape, key, workspace)
    plan, size = known
    result = x.new_empty(size) if out is None else check_out(out, size, x)
    plan(x, *given, result)
    return result


@torch.library.custom_op("tftune::all_reduce", mutates_args=())
def traced_all_reduce(
    x: torch.Tensor,
    workspace: str,
    residual: torch.Tensor | None,
    weight: torch.Tensor | None,
    mode: str,
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and the result is new."""
    return all_reduce(x, Workspace.of(workspace), residual=residual, weight=weight, mode=mode)


@traced_all_reduce.register_fake
def _(x: torch.Tensor, workspace: str, residual: Any, weight: Any, mode: str) -> torch.Tensor:
    return x.new_empty(x.shape if residual is None else (2, *x.shape))


def gemm_reduce_scatter(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    *,
    b_layout: str = "nk",
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """This rank's rows of the sum over ranks of a @ b, [M/world, N], by the config that
    `select_kernel` names for this shape; operands as in the operation's host, and M a multiple of
    the world: pad tokens up to the next one.

    `mode`, the first call, `tftune.bind` and torch.compile as in `all_gather_gemm`. Raises
    ValueError where operands do not fit.

    A row-parallel layer: all tokens, this rank's columns of the input and of the weight [N, K]::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        world = workspace.world
        x = torch.randn(8 * world, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y = tftune.ops.gemm_reduce_scatter(x, weight, workspace)
        assert y.shape == (8, 48)
    """
    if torch.compiler.is_compiling():
        c = traced_gemm_reduce_scatter(a, b, workspace.handle, b_layout, mode)
        return c if out is None else out.copy_(c)
    return _gemm_reduction(
        GemmReduceScatter, gemm_reduce_scatter_host, a, b, workspace, b_layout, mode, out
    )


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

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        x = torch.randn(3, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y = tftune.ops.gemm_all_reduce(x, weight, workspace)
        assert y.shape == (3, 48)
    """
    if torch.compiler.is_compiling():
        c = traced_gemm_all_reduce(a, b, workspace.handle, b_layout, mode)
        return c if out is None else out.copy_(c)
    return _gemm_reduction(
        GemmAllReduce, gemm_all_reduce_host, a, b, workspace, b_layout, mode, out
    )


def _gemm_reduction(
    kind: type[Shape],
    host: Any,
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    b_layout: str,
    mode: str,
    out: torch.Tensor | None,
) -> torch.Tensor:
    key = (tftune._default, kind.op, a.shape, b.shape, a.dtype, b_layout, mode)
    known = workspace.calls.get(key)
    if known is None or not host.placed_well(a, b, workspace):
        _check_words(kind, mode, b_layout=b_layout)
        known = _prepared(host, host.shape_of(a, b, workspace, b_layout), key, workspace)
    plan, size = known
    c = a.new_empty(size) if out is None else check_out(out, size, a)
    plan(a, b, c)
    return c


@torch.library.custom_op("tftune::gemm_reduce_scatter", mutates_args=())
def traced_gemm_reduce_scatter(
    a: torch.Tensor, b: torch.Tensor, workspace: str, b_layout: str, mode: str
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and C is new."""
    return gemm_reduce_scatter(a, b, Workspace.of(workspace), b_layout=b_layout, mode=mode)


@traced_gemm_reduce_scatter.register_fake
def _(a: torch.Tensor, b: torch.Tensor, workspace: str, b_layout: str, mode: str) -> torch.Tensor:
    rows = a.shape[0] // Workspace.of(workspace).world
    return a.new_empty(rows, b.shape[0 if b_layout == "nk" else 1])


@torch.library.custom_op("tftune::gemm_all_reduce", mutates_args=())
def traced_gemm_all_reduce(
    a: torch.Tensor, b: torch.Tensor, workspace: str, b_layout: str, mode: str
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and C is new."""
    return gemm_all_reduce(a, b, Workspace.of(workspace), b_layout=b_layout, mode=mode)


@traced_gemm_all_reduce.register_fake
def _(a: torch.Tensor, b: torch.Tensor, workspace: str, b_layout: str, mode: str) -> torch.Tensor:
    return a.new_empty(a.shape[0], b.shape[0 if b_layout == "nk" else 1])
