"""Where a warm-up measures: in the ranks that will serve, or in child processes of rank 0."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pickle
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tftune.confirm.memory import Identity
from tftune.db.files import replace_file
from tftune.db.journal import Journal, NoJournal
from tftune.db.target import Target, build, links
from tftune.db.target import here as machine_here
from tftune.db.trial import Outcome, Run
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation, packages
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.models.selector import Selector
from tftune.tuner.bench.clock import HostBarrier
from tftune.tuner.bench.ranks import Ranks
from tftune.tuner.bench.shared_dir import Shared
from tftune.tuner.bench.watchdog import EXIT_CODE, deadline
from tftune.tuner.bench.worker import WorldSpec
from tftune.tuner.warm_up.confirm import Confirmation
from tftune.tuner.warm_up.order import Order, Site
from tftune.tuner.warm_up.world import Supervisor, patience_s

POLL_S = 0.05
ENGINE_S = 60.0
"""For making a second all-reduce of a serving engine on all ranks."""
NO_ENGINE = (
    f"tftune.warm_up: a serving engine's all-reduce was not made on all ranks within {ENGINE_S:g} "
    f"s; this process ends with code {EXIT_CODE}. Start it without TFTUNE_VLLM_ALL_REDUCE."
)
OWNER = "owner"
"""The file of a shared folder whose lock its owner holds."""


@dataclass(frozen=True)
class Here:
    """The machine and the software that rows of this process are of."""

    target: str
    build: dict[str, str]
    chip: Chip | None
    """None where the GPU is not one that tftune has constants of, and on emulated ranks."""
    cache_bytes: int
    """Last-level cache, which a rotation must pass."""
    arch: str = "interpreter"
    """`sm_90`, `gfx942`, as the GPU says."""

    @classmethod
    def of(cls, workspace: Workspace, selector: Selector) -> Here:
        """As the selector was told, or as torch sees the GPUs; emulated ranks are no machine."""
        if workspace.arch == "interpreter":
            return cls(f"emulatedx{workspace.world}", _build(build(), workspace), None, 0)
        machine = selector.machine or machine_here()
        if machine is None:
            raise ValueError("no GPU can be seen, and the workspace has one; run `tftune doctor`")
        chip = _chip(machine.target)
        cache_bytes = _cache_bytes(workspace.device) if chip is None else chip.cache_bytes
        return cls(
            machine.target, _build(machine.build, workspace), chip, cache_bytes, machine.arch
        )

    def identity(self, workspace: Workspace) -> Identity:
        """What answers of this group on this machine are remembered by."""
        import torch.distributed as dist

        group = workspace.group if workspace.group is not None else dist.group.WORLD
        ranks = tuple(dist.get_process_group_ranks(group))
        return Identity(self.target, self.build, links(), ranks, _revisions())

    @property
    def triton(self) -> str:
        return self.build.get("triton", "")


def _build(found: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
    """A build with the engine, if any, that lends its all-reduce: answers may name that."""
    engines = engine_all_reduce.names(workspace.world)
    return {**found, "engine": engines[0]} if engines else dict(found)


def _revisions() -> dict[str, str]:
    """The revision of every variant of every operation that is installed."""
    return {
        f"{op}/{variant}": installed(op, variant)
        for op in packages()
        for variant in operation(op).space.variants
    }


def _chip(target: str) -> Chip | None:
    try:
        return Target.parse(target).chip
    except ValueError:
        return None


def _cache_bytes(device: Any) -> int:
    import torch

    return int(torch.cuda.get_device_properties(device).L2_cache_size)


@dataclass(frozen=True)
class Scene:
    """What one warm-up is about: who takes part, where, and which run its rows belong to."""

    workspace: Workspace
    ranks: Ranks
    here: Here
    rows: Path
    run: Run


class Folder:
    """A folder in memory that the ranks of one node share; rank 0 owns it. Collective."""

    def __init__(self, ranks: Ranks) -> None:
        self._owned: Shared | None = None
        self.path = ranks.by_first(self._make)

    def _make(self) -> Path:
        self._owned = Shared.make()
        return self._owned.path

    def owner_lives(self) -> bool:
        """Whether rank 0's process still holds the folder's lock."""
        try:
            with open(self.path / OWNER, "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # the folder is gone
            return False
        return False

    def remove(self) -> None:
        if self._owned is not None:
            self._owned.remove()


class InPlace:
    """Measures in these very processes."""

    def __init__(self, scene: Scene) -> None:
        """Collective; raises ValueError on every rank where one cannot write what it must."""
        workspace, ranks = scene.workspace, scene.ranks
        self._folder = Folder(ranks)
        barrier = self._folder.path / "barrier"
        ranks.by_first(lambda: barrier.write_bytes(bytes(8 * ranks.world)))
        self._journal: Journal | NoJournal = NoJournal()
        self._site: Site
        self._timing = ExitStack()

        def open_site() -> None:
            if ranks.rank == 0:
                self._journal = Journal(scene.rows, scene.run)
            barriers = HostBarrier(barrier, ranks.rank, ranks.world), workspace.barrier()
            self._site = Site(workspace, self._journal, *barriers, scene.here.cache_bytes)

        self._buffers = workspace.buffers, dict(workspace.buffers)
        workspace.buffers.clear()  # what is only timed has its own, and leaves none
        try:
            ranks.together(open_site)
            timing = engine_all_reduce.timing(workspace.group)
            with deadline(ENGINE_S, NO_ENGINE, lambda: None):
                ranks.together(lambda: self._timing.enter_context(timing))
        except BaseException:
            self.close()
            raise

    def measure(self, order: Order) -> tuple[dict[Config, Outcome], Collection[Config]]:
        """Outcomes of an order, and the configs whose rows are stored already: none."""
        return Confirmation(order, self._site).run(), ()

    def close(self) -> None:
        """Nothing collective: it is called after one rank's exception, too."""
        with ExitStack() as stack:
            stack.callback(self._folder.remove)
            stack.callback(self._journal.close)
            stack.push(self._timing)
            buffers, before = self._buffers
            buffers.clear()
            buffers.update(before)


