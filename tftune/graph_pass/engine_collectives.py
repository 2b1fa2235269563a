"""Collectives of serving engines, read as functional ones while the pass looks at a graph.

vLLM and SGLang register collectives of their own. Each table entry says which functional collective
does the same, so that matching knows one form only. What no kernel replaces is put back as it was.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from tftune.graph_pass.flight import WAIT, operator_of
from tftune.graph_pass.matching import GATHER, REDUCE, SCATTER, group_of, value

AUTO_FUNCTIONALIZED = "auto_functionalized"
"""How torch holds an operator that writes in place: element 0 is its result, others what it wrote.
Its second version holds views of bases, and is not read."""


@dataclass(frozen=True)
class Collective:
    """What an engine's operator exchanges. `x`: the name of the tensor that each rank gives;
    `written`: of the one that receives the result, where the operator writes in place."""

    functional: Any
    x: str = "tensor"
    written: str | None = None


COLLECTIVES: dict[str, Collective] = {
    "vllm::all_reduce": Collective(REDUCE),
    "vllm::all_gather": Collective(GATHER),
    "vllm::reduce_scatter": Collective(SCATTER),
    "sglang::outplace_all_reduce": Collective(REDUCE),
    "sglang::flashinfer_allreduce": Collective(REDUCE),
    "sglang::inplace_all_reduce": Collective(REDUCE, written="tensor"),
    "sglang::reg_all_gather_into_tensor": Collective(GATHER, "input", "output"),
    "sglang::reg_reduce_scatter_tensor": Collective(SCATTER, "input", "output"),
}
"""By the operator's qualified name. All are sums, over the group of the argument `group_name`."""


@contextmanager
def functional(
    graph: Graph, names: tuple[str, ...], group: str, world: int
) -> Iterator[dict[Node, str]]:
    """The graph with the engine's collectives of one group as functional ones with a wait each; at
    the end those that are left are the engine's again. `names`: what the engine calls the group;
    `group`: its name in torch. Yields why a collective of this group is not read."""
    unread: dict[Node, str] = {}
    restores: list[Callable[[], None]] = []
    for node in list(graph.nodes):
        op: Any = operator_of(node)
        entry = COLLECTIVES.get(op._name.partition(".")[0]) if op is not None else None
        if op is None or entry is None or group_of(node) not in names:
            continue
        given = _arguments(node, op)
        if why := _why_unread(node, op, entry, given, world):
            unread[node] = why
            continue
        result = _picks(node, op, entry)[0] if entry.written else None
        restores.append(_made_functional(node, entry, given[entry.x], result, group, world))
    try:
        yield unread
    finally:
        for restore in reversed(restores):
            restore()


def _arguments(node: Node, op: Any) -> dict[str, Any]:
    """What the operator is given, by name."""
    names = [one.name for one in op._schema.arguments]
    if op is not node.target:
        return dict(node.kwargs)
    return dict(zip(names, node.args, strict=False)) | dict(node.kwargs)


def _why_unread(
    node: Node, op: Any, entry: Collective, given: dict[str, Any], world: int
) -> str | None:
    """Why an operator of the table does another thing here than its functional form, or None."""
    if entry.written is not None:
        if getattr(node.target, "_name", None) != AUTO_FUNCTIONALIZED:
            return "it writes in place, and the graph does not say who reads that memory"
        if any(user.target is not operator.getitem for user in node.users):
            return "its results are not taken one by one"
        if (count := len(_picks(node, op, entry))) != 1:
            return f"{count} nodes take its result, and one can wait for it"
    x = given.get(entry.x)
    if not isinstance(x, Node) or not isinstance(x.meta.get("val"), torch.Tensor):
        return "the graph does not say what it exchanges"
    dim, rank = given.get("dim", 0), value(x).dim()
    if rank and dim % rank:
        return f"it exchanges along dimension {dim} of {rank}; kernels do along the first"
    ranks = given.get("world_size", world)
    return None if ranks == world else f"it is of {ranks} ranks, and its group of {world}"


def _index(op: Any, entry: Collective) -> int:
    """Which element of an auto-functionalized operator is the tensor that receives the result."""
    written = [
        one.name
        for one in op._schema.arguments
        if one.alias_info is not None and one.alias_info.is_write
    ]
    return written.index(str(entry.written)) + max(len(op._schema.returns), 1)


def _picks(node: Node, op: Any, entry: Collective) -> list[Node]:
    return [user for user in node.users if user.args[1] == _index(op, entry)]


def _made_functional(
    node: Node, entry: Collective, x: Node, picked: Node | None, group: str, world: int
) -> Callable[[], None]:
    """Change a collective into its functional form, with a wait behind it; returns what changes it
    back, where it is in the graph still."""
    target, args, kwargs, held = node.target, node.args, node.kwargs, node.meta["val"]
    graph, wait = node.graph, picked
    if wait is None:
        with graph.inserting_after(node):
            wait = graph.call_function(WAIT, (node,))
        wait.meta["val"] = held
        node.replace_all_uses_with(wait, lambda user: user is not wait)
    else:
        wait.target, wait.args = WAIT, (node,)
    given: dict[Any, tuple[Any, ...]] = {
        REDUCE: (x, "sum", group),
        GATHER: (x, world, group),
        SCATTER: (x, "sum", world, group),
    }
    node.target, node.args, node.kwargs = entry.functional, given[entry.functional], {}
    node.meta["val"] = value(wait)

    def restore() -> None:
        present = set(graph.nodes)
        if node not in present:
            return
        x_now = node.args[0]
        node.target, node.kwargs = target, {k: x_now if v is x else v for k, v in kwargs.items()}
        node.args = tuple(x_now if one is x else one for one in args)
        node.meta["val"] = held
        if picked is not None:
            index = _index(operator_of(node), entry)
            picked.target, picked.args = operator.getitem, (node, index)
        elif wait in present:
            wait.replace_all_uses_with(node)
            graph.erase_node(wait)

    return restore
