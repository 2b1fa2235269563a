"""The node bench: real ranks under the sandbox. Compile ahead on the CPU, agree, check, then time beside BSP; a failure is a row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from math import isfinite
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.compile import gpu_target
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.tuner.sandbox import Broken, RankError, World, slowest
from tftune.tuner.worker import WorldSpec


@dataclass(frozen=True)
class Deadlines:
    """Seconds that each phase of a trial may take before the world is killed."""

    compile: float = 120.0
    prepare: float = 60.0
    check: float = 30.0
    time: float = 30.0


@dataclass(frozen=True)
class Rounds:
    """Rounds of one trial. A config that after `probe` rounds was nowhere near BSP is not measured further."""

    probe: int = 4
    search: int = 15
    final: int = 41
    hopeless: float = 0.5
    """A ratio BSP / config; a config below it in every probe round is stopped early."""


class NodeBench:
    """Measures on as many ranks of this machine as the shape asks for; emulated ones exercise the same protocol, not its speed.

    `measure` never raises for a config: a hang, a crash, a wrong result are Failures, after which the world is started again.
    """

    name = "node"

    def __init__(
        self,
        target: Target,
        payload_bytes: int,
        *,
        emulated: bool = False,
        deadlines: Deadlines = Deadlines(),
        rounds: Rounds = Rounds(),
        inject: Callable[[Shape, Config], str | None] = lambda shape, config: None,
    ) -> None:
        """`payload_bytes`: what the largest shape needs of one generation. `inject`: the fault of `faults.FAULTS` that a drill lets
        a config's check run into. Starts nothing yet."""
        self.target = target
        self._emulated, self._payload_bytes = emulated, payload_bytes
        self._deadlines, self._rounds, self._inject = deadlines, rounds, inject
        self._world: World | None = None
        self._verdicts: dict[tuple[Shape, Config], float | Failure] = {}
        self._compiled: dict[Any, Future[None]] = {}
        self._pool: ProcessPoolExecutor | None = None
        self.starts_s: list[float] = []
        """Seconds that each start of a world took."""

    def ahead(self, shape: Shape, configs: Iterable[Config]) -> None:
        """Compile these in CPU processes meanwhile, once for all ranks, into Triton's cache; each distinct kernel once."""
        if self._emulated:
            return
        for config in configs:
            key = self._kernel_key(shape, config)
            if key is not None and key not in self._compiled:
                if self._pool is None:
                    workers = max(1, (os.cpu_count() or 2) // 2)
                    self._pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
                self._compiled[key] = self._pool.submit(compile_one, shape, config, self.target.chip.arch)

    def measure(self, shape: Shape, config: Config, mode: str, baseline: Config | None, *, stage: str = "search") -> Outcome:
        chip = None if self._emulated else self.target.chip
        if sentence := operation(shape.op).space.why_invalid(shape, config, chip):
            return Failure("invalid", sentence)
        if failure := self._compile_failure(shape, config):
            return failure
        try:
            world = self._ranks(shape)
        except Broken as broken:
            return broken.failure
        try:
            return self._measure(world, shape, config, mode, baseline, stage)
        except Broken as broken:
            self._verdicts[shape, config] = broken.failure
            return broken.failure

    def _ranks(self, shape: Any) -> World:
        """A live world of the size that the shape asks for. Raises Broken where it does not start."""
        if self._world is None or self._world.size != shape.world:
            if self._world is not None:
                self._world.kill()
            cache = 0 if self._emulated else self.target.chip.cache_bytes
            self._world = World(WorldSpec(Path(), shape.world, self._emulated, self._payload_bytes, cache))
        if not self._world.alive:
            self.starts_s.append(self._world.start())
        return self._world

    def _measure(self, world: World, shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
        configs = [config] if baseline is None else [baseline, config]
        check_error = None
        for each in configs:
            verdict = self._verdict(world, shape, each)
            if isinstance(verdict, Failure):
                return verdict
            check_error = verdict
        samples, stopped = self._time(world, shape, configs, mode, stage)
        if baseline is not None:
            world.request("forget", (shape, config, mode), self._deadlines.prepare)
        return Measurement(samples[-1], samples[0], check_error, stopped)

    def _verdict(self, world: World, shape: Shape, config: Config) -> float | Failure:
        """The check's largest error over ranks, or why the config may not be timed: the verdict of all ranks together."""
        try:
            world.request("prepare", (shape, config), self._deadlines.prepare)
        except RankError as error:
            return Failure("resources" if error.name == "OutOfResources" else "compile", str(error)[:500])
        known = self._verdicts.get((shape, config))
        if known is not None:
            return known
        replies = world.request("check", (shape, config, self._inject(shape, config)), self._deadlines.check)
        worst = max(error for error, _ in replies)
        tolerance = replies[0][1]
        verdict: float | Failure = worst
        if not isfinite(worst) or worst > tolerance:
            ranks = [rank for rank, (error, _) in enumerate(replies) if not error <= tolerance]
            verdict = Failure("wrong", f"relative error {worst:.3g} on ranks {ranks} is above {tolerance:.3g}")
        self._verdicts[shape, config] = verdict
        return verdict

    def _time(self, world: World, shape: Shape, configs: list[Config], mode: str, stage: str) -> tuple[list[tuple[float, ...]], bool]:
        """Samples of each config, slowest rank by round; and whether it was stopped after the probe."""
        rounds = self._rounds
        if stage == "final":
            return self._slowest(world, shape, configs, mode, rounds.final), False
        first = self._slowest(world, shape, configs, mode, rounds.probe)
        if all(bsp < rounds.hopeless * us for bsp, us in zip(first[0], first[-1], strict=True)):
            return first, True
        more = self._slowest(world, shape, configs, mode, rounds.search - rounds.probe)
        return [one + other for one, other in zip(first, more, strict=True)], False

    def _slowest(self, world: World, shape: Shape, configs: list[Config], mode: str, rounds: int) -> list[tuple[float, ...]]:
        replies = world.request("time", (shape, configs, mode, rounds), self._deadlines.time)
        return [slowest([samples[index] for samples in replies]) for index in range(len(configs))]

    def _kernel_key(self, shape: Shape, config: Config) -> Any:
        """What decides the binary: None for library calls."""
        source = operation(shape.op).module("host").kernel_source(shape, config, self.target.chip)
        if source is None:
            return None
        return (source.kernel.fn.__name__, *sorted((*source.types.items(), *source.constants.items(), *source.options.items()), key=str))

    def _compile_failure(self, shape: Shape, config: Config) -> Failure | None:
        self.ahead(shape, [config])
        future = self._compiled.get(self._kernel_key(shape, config)) if not self._emulated else None
        if future is None:
            return None
        try:
            future.result(self._deadlines.compile)
        except (FutureTimeout, BrokenProcessPool) as error:
            self._end_pool()
            return Failure("compile", f"the compiler did not return within {self._deadlines.compile:g} s, or died: {error!r}")
        except Exception as error:  # whatever the compiler raises for this config is this config's failure
            kind = "resources" if type(error).__name__ == "OutOfResources" else "compile"
            return Failure(kind, f"{type(error).__name__}: {error}"[:500])
        return None

    def restart(self) -> None:
        """End the world; the next measurement starts a fresh one. What was checked is checked again."""
        if self._world is not None:
            self._world.kill()
        self._verdicts.clear()

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None
        self._compiled.clear()

    def close(self) -> None:
        if self._world is not None:
            self._world.kill()
        self._end_pool()


class ResourcesError(Exception):
    """A compiled kernel needs more of the chip than there is. Named as Triton names it where a launch finds out."""


ResourcesError.__name__ = "OutOfResources"


def compile_one(shape: Shape, config: Config, arch: str) -> None:
    """Compile a config for an architecture, in any process, without a GPU. Raises what the compiler raises, and ResourcesError
    where the kernel needs more shared memory than the chip has."""
    from tftune.kernels.chips import CHIPS

    chip = next(chip for chip in CHIPS.values() if chip.arch == arch)
    source = operation(shape.op).module("host").kernel_source(shape, config, chip)
    if source is not None:
        shared = source.compile(gpu_target(arch)).metadata.shared
        if shared > chip.shared_bytes:
            raise ResourcesError(f"it needs {shared} bytes of shared memory and {chip.name} has {chip.shared_bytes}")
