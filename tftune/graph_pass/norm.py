"""RMSNorm behind an all-reduce, as post-grad graphs hold it: decomposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from tftune.graph_pass.matching import CAST, VIEWS, argument, aten, same, value, why_misplaced

ADD, MUL = aten.add.Tensor, aten.mul.Tensor


@dataclass(frozen=True)
class Norm:
    """out = RMSNorm(added) * weight, added = residual + sum over ranks; both are results."""

    residual: Node
    weight: Node
    added: Node
    out: Node
    eps: float


def norm_after(wait: Node) -> Norm | str:
    """The norm of a sum over ranks and a residual, or why none is matched."""
    total = wait
    while len(total.users) == 1 and _user(total).target in VIEWS:
        total = _user(total)
    if len(total.users) != 1 or (added := _user(total)).target is not ADD or added.kwargs:
        return "no residual is added to it alone"
    residual = next((term for term in added.args if term is not total), None)
    if not isinstance(residual, Node) or not _alike(residual, added, total):
        return "what is added to it is no residual of its size and dtype"
    if not value(added).dim():
        return "what it is added to has no dimension"
    wide = [user for user in added.users if user.target is CAST and len(user.users) == 2]
    found = next(filter(None, map(_scaled, wide)), None)
    return "no RMSNorm follows" if found is None else _weighted(residual, added, *found)


def _user(node: Node) -> Node:
    return next(iter(node.users))


def _alike(residual: Node, added: Node, total: Node) -> bool:
    tensors = value(residual), value(added), value(total)
    return all(
        isinstance(tensor, torch.Tensor)
        and tensor.dtype is tensors[0].dtype
        and tensor.dim() == tensors[0].dim()
        and all(map(same, tensor.shape, tensors[0].shape))
        for tensor in tensors
    )


def _scaled(wide: Node) -> tuple[Node, float] | None:
    """x / sqrt(mean(x^2) + eps) of an fp32 x, with its epsilon: no step of it is used elsewhere."""
    if value(wide).dtype is not torch.float32:
        return None
    square = next((user for user in wide.users if _squares(user, wide)), None)
    steps: list[Any] = [square]
    for targets in ((aten.mean.dim,), (aten.add.Scalar, ADD), (aten.rsqrt.default,), (MUL,)):
        if steps[-1] is None or len(steps[-1].users) != 1:
            return None
        if (following := _user(steps[-1])).target not in targets or following.kwargs:
            return None
        steps.append(following)
    _, mean, plus, root, scaled = steps
    last = value(wide).dim() - 1
    dims = [dim % (last + 1) for dim in argument(mean, 1)]
    if dims != [last] or argument(mean, 2) is not True or set(scaled.args) != {wide, root}:
        return None
    if not isinstance(plus.args[1], float):
        return None
    return scaled, plus.args[1]


def _squares(node: Node, x: Node) -> bool:
    if node.target is aten.pow.Tensor_Scalar:
        return node.args == (x, 2)
    return node.target is MUL and node.args == (x, x)


def _weighted(residual: Node, added: Node, scaled: Node, epsilon: float) -> Norm | str:
    """The product with the weight, in fp32 before the rounding (torch's RMSNorm) or behind it."""
    out: Node = scaled
    weight: Any = None
    kept = torch.float32, value(added).dtype
    while (weight is None or value(out).dtype is torch.float32) and len(out.users) == 1:
        before, following = out, _user(out)
        if following.target is MUL and weight is None:
            weight = next((factor for factor in following.args if factor is not before), None)
        elif following.target is not CAST or value(following).dtype not in kept:
            break
        out = following
    if not isinstance(weight, Node) or value(out).dtype is not value(added).dtype:
        return "no weight follows its norm"
    if weight.target is CAST:
        weight = argument(weight)
    return _why_unfit(weight, added) or Norm(residual, weight, added, out, epsilon)


def _why_unfit(weight: Node, added: Node) -> str | None:
    """Why a kernel cannot read this weight, or None."""
    given, rows = weight.meta.get("val"), value(added)
    if not isinstance(given, torch.Tensor):
        return "no weight follows its norm"
    if given.dtype is not rows.dtype or given.device != rows.device:
        return f"the weight of its norm is {given.dtype} on {given.device}, its rows {rows.dtype}"
    if given.dim() != 1 or not same(given.shape[0], rows.shape[-1]):
        return f"the weight of its norm is {list(given.shape)} for rows of {rows.shape[-1]}"
    if weight.op not in ("placeholder", "get_attr"):
        return "the weight of its norm is computed in the graph"
    return why_misplaced("the weight of its norm", given)
