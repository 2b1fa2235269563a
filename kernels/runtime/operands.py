"""Checks of operands that operations share: a dtype, a size, a place.

Each raises ValueError that names the operand and both values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tftune.kernels.comm.operand_heap import OperandHeap
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import dtypes
from tftune.kernels.core.shape import HEAP, LOCAL, Shape

if TYPE_CHECKING:
    import torch


def word_of(op: str, name: str, tensor: torch.Tensor) -> str:
    """`fp16` or `bf16`: the shape's word for the dtype of this operand."""
    word: str = dtypes.word_of(tensor.dtype)
    if word not in dtypes.DTYPE_BYTES:
        known = " and ".join(str(dtypes.torch_dtype(one)) for one in dtypes.DTYPE_BYTES)
        raise ValueError(f"{name} is {tensor.dtype}; {op} takes {known}")
    return word


def check_device(name: str, tensor: torch.Tensor, workspace: Workspace) -> None:
    """The first operand lies where the workspace does; the others are checked against it."""
    if tensor.device != workspace.device:
        raise ValueError(f"{name} is on {tensor.device} but the workspace is on {workspace.device}")


def check_operand(
    name: str,
    tensor: torch.Tensor,
    size: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    because: str = "must be",
) -> None:
    """A kernel can take this tensor as an operand of this size. `because`: what the sentence says
    before the dtype and device that are needed, as in `a is`."""
    if tuple(tensor.shape) != size:
        raise ValueError(f"{name} is {list(tensor.shape)} but must be {list(size)}")
    if tensor.dtype != dtype or tensor.device != device:
        held, needed = f"{tensor.dtype} on {tensor.device}", f"{dtype} on {device}"
        raise ValueError(f"{name} is {held} but {because} {needed}")
    check_place(name, tensor)


def check_out(out: torch.Tensor, size: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """`out`, if a result of this size can be written there."""
    check_operand("out", out, size, like.dtype, like.device)
    return out


def check_place(name: str, tensor: Any) -> None:
    """A kernel can take this operand from where it lies."""
    if not tensor.is_contiguous():
        raise ValueError(f"{name} must be contiguous; pass {name}.contiguous()")
    if over := tensor.data_ptr() % 16:
        raise ValueError(
            f"{name} begins {over} bytes behind a multiple of 16, where a kernel needs it at one; "
            f"pass {name}.clone(), since {name}.contiguous() would return {name} itself"
        )


def place_of(tensor: torch.Tensor, workspace: Workspace) -> str:
    """The shape's word for where an operand lies: where peers can read it, or not."""
    return HEAP if workspace.holds(tensor) else LOCAL


def placed(
    shape: Shape, operands: tuple[torch.Tensor, ...], workspace: Workspace
) -> tuple[torch.Tensor, ...]:
    """The operands, the first of them copied to the heap where the shape has it there: what checks,
    benches and tests call with. Every rank alike."""
    if not shape.on_heap:
        return operands
    first, *others = operands
    return workspace.empty(first.shape, first.dtype).copy_(first), *others


def read_in_place(call: Callable[..., None], heap: OperandHeap) -> Callable[..., None]:
    """A plan whose first operand peers read where it lies. It refuses one that they cannot read,
    and a result, which comes last, that overlaps it: peers would read what was written there."""

    def checked(*operands: torch.Tensor) -> None:
        first, result = operands[0], operands[-1]
        if not heap.holds(first):
            raise ValueError(
                "the first operand does not lie in the workspace's heap, where this plan's peers "
                "read it; take it from workspace.empty, on every rank"
            )
        begin, other = first.data_ptr(), result.data_ptr()
        if begin < other + result.nbytes and other < begin + first.nbytes:
            raise ValueError(
                f"the result's {result.nbytes} bytes overlap the first operand's {first.nbytes}, "
                "which peers read in place; pass another out"
            )
        call(*operands)

    return checked


def both_placed_well(a: torch.Tensor, b: torch.Tensor, workspace: Workspace) -> bool:
    """Whether two operands of sizes that ran before can be launched as they are; where not, an
    operation's `shape_of` says what is wrong."""
    return (
        a.is_contiguous()
        and b.is_contiguous()
        and (a.data_ptr() | b.data_ptr()) & 15 == 0
        and a.dtype is b.dtype
        and a.get_device() == b.get_device() == workspace.ordinal
    )
