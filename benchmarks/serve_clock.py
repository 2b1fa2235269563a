"""The clock of benchmarks/serve.py: it shares no code with the clock that tftune selects by."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from tftune.kernels.all_gather_gemm import AllGatherGemm, reference
from tftune.kernels.comm.workspace import Workspace

CALLS, MOST_CALLS, ROUNDS = 12, 64, 11
"""Captured calls at least and at most, and timed rounds."""
SLEEP_CYCLES = 400_000
"""About 0.2 ms, behind which the host queues one sample."""


class Clock:
    """This script's own, for one shape: captured calls on a GPU, single ones on emulated ranks."""

    def __init__(self, workspace: Workspace, shape: AllGatherGemm) -> None:
        self.workspace, self.gpu = workspace, workspace.device.type == "cuda"
        rank, device = workspace.rank, workspace.device
        size = 2 * (shape.shard_rows * shape.k + shape.n * shape.k)
        self.sets = min(MOST_CALLS, 2 + 2 * self._cache_bytes() // size)
        kinds = [reference.make_inputs(shape, rank, seed, device) for seed in (11, 12)]
        inputs = [tuple(t.clone() for t in kinds[n % 2]) for n in range(self.sets)]
        self.operands = [(*tensors, reference.make_output(shape, device)) for tensors in inputs]
        self.calls = max(CALLS, self.sets) if self.gpu else 1
        self._token = torch.ones(1, device=device)

    def _cache_bytes(self) -> int:
        if not self.gpu:
            return 0
        return int(torch.cuda.get_device_properties(self.workspace.device).L2_cache_size)

    def captured(self, call: Callable[..., object]) -> Callable[[], object]:
        """What computes every set anew; a CUDA graph's replay where there is a GPU."""
        for one in self.operands[:2]:
            call(*one)
        self.wait()
        if not self.gpu:
            return lambda: call(*self.operands[0])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for number in range(self.calls):
                call(*self.operands[number % self.sets])
        return graph.replay

    def wait(self) -> None:
        if self.gpu:
            torch.cuda.synchronize()
        dist.barrier(group=self.workspace.group)

    def rounds(self, replays: dict[str, Callable[[], object]]) -> dict[str, tuple[float, ...]]:
        """Microseconds of one call by name and round, of the slowest rank; the first is dropped."""
        times = [[self._timed(replay) for replay in replays.values()] for _ in range(ROUNDS + 1)]
        slowest = torch.tensor(times[1:], dtype=torch.float64, device=self.workspace.device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=self.workspace.group)
        columns = [tuple(round(us, 3) for us in column) for column in slowest.T.tolist()]
        return dict(zip(replays, columns, strict=True))

    def _timed(self, replay: Callable[[], object]) -> float:
        """One replay behind another, and behind an all-reduce that starts all ranks together."""
        if not self.gpu:
            dist.barrier(group=self.workspace.group)
            began = time.perf_counter()
            replay()
            return 1e6 * (time.perf_counter() - began)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(SLEEP_CYCLES)
        replay()
        dist.all_reduce(self._token, dist.ReduceOp.MAX, group=self.workspace.group)
        start.record()
        replay()
        end.record()
        end.synchronize()
        return 1e3 * start.elapsed_time(end) / self.calls
