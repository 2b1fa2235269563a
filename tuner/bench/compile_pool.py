"""Compile ahead: candidates compile in CPU processes while others are measured, once for all ranks,
into Triton's cache."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from tftune.db.trial import Failure
from tftune.kernels.core.architecture import HIP
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.compile import gpu_target
from tftune.tuner.audit import resources
from tftune.tuner.bench.processes import Helpers


class CompilePool:
    """Compiles each distinct kernel once for one chip. Nothing it runs needs a GPU."""

    def __init__(self, chip: Chip, deadline_s: float, workers: int | None = None) -> None:
        self._chip, self._deadline_s = chip, deadline_s
        self._workers = workers or max(1, (os.cpu_count() or 2) * 3 // 4)
        self._pool: Helpers | None = None
        self._jobs: dict[Any, Future[None]] = {}
        self._known: dict[tuple[Shape, Config], list[Any]] = {}
        self._started: dict[Any, float] = {}
        """When a compiler took a job, as far as somebody looked."""
        self._hung: set[Any] = set()
        """Kernels that passed the deadline; they are not tried again."""

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        """Queue what is not compiled yet; library calls have nothing to compile. Where a compiler
        died that nobody has asked for yet, a fresh pool takes the queue's place: what is wrong with
        a config is told where it is asked for."""
        for _ in range(2):
            try:
                return self._queue(shape, configs)
            except BrokenProcessPool:
                self.close()

    def _queue(self, shape: Shape, configs: Sequence[Config]) -> None:
        for config in configs:
            for number, key in enumerate(self._keys(shape, config)):
                if key not in self._jobs and key not in self._hung:
                    if self._pool is None:
                        self._pool = Helpers(self._workers)
                    self._jobs[key] = self._pool.submit(
                        compile_one, shape, config, self._chip, number
                    )

    def ready(self, shape: Shape, config: Config) -> bool:
        """Whether each of this config's kernels is compiled, or is known to fail."""
        return all(
            key in self._hung or (key in self._jobs and self._jobs[key].done())
            for key in self._keys(shape, config)
        )

    def settle(self, timeout_s: float) -> None:
        """Wait until the queue is empty, or as long; what failed is told where it is asked for."""
        wait(self._jobs.values(), timeout=timeout_s)

    def failure(self, shape: Shape, config: Config) -> Failure | None:
        """Wait for this config's kernels; why one could not be compiled, or None. A compiler that
        dies takes the pool with it, whoever asked for it: a config is blamed only if it dies again
        alone."""
        for again in (False, True):
            try:
                for key in self._keys(shape, config):
                    self._await(shape, config, key)
            except TimeoutError as error:
                return Failure("compile", str(error))
            except BrokenProcessPool as error:
                self.close()
                if again:
                    return Failure("compile", f"the compiler died: {error}")
            except Exception as error:  # whatever the compiler raises is this config's failure
                name = type(error).__name__
                lacking = isinstance(error, ResourcesError) or name == "OutOfResources"
                kind = "resources" if lacking else "compile"
                return Failure(kind, f"{name}: {error}"[:500])
            else:
                return None
        return None

    def _await(self, shape: Shape, config: Config, key: Any) -> None:
        """The kernel's binary is there; time spent in the queue is not on its clock. A compiler
        that hangs, whoever asked for it, ends with the pool, and what is waited for here is queued
        again. Raises TimeoutError where it is this kernel's."""
        while key not in self._hung:
            self._queue(shape, [config])
            if wait([self._jobs[key]], timeout=0.05 if key not in self._started else 1.0).done:
                return self._jobs[key].result()
            if (overdue := self._overdue()) is not None:
                self._hung.add(overdue)
                self.close()
        raise TimeoutError(f"the compiler had not returned after {self._deadline_s:g} s")

    def _overdue(self) -> Any:
        """A kernel whose compiler has passed the deadline, or None. Jobs are taken in their order;
        the pool calls more of them running, to have the next one at hand."""
        taken = [key for key, job in self._jobs.items() if job.running()][: self._workers]
        now = time.monotonic()
        return next(
            (key for key in taken if now - self._started.setdefault(key, now) > self._deadline_s),
            None,
        )

    def _keys(self, shape: Shape, config: Config) -> list[Any]:
        """What decides each binary of a config; none for library calls. Worked out once: a search
        asks for the same configs after each trial."""
        if (shape, config) not in self._known:
            sources = operation(shape.op).module("host").kernel_sources(shape, config, self._chip)
            self._known[shape, config] = [source.key for source in sources]
        return self._known[shape, config]

    def close(self) -> None:
        """End the processes, one that hangs in a compiler included."""
        if self._pool is not None:
            self._pool.kill()
        self._pool = None
        self._jobs.clear()
        self._started.clear()


class ResourcesError(Exception):
    """A compiled kernel needs more of the chip than there is."""


def compile_one(shape: Shape, config: Config, chip: Chip, number: int = 0) -> None:
    """Compile a config's kernel of that number for a chip, in any process, without a GPU. Raises
    what the compiler raises, and ResourcesError where the kernel needs more shared memory than the
    chip has, or, on AMD, whose assembly says so, spills registers. (On NVIDIA a few bytes of a
    stack cost nothing; what many cost is measured.)"""
    source = operation(shape.op).module("host").kernel_sources(shape, config, chip)[number]
    compiled = source.compile(gpu_target(chip.arch))
    shared = compiled.metadata.shared
    if shared > chip.shared_bytes:
        raise ResourcesError(
            f"it needs {shared} bytes of shared memory and {chip.name} has {chip.shared_bytes}"
        )
    if chip.can.backend == HIP:
        needs = resources(compiled.asm["amdgcn"], shared, config.variant)
        if sentence := needs.why_refused(chip.shared_bytes):
            raise ResourcesError(sentence)
