"""Measure the constants of a machine: all ranks are asked, a formula makes constants of their
answers. What cannot be asked here, or fails, stays as kernels/core/chips.py has it, and is named.
What no question asks, and the chip lacks, is assumed by a rule that says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tftune.db.target import Target
from tftune.kernels.core.chips import Chip
from tftune.tuner.bench import worker
from tftune.tuner.bench.sandbox import Broken, World
from tftune.tuner.bench.worker import WorldSpec
from tftune.tuner.calibration import assumptions
from tftune.tuner.calibration.calibration_rank import Prober

ASSUMED = "assumed"
"""Under which name `calibrate` yields what it did not measure."""
DEADLINE_S = 20.0
"""How long one question may take; each takes well under a second once its kernel is compiled."""


@dataclass(frozen=True)
class Sizes:
    """How much each question moves or computes, in bytes and elements."""

    copied: int = 1 << 30
    square: int = 8192
    skinny: tuple[int, int, int] = (16, 3584, 8192)
    chain: int = 1 << 30
    payload: int = 1 << 26
    blocks: int = 64
    gathered: int = 4096
    """Bytes of each rank in the small collective."""
    large: int = 1 << 26
    """Bytes of each rank in the large one, and of one copy by a copy engine."""


SMALL = Sizes(
    copied=1 << 16,
    square=32,
    skinny=(16, 32, 64),
    chain=1 << 18,
    payload=1 << 19,
    blocks=2,
    large=1 << 14,
)
"""For emulated ranks, whose times mean nothing."""


class Ask(Protocol):
    """Asks a method of `Prober` of every rank; the answers by rank. Raises Broken."""

    def __call__(self, method: str, *arguments: Any) -> list[Any]: ...


def memory(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    return {"hbm_bytes_per_us": 2 * sizes.copied / max(ask("copied", sizes.copied))}


def library_gemm(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    return {
        "matrix_flops_per_us": 2
        * sizes.square**3
        / max(ask("gemm", sizes.square, sizes.square, sizes.square))
    }


def streaming_gemm(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    m, n, k = sizes.skinny
    rate = 2 * (m * k + k * n + m * n) / max(ask("gemm", m, n, k))
    return {"stream_share": min(rate / chip.known("hbm_bytes_per_us"), 1.0)}


def flags(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    """One rank polls its own, and has none to signal to."""
    own = {"poll_us": max(ask("polled"))}
    if world == 1:
        return own
    return own | {"signal_us": max(ask("signalled")), "flag_us": max(ask("flown"))}


def loads(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    """Only what is peculiar to a peer: `load_us` is of busy memory, and a chain of loads finds it
    idle."""
    near, far = (max(ask("load", sizes.chain, remote)) for remote in (False, True))
    return {"remote_load_us": far - near}


def links(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    """One program; then half of the units, to one peer and to all. One rank stores to itself, which
    says how fast a program copies, and nothing of links."""

    def rate(programs: int, peers: int) -> float:
        return float(
            min(
                programs * sizes.blocks * size / us
                for us, size in ask("stored", programs, peers, sizes.blocks)
            )
        )

    alone_us = max(us for us, _ in ask("stored", 1, max(world - 1, 1), sizes.blocks))
    own = {"block_us": alone_us / sizes.blocks}
    if world == 1:
        return own
    many = chip.units // 2 if sizes != SMALL else 2
    return own | {"link_bytes_per_us": rate(many, 1), "links_bytes_per_us": rate(many, world - 1)}


def launches(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    one, five = (ask("launched", calls) for calls in (1, 5))
    first_us = max(eager for _, eager in one)
    each_us = (max(eager for _, eager in five) - first_us) / 4
    return {
        "graph_launch_us": max(captured for captured, _ in one),
        "eager_launch_us": first_us,
        "library_call_us": each_us,
    }


def collective(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    """As it would be at eight GPUs: 3 + world parts, of 11 there (models/timeline/costs.py)."""
    return {
        "collective_us": max(captured for captured, _ in ask("gathered", sizes.gathered))
        * 11
        / (3 + world)
    }


def large_collective(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    """What is left of a large all-gather's time once its latency, paid twice, is taken off."""
    captured_us = max(captured for captured, _ in ask("gathered", sizes.large))
    latency_us = 2 * chip.known("collective_us") * (3 + world) / 11
    return {"gather_bytes_per_us": sizes.large / (captured_us - latency_us)}


