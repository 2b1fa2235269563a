"""Memory order, proven in the emitted code: release before the flag, acquire at the poll, both at
system scope; 16-byte accesses.

Compiled for GPUs that are not here. The checkers read opcodes, control flow and the source line of
each instruction; the same checkers must refuse kernels with a weaker scope, a plain poll, or waves
that do not drain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from assembly import (
    ATTENTION,
    GEMM,
    LOADS_OF_A,
    SHARDS,
    Assembly,
    assemble,
    early_loads,
    is_hip,
    line_of,
    narrow,
    proxy_faults,
    signal_faults,
    ttgir,
    wait_faults,
)
from mutant import Change, mutant, rebuilt

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.host import source
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm import copy_engine
from tftune.kernels.comm.symmetric import flag, signal, wait
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.runtime.compile import KernelSource

CDNA = ("gfx942", "gfx950")
ALL = (*CDNA, "sm_90")
ARCHES = ("gfx942", pytest.param("gfx950", marks=pytest.mark.thorough), "sm_90")
FUSED = ("pull", "staged", "push")
"""Those whose kernels signal, too; `push_ce` waits only."""
SHAPES = {
    "small": AllGatherGemm(16, 3584, 8192, 8, b_layout="nk"),
    "large": AllGatherGemm(4096, 3584, 8192, 8, shard="m"),
}


@triton.jit
def publish(data, control, epoch, ARCH: tl.constexpr):
    """Store a block, then signal."""
    tl.store(data + tl.arange(0, 1024), epoch)
    signal(flag(control, 1, 2), epoch, ARCH)


@triton.jit
def consume(data, result, control, epoch):
    """Wait, then load a block."""
    wait(flag(control, 1, 2), epoch)
    offsets = tl.arange(0, 1024)
    tl.store(result + offsets, tl.load(data + offsets))


def backend(arch: str) -> str:
    return "hip" if is_hip(arch) else "cuda"


def default_source(variant: str, size: str, arch: str) -> KernelSource:
    chip = MI300X if is_hip(arch) else H200
    config = next(c for c in SPACE.defaults(SHAPES[size], chip) if c.variant == variant)
    return source(SHAPES[size], SPACE.complete(config), backend(arch))


def changed_push(folder: Path, arch: str, change: Change) -> Assembly:
    """The default push, after a change to its sources."""
    kernel = mutant(folder, "push", (change,))
    return assemble(replace(default_source("push", "small", arch), kernel=kernel), arch)


@cache
def default(variant: str, size: str, arch: str) -> Assembly:
    return assemble(default_source(variant, size, arch), arch)


@pytest.mark.parametrize("arch", ALL)
def test_signal_releases_at_system_scope(arch: str) -> None:
    types = {"data": "*i32", "control": "i64", "epoch": "i32"}
    kernel = KernelSource(publish, types, {"ARCH": backend(arch)}, ("data",), {})
    code = assemble(kernel, arch)
    assert signal_faults(code, is_hip(arch)) == []


@pytest.mark.parametrize("arch", ALL)
def test_wait_polls_with_an_acquire_at_system_scope(arch: str) -> None:
    types = {"data": "*i32", "result": "*i32", "control": "i64", "epoch": "i32"}
    code = assemble(KernelSource(consume, types, {}, ("data", "result"), {}), arch)
    assert wait_faults(code, is_hip(arch)) == []


@pytest.mark.parametrize("size", SHAPES)
@pytest.mark.parametrize("variant", FUSED)
@pytest.mark.parametrize("arch", ARCHES)
def test_every_variant_keeps_the_order_and_moves_16_bytes(
    arch: str, variant: str, size: str
) -> None:
    """The copy loop's loads and stores, and the loads of A, which in `pull` are remote."""
    code, hip = default(variant, size, arch), is_hip(arch)
    assert signal_faults(code, hip) + wait_faults(code, hip) == []
    lines = [line_of(SHARDS, "tl.store(to_ptrs")]
    # A descriptor's load is one instruction for the whole tile.
    if "a_desc" not in default_source(variant, size, arch).types:
        lines.append(line_of(GEMM, LOADS_OF_A[0]))
    assert narrow(code, hip, *lines) == []


