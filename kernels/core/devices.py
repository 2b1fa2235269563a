"""The GPUs that this process sees, as chips: known ones by exact name, others as described.

Standard library only; torch is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tftune.kernels.core.architecture import HIP, capabilities
from tftune.kernels.core.chips import CHIPS, Chip, chip_of, learn, slug

AMD_CACHE_BYTES = 268_435_456
"""The largest last-level cache of an AMD GPU (CDNA 3 and 4 white papers). Its driver tells the L2
of one die alone (ROCm issue 4203), and to rotate past too little is to measure warm caches."""
LARGEST_CACHE_BYTES = 132_120_576
"""The largest L2 of an NVIDIA GPU in kernels/core/chips.py, that of B200."""
UNNAMED = ("AMD Radeon Graphics", "")
"""What a driver says of an AMD GPU whose marketing name it lacks: of MI300X and MI325X alike."""


@dataclass(frozen=True)
class Seen:
    """What the driver says of one GPU."""

    gpu_name: str
    arch: str
    units: int
    wave_size: int
    shared_bytes: int
    cache_bytes: int
    memory_gb: int
    """Gibibytes, rounded: 192 of MI300X, 256 of MI325X; 0 where torch does not tell."""

    @classmethod
    def of(cls, torch: Any, index: int) -> Seen:
        """GPU `index`, as torch tells it."""
        props = torch.cuda.get_device_properties(index)
        hip = torch.version.hip is not None
        arch = props.gcnArchName.partition(":")[0] if hip else f"sm_{props.major}{props.minor}"
        return cls(
            torch.cuda.get_device_name(index),
            arch,
            props.multi_processor_count,
            getattr(props, "warp_size", capabilities(arch).wave_size),
            _shared_bytes(props, arch),
            _cache_bytes(props, hip),
            round(getattr(props, "total_memory", 0) / 2**30),
        )

    def __str__(self) -> str:
        memory = f", {self.memory_gb} GB" if self._is_unnamed else ""
        return f"{self.gpu_name} ({self.arch}, {self.units} units{memory})"

    @property
    def _is_unnamed(self) -> bool:
        return self.gpu_name in UNNAMED and self.memory_gb > 0

    @property
    def dies(self) -> int:
        """The fewest that hold its units: a driver does not tell."""
        most = capabilities(self.arch).die_units
        return -(-self.units // most) if most else 1

    @property
    def chip(self) -> Chip:
        """The chip of this GPU: a known one, or what the driver tells. A known one rotates past its
        own cache at least."""
        return self._known or Chip.described(self._description)

    def as_chip(self) -> Chip:
        """The same chip, whose name this process knows from here on. Raises ValueError where the
        process was told of another chip of that name."""
        return self._known or learn(self._description)

    @property
    def _known(self) -> Chip | None:
        known = chip_of(self.gpu_name, self.arch, self.units)
        if known and known.cache_bytes < self.cache_bytes:
            return replace(known, cache_bytes=self.cache_bytes)
        return known

    @property
    def _description(self) -> dict[str, Any]:
        names = ("gpu_name", "arch", "units", "wave_size", "shared_bytes", "cache_bytes")
        told = {name: getattr(self, name) for name in names}
        return told | {"name": self._name, "dies": self.dies}

    @property
    def _name(self) -> str:
        """From the driver's; a part of a known GPU, which has the name of the whole, says so, and
        one without a marketing name its memory."""
        if self._is_unnamed:
            return f"{slug(self.gpu_name or 'AMD Radeon Graphics')}-{self.memory_gb}gb"
        name = slug(self.gpu_name)
        partial = any(self.gpu_name in chip.gpu_names for chip in CHIPS.values())
        return f"{name}-{self.units}-units" if partial or name in CHIPS else name


def _cache_bytes(found: Any, hip: bool) -> int:
    """What to rotate past: too much only takes longer. Older torch does not tell."""
    told = int(getattr(found, "L2_cache_size", 0))
    return max(told, AMD_CACHE_BYTES) if hip else told or LARGEST_CACHE_BYTES


def _shared_bytes(found: Any, arch: str) -> int:
    """Shared memory that one program may ask for."""
    can = capabilities(arch)
    if can.backend == HIP:
        return int(found.shared_memory_per_block)
    whole = int(found.shared_memory_per_multiprocessor) - can.reserved_shared_bytes
    return int(getattr(found, "shared_memory_per_block_optin", whole))  # older torch lacks it
