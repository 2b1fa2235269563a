"""The operations as a layer calls them: what is selected for this shape runs, on every rank alike.

Called eagerly it is a plain function, as its host time counts; traced by torch.compile it is one
operator, `tftune::all_gather_gemm` and the like, which a graph holds as it holds a matmul. So it is
where an operand needs a gradient (`tftune.gradients`): without one, call under `torch.no_grad`.
Attention has no backward, and refuses an operand that needs a gradient. Where no rank has a row or
a sequence, the result is empty and nothing runs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import torch

import tftune
from tftune import casts, checks, gradients
from tftune.db.trial import MODES
from tftune.gathered import (
    all_gather_gemm_with_gathered as all_gather_gemm_with_gathered,
)
from tftune.gathered import traced_all_gather_gemm_with_gathered
from tftune.kernels.all_gather_gemm import AllGatherGemm, host
from tftune.kernels.all_reduce import EPSILON
from tftune.kernels.all_reduce import host as reduce_host
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.shape import LOCAL, Shape, check_kind, check_word
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode import host as decode_host
from tftune.kernels.flash_decode.gather import gather_facts as gather_facts
from tftune.kernels.flash_decode.lengths import Facts
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.flash_prefill import host as prefill_host
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce import host as gemm_all_reduce_host
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter import host as gemm_reduce_scatter_host
from tftune.kernels.merge_attention import MergeAttention
from tftune.kernels.merge_attention import host as merge_host
from tftune.kernels.runtime.operands import check_out
from tftune.kernels.runtime.plan import make_room
from tftune.models.compatibility import log_once
from tftune.models.selector import fallback

_cast, _modes = torch._C._is_any_autocast_enabled, torch._C._len_torch_dispatch_stack
P = ParamSpec("P")
R = TypeVar("R")


def explained(call: Callable[P, R]) -> Callable[P, R]:
    """The call, which says what it was given where that is no tensor or no workspace. It looks only
    where the call has failed."""
    kinds: dict[str, tuple[Any, str]] = {
        "torch.Tensor": (torch.Tensor, "a torch.Tensor"),
        "torch.Tensor | None": (torch.Tensor | None, "a torch.Tensor, or None"),
        "Workspace": (Workspace, "what tftune.Workspace.create returns"),
        "Facts | None": (Facts | None, "tftune.Facts, or None"),
    }

    @wraps(call)
    def explaining(*given: P.args, **named: P.kwargs) -> R:
        try:
            return call(*given, **named)
        except (AttributeError, RuntimeError, TypeError):
            asked = signature(call)
            for name, value in asked.bind(*given, **named).arguments.items():
                if kind := kinds.get(asked.parameters[name].annotation):
                    check_kind(name, value, *kind)
            raise

    return explaining


@explained
def all_gather_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    *,
    shard: str = "k",
    b_layout: str = "kn",
    mode: str = "graph",
    keep_gathered: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """C[M,N] = all_gather(A) @ B by the config that `select_kernel` names for this shape; operands
    as in the operation's host.

    With shard="m" every rank gives as many rows of A as the others, M / world. Where tokens do not
    divide, pad each rank's rows up to the same number, with anything finite, and leave out the rows
    of C that come of padding: those of rank r begin at r * M / world.

    `mode` is how the layer will run, `graph` (captured, the default) or `eager`: it is not read off
    the stream, since the call that warms up before a capture must prepare what the capture runs.
    All shapes share the workspace's buffers, which take a few times the memory of the largest one,
    however many there are. A captured graph is valid as long as the workspace lives.
    An `a` of `workspace.empty` is a layout of its own, whose peers may read it where it lies.
    Every rank gives the same sizes. Comparing them would take a synchronisation, so that no call
    does; with TFTUNE_CHECK=1 each does, and ranks that differ are refused.
    The first call of a shape compiles and allocates. Call `tftune.bind(group)` once before, so that
    all ranks have agreed on what they select. Under torch.compile, and where a gradient is needed,
    the result is copied to `out`, where there is one. Raises ValueError where operands do not fit.

    The gradient of B needs the gathered A. By default it is gathered once more then, and nothing
    but A is kept. With `keep_gathered` it is kept, world times the bytes of A, and C comes from
    BSP, which has it: one exchange less. The gradient of A is a `gemm_reduce_scatter` in the same
    workspace.

    A column-parallel layer: this rank's tokens, and its rows of the weight [N of all ranks, K]::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        tokens = torch.randn(8, 64, dtype=torch.bfloat16, device=workspace.device)
        weight = torch.randn(48, 64, dtype=torch.bfloat16, device=workspace.device)
        y = tftune.ops.all_gather_gemm(tokens, weight, workspace, shard="m", b_layout="nk")
        assert y.shape == (8 * workspace.world, 48)
    """
    if _dispatched(a, b):
        words = workspace.handle, shard, b_layout, mode
        if keep_gathered and _differentiated(b):
            c, _ = traced_all_gather_gemm_with_gathered(a, b, *words)
        else:
            c = traced_all_gather_gemm(a, b, *words)
        return c if out is None else out.copy_(c)
    if a.dim() == 2 and not a.shape[0]:
        checks.check_empty("all_gather_gemm", workspace)
        return _empty(a, b, b_layout, out)
    in_heap = workspace.holds(a)
    sizes = a.shape, b.shape
    key = (tftune._default, "all_gather_gemm", *sizes, a.dtype, shard, b_layout, in_heap, mode)
    known = workspace.calls.get(key)
    if known is None or not host.placed_well(a, b, workspace):
        _check_words(AllGatherGemm, mode, shard=shard, b_layout=b_layout)
        shape = host.shape_of(a, b, workspace, shard, b_layout)
        known = _prepared(host, shape, key, workspace)
    plan, size = known
    c = a.new_empty(size) if out is None else check_out(out, size, a)
    plan(a, b, c)
    return c


def _empty(a: torch.Tensor, b: torch.Tensor, b_layout: str, out: Any) -> torch.Tensor:
    """What a GEMM gives of no rows, which every rank has: nothing runs. Raises ValueError where
    operands do not fit a GEMM at all."""
    if b.dim() != 2 or a.dtype is not b.dtype:
        raise ValueError(f"b is {list(b.shape)} of {b.dtype}; a has no rows and is {a.dtype}")
    size = 0, b.shape[0 if b_layout == "nk" else 1]
    return a.new_empty(size) if out is None else check_out(out, size, a)


def _dispatched(a: torch.Tensor, b: Any = None, c: Any = None, casts: bool = True) -> bool:
    """Whether torch must see the call as one operator: to trace it, to cast operands (autocast),
    to count it (a dispatch mode such as FlopCounterMode), or for a gradient."""
    return (
        torch.compiler.is_compiling()
        or (casts and _cast())
        or _modes() > 0
        or _differentiated(a, b, c)
    )


def _differentiated(a: torch.Tensor, b: Any = None, c: Any = None) -> bool:
    """Whether a gradient of any of them is wanted. Where gradients are off it is one look."""
    return torch.is_grad_enabled() and (
        a.requires_grad
        or (b is not None and b.requires_grad)
        or (c is not None and c.requires_grad)
    )


def _refuse_gradient(op: str, instead: str, *operands: torch.Tensor) -> None:
    """Raise ValueError where an operation without a backward would drop a gradient."""
    if torch.is_grad_enabled() and any(operand.requires_grad for operand in operands):
        raise ValueError(
            f"tftune.ops.{op} has no backward, and an operand requires a gradient; call it under "
            f"torch.no_grad(), or {instead}"
        )


def _no_sequence(
    size: tuple[int, ...], like: torch.Tensor, out: torch.Tensor | None
) -> torch.Tensor:
    """What attention gives of a batch without a sequence, which every rank has: nothing runs."""
    return like.new_empty(size) if out is None else check_out(out, size, like)


def _check_words(kind: type[Shape], mode: str, **words: str) -> None:
    """Raise ValueError for an unknown word: before sizes, which do not fit where a layout is
    misspelt, and before anything is loaded."""
    for name, word in words.items():
        check_word(name, word, kind.WORDS[name])
    check_word("mode", mode, MODES)


def _prepared(
    host: Any,
    shape: Shape,
    key: tuple[Any, ...],
    workspace: Workspace,
    *numbers: float,
    config: Config | None = None,
) -> tuple[Any, tuple[int, ...]]:
    """A plan of what is selected for the shape, and the size of its result; kept under `key`, whose
    last word is the mode. Its first word may be another one by then: where no artifact is loaded,
    selecting loads them. `numbers`: what else the host's `prepare` takes. `config`: where the
    caller has selected."""
    shape, selected = _served(shape, key[-1]) if config is None else (shape, config)
    config = _fitting(host, shape, selected, workspace)
    plan = _apart(lambda: host.prepare(shape, config, workspace, *numbers), workspace.device)
    plan = checks.checked(plan, shape, workspace)
    make_room(workspace.calls, workspace.shapes)
    if tftune._capture is not None:
        plan = tftune._capture.counted(plan, shape, key[-1])
    key = (tftune._default, *key[1:])
    workspace.shapes[key] = shape
    known = workspace.calls[key] = plan, host.result_size(shape)
    return known


def _served(shape: Shape, mode: str) -> tuple[Shape, Config]:
    """The shape and config to run. Where nothing was measured with operands on the heap, the answer
    for local ones: every kernel for those takes an operand from wherever it lies."""
    found = tftune.select_kernel(shape, mode)
    if shape.on_heap and found.source == "fallback":
        local = type(shape).from_dict(shape.to_dict() | {"operands": LOCAL})
        return local, tftune.select_kernel(local, mode).config
    return shape, found.config


def _fitting(host: Any, shape: Shape, config: Config, workspace: Workspace) -> Config:
    """The config that is selected; BSP, which needs no room, where the workspace has too little of
    it: a layer that was compiled for any M may see a larger one than it was sized for."""
    needed, held = host.payload_bytes(shape), workspace.generation_bytes
    if config.variant == "bsp" or needed <= held:
        return config
    advice = f"create it with Workspace.create(group, {needed})"
    log_once(
        f"{shape.op} runs BSP where a generation of the workspace is too small",
        f"{shape.op} runs BSP for {shape}: it needs {needed} bytes of {held}; {advice}",
    )
    return fallback(shape)


def _apart(make: Callable[[], Any], device: torch.device) -> Any:
    """`make()`, on a GPU in a thread of its own, on this one's stream. Buffers that a plan asks for
    stay, and what the thread that warms up a CUDA graph of torch.compile allocates goes to a pool
    that later graphs overwrite (`_use_cuda_memory_pool_manager` in cudagraph_trees.py of
    torch/_inductor).
    """
    if device.type != "cuda":
        return make()
    stream = torch.cuda.current_stream(device)

    def run() -> Any:
        with torch.cuda.stream(stream):
            return make()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


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


@explained
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
    """Attention of one token of each sequence over all ranks' parts of its cache, by the config
    that `select_kernel` names for this shape.

    q: [batch, q_heads, head_dim], the same on every rank; k and v: this rank's cache, [batch,
    kv_len, kv_heads, head_dim] or, with `table`, pages; lengths: int32 [batch], tokens of each
    sequence here, 0 to kv_len. fp16 or bf16. output "all": [batch, q_heads, head_dim] on every
    rank; "heads": this rank's heads. `mode`, the first call, `tftune.bind` and torch.compile as
    above. `facts`: what the host knows of this rank's lengths; the config follows them, in plans of
    its own (under torch.compile there is one plan, and they are refused). Raises ValueError where
    operands do not fit.

    Lengths are in device memory. The first call of a shape outside a capture reads them, and every
    call with TFTUNE_CHECK=1. Unchecked lengths above kv_len are undefined: the call reads past the
    sequence and, with pages, past the table. Unchecked negative lengths act as 0.

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
    _refuse_gradient("flash_decode", "train with torch's attention", q, k, v)
    if torch.compiler.is_compiling() and facts is not None:
        raise ValueError("facts choose among plans, and a compiled graph has one; leave it out")
    if facts is None and _dispatched(q):
        result = traced_flash_decode(q, k, v, lengths, workspace.handle, table, output, mode)
        return result if out is None else out.copy_(result)
    if q.dim() == 3 and not q.shape[0]:
        checks.check_empty("flash_decode", workspace)
        ranks = workspace.world if output == "heads" else 1
        return _no_sequence((0, q.shape[1] // ranks, q.shape[2]), q, out)
    words = (
        (lengths.shape, lengths.dtype)
        if table is None
        else (lengths.shape, lengths.dtype, table.shape, table.dtype)
    )
    key: tuple[Any, ...] = (
        tftune._default, "flash_decode", q.shape, k.shape, v.shape, words, q.dtype, output, mode,
    )  # fmt: skip
    config = None
    if facts is not None:
        shape = decode_host.shape_of(q, k, v, lengths, table, workspace, output)
        config = tftune.select_kernel(shape, mode, facts).config
        key = (*key[:-1], config, mode)
    known = workspace.calls.get(key)
    if known is None or not decode_host.placed_well(q, k, v, lengths, table, workspace):
        _check_words(FlashDecode, mode, output=output)
        shape = decode_host.shape_of(q, k, v, lengths, table, workspace, output)
        if not (q.is_cuda and torch.cuda.is_current_stream_capturing()):
            checks.check_lengths(lengths, shape)  # where all else is checked and compiled, too
        known = _prepared(decode_host, shape, key, workspace, config=config)
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


@explained
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
    """Attention of all tokens of each sequence, on this GPU's heads alone, by the config that
    `select_kernel` names for this shape.

    q: [batch, seq_len, q_heads, head_dim]; k and v: [batch, seq_len, kv_heads, head_dim]; fp16 or
    bf16. causal "yes": a token attends to itself and to those before it. Any workspace will do:
    nothing is exchanged. `mode`, the first call, `tftune.bind` and torch.compile as in
    `all_gather_gemm`. torch's attention has no argument for its output: where it is selected, `out`
    costs a copy. Raises ValueError where operands do not fit.

    2 sequences of 16 tokens, 8 query heads on 2 of this rank::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        options = {"dtype": torch.float16, "device": workspace.device}
        q = torch.randn(2, 16, 8, 64, **options)
        k, v = torch.randn(2, 2, 16, 2, 64, **options)
        out = tftune.ops.flash_prefill(q, k, v, workspace)
        assert out.shape == q.shape
    """
    _refuse_gradient("flash_prefill", "train with torch's attention", q, k, v)
    if _dispatched(q):
        result = traced_flash_prefill(q, k, v, workspace.handle, causal, mode)
        return result if out is None else out.copy_(result)
    if q.dim() == 4 and not (q.shape[0] and q.shape[1]):
        return _no_sequence(tuple(q.shape), q, out)
    key = (tftune._default, "flash_prefill", q.shape, k.shape, v.shape, q.dtype, causal, mode)
    known = workspace.calls.get(key)
    if known is None or not prefill_host.placed_well(q, k, v, workspace):
        _check_words(FlashPrefill, mode, causal=causal)
        shape = prefill_host.shape_of(q, k, v, workspace, causal)
        known = _prepared(prefill_host, shape, key, workspace)
    plan, size = known
    return prefill_host.run(plan, q, k, v, None if out is None else check_out(out, size, q))


@torch.library.custom_op("tftune::flash_prefill", mutates_args=())
def traced_flash_prefill(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, workspace: str, causal: str, mode: str
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and the result is new."""
    return flash_prefill(q, k, v, Workspace.of(workspace), causal=causal, mode=mode)


@traced_flash_prefill.register_fake
def _(q: torch.Tensor, k: Any, v: Any, workspace: str, causal: str, mode: str) -> torch.Tensor:
    return q.new_empty(q.shape)


@explained
def all_reduce(
    x: torch.Tensor,
    workspace: Workspace,
    *,
    residual: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    eps: float | None = None,
    mode: str = "graph",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum of x over ranks, [m, n]; with residual and weight, the normalised rows and the new
    residual, [2, m, n], by the config that `select_kernel` names for this shape. eps: of RMSNorm,
    1e-6 where it is None.

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
    if _dispatched(x, residual, weight, casts=False):
        words = (mode,) if eps is None else (mode, eps)  # a constant would be a symbol of the graph
        result = traced_all_reduce(x, workspace.handle, residual, weight, *words)
        return result if out is None else out.copy_(result)
    given = [operand for operand in (residual, weight) if operand is not None]
    if x.dim() == 2 and not x.shape[0]:
        checks.check_empty("all_reduce", workspace)
        size = x.shape if residual is None else (2, *x.shape)
        return x.new_empty(size) if out is None else check_out(out, tuple(size), x)
    sizes = (t.shape for t in given)
    key = (tftune._default, "all_reduce", x.shape, *sizes, x.dtype, workspace.holds(x), eps, mode)
    known = workspace.calls.get(key)
    if known is None or not reduce_host.placed_well(x, residual, weight, workspace):
        check_word("mode", mode, MODES)
        shape = reduce_host.shape_of(x, residual, weight, workspace)
        known = _prepared(reduce_host, shape, key, workspace, reduce_host.checked_eps(eps))
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
    eps: float = EPSILON,
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and the result is new."""
    on = Workspace.of(workspace)
    return all_reduce(x, on, residual=residual, weight=weight, eps=eps, mode=mode)


@traced_all_reduce.register_fake
def _(
    x: torch.Tensor, workspace: str, residual: Any, weight: Any, mode: str, eps: float = EPSILON
) -> torch.Tensor:
    return x.new_empty(x.shape if residual is None else (2, *x.shape))


@explained
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
    if _dispatched(a, b):
        c = traced_gemm_reduce_scatter(a, b, workspace.handle, b_layout, mode)
        return c if out is None else out.copy_(c)
    return _gemm_reduction(
        GemmReduceScatter, gemm_reduce_scatter_host, a, b, workspace, b_layout, mode, out
    )


@explained
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
    if _dispatched(a, b):
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
    if a.dim() == 2 and not a.shape[0]:
        checks.check_empty(kind.op, workspace)
        return _empty(a, b, b_layout, out)
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


@explained
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
    """The attention over all ranks' parts of a KV cache, from each rank's own, by the config that
    `select_kernel` names for this shape: [batch, own heads, head_dim].

    Operands as in the operation's host; `mode`, the first call, `tftune.bind` and torch.compile as
    in `all_gather_gemm`. Two micro-batches in flight need a workspace each. Raises ValueError where
    operands do not fit.

    Behind an engine's own attention over this rank's tokens::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        o = torch.randn(2, 8, 64, dtype=torch.bfloat16, device=workspace.device)
        lse = torch.randn(2, 8, device=workspace.device)
        merged = tftune.ops.merge_attention(o, lse, workspace)
        assert merged.shape == (2, 8 // workspace.world, 64)
    """
    _refuse_gradient("merge_attention", "merge with torch.distributed's operators", o, lse)
    if _dispatched(o, casts=False):
        result = traced_merge_attention(o, lse, workspace.handle, output, base, mode)
        return result if out is None else out.copy_(result)
    if o.dim() == 3 and not o.shape[0]:
        checks.check_empty("merge_attention", workspace)
        ranks = workspace.world if output == "heads" else 1
        return _no_sequence((0, o.shape[1] // ranks, o.shape[2]), o, out)
    key = (tftune._default, "merge_attention", o.shape, o.dtype, output, base, mode)
    known = workspace.calls.get(key)
    if known is None or lse.shape != o.shape[:2] or not merge_host.placed_well(o, lse, workspace):
        _check_words(MergeAttention, mode, output=output, base=base)
        shape = merge_host.shape_of(o, lse, workspace, output, base)
        known = _prepared(merge_host, shape, key, workspace)
    plan, size = known
    result = o.new_empty(size) if out is None else check_out(out, size, o)
    plan(o, lse, result)
    return result


@torch.library.custom_op("tftune::merge_attention", mutates_args=())
def traced_merge_attention(
    o: torch.Tensor, lse: torch.Tensor, workspace: str, output: str, base: str, mode: str
) -> torch.Tensor:
    """The same as an operator: `workspace` is the handle of one, and the result is new."""
    ranks = Workspace.of(workspace)
    return merge_attention(o, lse, ranks, output=output, base=base, mode=mode)


@traced_merge_attention.register_fake
def _(
    o: torch.Tensor, lse: torch.Tensor, workspace: str, output: str, base: str, mode: str
) -> torch.Tensor:
    ranks = Workspace.of(workspace).world if output == "heads" else 1
    return o.new_empty(o.shape[0], o.shape[1] // ranks, o.shape[2])


gradients.register()
casts.register()
