"""The all-reduce of the serving engine in whose process this runs, where its plug-in offered it: a
form of BSP there, beside the libraries' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config

if TYPE_CHECKING:
    import torch

FORM = "engine"
"""The form of BSP."""


class Communicator(Protocol):
    """An engine's all-reduce over one group of ranks."""

    def fits(self, size_bytes: int) -> bool:
        """Whether the engine takes this all-reduce for so many bytes, rather than a library's."""

    def all_reduce(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """y becomes the sum over ranks of x, on the current stream."""

    def capturing(self) -> AbstractContextManager[None]:
        """Around each capture of such calls; its end is collective, and raises on all ranks where
        the capture failed on one."""

    def close(self) -> None:
        """Forget what was captured. Nothing collective."""


@dataclass
class Offer:
    """What a plug-in offers for its engine's group."""

    name: str
    """The engine, its version, and what it takes: answers depend on them."""
    world: int
    serving: Communicator
    """The engine's own, whose captures are the engine's."""
    make: Callable[[], Communicator]
    """Another one, for graphs that are only timed; collective."""
    timed: Communicator | None = None
    """That one, while something is measured."""


_OFFERS: dict[str, Offer] = {}
"""By the name of the process group in torch."""


def offer(group: Any, offered: Offer) -> None:
    """From now on this process has that all-reduce for a torch group."""
    _OFFERS[group.group_name] = offered


def fits(world: int, size_bytes: int) -> bool:
    """Whether so many ranks are offered an all-reduce that takes so many bytes."""
    return any(one.world == world and one.serving.fits(size_bytes) for one in _OFFERS.values())


def competes(shape: Shape) -> bool:
    """Whether an engine's is among the forms of BSP of this shape: no artifact speaks of it."""
    return any(map(is_form, operation(shape.op).space.fallbacks(shape)))


def is_form(config: Config) -> bool:
    """Whether a config calls an engine's all-reduce."""
    return ("form", FORM) in config.knobs


def is_offered(group: Any) -> bool:
    """Whether a group has one. None: that of all ranks."""
    return _name(group) in _OFFERS


def names(world: int) -> list[str]:
    """Which engines offered one to so many ranks."""
    return sorted({one.name for one in _OFFERS.values() if one.world == world})


def all_reduce(group: Any) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """The all-reduce of a group. Raises ValueError where none was offered."""
    offered = _OFFERS.get(_name(group))
    if offered is None:
        raise ValueError(
            f"form={FORM} needs the all-reduce of a serving engine, and none was offered for this "
            "group; take form=library"
        )
    return (offered.timed or offered.serving).all_reduce


@contextmanager
def timing(group: Any) -> Iterator[None]:
    """Calls that are prepared meanwhile are of a communicator of their own, closed at the end: what
    a timed graph registered with it, the engine never sees. Entering is collective."""
    offered = _OFFERS.get(_name(group))
    if offered is None:
        yield
        return
    offered.timed = offered.make()
    try:
        yield
    finally:
        closed, offered.timed = offered.timed, None
        closed.close()


def capturing() -> AbstractContextManager[None]:
    """Around a capture of calls that are timed."""
    timed = [one.timed for one in _OFFERS.values() if one.timed is not None]
    return timed[0].capturing() if timed else nullcontext()


def _name(group: Any) -> str:
    """The group's name in torch; "" where there is none."""
    import torch.distributed as dist

    if group is None:
        group = dist.group.WORLD if dist.is_initialized() else None
    return str(getattr(group, "group_name", ""))
