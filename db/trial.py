"""The values of one trial: a measurement with all its samples, or a failure with its kind. Standard
library only."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from statistics import median
from typing import Any

from tftune.db.row_checks import (
    is_number,
    is_word,
    refuse_all_but_instant,
    refuse_all_but_readings,
    refuse_all_but_target,
    refuse_all_but_text,
    refuse_all_but_words,
    shown,
    times_of,
)
from tftune.kernels.core.chip import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config

MODES = ("graph", "eager")
BENCHES = ("node", "model", "replay", "drill")
"""Where a row comes from. `drill`: the node with faults injected on purpose, whose rows are never
taken for clean ones."""
STAGES = {
    "search": "proposed by the sampler",
    "warm_up": "one of the few that `tftune.warm_up` timed beside BSP in the process that serves",
    "watch": "a leaf that `tftune verify --watch` measured again, to see whether its time moved",
    "tax": "an arm of the tax study: a call with something added or left out, to isolate a tax",
    "final": "a winner, measured again in a fresh world with more rounds: the figure that counts",
    "matrix": "one of the configs that were measured on every shape of a set, in rounds that all "
    "configs of a shape share",
}
ROLES = {
    "evidence": "tables, training, replay and searches that resume read its rows",
    "superseded": "a newer session took its place: its code, clock or machine has changed since",
    "repeat": "a second search of the same shapes, to compare with the first",
}
"""What the rows of a run count for. All of them are hints to a search, and score the model."""
EVIDENCE = ("search", "final", "matrix")
"""Stages that tables, training and replay read.

Rows of `warm_up` were taken by serving processes, beside few other configs, and those of `watch`
say how a node changes: they are left out unless a reader asks for them by name.
"""
TAX = "tax"
"""The stage, and the condition, of rows that isolate a tax."""
CONDITIONS = {
    "lengths": "tokens of the sequences of a batch, by the name and seed of a distribution, as in "
    "lengths=uniform/1; full where a row has none, and where full ones stand beside others",
    TAX: "what was added to a call, or left out, to isolate a tax: an arm of the tax study",
}
"""What may have been otherwise about a call than its shape, config and mode say.

Rows with a condition are of another question: everybody leaves them out but who asks for them.
"""
FAILURES = {
    "invalid": "the config breaks a rule for this shape",
    "compile": "the kernel did not compile",
    "resources": "it needs more memory, registers, shared memory or programs than the chip has",
    "wrong": "its result differs from the reference by more than rounding",
    "hang": "it passed its deadline; the world was killed and started again",
    "crash": "a rank died; the world was started again",
}
LARGEST_ERROR = 2.0**63
"""A check's error lies below, since SQLite holds no larger integer."""
LARGEST_SIZE = 2**31
"""The largest size in a row's shape: with larger ones a model's products of sizes leave the range
of its floats."""
TEXTS = ("op", "shape", "mode", "target", "bench", "run", "kernel", "stage", "created")
"""Fields of a trial's row that are text."""
Interval = tuple[float, float]
"""The lower and the upper bound."""


def median_interval(samples: tuple[float, ...], confidence: float = 0.95) -> Interval:
    """The distribution-free interval of the median from order statistics (binomial signs test;
    Conover 1999, 3.2).

    With too few samples for the confidence asked, the whole range.

    >>> median_interval((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0))
    (2.0, 8.0)
    """
    ordered, count = sorted(samples), len(samples)
    tail, low = 0.0, 0
    while low < count // 2:
        tail += math.comb(count, low) / 2**count
        if 2 * tail > 1 - confidence:
            break
        low += 1
    low = max(low - 1, 0)
    return ordered[low], ordered[count - 1 - low]


