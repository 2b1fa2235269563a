"""Other libraries' fused all-gather + GEMM as calls on one rank, and the rank that serves them
beside tftune's own plans; `rival_reductions` has the calls that reduce.

Written after torch 2.13 (torch/distributed/_symmetric_memory/__init__.py) and tokenspeed-iris
0.0.0.post20261013 (iris/ops/). A rival is given what helps it: its buffers are made, and its inputs
put where it wants them, before the clock runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, ClassVar

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench import worker
from tftune.tuner.bench.worker import WorldSpec

if TYPE_CHECKING:
    import torch


class Rival:
    """A call of an operation's operands and result, as a plan of `host.prepare` is one. Making it
    launches nothing and waits for nobody: what it lacks is raised there, NotImplementedError for a
    shape or machine that it does not take."""

    captured: ClassVar[bool] = True
    """Whether a graph can hold it."""

    def __init__(self, shape: Any, workspace: Workspace) -> None:
        if workspace.device.type != "cuda":
            raise NotImplementedError(
                f"it needs GPUs, and this rank computes on the {workspace.device.type}"
            )
        self._shape, self._workspace = shape, workspace
        self.into_c = True
        """Whether a result that the library allocates itself is copied to c: for checks, never on
        the clock."""
        self.results: dict[int, torch.Tensor] = {}
        """Such results, the last for each address of c."""

    @staticmethod
    def roundings(shape: Any) -> int:
        """How often it may round what it computes, in units of the reference's tolerance."""
        return 1

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        """Prepare for these operands, A being the first of each; collective."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is staged")

    def __call__(self, *operands: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how it is called")

    def _take(self, result: torch.Tensor, c: torch.Tensor) -> None:
        """Keep the library's own result, or copy it to c."""
        if self.into_c:
            c.copy_(result)
        else:
            self.results[c.data_ptr()] = result

    def poison(self) -> None:
        """Fill the results of its own with NaN, so that a graph that computes nothing shows."""
        for result in self.results.values():
            result.fill_(math.nan)

    def deliver(self, c: torch.Tensor) -> None:
        """Copy the last result for this c into it, where the library did not write there."""
        if (result := self.results.get(c.data_ptr())) is not None:
            c.copy_(result)

    def _weights(self, b: torch.Tensor) -> torch.Tensor:
        return b.t() if self._shape.b_layout == "nk" else b


