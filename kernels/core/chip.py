"""One GPU model: what its driver says, what it can do, and its rates for the analytic model.

Rates may be unknown: without all of them there is no modelled time of this GPU. Standard library
only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

from tftune.kernels.core.architecture import Capabilities, capabilities

T = TypeVar("T", "Rates", "Links")
Constants = tuple[tuple[str, float], ...]
"""Rates by name, sorted: hashable, and as many as are known."""


@dataclass(frozen=True)
class Rates:
    """What one GPU reaches. Times in microseconds, rates in bytes or FLOPs per microsecond."""

    hbm_bytes_per_us: float
    fabric_bytes_per_us: float
    """From the last-level cache into the L2 of all dies together; not used where there is one
    die."""
    l2_bytes_per_us: float
    """From L2 to all units together."""
    shared_bytes_per_us: float
    """In and out of one unit's shared memory."""
    load_us: float
    """Latency of a load from memory, while memory is busy."""

    matrix_flops_per_us: float
    """Dense fp16 with fp32 accumulation, random normal data, the best library GEMM."""
    unit_flops_per_us: float
    """The same of one unit, where power does not yet limit the clock of all."""
    stream_share: float
    """The share of the memory rate that a library GEMM reaches where it only streams B."""
    triton_share: float
    """The share of the matrix rate that a tuned Triton kernel with plain pointers reaches."""

    block_us: float
    """One communicating program, per block that it copies: four 16-byte accesses of each thread."""
    poll_us: float
    """One acquire of a flag in this GPU's memory that is already set."""
    graph_launch_us: float
    """From one kernel to the next inside a captured graph."""
    eager_launch_us: float
    """Host time from an idle queue to the first instruction of a kernel."""
    library_call_us: float
    """Host time of each further library call of an eager sequence."""
    descriptor_us: float
    """Host time of making one tensor descriptor; not used where there are none."""


@dataclass(frozen=True)
class Links:
    """What GPUs of one node reach between each other, in the same units."""

    link_bytes_per_us: float
    """To one peer, one direction."""
    links_bytes_per_us: float
    """To all peers of a full node together, one direction."""
    gather_bytes_per_us: float
    """A library's all-gather, to each peer, where the links allow more: between two GPUs it does
    not reach what they do."""
    remote_load_us: float
    """What a load from a peer takes longer than one from memory."""
    signal_us: float
    """What a program spends on one release at system scope before it goes on."""
    flag_us: float
    """One way: a release in a peer's memory seen by its acquire."""
    engine_us: float
    """From one copy to the next in a stream of a copy engine, besides its bytes."""
    engine_host_us: float
    """Host time of queueing one copy that is not captured."""
    engine_bytes_per_us: float
    """A copy engine, to one peer."""
    collective_us: float
    """A captured all-gather of a few bytes over eight GPUs."""
    skew_us: float
    """By how much the last of all ranks ends a call later than it would alone."""

    def rate(self, world: int) -> float:
        """Bytes per microsecond that one GPU sends to `world - 1` peers at once."""
        return min(self.link_bytes_per_us * max(world - 1, 1), self.links_bytes_per_us)

    def at_once(self, world: int) -> float:
        """Links that work at once; 1 where a switch joins them."""
        return max(self.rate(world) / self.link_bytes_per_us, 1.0)


ALONE = Links(
    link_bytes_per_us=1.0, links_bytes_per_us=1.0, gather_bytes_per_us=1.0, remote_load_us=0.0,
    signal_us=0.0, flag_us=0.0, engine_us=0.0, engine_host_us=0.0, engine_bytes_per_us=1.0,
    collective_us=0.0, skew_us=0.0,
)  # fmt: skip
"""Constants of a world of one rank whose links nobody measured: nothing is sent and nobody is
waited for, so that any rate serves."""
RATE_NAMES = tuple(field.name for field in fields(Rates))
LINK_NAMES = tuple(field.name for field in fields(Links))
NAMES = (*RATE_NAMES, *LINK_NAMES)
"""Every constant of the model."""
DEVICE: dict[str, type] = {
    "name": str, "gpu_name": str, "arch": str, "units": int, "wave_size": int, "dies": int,
    "shared_bytes": int, "cache_bytes": int,
}  # fmt: skip
"""What a description holds: what the driver says of a GPU, as JSON values."""
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def constants(**values: float) -> Constants:
    """These constants, sorted; raises TypeError for a name that the model does not have."""
    if unknown := sorted(values.keys() - set(NAMES)):
        known = ", ".join(NAMES)
        raise TypeError(f"{unknown[0]} is no constant of a chip; the constants are {known}")
    return tuple(sorted(values.items()))


