"""What the contract tests of all operations share: calls on emulated ranks, held against the
reference."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space

SEEDS = 3
"""Inputs are of three seeds, which calls go through so that a generation never held the same data
two calls ago."""
WRAPS = 2**31 - 3
"""An epoch before which few calls are left until it wraps."""
POLL_S = 0.0005, 0.01
"""From the first poll of the same words to the second, and between later ones at most: it doubles
each time."""
MEETINGS = itertools.count()

Case = tuple[Any, Config]


@dataclass(frozen=True)
class Call:
    """One call on one rank: its error in units of the tolerance (NaN counts as infinite), and a
    digest of the result's bits."""

    shape: Shape
    config: Config
    seed: int
    error: float
    bits: str


Ran = list[dict[str, list[Call]]]
"""What each rank returned, by scenario."""


def with_known(space: Space, variant: str, **knobs: Any) -> Config:
    """The config of those knobs that the variant has."""
    has = {choice.name for choice in space.choices(variant)}
    return Config(variant, **{name: value for name, value in knobs.items() if name in has})


def scenario(
    workspace: Workspace,
    calls: Iterable[Case],
    pause_s: float = 0.0,
    last_epoch: int | None = None,
    cycle: Sequence[int] = range(SEEDS),
) -> list[Call]:
    """Run the calls back to back on every rank, this one pausing before each; compare when all have
    ended. Epochs follow last_epoch. An operand on the heap is NaN but for its call: written right
    before it, and filled again right behind it.

    cycle: seeds of the calls in turn.
    """
    import torch

    from tftune.kernels.runtime.operands import placed

    _rest_between_polls()
    workspace.operands.clear()
    calls, meeting = list(calls), next(MEETINGS)
    if not calls:
        return []
    shapes, seeds = (
        sorted({shape for shape, _ in calls}, key=str),
        [cycle[number % len(cycle)] for number in range(len(calls))],
    )
    rooms = {shape: operation(shape.op) for shape in shapes}
    references = {shape: room.module("reference") for shape, room in rooms.items()}
    inputs = {
        (shape, seed): references[shape].make_inputs(shape, workspace.rank, seed)
        for shape in shapes
        for seed in sorted({*seeds})
    }
    exact = {
        (shape, seed): references[shape].reference(shape, *given, workspace.group)
        for (shape, seed), given in inputs.items()
    }
    _reset(workspace, last_epoch)
    operands = {
        shape: placed(shape, inputs[shape, seeds[0]], workspace)[0].fill_(float("nan"))
        for shape in shapes
        if shape.on_heap
    }
    outs = []
    for (shape, config), seed in zip(calls, seeds, strict=True):
        time.sleep(pause_s)
        outs.append(references[shape].make_output(shape).fill_(float("nan")))
        if (shape, config) not in workspace.plans:
            workspace.plans[shape, config] = (
                rooms[shape].module("host").prepare(shape, config, workspace)
            )
        first, *others = inputs[shape, seed]
        if shape.on_heap:
            first = operands[shape].copy_(first)
        workspace.plans[shape, config](first, *others, outs[-1])
        if shape.on_heap:  # the call has ended here, so the caller may write it again
            first.fill_(float("nan"))
    _meet(f"meeting {meeting}")
    done = []
    for (shape, config), seed, out in zip(calls, seeds, outs, strict=True):
        expected = exact[shape, seed]
        error = float(
            ((out.float() - expected).norm() / expected.norm().clamp(min=2**-126)).nan_to_num(
                nan=float("inf")
            )
        ) / references[shape].tolerance(shape)
        done.append(
            Call(
                shape,
                config,
                seed,
                error,
                sha256(out.view(torch.int16).numpy().tobytes()).hexdigest(),
            )
        )
    return done


def scenarios(
    workspace: Workspace,
    cases: Iterable[Case],
    turns: Sequence[Case],
    wrapping: Sequence[Case],
    cycle: Sequence[int] = range(SEEDS),
) -> dict[str, list[Call]]:
    """Every scenario of this world, on one workspace: the cases back to back, on inputs of the
    cycle's seeds; then `turns`, of which each next call has another shape, config or variant, and
    which no library's collective holds together; then those that are `wrapping` the epoch."""
    last = workspace.rank == workspace.world - 1
    return {
        "back to back": scenario(workspace, cases, cycle=cycle),
        "one rank late": scenario(workspace, turns, pause_s=0.05 * last),
        "one rank ahead": scenario(workspace, turns, pause_s=0.05 * (not last)),
        "the epoch wraps": scenario(workspace, wrapping, last_epoch=WRAPS),
    }


