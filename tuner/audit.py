"""Compile the kernels of a space for an AMD target, in parallel and without a GPU, and read in
their assembly what they need.

M is not compiled in, nor the rank; so many configs share a kernel. The whole space has millions of
others, of which most differ in knobs that only change a number in the code. `worth_auditing` says
which are compiled: every tile, what searches draw, and every default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import fields, replace
from itertools import product
from typing import Any

from tftune.db.audit import Audit, Resources, family, slim
from tftune.db.target import Target
from tftune.kernels.core.registry import Operation, operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space
from tftune.kernels.runtime.compile import gpu_target
from tftune.tuner.bench.processes import Helpers
from tftune.tuner.search.feasible import Feasible

TILE = ("block_m", "block_n", "block_k", "heads_per_program", "num_warps", "num_stages")
"""The knobs that decide how many registers and how much LDS a kernel needs; a variant has some of
them."""
_COUNTS = {
    "vgprs": r"\.vgpr_count:\s+(\d+)",
    "sgprs": r"\.sgpr_count:\s+(\d+)",
    "spilled_bytes": r"\.private_segment_fixed_size:\s+(\d+)",
    "waves_per_simd": r"; Occupancy:\s+(\d+)",
}
_BYTES = {
    "ubyte": 1,
    "byte": 1,
    "ushort": 2,
    "short": 2,
    "short_d16": 2,
    "dword": 4,
    "dwordx2": 8,
    "dwordx3": 12,
    "dwordx4": 16,
}


def resources(assembly: str, shared_bytes: int, variant: str) -> Resources:
    """What the AMD assembly of a kernel states. Raises ValueError where it does not state
    something."""
    counts = {}
    for name, pattern in _COUNTS.items():
        if (match := re.search(pattern, assembly)) is None:
            raise ValueError(f"the assembly does not state its {name}: is it of an AMD target?")
        counts[name] = int(match[1])
    moved = re.findall(
        r"\b(?:global|flat)_" + ("load" if variant == "pull" else "store") + r"_(\w+)", assembly
    )
    remote = max((_BYTES[name] for name in moved if name in _BYTES), default=0)
    return Resources(
        **counts, shared_bytes=shared_bytes, mfmas=assembly.count("v_mfma_"), remote_bytes=remote
    )


def neediest(kernels: Sequence[Resources]) -> Resources:
    """What the kernels of one call need at most, each number for itself; matrix instructions of
    all."""
    names = [each.name for each in fields(Resources)]
    needs = {name: max(getattr(kernel, name) for kernel in kernels) for name in names}
    needs["waves_per_simd"] = min(kernel.waves_per_simd for kernel in kernels)
    needs["mfmas"] = sum(kernel.mfmas for kernel in kernels)
    return Resources(**needs)


def worth_auditing(
    op: Operation, target: Target, pool: int, extra: Iterable[tuple[Shape, Config]] = ()
) -> list[tuple[Shape, Config]]:
    """What is compiled, one shape and config for each distinct kernel: every possible tile, the
    other knobs at their defaults; `pool` random configs of each variant, as a search of the main
    set draws them; the defaults of every named set; and those of `extra`."""
    space = replace(op.space, rules=tuple(rule for rule in op.space.rules if not rule.learned))
    main = op.named_set(op.main_set, target.gpus)
    wanted = [(main[-1], config) for config in tiles(space, main[-1], target)]
    for shape in main[::4]:
        drawn = Feasible.of(space, shape, target.chip, pool=pool)
        wanted += [(shape, config) for config in drawn.configs]
    for name in op.shape_sets:
        for shape in op.named_set(name, target.gpus):
            wanted += [(shape, config) for config in op.space.defaults(shape, target.chip)]
    compiled: dict[Any, tuple[Shape, Config]] = {}
    for shape, config in [*wanted, *extra]:
        if space.why_invalid(shape, config, target.chip) is None:
            sources = op.module("host").kernel_sources(shape, config, target.chip)
            if sources:
                compiled.setdefault(tuple(source.key for source in sources), (shape, config))
    return list(compiled.values())


def tiles(space: Space, shape: Shape, target: Target) -> Iterator[Config]:
    """Every possible tile of every variant that has tiles, the other knobs at their defaults."""
    for variant, choices in space.variants.items():
        knobs = {choice.name: choice.values for choice in choices if choice.name in TILE}
        for values in product(*knobs.values()) if knobs else ():
            config = space.complete(Config(variant, **dict(zip(knobs, values, strict=True))))
            if space.why_invalid(shape, config, target.chip) is None:
                yield config


def row(op: Operation, shape: Shape, config: Config, arch: str, outcome: Resources | str) -> Audit:
    """The row of one kernel; `outcome` is a sentence where there is none."""
    from importlib.metadata import version

    from tftune.kernels.core.revision import installed

    complete = op.space.complete(config)
    kernel = installed(op.name, config.variant)
    defaults = op.space.complete(Config(config.variant))
    known = slim(config, complete, defaults)
    common = op.name, family(shape), known, arch, version("triton"), kernel
    needs = (outcome,) if isinstance(outcome, Resources) else (None, outcome)
    return Audit(*common, *needs)


def compile_and_read(shape: Shape, config: Config, target: Target, arch: str) -> Audit:
    """The kernels of one config, in any process; of several the neediest. What the compiler raises
    is a row, too."""
    op = operation(shape.op)
    try:
        compiled = [
            source.compile(gpu_target(arch))
            for source in op.module("host").kernel_sources(shape, config, target.chip)
        ]
        needs = [
            resources(kernel.asm["amdgcn"], kernel.metadata.shared, kernel.metadata.name)
            for kernel in compiled
        ]
        return row(op, shape, config, arch, neediest(needs))
    except Exception as error:  # whatever the compiler raises is this config's failure
        return row(op, shape, config, arch, f"{type(error).__name__}: {error}"[:300])


def audit(
    wanted: Sequence[tuple[Shape, Config]], target: Target, arch: str, workers: int
) -> Iterator[Audit]:
    """The rows of these kernels as they come."""
    with Helpers(workers) as pool:
        jobs = [
            pool.submit(compile_and_read, shape, config, target, arch) for shape, config in wanted
        ]
        for job in as_completed(jobs):
            yield job.result()
