"""Compile ahead: candidates compile in CPU processes while others are measured, once for all ranks, into Triton's cache."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from tftune.db.trial import Failure
from tftune.kernels.chips import Chip
from tftune.kernels.compile import gpu_target
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.tuner.processes import Helpers


class CompilePool:
    """Compiles each distinct kernel once for one chip. Nothing it runs needs a GPU."""

    def __init__(self, chip: Chip, deadline_s: float, workers: int | None = None) -> None:
        self._chip, self._deadline_s = chip, deadline_s
        self._workers = workers or max(1, (os.cpu_count() or 2) * 3 // 4)
        self._pool: Helpers | None = None
        self._jobs: dict[Any, Future[None]] = {}

    def ahead(self, shape: Shape, configs: Iterable[Config]) -> None:
        """Queue what is not compiled yet; library calls have nothing to compile."""
        for config in configs:
            for number, key in enumerate(self._keys(shape, config)):
                if key not in self._jobs:
                    if self._pool is None:
                        self._pool = Helpers(self._workers)
                    self._jobs[key] = self._pool.submit(compile_one, shape, config, self._chip, number)

    def settle(self, timeout_s: float) -> None:
        """Wait until the queue is empty, or as long; what failed is told where it is asked for."""
        wait(self._jobs.values(), timeout=timeout_s)

    def failure(self, shape: Shape, config: Config) -> Failure | None:
        """Wait for this config's kernels; why one could not be compiled, or None. A compiler that dies takes the pool with it, whoever
        asked for it: a config is blamed only if it dies again alone."""
        for again in (False, True):
            self.ahead(shape, [config])
            try:
                for key in self._keys(shape, config):
                    self._await(self._jobs[key])
            except TimeoutError as error:
                self.close()
                return Failure("compile", str(error))
            except BrokenProcessPool as error:
                self.close()
                if again:
                    return Failure("compile", f"the compiler died: {error}")
            except Exception as error:  # whatever the compiler raises for this config is this config's failure
                kind = "resources" if isinstance(error, ResourcesError) or type(error).__name__ == "OutOfResources" else "compile"
                return Failure(kind, f"{type(error).__name__}: {error}"[:500])
            else:
                return None
        return None

    def _await(self, job: Future[None]) -> None:
        """The job's result. Time spent in the queue is not on its clock. Raises TimeoutError."""
        started = None
        while not wait([job], timeout=0.05 if started is None else 1.0).done:
            if started is None and job.running():
                started = time.monotonic()
            if started is not None and time.monotonic() - started > self._deadline_s:
                raise TimeoutError(f"the compiler had not returned after {self._deadline_s:g} s")
        job.result()

    def _keys(self, shape: Shape, config: Config) -> list[Any]:
        """What decides each binary of a config; none for library calls."""
        return [source.key for source in operation(shape.op).module("host").kernel_sources(shape, config, self._chip)]

    def close(self) -> None:
        """End the processes, one that hangs in a compiler included."""
        if self._pool is not None:
            self._pool.kill()
        self._pool = None
        self._jobs.clear()


class ResourcesError(Exception):
    """A compiled kernel needs more of the chip than there is."""


def compile_one(shape: Shape, config: Config, chip: Chip, number: int = 0) -> None:
    """Compile a config's kernel of that number for a chip, in any process, without a GPU. Raises what the compiler raises, and
    ResourcesError where the kernel needs more shared memory than the chip has."""
    source = operation(shape.op).module("host").kernel_sources(shape, config, chip)[number]
    shared = source.compile(gpu_target(chip.arch)).metadata.shared
    if shared > chip.shared_bytes:
        raise ResourcesError(f"it needs {shared} bytes of shared memory and {chip.name} has {chip.shared_bytes}")
