"""The arms of the tax study on real ranks: a fused config or BSP with something added or left out,
timed in the same rounds by the clock of a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tftune.db.target import Target
from tftune.db.trial import Measurement
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.plan import Plan, Steps, launcher
from tftune.studies.taxes import operations
from tftune.studies.taxes.arms import BSP, Arm
from tftune.tuner.bench import worker
from tftune.tuner.bench.sandbox import World, slowest

ROUNDS = 41
DEADLINE_S = 120.0
PER_ARM_S = 10.0
"""What an arm may take of the deadline of all rounds."""
LEAST_US = 0.01
"""The least time of a clocked wait: a row keeps two decimals, and its samples are positive."""
BLOCK, COPIERS = 4096, 4
"""32-bit words that a program copies at a time, and programs for each SM or CU."""


@dataclass(frozen=True, order=True)
class Armed:
    """An arm and the config that its base is: what a rank prepares and times in place of a
    config."""

    arm: Arm
    config: Config

    @property
    def variant(self) -> str:
        return self.config.variant


class TaxRank(worker.Rank):
    """A rank of a search that takes `Armed` for configs."""

    def prepare(self, shape: Any, config: Any, fault: str | None = None) -> None:
        """Compile and allocate one arm; raises ValueError for a config that has no such arm."""
        self._use(shape)
        armed: Armed = config
        plans = self.workspace.plans
        alone = replace(armed, arm=armed.arm.alone)
        if (shape, alone) not in plans:  # arms share it, and its buffers
            plans[shape, alone] = base_plan(shape, alone, self.workspace)
        plans[shape, armed] = with_additions(shape, armed.arm, plans[shape, alone], self.workspace)

    def waited(self, shape: Any, armed: Any, rounds: int) -> list[float]:
        """Microseconds that a program waited for peers in each round, mean over the programs that
        wait: by the device's clock, one call at a time, all ranks started together."""
        import torch

        plan, operands = self.workspace.plans[shape, armed], self._rotation(shape)
        op, units = operation(shape.op), self.workspace.units
        config = op.space.complete(armed.config)
        programs = operations.of(shape.op).waiting_programs(shape, config, units)
        waited_ns = torch.zeros(1, dtype=torch.int64, device=self.workspace.device)
        take, samples, together = take_waited(self.workspace), [], self._device_barrier()
        for number in range(rounds + 1):  # the first warms up
            self.barrier.wait()
            together()
            plan(*operands[number % len(operands)])
            take(waited_ns)
            samples.append(max(float(waited_ns.item()) / 1e3 / programs, LEAST_US))
        return samples[1:]


def serve(connection: Connection, spec: worker.WorldSpec, rank: int) -> None:
    worker.main(connection, spec, rank, make=TaxRank)


def base_plan(shape: Any, armed: Armed, workspace: Any) -> Plan:
    """The call of an arm without what is added to it. Raises ValueError for an unknown step."""
    arm, op = armed.arm, operation(shape.op)
    if not arm.without:
        plan: Plan = op.module("host").prepare(shape, armed.config, workspace, waits=arm.waits)
        return plan
    steps = operations.of(shape.op).step_plans(shape, armed.config, workspace)
    if arm.without not in steps:
        raise ValueError(f"BSP has no step {arm.without!r}; its steps are {', '.join(steps)}")
    return Steps(tuple(step for name, step in steps.items() if name != arm.without))


def with_additions(shape: Any, arm: Arm, base: Plan, workspace: Any) -> Plan:
    """The call with a delay before it, and kernels behind it, as the arm says."""
    if not arm.kernels and arm.late < 0:
        return base
    behind: list[Callable[[], None]] = []
    if arm.kernels:
        size = round(arm.trips * operations.of(shape.op).trip_bytes(shape))
        first = round_trip(size, workspace) if size else empty(workspace)
        behind = [first, *[empty(workspace)] * (arm.kernels - 1)]
    wait = delay(arm.late, workspace) if arm.late >= 0 else None

    def call(*operands: Any) -> None:
        if wait:
            wait()
        base(*operands)
        for add in behind:
            add()

    return call


def empty(workspace: Any) -> Callable[[], None]:
    """A call that launches one program, which does nothing."""
    import torch

    word = torch.zeros(1, dtype=torch.int32, device=workspace.device)
    return launcher(empty_source(), (1, 1, 1), (), {"word_ptr": word}, workspace.arch)


def empty_source() -> KernelSource:
    from tftune.studies.taxes.kernels import empty

    return KernelSource(empty, {"word_ptr": "*i32"}, {}, ("word_ptr",), {"num_warps": 1})


