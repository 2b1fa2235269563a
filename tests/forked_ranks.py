"""Emulated ranks forked from one process that has imported torch and Triton already.

A rank that starts anew imports them for 1.5 s of CPU time, and torch's compiler for 2 s more. Most
tests run for less. Tests of how ranks start and end ask for the fixture `ranks_start_anew`.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO
from unittest import mock

from tftune.kernels.comm import emulated

IMPORTED = (
    "hypothesis",
    "pytest",
    "torch.distributed",
    "torch._dynamo",
    "torch._functorch.aot_autograd",
    "tftune.kernels.all_gather_gemm.host",
    "tftune.kernels.flash_decode.host",
    "tftune.tuner.bench.worker",
)
ENVIRONMENT = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
"""What ranks are started with; Triton reads it when kernels are imported."""
_CONTEXT = multiprocessing.get_context("forkserver")
_LIBC = ctypes.CDLL(None)
"""Loaded before any fork."""
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def forked() -> Iterator[None]:
    """Meanwhile ranks are forked. They die with the process that they are forked from, and that one
    ends with this."""
    _CONTEXT.set_forkserver_preload([*IMPORTED])
    processes = SimpleNamespace(Popen=_EmulatedRank, STDOUT=subprocess.STDOUT)
    contexts = SimpleNamespace(get_context=lambda method: _Context())
    with (
        mock.patch("tftune.kernels.comm.emulated.subprocess", processes),
        mock.patch("tftune.tuner.bench.sandbox.multiprocessing", contexts),
    ):
        yield


@contextmanager
def started_anew() -> Iterator[None]:
    """Meanwhile each rank is a new process, as for a user; those of `emulated` die with this."""
    popen = partial(subprocess.Popen, preexec_fn=die_with_parent)
    processes = SimpleNamespace(Popen=popen, STDOUT=subprocess.STDOUT)
    with (
        mock.patch("tftune.kernels.comm.emulated.subprocess", processes),
        mock.patch("tftune.tuner.bench.sandbox.multiprocessing", multiprocessing),
    ):
        yield


def context() -> Any:
    """The context of multiprocessing whose processes are forked from that one. Tests that fork
    others take it, too: a process of pytest has one such server, and who starts it decides whether
    kernels are interpreted in all that it forks."""
    with mock.patch.dict(os.environ, ENVIRONMENT):
        forkserver.ensure_running()
    return _CONTEXT


def _process(target: Callable[..., None], arguments: tuple[Any, ...], daemon: bool) -> Any:
    """A process, not started yet, that is forked from the one with all imports. A daemon may not
    start processes of its own."""
    return context().Process(target=target, args=arguments, daemon=daemon)


class _Context:
    """What the sandbox takes of a context of multiprocessing."""

    Pipe = staticmethod(_CONTEXT.Pipe)

    def Process(self, target: Callable[..., None], args: tuple[Any, ...], daemon: bool) -> Any:
        if not args[1].emulated:  # on a GPU, where nothing may be interpreted
            spawning = multiprocessing.get_context("spawn")
            return spawning.Process(target=target, args=args, daemon=daemon)
        return _process(_serve, (dict(os.environ), target, args), daemon)


def _serve(
    environment: Mapping[str, str], target: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    die_with_parent()
    # The parent ends when nobody holds this, and by default its children do.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    os.environ.clear()
    os.environ.update(environment)
    target(*arguments)


class _EmulatedRank:
    """What `emulated` takes of a Popen."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], stdout: BinaryIO, stderr: int
    ) -> None:
        arguments = dict(env), _run_rank, (command[3:], stdout.name)
        self._process = _process(_serve, arguments, daemon=False)
        self._process.start()

    def poll(self) -> int | None:
        status: int | None = self._process.exitcode
        return status

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> None:
        self._process.join()


def _run_rank(arguments: list[str], log: str) -> None:
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.argv[1:] = arguments
    emulated._rank(Path(arguments[0]), int(arguments[1]))
