"""A world of worker processes under a supervisor without any GPU context: deadlines, verdicts of
all ranks, kill and start again.

A spinning kernel cannot be interrupted from inside its process, so a trial that passes its deadline
ends with the whole world.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from tftune.db.trial import Failure
from tftune.kernels.runtime.triton_cache import shared_cache
from tftune.tuner.bench import worker
from tftune.tuner.bench.processes import deaf_to_ctrl_c, environment
from tftune.tuner.bench.shared_dir import Shared
from tftune.tuner.bench.worker import WorldSpec

GRACE_S = 3.0
"""After one rank replied with an error, how long the others may still take: they may be waiting for
it."""
START_S = 120.0
KILL_S = 30.0
"""How long a killed rank may need to give its GPU memory back."""


class Broken(Exception):
    """The world is gone or in doubt: it must be started again. `failure` is what the trial
    becomes."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.failure = Failure(kind, text)


class RankError(Exception):
    """A rank replied with an exception; no rank launched anything it waits for."""

    def __init__(self, rank: int, name: str, text: str) -> None:
        super().__init__(f"rank {rank}: {name}: {text}")
        self.rank, self.name, self.text = rank, name, text


class World:
    """One process for each rank. `request` asks all ranks the same and returns all replies, or
    raises."""

    def __init__(
        self,
        spec: WorldSpec,
        spent_s: dict[str, float] | None = None,
        serve: Callable[[Connection, WorldSpec, int], None] = worker.main,
    ) -> None:
        """`spent_s` gathers the wall-clock seconds of each request. `serve`: what each rank's
        process runs."""
        self._spec, self._serve = spec, serve
        self._ranks: list[tuple[Any, Connection]] = []
        self._shared: Shared | None = None
        self._noticed: float | None = None
        self.ended_s = 0.0
        """Seconds from when this world was seen to be broken, or to be ended, until its last rank
        was gone."""
        self.spent_s = defaultdict(float) if spent_s is None else spent_s

    @property
    def size(self) -> int:
        return self._spec.world

    @property
    def operand_bytes(self) -> int:
        return self._spec.operand_bytes

    @property
    def alive(self) -> bool:
        return bool(self._ranks)

    def start(self) -> float:
        """Start every rank, join them and make the workspace; returns the seconds it took. Raises
        Broken."""
        began = time.monotonic()
        self._shared = Shared.make()
        folder = self._shared.path
        spec = replace(self._spec, folder=folder)
        (folder / "barrier").write_bytes(bytes(8 * spec.world))
        if spec.emulated:
            from tftune.kernels.comm import emulated

            emulated.prepare(folder, spec.world, spec.payload_bytes, spec.operand_bytes)
        context = multiprocessing.get_context("spawn")
        with environment(_inherited(spec)), shared_cache(), deaf_to_ctrl_c():
            for rank in range(spec.world):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=self._serve, args=(theirs, spec, rank), daemon=True
                )
                process.start()
                theirs.close()
                self._ranks.append((process, ours))
        self.request("start", (), START_S)
        return time.monotonic() - began

    def request(self, method: str, arguments: tuple[Any, ...], deadline_s: float) -> list[Any]:
        """The value that each rank returned. Raises RankError where every rank replied and one with
        an exception while preparing; Broken, after killing the world, where a rank died, raised in
        a collective request, or passed the deadline."""
        began = time.monotonic()
        message = pickle.dumps((method, arguments))
        try:
            for _, connection in self._ranks:
                connection.send_bytes(message)
            replies = self._collect(method, began + deadline_s)
        except (BrokenPipeError, ConnectionError) as error:
            text = self._describe_crash(method, error)
            self.kill()
            raise Broken("crash", text) from error
        except BaseException:  # an interrupt, too: a reply left would answer the next request
            self.kill()
            raise
        finally:
            self.spent_s[method] += time.monotonic() - began
        for rank, reply in enumerate(replies):
            if reply[0] == "error":
                if method == "prepare":
                    raise RankError(rank, reply[1], reply[2])
                text = f"rank {rank} raised {reply[1]} in {method}: {reply[2]}"
                self.kill()
                raise Broken("crash", text)
        return [reply[1] for reply in replies]

    def _collect(self, method: str, deadline: float) -> list[tuple[Any, ...]]:
        replies: dict[int, tuple[Any, ...]] = {}
        waiting = {connection: rank for rank, (_, connection) in enumerate(self._ranks)}
        began = time.monotonic()
        while waiting:
            ready = wait(list(waiting), timeout=max(0.0, deadline - time.monotonic()))
            for connection in ready:
                assert isinstance(connection, Connection)
                rank = waiting.pop(connection)
                try:
                    replies[rank] = pickle.loads(connection.recv_bytes())
                except (EOFError, OSError) as error:
                    self._notice()
                    raise Broken("crash", self._describe_crash(method, error)) from error
                if replies[rank][0] == "error" and method != "prepare":  # which waits for nobody
                    self._notice()
                    deadline = min(deadline, time.monotonic() + GRACE_S)
            if not ready and waiting:
                late, after_s = sorted(waiting.values()), time.monotonic() - began
                raise self._late(method, replies, late, after_s)
        return [replies[rank] for rank in sorted(replies)]

    def _notice(self) -> None:
        """This world is broken: from the first sign of it the clock of the recovery runs."""
        self._noticed = self._noticed or time.monotonic()

    def _late(
        self, method: str, replies: dict[int, tuple[Any, ...]], late: list[int], after_s: float
    ) -> Broken:
        for rank, reply in replies.items():
            if reply[0] == "error":
                return Broken(
                    "crash",
                    f"rank {rank} raised {reply[1]} in {method}: {reply[2]}; ranks {late} waited "
                    "for it",
                )
        return Broken(
            "hang",
            f"ranks {late} of {len(self._ranks)} had not ended {method} after {after_s:.1f} s",
        )

    def _describe_crash(self, method: str, error: Exception) -> str:
        for process, _ in self._ranks:
            process.join(timeout=0.2)
        ended = [
            f"rank {rank} with {process.exitcode}"
            for rank, (process, _) in enumerate(self._ranks)
            if process.exitcode is not None
        ]
        return f"{', '.join(ended) or repr(error)} ended during {method}"

    def kill(self) -> None:
        """End every rank at once and remove what they shared. Nothing survives: memory goes back
        with the processes."""
        noticed, self._noticed = self._noticed or time.monotonic(), None
        for process, connection in self._ranks:
            process.kill()
            connection.close()
        for process, _ in self._ranks:
            process.join(timeout=KILL_S)
        if self._shared is not None:
            self._shared.remove()
        self._shared, self._ranks = None, []
        self.ended_s = time.monotonic() - noticed

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _inherited(spec: WorldSpec) -> dict[str, str]:
    """What the ranks inherit; set here, since Triton reads its variables when it is imported."""
    if spec.emulated:
        return {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    return {"NCCL_DEBUG": os.environ.get("NCCL_DEBUG", "WARN")}


def slowest(samples: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Round by round, the slowest rank's sample.

    >>> slowest([[1.0, 5.0], [2.0, 4.0]])
    (2.0, 5.0)
    """
    return tuple(max(ranks) for ranks in zip(*samples, strict=True))
