"""RMSNorm behind an all-reduce, as post-grad graphs hold it: decomposed, or as one operator."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from tftune.graph_pass.flight import operator_of
from tftune.graph_pass.matching import CAST, VIEWS, argument, aten, same, value, why_misplaced

ADD, MUL = aten.add.Tensor, aten.mul.Tensor
NORMS, ADD_NORMS = {"vllm_ir::rms_norm"}, {"vllm_ir::fused_add_rms_norm"}
"""Operators of engines by qualified name. A norm takes rows, weight, epsilon and the part of a row
that counts (None: all). The other ones take the residual behind the rows, and give the normalised
rows and the new residual."""


@dataclass(frozen=True)
class Norm:
    """out = RMSNorm(added) * weight, added = residual + sum over ranks; both are results. Where
    nothing reads `added` it is None. `at`: the node before which one call gives both."""

    residual: Node
    weight: Node
    added: Node | None
    out: Node
    eps: float
    at: Node


def norm_after(wait: Node) -> Norm | str:
    """The norm of a sum over ranks and a residual, or why none is matched."""
    total = wait
    while len(total.users) == 1 and _user(total).target in VIEWS:
        total = _user(total)
    if len(total.users) != 1:
        return "no residual is added to it alone"
    user = _user(total)
    if _name(user) in ADD_NORMS:
        return _of_operator(user, total)
    if user.target is CAST and value(user).dtype is torch.float32 and len(user.users) == 1:
        return _added_wide(total, user)
    if user.target is not ADD or user.kwargs:
        return "no residual is added to it alone"
    added = user
    residual = next((term for term in added.args if term is not total), None)
    if not isinstance(residual, Node) or not _alike(residual, added, total):
        return "what is added to it is no residual of its size and dtype"
    if not value(added).dim():
        return "what it is added to has no dimension"
    normed = [one for one in added.users if _name(one) in NORMS and argument(one) is added]
    if normed:
        return _checked(Norm(residual, argument(normed[0], 1), added, normed[0], 0.0, added), 1)
    wide = [user for user in added.users if user.target is CAST and len(user.users) == 2]
    scaled = next(filter(None, map(_scaled, wide)), None)
    return "no RMSNorm follows" if scaled is None else _weighted(residual, added, added, *scaled)


def _name(node: Node) -> str:
    """The qualified name of the operator that a node calls, without its overload."""
    op = operator_of(node)
    return "" if op is None else op._name.partition(".")[0]


def _of_operator(node: Node, total: Node) -> Norm | str:
    """An engine's operator that adds the residual and normalises."""
    residual = argument(node, 1)
    results: dict[Any, list[Node]] = {0: [], 1: []}
    if argument(node) is not total or not isinstance(residual, Node):
        return "its norm takes it as the residual"
    for user in node.users:
        if user.target is not operator.getitem or user.args[1] not in results:
            return "the results of its norm are not taken one by one"
        results[user.args[1]].append(user)
    if len(results[0]) != 1 or len(results[1]) > 1:
        return f"{len(results[0])} and {len(results[1])} nodes take the results of its norm"
    (out,), added = results[0], next(iter(results[1]), None)
    if not _alike(residual, out, total):
        return "what is added to it is no residual of its size and dtype"
    return _checked(Norm(residual, argument(node, 2), added, out, 0.0, node), 2)


def _checked(norm: Norm, place: int) -> Norm | str:
    """A norm of an engine's operator with its epsilon, which follows the weight at this place."""
    node = norm.out if norm.out.target is not operator.getitem else norm.at
    eps, part = argument(node, place + 1), argument(node, place + 2)
    if not isinstance(norm.weight, Node) or not isinstance(eps, float):
        return "its norm has no weight, or no epsilon that is known"
    if part is not None:
        return f"its norm counts {part} elements of a row of {value(norm.out).shape[-1]}"
    return _why_unfit(norm.weight, norm.out) or replace(norm, eps=eps)


def _added_wide(total: Node, cast: Node) -> Norm | str:
    """A residual that is added in fp32 and normalised without a rounding, as engines' layers do in
    plain torch. A kernel rounds the sum, as their own kernels do."""
    wide = _user(cast)
    if wide.target is not ADD or wide.kwargs:
        return "no residual is added to it alone"
    other = next((term for term in wide.args if term is not cast), None)
    if not isinstance(other, Node) or other.target is not CAST:
        return "what is added to it is no residual of its size and dtype"
    residual = argument(other)
    if not _alike(residual, total, total) or not all(
        map(same, value(wide).shape, value(total).shape)
    ):
        return "what is added to it is no residual of its size and dtype"
    rounded = [one for one in wide.users if one.target is CAST]
    if len(rounded) > 1 or any(value(one).dtype is not value(total).dtype for one in rounded):
        return "the new residual is kept in another dtype"
    if len(wide.users) - len(rounded) != 2 or (scaled := _scaled(wide)) is None:
        return "no RMSNorm follows"
    return _weighted(residual, next(iter(rounded), None), wide, *scaled, value(total).dtype)


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


def _weighted(
    residual: Node,
    added: Node | None,
    at: Node,
    scaled: Node,
    epsilon: float,
    dtype: torch.dtype | None = None,
) -> Norm | str:
    """The product with the weight, in fp32 before the rounding (torch's RMSNorm) or behind it.
    `dtype`: of the results; None: that of `at`."""
    out: Node = scaled
    weight: Any = None
    kept = torch.float32, dtype or value(at).dtype
    while (weight is None or value(out).dtype is torch.float32) and len(out.users) == 1:
        before, following = out, _user(out)
        if following.target is MUL and weight is None:
            weight = next((factor for factor in following.args if factor is not before), None)
        elif following.target is not CAST or value(following).dtype not in kept:
            break
        out = following
    if not isinstance(weight, Node) or value(out).dtype is not kept[1]:
        return "no weight follows its norm"
    if weight.target is CAST:
        weight = argument(weight)
    return _why_unfit(weight, out) or Norm(residual, weight, added, out, epsilon, at)


def _why_unfit(weight: Node, out: Node) -> str | None:
    """Why a kernel cannot read this weight, or None."""
    given, rows = weight.meta.get("val"), value(out)
    if not isinstance(given, torch.Tensor):
        return "no weight follows its norm"
    if given.dtype is not rows.dtype or given.device != rows.device:
        return f"the weight of its norm is {given.dtype} on {given.device}, its rows {rows.dtype}"
    if given.dim() != 1 or not same(given.shape[0], rows.shape[-1]):
        return f"the weight of its norm is {list(given.shape)} for rows of {rows.shape[-1]}"
    if weight.op not in ("placeholder", "get_attr"):
        return "the weight of its norm is computed in the graph"
    return why_misplaced("the weight of its norm", given)