class InChildren:
    """Measures in child processes of rank 0, on the GPUs of all ranks, which idle meanwhile."""

    def __init__(self, scene: Scene) -> None:
        """Collective; raises ValueError on every rank where rank 0 may start no processes."""
        workspace, ranks, cache_bytes = scene.workspace, scene.ranks, scene.here.cache_bytes
        self._folder, self._asked = Folder(ranks), 0
        self._supervisor: Supervisor | None = None
        emulated = workspace.arch == "interpreter"
        sizes = workspace.world, emulated, workspace.generation_bytes, cache_bytes
        gpus = ranks.gather(None if emulated else _gpu(workspace.device))
        variable = {} if emulated else {_visible_variable(): ",".join(map(str, gpus))}

        def supervise() -> None:
            _refuse_daemon()
            spec = WorldSpec(Path(), *sizes)
            self._supervisor = Supervisor(spec, scene.rows, scene.run, variable)

        try:
            ranks.by_first(supervise)
        except BaseException:
            self.close()
            raise

    def measure(self, order: Order) -> tuple[dict[Config, Outcome], Collection[Config]]:
        """Outcomes of an order, and the configs whose rows are stored already.

        Raises RuntimeError on every rank where no world of children can be had.
        """
        order = order.without(filter(engine_all_reduce.is_form, order.forms))  # none in a child
        self._asked += 1  # on every rank alike; a shape may be asked about twice
        reply = self._folder.path / f"reply-{self._asked}"
        if self._supervisor is not None:
            replace_file(reply, pickle.dumps(self._answer(self._supervisor, order)))
        outcomes, stored, text = self._wait(reply, patience_s(order))
        if text:
            raise RuntimeError(text)
        return outcomes, stored

    def _answer(self, supervisor: Supervisor, order: Order) -> tuple[Any, ...]:
        try:
            outcomes, left = supervisor.confirm(order)
        except Exception as error:  # whatever it is, the other ranks wait to hear of it
            return {}, set(), f"child processes of rank 0 at {order.shape}: {error}"
        return outcomes, {trial.config for trial in left}, ""

    def _wait(self, reply: Path, limit_s: float) -> tuple[Any, ...]:
        """What rank 0 posted. No collective: its kernel would run beside what is timed."""
        until = time.monotonic() + limit_s
        while not reply.exists():
            if not self._folder.owner_lives():
                raise RuntimeError("rank 0 ended in tftune.warm_up(sandbox=True); start all again")
            if time.monotonic() > until:
                raise TimeoutError(f"rank 0 had not answered after {limit_s:g} s; see its output")
            time.sleep(POLL_S)
        posted: tuple[Any, ...] = pickle.loads(reply.read_bytes())
        return posted

    def close(self) -> None:
        """Nothing collective: it is called after one rank's exception, too."""
        if self._supervisor is not None:
            self._supervisor.close()
        self._folder.remove()


def _refuse_daemon() -> None:
    if multiprocessing.current_process().daemon:
        raise ValueError(
            "sandbox=True starts child processes, which a daemonic process may not; start the "
            "ranks with daemon=False, or call tftune.warm_up without sandbox"
        )


def _visible_variable() -> str:
    import torch

    return "CUDA_VISIBLE_DEVICES" if torch.version.hip is None else "HIP_VISIBLE_DEVICES"


def _gpu(device: Any) -> str:
    """The GPU as the driver numbers it, whatever this process was shown."""
    shown = os.environ.get(_visible_variable())
    return shown.split(",")[device.index].strip() if shown else str(device.index)
