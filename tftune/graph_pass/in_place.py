"""Measure what a graph asks for while torch compiles it, on all ranks, before any replacement.

Compiled code stays in torch's cache under the lineage of these answers (`confirm/memory.py`). A
graph with a shape that has no answer was never compiled under this lineage, so every rank meets it
here. A rank whose cache has the graph needs no answer that is not on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import torch
import torch.distributed as dist
from torch._dispatch.python import no_python_dispatcher
from torch._subclasses.fake_tensor import unset_fake_temporarily

import tftune
from tftune.confirm.bench import Here
from tftune.confirm.memory import View
from tftune.confirm.request import bound
from tftune.confirm.warm_up import open_memory, remember
from tftune.db.trial import MODES
from tftune.graph_pass.decide import Judge, Judgement, Place
from tftune.graph_pass.rendezvous import everyone_comes
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.core.registry import payload_bytes
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.shape import Shape
from tftune.models.compatibility import log_once
from tftune.models.selector import Selector
from tftune.operator import mode_at
from tftune.tuner.bench.compile_ahead import COMPILERS, processes
from tftune.tuner.bench.ranks import Ranks

BUDGET_S = 0.4
"""For timing one shape. 16 shapes of a Llama took 15.9 s with it, compiling included (2x H100,
2026-11-25)."""
DEADLINE_S = 120.0
"""How long a rank waits for the others to compile the same graph."""
LEAST_BYTES = 1 << 27
"""The least bytes of a payload: 8,192 tokens of 8,192 elements in 16 bits. A larger workspace is
seldom made then, which takes a second."""
SHARE = 64
"""A payload takes at most one part in so many of a GPU's memory; a workspace has two."""


@dataclass(frozen=True)
class Asking(Judge):
    """Notes every shape that a graph asks about, and expects nothing to be faster."""

    shapes: list[Shape] = field(default_factory=list)

    def _at(self, shape: Shape, extra_us: float) -> Judgement:
        self.shapes.append(shape)
        return Judgement(shape.op, str(shape), False, "it is only asked for")