@dataclass(frozen=True)
class Measurement:
    """Times of one config, all samples kept. Each sample is one round: the slowest rank's time for
    one call, in microseconds.

    `bsp_samples_us` are the strongest BSP form's times in the same rounds, in the same order.
    `check_error` is the largest error that the check saw, relative to the reference's norm; None
    where nothing ran (the model bench).
    """

    samples_us: tuple[float, ...]
    bsp_samples_us: tuple[float, ...] = ()
    check_error: float | None = None
    stopped_early: bool = False
    """Fewer rounds than others, since after these it could not win any more."""

    def __post_init__(self) -> None:
        if not self.samples_us:
            raise ValueError(
                "us is empty: samples must be positive and finite, and there must be one at least"
            )
        for name, samples in (("us", self.samples_us), ("bsp_us", self.bsp_samples_us)):
            # NaN may hide from `min` and `max`, and not from a sum.
            if samples and not (
                min(samples) > 0 and max(samples) <= sys.float_info.max and sum(samples, 0.0) > 0
            ):
                wrong = next(us for us in samples if not 0 < us <= sys.float_info.max)
                raise ValueError(f"{name} has {shown(wrong)}: samples must be positive and finite")
        if self.bsp_samples_us and len(self.bsp_samples_us) != len(self.samples_us):
            raise ValueError(
                f"{len(self.samples_us)} samples but {len(self.bsp_samples_us)} of BSP: they must "
                "be of the same rounds"
            )

    @cached_property
    def median_us(self) -> float:
        return median(self.samples_us)

    @cached_property
    def interval_us(self) -> Interval:
        """95 % interval of the median."""
        return median_interval(self.samples_us)

    @cached_property
    def speedups(self) -> tuple[float, ...]:
        """BSP's time over this config's, round by round."""
        rounds = zip(self.bsp_samples_us, self.samples_us, strict=False)  # () where BSP had none
        return tuple(bsp / us for bsp, us in rounds)

    @cached_property
    def speedup(self) -> float | None:
        """The median over rounds of BSP's time over this config's; above 1 this config is faster.
        None without BSP."""
        return median(self.speedups) if self.speedups else None

    @cached_property
    def speedup_interval(self) -> Interval | None:
        """95 % interval of the median ratio. Order statistics rather than a bootstrap: as free of
        assumptions about noise, without random numbers, and known to hold its confidence with few
        rounds, where a bootstrap's is too narrow."""
        return median_interval(self.speedups) if self.speedups else None

    def paired_interval(self, other: Measurement) -> Interval | None:
        """95 % interval of the median over rounds of this config's time over the other's;
        distribution-free, like the others.

        None where the two were not timed in the same rounds. Configs that take turns have the very
        samples of BSP in common, which rows of different rounds never have (the model's apart,
        which are of no rounds): no column needs to name the group.
        """
        if not self.bsp_samples_us or self.bsp_samples_us != other.bsp_samples_us:
            return None
        return median_interval(
            tuple(mine / its for mine, its in zip(self.samples_us, other.samples_us, strict=True))
        )

    def why_unstable(self) -> str | None:
        """A sentence where the interval of the median is wider than a tenth of it, else None."""
        low, high = self.interval_us
        if len(self.samples_us) > 1 and high - low > 0.1 * self.median_us:
            return (
                f"the median {self.median_us:.1f} us has an interval of {low:.1f} to {high:.1f} "
                f"us over {len(self.samples_us)} rounds"
            )
        return None


@dataclass(frozen=True)
class Failure:
    """A config that gave no time: a result like any other. `kind` is one of FAILURES."""

    kind: str
    text: str

    def __post_init__(self) -> None:
        if self.kind not in FAILURES:
            raise ValueError(
                f"{shown(self.kind)} is no kind of failure; the kinds are {', '.join(FAILURES)}"
            )


Outcome = Measurement | Failure


@dataclass(frozen=True)
class Run:
    """One start of a search on one machine: what all its trials share."""

    id: str
    target: str
    bench: str
    build: dict[str, str]
    """Versions of driver, CUDA or ROCm, torch, triton, iris, python, tftune."""
    started: str
    """UTC, ISO 8601."""
    clocks: dict[str, Any]
    """As read after the first trial, while the GPUs are awake: clocks, temperature and power by
    GPU, and under `copy_gb_s` what the self-test of cold caches saw; empty where nothing could be
    read. Under `chip` the description of a GPU that kernels/core/chips.py does not have, as
    `Chip.description` gives it."""
    ended: dict[str, Any] = field(default_factory=dict)
    """The same after the last trial; empty where the search was stopped, or nothing could be
    read."""
    role: str = "evidence"
    """One of ROLES."""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"role={shown(self.role)} is not one of {', '.join(ROLES)}")

    @property
    def described(self) -> dict[str, Any] | None:
        """The description of its GPU, where the run carries one."""
        return self.clocks.get("chip")

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Run:
        """The run of such a row, as `asdict` makes it; raises KeyError or ValueError naming the
        field where it is not one."""
        if unknown := sorted(row.keys() - {known.name for known in fields(cls)}):
            raise ValueError(f"a run has no field {shown(unknown[0])}")
        words = {"role": "evidence"} | row
        refuse_all_but_words(words, ("id", "target", "bench", "started", "role"))
        refuse_all_but_target(row["target"])
        refuse_all_but_instant("started", row["started"])
        build = row["build"]
        if not isinstance(build, dict) or not all(map(is_word, (*build, *build.values()))):
            raise ValueError(f"build={shown(build)} must give each name a version, as text")
        refuse_all_but_readings("clocks", row["clocks"])
        refuse_all_but_readings("ended", row.get("ended", {}))
        if (described := row["clocks"].get("chip")) is not None:
            Chip.described(described)
        return cls(**row)


