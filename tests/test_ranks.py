"""What ranks agree on: the slowest rank counts, and one rank's error is raised on every rank."""

from __future__ import annotations

from typing import Any

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.tuner.bench.ranks import Ranks


def agreed(workspace: Workspace) -> dict[str, Any]:
    """What each method gives on this rank, and what it raises where one rank fails."""
    ranks, acted = Ranks(workspace), list[int]()
    mine = [[1.0 + workspace.rank, 5.0], [4.0 - workspace.rank, 0.5]]

    def fail(error: Exception, rank: int) -> int:
        if workspace.rank == rank:
            raise error
        return workspace.rank

    def said(act: Any) -> str:
        try:
            act()
        except (ValueError, RuntimeError) as error:
            return f"{type(error).__name__}: {error}"
        return "nothing"

    return {
        "slowest": ranks.slowest(mine),
        "gather": ranks.gather({"rank": workspace.rank}),
        "by_first": ranks.by_first(lambda: acted.append(workspace.rank) or "from rank 0"),
        "acted": acted,
        "wrong": said(lambda: ranks.together(lambda: fail(ValueError("no such shape"), 1))),
        "broken": said(lambda: ranks.by_first(lambda: fail(KeyError("x"), 0))),
        "afterwards": ranks.together(lambda: workspace.rank),
    }


def test_ranks_agree_and_fail_together() -> None:
    first, second = emulated.run(2, agreed)
    assert first.pop("acted") == [0] and second.pop("acted") == []
    assert (
        first
        == second
        == {
            "slowest": [(2.0, 5.0), (4.0, 0.5)],
            "gather": [{"rank": 0}, {"rank": 1}],
            "by_first": "from rank 0",
            "wrong": "ValueError: rank 1: no such shape",
            "broken": "RuntimeError: rank 0: KeyError: 'x'",
            "afterwards": [0, 1],
        }
    )
