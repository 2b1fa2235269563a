"""One rank of a world: a process that owns one GPU (or one emulated heap) and does what the
supervisor asks, one request a time."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tftune.kernels.comm.operand_heap import ALIGNMENT, aligned
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.operands import placed
from tftune.kernels.runtime.plan import timed_part
from tftune.tuner.bench import cache_selftest as selftest
from tftune.tuner.bench import clock, faults
from tftune.tuner.bench.check import SEEDS, References, relative_error
from tftune.tuner.bench.processes import die_with_parent
from tftune.tuner.bench.ranks import Ranks

MOST_RAGGED = 16 << 30
"""Bytes that sets of ragged operands take on a GPU at most: each is allocated whole."""


@dataclass(frozen=True)
class WorldSpec:
    """What the ranks of a world share. `folder` holds the rendezvous, the host barrier and,
    emulated, the heaps."""

    folder: Path
    world: int
    emulated: bool
    payload_bytes: int
    cache_bytes: int
    operand_bytes: int = 0
    """For operands of shapes that have them on the heap, see `operand_bytes`."""
    lengths: str = ""
    """Lengths of the sequences that are timed, as rows name them; all full where empty."""

    @property
    def data(self) -> dict[str, str]:
        """What `make_inputs` is told beside shape, rank and seed."""
        return {"lengths": self.lengths} if self.lengths else {}


def operand_bytes(shape: Shape, cache_bytes: int) -> int:
    """Bytes that the operands of a shape take on the heap: those of the check, and so many more
    that three times the cache goes by in between. 0 where none lies there."""
    if not shape.on_heap:
        return 0
    one = aligned(operation(shape.op).module("host").operand_bytes(shape))
    return 3 * cache_bytes + clock.MOST_COPIES * ALIGNMENT + (len(SEEDS) + 2) * one


class Rank:
    """The methods are the requests. All but `prepare` are collective: the supervisor asks every
    rank at once."""

    def __init__(self, spec: WorldSpec, rank: int) -> None:
        import torch
        import torch.distributed as dist

        self.spec = spec
        self.rank = rank
        backend = "gloo" if spec.emulated else "nccl"
        device = None if spec.emulated else torch.device("cuda", rank)
        if device is not None:
            torch.cuda.set_device(device)
        dist.init_process_group(
            backend,
            init_method=f"file://{spec.folder}/rendezvous",
            rank=rank,
            world_size=spec.world,
            device_id=device,
        )
        if spec.emulated:
            from tftune.kernels.comm import emulated

            self.workspace = emulated.workspace(
                spec.folder, rank, spec.world, spec.payload_bytes, dist.group.WORLD
            )
        else:
            self.workspace = Workspace.create(None, spec.payload_bytes, spec.operand_bytes)
        self.barrier = clock.HostBarrier(spec.folder / "barrier", rank, spec.world)
        self._shape: Shape | None = None
        self._references: References | None = None
        self._operands: Any = None
        self._graphs: dict[Config, clock.GraphCall] = {}
        self._start_together: Any = None

    def copy_rates(self) -> selftest.CopyRates:
        """What a streaming copy reaches through the clock of graph mode: whether rotation leaves
        caches cold on this GPU."""
        return selftest.copy_rates(
            self.spec.cache_bytes, self.workspace.device, self._device_barrier()
        )

    def prepare(self, shape: Shape, config: Config, fault: str | None = None) -> None:
        """Compile, load and allocate; launches nothing, so that one rank's failure hangs no other.
        `fault`: as in `check`."""
        self._use(shape)
        faults.fail_to_allocate(fault)
        plans, host = self.workspace.plans, operation(shape.op).module("host")
        if (shape, config) not in plans:
            plans[shape, config] = host.prepare(shape, config, self.workspace)

    def check(self, shape: Shape, config: Config, fault: str | None = None) -> tuple[float, float]:
        """(error, tolerance) of this rank. `fault`: what a drill lets go wrong here."""
        references = self._known_results(shape)
        plan = self.workspace.plans[shape, config]
        if fault is not None:
            plan = faults.faulty(plan, fault, self.rank)
        return references.error(plan, self.workspace), references.tolerance

    def time(
        self, shape: Shape, configs: Sequence[Config], mode: str, rounds: int
    ) -> list[list[float]]:
        """Samples in microseconds of each config, measured in turns: `rounds` of them."""
        plans = [self.workspace.plans[shape, config] for config in configs]
        timed = [timed_part(plan) for plan in plans]
        operands = self._rotation(shape)
        operands[0][-1].fill_(float("nan"))
        if self.spec.emulated:
            samples = clock.host_rounds(timed, operands, rounds, self.barrier)
        elif mode == "eager":
            samples = clock.eager_rounds(timed, operands, rounds, self.barrier)
        else:
            graphs = [self._graph(shape, config, operands) for config in configs]
            agree = Ranks(self.workspace).agreed
            samples = clock.graph_rounds(graphs, rounds, self._device_barrier(), agree)
        if timed[-1] is not plans[-1] or (mode == "eager" and not self.spec.emulated):
            # For `verify`: the rotation may have left there what another config computed, and what
            # was timed may leave nothing.
            plans[-1](*operands[0])
        return samples

    def verify(self, shape: Shape) -> tuple[float, float]:
        """(error, tolerance) of what the last timed config left in its first output; the outputs
        were NaN before."""
        output, references = self._rotation(shape)[0][-1], self._known_results(shape)
        return relative_error(output, references.results[0]), references.tolerance

    def forget(self, shape: Shape, config: Config, mode: str) -> None:
        """Drop a config's graph: a search measures hundreds. Its plan stays for the other mode."""
        if mode == "graph":
            self._graphs.pop(config, None)

    def _use(self, shape: Shape) -> None:
        """Operands, references and graphs belong to one shape; free those of the last."""
        if shape != self._shape:
            self._shape = shape
            self._references = self._operands = None
            self._graphs.clear()
            self.workspace.plans.clear()
            self.workspace.operands.clear()

    def _known_results(self, shape: Shape) -> References:
        if self._references is None:
            self._references = References(shape, self.workspace, **self.spec.data)
        return self._references

    def _rotation(self, shape: Shape) -> Any:
        if self._operands is None:
            module, device = operation(shape.op).module("reference"), self.workspace.device
            inputs = [self._known_results(shape).inputs[0]]
            whole = sum(tensor.nbytes for tensor in inputs[0])
            count = 2 if self.spec.emulated else self._copies(shape, whole)
            for seed in range(SEEDS.stop, SEEDS.stop + count - 1):
                made = module.make_inputs(shape, self.rank, seed, device, **self.spec.data)
                inputs.append(placed(shape, made, self.workspace))
            self._operands = [(*tensors, module.make_output(shape, device)) for tensors in inputs]
        return self._operands

    def _copies(self, shape: Shape, whole: int) -> int:
        """Sets of operands of so many bytes; of ragged ones, of which a call reads a part, more, up
        to MOST_RAGGED bytes. The same on every rank."""
        full = clock.copies(whole, self.spec.cache_bytes)
        if not self.spec.lengths:
            return full
        share: float = operation(shape.op).module("lengths").fill(shape, self.spec.lengths)
        wanted = clock.copies(max(round(whole * share), 1), self.spec.cache_bytes)
        return max(full, min(wanted, MOST_RAGGED // whole))

    def _device_barrier(self) -> Any:
        if self._start_together is None:
            self._start_together = self.workspace.barrier()
        return self._start_together

    def _graph(self, shape: Shape, config: Config, operands: Any) -> Any:
        if config not in self._graphs:
            plan = self.workspace.plans[shape, config]
            plan(*operands[0])  # whatever is set up by a first call must not be captured
            self._graphs[config] = clock.GraphCall(timed_part(plan), operands)
        return self._graphs[config]


def _place_of(error: Exception) -> str:
    """Where an exception that says nothing was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {last.filename}, line {last.lineno}: {last.line}"


def main(connection: Connection, spec: WorldSpec, rank: int, make: type[Rank] = Rank) -> None:
    """Serve requests until the supervisor closes the pipe. Replies: ("ok", value) or ("error",
    exception class, text). `make`: the class whose methods are the requests."""
    die_with_parent()
    log = os.open(spec.folder / f"log-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    served: Rank | None = None
    while True:
        try:
            method, arguments = connection.recv()
        except (EOFError, OSError):
            os._exit(0)
        try:
            if method == "start":
                served = make(spec, rank)
                value = None
            else:
                value = getattr(served, method)(*arguments)
            reply: tuple[Any, ...] = ("ok", value)
        except Exception as error:  # it is a reply: the supervisor decides for all ranks
            traceback.print_exc()
            sys.stderr.flush()
            reply = ("error", type(error).__name__, str(error) or _place_of(error))
        connection.send_bytes(pickle.dumps(reply))
