"""What stands around a collective in a post-grad graph: which GEMM, and how rows lie between them.

A match is a value, and so is the reason for none. Nothing is changed here. The graphs are those of
tests/graphs/: DTensor's, as torch 2.11 and 2.13 dump them, and plain functional collectives.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from tftune.graph_pass import flight
from tftune.graph_pass.flight import WAIT, operator_of

aten, prims, c10d = torch.ops.aten, torch.ops.prims, torch.ops._c10d_functional
GATHER = c10d.all_gather_into_tensor.default
SCATTER = c10d.reduce_scatter_tensor.default
REDUCE = c10d.all_reduce.default
COLLECTIVES = {GATHER, SCATTER, REDUCE}
"""Those that a kernel may replace."""
VIEWS = {aten.reshape.default, aten.view.default, aten._unsafe_view.default}
CAST = prims.convert_element_type.default
TRANSPOSES = {aten.permute.default, aten.t.default}
SPLITS = {aten.split.Tensor, aten.split_with_sizes.default}
BETWEEN = VIEWS | SPLITS | {CAST, aten.cat.default, operator.getitem}
"""What may stand between a collective and a GEMM."""
Size = int | torch.SymInt


def value(node: Any) -> torch.Tensor:
    """The fake tensor that a node stands for."""
    tensor: torch.Tensor = node.meta["val"]
    return tensor


def argument(node: Node, index: int = 0) -> Any:
    """One argument of a node: another node or a value, which torch's types do not tell apart; given
    by place, by name, or its default."""
    if index < len(node.args):
        return node.args[index]
    schema = node.target._schema.arguments[index]  # type: ignore[union-attr]
    return node.kwargs.get(schema.name, schema.default_value)


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
    if not _is_contiguous(tensor):
        return f"{name} is not contiguous: {list(tensor.shape)} of strides {list(tensor.stride())}"
    offset = tensor.storage_offset() * tensor.itemsize
    return None if same(offset % 16, 0) else f"{name} begins {offset} bytes behind its storage"


def _is_contiguous(tensor: torch.Tensor) -> bool:
    """Whether it surely is, whatever its symbols are; torch's own question may add a guard."""
    expected: Size = 1
    if any(same(size, 0) for size in tensor.shape):
        return True
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if not same(size, 1) and not same(stride, expected):
            return False
        expected = expected * size
    return True


def group_of(collective: Node) -> str:
    """The name of the group that a collective is of."""
    op: Any = operator_of(collective)
    names = [one.name for one in op._schema.arguments]
    place = next(names.index(name) for name in flight.GROUPS if name in names)
    if op is not collective.target:  # made functional: arguments by name
        group = collective.kwargs.get(names[place])
    else:
        group = argument(collective, place)
    return str(getattr(group, "group_name", group))


def collectives(graph: Graph, group: str) -> tuple[list[tuple[Node, Node]], list[tuple[Node, str]]]:
    """The collectives that a kernel may replace, each with its wait, and the others, each with the
    reason."""
    own, others = [], []
    for node in graph.nodes:
        if not flight.is_collective(node):
            continue
        if why := _why_other(node, group):
            others.append((node, why))
        else:
            own.append((node, next(iter(node.users))))
    return own, others


def _why_other(node: Node, group: str) -> str | None:
    """Why a collective is none that a kernel may replace, or None."""
    if (name := group_of(node)) != group:
        return f"it is of group {name}, not {group}"
    if node.target not in COLLECTIVES:
        return f"no kernel does what {operator_of(node)} does"
    waits = [user for user in node.users if user.target is WAIT]
    if not len(waits) == len(node.users) == 1:
        return f"{len(waits)} of its {len(node.users)} users wait for it, and a kernel has no wait"
    nodes = argument(node), *waits
    held = [one.meta.get("val") if isinstance(one, Node) else None for one in nodes]
    if not all(isinstance(one, torch.Tensor) for one in held):
        return "the graph does not say what it exchanges"
    return None if value(waits[0]).dim() else "what it exchanges has no dimension"


def why_changed(first: Node, last: Node) -> str | None:
    """Why what is read at `first` may be another value at `last`, or None: something between them
    writes in place."""
    node = first.next
    while node is not last and node.op != "root":
        schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
        if schema is not None and schema.is_mutable:
            return f"{node.name} writes in place before the result is needed"
        node = node.next
    return None


def duplicates(pairs: Sequence[tuple[Node, Node]]) -> Iterator[tuple[Node, Node]]:
    """(wait, earlier wait) of gathers of the same tensor: DTensor has one for each projection."""
    earlier: dict[Any, tuple[Node, Node]] = {}
    for gather, wait in pairs:
        if gather.target is not GATHER:
            continue
        first = earlier.setdefault(argument(gather), (gather, wait))
        if first[1] is not wait and first[1] < wait and why_changed(first[0], gather) is None:
            yield wait, first[1]


