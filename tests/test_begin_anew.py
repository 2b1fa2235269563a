"""After a failed config of a warm-up all ranks go on with one epoch, behind all that was ever set,
and with one turn of the copy engine."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from contract import scenario

from tftune.db.journal import NoJournal
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.tuner.warm_up.confirm import Confirmation
from tftune.tuner.warm_up.order import Order, Site

SHAPE = AllGatherGemm(8, 40, 64, 2, shard="m")
CONFIGS = {config.variant: SPACE.complete(config) for config in SPACE.defaults(SHAPE)}
CALLS = 600_000
"""Between two failures of a long server: more than 2^19, whose epochs are 2^20 apart."""
Word = tuple[int, int]


def begin_anew(workspace: Workspace) -> Word:
    """As a warm-up does behind a failure; the epoch and the turn that the next calls take."""
    order = Order(SHAPE, "graph", (), (CONFIGS["push"],), 1.0, 30.0, "emulatedx2", "run")
    site = Site(workspace, NoJournal(), lambda: None, lambda: None, 0)  # type: ignore[arg-type]
    Confirmation(order, site)._begin_anew()
    turn = next(workspace.turns)
    object.__setattr__(workspace, "turns", count(turn))
    return word(workspace), turn


def word(workspace: Workspace) -> int:
    import torch

    return int(workspace.owner[workspace.rank][:4].view(torch.int32)[0])


def failures(workspace: Workspace, calls: int, start: int) -> list[tuple[int, int, int]]:
    """The epoch before each of two failures, so many calls apart, and what is agreed."""
    workspace.set_epoch(start + 6 * workspace.rank)  # one rank was three calls behind
    found = []
    for _ in range(2):
        before = word(workspace)
        found.append((before, *begin_anew(workspace)))
        workspace.set_epoch(word(workspace) + 2 * calls)
    return found


def behind(later: int, earlier: int) -> int:
    """Epochs from one to the other, in 32 bits that wrap."""
    return (later - earlier + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.mark.parametrize("start", [0, 2**31 - 8], ids=["fresh", "at the wrap"])
def test_no_epoch_is_ever_set_back(start: int) -> None:
    one, other = emulated.run(2, failures, CALLS, start)
    for (before, *agreed), (its_before, *its_agreed) in zip(one, other, strict=True):
        assert agreed == its_agreed
        assert behind(agreed[0], before) > 2 and behind(agreed[0], its_before) > 2


def after_half_a_capture(workspace: Workspace) -> tuple[Word, list[float]]:
    """Rank 0 captured one call of the copy engine that rank 1 did not; both go on with calls that
    exchange by fixed addresses and by flags."""
    if workspace.rank == 0:
        next(workspace.turns)
    agreed = begin_anew(workspace)
    cases: list[Any] = [(SHAPE, CONFIGS[variant]) for variant in ("push_ce", "push_ce", "push")]
    return agreed, [call.error for call in scenario(workspace, cases)]


def test_turns_of_the_copy_engine_are_equal_again() -> None:
    (agreed, errors), (its_agreed, its_errors) = emulated.run(
        2, after_half_a_capture, timeout_s=120
    )
    assert agreed == its_agreed
    assert max(*errors, *its_errors) <= 1
