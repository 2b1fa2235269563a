"""Where a workspace's memory comes from on GPUs: Iris' symmetric heap, and on ROCm fine-grained
memory for the flags."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
import torch.distributed as dist

from tftune.kernels.comm.operand_heap import OperandHeap
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.devices import Seen
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import CONTROL_BYTES

_CHUNK = 1 << 28
"""Bytes that Iris maps at once: its heap is a multiple of them."""


def workspace(
    make: type[Workspace], group: Any, ranks: list[int], payload_bytes: int, operand_bytes: int = 0
) -> Workspace:
    """A workspace over Iris for the ranks of `group`; collective over the default group. Barriers
    before it returns, so that no rank signals into a block that is not yet zeroed."""
    import iris

    hip = torch.version.hip is not None
    device = torch.device("cuda", torch.cuda.current_device())
    chip = Seen.of(torch, device.index).chip
    generation = -(-payload_bytes // 4096) * 4096
    sizes = [2 * generation, CONTROL_BYTES, *([operand_bytes] if operand_bytes else [])]
    needed = sum(map(power_of_two_from, sizes))  # as Iris rounds each tensor
    heap_bytes = -(-needed // _CHUNK) * _CHUNK
    context = iris.iris(heap_bytes) if hip else iris.iris(heap_bytes, allocator_type="vmem_chunked")
    payload = context.empty(2 * generation, dtype=torch.uint8)
    operands = context.empty(operand_bytes, dtype=torch.uint8) if operand_bytes else None
    payload_bases = _bases(context, payload, ranks)
    if hip:
        control_address, control_bases = _fine_grained(ranks)
        control = None
    else:
        control = context.zeros(CONTROL_BYTES, dtype=torch.uint8)
        control_address, control_bases = control.data_ptr(), _bases(context, control, ranks)
        payload_bases = _bases(context, payload, ranks)  # read again: the heap may have grown
    torch.cuda.synchronize()
    dist.barrier()

    def set_epoch(epoch: int) -> None:
        if control is not None:
            control.view(torch.int32)[0].fill_(epoch)
            return
        word, size = ctypes.byref(ctypes.c_int32(epoch)), ctypes.c_size_t(4)
        _hip("hipMemcpy", ctypes.c_void_p(control_address), word, size, _TO_DEVICE)

    def read_epoch() -> int:
        if control is not None:
            return int(control.view(torch.int32)[0])
        epoch, size = ctypes.c_int32(), ctypes.c_size_t(4)
        _hip("hipMemcpy", ctypes.byref(epoch), ctypes.c_void_p(control_address), size, _TO_HOST)
        return epoch.value

    return make(
        rank=ranks.index(dist.get_rank()),
        world=len(ranks),
        arch="hip" if hip else "cuda",
        units=chip.units,
        device=device,
        group=group,
        control=control_address,
        payload=payload.data_ptr(),
        control_bases=control_bases,
        payload_bases=payload_bases,
        generation_bytes=generation,
        payload_tensor=payload,
        operands=OperandHeap(operands),
        owner=(context, control),
        _set_epoch=set_epoch,
        _read_epoch=read_epoch,
        chip=chip,
    )


def _bases(context: Any, tensor: torch.Tensor, ranks: list[int]) -> torch.Tensor:
    """int64[len(ranks)]: where each rank's copy of a heap tensor is mapped here."""
    heap_bases = context.get_heap_bases().view(torch.int64)
    offset = tensor.data_ptr() - int(heap_bases[dist.get_rank()])
    return heap_bases[torch.tensor(ranks, device=heap_bases.device)] + offset


_FINE_GRAINED = 0x1
"""hipDeviceMallocFinegrained: coherent between GPUs while kernels run (HIP run-time API, memory
allocation flags)."""
_LAZY_PEER_ACCESS = 0x1
_TO_DEVICE = 1
"""hipMemcpyHostToDevice."""
_TO_HOST = 2
"""hipMemcpyDeviceToHost."""


class _Handle(ctypes.Structure):
    """hipIpcMemHandle_t."""

    _fields_ = [("reserved", ctypes.c_char * 64)]


def _hip(name: str, *arguments: Any) -> None:
    """Call a function of the HIP run-time; raises RuntimeError with its status."""
    if status := getattr(ctypes.CDLL("libamdhip64.so"), name)(*arguments):
        raise RuntimeError(
            f"{name} returned {status} for the {CONTROL_BYTES} bytes of flags that GPUs share"
        )


def _fine_grained(ranks: list[int]) -> tuple[int, torch.Tensor]:
    """One zeroed control block of fine-grained memory on every rank, shared through HIP's
    inter-process handles."""
    own, size = ctypes.c_void_p(), ctypes.c_size_t(CONTROL_BYTES)
    _hip("hipExtMallocWithFlags", ctypes.byref(own), size, ctypes.c_uint(_FINE_GRAINED))
    _hip("hipMemset", own, 0, size)
    handle = _Handle()
    _hip("hipIpcGetMemHandle", ctypes.byref(handle), own)
    handles: list[bytes] = [b""] * dist.get_world_size()
    dist.all_gather_object(handles, bytes(handle))
    addresses = []
    for rank in ranks:
        if rank == dist.get_rank():
            addresses.append(own.value)
            continue
        mapped, given = ctypes.c_void_p(), _Handle.from_buffer_copy(handles[rank])
        lazy = ctypes.c_uint(_LAZY_PEER_ACCESS)
        _hip("hipIpcOpenMemHandle", ctypes.byref(mapped), given, lazy)
        addresses.append(mapped.value)
    if own.value is None:
        raise RuntimeError("hipExtMallocWithFlags returned no address")
    return own.value, torch.tensor(addresses, dtype=torch.int64, device="cuda")