@dataclass(frozen=True)
class Chip:
    """One GPU model and its links inside a node. Equal chips have equal constants; the hash takes
    what a driver says alone, since chips are keys of every cache of the model."""

    name: str
    arch: str
    """What Triton compiles for: `gfx942` or `sm_90`."""
    gpu_names: tuple[str, ...]
    """Exactly as the driver reports them."""
    units: int
    """Streaming multiprocessors (NVIDIA) or compute units (AMD)."""
    wave_size: int
    """Threads of one warp or wave."""
    dies: int
    """Dies to which programs are dealt in turn, each with an L2 of its own."""
    shared_bytes: int
    """Shared memory (LDS) that one program may use."""
    cache_bytes: int
    """Last-level cache: what a cold-cache measurement must rotate past."""
    switched: bool = False
    """Whether any one peer can have all of the link bandwidth (NVSwitch); else each has a link."""
    sourced: Constants = ()
    """Constants that were measured, here or in public."""
    assumed: Constants = ()
    """Constants of a relative, or by a rule of thumb: no figure of this GPU was found."""

    def __hash__(self) -> int:
        return hash((self.name, self.arch, self.units))

    @cached_property
    def can(self) -> Capabilities:
        """What its architecture can do; raises ValueError for a text that is none."""
        return capabilities(self.arch)

    @property
    def several_dies(self) -> bool:
        """Whether neighbouring programs may be dealt to different caches."""
        return self.dies > 1

    def has(self, need: str) -> bool:
        """Whether the chip has a capability, by its name: one of its architecture, or its own."""
        return bool(getattr(self if need == "several_dies" else self.can, need))

    def constant(self, name: str) -> float | None:
        """One constant; None where it is not known."""
        return self._known.get(name)

    def known(self, name: str) -> float:
        """One constant; raises ValueError where it is not known."""
        if (value := self.constant(name)) is None:
            raise ValueError(f"{name} of {self.name} is not known; `tftune calibrate` measures it")
        return value

    @cached_property
    def _known(self) -> Mapping[str, float]:
        idle = {} if self.several_dies else {"fabric_bytes_per_us": math.inf}
        idle |= {} if self.can.descriptors else {"descriptor_us": 0.0}
        return idle | dict(self.assumed) | dict(self.sourced)

    @cached_property
    def rates(self) -> Rates:
        """Raises ValueError, with the next command, where not all of them are known."""
        return self._complete(Rates, RATE_NAMES)

    @cached_property
    def links(self) -> Links:
        """Raises ValueError, with the next command, where not all of them are known."""
        return self._complete(Links, LINK_NAMES)

    def links_of(self, world: int) -> Links:
        """The links of a world; of one rank there need be none."""
        unknown = world == 1 and any(name not in self._known for name in LINK_NAMES)
        return ALONE if unknown else self.links

    def _complete(self, kind: type[T], names: tuple[str, ...]) -> T:
        if any(name not in self._known for name in names):
            raise ValueError(self.why_no_model(1 if kind is Rates else 2))
        return kind(**{name: self._known[name] for name in names})

    def missing(self, world: int) -> tuple[str, ...]:
        """The constants that a modelled time of so many ranks needs and that are not known."""
        return tuple(n for n in (NAMES if world > 1 else RATE_NAMES) if n not in self._known)

    def why_no_model(self, world: int) -> str | None:
        """The sentence for which no time of so many ranks can be modelled, or None."""
        if not (missing := self.missing(world)):
            return None
        shown = f"{', '.join(missing[:3])}{f' and {len(missing) - 3} more' if missing[3:] else ''}"
        return (
            f"the analytic model is off for {self.name}, since {len(missing)} of its constants are "
            f"not known ({shown}); run `tftune calibrate` on such a machine and give its file with "
            "--chip"
        )

    @property
    def assumptions(self) -> str:
        """How many of its known constants are assumed, for whatever shows a modelled figure."""
        guessed = len(dict(self.assumed).keys() - dict(self.sourced).keys())
        return f"{guessed} of the {len(self._known)} constants of {self.name} are assumed"

    def with_constants(
        self, sourced: Mapping[str, float], assumed: Mapping[str, float] | None = None
    ) -> Chip:
        """This chip with other constants; what is sourced is assumed no more. Raises TypeError for
        an unknown name."""
        known = constants(**dict(self.sourced) | dict(sourced))
        guessed = {**dict(self.assumed), **(assumed or {})}
        names = {name for name, _ in known}
        left = {name: value for name, value in guessed.items() if name not in names}
        return replace(self, sourced=known, assumed=constants(**left))

    def description(self) -> dict[str, Any]:
        """What the driver says of it, as JSON values: it travels with rows, artifacts and chip
        files to processes without the GPU."""
        values = vars(self) | {"gpu_name": self.gpu_names[0]}
        return {name: values[name] for name in DEVICE}

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Chip:
        """The chip of such a description; raises ValueError naming what does not fit."""
        if not isinstance(description, Mapping):
            raise ValueError(f"chip={description!r:.60} must describe a GPU by {', '.join(DEVICE)}")
        for name, kind in DEVICE.items():
            if not _fits(description.get(name), kind):
                shown = f"{name}={description.get(name)!r:.60}"
                raise ValueError(f"a chip's description has {shown}, where {kind.__name__} must be")
        if unknown := sorted(map(str, description.keys() - DEVICE.keys())):
            raise ValueError(f"a chip's description has no field {unknown[0]:.60}")
        if not SLUG.fullmatch(description["name"]):
            raise ValueError(f"{description['name']!r:.60} is no name of a chip; see `slug`")
        if (size := description["wave_size"]) not in (32, 64):
            raise ValueError(f"{description['name']} has waves of {size}; there are 32 and 64")
        capabilities(description["arch"])  # what is no architecture is refused here
        values = {name: description[name] for name in DEVICE if name != "gpu_name"}
        return cls(gpu_names=(description["gpu_name"],), **values)


def _fits(value: Any, kind: type) -> bool:
    """Whether it is such a value of a description: printable text, or a positive integer of 63
    bits."""
    if kind is str:
        return isinstance(value, str) and value.isprintable()
    return type(value) is int and 0 < value < 2**63


def slug(gpu_name: str) -> str:
    """A driver's name as part of a target's.

    >>> slug("NVIDIA L40S"), slug("NVIDIA A100-SXM4-40GB MIG 3g.20gb")
    ('nvidia-l40s', 'nvidia-a100-sxm4-40gb-mig-3g-20gb')
    """
    return re.sub(r"[^a-z0-9]+", "-", gpu_name.lower()).strip("-") or "gpu"
