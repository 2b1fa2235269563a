"""The exchange by copy engine: it stores a rank's pieces into every peer's inbox, each followed by
its flag, and no SM is given to it.

A captured copy has fixed addresses, so the host says which generation a call uses, in turn, and the
device makes the epoch agree. In stream order a call is:

1. `start`, one program. Where the next epoch would use the other generation, it meets all ranks and
skips that epoch, as if a call of
   no work stood there: once in a replay of an odd number of calls, or beside calls of other
   variants. Then it leaves the epoch in a word of this workspace, `staged`, which the flag copies
   read: a captured value would be the same in every replay.
2. The side streams part from the main stream, and copy piece after piece and its flag: `staged`
into flag[rank][slot] at the peer.
3. The main stream waits for the peers' flags on the device, computes, and `finish` advances the
epoch.
4. The side streams join the main one: only then can the next call's `start` write `staged` again,
or the caller the shard.

The rules of symmetric.py hold: a peer's copies of call e are behind its `start` of call e in stream
order, so behind the end of its call e-1, and every call hears from every peer. Where an epoch is
skipped, the meeting says that every peer's last call has ended: so the generation that it read may
be written again. Ranks must make, and capture, the same calls in the same order, as for a
collective.

Where a rank's pieces are computed one after another (`gemm_reduce_scatter`), `send_one` queues each
behind the kernel that made it, and the main stream joins before it waits for peers. Then no
kernel waits for what may stand behind it on its own GPU.

cudaMemcpyAsync between GPUs is run by copy engines; on ROCm hipMemcpyAsync by SDMA, which was not
tried.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    FLAGS_OFFSET,
    FLAGS_PER_SOURCE,
    advance,
    barrier,
    begin,
    finish,
    flag,
    generation_of,
    wait,
    word,
)
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.runtime import plan
from tftune.kernels.runtime.compile import KernelSource


@triton.jit(do_not_specialize=["parity", "rank"])
def start(control, control_bases, staged, parity, rank, WORLD: tl.constexpr):
    """One program, first in a call: make the epoch's generation the one that the copies go to, and
    leave the epoch for the flags."""
    epoch = begin(control)
    if generation_of(epoch) != parity:
        barrier(control, control_bases, rank, WORLD)
        advance(control, epoch)
        epoch += 2
    tl.store(word(staged), epoch)


@triton.jit(do_not_specialize=["slot", "last", "rank"])
def arrive(control, slot, last, rank, WORLD: tl.constexpr):
    """One program: return when every peer has set its flag of this slot; where it is the last one,
    leave the call."""
    epoch = begin(control)
    for step in range(1, WORLD):
        wait(flag(control, (rank + step) % WORLD, slot), epoch)
    if last == 1:
        finish(control, epoch)


def launcher(workspace: Workspace, kernel: Any, types: dict[str, str]) -> Callable[..., None]:
    """A call of a one-program kernel by its run-time arguments, compiled now."""
    source = KernelSource(kernel, types, {"WORLD": workspace.world}, ("control",), {"num_warps": 1})
    return plan.launcher(source, (1, 1, 1), tuple(types), {}, workspace.arch)


@dataclass(frozen=True)
class Piece:
    """What one copy moves: runs of a shard's bytes. `source`: where the first begins in the shard;
    `target`: in a peer's generation of the inbox; the pitches, where there are several, say how far
    apart they begin. Pieces are flagged in turn: slot 0, 1, ..."""

    source: int
    target: int
    run_bytes: int
    runs: int = 1
    source_pitch: int = 0
    target_pitch: int = 0


_WORD = Piece(0, 0, run_bytes=4)


class Runtime:
    """The few calls of the CUDA or HIP run time that torch does not have: copies by address, since
    a tensor of torch would start a context on its peer's GPU; copies of runs, which torch gives to
    a kernel; and streams of its own, since torch's come from a pool of 32, and a kernel that waits
    for copies behind it in the same stream waits for ever. Raises OSError where the run time is not
    loaded."""

    def __init__(self, arch: str) -> None:
        import torch

        self._prefix, file = (
            ("hip", "libamdhip64.so")
            if arch == "hip"
            else ("cuda", f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}")
        )
        self._library = ctypes.CDLL(file)
        address, size = ctypes.c_void_p, ctypes.c_size_t
        self._function("MemcpyAsync").argtypes = (address, address, size, ctypes.c_int, address)
        runs = address, size, address, size, size, size, ctypes.c_int, address
        self._function("Memcpy2DAsync").argtypes = runs

    def _function(self, name: str) -> Any:
        return getattr(self._library, self._prefix + name)

    def _call(self, name: str, *arguments: Any) -> None:
        if status := self._function(name)(*arguments):
            raise RuntimeError(f"{self._prefix}{name} returned {status}")

    def stream(self) -> Any:
        """A torch.cuda.Stream of the highest priority, so that it shares no hardware queue with one
        of the usual priority."""
        import torch

        handle = ctypes.c_void_p()
        self._call(
            "StreamCreateWithPriority", ctypes.byref(handle), _NON_BLOCKING, ctypes.c_int(_HIGHEST)
        )
        return torch.cuda.ExternalStream(handle.value)

    def using(self, stream: Any) -> AbstractContextManager[Any]:
        """What torch queues in here goes to this stream."""
        import torch

        return torch.cuda.stream(stream)

    def copy(self, piece: Piece, target: int, source: int, stream: Any) -> None:
        """Queue the copy of a piece from address to address."""
        if piece.runs == 1:
            self._call(
                "MemcpyAsync", target, source, piece.run_bytes, _BY_ADDRESS, stream.cuda_stream
            )
        else:
            size = piece.target_pitch, source, piece.source_pitch, piece.run_bytes, piece.runs
            self._call("Memcpy2DAsync", target, *size, _BY_ADDRESS, stream.cuda_stream)


class HostRuntime:
    """The same where ranks are emulated: a copy ends before it returns, and there are no
    streams."""

    def stream(self) -> None:
        return None

    def using(self, stream: None) -> AbstractContextManager[None]:
        return nullcontext()

    def copy(self, piece: Piece, target: int, source: int, stream: None) -> None:
        for run in range(piece.runs):
            from_at, to_at = source + run * piece.source_pitch, target + run * piece.target_pitch
            ctypes.memmove(to_at, from_at, piece.run_bytes)


_BY_ADDRESS = 4
"""cudaMemcpyDefault and hipMemcpyDefault: the addresses say where the memory is."""
_NON_BLOCKING = 1
"""cudaStreamNonBlocking and hipStreamNonBlocking: does not wait for the default stream."""
_HIGHEST = -100
"""Both run times take the highest priority that there is for one beyond it."""


class SideStreams:
    """Streams of a plan beside the one that it is called on; of emulated ranks there are none, and
    all is done at once."""

    def __init__(self, workspace: Workspace, count: int) -> None:
        emulated = workspace.arch == "interpreter"
        self.runtime = HostRuntime() if emulated else Runtime(workspace.arch)
        wanted = 1 if emulated else count
        workspace.streams.extend(
            self.runtime.stream() for _ in range(wanted - len(workspace.streams))
        )
        self.streams = workspace.streams[:wanted]

    @contextmanager
    def beside(self, number: int) -> Iterator[None]:
        """What torch queues in here follows, in one of the streams, all that the main one has."""
        stream = self.streams[number]
        if stream is not None:
            stream.wait_stream(_main(stream))
        with self.runtime.using(stream):
            yield

    def join(self) -> None:
        """The main stream goes on when all that is queued beside it has ended."""
        for stream in self.streams:
            if stream is not None:
                _main(stream).wait_stream(stream)


class Exchange:
    """The copies of one plan. `inbox`: bytes from the payload's start to the first generation, and
    from there to the second."""

    def __init__(
        self, workspace: Workspace, inbox: tuple[int, int], pieces: Sequence[Piece], streams: int
    ) -> None:
        import torch

        self._workspace = workspace
        self._staged = workspace.buffer("staged", (1,), torch.int32)
        types = {"control": "i64", "control_bases": "*i64", "staged": "i64"}
        types |= {"parity": "i32", "rank": "i32"}
        self._start = launcher(workspace, start, types)
        rank, world = workspace.rank, workspace.world
        controls, payloads = workspace.bases

        def item(slot: int, peer: int, parity: int) -> tuple[Piece, int, int]:
            place = (rank * FLAGS_PER_SOURCE.value + slot) * 4
            target = payloads[peer] + inbox[0] + parity * inbox[1] + pieces[slot].target
            return pieces[slot], target, controls[peer] + FLAGS_OFFSET.value + place

        # First the peer that reads this shard right after its own. The next item may go by another
        # stream, so that it is on its way while this one's flag is.
        order = [
            (slot, (rank - step) % world) for slot in range(len(pieces)) for step in range(1, world)
        ]
        self._items = [[item(slot, peer, parity) for slot, peer in order] for parity in (0, 1)]
        sides = SideStreams(workspace, min(streams, len(order)))
        self._runtime, self._streams = sides.runtime, sides.streams

    def begin(self) -> int:
        """Queue `start`, and let the side streams follow it; returns the generation of this
        call."""
        place, staged_at = self._workspace, self._staged.data_ptr()
        parity = next(place.turns) & 1
        self._start(place.control, place.control_bases, staged_at, parity, place.rank)
        for stream in self._streams:
            if stream is not None:
                stream.wait_stream(_main(stream))
        return parity

    def send(self, parity: int, shard: int) -> None:
        """Queue the copies of every piece of the shard at this address, each with its flag's behind
        it."""
        for number, stream in enumerate(self._streams):
            for piece, target, flag_at in self._items[parity][number :: len(self._streams)]:
                self._runtime.copy(piece, target, shard + piece.source, stream)
                self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)

    def send_one(self, parity: int, slot: int, distance: int, shard: int) -> None:
        """Queue one piece of the shard at this address, for the peer so many ranks behind this one,
        as soon as the main stream has done what it has so far; the flag's copy behind it."""
        number = slot * (self._workspace.world - 1) + distance - 1
        stream = self._streams[number % len(self._streams)]
        if stream is not None:
            stream.wait_stream(_main(stream))
        piece, target, flag_at = self._items[parity][number]
        self._runtime.copy(piece, target, shard + piece.source, stream)
        self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)

    def join(self) -> None:
        """The main stream goes on when the copies have ended."""
        for stream in self._streams:
            if stream is not None:
                _main(stream).wait_stream(stream)


def _main(stream: Any) -> Any:
    import torch

    return torch.cuda.current_stream(stream.device)
