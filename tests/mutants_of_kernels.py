"""Planted faults of kernels, on the host and on the device."""

from __future__ import annotations

from planted_fault import Mutant

ORDER = "tests/test_memory_order_counters.py"
COPIES = "tests/test_copy_engine.py"
FINISH = f"{ORDER}::test_the_last_program_to_leave_comes_behind_all_others"
PARTS = f"{ORDER}::test_a_part_is_in_memory_before_it_is_counted"
MEETING = f"{ORDER}::test_ranks_that_meet_release_and_acquire_at_system_scope"
STREAMS = f"{COPIES}::test_side_streams_follow_the_epoch_and_the_call_ends_behind_their_copies"

KERNEL_MUTANTS: tuple[Mutant, ...] = (
    # kernels: host side
    Mutant(
        "operands aligned to 8 bytes are launched",
        "kernels/runtime/operands.py",
        "& 15 == 0",
        "& 7 == 0",
        "tests/test_operands.py::test_a_shape_that_ran_before_is_still_checked",
    ),
    Mutant(
        "operands on another device are launched",
        "kernels/runtime/operands.py",
        "        and a.get_device() == b.get_device() == workspace.ordinal\n",
        "",
        "tests/test_operands.py::test_a_shape_that_ran_before_is_still_checked",
    ),
    Mutant(
        "a call ends before its copies",
        "kernels/comm/copy_engine.py",
        '''when the copies have ended."""
        for stream in self._streams:
            if stream is not None:
                _main(stream).wait_stream(stream)
''',
        '''when the copies have ended."""
        for stream in self._streams:
            if stream is not None:
                pass
''',
        STREAMS,
    ),
    Mutant(
        "copies start before the epoch of their call is known",
        "kernels/comm/copy_engine.py",
        "                stream.wait_stream(_main(stream))\n",
        "                pass\n",
        STREAMS,
    ),
    Mutant(
        "the flag goes before its piece",
        "kernels/comm/copy_engine.py",
        "                self._runtime.copy(piece, target, shard + piece.source, stream)\n"
        "                self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)\n",
        "                self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)\n"
        "                self._runtime.copy(piece, target, shard + piece.source, stream)\n",
        f"{COPIES}::test_a_flag_is_copied_right_behind_its_piece_in_the_same_stream",
    ),
    # kernels: device side
    Mutant(
        "finish: counted without order",
        "kernels/comm/symmetric.py",
        'EXITS_OFFSET), 1, sem="acq_rel", scope="gpu")',
        'EXITS_OFFSET), 1, sem="relaxed", scope="gpu")',
        FINISH,
    ),
    Mutant(
        "finish: counted before all warps have arrived",
        "kernels/comm/symmetric.py",
        "    tl.debug_barrier()\n    left = ",
        "    left = ",
        FINISH,
    ),
    Mutant(
        "barrier: flags released for one GPU",
        "kernels/comm/symmetric.py",
        'arrival, epoch, sem="release", scope="sys")',
        'arrival, epoch, sem="release", scope="gpu")',
        MEETING,
    ),
    Mutant(
        "barrier: does not wait",
        "kernels/comm/symmetric.py",
        "        wait(control + BARRIER_FLAGS_OFFSET",
        "        _ = (control + BARRIER_FLAGS_OFFSET",
        MEETING,
    ),
    Mutant(
        "add_parts: waves do not drain (AMD)",
        "kernels/device/gemm.py",
        "    drain(part, ARCH)\n",
        "    tl.debug_barrier()\n",
        PARTS,
    ),
    Mutant(
        "add_parts: no barrier before the count",
        "kernels/device/gemm.py",
        "    drain(part, ARCH)\n",
        "",
        PARTS,
    ),
    Mutant(
        "add_parts: counted without order",
        "kernels/device/gemm.py",
        'arrivals_ptr + tile, 1, sem="acq_rel", scope="gpu")',
        'arrivals_ptr + tile, 1, sem="relaxed", scope="gpu")',
        PARTS,
    ),
    Mutant(
        "add_parts: parts of others read without acquire",
        "kernels/device/gemm.py",
        'arrivals_ptr + tile, 0, sem="acquire", scope="gpu")',
        'arrivals_ptr + tile, 0, sem="relaxed", scope="gpu")',
        f"{ORDER}::test_parts_of_others_are_read_once_their_count_is_acquired",
    ),
)
