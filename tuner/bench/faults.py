"""Faults on purpose, for drills: what can go wrong on a node, made to go wrong for some configs, on
one rank where it can be."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config


@dataclass(frozen=True)
class Fault:
    """One way to go wrong, and the kind of failure (of db/trial.py) that it must be stored as."""

    kind: str
    meaning: str


FAULTS = {
    "hang": Fault(
        "hang", "rank 0 never launches, so that its peers wait for flags that are never set"
    ),
    "crash": Fault("crash", "a segmentation fault on rank 0"),
    "wrong": Fault("wrong", "wrong numbers on rank 0"),
    "oom": Fault(
        "resources", "an allocation that fails on every rank while the config is prepared"
    ),
    "rank_error": Fault(
        "crash", "an exception on rank 0 only, while the others launch and wait for it"
    ),
}
EXAMPLE = "hang=0.1,crash=0.05"
_MARK = "injected "


def known(fault: str) -> str:
    """The fault's name; raises ValueError listing those that there are."""
    if fault not in FAULTS:
        raise ValueError(f"there is no fault {fault!r}; there are {', '.join(FAULTS)}")
    return fault


def fail_to_allocate(fault: str | None) -> None:
    """Called while a config is prepared: what `oom` does, as torch does it."""
    if fault == "oom":
        import torch

        raise torch.OutOfMemoryError("out of memory")


def faulty(plan: Any, fault: str, rank: int) -> Any:
    """The plan with a fault of its launch in it; the other ranks get theirs unharmed. Raises
    ValueError for an unknown fault."""
    known(fault)

    def call(*operands: Any) -> None:
        if rank == 0 and fault == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if rank == 0 and fault == "rank_error":
            raise RuntimeError("an exception on one rank")
        if rank == 0 and fault == "hang":
            return
        plan(*operands)
        if rank == 0 and fault == "wrong":
            operands[-1].view(-1)[0] += 100

    return call


def marked(failure: Failure, fault: str | None) -> Failure:
    """The failure, saying that it was injected; unchanged where it is not of the fault's kind, and
    so has another reason."""
    if fault is None or failure.kind != FAULTS[known(fault)].kind:
        return failure
    return Failure(failure.kind, f"{_MARK}{fault}: {failure.text}")


def injected(outcome: Outcome) -> str | None:
    """The fault that a stored outcome says was injected.

    >>> injected(marked(Failure("hang", "rank 1 had not ended"), "hang"))
    'hang'
    """
    text = outcome.text if isinstance(outcome, Failure) else ""
    return text.removeprefix(_MARK).partition(":")[0] if text.startswith(_MARK) else None


@dataclass(frozen=True)
class Drill:
    """Which config runs into which fault: decided by shape, config and seed alone, so that a
    resumed search injects the same."""

    shares: tuple[tuple[str, float], ...]
    """The probability of each fault, in the order of FAULTS."""
    seed: int = 0

    @classmethod
    def parse(cls, text: str, seed: int = 0) -> Drill:
        """The drill written as `hang=0.1,crash=0.05`; raises ValueError for an unknown fault or
        what are no probabilities."""
        shares: dict[str, float] = {}
        for part in text.split(","):
            name, _, number = (word.strip() for word in part.partition("="))
            if known(name) in shares:
                raise ValueError(f"--inject {text} gives {name} twice")
            shares[name] = _probability(name, number)
        whole = sum(shares.values())
        if whole > 1 + 1e-9:  # decimal parts of 1 may sum to a little more
            raise ValueError(
                f"the probabilities of --inject {text} sum to {whole:g}, which is above 1"
            )
        return cls(tuple((name, shares[name]) for name in FAULTS if name in shares), seed)

    def __str__(self) -> str:
        return ",".join(f"{name}={share:g}" for name, share in self.shares)

    def fault(self, shape: Shape, config: Config) -> str | None:
        """The fault of this config at this shape; None for most, and for BSP, without which nothing
        could be compared.

        >>> drill = Drill.parse("hang=1")
        >>> [drill.fault("any shape", Config(variant)) for variant in ("push", "bsp")]
        ['hang', None]
        """
        digest = sha256(f"{shape}/{config!r}/{self.seed}".encode()).digest()
        point = int.from_bytes(digest[:8]) / 2**64
        for name, share in self.shares:
            if point < share:
                return None if config.variant == "bsp" else name
            point -= share
        return None

    def refuse_another(self, trials: Iterable[Trial], place: str) -> None:
        """Raises ValueError where rows of a drill with other probabilities or another seed are
        stored: one database, one drill."""
        for trial in trials:
            had, has = injected(trial.outcome), self.fault(trial.shape, trial.config)
            if had != has and (had or isinstance(trial.outcome, Measurement)):
                raise ValueError(
                    f"{place} holds another drill: there {trial.config} ran into "
                    f"{had or 'no fault'}, and --inject {self} with seed "
                    f"{self.seed} gives it {has or 'none'}; give the same --inject and --seed as "
                    "before, or another --db"
                )


def _probability(name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(
            f"{name}={text} is no probability; give numbers from 0 to 1, as in --inject {EXAMPLE}"
        )
    return share