def round_trip(size: int, workspace: Any) -> Callable[[], None]:
    """A call that copies so many bytes, rounded up to whole words, between two buffers of its
    own."""
    import torch

    words = -(-size // 4)
    source, target = (
        torch.zeros(words, dtype=torch.int32, device=workspace.device) for _ in range(2)
    )
    grid = (min(COPIERS * workspace.units, -(-words // BLOCK)), 1, 1)
    values = {"source_ptr": source, "target_ptr": target, "count": words}
    return launcher(round_trip_source(), grid, (), values, workspace.arch)


def round_trip_source() -> KernelSource:
    from tftune.studies.taxes.kernels import round_trip

    types = {"source_ptr": "*i32", "target_ptr": "*i32", "count": "i64"}
    return KernelSource(
        round_trip, types, {"BLOCK": BLOCK}, ("source_ptr", "target_ptr"), {"num_warps": 4}
    )


def delay(us: int, workspace: Any) -> Callable[[], None]:
    """A call that makes the last rank of several late by so many microseconds. Every rank launches
    its kernel, so that only the delay differs."""
    late_us = us if workspace.rank == workspace.world - 1 else 0
    if workspace.arch == "interpreter":
        return partial(time.sleep, late_us / 1e6)
    return launcher(late_source(workspace.arch), (1, 1, 1), (), {"ns": 1000 * late_us}, "")


def late_source(arch: str) -> KernelSource:
    from tftune.studies.taxes.kernels import late

    return KernelSource(late, {"ns": "i64"}, {"ARCH": arch}, (), {"num_warps": 1})


def take_waited(workspace: Any) -> Callable[[Any], None]:
    """A call that moves this rank's sum of waits, in nanoseconds, to a tensor int64[1]."""
    kernel = take_waited_source()
    fixed = {"control": workspace.control}
    return launcher(kernel, (1, 1, 1), ("waited_ptr",), fixed, workspace.arch)


def take_waited_source() -> KernelSource:
    from tftune.studies.taxes.kernels import take_waited

    types = {"waited_ptr": "*i64", "control": "i64"}
    return KernelSource(take_waited, types, {}, ("waited_ptr", "control"), {"num_warps": 1})


def measure(
    shape: Shape,
    arms: Mapping[str, Sequence[Arm]],
    config: Config,
    form: Config,
    target: Target,
    *,
    emulated: bool = False,
    rounds: int = ROUNDS,
) -> dict[str, dict[Arm, Measurement]]:
    """By mode, a measurement of each arm: the slowest rank of each round. The arms of a mode share
    their rounds, and BSP's samples. Those that compute the operation are checked first.

    `arms`: by mode, BSP among them. Raises Broken or RankError where ranks fail, and ValueError
    where an arm computes something else.
    """
    armed = {
        arm: Armed(arm, form if arm.base == "bsp" else config)
        for arm in dict.fromkeys(arm for each in arms.values() for arm in each)
    }
    world = int(shape.to_dict().get("world", 1))
    payload = operation(shape.op).module("host").payload_bytes(shape)
    cache = 0 if emulated else target.chip.cache_bytes
    on_heap = worker.operand_bytes(shape, cache)
    spec = worker.WorldSpec(Path(), world, emulated, payload, cache, on_heap)
    measurements = {}
    with World(spec, serve=serve) as ranks:
        errors = {arm: _checked(ranks, shape, each) for arm, each in armed.items()}
        for mode, asked in arms.items():
            samples = _samples(ranks, shape, [armed[arm] for arm in asked], mode, rounds)
            measurements[mode] = {
                arm: Measurement(samples[arm], samples[BSP], errors[arm]) for arm in asked
            }
    return measurements


def _samples(
    ranks: World, shape: Shape, armed: Sequence[Armed], mode: str, rounds: int
) -> dict[Arm, tuple[float, ...]]:
    """Times of each arm, round by round. What is clocked takes rounds of its own."""
    timed = [each for each in armed if not each.arm.clocked]
    deadline_s = max(DEADLINE_S, PER_ARM_S * len(timed))
    replies = ranks.request("time", (shape, timed, mode, rounds), deadline_s)
    times = {
        each.arm: slowest([samples[place] for samples in replies])
        for place, each in enumerate(timed)
    }
    for each in armed:
        if each.arm.clocked:
            waits = ranks.request("waited", (shape, each, rounds), DEADLINE_S)
            times[each.arm] = slowest(waits)
    return times


def _checked(ranks: World, shape: Shape, each: Armed) -> float | None:
    """The largest error of an arm over ranks; None where it leaves a step out."""
    ranks.request("prepare", (shape, each), DEADLINE_S)
    if not each.arm.whole:
        return None
    replies = ranks.request("check", (shape, each), DEADLINE_S)
    worst: float = max(error for error, _ in replies)
    if not worst <= replies[0][1]:
        raise ValueError(
            f"arm {each.arm} of {each.config} is wrong at {shape}: its relative error "
            f"{worst:.3g} is above {replies[0][1]:.3g}"
        )
    return worst
