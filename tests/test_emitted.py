"""The kernels of operations that reduce, and what peers read in place, as they are emitted for GPUs
that are not here: nothing spills, flags are released and acquired at system scope, 16 bytes move at
a time, and none of what peers send before its wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from assembly import (
    GEMM,
    LOADS_OF_A,
    SHARDS,
    Assembly,
    assemble,
    early_loads,
    is_hip,
    line_of,
    narrow,
    signal_faults,
    wait_faults,
)
from mutant import Change, mutant, rebuilt
from test_compile import spilled_bytes

from tftune import kernels
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.compile import KernelSource, gpu_target

KERNELS = Path(kernels.__path__[0])
REDUCE, MERGE = KERNELS / "device/gemm_reduce.py", KERNELS / "device/merge.py"
PEERS, SHARE = KERNELS / "device/reduce.py", KERNELS / "gemm_all_reduce/variants/push_ce.py"
ONE, TWO = (KERNELS / f"all_reduce/variants/{name}.py" for name in ("one_shot", "two_shot"))
SUMS = "m=2048,n=8192,world=2"
SCATTER, ROWS = "m=4096,n=8192,k=28672,world=8", "m=16,n=8192,k=28672,world=8"
GATHERED = "m=4096,n=3584,k=8192,world=8,dtype=bf16,shard=m,b_layout=nk,operands=heap"
HEAP = "n=8192,world=8,operands=heap"
MERGED = "batch=64,heads=64,head_dim=128,world=8"
FORWARDED = "values = tl.load(row_pointers(outbox"


class Emitted(NamedTuple):
    """The kernel of a variant that waits."""

    op: str
    variant: str
    shape: str
    file: Path
    """Where the lines below are."""
    early: tuple[str, ...]
    """Loads of what peers send."""
    wide: tuple[str, ...]
    """Accesses of 16 bytes each, by `wide_at` where that is another shape."""
    wide_at: str = ""
    config: Config | None = None
    """None: the default."""


SLOTS = ("tl.load(pointers, mask=inside, other=0.0)",), ("total += tl.cast(tl.load(pointers",)
SENT = ("own = tl.cast(tl.load(c_ptr", "part = tl.load(theirs", "tl.store(c_ptr + places")
RELAYED = (*SLOTS[0], FORWARDED), (*SLOTS[1], FORWARDED, "tl.store(row_pointers(base, to_rows")
MANY = "m=512,n=8192,k=28672,world=8"
"""So many rows that a thread has 16 bytes of each slice that is added up."""
LOAD = "o = tl.load(o_at[:, None] + dims[None, :], mask=known"
ADDED = ("total += tl.cast(tl.load(x_at",)
IN_PLACE = [
    Emitted(op, variant, shape, file, loads, loads)
    for op, variant, shape, file, loads in (
        ("all_gather_gemm", "pull", GATHERED, GEMM, LOADS_OF_A[:1]),
        ("all_gather_gemm", "staged", GATHERED, SHARDS, ("tl.store(to_ptrs, tl.load(from_ptrs",)),
        ("all_reduce", "one_shot", f"m=128,{HEAP}", ONE, ADDED),
        ("all_reduce", "one_shot", f"m=96,{HEAP},norm=rms", ONE, ADDED),
        ("all_reduce", "two_shot", f"m=128,{HEAP}", TWO, ("part = tl.load(at +",)),
    )
]
"""Variants that load peers' operands where they lie."""
EMITTED = [
    Emitted("all_reduce", "one_shot", SUMS, ONE, ("tl.load(x_at +",),
            ("own = tl.load(", "tl.store(elements(its_inbox", "total += tl.cast(tl.load(x_at")),
    Emitted("all_reduce", "two_shot", SUMS, TWO, ("part = tl.load(at +",),
            ("part = tl.load(x_ptr", "tl.store(its_inbox", "part = tl.load(at",
             "y = tl.load(results_ptr + places, mask=there")),
    Emitted("gemm_reduce_scatter", "push", SCATTER, REDUCE, *SLOTS),
    Emitted("gemm_reduce_scatter", "pull", SCATTER, REDUCE, *SLOTS),
    Emitted("gemm_reduce_scatter", "relay", SCATTER, REDUCE, *RELAYED),
    Emitted("gemm_reduce_scatter", "push_ce", SCATTER, REDUCE, *SLOTS),
    Emitted("gemm_reduce_scatter", "vendor_ce", SCATTER, PEERS, ("part = tl.load(theirs",), SENT),
    Emitted("gemm_all_reduce", "one_shot", ROWS, REDUCE, *SLOTS, MANY),
    Emitted("gemm_all_reduce", "two_shot", ROWS, REDUCE, *SLOTS, MANY),
    Emitted("gemm_all_reduce", "push_ce", SCATTER, PEERS, ("part = tl.load(theirs",), SENT[:2]),
    Emitted("gemm_all_reduce", "push_ce", SCATTER, SHARE, ("tl.load(arrived + places",),
            ("tl.store(elements(there, c_ptr)", "tl.store(c_ptr + places, tl.load(arrived")),
    *IN_PLACE,
    Emitted("merge_attention", "one_shot", MERGED, MERGE, (LOAD,),
            ("o = tl.load(own_at[:, None]", "tl.store(o_at[:, None] +", LOAD),
            config=Config("one_shot", rows_per_piece=16, num_warps=4)),
]  # fmt: skip
COPIED = ("push_ce", "vendor_ce")
NORM, ROLES = "m=64,n=8192,world=8,norm=rms", "m=3000,n=8192,world=8,norm=rms"
ORDERED = [
    *EMITTED, *(one._replace(shape=NORM) for one in EMITTED[:2]),
    Emitted("all_reduce", "two_shot", ROLES, TWO,
            ("part = tl.load(at +", "y = tl.load(results_ptr + places, mask=within", "next_y = "),
            ("y = tl.load(results_ptr + places, mask=within", "next_y = ", "next_residual = "),
            config=Config("two_shot", roles=2, rows_per_flag=4, num_warps=8)),
]  # fmt: skip
ARCHES = ("sm_90", "gfx942")
NO_NEXT_ARCH = ("all_reduce", "merge_attention")
"""Operations that `make thorough` does not compile for gfx950."""


