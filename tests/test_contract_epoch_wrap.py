"""The wrap of the epoch, on emulated ranks: a flag slot or word that was never written must not
pass for arrived.

Memory starts as zeros. Each call here finds all flags, words and scratch as they were first
allocated, while one rank is late. Epochs lie around 0, where a 32-bit counter comes after its wrap,
and around 2^31, where its sign changes.
"""

from __future__ import annotations

import time

import pytest
import torch
from contract import Call, Case, scenario

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import CONTROL_BYTES
from tftune.kernels.flash_decode import FlashDecode

WORLD = 2
LAST_EPOCHS = (-2, -1, 2**31 - 2)
"""What `set_epoch` is given. If epochs were consecutive, the calls behind the first two would have
epochs -1 and 0, at which 0 is the next epoch and this one."""
LATE_S = 0.5
"""A call that waits takes so long on the other rank; one that does not has read NaN by then."""
SHAPES = (
    AllGatherGemm(7, 40, 66 * WORLD, WORLD),
    FlashDecode(1, 2, 1, 64, 20, WORLD),
)


def cases() -> list[Case]:
    """The first config of every variant that waits for flags or words."""
    return [
        (shape, next(operation(shape.op).space.configs(shape, None, (variant,))))
        for shape in SHAPES
        for variant in operation(shape.op).space.variants
        if variant != "bsp"
    ]


def forget(workspace: Workspace) -> None:
    """This rank's flags are as they were before any call; so are its buffers."""
    from tftune.kernels.comm.symmetric import FLAGS_OFFSET, MAILBOX_OFFSET

    workspace.owner[workspace.rank][FLAGS_OFFSET.value : MAILBOX_OFFSET.value] = 0
    workspace.plans.clear()
    workspace.buffers.clear()


def across_the_wrap(workspace: Workspace, epochs: tuple[int, ...]) -> dict[str, list[Call]]:
    """One call of each case behind each of these epochs, by variant."""
    pause_s = LATE_S * (workspace.rank == workspace.world - 1)
    found: dict[str, list[Call]] = {}
    for shape, config in cases():
        for last_epoch in epochs:
            forget(workspace)
            calls = scenario(workspace, [(shape, config)], pause_s, last_epoch)
            found.setdefault(f"{shape.op}/{config.variant}", []).extend(calls)
    return found


@pytest.mark.parametrize(
    "epochs", [LAST_EPOCHS[:1], pytest.param(LAST_EPOCHS[1:], marks=pytest.mark.thorough)]
)
def test_slots_that_were_never_written_are_waited_for_at_every_epoch(
    epochs: tuple[int, ...],
) -> None:
    ran = emulated.run(WORLD, across_the_wrap, epochs, timeout_s=240)
    passed = {
        (name, rank): [e for e, call in zip(epochs, calls, strict=True) if not call.error <= 1]
        for rank, found in enumerate(ran)
        for name, calls in found.items()
    }
    assert {place: epochs for place, epochs in passed.items() if epochs} == {}
    assert len(passed) == WORLD * len(cases()), "all variants ran"


def meetings(workspace: Workspace) -> list[int]:
    """Behind each epoch of LAST_EPOCHS, the last rank comes late to a barrier whose words were
    never written: what it wrote into its payload before, as this rank reads it when the barrier
    ends."""
    import torch.distributed as dist

    from tftune.kernels.comm.symmetric import BARRIER_OFFSET, FLAGS_OFFSET

    last, found = workspace.world - 1, []
    control, meet = workspace.owner[workspace.rank], workspace.barrier()
    for number, last_epoch in enumerate(LAST_EPOCHS, 1):
        control[BARRIER_OFFSET.value : FLAGS_OFFSET.value] = 0
        count = control[BARRIER_OFFSET.value :][:4].view(torch.int32)
        count[0] = last_epoch & -2  # as `set_epoch` does
        dist.barrier()
        if workspace.rank == last:
            time.sleep(LATE_S)
            workspace.payload_tensor[0] = number
        meet()
        found.append(int(workspace.owner[last][CONTROL_BYTES]))
        dist.barrier()
    return found


def test_a_barrier_whose_flags_were_never_written_waits_at_every_epoch() -> None:
    assert emulated.run(WORLD, meetings) == [list(range(1, 1 + len(LAST_EPOCHS)))] * WORLD
