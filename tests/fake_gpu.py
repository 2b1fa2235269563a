"""GPUs as their drivers report them to torch, without one: names, architectures, units and sizes as
public logs and manuals have them."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

KB, MB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Gpu:
    """What torch says of one GPU. `shared`: of a unit; NVIDIA keeps 1 KB of it for each program."""

    name: str
    arch: str
    units: int
    shared: int
    cache: int
    memory: int = 0

    @property
    def is_amd(self) -> bool:
        return self.arch.startswith("gfx")

    @property
    def properties(self) -> Any:
        common = dict(multi_processor_count=self.units, L2_cache_size=self.cache, warp_size=32)
        common |= dict(total_memory=self.memory)
        if self.is_amd:
            wave = 64 if self.arch.startswith("gfx9") else 32
            name = f"{self.arch}:sramecc+:xnack-"
            common |= dict(gcnArchName=name, shared_memory_per_block=self.shared, warp_size=wave)
            return SimpleNamespace(major=9, minor=4, **common)
        number = int(self.arch.removeprefix("sm_"))
        optin = self.shared - KB if number >= 80 else self.shared
        common |= dict(shared_memory_per_block_optin=optin, shared_memory_per_block=48 * KB)
        common |= dict(shared_memory_per_multiprocessor=self.shared)
        return SimpleNamespace(major=number // 10, minor=number % 10, **common)


def hopper(name: str, units: int = 132, cache: int = 50 * MB) -> Gpu:
    return Gpu(name, "sm_90", units, 228 * KB, cache)


def ampere(name: str, units: int = 108) -> Gpu:
    return Gpu(name, "sm_80", units, 164 * KB, 40 * MB)


def cdna3(name: str, units: int = 304) -> Gpu:
    return Gpu(name, "gfx942", units, 64 * KB, 4 * MB)


def cdna4(name: str, units: int = 256) -> Gpu:
    return Gpu(name, "gfx950", units, 160 * KB, 4 * MB)


H200 = hopper("NVIDIA H200", cache=60 * MB)
MI300X = cdna3("AMD Instinct MI300X")
L40S = Gpu("NVIDIA L40S", "sm_89", 142, 100 * KB, 96 * MB)


def torch_with(*gpus: Gpu) -> Any:
    """A torch that sees these GPUs, of one vendor."""
    hip = any(gpu.is_amd for gpu in gpus)
    cuda = SimpleNamespace(
        is_available=lambda: bool(gpus),
        device_count=lambda: len(gpus),
        get_device_name=lambda index: gpus[index].name,
        get_device_properties=lambda index: gpus[index].properties,
    )
    module: Any = ModuleType("torch")
    module.__spec__, module.__version__, module.cuda = SimpleNamespace(), "2.13.0", cuda
    versions = dict(cuda=None, hip="7.2") if hip else dict(cuda="13.0", hip=None)
    module.version = SimpleNamespace(**versions)
    return module
