"""Gradients of the operators of `tftune.ops`: what each saves, and what its backward computes.

G, dA and dB are the gradients of the loss by C, A and B. The backward of a gather is a
reduce-scatter and the other way round, so that dA is another operator of tftune, by the config that
`select_kernel` names for its shape. Results that are the same on every rank are taken as one
result, of which every rank has the same gradient: the convention of DTensor and of Megatron-LM,
where an all-reduce has the identity as its backward. `torch.distributed.nn.functional.all_reduce`
adds up the gradients of the ranks instead, as if each rank had a loss of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tftune.operator import LIBRARY

FLIPPED = {"nk": "kn", "kn": "nk"}
"""The layout of a weight where its transpose is multiplied."""
Gradients = tuple[torch.Tensor | None, ...]


def save_operands(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """A, where B needs a gradient, B, where A needs one, and the words of the call."""
    a, b, *ctx.words = inputs
    needs_a, needs_b, *_ = ctx.needs_input_grad
    ctx.save_for_backward(a if needs_b else None, b if needs_a else None)


def all_gather_gemm(ctx: Any, grad: torch.Tensor) -> Gradients:
    """dA = reduce_scatter(G @ B^T), and dB = A^T @ G with A gathered again, which takes one more
    exchange and no memory between forward and backward."""
    a, b = ctx.saved_tensors
    workspace, shard, b_layout, _ = ctx.words
    grad = placed(grad)
    a_grad = None if b is None else _scattered(grad, b, *ctx.words)
    if a is None:
        return a_grad, None, None, None, None, None
    gathered = torch.ops.tftune.gather(a, workspace, shard)
    return a_grad, _weight(gathered, grad, b_layout), None, None, None, None


def save_gathered(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    """The gathered A, where B needs a gradient; else as `save_operands`."""
    _, b, *ctx.words = inputs
    needs_a, needs_b, *_ = ctx.needs_input_grad
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1] if needs_b else None, b if needs_a else None)


def all_gather_gemm_with_gathered(ctx: Any, grad: torch.Tensor, _: Any) -> Gradients:
    """As `all_gather_gemm`, without a second gather."""
    gathered, b = ctx.saved_tensors
    grad = placed(grad)
    a_grad = None if b is None else _scattered(grad, b, *ctx.words)
    b_grad = None if gathered is None else _weight(gathered, grad, ctx.words[2])
    return a_grad, b_grad, None, None, None, None


def gemm_reduce_scatter(ctx: Any, grad: torch.Tensor) -> Gradients:
    """dA = gathered G @ B^T and dB = A^T @ gathered G: one gather for both."""
    a, b = ctx.saved_tensors
    workspace, b_layout, mode = ctx.words
    grad, a_grad, b_grad = placed(grad), None, None
    if a is None and b is not None:
        a_grad = torch.ops.tftune.all_gather_gemm(grad, b, workspace, "m", FLIPPED[b_layout], mode)
    elif a is not None:
        whole = torch.ops.tftune.gather(grad, workspace, "m")
        a_grad = None if b is None else whole @ _as_kn(b, FLIPPED[b_layout])
        b_grad = _weight(a, whole, b_layout)
    return a_grad, b_grad, None, None, None


def gemm_all_reduce(ctx: Any, grad: torch.Tensor) -> Gradients:
    """dA = G @ B^T and dB = A^T @ G, without an exchange: G is the same on every rank."""
    a, b = ctx.saved_tensors
    b_layout = ctx.words[1]
    a_grad = None if b is None else grad @ _as_kn(b, FLIPPED[b_layout])
    return a_grad, None if a is None else _weight(a, grad, b_layout), None, None, None


def save_normed(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """The result, whose second half is the new residual, and the weight, where rows are
    normalised."""
    *_, residual, weight, _, ctx.eps = inputs
    ctx.normed = residual is not None
    if ctx.normed:
        ctx.save_for_backward(output, weight)


def all_reduce(ctx: Any, grad: torch.Tensor) -> Gradients:
    """The identity; where rows are normalised, RMSNorm's backward in fp32, with one rounding. x and
    the residual are added, so that they have the same gradient."""
    if not ctx.normed:
        return grad, None, None, None, None, None
    result, weight = ctx.saved_tensors
    rows, out_grad = result[1].float(), grad[0].float()
    scale = torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + ctx.eps)
    unit, unit_grad = rows * scale, out_grad * weight.float()
    along = (unit * unit_grad).mean(dim=-1, keepdim=True)
    added = (scale * (unit_grad - unit * along) + grad[1].float()).to(grad.dtype)
    weight_grad = (out_grad * unit).sum(dim=0).to(weight.dtype)
    return added, None, added, weight_grad, None, None


def _refusing(name: str) -> tuple[Callable[..., None], Callable[..., Gradients]]:
    """For an operator without a backward: nothing is kept, and the backward raises RuntimeError."""

    def backward(ctx: Any, *grads: Any) -> Gradients:
        raise RuntimeError(
            f"tftune::{name} has no backward; call it under torch.no_grad(), and ask for no "
            "gradients of gradients"
        )

    return lambda ctx, inputs, output: None, backward


FORMULAS: dict[str, tuple[Callable[..., None], Callable[..., Gradients]]] = {
    "all_gather_gemm": (save_operands, all_gather_gemm),
    "all_gather_gemm_with_gathered": (save_gathered, all_gather_gemm_with_gathered),
    "gemm_reduce_scatter": (save_operands, gemm_reduce_scatter),
    "gemm_all_reduce": (save_operands, gemm_all_reduce),
    "all_reduce": (save_normed, all_reduce),
    **{
        name: _refusing(name)
        for name in ("flash_decode", "flash_prefill", "gather", "merge_attention")
    },
}
"""For each operator, what keeps operands for the backward, and the backward."""


def register() -> None:
    """Give the operators their gradients, once they are defined."""
    for name, (save, backward) in FORMULAS.items():
        operator = f"tftune::{name}"
        torch.library.register_autograd(operator, backward, setup_context=save, lib=LIBRARY)


def placed(grad: torch.Tensor) -> torch.Tensor:
    """The same values where a kernel can take them: contiguous, at a multiple of 16 bytes.
    Gradients come as views of others, and of expanded scalars."""
    grad = grad.contiguous()
    return grad.clone() if grad.storage_offset() * grad.element_size() % 16 else grad


def _scattered(
    grad: torch.Tensor, b: torch.Tensor, workspace: str, shard: str, b_layout: str, mode: str
) -> torch.Tensor:
    """This rank's part of the sum over ranks of G @ B^T: rows, or, where A is sharded along K,
    columns, as rows of the transposed sum B @ G^T."""
    scatter: Callable[..., torch.Tensor] = torch.ops.tftune.gemm_reduce_scatter
    if shard == "m":
        return scatter(grad, b, workspace, FLIPPED[b_layout], mode)
    b = b if b_layout == "kn" else b.t().contiguous()
    return scatter(b, grad, workspace, "nk", mode).t().contiguous()


def _weight(a: torch.Tensor, grad: torch.Tensor, b_layout: str) -> torch.Tensor:
    """dB of C = A @ B, in the layout of B."""
    return grad.t() @ a if b_layout == "nk" else a.t() @ grad


def _as_kn(b: torch.Tensor, b_layout: str) -> torch.Tensor:
    return b.t() if b_layout == "nk" else b
