"""Puts operators of tftune into a graph in the place of what was matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
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

from tftune.graph_pass import flight
from tftune.graph_pass.flight import WAIT
from tftune.graph_pass.matching import (
    COLLECTIVES,
    GatherGemm,
    GemmReduce,
    Size,
    Weight,
    argument,
    aten,
    prims,
    value,
    why_misplaced,
)
from tftune.graph_pass.norm import Norm


def sizes(shape: Sequence[Size]) -> list[int] | None:
    """The shape as a reshape takes it without a node for its symbol; None where two sizes are
    symbolic."""
    known = [size if isinstance(size, int) else -1 for size in shape]
    return known if known.count(-1) < 2 else None


class Unfit(Exception):  # no error: the sentence says why a replacement is none
    """A replacement turned out to be impossible, for the reason that it says."""


class Editor:
    """Changes one graph for the workspace of one handle, in one mode. Each new node has the fake
    value that later passes read. Replacements are made within `whole`: all of one, or nothing."""

    def __init__(self, graph: Graph, handle: str, mode: str) -> None:
        self.graph, self.handle, self.mode = graph, handle, mode
        self.made: list[Node] = []
        self.puts: list[tuple[Node, Node]] = []
        values = [node.meta.get("val") for node in graph.nodes]
        self.fakes = detect_fake_mode([v for v in values if isinstance(v, torch.Tensor)])

    @contextmanager
    def whole(self) -> Iterator[None]:
        """One replacement: what it adds takes the place of what was there at the end, and goes
        where anything is raised before. Raises `Unfit` where no kernel may run at its place."""
        self.made, self.puts = [], []
        try:
            yield
            for node in self.made:
                if flight.is_kernel(node) and (why := flight.why_blocked(self.graph, node)):
                    raise Unfit(why)
            self._swap()
        except BaseException:
            for node in reversed(self.made):
                self.graph.erase_node(node)
            raise
        for old, _ in self.puts:
            self.drop(old)

    def _swap(self) -> None:
        """The new nodes for all uses of the old ones, or, where values behind them cannot be had,
        the old ones again."""
        moved = [(new, old, old.replace_all_uses_with(new)) for old, new in self.puts]
        try:
            values = self._refreshed({new for old, new in self.puts if _differ(old, new)})
        except BaseException:
            for new, old, users in reversed(moved):
                for user in users:
                    user.replace_input_with(new, old)
            raise
        for node, held in values.items():
            node.meta["val"] = held

    def call(self, target: Any, *arguments: Any, **named: Any) -> Node:
        """A new node where the graph inserts."""
        node = self.graph.call_function(target, arguments, named)
        self.made.append(node)
        node.meta["val"] = self._value(node)
        return node

    def placed(self, node: Node) -> Node:
        """The node, or a copy of it that a kernel can read."""
        if why_misplaced("it", value(node)) is None:
            return node
        return self.call(aten.clone.default, node, memory_format=torch.contiguous_format)

    def _value(self, node: Node, instead: Mapping[Node, Any] | None = None) -> Any:
        """The fake value of a node, with the values of its inputs, some of them others."""
        held = instead or {}

        def read(one: Node) -> Any:
            return held[one] if one in held else one.meta["val"]

        given, named = map_arg(node.args, read), map_arg(node.kwargs, read)
        with self.fakes or nullcontext():
            return node.target(*given, **named)  # type: ignore[operator]

    def wait_for(self, start: Node) -> None:
        """A wait for each tensor of a collective, where the graph inserts."""
        self.made, held = [], start.meta["val"]
        tensors = [start]
        if not isinstance(held, torch.Tensor):
            picks = [index for index, one in enumerate(held) if isinstance(one, torch.Tensor)]
            tensors = [self.call(getitem, start, index) for index in picks]
        for tensor in tensors:
            self.call(WAIT, tensor)

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
        """`new` for every use of `old`, which goes, at the end of what is made `whole`."""
        self.puts.append((old, new))

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
        nodes = [self._early(one.b.node) for one in found]
        with self.graph.inserting_before(found[0].gemm):
            b = self._constant(nodes, dim) if constant else self.call(aten.cat.default, nodes, dim)
            c = self._gathered(found[0], b)
            pieces = self.call(aten.split_with_sizes.default, c, columns, 1)
            picked = [self.call(getitem, pieces, index) for index in range(len(found))]
        for one, piece in zip(found, picked, strict=True):
            with self.graph.inserting_before(one.gemm):
                self.put(one.gemm, self._ordered(one, piece, one.b.n))

    def gemm_reduce(self, found: GemmReduce, wait: Node, target: Any) -> None:
        """A GEMM with the reduce-scatter or all-reduce of its result."""
        a = found.a
        with self.graph.inserting_before(wait):
            if found.lead != 1:
                a = self._turned(a, found.lead, argument(argument(wait), 2), value(a).shape[1])
            b = self._b(found.b)
            c = self.call(target, a, b, self.handle, found.b.layout, self.mode)
            self.put(wait, self.call(aten.reshape.default, c, sizes(value(wait).shape)))

    def all_reduce(self, wait: Node, norm: Norm | None) -> None:
        """An all-reduce alone, or with the residual and the norm behind it."""
        x, target = argument(argument(wait)), torch.ops.tftune.all_reduce.default
        result = value(wait if norm is None else norm.out)
        shape, rows = sizes(result.shape), [-1, result.shape[-1]]
        weight = None if norm is None else self._early(norm.weight)
        with self.graph.inserting_before(wait if norm is None else norm.at):
            x = self.call(aten.reshape.default, x, rows)
            if norm is None:
                total = self.call(target, x, self.handle, None, None, self.mode)
                return self.put(wait, self.call(aten.reshape.default, total, shape))
            residual = self.placed(self.call(aten.reshape.default, norm.residual, rows))
            given = residual, weight, self.mode, norm.eps
            both = self.call(target, x, self.handle, *given)
            parts = [self.call(aten.select.int, both, 0, index) for index in (0, 1)]
            out, added = (self.call(aten.reshape.default, part, shape) for part in parts)
        self.put(norm.out, out)
        if norm.added is not None:
            self.put(norm.added, added)

    def _early(self, node: Node) -> Node:
        """A node that depends on nothing, before all that could need it."""
        if node.op == "get_attr":
            next(iter(self.graph.nodes)).prepend(node)
        return node

    def _b(self, b: Weight) -> Node:
        return self.call(aten.permute.default, b.node, [1, 0]) if b.turned else b.node

    def _gathered(self, found: GatherGemm, b: Node) -> Node:
        """C of the gathered A, its rows as the ranks have them one after the other."""
        shard = argument(found.gather)
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
            c = self._turned(c, argument(found.gather, 1), found.lead, n)
        return c if found.bias is None else self.call(aten.add.Tensor, c, found.bias)

    def _turned(self, node: Node, first: Size, second: Size, columns: Size) -> Node:
        """Rows [first, second, rest] in the order [second, first, rest]."""
        apart = self.call(aten.reshape.default, node, [first, second, -1, columns])
        turned = self.call(aten.permute.default, apart, [1, 0, 2, 3])
        return self.call(aten.reshape.default, turned, [-1, columns])

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
        self.made.append(node)
        with self.fakes or nullcontext():
            node.meta["val"] = torch.cat([value(one) for one in nodes], dim)
        return node

    def _refreshed(self, changed: set[Node]) -> dict[Node, Any]:
        """New fake values behind nodes whose strides are others than before, as far as they can be
        had: a later match must not take a slice for a whole tensor."""
        values = {node: node.meta["val"] for node in changed}
        for node in self.graph.nodes if changed else ():
            given = node.all_input_nodes
            known = isinstance(node.target, OpOverload) or node.target is getitem
            if not known or values.keys().isdisjoint(given) or node in changed:
                continue
            if node.target is aten.as_strided.default:
                raise Unfit(f"{node.name} reads memory by strides, which would be others")
            if any("val" not in one.meta for one in given):
                continue
            held = self._value(node, values)
            if _strides(node.meta.get("val")) != _strides(held):
                values[node] = held
        return values


def _differ(old: Node, new: Node) -> bool:
    """Whether a node stands for another layout than the one that it replaces."""
    return _strides(old.meta.get("val")) != _strides(new.meta["val"])


def _strides(held: Any) -> list[Any]:
    """The strides of every tensor that a node gives."""
    return [one.stride() if isinstance(one, torch.Tensor) else None for one in tree_leaves(held)]