@pytest.mark.parametrize("arch", ARCHES)
def test_what_waits_for_copies_keeps_the_order(arch: str) -> None:
    """push_ce's kernel, what meets before an epoch is skipped, and what waits for a chunk before
    the library's GEMM."""
    assert wait_faults(default("push_ce", "large", arch), is_hip(arch)) == []
    assert early_loads(ttgir(default_source("push_ce", "large", arch), arch)) == []
    types = dict(control="i64", control_bases="*i64", staged="i64", parity="i32", rank="i32")
    start = KernelSource(copy_engine.start, types, {"WORLD": 4}, ("control",), {"num_warps": 1})
    for kernel in (start, arrive_source(copy_engine.arrive)):
        assert wait_faults(assemble(kernel, arch), is_hip(arch)) == []


def arrive_source(arrive: Any) -> KernelSource:
    """What waits for one flag at a time, by `symmetric.wait`, and does nothing else."""
    types = {"control": "i64", "slot": "i32", "last": "i32", "rank": "i32"}
    return KernelSource(arrive, types, {"WORLD": 4}, ("control",), {"num_warps": 1})


ONE_FLAG = "tl.atomic_add(word(address), 0, "
WEAK_WAITS = {
    "acquire for one GPU": f'{ONE_FLAG}sem="acquire", scope="gpu")',
    "no acquire": f'{ONE_FLAG}sem="relaxed", scope="sys")',
    "volatile poll": "tl.load(word(address), volatile=True)",
}


@pytest.mark.parametrize("name", WEAK_WAITS)
@pytest.mark.parametrize("arch", ARCHES)
def test_a_weak_wait_for_one_flag_is_refused(tmp_path: Path, arch: str, name: str) -> None:
    change = ("symmetric", f"{ONE_FLAG}{ACQUIRE})", WEAK_WAITS[name])
    weak = rebuilt(tmp_path, "bsp_chunked", (change,)).arrive
    assert wait_faults(assemble(arrive_source(weak), arch), is_hip(arch)) != []


def test_narrow_accesses_are_seen(tmp_path: Path) -> None:
    aligned = "return tl.multiple_of(result, 16) if COLUMNS % 8 == 0 else result"
    change = ("shards", aligned, "return result")
    for arch in ARCHES[::2]:
        code = changed_push(tmp_path, arch, change)
        assert narrow(code, is_hip(arch), line_of(SHARDS, "tl.store(to_ptrs"))


ONE_STEP = Config(
    "push", block_m=64, block_n=64, block_k=64, group_m=1, num_warps=4, num_stages=2, k_per_flag=256
)
"""A loop over K of one step: Triton folds it, and would pipeline the loop around it, which holds
the wait."""


def one_step(variant: str, arch: str) -> KernelSource:
    loads = {"loads": "descriptor"} if variant != "pull" and not is_hip(arch) else {}
    config = SPACE.complete(Config.from_dict(ONE_STEP.to_dict() | {"variant": variant} | loads))
    return source(AllGatherGemm(256, 3584, 512, 8), config, backend(arch))


@pytest.mark.parametrize("variant", FUSED)
@pytest.mark.parametrize("arch", ARCHES)
def test_no_load_passes_its_wait(arch: str, variant: str) -> None:
    kernels = [one_step(variant, arch), *(default_source(variant, size, arch) for size in SHAPES)]
    assert [early_loads(ttgir(kernel, arch)) for kernel in kernels] == [[], [], []]


@pytest.mark.parametrize("variant", ["staged", "push"])
def test_descriptors_see_what_a_wait_has_seen(variant: str) -> None:
    assert proxy_faults(default(variant, "large", "sm_90"), hip=False) == []


@pytest.mark.parametrize("arch", ARCHES)
def test_a_load_that_passes_its_wait_is_seen(tmp_path: Path, arch: str) -> None:
    early = (
        "acc = multiply(acc, own + rows * 2, b_ptr, 0, tile.BLOCK_K, cols, False, "
        "problem, tile, ARCH)"
    )
    change = ("gemm", "    step = part\n", f"    {early}\n    step = part\n")
    kernel = replace(one_step("pull", arch), kernel=mutant(tmp_path, "pull", (change,)))
    assert early_loads(ttgir(kernel, arch))