def on_each(calls: Iterable[Any]) -> list[Any]:
    """Each call, which begins with its operation's name, with each architecture."""
    return [
        pytest.param(call, arch, id=f"{call[0]}-{call[1]}-{arch}", marks=marks)
        for call in calls
        for arch, marks in (*((known, ()) for known in ARCHES), ("gfx950", pytest.mark.thorough))
        if arch in ARCHES or call[0] not in NO_NEXT_ARCH
    ]


def chip_of(arch: str) -> Chip:
    return MI300X if is_hip(arch) else H200


@cache
def source(op: str, variant: str, words: str, config: Config | None, arch: str) -> KernelSource:
    """The last kernel of a call: the one that waits."""
    known, chip = operation(op), chip_of(arch)
    shape = known.shape.parse(words)
    config = config or known.space.concrete(shape, Config(variant), chip)
    found: KernelSource = known.module("host").kernel_sources(shape, config, chip)[-1]
    return found


def source_of(one: Emitted, arch: str) -> KernelSource:
    return source(one.op, one.variant, one.shape, one.config, arch)


@cache
def code_of(one: Emitted, arch: str) -> Assembly:
    return assemble(source_of(one, arch), arch)


@pytest.mark.parametrize(("one", "arch"), on_each(ORDERED))
def test_flags_are_released_and_acquired_at_system_scope(one: Emitted, arch: str) -> None:
    code = code_of(one, arch)
    assert wait_faults(code, is_hip(arch)) == []
    if one.file == SHARE or one.variant not in COPIED:  # whose flags are copies
        assert signal_faults(code, is_hip(arch)) == []


@pytest.mark.parametrize(("one", "arch"), on_each(EMITTED))
def test_data_move_16_bytes_at_a_time(one: Emitted, arch: str) -> None:
    code = code_of(one._replace(shape=one.wide_at or one.shape), arch)
    assert narrow(code, is_hip(arch), *(line_of(one.file, text) for text in one.wide)) == []


