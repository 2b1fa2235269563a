"""Other libraries' calls that reduce over ranks, beside `all_reduce`, `gemm_reduce_scatter` and
`gemm_all_reduce`.

Written after torch 2.13 (torch/distributed/_symmetric_memory/__init__.py and the schemas of
torch.ops.symm_mem), Iris' iris/ops/ of 2026 and FlashInfer 0.6.12. None uses
multicast (multimem). What a library of this node does not have is told when the call is made:
NotImplementedError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rival_calls import Rival

from tftune.kernels.all_reduce import EPSILON, AllReduce
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.row_parallel import RowParallel
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

if TYPE_CHECKING:
    import torch


class TorchReduceScatter(Rival):
    """`torch.ops.symm_mem.fused_matmul_reduce_scatter`: the product is computed in one chunk for
    each owner on two streams, each chunk copied to its owner, who adds up what arrived."""

    def __init__(self, shape: GemmReduceScatter, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        import torch.distributed as dist
        from torch.distributed import _symmetric_memory

        self._call = torch_operator("fused_matmul_reduce_scatter")
        self._symmetric = _symmetric_memory
        self._group = dist.group.WORLD.group_name

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        self._symmetric.enable_symm_mem_for_group(self._group)
        # Two chunks are under way at once. It cannot grow while a graph is captured.
        self._symmetric.get_symm_mem_workspace(self._group, 2 * self._shape.shard_bytes)

    def __call__(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        self._take(self._call(a, self._weights(b), "sum", 0, self._group), c)


class TorchAllReduce(Rival):
    """An all-reduce of torch over symmetric memory, where x lies already: its own result is what it
    returns."""

    NAME = "one_shot_all_reduce"

    def __init__(self, shape: AllReduce, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        import torch.distributed as dist

        if shape.normed:
            raise NotImplementedError("it adds no residual and applies no norm")
        if shape.dtype != "bf16":
            raise NotImplementedError(f"it takes bf16 and fp32, not {shape.dtype}")
        self._call, self._group = torch_operator(self.NAME), dist.group.WORLD.group_name
        self._symmetric: dict[int, torch.Tensor] = {}
        """x in symmetric memory, by the address of the operand."""

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        from torch.distributed import _symmetric_memory

        for x, *_ in operands:
            if x.data_ptr() not in self._symmetric:
                buffer = _symmetric_memory.empty(x.shape, dtype=x.dtype, device=x.device)
                _symmetric_memory.rendezvous(buffer, self._group)
                self._symmetric[x.data_ptr()] = buffer.copy_(x)

    def __call__(self, x: torch.Tensor, out: torch.Tensor) -> None:
        self._take(self._call(self._symmetric[x.data_ptr()], "sum", self._group), out)


class TorchTwoShot(TorchAllReduce):
    """`torch.ops.symm_mem.two_shot_all_reduce_` adds up in place, so that x is copied there on the
    clock: the next call would add up the sum."""

    NAME = "two_shot_all_reduce_"

    def __call__(self, x: torch.Tensor, out: torch.Tensor) -> None:
        buffer = self._symmetric[x.data_ptr()]
        self._take(self._call(buffer.copy_(x), "sum", self._group), out)


class FlashInfer(Rival):
    """FlashInfer's all-reduce of its backend `trtllm`, with the residual and the norm in the same
    kernel, called as vLLM 0.23 calls it on sm_90.

    Written after flashinfer/comm/trtllm_ar.py of 0.6.12. Its buffers are torch's symmetric memory,
    whose multicast must be off. Build its kernels before: `get_trtllm_comm_module()` there takes
    longer than a check may.
    """

    ONE_SHOT_BYTES: ClassVar = {2: 32 << 20, 4: 2 << 20, 8: 1 << 19}
    """Bytes of x up to which vLLM asks for one shot, by ranks."""
    EARLY = 16
    """Rows up to which vLLM lets the next kernel begin before the end of this one."""

    def __init__(self, shape: AllReduce, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        if shape.world not in self.ONE_SHOT_BYTES:
            raise NotImplementedError(f"vLLM calls it on 2, 4 or 8 ranks, not {shape.world}")
        if os.environ.get("TORCH_SYMM_MEM_DISABLE_MULTICAST") != "1":
            raise NotImplementedError("set TORCH_SYMM_MEM_DISABLE_MULTICAST=1: it is off here")
        self._comm, self._buffers = flashinfer_module(), None
        self._halves: dict[int, tuple[torch.Tensor, ...]] = {}
        """Normalised rows and new residual of each result, by its address."""

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        import torch.distributed as dist

        if self._buffers is None:
            shape, group = self._shape, dist.group.WORLD
            self._buffers = self._comm.trtllm_create_ipc_workspace_for_all_reduce_fusion(
                self._workspace.rank, shape.world, shape.m, shape.n, group=group
            )

    def __call__(self, x: torch.Tensor, *given: torch.Tensor) -> None:
        shape, patterns, (*added, out) = self._shape, self._comm.AllReduceFusionPattern, given
        _, pointers = self._buffers
        residual, weight = added if shape.normed else (None, None)
        normed = new_residual = None
        if shape.normed:
            if out.data_ptr() not in self._halves:
                self._halves[out.data_ptr()] = out.unbind()
            normed, new_residual = self._halves[out.data_ptr()]
        self._comm.trtllm_allreduce_fusion(
            allreduce_in=x, world_size=shape.world, world_rank=self._workspace.rank,
            token_num=shape.m, hidden_dim=shape.n, workspace_ptrs=pointers, launch_with_pdl=True,
            trigger_completion_at_end=shape.m > self.EARLY, fp32_acc=True,
            use_oneshot=shape.message_bytes <= self.ONE_SHOT_BYTES[shape.world],
            pattern_code=patterns.kARResidualRMSNorm if shape.normed else patterns.kAllReduce,
            allreduce_out=None if shape.normed else out, residual_in=residual,
            residual_out=new_residual, norm_out=normed, rms_gamma=weight, rms_eps=EPSILON,
            quant_out=None, scale_out=None, scale_factor=None, layout_code=None,
        )  # fmt: skip


class IrisReduction(Rival):
    """A fused GEMM of Iris with its default configuration. Its result lies in the symmetric heap,
    for peers write there. Each call begins with a barrier on the host."""

    NAME = "matmul_all_reduce"
    captured = False

    def __init__(self, shape: RowParallel, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        self._iris, self._fused = workspace.owner[0], iris_operation(self.NAME)
        self._result: Any = None
        self._buffers: Any = None

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        a = operands[0][0]
        if self._result is None:
            self._result = self._iris.zeros(self._shape.m, self._shape.n, dtype=a.dtype)
            self._iris.barrier()

    def __call__(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        self._buffers = self._fused(
            self._iris, self._result, a, self._weights(b), workspace=self._buffers
        )
        self._take(self._mine(), c)

    def _mine(self) -> torch.Tensor:
        """What this rank keeps of the result [M, N]."""
        result: torch.Tensor = self._result
        return result


class IrisReduceScatter(IrisReduction):
    """`iris.ops.matmul_reduce_scatter`: each rank keeps a contiguous part of the tiles, row by row;
    those are the rows of M/world only where tiles divide them."""

    NAME = "matmul_reduce_scatter"
    ROWS = 256
    """Rows of a tile, in the rival's default configuration."""

    def __init__(self, shape: GemmReduceScatter, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        if shape.m % (self.ROWS * shape.world):
            raise NotImplementedError(
                f"it scatters tiles of {self.ROWS} rows: M must be a multiple of "
                f"{self.ROWS * shape.world}, not {shape.m}"
            )

    def _mine(self) -> torch.Tensor:
        rows, first = self._shape.shard_rows, self._workspace.rank * self._shape.shard_rows
        mine: torch.Tensor = self._result[first : first + rows]
        return mine


def torch_operator(name: str) -> Callable[..., torch.Tensor]:
    """An operator of torch.ops.symm_mem. Raises NotImplementedError where this torch has none."""
    import torch
    import torch.distributed._symmetric_memory  # which registers them

    if not hasattr(torch.ops.symm_mem, name):
        raise NotImplementedError(f"torch {torch.__version__} has no torch.ops.symm_mem.{name}")
    operator: Callable[..., torch.Tensor] = getattr(torch.ops.symm_mem, name)
    return operator


def flashinfer_module() -> Any:
    """FlashInfer's all-reduces. Raises NotImplementedError where it is not installed."""
    try:
        import flashinfer.comm.trtllm_ar
    except ImportError as error:
        raise NotImplementedError(f"FlashInfer is not installed: {error}") from error
    return flashinfer.comm.trtllm_ar


def iris_operation(name: str) -> Callable[..., Any]:
    """An operation of iris.ops. Raises NotImplementedError where this Iris has none."""
    try:
        import iris.ops
    except ImportError as error:
        raise NotImplementedError(f"iris.ops cannot be imported here: {error}") from error
    if not hasattr(iris.ops, name):
        raise NotImplementedError(f"this Iris has no iris.ops.{name}")
    operation: Callable[..., Any] = getattr(iris.ops, name)
    return operation
