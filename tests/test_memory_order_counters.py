"""Memory order, in the emitted code, of what one GPU shares and of the meeting of all ranks.

Programs of one launch share two counters: of those that have left the call (`symmetric.finish`),
and of the parts of a tile (`gemm.add_parts`). Each is a release and an acquire at GPU scope.
"""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from assembly import Assembly, assemble, is_hip, signal_faults, wait_faults

from tftune.kernels.comm.symmetric import barrier, finish
from tftune.kernels.device.gemm import add_parts
from tftune.kernels.device.in_place import count_reader, finish_read
from tftune.kernels.runtime.compile import KernelSource

ARCHES = ("gfx942", "gfx950", "sm_90")


@triton.jit
def leave(control, epoch):
    finish(control, epoch)


@triton.jit
def add(
    a_ptr, c_ptr, parts_ptr, arrivals_ptr, M, part,
    N: tl.constexpr, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """One part of one square tile."""
    places = tl.arange(0, BLOCK)
    acc = tl.load(a_ptr + places[:, None] * BLOCK + places[None, :])
    add_parts(
        c_ptr, parts_ptr, arrivals_ptr, acc, 0, part, 0, places, M, N, SPLIT_K, BLOCK, BLOCK, ARCH
    )


def leaving(arch: str) -> Assembly:
    types = {"control": "i64", "epoch": "i32"}
    return assemble(KernelSource(leave, types, {}, ("control",), {"num_warps": 4}), arch)


def adding(arch: str) -> Assembly:
    pointers = {"a_ptr": "*fp32", "c_ptr": "*fp16", "parts_ptr": "*fp32", "arrivals_ptr": "*i32"}
    constants = {"N": 64, "SPLIT_K": 2, "BLOCK": 64, "ARCH": "hip" if is_hip(arch) else "cuda"}
    types = pointers | {"M": "i32", "part": "i32"}
    return assemble(KernelSource(add, types, constants, tuple(pointers), {"num_warps": 4}), arch)


def meeting(arch: str) -> Assembly:
    types = {"control": "i64", "control_bases": "*i64", "rank": "i32"}
    aligned = "control", "control_bases"
    return assemble(KernelSource(barrier, types, {"WORLD": 4}, aligned, {"num_warps": 1}), arch)


@triton.jit
def leave_operand(
    control, control_bases, epoch, rank,
    ALL_READ: tl.constexpr, WORLD: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """What a program does that has read its last."""
    count_reader(control, control_bases, 16, epoch, rank, WORLD, ARCH)
    finish_read(control, control_bases, epoch, rank, ALL_READ, WORLD, ARCH)


def leaving_operand(arch: str, all_read: bool) -> Assembly:
    types = {"control": "i64", "control_bases": "*i64", "epoch": "i32", "rank": "i32"}
    backend = "hip" if is_hip(arch) else "cuda"
    constants = {"ALL_READ": all_read, "WORLD": 4, "ARCH": backend}
    aligned = "control", "control_bases"
    return assemble(KernelSource(leave_operand, types, constants, aligned, {"num_warps": 4}), arch)


def additions(code: Assembly, hip: bool) -> list[int]:
    return code.find(r"_atomic_(add|inc)" if hip else r"\batom\.\S*add")


def released(code: Assembly, index: int, hip: bool) -> bool:
    """Whether what this program did before is seen by whoever reads the counter."""
    if not hip:
        return {"acq_rel", "gpu"} <= code.instructions[index].words
    return "buffer_wbl2 sc1" in [i.text for i in code.instructions[index - 2 : index]]


def acquired(code: Assembly, index: int, hip: bool) -> bool:
    """Whether this program sees what those did that counted before."""
    if not hip:
        words = code.instructions[index].words
        return "gpu" in words and bool({"acq_rel", "acquire"} & words)
    after = [i.text for i in code.instructions[index + 1 : index + 3]]
    return after == ["s_waitcnt vmcnt(0)", "buffer_inv sc1"]


def behind_a_barrier(code: Assembly, index: int, hip: bool) -> bool:
    """Whether all warps have arrived, and none has stored since."""
    since = code.before(index, r"^s_barrier" if hip else r"^bar\.sync|^barrier\.sync")
    return since is not None and not any(re.search(r"_store|st\.global", i.text) for i in since)


@pytest.mark.parametrize("arch", ARCHES)
def test_the_last_program_to_leave_comes_behind_all_others(arch: str) -> None:
    """It sets back counters that the others read until they left."""
    code, hip = leaving(arch), is_hip(arch)
    (counted,) = additions(code, hip)
    assert behind_a_barrier(code, counted, hip)
    assert released(code, counted, hip) and acquired(code, counted, hip)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_part_is_in_memory_before_it_is_counted(arch: str) -> None:
    code, hip = adding(arch), is_hip(arch)
    counted = additions(code, hip)[0]
    assert behind_a_barrier(code, counted, hip) and released(code, counted, hip)
    if hip:  # a bare s_barrier waits for no store: each wave must see its own leave
        until_barrier = code.instructions[: code.find(r"^s_barrier")[-1]]
        leaves = re.compile(r"(global|buffer|flat)_store")
        stores = [at for at, i in enumerate(until_barrier) if leaves.search(i.text)]
        drained = [i.text for i in until_barrier[stores[-1] + 1 :]]
        assert "s_waitcnt vmcnt(0)" in drained and "buffer_wbl2 sc0 sc1" in drained


@pytest.mark.parametrize("arch", ARCHES)
def test_parts_of_others_are_read_once_their_count_is_acquired(arch: str) -> None:
    code, hip = adding(arch), is_hip(arch)
    on_hip, on_cuda = r"_(load_dword|atomic_\w+) .*\bsc1$", r"\batom\.\S*(add|or)|\bld\.\S*acquire"
    found = code.find(on_hip if hip else on_cuda)
    polls = [at for at in found if at > additions(code, hip)[0] and code.polled(at)]
    assert polls and all(acquired(code, at, hip) for at in polls)


@pytest.mark.parametrize("arch", ARCHES)
def test_ranks_that_meet_release_and_acquire_at_system_scope(arch: str) -> None:
    code, hip = meeting(arch), is_hip(arch)
    swaps = code.find(r"atomic_swap" if hip else r"\batom\.\S*exch")
    assert len(swaps) == 3 and wait_faults(code, hip) == []
    for at in swaps:
        if hip:
            assert "sc1" in code.instructions[at].text.split()
            assert "buffer_wbl2 sc0 sc1" in [i.text for i in code.instructions[at - 2 : at]]
        else:
            assert {"release", "sys"} <= code.instructions[at].words


@pytest.mark.parametrize("all_read", [True, False])
@pytest.mark.parametrize("arch", ARCHES)
def test_who_says_that_all_was_read_comes_behind_all_others(arch: str, all_read: bool) -> None:
    code, hip = leaving_operand(arch, all_read), is_hip(arch)
    counted, left = additions(code, hip)[:2]
    for at in (counted, left):
        assert behind_a_barrier(code, at, hip)
        assert released(code, at, hip) and acquired(code, at, hip)
    assert signal_faults(code, hip) + wait_faults(code, hip) == []