Faults = Callable[[Assembly, bool], list[str]]
PUBLISH, RELEASED, ACQUIRE = (
    "tl.atomic_xchg(word(address), epoch, ",
    'sem="release", scope="sys"',
    'sem="acquire", scope="sys"',
)
POLL = f"tl.atomic_add(flags, 0, mask=wanted, {ACQUIRE})"
DRAIN = '"s_waitcnt vmcnt(0)\\nbuffer_wbl2 sc0 sc1\\ns_waitcnt vmcnt(0)\\n'
WEAK_RELEASE = 'sem="release", scope="gpu"'
WEAK_ACQUIRE = 'sem="acquire", scope="gpu"'
MUTANTS: dict[str, tuple[str, str, str, Faults, tuple[str, ...]]] = {
    "release for one GPU": (
        "symmetric", PUBLISH + RELEASED, PUBLISH + WEAK_RELEASE, signal_faults, ALL,
    ),
    "no release": (
        "symmetric", PUBLISH + RELEASED, PUBLISH + 'sem="relaxed", scope="sys"', signal_faults, ALL,
    ),
    "acquire for one GPU": ("gemm", ACQUIRE, WEAK_ACQUIRE, wait_faults, ALL),
    "volatile poll": (
        "gemm", POLL, "tl.load(flags, mask=wanted, other=0, volatile=True)", wait_faults, ALL,
    ),
    "no fence for descriptors": (
        "gemm", "see_arrivals(epoch, ARCH)", "pass", proxy_faults, ("sm_90",),
    ),
    "waves not drained": ("symmetric", DRAIN, '"', signal_faults, CDNA),
    "write-back not awaited": (
        "symmetric", DRAIN, '"s_waitcnt vmcnt(0)\\n', signal_faults, CDNA,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        pytest.param(name, arch, marks=[pytest.mark.thorough] if arch == "gfx950" else [])
        for name, (*_, arches) in MUTANTS.items()
        for arch in arches
    ],
)
def test_mutants_are_refused(tmp_path: Path, name: str, arch: str) -> None:
    *change, faults, _ = MUTANTS[name]
    assert faults(changed_push(tmp_path, arch, tuple(change)), is_hip(arch)) != []


DECODE = FlashDecode(1, 64, 8, 128, 8192, 8)
SIGNALS = {
    "fused": "combine",
    "fused_heads": "combine",
    "gather": "exchange",
    "persistent": "decode",
}
"""A kernel of each variant of flash_decode that sets flags: one for each piece, or the last of
several."""
WAITS = {"fused_heads": "merge", "persistent": "decode"}


def decode_source(
    variant: str, kernel: str, arch: str, folder: Path | None = None, change: Change | None = None
) -> KernelSource:
    """One of the kernels of a variant's default config, or the same after a change to its
    sources."""
    chip, op = MI300X if is_hip(arch) else H200, operation(DECODE.op)
    config = next(c for c in op.space.defaults(DECODE, chip) if c.variant == variant)
    sources = op.module("host").kernel_sources(DECODE, config, chip)
    number = [source.kernel.fn.__name__ for source in sources].index(kernel)
    if change is None or folder is None:
        return sources[number]
    launches = mutant(folder, variant, (change,), DECODE.op)(config["kv_splits"])
    return replace(sources[number], kernel=launches[number].kernel)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_decode_keeps_the_order(arch: str) -> None:
    for faults, kernels in ((signal_faults, SIGNALS), (wait_faults, WAITS)):
        for variant, kernel in kernels.items():
            code = assemble(decode_source(variant, kernel, arch), arch)
            assert faults(code, is_hip(arch)) == [], variant


@pytest.mark.parametrize("arch", ARCHES)
def test_a_decode_moves_16_bytes_at_a_time_and_none_before_its_wait(arch: str) -> None:
    kernel = decode_source("persistent", "decode", arch)
    texts = "k = tl.load(k_ptr", "v = tl.load(v_ptr", "everywhere, mask="
    lines = (line_of(ATTENTION, text) for text in texts)
    assert narrow(assemble(kernel, arch), is_hip(arch), *lines) == []
    merge = ttgir(decode_source("fused_heads", "merge", arch), arch)
    assert early_loads(merge, ATTENTION, ("partial = tl.load(o_ptrs",)) == []


DECODE_MUTANTS: dict[str, tuple[str, str, str, Faults]] = {
    "release for one GPU": ("signal_all", RELEASED, WEAK_RELEASE, signal_faults),
    "acquire for one GPU": ("wait_all", ACQUIRE, WEAK_ACQUIRE, wait_faults),
    "signals before the stores": (
        "signal_all", "    drain(epoch, ARCH)\n    values", "    values", signal_faults,
    ),
}  # fmt: skip
"""Mutants of `persistent`, in symmetric.py."""


@pytest.mark.parametrize("name", DECODE_MUTANTS)
def test_mutants_of_a_decode_are_refused(tmp_path: Path, name: str) -> None:
    place, old, new, faults = DECODE_MUTANTS[name]
    change = f"symmetric:{place}", old, new
    for arch in ARCHES[::2]:
        kernel = decode_source("persistent", "decode", arch, tmp_path, change)
        assert faults(assemble(kernel, arch), is_hip(arch)) != [], arch
