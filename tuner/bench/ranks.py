"""What the ranks of one workspace agree on: every method is collective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tftune.kernels.comm.workspace import Workspace

T = TypeVar("T")


class Ranks:
    """The process group of a workspace, as far as a warm-up needs it."""

    def __init__(self, workspace: Workspace) -> None:
        self.rank, self.world = workspace.rank, workspace.world
        self._group, self._device = workspace.group, workspace.device

    def gather(self, value: T) -> list[T]:
        """What each rank gave, by rank; any value that pickles."""
        import torch.distributed as dist

        gathered: list[Any] = [None] * self.world
        dist.all_gather_object(gathered, value, group=self._group)
        return gathered

    def together(self, act: Callable[[], T]) -> list[T]:
        """What `act` returned on each rank. Where it raises on one, every rank raises: ValueError
        where that is what it raised, else RuntimeError, each naming the rank."""
        value, wrong, text = None, True, ""
        try:
            value = act()
        except Exception as error:  # whatever it is, the other ranks wait to hear of it
            wrong = isinstance(error, ValueError)
            text = str(error) if wrong else f"{type(error).__name__}: {error}"
        told = self.gather((value, wrong, text))
        for rank, (_, its_wrong, its_text) in enumerate(told):
            if its_text:
                kind = ValueError if its_wrong else RuntimeError
                raise kind(f"rank {rank}: {its_text}")
        return [its_value for its_value, _, _ in told]  # type: ignore[misc]

    def by_first(self, act: Callable[[], T]) -> T:
        """What `act` returns on rank 0, the only one that calls it; raises as `together` does."""
        returned: list[Any] = self.together(lambda: act() if self.rank == 0 else None)
        first: T = returned[0]
        return first

    def slowest(self, values: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
        """The largest of each value over the ranks, by one all-reduce; every row as long."""
        import torch
        import torch.distributed as dist

        largest = torch.tensor(values, dtype=torch.float64, device=self._device)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=self._group)
        return [tuple(row) for row in largest.tolist()]

    def agreed(self, numbers: Sequence[float]) -> list[float]:
        """The largest of all ranks, each."""
        return list(self.slowest([numbers])[0])

    def barrier(self) -> None:
        """Return when every rank is here and what each had queued on its GPU has ended."""
        import torch
        import torch.distributed as dist

        if self._device.type == "cuda":
            torch.cuda.synchronize()
        dist.barrier(group=self._group)
        if self._device.type == "cuda":
            torch.cuda.synchronize()