def copy_engines(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    """Copies of one word give what each costs beside its bytes."""
    small, large = ask("copied_by_engine", 4), ask("copied_by_engine", sizes.large)
    each_us = max(us for us, _ in small)
    return {
        "engine_us": each_us,
        "engine_host_us": max(host_us for _, host_us in small),
        "engine_bytes_per_us": sizes.large / (max(us for us, _ in large) - each_us),
    }


def assumed(ask: Ask, chip: Chip, world: int, sizes: Sizes) -> dict[str, float]:
    """No question: what none asks, and the chip lacks."""
    return assumptions.made(chip, ask, world, sizes.chain)


Question = Callable[[Ask, Chip, int, Sizes], dict[str, float]]
QUESTIONS: tuple[Question, ...] = (
    memory,
    library_gemm,
    streaming_gemm,
    flags,
    loads,
    links,
    launches,
    collective,
)
FURTHER: Mapping[Question, str] = {
    large_collective: "gather_bytes_per_us",
    copy_engines: "engine_bytes_per_us",
}
"""Asked where the chip lacks this constant, or has it by assumption: those of kernels/core/chips.py
that were measured came from whole calls, which say more."""
OF_PEERS: frozenset[Question] = frozenset({loads, collective, *FURTHER})
NO_PEER = "left out: one GPU has no peer to ask about"


def asked(chip: Chip) -> tuple[Question, ...]:
    """The questions that a calibration of this chip asks."""
    sourced = dict(chip.sourced)
    return (*QUESTIONS, *(question for question, name in FURTHER.items() if name not in sourced))


def _answered(
    question: Question, ask: Ask, chip: Chip, gpus: int, sizes: Sizes
) -> dict[str, float] | str:
    """The constants that a question gives, or why it gives none: there is nobody to ask about, it
    needs what was not measured, it ended the world, or its answer is no time or rate."""
    if gpus == 1 and question in OF_PEERS:
        return NO_PEER
    try:
        answer = question(ask, chip, gpus, sizes)
    except (Broken, ValueError, ZeroDivisionError) as error:
        return str(error)
    unlikely = [f"{name}={value:.4g}" for name, value in answer.items() if not 0 < value < math.inf]
    return f"its answer is no time or rate: {', '.join(unlikely)}" if unlikely else answer


def calibrate(
    target: Target, emulated: bool = False
) -> Iterator[tuple[str, dict[str, float] | str]]:
    """Each question by name, with its constants, or the sentence that says why there are none;
    last, under ASSUMED, what no question asks and the chip lacks. Starts a world of one rank for
    each GPU, and another where a question ends it. Raises Broken where no world starts."""
    sizes, chip, gpus = SMALL if emulated else Sizes(), target.chip, target.gpus
    spec = WorldSpec(Path(), gpus, emulated, sizes.payload, 0 if emulated else chip.cache_bytes)
    world = World(spec, serve=partial(worker.main, make=Prober))

    def ask(method: str, *arguments: Any) -> list[Any]:
        return world.request(method, arguments, DEADLINE_S)

    try:
        for question in asked(target.chip):
            if not world.alive:
                world.start()
            answer = _answered(question, ask, chip, gpus, sizes)
            if isinstance(answer, dict):
                chip = chip.with_constants(answer)
            yield question.__name__, answer
        if chip.missing(gpus):
            if not world.alive:
                world.start()
            yield ASSUMED, _answered(assumed, ask, chip, gpus, sizes)
    finally:
        world.kill()