@dataclass(frozen=True)
class Trial:
    """One config of one shape in one mode on one bench, and how it went: one row."""

    shape: Shape
    config: Config
    mode: str
    target: str
    bench: str
    run: str
    """`Run.id`."""
    revision: str
    """That of the code that ran, such as `r1`: current where it equals `installed(op, variant)`."""
    outcome: Outcome
    stage: str = "search"
    created: str = ""
    """UTC, ISO 8601."""
    condition: str = ""
    """One of CONDITIONS and its value, as in `lengths=uniform/1`; empty where the call was the
    usual one."""

    def __post_init__(self) -> None:
        for name, known in (("mode", MODES), ("bench", BENCHES), ("stage", STAGES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name}={shown(getattr(self, name))} is not one of {', '.join(known)}"
                )
        if self.condition:
            check_condition(self.shape.op, self.condition)
        if (self.stage == TAX) != self.condition.startswith(f"{TAX}="):
            raise ValueError(
                f"stage={self.stage} and condition={shown(self.condition)}: rows of stage {TAX}, "
                f"and only those, have a condition {TAX}="
            )

    @property
    def op(self) -> str:
        return self.shape.op

    @cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits of the content, so that importing a row twice changes
        nothing."""
        return sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """One short JSON row, as committed under db/trials; times with two decimals."""
        row: dict[str, Any] = {
            "op": self.op, "shape": str(self.shape), "config": self.config.to_dict(),
            "mode": self.mode, "target": self.target,
            "bench": self.bench, "run": self.run, "kernel": self.revision, "stage": self.stage,
            "created": self.created,
        }  # fmt: skip
        row |= {"condition": self.condition} if self.condition else {}
        return row | outcome_row(self.outcome)

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Trial:
        """The trial of such a row; raises KeyError or ValueError naming the field where it is not
        one."""
        refuse_all_but_words({"condition": ""} | row, (*TEXTS, "condition"))
        refuse_all_but_target(row["target"])
        refuse_all_but_instant("created", row["created"])
        outcome = outcome_of(row)
        return cls(
            shape_of(row["op"], row["shape"]), Config.from_dict(row["config"]), row["mode"],
            row["target"], row["bench"], row["run"], row["kernel"], outcome, row["stage"],
            row["created"], row.get("condition", ""),
        )  # fmt: skip


@lru_cache(maxsize=4096)
def check_condition(op: str, condition: str) -> None:
    """Raises ValueError where no row of the operation can have this condition."""
    from tftune.kernels.core.registry import operation

    name, _, value = condition.partition("=")
    if name not in CONDITIONS or not value:
        raise ValueError(
            f"condition={shown(condition)} must be one of {', '.join(CONDITIONS)}, then = and a "
            "value"
        )
    if name == "lengths" and (text := operation(op).checked_lengths(value)) != value:
        raise ValueError(f"condition={shown(condition)} is written lengths={text}")


@lru_cache(maxsize=4096)
def shape_of(op: str, text: str) -> Shape:
    """The shape of a row; raises KeyError or ValueError. Kept, since thousands of rows share a
    shape, and reading one takes longer than checking the rest of its row."""
    from tftune.kernels.core.registry import operation

    shape = operation(op).shape.parse(text)
    for name in shape.sizes():
        if (size := getattr(shape, name)) > LARGEST_SIZE:
            raise ValueError(f"{name}={shown(size)} of a shape is above {LARGEST_SIZE}")
    return shape


def outcome_row(outcome: Outcome) -> dict[str, Any]:
    """What a row says of an outcome; times with two decimals."""
    if isinstance(outcome, Failure):
        return {"failure": outcome.kind, "text": outcome.text}
    both = {"us": outcome.samples_us, "bsp_us": outcome.bsp_samples_us}
    row: dict[str, Any] = {name: [round(us, 2) for us in samples] for name, samples in both.items()}
    row["check_error"] = outcome.check_error
    return row | ({"stopped_early": True} if outcome.stopped_early else {})


def outcome_of(row: dict[str, Any]) -> Outcome:
    """The outcome that a row says; raises KeyError or ValueError where it says none."""
    if "failure" in row:
        refuse_all_but_text(row, ("failure", "text"))
        return Failure(row["failure"], row["text"])
    error, stopped = row["check_error"], row.get("stopped_early", False)
    if error is not None:
        if not is_number(error) or not 0 <= error < LARGEST_ERROR:
            raise ValueError(
                f"check_error={shown(error)} must be null, or a number of at least 0 and below "
                "2**63"
            )
        error = abs(error)  # SQLite turns -0.0 into 0.0
    if not isinstance(stopped, bool):
        raise ValueError(f"stopped_early={shown(stopped)} must be true or false")
    return Measurement(times_of(row, "us"), times_of(row, "bsp_us"), error, stopped)


def now(timespec: str = "microseconds") -> str:
    """This instant as rows have it, UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec=timespec)
