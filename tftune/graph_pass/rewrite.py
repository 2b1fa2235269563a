"""Puts operators of tftune into a graph in the place of what was matched."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import count
from operator import attrgetter, getitem
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from tftune.graph_pass.matching import (
    COLLECTIVES,
    WAIT,
    GatherGemm,
    GemmReduce,
    Size,
    Weight,
    aten,
    prims,
    value,
)
from tftune.graph_pass.norm import Norm


def sizes(shape: Sequence[Size]) -> list[int] | None:
    """The shape as a reshape takes it without a node for its symbol; None where two sizes are
    symbolic."""
    known = [size if isinstance(size, int) else -1 for size in shape]
    return known if known.count(-1) < 2 else None


class Editor:
    """Changes one graph for the workspace of one handle, in one mode. Each new node has the fake
    value that later passes read."""

    def __init__(self, graph: Graph, handle: str, mode: str) -> None:
        self.graph, self.handle, self.mode = graph, handle, mode
        values = [node.meta.get("val") for node in graph.nodes]
        self.fakes = detect_fake_mode([v for v in values if isinstance(v, torch.Tensor)])

    def call(self, target: Any, *arguments: Any) -> Node:
        """A new node where the graph inserts."""
        node = self.graph.call_function(target, arguments)
        node.meta["val"] = self._value(node)
        return node

    def _value(self, node: Node) -> Any:
        given = map_arg(node.args, lambda one: one.meta["val"])
        named = map_arg(node.kwargs, lambda one: one.meta["val"])
        with self.fakes or nullcontext():
            return node.target(*given, **named)  # type: ignore[operator]

    def settle(self, operators: set[Any]) -> None:
        """Let no collective be in flight beside an operator of tftune: a kernel that waits for
        other ranks could hold the units which that collective needs there. Where one was begun
        before, its wait comes first."""
        begun: list[Node] = []
        for node in list(self.graph.nodes):
            if node.target in COLLECTIVES:
                begun += [user for user in node.users if user.target is WAIT]
            elif node in begun:
                begun.remove(node)
            elif node.target in operators:
                for wait in begun:
                    node.prepend(wait)
                begun.clear()

    def drop(self, node: Node) -> None:
        """Erase a node that nothing uses, and what only it used."""
        if node.users or node.op not in ("call_function", "get_attr"):
            return
        given = node.all_input_nodes
        self.graph.erase_node(node)
        for one in given:
            if one.target is WAIT or one.target in COLLECTIVES or not one.is_impure():
                self.drop(one)

    def put(self, old: Node, new: Node) -> None:
        """`new` for every use of `old`, which goes."""
        old.replace_all_uses_with(new)
        self.drop(old)

    def share(self, wait: Node, earlier: Node) -> None:
        """One gather instead of two of the same tensor."""
        self.put(wait, earlier)

    def gather_gemm(self, found: GatherGemm) -> None:
        """One GEMM with its gather. The gather stays where other nodes use it."""
        with self.graph.inserting_before(found.gemm):
            c = self._gathered(found, self._b(found.b))
            self.put(found.gemm, self._ordered(found, c, found.b.n))

    def joined(self, found: Sequence[GatherGemm], constant: bool) -> None:
        """GEMMs of one gather as one call over their weights, which are joined here: constants now,
        others at each call. In the order of the graph."""
        dim = 0 if found[0].b.layout == "nk" else 1
        columns = [one.b.n for one in found]
        with self.graph.inserting_before(found[0].gemm):
            nodes = [one.b.node for one in found]
            b = self._constant(nodes, dim) if constant else self.call(aten.cat.default, nodes, dim)
            c = self._gathered(found[0], b)
            pieces = self.call(aten.split_with_sizes.default, c, columns, 1)
            picked = [self.call(getitem, pieces, index) for index in range(len(found))]
        for one, piece in zip(found, picked, strict=True):
            with self.graph.inserting_before(one.gemm):
                self.put(one.gemm, self._ordered(one, piece, one.b.n))
        self._refresh(set(picked))

    def gemm_reduce(self, found: GemmReduce, wait: Node, target: Any) -> None:
        """A GEMM with the reduce-scatter or all-reduce of its result."""
        a = found.a
        with self.graph.inserting_before(wait):
            if found.lead != 1:
                world: Any = wait.args[0].args[2]  # type: ignore[union-attr]
                apart = self.call(
                    aten.reshape.default, a, [found.lead, world, -1, value(a).shape[1]]
                )
                turned = self.call(aten.permute.default, apart, [1, 0, 2, 3])
                a = self.call(aten.reshape.default, turned, [-1, value(a).shape[1]])
            b = self._b(found.b)
            c = self.call(target, a, b, self.handle, found.b.layout, self.mode)
            self.put(wait, self.call(aten.reshape.default, c, sizes(value(wait).shape)))

    def all_reduce(self, wait: Node, norm: Norm | None) -> None:
        """An all-reduce alone, or with the residual and the norm behind it."""
        collective: Any = wait.args[0]
        x, target = collective.args[0], torch.ops.tftune.all_reduce.default
        shape = sizes(value(wait).shape)
        with self.graph.inserting_before(wait if norm is None else norm.added):
            rows = [-1, value(x).shape[-1]]
            x = self.call(aten.reshape.default, x, rows)
            if norm is None:
                total = self.call(target, x, self.handle, None, None, self.mode)
                return self.put(wait, self.call(aten.reshape.default, total, shape))
            residual = self.call(aten.reshape.default, norm.residual, rows)
            given = residual, norm.weight, self.mode, norm.eps
            both = self.call(target, x, self.handle, *given)
            parts = [self.call(aten.select.int, both, 0, index) for index in (0, 1)]
            out, added = (self.call(aten.reshape.default, part, shape) for part in parts)
        self.put(norm.out, out)
        self.put(norm.added, added)

    def _b(self, b: Weight) -> Node:
        return self.call(aten.permute.default, b.node, [1, 0]) if b.turned else b.node

    def _gathered(self, found: GatherGemm, b: Node) -> Node:
        """C of the gathered A, its rows as the ranks have them one after the other."""
        shard: Any = found.gather.args[0]
        if found.cast is not None:
            shard = self.call(prims.convert_element_type.default, shard, found.cast)
        if value(shard).dim() != 2:
            shard = self.call(aten.reshape.default, shard, [-1, value(shard).shape[-1]])
        words = found.shard, found.b.layout, self.mode
        target = torch.ops.tftune.all_gather_gemm.default
        return self.call(target, shard, b, self.handle, *words)

    def _ordered(self, found: GatherGemm, c: Node, n: int) -> Node:
        """C with its rows in the order of the GEMM's A, and its bias."""
        if found.lead != 1:
            world: Any = found.gather.args[1]
            apart = self.call(aten.reshape.default, c, [world, found.lead, -1, n])
            turned = self.call(aten.permute.default, apart, [1, 0, 2, 3])
            c = self.call(aten.reshape.default, turned, [-1, n])
        return c if found.bias is None else self.call(aten.add.Tensor, c, found.bias)

    def _constant(self, nodes: Sequence[Node], dim: int) -> Node:
        """Constants of the graph as one more, joined now."""
        module: Any = self.graph.owning_module
        with unset_fake_temporarily():
            tensors = [attrgetter(str(node.target))(module) for node in nodes]
            whole = torch.cat([tensor.detach() for tensor in tensors], dim)
        names = (f"_tftune_joined_{index}" for index in count())
        name = next(name for name in names if not hasattr(module, name))
        module.register_buffer(name, whole)
        node = self.graph.get_attr(name)
        with self.fakes or nullcontext():
            node.meta["val"] = torch.cat([value(one) for one in nodes], dim)
        return node

    def _refresh(self, changed: set[Node]) -> None:
        """New fake values behind nodes whose strides are others than before, as far as they can be
        had: a later match must not take a slice for a whole tensor."""
        for node in self.graph.nodes:
            given = node.all_input_nodes
            known = isinstance(node.target, OpOverload) or node.target is getitem
            if not known or changed.isdisjoint(given) or any("val" not in n.meta for n in given):
                continue
            before, node.meta["val"] = node.meta.get("val"), self._value(node)
            if _strides(before) != _strides(node.meta["val"]):
                changed.add(node)


def _strides(held: Any) -> list[Any]:
    """Of every tensor that a node gives."""
    return [one.stride() if isinstance(one, torch.Tensor) else None for one in tree_leaves(held)]