def uses(wait: Node) -> list[tuple[Node, Node]]:
    """Every use of what a collective gives as (value, user), behind what may stand between."""
    pairs, seen, open_ = [], {wait}, [wait]
    while open_:
        node = open_.pop(0)
        for user in node.users:
            if user.target not in BETWEEN:
                pairs.append((node, user))
            elif user not in seen:
                seen.add(user)
                open_.append(user)
    return pairs


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
    if node.target in TRANSPOSES and _turns(node):
        return Weight(argument(node), "nk", False, n, k)
    return Weight(node, "nk", True, n, k)


def _turns(node: Node) -> bool:
    return node.target is aten.t.default or [dim % 2 for dim in argument(node, 1)] == [1, 0]


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
    split = argument(pieces[0])
    if split.target not in SPLITS or len(pieces) != len(value(split)):
        return None
    if any(piece.args != (split, index) for index, piece in enumerate(pieces)):
        return None
    shapes = [tuple(value(piece).shape) for piece in pieces]
    if not all(same(a, b) for shape in shapes for a, b in zip(shape, shapes[0], strict=True)):
        return None
    split_dim, cat_dim = (dim % len(shapes[0]) for dim in (argument(split, 2), argument(cat, 1)))
    return Joined(argument(split), split_dim, cat_dim, len(pieces), shapes[0])


def gather_gemm(a: Node, gemm: Node, wait: Node) -> GatherGemm | str:
    """The GEMM as one whose A comes of this gather alone, or why it is not."""
    join, cast, node = None, None, a
    while node.target in VIEWS or node.target in (CAST, aten.cat.default):
        if node.target is aten.cat.default:
            if join is not None or (join := joined(node)) is None:
                return "rows are joined otherwise than a gather leaves them"
            node = join.source
            continue
        if node.target is CAST:
            if cast is not None:
                return "it is cast twice"
            cast = argument(node, 1)
        node = argument(node)
    given = operands(gemm)
    if node is not wait or given is None or given[0] is not a:
        return f"{gemm.name} needs the gathered A itself, which no kernel returns"
    order = _gathered_order(a, wait, join)
    b = weight(given[1])
    if isinstance(order, str) or isinstance(b, str):
        return order if isinstance(order, str) else str(b)
    if cast is not None and cast.itemsize > value(wait).itemsize:
        return f"it gathers {value(wait).dtype}, of fewer bytes than {cast}"
    return GatherGemm(argument(wait), gemm, a, b, given[2], *order, cast)


def _gathered_order(a: Node, wait: Node, found: Joined | None) -> tuple[str, Size] | str:
    """Along what A is gathered, and `lead`; or why its rows are no order that is known."""
    k, gathered, world = value(a).shape[1], value(wait).shape[-1], argument(argument(wait), 1)
    if value(wait).dim() < 2:
        return "it gathers elements, not rows"
    if found is None:
        known = same(k, gathered)
        return ("m", 1) if known else f"rows of {gathered} become rows of {k}"
    piece = found.piece
    if found.split_dim != 0 or found.parts != world or not same(piece[-1], gathered):
        return "the gathered tensor is split otherwise than into the ranks' shards"
    if found.cat_dim == len(piece) - 1:
        whole = len(piece) > 1 and same(k, gathered * world)
        return ("k", 1) if whole else f"columns of {gathered * world} become rows of {k}"
    return ("m", prod(piece[: found.cat_dim])) if same(k, gathered) else "rows are cut"


def gemm_reduce(collective: Node) -> GemmReduce | str:
    """The GEMM that alone feeds a reduce-scatter or an all-reduce, or why there is none."""
    node = argument(collective)
    join, path = None, collective
    while node.target in VIEWS or node.target in (CAST, aten.cat.default):
        if list(node.users) != [path]:
            return "what is added up is used elsewhere, too"
        if node.target is CAST:
            return f"the result of the GEMM is added up as {value(node).dtype}"
        if node.target is aten.cat.default:
            if join is not None or (join := joined(node)) is None:
                return "rows are joined otherwise than a scatter takes them"
            pieces = argument(node)
            split = argument(pieces[0])
            if len(split.users) != join.parts or any(len(piece.users) != 1 for piece in pieces):
                return "what is added up is used elsewhere, too"
            node, path = join.source, split
            continue
        node, path = argument(node), node
    if (given := operands(node)) is None:
        return "no GEMM feeds it"
    if list(node.users) != [path]:
        return "the result of the GEMM is used elsewhere, too"
    return _reduced(collective, node, given, join)


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
        shape = value(argument(collective)).shape
        rows = len(shape) > 1 and same(shape[-1], b.n)  # each rank gets whole rows of C
        whole = collective.target is REDUCE or rows
        return GemmReduce(gemm, a, b, 1) if whole else "it scatters columns"
    if collective.target is REDUCE or found.cat_dim != 0 or found.parts != argument(collective, 2):
        return "the result of the GEMM is cut otherwise than into the ranks' shards"
    if found.split_dim == len(found.piece) - 1 or not same(found.piece[-1], b.n):
        return "it scatters columns"
    return GemmReduce(gemm, a, b, prod(found.piece[: found.split_dim]))
