"""Mutants that the contract must refuse: how one is said, and what judges it."""

from __future__ import annotations

import ctypes
import itertools
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from contract import Call, Case, scenario
from mutant import Change, in_place

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace

TRIALS = itertools.count(1)


@dataclass(frozen=True)
class Mutant:
    """Changes to a variant's sources, and how the contract refuses them: `wrong` results, or a call
    that does not `end`."""

    shows: str
    changes: tuple[Change, ...]
    control: tuple[Change, ...]
    """More changes, which only delay a rank, and must be accepted by themselves."""
    calls: str
    """Which of a trial's calls."""


def _mutant(
    shows: str, *changes: Change, control: tuple[Change, ...] = (), calls: str = "small"
) -> Mutant:
    return Mutant(shows, changes, control, calls)


# The mutants of a table are said by how they show.
wrong, hangs = partial(_mutant, "wrong"), partial(_mutant, "end")
wrong_or_hangs, accepted = partial(_mutant, "wrong or end"), partial(_mutant, "right")
SLEEP = "__import__('refusal').sleep"
"""`sleep`, of so many seconds."""
_call_s = 0.0
"""What a call took when nothing was planted."""
HOLD = "__import__('refusal').hold(control, rank, epoch, {})"
"""`hold`, of so many flags."""


def hold(control: Any, rank: Any, epoch: Any, flags: Any) -> None:
    """For the text of a mutant, on 3 ranks: in every second call rank 2 stays here until it sees so
    many flags of the others' next call, or as many of them at a barrier.

    Unlike after a sleep, what the others do meanwhile is certain, and nobody waits for longer than
    it takes.
    """
    import numpy

    from tftune.kernels.comm.symmetric import (
        BARRIER_FLAG_STRIDE,
        BARRIER_FLAGS_OFFSET,
        FLAGS_OFFSET,
        FLAGS_PER_SOURCE,
    )

    def words(offset: int, count: int) -> Any:
        found = (ctypes.c_int32 * count).from_address(int(control) + offset)
        return numpy.frombuffer(found, dtype=numpy.int32)

    sent = words(FLAGS_OFFSET.value, 3 * FLAGS_PER_SOURCE.value)
    stride = BARRIER_FLAG_STRIDE.value // 4
    arrived = words(BARRIER_FLAGS_OFFSET.value, 3 * stride)[::stride]
    next_epochs = int(epoch) + 2, int(epoch) + 4  # the second where an epoch is skipped
    while (
        int(rank) == 2
        and int(epoch) % 4 == 1
        and numpy.count_nonzero(numpy.isin(sent, next_epochs)) < int(flags)
        and numpy.count_nonzero(arrived) < int(flags)
    ):
        time.sleep(0.001)


def sleep(seconds: float) -> None:
    """For the text of a mutant: so many seconds, but on a busy machine as long as a call takes, up
    to four times as long, so that the others get as far as they would."""
    time.sleep(max(seconds, min(_call_s, 4 * seconds)))


def _verdict(run: Callable[[], list[Call]], deadline_s: float) -> str:
    """`right`, `wrong`, or `end` where the calls did not end in time."""

    expired: list[float] = []

    def expire(*_: Any) -> None:
        expired.append(deadline_s)
        raise TimeoutError(f"not ended after {deadline_s} s")

    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, deadline_s)
    try:
        return "right" if all(call.error <= 1 for call in run()) else "wrong"
    except Exception:
        if not expired:  # what is raised inside a library may reach us as another error
            raise
        return "end"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _judge(
    workspace: Workspace,
    folder: Path,
    variant: str,
    calls: Mapping[str, list[Case]],
    mutants: Mapping[str, Mutant],
    together: Sequence[str],
    late_s: float,
) -> dict[str, str]:
    """Verdicts on the kernel itself and on each mutant."""
    op, took_s = calls["small"][0][0].op, {}

    def tried(changes: tuple[Change, ...], name: str, deadline_s: float) -> str:
        workspace.plans.clear()
        workspace.buffers.clear()
        global _call_s
        _call_s = own_s = took_s.get(((), name), 0.0) / len(calls[name]) - late_s
        is_late = name not in together and workspace.rank == workspace.world - 1
        pause_s, started = max(late_s, own_s) * is_late, time.monotonic()
        epoch = 1000 * next(TRIALS)  # flags keep what a mutant left in them
        with ExitStack() as planted:
            if changes:
                planted.enter_context(in_place(folder, variant, changes, op))
                for other in {config.variant for _, config in calls[name]} - {variant}:
                    shared = tuple(change for change in changes if "." not in change[0])
                    planted.enter_context(in_place(folder, other, shared, op))
            verdict = _verdict(lambda: scenario(workspace, calls[name], pause_s, epoch), deadline_s)
        took_s[changes, name] = time.monotonic() - started
        return verdict

    verdicts = {f"itself, {name}": tried((), name, 60) for name in calls}
    for name, found in mutants.items():
        if found.control:
            verdicts[f"{name}, control"] = tried(found.control, found.calls, 60)
        longer_s = 6 + 2 * took_s[(), found.calls] + took_s[found.control, found.calls]
        deadline_s = 60 if found.shows == "wrong" else longer_s
        verdicts[name] = tried(found.changes + found.control, found.calls, deadline_s)
    return verdicts


def _judge_all(
    workspace: Workspace,
    folder: Path,
    mutants: Mapping[str, Mapping[str, Mutant]],
    calls: Mapping[str, Mapping[str, list[Case]]],
    *late: Any,
) -> dict[str, dict[str, str]]:
    return {
        variant: _judge(workspace, folder, variant, calls[variant], own, *late)
        for variant, own in mutants.items()
    }


def refuse(
    folder: Path,
    mutants: Mapping[str, Mapping[str, Mutant]],
    calls_of_a_trial: Callable[[str, int], Mapping[str, list[Case]]],
    together: Sequence[str] = (),
    late_s: float = 0.2,
    **options: Any,
) -> None:
    """Plant the mutants of each variant on 3 ranks. The kernels themselves and the controls alone
    must be accepted.

    The last rank is late before each call, except in those named in `together`: by `late_s`, or as
    long as a call takes on a busy machine.
    """
    calls = {variant: calls_of_a_trial(variant, 3) for variant in mutants}
    given = folder, mutants, calls, together, late_s
    by_rank = emulated.run(3, _judge_all, *given, timeout_s=1500, **options)
    for variant, own in mutants.items():
        misjudged = _misjudged([verdicts[variant] for verdicts in by_rank], own)
        assert misjudged == [], f"{variant}: {misjudged}"


def _misjudged(by_rank: list[dict[str, str]], mutants: Mapping[str, Mutant]) -> list[Any]:
    """What was accepted although it is a mutant, or refused although it is none; `by_rank`:
    verdicts of one variant on each rank."""
    found = []
    for name in by_rank[0]:
        shown = {verdicts[name] for verdicts in by_rank}
        expected = mutants[name].shows if name in mutants else "right"
        if not shown & set(expected.split(" or ")) or (expected == "right" and shown != {"right"}):
            found.append((name, shown))
    return found