def repeated(cases: Iterable[Case], times: int) -> list[Case]:
    """Each case so many times in a row."""
    return [case for case in cases for _ in range(times)]


def runs(contract: Callable[..., Any], worlds: Iterable[Any], **options: Any) -> Any:
    """The fixture of a module: what `contract` returned on each rank of one world. A world is its
    size, or its size and what the contract is given."""

    @pytest.fixture(scope="module", params=worlds)
    def ran(request: pytest.FixtureRequest) -> Ran:
        world, *given = request.param if isinstance(request.param, tuple) else (request.param,)
        return emulated.run(world, contract, *given, timeout_s=600, **options)

    return ran


@cache
def _rest_between_polls() -> None:
    """A rank sleeps before it polls the same words again: there are more ranks than cores, and
    those it waits for need them.

    A poll adds 0, or is a volatile load.
    """
    from triton.runtime.interpreter import InterpreterBuilder

    add, load = InterpreterBuilder.create_atomic_rmw, InterpreterBuilder.create_masked_load
    last, pause_s = b"", POLL_S[0]

    def rest(words: Any) -> None:
        nonlocal last, pause_s
        if (now := words.data.tobytes()) == last:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, POLL_S[1])
        else:
            last, pause_s = now, POLL_S[0]

    def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, *more: Any) -> Any:
        if not val.data.any():
            rest(ptr)
        return add(self, op, ptr, val, *more)

    def create_masked_load(self: Any, ptrs: Any, *given: Any, **named: Any) -> Any:
        # The last one, named or not: Triton 3.9 has one less before it.
        if named["is_volatile"] if "is_volatile" in named else given[-1]:
            rest(ptrs)
        return load(self, ptrs, *given, **named)

    InterpreterBuilder.create_atomic_rmw = create_atomic_rmw  # type: ignore[method-assign]
    InterpreterBuilder.create_masked_load = create_masked_load  # type: ignore[method-assign]


def _reset(workspace: Workspace, epoch: int | None) -> None:
    """Fill the payload with NaN, and the mailbox with words of no call, on all ranks together."""
    import torch
    import torch.distributed as dist

    from tftune.kernels.comm.symmetric import (
        BARRIER_OFFSET,
        CONTROL_BYTES,
        EXITS_OFFSET,
        FLAGS_OFFSET,
        MAILBOX_OFFSET,
    )

    dist.barrier()
    if epoch is not None:
        workspace.set_epoch(epoch)
        for left in (
            slice(EXITS_OFFSET.value, EXITS_OFFSET.value + 4),
            slice(BARRIER_OFFSET.value, FLAGS_OFFSET.value),
        ):
            workspace.owner[workspace.rank][left] = 0  # by a call that was broken off
        object.__setattr__(
            workspace, "turns", itertools.count()
        )  # ranks were broken off at different calls
    workspace.owner[workspace.rank][MAILBOX_OFFSET.value : CONTROL_BYTES] = 0
    workspace.payload_tensor.view(torch.int16).fill_(-1)  # a NaN in fp16, in bf16 and in fp32
    dist.barrier()


def _meet(name: str) -> None:
    """Return when all ranks have come to this name for the first time. Unlike a barrier, it can be
    broken off: nobody is left behind."""
    import torch.distributed as dist

    store = dist.distributed_c10d._get_default_store()
    store.set(f"{name}/{dist.get_rank()}", "")
    while not store.check([f"{name}/{rank}" for rank in range(dist.get_world_size())]):
        time.sleep(0.005)


def wrong_calls(ran: Ran) -> list[Any]:
    """The calls that no rank may have made."""
    return [
        (rank, name, call)
        for rank, found in enumerate(ran)
        for name, calls in found.items()
        for call in calls
        if not call.error <= 1
    ]


def differing(ran: Ran) -> list[Any]:
    """Rank, shape, config and seed whose results differ in any bit between calls; some must have
    been called twice on each rank."""
    found = []
    for rank, of_rank in enumerate(ran):
        calls = [call for calls in of_rank.values() for call in calls]
        seen: dict[Any, set[str]] = {}
        for call in calls:
            seen.setdefault((call.shape, call.config, call.seed), set()).add(call.bits)
        assert len(seen) < len(calls)
        found += [(rank, *key) for key, bits in seen.items() if len(bits) > 1]
    return found