class Torch(Rival):
    """`torch.ops.symm_mem.fused_all_gather_matmul`: shards are copied over peer memory and
    multiplied one by one, on two streams.

    The default way: without multicast, which is switched off here, and without the native kernel,
    which is experimental.
    """

    def __init__(self, shape: AllGatherGemm, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        import torch.distributed as dist
        from torch.distributed import _symmetric_memory

        self._symmetric, self._group = _symmetric_memory, dist.group.WORLD.group_name

    @staticmethod
    def roundings(shape: AllGatherGemm) -> int:
        """With A sharded along K it adds the product of each source to C in place
        (`out.addmm_`)."""
        return shape.world if shape.shard == "k" else 1

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        self._symmetric.enable_symm_mem_for_group(self._group)
        # It cannot grow while a graph is captured.
        self._symmetric.get_symm_mem_workspace(self._group, self._shape.shard_bytes)

    def __call__(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        import torch

        gather_dim = 0 if self._shape.shard == "m" else 1
        _, (result,) = torch.ops.symm_mem.fused_all_gather_matmul(
            a, [self._weights(b)], gather_dim, self._group, return_A=False
        )
        self._take(result, c)


class Iris(Rival):
    """`iris.ops.all_gather_matmul` with its default configuration: one kernel, tiles of A pulled
    where they are multiplied.

    Eager, it ends with its barrier on the host, as by default. That cannot be captured: in a graph
    its barrier on the device goes before the kernel instead, so that no rank reads what a peer has
    not written. A lies in the symmetric heap already.
    """

    def __init__(self, shape: AllGatherGemm, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        if shape.shard != "k":
            raise NotImplementedError("it gathers along K only")
        self._iris = workspace.owner[0]
        self._heap: dict[int, torch.Tensor] = {}
        """This rank's A in the symmetric heap, by the address of the operand."""

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        for a, *_ in operands:
            if a.data_ptr() not in self._heap:
                self._heap[a.data_ptr()] = self._iris.empty(*a.shape, dtype=a.dtype).copy_(a)
        self._iris.device_barrier()  # the first one allocates and compiles
        self._iris.barrier()

    def __call__(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        import torch

        capturing = torch.cuda.is_current_stream_capturing()
        if capturing:
            self._iris.device_barrier()
        self._launch(self._heap[a.data_ptr()], self._weights(b), c, capturing)

    def _launch(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, async_op: bool) -> None:
        from iris.ops import all_gather_matmul

        all_gather_matmul(self._iris, c, a, b, async_op=async_op)


class IrisBuffer(Iris):
    """`iris.ops.all_gather_matmul_hbm_buffer` with the configuration that it chooses: some programs
    fetch A into local memory, the rest multiply; the design that Iris' authors measure with."""

    ROWS, COLUMNS = 128, 64
    """Its smallest tile of A; it takes no tails."""

    def __init__(self, shape: AllGatherGemm, workspace: Workspace) -> None:
        super().__init__(shape, workspace)
        if shape.m % self.ROWS or shape.shard_columns % self.COLUMNS:
            raise NotImplementedError(
                f"it takes multiples of {self.ROWS} rows and of {self.COLUMNS} columns of a "
                f"shard, not {shape.m} and {shape.shard_columns}"
            )
        self._buffers: Any = None

    def stage(self, operands: Sequence[tuple[Any, ...]]) -> None:
        from iris.ops import all_gather_matmul_hbm_buffer_preamble

        super().stage(operands)
        if self._buffers is None:
            a, b, *_ = operands[0]
            self._buffers = all_gather_matmul_hbm_buffer_preamble(
                self._iris, self._heap[a.data_ptr()], self._weights(b)
            )

    def _launch(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, async_op: bool) -> None:
        from iris.ops import all_gather_matmul_hbm_buffer

        all_gather_matmul_hbm_buffer(
            self._iris, c, a, b, async_op=async_op, workspace=self._buffers
        )


RIVALS: dict[str, type[Rival]] = {"torch": Torch, "iris": Iris, "iris_buffer": IrisBuffer}
"""Rivals of all_gather_gemm, by name; `Config(name)` stands for it where a config is asked for."""


def rivals_of(op: str) -> dict[str, type[Rival]]:
    """The rivals of an operation by name. Raises ValueError naming the operations that have
    some."""
    import rival_reductions as reductions

    known = {
        "all_gather_gemm": RIVALS,
        "gemm_reduce_scatter": {
            "torch": reductions.TorchReduceScatter, "iris": reductions.IrisReduceScatter
        },
        "gemm_all_reduce": {"iris": reductions.IrisReduction},
        "all_reduce": {
            "torch_one_shot": reductions.TorchAllReduce, "torch_two_shot": reductions.TorchTwoShot,
            "flashinfer": reductions.FlashInfer,
        },
    }  # fmt: skip
    if op not in known:
        raise ValueError(f"there are no rivals of {op}; there are of {', '.join(known)}")
    return known[op]


class RivalRank(worker.Rank):
    """A rank of a search that also takes rivals for configs."""

    _last: Any = None
    """The plan of the last config that was timed."""

    def prepare(self, shape: Shape, config: Config, fault: str | None = None) -> None:
        rival = rivals_of(shape.op).get(config.variant)
        if rival is None:
            return super().prepare(shape, config, fault)
        self._use(shape)
        if (shape, config) not in self.workspace.plans:
            self.workspace.plans[shape, config] = rival(shape, self.workspace)

    def check(self, shape: Shape, config: Config, fault: str | None = None) -> tuple[float, float]:
        self._stage(shape, [config], self._known_results(shape).inputs, into_c=True)
        return super().check(shape, config, fault)

    def time(
        self, shape: Shape, configs: Sequence[Config], mode: str, rounds: int
    ) -> list[list[float]]:
        operands = self._rotation(shape)
        rivals = self._stage(shape, configs, operands, into_c=False)
        if mode == "graph" and not self.spec.emulated:
            for config in configs:
                self._graph(shape, config, operands)
        for rival in rivals:
            rival.poison()  # after the capture, which gave it results of its own
        self._last = self.workspace.plans[shape, configs[-1]]
        return super().time(shape, configs, mode, rounds)

    def verify(self, shape: Shape) -> tuple[float, float]:
        if isinstance(self._last, Rival):
            self._last.deliver(self._rotation(shape)[0][-1])
        return super().verify(shape)

    def _stage(
        self, shape: Shape, configs: Sequence[Config], operands: Sequence[Any], into_c: bool
    ) -> list[Rival]:
        plans = [self.workspace.plans[shape, config] for config in configs]
        rivals = [plan for plan in plans if isinstance(plan, Rival)]
        for rival in rivals:
            rival.stage(operands)
            rival.into_c = into_c
        return rivals


def serve(connection: Connection, spec: WorldSpec, rank: int) -> None:
    """What each process of a world with rivals runs."""
    worker.main(connection, spec, rank, RivalRank)