class InPlace:
    """Measures for one group. The lineage of its `view` is what compiled code depends
    on, of all that was or will be measured here."""

    def __init__(self, place: Place, selector: Selector, mode: str, most_bytes: int | None) -> None:
        """Collective over the group: what its first rank remembers becomes every rank's answers."""
        self.place, self.mode = place, mode
        self.most_bytes = most_bytes or _share_of_memory(place.device)
        here = Here.of(place, selector)  # type: ignore[arg-type]
        self.view: View = open_memory(place, here)  # type: ignore[arg-type]
        for (its_mode, shape), answer in self.view.answers.items():
            selector.confirm(shape, its_mode, answer)
        if place.device.type == "cuda" and place.rank == 0 and not self.view.answers:
            COMPILERS.start(processes())  # they import while torch compiles the first graph

    def first_workspace(self) -> Workspace | None:
        """What the graphs of the last start needed: they may come from torch's cache. A group of
        some ranks has one from the beginning, since it cannot be made larger later. Collective over
        all ranks."""
        told: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(told, (self.view.payload_bytes, self.place.can_grow))
        needed = max(size for size, _ in told)
        if not all(can_grow for _, can_grow in told):
            needed = max(needed, LEAST_BYTES)
        return make_workspace(self.place, needed) if needed else None

    def remembered(self) -> set[tuple[str, tuple[Any, ...]]]:
        """Mode and key of every shape whose answer belongs to the lineage."""
        return {(mode, shape.key) for mode, shape in self.view.answers}

    def prepare(self, shapes: Iterable[Shape], workspace: Workspace | None) -> Workspace | None:
        """Answers for these shapes, and a workspace that holds their payload; the same workspace
        where nothing was missing.

        Where the other ranks do not come, or do not ask for the same, nothing is measured: BSP
        stays, which is logged.
        """
        wanted = [shape for shape in dict.fromkeys(shapes) if self._fits(shape, workspace)]
        missing = [shape for shape in wanted if not self.is_answered(shape)]
        needed = max(map(payload_bytes, wanted), default=0)
        small = workspace is None or needed > workspace.generation_bytes
        if not missing and not (small and wanted):
            return workspace
        if not self._all_ask(missing or wanted):
            log_once(
                f"tftune.compile_pass: ranks of group {self.place.name} did not compile the same "
                f"graph within {DEADLINE_S:g} s; BSP runs in it on every rank"
            )
            return workspace
        # Under torch's Python dispatcher a collective keeps the GIL while it waits for a lock, and
        # the lock's owner may need the GIL (seen with gloo, torch 2.13).
        with unset_fake_temporarily(), no_python_dispatcher(), torch.no_grad():
            return self._measured(missing, needed, workspace)

    def _measured(
        self, missing: Sequence[Shape], needed: int, workspace: Workspace | None
    ) -> Workspace | None:
        try:
            if workspace is None or needed > workspace.generation_bytes:
                workspace = make_workspace(self.place, needed)
                remember(workspace, Here.of(workspace, bound()), {}, needed)
            for mode in MODES:
                if alike := [shape for shape in missing if mode_at(self.mode, shape) == mode]:
                    tftune.warm_up(alike, workspace, mode=mode, budget_s=BUDGET_S)
                    self.view = open_memory(workspace, Here.of(workspace, bound()))
        except (ValueError, RuntimeError) as error:  # said by every rank alike
            log_once(f"tftune.compile_pass measured nothing: {error}; BSP runs there")
        return workspace

    def is_answered(self, shape: Shape) -> bool:
        """Whether nothing needs to be measured: it was, or an artifact of this machine did, which
        knows no engine's all-reduce."""
        mode = mode_at(self.mode, shape)
        if (mode, shape) in self.view.answers:
            return True
        known = tftune.select_kernel(shape, mode).source == "measured"
        return known and not engine_all_reduce.competes(shape)

    def is_unsure(self, shape: Shape) -> bool:
        """Whether an engine's all-reduce is a form of BSP here, and nothing was measured beside
        it."""
        known = (mode_at(self.mode, shape), shape) in self.view.answers
        return not known and engine_all_reduce.competes(shape)

    def _fits(self, shape: Shape, workspace: Workspace | None) -> bool:
        held = workspace.generation_bytes if workspace is not None else 0
        if not self.place.can_grow:
            return payload_bytes(shape) <= held
        return payload_bytes(shape) <= max(held, self.most_bytes)

    def _all_ask(self, shapes: Sequence[Shape]) -> bool:
        text = " ".join([self.mode, *map(str, shapes)])
        name = f"{self.place.name}/{sha256(text.encode()).hexdigest()[:16]}"
        store = dist.distributed_c10d._get_default_store()
        return everyone_comes(store, name, self.place.world, DEADLINE_S)


def make_workspace(place: Place, payload_bytes: int) -> Workspace:
    """A workspace of the group under its handle, kept as long as the process. Collective over all
    ranks. Raises ValueError on every rank where one has too little memory for it."""
    size = power_of_two_from(max(payload_bytes, LEAST_BYTES))
    free = Ranks(place).gather(torch.cuda.mem_get_info(place.device)[0])  # type: ignore[arg-type]
    if min(free) < ROOM * size:
        raise ValueError(
            f"a workspace for a payload of {payload_bytes} bytes takes {ROOM * size} bytes, and "
            f"rank {free.index(min(free))} has {min(free)} bytes free"
        )
    made = Workspace.create(place.group, size).renamed(place.handle)
    _KEPT.append(made)
    return made


_KEPT: list[Workspace] = []
"""Captured graphs write into the memory of a workspace, also after a larger one took its place."""
ROOM = 4
"""Two generations, flags, and what Iris rounds them to."""


def _share_of_memory(device: torch.device) -> int:
    if device.type != "cuda":
        return 1 << 62
    size = int(torch.cuda.get_device_properties(device).total_memory)
    return power_of_two_from(size // SHARE + 1) // 2
