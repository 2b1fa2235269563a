"""Post-grad graphs drawn at random: collectives of all kinds around GEMMs and norms, of tensors of
0 to 5 dimensions, many dtypes, strides and places, with views, slices and dead ends between."""

from __future__ import annotations

import operator
import random
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

aten, prims, c10d = torch.ops.aten, torch.ops.prims, torch.ops._c10d_functional
WORLD = 2
HALF, BRAIN, WIDE = torch.float16, torch.bfloat16, torch.float32
ODD_DTYPES = (WIDE, torch.int32, torch.bool, torch.complex64, torch.float64, BRAIN)
CAST = prims.convert_element_type.default


class Drawn:
    """One graph, in the making. The same seed draws the same graph."""

    def __init__(self, seed: int) -> None:
        self.random, self.seed = random.Random(seed), seed
        self.fakes = FakeTensorMode()
        self.graph = Graph()
        self.given: list[Node] = []
        self.later: list[Node] = []
        """Tensors that are waited for at the end, if at all."""
        self.results: list[Node] = []

    def module(self) -> GraphModule:
        for _ in range(self.random.randint(1, 3)):
            self.random.choice([self.column, self.row, self.row, self.alone, self.alone])()
            self.noise()
        for node in self.later:
            if self.likely(0.7):
                self.results.append(self.call(c10d.wait_tensor.default, node))
        kept = [node for node in self.results if self.likely(0.9)] or self.results[:1]
        self.graph.output(tuple(kept))
        return GraphModule(torch.nn.Module(), self.graph)

    def likely(self, share: float) -> bool:
        return self.random.random() < share

    def call(self, target: Any, *arguments: Any, **named: Any) -> Node:
        read = lambda one: one.meta["val"]  # noqa: E731
        with self.fakes:
            value = target(*map_arg(arguments, read), **map_arg(named, read))
        node = self.graph.call_function(target, arguments, named)
        node.meta["val"] = value
        return node

    def given_(self, *sizes: int, dtype: Any = None) -> Node:
        """An input, sometimes one that no kernel can read where it lies."""
        dtype = dtype or (HALF if self.likely(0.85) else self.random.choice(ODD_DTYPES))
        strides, stride, offset = [], 1, 0
        for size in reversed(sizes):
            strides.insert(0, stride)
            stride *= max(size, 1)
        kind = self.random.random()
        if kind < 0.06 and len(sizes) > 1:
            strides[:-1] = [2 * one for one in strides[:-1]]
        elif kind < 0.1 and len(sizes) > 1:
            strides = [1, sizes[0]] if len(sizes) == 2 else strides
        elif kind < 0.14:
            offset = self.random.choice((1, 4, 8))
        span = 1 + offset + sum((size - 1) * one for size, one in zip(sizes, strides, strict=True))
        with self.fakes:
            tensor = torch.empty(max(span, 1), dtype=dtype).as_strided(sizes, strides, offset)
        with self.graph.inserting_after(self.given[-1] if self.given else None):
            node = self.graph.placeholder(f"in{len(self.given)}")
        node.meta["val"] = tensor
        self.given.append(node)
        return node

    def group(self) -> str:
        return "0" if self.likely(0.93) else "dp"

    def wait(self, node: Node) -> Node:
        """The wait of a collective: mostly behind it, sometimes twice, or behind other nodes."""
        if self.likely(0.2):
            self.noise()
        found = self.call(c10d.wait_tensor.default, node)
        if self.likely(0.03):
            self.results.append(self.call(c10d.wait_tensor.default, node))
        return found

    def gather(self, x: Node) -> Node:
        return self.wait(self.call(c10d.all_gather_into_tensor.default, x, WORLD, self.group()))

    def reduce(self, x: Node) -> Node:
        how = "sum" if self.likely(0.9) else self.random.choice(("avg", "max"))
        if x.meta["val"].is_complex():
            how = "sum"
        return self.wait(self.call(c10d.all_reduce.default, x, how, self.group()))

    def scatter(self, x: Node) -> Node:
        how = "sum" if self.likely(0.9) else "avg"
        op = c10d.reduce_scatter_tensor.default
        return self.wait(self.call(op, x, how, WORLD, self.group()))

    def noise(self) -> None:
        """Something between: work, a collective in flight, a write in place, a dead end."""
        for _ in range(self.random.randint(0, 2)):
            x = self.given_(8, 16, dtype=HALF)
            kind = self.random.randrange(8)
            if kind == 0:
                self.later.append(self.call(c10d.all_reduce.default, x, "sum", "dp"))
            elif kind == 1:
                both = self.call(c10d.all_reduce_coalesced.default, [x, x], "sum", self.group())
                self.later += [self.call(operator.getitem, both, index) for index in range(2)]
            elif kind == 2:
                words = [4, 4], [4, 4], self.group()
                self.later.append(self.call(c10d.all_to_all_single.default, x, *words))
            elif kind == 3:
                self.later.append(self.call(c10d.broadcast.default, x, 0, self.group()))
            elif kind == 4:
                written = self.call(aten.clone.default, x)
                self.later.append(self.call(c10d.all_reduce_.default, written, "sum", "0"))
            elif kind == 5 and self.likely(0.3):
                target = self.random.choice(self.given)
                self.results.append(self.call(aten.mul_.Scalar, target, True))
                if target.meta["val"].dtype is not torch.bool:
                    self.call(aten.mul_.Scalar, target, 2)
            elif kind == 6 and self.likely(0.3):
                self.later.append(self.call(c10d.isend.default, x, 1, 0, "0"))
            else:
                self.call(aten.add.Tensor, x, 1)

    def viewed(self, x: Node, columns: int) -> Node:
        """Views and a cast, which end in rows of so many columns."""
        sizes = list(x.meta["val"].shape)
        if self.likely(0.3):
            x = self.call(aten.reshape.default, x, [1, *sizes])
        if self.likely(0.15):
            x = self.call(CAST, x, self.random.choice((HALF, BRAIN, WIDE)))
        return self.call(aten.reshape.default, x, [-1, columns])

    def times(self, a: Node, n: int) -> Node:
        """The rows times a weight, [K, N], or [N, K] transposed; with a bias, sometimes."""
        value = a.meta["val"]
        k, dtype = value.shape[1], value.dtype
        if self.likely(0.6):
            b = self.call(aten.permute.default, self.given_(n, k, dtype=dtype), [1, 0])
        else:
            b = self.given_(k, n, dtype=dtype)
        if self.likely(0.15) and dtype is not torch.bool:
            return self.call(aten.addmm.default, self.given_(n, dtype=dtype), a, b)
        return self.call(aten.mm.default, a, b)

    def column(self) -> None:
        """A gather before GEMMs: along rows, along columns, or of some other shape."""
        k = self.random.choice((16, 32))
        sizes = self.random.choice(
            [(8, k), (2, 4, k), (1, 8, k), (2, 2, 2, k), (1, k), (8 * k,), (0, k)]
        )
        x = self.given_(*sizes)
        w, columns = self.gather(x), k
        dims = len(sizes)
        if dims > 1 and self.likely(0.4):
            pieces = self.call(aten.split.Tensor, w, sizes[0])
            if isinstance(pieces.meta["val"], list | tuple) and len(pieces.meta["val"]) == WORLD:
                picked = [self.call(operator.getitem, pieces, index) for index in range(WORLD)]
                dim = self.random.randrange(-1, dims)
                if self.likely(0.1):
                    picked.reverse()
                w = self.call(aten.cat.default, picked, dim)
                columns = w.meta["val"].shape[-1]
        if self.likely(0.1):
            columns //= 2
        a = self.viewed(w, columns)
        if a.meta["val"].dtype in (torch.bool, torch.int32):
            a = self.call(CAST, a, HALF)
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            self.results.append(self.times(a, self.random.choice((16, 24, 64))))
        if self.likely(0.1):
            self.results.append(w)
        if self.likely(0.1):
            self.results.append(self.gather(x))

    def row(self) -> None:
        """A GEMM before a reduce-scatter or an all-reduce, and a norm behind that, sometimes."""
        n, k = self.random.choice((16, 24, 64)), self.random.choice((16, 32))
        dtype = HALF if self.likely(0.85) else self.random.choice((WIDE, BRAIN))
        a = self.given_(8, k, dtype=dtype)
        if self.likely(0.2):
            a = self.call(aten.slice.Tensor, self.given_(8, 2 * k, dtype=dtype), 1, k, 2 * k)
        c = self.times(a, n)
        if self.likely(0.1):
            self.results.append(c)
        odd = self.random.choice([[2, 4, n], [8, n // 2, 2], [1, 8, n], [8 * n]])
        shape = [8, n] if self.likely(0.6) else odd
        x = self.call(aten.reshape.default, c, shape)
        if self.likely(0.1):
            x = self.call(CAST, x, WIDE)
        if self.likely(0.5) and shape[0] % WORLD == 0:
            self.results.append(self.scatter(x))
        elif self.likely(0.3):
            self.turned(x)
        else:
            self.normed(self.reduce(x))

    def turned(self, x: Node) -> None:
        """A reduce-scatter along another dimension than the first, by split and cat."""
        sizes = x.meta["val"].shape
        dim = self.random.randrange(len(sizes))
        if sizes[dim] % WORLD:
            return self.normed(self.reduce(x))
        pieces = self.call(aten.split.Tensor, x, sizes[dim] // WORLD, dim)
        picked = [self.call(operator.getitem, pieces, index) for index in range(WORLD)]
        return self.results.append(self.scatter(self.call(aten.cat.default, picked)))

    def alone(self) -> None:
        """An all-reduce of any tensor; behind it a norm, sometimes."""
        dims = self.random.randint(0, 5)
        sizes = [
            self.random.choice((0, 1, 2, 4) if self.likely(0.3) else (2, 4)) for _ in range(dims)
        ]
        if dims > 1:
            sizes[-1] = self.random.choice((8, 16, 64, 6))
        self.normed(self.reduce(self.given_(*sizes)))

    def normed(self, total: Node) -> None:
        sizes, dtype = list(total.meta["val"].shape), total.meta["val"].dtype
        if self.likely(0.3) or not sizes or 0 in sizes or not dtype.is_floating_point:
            return self.results.append(total)
        if self.likely(0.2) and sizes[-1] % 2 == 0:
            sizes = [*sizes[:-1], 2, sizes[-1] // 2]
            total = self.call(aten.reshape.default, total, sizes)
        residual = self.given_(*sizes, dtype=dtype)
        if self.likely(0.3):
            wide = self.given_(*sizes[:-1], 2 * sizes[-1], dtype=dtype)
            residual = self.call(aten.slice.Tensor, wide, -1, sizes[-1], 2 * sizes[-1])
        pair = (total, residual) if self.likely(0.5) else (residual, total)
        added = self.call(aten.add.Tensor, *pair)
        if self.likely(0.8):
            self.results.append(added)
        x = self.call(CAST, added, WIDE)
        squares = self.call(aten.pow.Tensor_Scalar, x, 2)
        mean = self.call(aten.mean.dim, squares, [-1], True)
        root = self.call(aten.rsqrt.default, self.call(aten.add.Scalar, mean, 1e-5))
        out = self.call(aten.mul.Tensor, x, root)
        if self.likely(0.2):
            self.noise()
        kind = self.random.choice((dtype, dtype, dtype, WIDE))
        weight = self.given_(sizes[-1] if self.likely(0.9) else 1, dtype=kind)
        if self.likely(0.15):
            weight = self.call(aten.add.Tensor, weight, 1)
        if self.likely(0.5):
            out = self.call(CAST, out, dtype)
        out = self.call(aten.mul.Tensor, out, weight)
        self.results.append(self.call(CAST, out, dtype))


def values(module: GraphModule, seed: int) -> list[list[Any]]:
    """Real inputs of every rank, which lie as the fake ones do: small whole numbers and halves, so
    that sums in another order are the same."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for node in module.graph.nodes:
        if node.op != "placeholder":
            continue
        like = node.meta["val"]
        span = like.storage_offset() + 1 + sum(
            max(size - 1, 0) * one for size, one in zip(like.shape, like.stride(), strict=True)
        )  # fmt: skip
        of_ranks = []
        for _ in range(WORLD):
            whole = torch.randint(-2, 3, (int(span),), generator=generator)
            if like.dtype is torch.bool:
                whole = whole > 0
            of_ranks.append(
                (whole.to(like.dtype)).as_strided(like.shape, like.stride(), like.storage_offset())
            )
        found.append(of_ranks)
    return found