@pytest.mark.parametrize(("one", "arch"), on_each(EMITTED))
def test_nothing_that_peers_send_is_loaded_before_its_wait(one: Emitted, arch: str) -> None:
    text = source_of(one, arch).compile(gpu_target(arch)).asm["ttgir"]
    assert early_loads(text, one.file, one.early) == []


@pytest.mark.parametrize("arch", ARCHES)
def test_rows_are_normalised_behind_the_wait_for_their_sums(arch: str) -> None:
    one = ORDERED[-1]
    text = source_of(one, arch).compile(gpu_target(arch)).asm["ttgir"]
    assert early_loads(text, one.file, one.early[1:], waits=2) == []
    code = code_of(one, arch)
    assert narrow(code, is_hip(arch), *(line_of(one.file, text) for text in one.wide)) == []


@pytest.mark.parametrize(
    ("op", "shape"),
    [("all_reduce", "m=1,n=16384,world=8,norm=rms"), ("gemm_all_reduce", ROWS)],
)
def test_words_are_stored_and_polled_two_at_a_time(op: str, shape: str) -> None:
    """On NVIDIA alone: a word of 64 bits whole, past the caches."""
    text = source(op, "one_shot_ll", shape, None, "sm_90").compile(gpu_target("sm_90")).asm["ptx"]
    assert "st.global.wt.v2.b64" in text and "ld.volatile.global.v2.b64" in text


LAMPORT = Emitted("all_reduce", "one_shot_lamport", "m=64,n=8192,world=8,norm=rms", ONE, (), ())


def lamport_faults(kernel: KernelSource) -> list[str]:
    """A thread polls words alone: none may be cleared before all threads have read theirs."""
    text = kernel.compile(gpu_target("sm_90")).asm["ptx"]
    polled = text.rindex("bra again")
    cleared = text.index("st.global.wt", polled)
    return [] if "bar.sync" in text[polled:cleared] else ["words are cleared before all are read"]


def test_words_of_data_alone_are_stored_16_bytes_at_a_time_and_cleared_when_all_are_read(
    tmp_path: Path,
) -> None:
    kernel = source_of(LAMPORT, "sm_90")
    text = kernel.compile(gpu_target("sm_90")).asm["ptx"]
    assert "st.global.wt.v4.b32" in text and "st.global.wt.b32" not in text
    assert text.count("bra again") * 8 == text.count("ld.volatile.global.b32") > 0
    assert lamport_faults(kernel) == []
    hasty: Change = ("lamport", "tl.debug_barrier()", "pass")
    assert lamport_faults(
        replace(kernel, kernel=mutant(tmp_path, LAMPORT.variant, (hasty,), LAMPORT.op))
    )


DECODED = "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=8192,world=8"
PAGED = (
    "batch=16,q_heads=96,kv_heads=12,head_dim=128,kv_len=4096,world=8,"
    "dtype=bf16,output=heads,page_size=16"
)
WIDE = "batch=1,q_heads=16,kv_heads=16,head_dim=256,kv_len=1024,world=4"
SPILLS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("all_gather_gemm", "m=16,n=3584,k=8192,world=8,b_layout=nk"): (8, 8),
    ("all_gather_gemm", "m=64,n=3584,k=8192,world=8,dtype=bf16,shard=m"): (8, 8),
    ("all_gather_gemm", "m=8192,n=3584,k=8192,world=8,dtype=bf16"): (8, 8),
    ("all_gather_gemm", "m=4096,n=3584,k=8192,world=8,shard=m"): (8, 8),
    ("flash_decode", DECODED): (40, 0),
    ("flash_decode", PAGED): (40, 0, "persistent"),
    ("flash_decode", WIDE): (40, 0, "persistent"),
    ("flash_prefill", "batch=1,q_heads=32,kv_heads=8,head_dim=128,seq_len=8192"): (0, 0),
    ("all_reduce", "m=1,n=8192,world=8"): (8, 8),
    ("all_reduce", "m=40,n=7168,world=4,dtype=fp16"): (8, 8),
    ("all_reduce", SUMS): (8, 8),
    ("all_reduce", "m=1,n=16384,world=8,norm=rms"): (8, 8),
    ("all_reduce", NORM): (8, 8),
    ("all_reduce", ROLES): (8, 8),
    ("all_reduce", "m=512,n=16384,world=8,norm=rms"): (8, 8),
    ("gemm_reduce_scatter", SCATTER): (48, 0),
    ("gemm_all_reduce", ROWS): (48, 0),
    ("merge_attention", MERGED): (0, 0),
    ("merge_attention", "batch=1,heads=64,head_dim=128,world=8,output=all"): (0, 0),
    ("merge_attention", "batch=8,heads=16,head_dim=256,world=8"): (0, 0),
}
"""Bytes of the stack, on NVIDIA and on AMD: ptxas keeps addresses there, one of one_shot_ll with 16
warps, and those of peers, which it reads before a tile or a loop over tokens and uses behind it;
and two scalars of a small tile of a GEMM, outside the loop over K. Then the variants that are
compiled, where not all are."""
SEPARATE = {
    "all_gather_gemm": {"bsp", "bsp_chunked"},
    "flash_decode": {"bsp", "gather", "no_wait", "fused", "fused_heads"},
    "flash_prefill": {"flash"},
}
"""Variants whose programs need not run at once; else those of the library and of copies."""


