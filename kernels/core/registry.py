"""The operations by name, each loaded when it is asked for, so that a listing imports nothing.

Those of tftune are named here. Another package registers its own by an entry point of the group
`tftune.operations`, whose name is the operation's and whose value is its package:

    [project.entry-points."tftune.operations"]
    all_sum = "mypackage.all_sum"

docs/add-an-operation.md says which files such a package has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from inspect import signature
from typing import Any

from tftune.kernels.core.shape import Shape, near
from tftune.kernels.core.space import Space

OPS = {
    "all_gather_gemm": "C[M,N] = all_gather(A) @ B: tensor-parallel linear whose input is sharded "
    "over the ranks",
    "flash_decode": "softmax(q K^T) V of one token for each sequence, whose KV cache is sharded "
    "over the ranks along the sequence",
    "gemm_reduce_scatter": "C = reduce_scatter(A @ B): tensor-parallel linear whose inner size is "
    "split over the ranks",
    "gemm_all_reduce": "C = all_reduce(A @ B): the same, where every rank gets all rows, as "
    "decoding needs",
    "all_reduce": "the sum over ranks of x, alone or with residual and RMSNorm: what follows a "
    "row-parallel projection",
    "merge_attention": "each rank's attention over its part of a KV cache, merged by log-sum-exp: "
    "for engines with an attention kernel of their own",
    "flash_prefill": "softmax(q K^T) V of all tokens of each sequence, on one GPU",
}
"""What the operations that come with tftune compute."""
GROUP = "tftune.operations"


@dataclass(frozen=True)
class Operation:
    """What the rooms may know of an operation. `space` and `shape` need the standard library
    only."""

    name: str
    shape: type[Shape]
    space: Space
    shape_sets: Mapping[str, Callable[..., tuple[Shape, ...]]]
    """Named sets of shapes, such as `paper`; what their makers take are a set's options. The first
    is what is audited where none is named."""
    package: str = ""
    """The dotted name of its folder."""

    def named_set(self, name: str, world: int) -> tuple[Shape, ...]:
        """The shapes of a set for so many GPUs; a set that takes no `world` is of one rank each."""
        make = self.shape_sets[name]
        return make(world=world) if "world" in signature(make).parameters else make()

    @property
    def searched_set(self) -> str:
        """The name of what is searched where no shapes are named: what engines run, where it is a
        set."""
        return "engine" if "engine" in self.shape_sets else self.main_set

    @property
    def main_set(self) -> str:
        """The name of the first set."""
        return next(iter(self.shape_sets))

    def module(self, name: str) -> Any:
        """A file of the operation's folder (`host`, `reference`, `timeline`, ...), imported now."""
        return import_module(f"{self.package}.{name}")

    def checked_lengths(self, text: str) -> str:
        """The distribution of lengths that a row names, in its one spelling; raises ValueError for
        an unknown one, and where the operation's calls have no lengths (no file `lengths.py`)."""
        if find_spec(f"{self.package}.lengths") is None:
            raise ValueError(
                f"{self.name} has no lengths, and lengths={text!r:.60} was given; leave it out"
            )
        return str(self.module("lengths").Lengths.parse(text))


@cache
def packages() -> Mapping[str, str]:
    """The package of every operation: those of tftune first, then those that entry points name.

    A name of tftune's own cannot be taken by another package.
    """
    others = {point.name: point.value for point in entry_points(group=GROUP)}
    return {
        **{name: f"tftune.kernels.{name}" for name in OPS},
        **{name: others[name] for name in sorted(others.keys() - OPS.keys())},
    }


@cache
def operation(name: str) -> Operation:
    """The operation of that name; raises ValueError listing the known ones."""
    package = f"tftune.kernels.{name}" if name in OPS else packages().get(name)
    if package is None:
        raise ValueError(
            f"there is no operation {name!r}; the operations are {', '.join(packages())}"
            f"{near(name, packages())}"
        )
    folder = import_module(package)
    space = import_module(f"{package}.space")
    workloads = import_module(f"{package}.workloads")
    return Operation(name, folder.SHAPE, space.SPACE, workloads.SHAPE_SETS, package)


def payload_bytes(*shapes: Shape) -> int:
    """What `Workspace.create` must be told for all of these calls: the bytes of one generation that
    the largest of them needs, whatever config runs. Needs torch. Raises ValueError without a shape.

    >>> import tftune
    >>> shape = tftune.AllGatherGemm(8192, 3584, 8192, 8, "bf16", "m", "nk")
    >>> tftune.payload_bytes(shape) == 8192 * 8192 * 2
    True
    """
    if not shapes:
        raise ValueError("payload_bytes needs a shape; give the largest one that will be called")
    return max(int(operation(each.op).module("host").payload_bytes(each)) for each in shapes)
