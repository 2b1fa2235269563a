"""The operations by name, each loaded when it is asked for, so that a listing imports nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tftune.kernels.shape import Shape
from tftune.kernels.space import Space

OPS = {
    "all_gather_gemm": "C[M,N] = all_gather(A) @ B: tensor-parallel linear whose input is sharded over the ranks",
    "flash_decode": "softmax(q K^T) V of one token for each sequence, whose KV cache is sharded over the ranks along the sequence",
}


@dataclass(frozen=True)
class Operation:
    """What the rooms may know of an operation. `space` and `shape` need the standard library only."""

    name: str
    shape: type[Shape]
    space: Space
    shape_sets: Mapping[str, Callable[..., tuple[Shape, ...]]]
    """Named sets of shapes, such as `paper`; what their makers take are a set's options."""

    def module(self, name: str) -> Any:
        """A file of the operation's folder (`host`, `reference`, `timeline`, ...), imported now."""
        return import_module(f"tftune.kernels.{self.name}.{name}")


def operation(name: str) -> Operation:
    """The operation of that name; raises ValueError listing the known ones."""
    if name not in OPS:
        raise ValueError(f"there is no operation {name!r}; the operations are {', '.join(OPS)}")
    folder = import_module(f"tftune.kernels.{name}")
    space = import_module(f"tftune.kernels.{name}.space")
    sets = import_module(f"tftune.kernels.{name}.sets")
    return Operation(name, folder.SHAPE, space.SPACE, sets.SHAPE_SETS)
