"""Whether an operator of tftune is expected to be faster, for one shape or for a range of M."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

import tftune
from tftune.graph_pass.matching import Size
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chip import Chip
from tftune.kernels.core.registry import payload_bytes
from tftune.kernels.core.shape import Shape
from tftune.operator import mode_at

LARGEST_M = 1 << 15
"""The largest value of a symbolic M that the graph bounds no further."""


@dataclass(frozen=True)
class Judgement:
    """What is expected of an operator at a shape. `faster`: it replaces what is there; then the
    times are known, or `reason` says what they rest on."""

    operation: str
    shape: str
    faster: bool
    reason: str
    expected_us: float | None = None
    bsp_us: float | None = None
    gains_us: Mapping[int, float] = field(default_factory=dict)
    """Where M is symbolic: what each M that was tried gains."""

    @property
    def gain_us(self) -> float:
        """Zero where no time is known."""
        return (self.bsp_us or 0.0) - (self.expected_us or 0.0) if self.faster else 0.0


def most(judgements: Sequence[Judgement]) -> int:
    """The place of the one that gains the most, the last of equals. Over several M each counts as
    much as any other: at each, a gain is a part of the best one there, so that a prompt's
    microseconds do not decide for all sizes of decoding.

    >>> few, many = {1: 3.0, 4096: 30.0}, {1: 4.0, 64: 6.0, 4096: 10.0}
    >>> most([Judgement("all_reduce", "", True, "", gains_us=one) for one in (few, many)])
    1
    """
    gains_of = [one.gains_us or {0: one.gain_us} for one in judgements]
    best = {m: max(one.get(m, 0.0) for one in gains_of) for one in gains_of for m in one}

    def share(gains: Mapping[int, float]) -> float:
        return sum(gain / best[m] for m, gain in gains.items() if best[m])

    return max(reversed(range(len(gains_of))), key=lambda place: share(gains_of[place]))


@dataclass(frozen=True)
class Place:
    """Where a group's operators run: what is known before its workspace is made."""

    name: str
    """The name of the process group."""
    group: Any
    rank: int
    world: int
    device: torch.device
    arch: str
    chip: Chip | None
    can_grow: bool
    """Whether a workspace can be made at any time: by a group of all ranks on GPUs."""
    held: str = ""
    """The handle of a workspace that the caller made."""
    generation_bytes: int = 1 << 62

    @property
    def handle(self) -> str:
        """The name of the group's workspace in compiled code, the same at each start."""
        return self.held or f"pass-{self.name}"


@dataclass(frozen=True)
class Judge:
    """Asks `tftune.select_kernel` on behalf of one group's workspace, in one mode."""

    workspace: Workspace | Place
    mode: str
    sizes: tuple[int, ...] = ()
    """What a symbolic M will be, where an engine says so; else powers of two are asked about."""
    is_unsure: Callable[[Shape], bool] = lambda shape: False
    """Whether an answer for a shape rests on a weaker BSP than there is here."""

    def judge(self, kind: Any, m: Size, extra_us: float = 0.0, **rest: Any) -> Judgement:
        """What is expected for this M, which may be symbolic, and these other fields of the shape.
        `extra_us`: what an operator needs beside the call that was measured."""
        if symbolic := [name for name, field in rest.items() if isinstance(field, torch.SymInt)]:
            return Judgement(kind.op, "", False, f"{symbolic[0]} is symbolic")
        make = partial(kind, world=self.workspace.world, **rest)
        try:
            if isinstance(m, int):
                return self._at(make(m=m), extra_us)
            return self._over(m, make, extra_us)
        except ValueError as error:  # sizes or a dtype that no kernel takes
            return Judgement(kind.op, "", False, str(error))

    def _at(self, shape: Shape, extra_us: float) -> Judgement:
        def said(
            faster: bool, reason: str, us: float | None = None, bsp_us: float | None = None
        ) -> Judgement:
            return Judgement(shape.op, str(shape), faster, reason, us, bsp_us)

        needed, held = payload_bytes(shape), self.workspace.generation_bytes
        if needed > held:
            advice = f"compile_pass(max_bytes={needed})"
            return said(False, f"it needs {needed} bytes and the workspace has {held}: {advice}")
        if self.is_unsure(shape):
            return said(False, "it was not measured beside the engine's own all-reduce")
        selection = tftune.select_kernel(shape, mode_at(self.mode, shape))
        if selection.config.variant == "bsp":
            return said(False, selection.reason)
        if selection.expected_us is None or selection.bsp_us is None:
            return said(False, f"nobody measured how much faster it is: {selection.reason}")
        expected = selection.expected_us + extra_us
        if expected >= selection.bsp_us:
            beside = f", {extra_us:.1f} us of copying beside it" if extra_us else ""
            return said(False, f"it is no faster{beside}", expected, selection.bsp_us)
        return said(True, selection.reason, expected, selection.bsp_us)

    def _over(self, m: torch.SymInt, make: Any, extra_us: float) -> Judgement:
        """A symbolic M: the operator selects at run time, so one M of the range that gains is
        enough."""
        known = [size for size in self.sizes if _fits(make, size)]
        known = known or _samples(m, self.workspace.world)
        shapes = [make(m=size) for size in known]
        if not shapes:
            return Judgement(
                make.func.op, f"m={m}", False, "no M of its range divides by the ranks"
            )
        least, most = shapes[0].m, shapes[-1].m
        judgements = [self._at(shape, extra_us) for shape in shapes]
        best = max(range(len(judgements)), key=lambda index: judgements[index].gain_us)
        text = str(shapes[0]).replace(f"m={least},", f"m={m},", 1)
        if not (count := sum(one.faster for one in judgements)):
            reason = f"BSP for every M tried, {least} to {most}: {judgements[-1].reason}"
            return Judgement(make.func.op, text, False, reason)
        reason = f"selects at run time; faster for {count} of {len(judgements)} M tried"
        expected_us, bsp_us = judgements[best].expected_us, judgements[best].bsp_us
        reason += f", times are of M = {shapes[best].m}"
        gains = {shape.m: one.gain_us for shape, one in zip(shapes, judgements, strict=True)}
        return Judgement(make.func.op, text, True, reason, expected_us, bsp_us, gains)

    def copy_us(self, size_bytes: Size) -> float:
        """Modelled: to read and write so many bytes of this GPU's memory; of a size that is not
        known, or on emulated ranks, nothing. Raises ValueError for a GPU of unknown rate."""
        chip = self.workspace.chip
        if chip is None or not isinstance(size_bytes, int):
            return 0.0
        return 2 * size_bytes / chip.rates.hbm_bytes_per_us


def _fits(make: Any, m: int) -> bool:
    """Whether there is a shape of this M: ranks may have to share its rows evenly."""
    try:
        make(m=m)
    except ValueError:
        return False
    return True


def _samples(m: torch.SymInt, world: int) -> list[int]:
    """Powers of two of the range of a symbolic M, times the world, and the M that was traced."""
    bounds = m.node.shape_env.bound_sympy(m.node.expr)
    least, most = int(bounds.lower), int(min(bounds.upper, LARGEST_M))
    sizes = {world << power for power in range(LARGEST_M.bit_length())}
    hint = m.node.hint
    if hint is not None and int(hint) % world == 0:
        sizes.add(int(hint))
    return sorted(size for size in sizes if least <= size <= most)
