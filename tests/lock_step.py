"""A post-grad graph run for all ranks in one process, node by node: collectives, and operators of
tftune, are stand-ins that see every rank's operands. What a kernel refuses is refused here, too,
and no operator of tftune may begin while a collective is in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from tftune.graph_pass import flight

Ranks = list[Any]
"""A value of every rank."""


def run(module: GraphModule, inputs: list[Ranks]) -> Ranks:
    """What the graph returns on each rank. Inputs are cloned with their strides and places."""
    world = len(inputs[0])
    held: dict[Node, Ranks] = {}
    flying: dict[int, str] = {}
    given = iter(inputs)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            held[node] = [_alike(one) for one in next(given)]
        elif node.op == "get_attr":
            held[node] = [getattr(module, node.target)] * world
        else:
            calls = [
                map_arg((node.args, node.kwargs), lambda one, r=rank: held[one][r])
                for rank in range(world)
            ]
            if node.op == "output":
                return [arguments[0] for arguments, _ in calls]
            held[node] = _call(node, calls, flying)
    raise ValueError("the graph has no output")


def _alike(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that lies as the tensor does, within its storage, too."""
    copied = tensor.new_empty(0).set_(
        tensor.untyped_storage().clone(), tensor.storage_offset(), tensor.shape, tensor.stride()
    )
    return copied


def _call(node: Node, calls: list[Any], flying: dict[int, str]) -> Ranks:
    op = flight.operator_of(node)
    if node.target is flight.WAIT:
        for (tensor,), _ in calls:
            flying.pop(_place(tensor), None)
        return [tensor for (tensor,), _ in calls]
    if flight.is_kernel(node):
        assert not flying, f"{sorted(flying.values())} in flight beside {node}"
        return KERNELS[op._opname]([arguments for arguments, _ in calls])  # type: ignore[union-attr]
    if not flight.is_collective(node):
        return [node.target(*arguments, **named) for arguments, named in calls]  # type: ignore[operator]
    results = COLLECTIVES[op._opname]([arguments for arguments, _ in calls])  # type: ignore[union-attr]
    for result in results:
        for tensor in result if isinstance(result, list) else [result]:
            if tensor.numel() and op.namespace == "_c10d_functional":  # type: ignore[union-attr]
                flying[_place(tensor)] = node.name
    return results


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _summed(tensors: Ranks, how: str) -> torch.Tensor:
    whole = torch.stack(tensors)
    if how == "max":
        return whole.amax(0)
    wide = whole.double() if whole.is_floating_point() else whole
    total = wide.sum(0)
    return (total / len(tensors) if how == "avg" else total).to(whole.dtype)


def _all_reduce(calls: Ranks) -> Ranks:
    total = _summed([one[0] for one in calls], calls[0][1])
    return [total.clone() for _ in calls]


def _all_reduce_(calls: Ranks) -> Ranks:
    total = _summed([one[0] for one in calls], calls[0][1])
    return [one[0].copy_(total) for one in calls]


def _all_gather(calls: Ranks) -> Ranks:
    return [torch.cat([one[0] for one in calls]) for _ in calls]


def _reduce_scatter(calls: Ranks) -> Ranks:
    total = _summed([one[0] for one in calls], calls[0][1])
    return [piece.clone() for piece in total.chunk(len(calls))]


def _coalesced(one: Callable[[Ranks], Ranks]) -> Callable[[Ranks], Ranks]:
    def call(calls: Ranks) -> Ranks:
        each = [
            one([(tensors[index], *words) for tensors, *words in calls])
            for index in range(len(calls[0][0]))
        ]
        return [list(of_rank) for of_rank in zip(*each, strict=True)]

    return call


def _all_to_all(calls: Ranks) -> Ranks:
    world = len(calls)
    pieces = [one[0].chunk(world) for one in calls]
    return [torch.cat([piece[rank] for piece in pieces]) for rank in range(world)]


def _broadcast(calls: Ranks) -> Ranks:
    return [calls[calls[0][1]][0].clone() for _ in calls]


COLLECTIVES: dict[str, Callable[[Ranks], Ranks]] = {
    "all_reduce": _all_reduce,
    "all_reduce_": _all_reduce_,
    "all_gather_into_tensor": _all_gather,
    "reduce_scatter_tensor": _reduce_scatter,
    "all_reduce_coalesced": _coalesced(_all_reduce),
    "all_gather_into_tensor_coalesced": _coalesced(_all_gather),
    "all_to_all_single": _all_to_all,
    "broadcast": _broadcast,
    "isend": lambda calls: [one[0] for one in calls],
}


def _check(*operands: torch.Tensor) -> None:
    """What the hosts of all operations refuse."""
    first = operands[0]
    assert first.dtype in (torch.float16, torch.bfloat16), first.dtype
    for one in operands:
        assert one.dtype is first.dtype and one.is_contiguous(), (one.dtype, one.stride())
        assert one.storage_offset() * one.itemsize % 16 == 0, one.storage_offset()


def _product(a: torch.Tensor, b: torch.Tensor, layout: str) -> torch.Tensor:
    return a.double() @ (b.t() if layout == "nk" else b).double()


def _gather_gemm(calls: Ranks) -> Ranks:
    _, b, _, shard, layout, _ = calls[0]
    for a, own, *_ in calls:
        _check(a, own)
        assert a.dim() == own.dim() == 2
    whole = torch.cat([one[0] for one in calls], 0 if shard == "m" else 1)
    return [_product(whole, one[1], layout).to(b.dtype) for one in calls]


def _gemm_sum(calls: Ranks) -> torch.Tensor:
    for a, b, *_ in calls:
        _check(a, b)
    return sum(_product(a, b, layout) for a, b, _, layout, _ in calls)  # type: ignore[return-value]


def _gemm_reduce_scatter(calls: Ranks) -> Ranks:
    return list(_gemm_sum(calls).to(calls[0][0].dtype).chunk(len(calls)))


def _gemm_all_reduce(calls: Ranks) -> Ranks:
    return [_gemm_sum(calls).to(calls[0][0].dtype) for _ in calls]


def _reduce(calls: Ranks) -> Ranks:
    total: Any = sum(one[0].double() for one in calls)
    found = []
    for x, _, residual, weight, _, *eps in calls:
        if residual is None:
            _check(x)
            found.append(total.to(x.dtype))
            continue
        _check(x, residual, weight)
        assert weight.shape == (x.shape[1],) and residual.shape == x.shape
        added = total + residual.double()
        scale = torch.rsqrt(added.square().mean(-1, keepdim=True) + (eps[0] if eps else 1e-6))
        found.append(torch.stack([added * scale * weight.double(), added]).to(x.dtype))
    return found


KERNELS: dict[str, Callable[[Ranks], Ranks]] = {
    "all_gather_gemm": _gather_gemm,
    "gemm_reduce_scatter": _gemm_reduce_scatter,
    "gemm_all_reduce": _gemm_all_reduce,
    "all_reduce": _reduce,
}