@pytest.mark.parametrize(("call", "arch"), on_each(SPILLS))
def test_defaults_compile_without_spills(tmp_path: Path, call: tuple[str, str], arch: str) -> None:
    (op, words), chip, compiled = call, chip_of(arch), 0
    known, stack_bytes, only = operation(op), SPILLS[call][:2], SPILLS[call][2:]
    shape = known.shape.parse(words)
    for config in known.space.defaults(shape, chip):
        if only and config.variant not in only:
            continue
        for kernel in known.module("host").kernel_sources(shape, config, chip):
            found = kernel.compile(gpu_target(arch))
            assert spilled_bytes(found, arch, tmp_path) <= stack_bytes[is_hip(arch)], config
            assert found.metadata.shared <= chip.shared_bytes
            separate = config.variant in SEPARATE.get(op, ("bsp", *COPIED))
            resident = not separate or kernel.kernel.__name__ == "share"
            assert found.metadata.launch_cooperative_grid == resident
            compiled += 1
    assert compiled >= (1 if op.startswith("flash") else 2)


RELEASE = 'sem="release", scope="sys"'
WEAKER: list[tuple[list[Emitted], Callable[[Assembly, bool], list[str]], Change]] = [
    (EMITTED[:2], signal_faults, ("symmetric:signal_all", RELEASE, 'sem="release", scope="gpu"')),
    (EMITTED[:2], wait_faults,
     ("symmetric:wait_all", 'sem="acquire", scope="sys"', 'sem="acquire", scope="gpu"')),
    (EMITTED[:2], signal_faults,
     ("symmetric:signal_all", "    drain(epoch, ARCH)\n    values", "    values")),
    (EMITTED[-1:], signal_faults, ("symmetric", f"word(address), epoch, {RELEASE}",
                                   'word(address), epoch, sem="release", scope="gpu"')),
]  # fmt: skip


@pytest.mark.parametrize(("emitted", "faults", "change"), WEAKER)
def test_weaker_orders_are_refused(
    tmp_path: Path,
    emitted: list[Emitted],
    faults: Callable[[Assembly, bool], list[str]],
    change: Change,
) -> None:
    for one in emitted:
        for arch in ARCHES:
            weak = mutant(tmp_path, one.variant, (change,), one.op)
            changed = replace(source_of(one, arch), kernel=weak)
            assert faults(assemble(changed, arch), is_hip(arch)) != [], (one.variant, arch)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_relay_that_does_not_wait_is_seen(tmp_path: Path, arch: str) -> None:
    """The interpreter cannot show it: there the last program forwards what all others computed."""
    change = ("gemm_reduce", "wait(flag(control, rank, READY_FLAGS + item), epoch)", "pass")
    hasty = rebuilt(tmp_path, "relay", (change,), "gemm_reduce_scatter")
    kernel = replace(source_of(EMITTED[4], arch), kernel=hasty.relay)
    text = kernel.compile(gpu_target(arch)).asm["ttgir"]
    changed = next(tmp_path.rglob("gemm_reduce.py"))
    assert early_loads(text, changed, (FORWARDED,)) != []
