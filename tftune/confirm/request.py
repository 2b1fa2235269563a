"""What `tftune.warm_up` is asked for: checked, and the same on every rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tftune
from tftune.db.trial import MODES
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import payload_bytes
from tftune.kernels.core.shape import Shape, check_word
from tftune.models.selector import Selector
from tftune.tuner.bench.ranks import Ranks


@dataclass(frozen=True)
class Request:
    """What one rank asks for; all ranks must ask for the same."""

    shapes: tuple[Shape, ...]
    top: int
    mode: str
    rows: str | None
    budget_s: float
    deadline_s: float
    sandbox: bool | None
    again: bool

    def check(self, workspace: Workspace) -> Request:
        """Itself; raises ValueError, with the next step, for what cannot be confirmed."""
        bound()
        if not self.shapes:
            raise ValueError("shapes is empty; give the shapes that the layers will call")
        check_word("mode", self.mode, MODES)
        if type(self.top) is not int or self.top < 0:
            raise ValueError(f"top={self.top!r} must be an integer of at least 0")
        for name in ("budget_s", "deadline_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r} must be above 0")
        for shape in self.shapes:
            check_shape(shape, workspace)
        return self


def bound() -> Selector:
    """What this process selects by; raises ValueError where nothing was loaded."""
    if tftune._default is None:
        raise ValueError("no selector is bound; call tftune.bind(group) first")
    return tftune._default


def check_shape(shape: Shape, workspace: Workspace) -> None:
    if not isinstance(shape, Shape):
        example = "tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)"
        raise ValueError(f"warm_up takes shapes, such as {example}, and was given {shape!r:.80}")
    world = getattr(shape, "world", None)
    if getattr(shape, "EXCHANGES", True) and world != workspace.world:
        has = f"{shape} has world={world}, and the workspace has {workspace.world} ranks"
        raise ValueError(f"{has}; give shapes with world={workspace.world}")
    if shape.on_heap:
        raise ValueError(
            f"{shape} has its operands on the heap, where warm_up makes none; warm it up with "
            "operands=local, which is served where the heap was not measured, or run "
            f"`tftune search {shape.op}`"
        )
    needed = payload_bytes(shape)
    if needed > workspace.generation_bytes:
        raise ValueError(
            f"{shape} needs {needed} bytes, and a generation of the workspace has "
            f"{workspace.generation_bytes}; make it with Workspace.create(group, {needed})"
        )


def agreed(ranks: Ranks, make: Callable[[], Request]) -> Request:
    """The request of every rank; raises ValueError on all where they differ, or one is wrong."""
    requests = ranks.together(make)
    for rank, request in enumerate(requests):
        if request != requests[0]:
            raise ValueError(
                f"rank {rank} and rank 0 ask for different warm-ups ({request} and {requests[0]}); "
                "call tftune.warm_up with the same arguments on every rank"
            )
    return requests[0]
