"""Collectives in flight: which nodes of a graph begin one, what waits for it, and how none is left
in flight beside a kernel that waits for other ranks.

Nothing is listed by name but point-to-point: a collective is an operator whose schema has a group,
and whatever a `wait_tensor` waits for is in flight until then.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Graph, GraphModule, Node

aten = torch.ops.aten
WAIT = torch.ops._c10d_functional.wait_tensor.default
ASYNCHRONOUS = ("_c10d_functional", "_c10d_functional_autograd")
"""Namespaces whose collectives run beside the stream until a `wait_tensor`; those of others, such
as `symm_mem`, run in the stream."""
POINT_TO_POINT = ("isend", "irecv", "batch_p2p_ops")
GROUPS = ("group_name", "process_group")
"""What the group's argument is called."""
ALIASES = {
    operator.getitem,
    aten.reshape.default,
    aten.view.default,
    aten._unsafe_view.default,
    aten.alias.default,
}
"""What may stand between a collective and its wait."""


def operator_of(node: Node) -> OpOverload | None:
    """The operator that a node calls; of one that torch made functional, the one within."""
    target: Any = node.target
    if isinstance(target, HigherOrderOperator) and node.args:
        target = node.args[0]
    return target if isinstance(target, OpOverload) and node.op == "call_function" else None


def is_collective(node: Node) -> bool:
    """Whether a node is a collective of any kind, point-to-point included, and none of tftune."""
    op = operator_of(node)
    if op is None or op.namespace == "tftune":
        return False
    return any(argument.name in GROUPS for argument in op._schema.arguments)


def is_kernel(node: Node) -> bool:
    """Whether a node is an operator of tftune, or holds a graph that has one."""
    op = operator_of(node)
    if op is not None:
        return op.namespace == "tftune"
    if not isinstance(node.target, HigherOrderOperator):
        return False
    module = node.graph.owning_module
    given = (n for n in node.all_input_nodes if n.op == "get_attr")
    inner = (getattr(module, str(n.target), None) for n in given)
    return any(
        is_kernel(each)
        for graph in inner
        if isinstance(graph, GraphModule)
        for each in graph.graph.nodes
    )


def _written(node: Node) -> Iterator[Node]:
    """The tensors that a collective changes in place."""
    if (op := operator_of(node)) is None or op is not node.target:
        return
    for index, argument in enumerate(op._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given: Any = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
        yield from (one for one in (given if isinstance(given, list | tuple) else [given])
                    if isinstance(one, Node))  # fmt: skip


def flights(graph: Graph) -> dict[Node, list[Node]]:
    """Each node that begins a collective, with the nodes that wait for it: none where one of its
    tensors is not waited for. A tensor that another graph began to fill is begun by its
    placeholder."""
    begun: dict[Node, list[Node]] = {}
    filled_by: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.target is WAIT:
            origin = _through(node.args[0])
            begun.setdefault(filled_by.get(origin, origin), []).append(node)
        elif is_collective(node) and _is_asynchronous(node):
            begun[node] = []
            filled_by.update((_through(one), node) for one in _written(node))
    return {start: waits if _all_end(start, waits) else [] for start, waits in begun.items()}


def _all_end(start: Node, waits: list[Node]) -> bool:
    """Whether each tensor of a collective has its wait: one of several may have none."""
    held = start.meta.get("val")
    if not isinstance(held, list | tuple):
        return True
    picks = {index for index, one in enumerate(held) if isinstance(one, torch.Tensor)}
    return picks <= {_pick(wait) for wait in waits}


def _pick(wait: Node) -> Any:
    """Which of several tensors is waited for."""
    node: Any = wait.args[0]
    while node.target in ALIASES and node.target is not operator.getitem:
        node = node.args[0]
    return node.args[1] if node.target is operator.getitem else None


def _through(node: Any) -> Node:
    while node.target in ALIASES:
        node = node.args[0]
    return node  # type: ignore[no-any-return]


def _is_asynchronous(node: Node) -> bool:
    op = operator_of(node)
    return op is not None and (op.namespace in ASYNCHRONOUS or _is_work(node))


def _is_work(node: Node) -> bool:
    """Whether it is one of `torch.ops.c10d`, whose end only a handle outside the graph tells."""
    op = operator_of(node)
    if op is None or op.namespace != "c10d":
        return False
    names = [argument.name for argument in op._schema.arguments]
    index = names.index("async_op") if "async_op" in names else len(node.args)
    return bool(node.args[index] if index < len(node.args) else node.kwargs.get("async_op", True))


def _in_flight(graph: Graph) -> Iterator[tuple[Node, dict[Node, list[Node]]]]:
    """Each node, and the collectives in flight before it, each with the waits that are to come. Who
    lands some of them takes them out."""
    begun = flights(graph)
    flying: dict[Node, list[Node]] = {}
    for node in list(graph.nodes):
        yield node, flying
        if node in begun:
            flying[node] = list(begun[node])
        elif node.target is WAIT:
            for start in [start for start, waits in flying.items() if node in waits]:
                flying[start].remove(node)
                if not flying[start]:
                    del flying[start]


def why_blocked(graph: Graph, kernel: Node) -> str | None:
    """Why no kernel may run at this place, whatever waits come before it, or None. What one rank
    sends another may receive behind the kernel: to wait for it first would never end."""
    flying = next(flying for node, flying in _in_flight(graph) if node is kernel)
    for start in flying:
        if _is_work(start):
            return f"{start.name} runs beside it, and nothing in the graph waits for its end"
        op = operator_of(start)
        if op is not None and op._opname in POINT_TO_POINT:
            return f"{start.name} sends or receives beside it, and ranks may differ in their order"
    return None


def settle(graph: Graph, wait_for: Any) -> None:
    """Let no collective be in flight beside an operator of tftune: a kernel that waits for other
    ranks could hold the units which that collective needs there. Where one was begun before, its
    waits come first; `wait_for(start)` makes a new one where they cannot."""
    passed: set[Node] = set()
    for node, flying in _in_flight(graph):
        if is_kernel(node):
            for start, waits in flying.items():
                _land(node, start, waits, passed, wait_for)
            flying.clear()
        passed.add(node)


def _land(kernel: Node, start: Node, waits: list[Node], passed: set[Node], wait_for: Any) -> None:
    """Waits of one collective before a kernel, with what picks their tensors."""
    chains = [_chain(wait, passed) for wait in waits]
    known = passed.union(*chains)
    if not waits or any(not known.issuperset(node.all_input_nodes) for node in known - passed):
        with kernel.graph.inserting_before(kernel):
            wait_for(start)
        return
    for wait in (node for chain in chains for node in reversed(chain)):
        if wait not in passed:
            kernel.prepend(wait)
            passed.add(wait)


def _chain(wait: Node, passed: set[Node]) -> list[Node]:
    """A wait and the aliases before it that come behind the kernel."""
    chain, node = [wait], wait.args[0]
    while isinstance(node, Node) and node.target in ALIASES and node not in passed:
        chain.append(node)
        node = node.args[0]
    return chain
