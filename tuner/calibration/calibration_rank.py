"""What one rank measures of its GPU, its links and its libraries when a machine is calibrated. The
requests are collective."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from tftune.db import target as machine
from tftune.kernels.comm.copy_engine import HostRuntime, Piece, Runtime
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.plan import Plan, launcher
from tftune.tuner.bench import clock
from tftune.tuner.bench.worker import Rank

ROUNDS = 7
COLUMNS = 1024
"""fp16 elements of one row of a block that is stored to peers."""
WARPS = 8
STEPS = 4096
"""Steps of a chain of loads, polls or signals: far longer than a launch."""
STRIDE = 8352
"""Words of 8 bytes from one load of a chain to the next: 66 KB, so that none finds the line of
another."""
ENGINE_COPIES = 16
FEW = 8
"""The same on emulated ranks, which interpret each."""


class Prober(Rank):
    """A rank that answers the questions of a calibration. Times in microseconds, medians over
    rounds; rates in units per microsecond."""

    _turns = 1

    @property
    def _steps(self) -> int:
        return FEW if self.spec.emulated else STEPS

    def _us(self, call: Callable[[], object], idle: bool = False) -> float:
        """The time of one call. Ranks start together and the host is ahead; or, `idle`, the host
        launches into an empty queue. On emulated ranks by the host's clock."""
        import torch

        if self.spec.emulated:
            began = time.perf_counter()
            call()
            return 1e6 * (time.perf_counter() - began)
        times = []
        for _ in range(ROUNDS + 1):  # the first warms up
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            if not idle:
                torch.cuda._sleep(clock.SLEEP_CYCLES)
                self._device_barrier()()
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(1e3 * start.elapsed_time(end))
        return float(median(times[1:]))

    def _captured_us(self, call: Callable[[], object], calls: int) -> float:
        """The time of one of so many calls captured in one graph."""
        if self.spec.emulated:
            return self._us(call)

        def without_operands(a: Any, b: Any, c: Any) -> None:
            call()

        call()
        graph = clock.GraphCall(without_operands, [(None, None, None)] * calls)
        return self._us(graph.replay) / calls

    def _launcher(
        self,
        kernel: Any,
        types: Mapping[str, str],
        constants: Mapping[str, Any],
        values: Mapping[str, Any],
        operands: tuple[str, ...] = (),
        programs: int = 1,
    ) -> Plan:
        """A kernel of kernels/device/calibration_kernels.py, compiled, as a call of these operands;
        `values`: its other arguments."""
        source = KernelSource(kernel, types, constants, (), {"num_warps": WARPS})
        return launcher(source, (programs, 1, 1), operands, values, self.workspace.arch)

    def _signals(self) -> dict[str, Any]:
        return {
            "control": self.workspace.control,
            "control_bases": self.workspace.control_bases,
            "rank": self.rank,
        }

    def gemm(self, m: int, n: int, k: int) -> float:
        """Microseconds of one library GEMM, fp16, captured, random normal data, on operands that go
        past the last-level cache."""
        import torch

        def random(*size: int) -> Any:
            return torch.randn(size, dtype=torch.float16, device=self.workspace.device)

        sets = 2 if self.spec.emulated else clock.copies(2 * (m * k + n * k), self.spec.cache_bytes)
        operands = [(random(m, k), random(k, n), random(m, n)) for _ in range(sets)]
        if self.spec.emulated:
            return self._us(lambda: torch.matmul(*operands[0][:2]))

        def multiply(a: Any, b: Any, c: Any) -> None:
            torch.matmul(a, b, out=c)

        multiply(*operands[0])
        graph = clock.GraphCall(multiply, operands)
        return self._us(graph.replay) / len(operands)

    def copied(self, size: int) -> float:
        """Microseconds in which so many bytes are read, and as many written, by compute units."""
        import torch

        source = torch.ones(size // 4, dtype=torch.float32, device=self.workspace.device)
        result = torch.empty_like(source)
        return self._us(lambda: torch.neg(source, out=result))

    def load(self, size: int, remote: bool) -> float:
        """Microseconds of one load that waits for the one before, from memory or from the next
        rank's; each call reads other lines."""
        import torch
        import torch.distributed as dist

        from tftune.kernels.device.calibration_kernels import chase

        words = (min(size, self.workspace.payload_tensor.numel()) if remote else size) // 8
        chain = torch.arange(words, dtype=torch.int64, device=self.workspace.device)
        chain = (chain + STRIDE) % (words - 16 * (ROUNDS + 2))
        if remote:
            self.workspace.payload_tensor[: 8 * words].view(torch.int64).copy_(chain)
        if not self.spec.emulated:
            torch.cuda.synchronize()
        dist.barrier()
        base = (
            int(self.workspace.payload_bases[(self.rank + 1) % self.workspace.world])
            if remote
            else chain.data_ptr()
        )
        result = torch.zeros(1, dtype=torch.int64, device=self.workspace.device)
        types = {"base": "i64", "result_ptr": "*i64", "steps": "i32"}
        values = {"result_ptr": result, "steps": self._steps}
        launch = self._launcher(chase, types, {}, values, ("base",))
        lines = iter(range(ROUNDS + 1))
        return self._us(lambda: launch(base + 128 * next(lines))) / self._steps

    def clock_mhz(self) -> float:
        """The highest clock of the units, by torch or, where it is too old, by the driver's tool; 0
        where neither tells. A round number on emulated ranks."""
        import torch

        if self.spec.emulated:
            return 1000.0
        properties = torch.cuda.get_device_properties(self.workspace.device)
        if mhz := getattr(properties, "clock_rate", 0) / 1e3:
            return float(mhz)
        told = (gpu.get("max_sm_mhz") for gpu in machine.clocks().values())
        return max((mhz or 0.0 for mhz in told), default=0.0)

    def copied_by_engine(self, size: int) -> tuple[float, float]:
        """Microseconds of one of ENGINE_COPIES copies of so many bytes to the next rank, one behind
        the other in a stream; and of the host that queues one."""
        import torch

        workspace = self.workspace
        runtime: Any = HostRuntime() if self.spec.emulated else Runtime(workspace.arch)
        stream = None if self.spec.emulated else torch.cuda.current_stream()
        piece = Piece(0, 0, run_bytes=min(size, workspace.generation_bytes))
        source = torch.ones(piece.run_bytes, dtype=torch.uint8, device=workspace.device)
        target = int(workspace.payload_bases[(self.rank + 1) % workspace.world])
        host_us = []

        def copy() -> None:
            began = time.perf_counter()
            for _ in range(ENGINE_COPIES):
                runtime.copy(piece, target, source.data_ptr(), stream)
            host_us.append(1e6 * (time.perf_counter() - began) / ENGINE_COPIES)

        return self._us(copy) / ENGINE_COPIES, median(host_us)

    def polled(self) -> float:
        """Microseconds of one acquire of a flag of this rank."""
        import torch

        from tftune.kernels.device.calibration_kernels import poll

        result = torch.zeros(1, dtype=torch.int32, device=self.workspace.device)
        values = {"control": self.workspace.control, "result_ptr": result, "polls": self._steps}
        launch = self._launcher(
            poll, {"control": "i64", "result_ptr": "*i32", "polls": "i32"}, {}, values
        )
        return self._us(launch) / self._steps

    def signalled(self) -> float:
        """Microseconds of one release in a peer's memory."""
        from tftune.kernels.device.calibration_kernels import release

        types = {"control": "i64", "control_bases": "*i64", "rank": "i32", "signals": "i32"}
        constants = {"WORLD": self.workspace.world, "ARCH": self.workspace.arch}
        launch = self._launcher(
            release, types, constants, self._signals() | {"signals": self._steps}
        )
        return self._us(launch) / self._steps

    def flown(self) -> float:
        """Microseconds of one flag's flight, half of a round trip between ranks 0 and 1; 0 on the
        others."""
        from tftune.kernels.device.calibration_kernels import ping

        types = {
            "control": "i64",
            "control_bases": "*i64",
            "rank": "i32",
            "first": "i32",
            "turns": "i32",
        }
        turns, own = self._steps // 8, self._signals()
        constants = {"ARCH": self.workspace.arch}
        launch = self._launcher(ping, types, constants, {"turns": turns}, (*own, "first"))

        def call() -> None:
            launch(*own.values(), self._turns)
            self._turns += turns

        return self._us(call) / turns / 2 if self.rank < 2 else self._rest()

    def _rest(self) -> float:
        """Take part in the barriers of a measurement without measuring."""
        self._us(lambda: None)
        return 0.0

    def stored(self, programs: int, peers: int, blocks: int) -> tuple[float, int]:
        """Microseconds in which so many programs each store so many blocks to so many peers in
        turn, and the bytes of a block."""
        import torch

        from tftune.kernels.device.calibration_kernels import store_blocks

        workspace = self.workspace
        rows = (
            WARPS * (64 if workspace.arch == "hip" else 32) * 32 // COLUMNS
        )  # four 16-byte accesses of each thread
        size = 2 * rows * COLUMNS
        slots = max(1, workspace.payload_tensor.numel() // workspace.world // size)
        source = torch.ones(slots * rows, COLUMNS, dtype=torch.float16, device=workspace.device)
        types = {
            "source": "i64",
            "payload": "i64",
            "payload_bases": "*i64",
            "rank": "i32",
            "blocks": "i32",
            "slots": "i32",
        }
        values = dict(source=source.data_ptr(), payload=workspace.payload,
                      payload_bases=workspace.payload_bases,
                      rank=self.rank, blocks=blocks, slots=slots)  # fmt: skip
        launch = self._launcher(
            store_blocks,
            types,
            dict(WORLD=workspace.world, PEERS=peers, ROWS=rows, COLUMNS=COLUMNS),
            values,
            programs=programs,
        )
        return self._us(launch), size

    def launched(self, calls: int) -> tuple[float, float]:
        """Microseconds of a kernel that does nothing: one of many in a graph, and so many from an
        idle queue."""
        import torch

        word = torch.zeros(1, device=self.workspace.device)

        def eagerly() -> None:
            for _ in range(calls):
                word.add_(1)

        return self._captured_us(lambda: word.add_(1), 50), self._us(eagerly, idle=True)

    def gathered(self, size: int) -> tuple[float, float]:
        """Microseconds of the library's all-gather of so many bytes of each rank: captured, and
        from an idle queue."""
        import torch
        import torch.distributed as dist

        own = torch.ones(size // 2, dtype=torch.float16, device=self.workspace.device)
        whole = torch.empty(
            self.workspace.world * own.numel(), dtype=torch.float16, device=self.workspace.device
        )

        def call() -> None:
            dist.all_gather_into_tensor(whole, own, group=self.workspace.group)

        call()
        return self._captured_us(call, 20), self._us(call, idle=True)
