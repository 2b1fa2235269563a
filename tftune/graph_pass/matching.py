"""What stands around a collective in a post-grad graph: which GEMM, and how rows lie between them.

A match is a value, and so is the reason for none. Nothing is changed here. The graphs are those of
tests/graphs/: DTensor's, as torch 2.11 and 2.13 dump them, and plain functional collectives.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten, prims, c10d = torch.ops.aten, torch.ops.prims, torch.ops._c10d_functional
GATHER = c10d.all_gather_into_tensor.default
SCATTER = c10d.reduce_scatter_tensor.default
REDUCE = c10d.all_reduce.default
WAIT = c10d.wait_tensor.default
COLLECTIVES = {GATHER: 2, SCATTER: 3, REDUCE: 2}
"""Which argument names the group."""
VIEWS = {aten.reshape.default, aten.view.default, aten._unsafe_view.default}
CAST = prims.convert_element_type.default
TRANSPOSES = {aten.permute.default, aten.t.default}
SPLITS = {aten.split.Tensor, aten.split_with_sizes.default}
BETWEEN = VIEWS | SPLITS | {CAST, aten.cat.default, operator.getitem}
"""What may stand between a collective and a GEMM."""
Size = int | torch.SymInt


def value(node: Any) -> torch.Tensor:
    """The fake tensor that a node stands for."""
    found: torch.Tensor = node.meta["val"]
    return found


def argument(node: Node, index: int = 0) -> Any:
    """One argument of a node: another node or a value, which torch's types do not tell apart."""
    return node.args[index]


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are surely equal, whatever symbols they hold."""
    return bool(statically_known_true(a == b))


@dataclass(frozen=True)
class Weight:
    """B of a GEMM as it lies in memory: `node` is [N, K] for layout "nk", [K, N] for "kn".
    `turned`: the node is B transposed, and a permute must come in between."""

    node: Node
    layout: str
    turned: bool
    n: int
    k: int


@dataclass(frozen=True)
class GatherGemm:
    """A GEMM whose A is gathered. shard "m": along rows; "k": along columns. `lead`: rows of A are
    [lead, world, rest] where those of the gathered tensor are [world, lead, rest]. `cast`: the
    dtype that A is converted to behind the gather."""

    gather: Node
    wait: Node
    gemm: Node
    a: Node
    b: Weight
    bias: Node | None
    shard: str
    lead: Size
    cast: torch.dtype | None


@dataclass(frozen=True)
class GemmReduce:
    """A GEMM whose result is added up over ranks. `lead` as in `GatherGemm`."""

    gemm: Node
    a: Node
    b: Weight
    lead: Size


def why_misplaced(name: str, tensor: torch.Tensor) -> str | None:
    """Why a kernel cannot take a tensor from where it lies, or None."""
    if not tensor.is_contiguous():
        return f"{name} is not contiguous: {list(tensor.shape)} of strides {list(tensor.stride())}"
    offset = tensor.storage_offset() * tensor.itemsize
    return None if same(offset % 16, 0) else f"{name} begins {offset} bytes behind its storage"


def group_of(collective: Node) -> str:
    """The name of the group that a collective is of."""
    place: Any = collective.target
    return str(argument(collective, COLLECTIVES[place]))


def collectives(graph: Graph, group: str) -> tuple[list[tuple[Node, Node]], list[Node]]:
    """The collectives of a group, each with its wait, and those of other groups."""
    own, others = [], []
    for node in graph.nodes:
        if node.op != "call_function" or node.target not in COLLECTIVES:
            continue
        waits = [user for user in node.users if user.target is WAIT]
        if group_of(node) != group:
            others.append(node)
        elif len(waits) == len(node.users) == 1:
            own.append((node, waits[0]))
    return own, others


def duplicates(pairs: list[tuple[Node, Node]]) -> Iterator[tuple[Node, Node]]:
    """(wait, earlier wait) of gathers of the same tensor: DTensor has one for each projection."""
    earlier: dict[Any, Node] = {}
    for gather, wait in pairs:
        if gather.target is GATHER:
            if gather.args in earlier:
                yield wait, earlier[gather.args]
            earlier.setdefault(gather.args, wait)


def uses(node: Node) -> Iterator[tuple[Node, Node]]:
    """Every use of what a collective gives as (value, user), behind what may stand between."""
    for user in node.users:
        if user.target in BETWEEN:
            yield from uses(user)
        else:
            yield node, user


def operands(node: Node) -> tuple[Node, Node, Node | None] | None:
    """A, B and the bias of a GEMM, or None for another node."""
    if node.target is aten.mm.default:
        return argument(node), argument(node, 1), None
    if node.target is aten.addmm.default and not node.kwargs:
        return argument(node, 1), argument(node, 2), argument(node)
    return None


def weight(node: Node) -> Weight | str:
    """B as it lies in memory, or why no kernel takes it."""
    b = value(node)
    k, n = b.shape
    if not isinstance(n, int) or not isinstance(k, int):
        return f"N or K is symbolic: B is [{k}, {n}]"
    plain = b.stride() == (n, 1)
    if why := why_misplaced("B", b if plain or b.stride() != (1, k) else b.t()):
        return why
    if plain:
        return Weight(node, "kn", False, n, k)
    if node.target in TRANSPOSES:
        return Weight(argument(node), "nk", False, n, k)
    return Weight(node, "nk", True, n, k)


@dataclass(frozen=True)
class Joined:
    """A cat of all pieces of one split."""

    source: Node
    split_dim: int
    cat_dim: int
    parts: int
    piece: tuple[Size, ...]


def joined(cat: Node) -> Joined | None:
    """What a cat joins, where that is all pieces of one split, of one size, in order."""
    pieces = argument(cat)
    if any(piece.target is not operator.getitem for piece in pieces):
        return None
    split = pieces[0].args[0]
    if split.target not in SPLITS or len(pieces) != len(value(split)):
        return None
    if any(piece.args != (split, index) for index, piece in enumerate(pieces)):
        return None
    shapes = [tuple(value(piece).shape) for piece in pieces]
    if not all(same(a, b) for shape in shapes for a, b in zip(shape, shapes[0], strict=True)):
        return None
    dims = argument(split, 2) if len(split.args) > 2 else 0, argument(cat, 1) if cat.args[1:] else 0
    split_dim, cat_dim = (dim % len(shapes[0]) for dim in dims)
    return Joined(argument(split), split_dim, cat_dim, len(pieces), shapes[0])


def gather_gemm(a: Node, gemm: Node, wait: Node) -> GatherGemm | str:
    """The GEMM as one whose A comes of this gather alone, or why it is not."""
    found, cast, node = None, None, a
    while node.target in VIEWS or node.target in (CAST, aten.cat.default):
        if node.target is aten.cat.default:
            if found is not None or (found := joined(node)) is None:
                return "rows are joined otherwise than a gather leaves them"
            node = found.source
            continue
        cast = cast or (argument(node, 1) if node.target is CAST else None)
        node = argument(node)
    given = operands(gemm)
    if node is not wait or given is None or given[0] is not a:
        return f"{gemm.name} needs the gathered A itself, which no kernel returns"
    order = _gathered_order(a, wait, found)
    b = weight(given[1])
    if isinstance(order, str) or isinstance(b, str):
        return order if isinstance(order, str) else str(b)
    return GatherGemm(argument(wait), wait, gemm, a, b, given[2], *order, cast)


def _gathered_order(a: Node, wait: Node, found: Joined | None) -> tuple[str, Size] | str:
    """Along what A is gathered, and `lead`; or why its rows are no order that is known."""
    k, gathered, world = value(a).shape[1], value(wait).shape[-1], argument(argument(wait), 1)
    if found is None:
        known = same(k, gathered)
        return ("m", 1) if known else f"rows of {gathered} become rows of {k}"
    piece = found.piece
    if found.split_dim != 0 or found.parts != world or not same(piece[-1], gathered):
        return "the gathered tensor is split otherwise than into the ranks' shards"
    if found.cat_dim == len(piece) - 1:
        return "k", 1
    return ("m", prod(piece[: found.cat_dim])) if same(k, gathered) else "rows are cut"


def gemm_reduce(collective: Node) -> GemmReduce | str:
    """The GEMM that alone feeds a reduce-scatter or an all-reduce, or why there is none."""
    node = argument(collective)
    found, path = None, collective
    while node.target in VIEWS or node.target in (CAST, aten.cat.default):
        if list(node.users) != [path]:
            return "what is added up is used elsewhere, too"
        if node.target is CAST:
            return f"the result of the GEMM is added up as {value(node).dtype}"
        if node.target is aten.cat.default:
            if found is not None or (found := joined(node)) is None:
                return "rows are joined otherwise than a scatter takes them"
            split = node.args[0][0].args[0]
            if len(split.users) != found.parts or any(len(p.users) != 1 for p in node.args[0]):
                return "what is added up is used elsewhere, too"
            node, path = found.source, split
            continue
        node, path = node.args[0], node
    if (given := operands(node)) is None:
        return "no GEMM feeds it"
    if list(node.users) != [path]:
        return "the result of the GEMM is used elsewhere, too"
    return _reduced(collective, node, given, found)


def _reduced(collective: Node, gemm: Node, given: Any, found: Joined | None) -> GemmReduce | str:
    a, b_node, bias = given
    if bias is not None:
        return "a bias is added before the sum over ranks"
    if argument(collective, 1) != "sum":
        return f"it reduces by {argument(collective, 1)}, not by sum"
    b = weight(b_node)
    if isinstance(b, str):
        return b
    if why := why_misplaced("A", value(a)):
        return why
    if found is None:
        whole = collective.target is REDUCE or _scatters_rows(collective, b.n)
        return GemmReduce(gemm, a, b, 1) if whole else "it scatters columns"
    if collective.target is REDUCE or found.cat_dim != 0 or found.parts != argument(collective, 2):
        return "the result of the GEMM is cut otherwise than into the ranks' shards"
    if found.split_dim == len(found.piece) - 1 or not same(found.piece[-1], b.n):
        return "it scatters columns"
    return GemmReduce(gemm, a, b, prod(found.piece[: found.split_dim]))


def _scatters_rows(collective: Node, n: int) -> bool:
    """Whether each rank gets whole rows of C."""
    shape = value(argument(collective)).shape
    return len(shape) > 1 and same(shape[-1], n)
