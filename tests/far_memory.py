"""Kernels run on tensors of more than 2^31 elements without their memory: loads give constants,
stores go nowhere, and every address must lie in the operand that it was computed from.

Operands lie 2^50 bytes apart, so an offset that wraps in 32 bits misses its operand, or comes short
of its end. Of each loop over work (`tl.range`, `next_unit`) a program does the globally last item,
of any other loop the first and the last. Arguments have the types
of the compiled signature. To be called in a process of `emulated.run`, which interprets kernels.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

APART = 1 << 50
EPOCH = 1
"""The epoch of every call. The epoch word reads 0, and every flag as this."""


class FarTensor:
    """What hosts ask of a contiguous tensor."""

    def __init__(
        self, address: int, size: Sequence[int], element_bytes: int, apart: int | None = None
    ) -> None:
        """`apart`: elements from one item of the first dimension to the next."""
        self.address, self.shape, self.element_bytes = address, tuple(size), element_bytes
        self.apart = apart or prod(size[1:])

    def data_ptr(self) -> int:
        return self.address

    def numel(self) -> int:
        return prod(self.shape)

    def stride(self) -> tuple[int, ...]:
        inner = (prod(self.shape[place + 1 :]) for place in range(1, len(self.shape)))
        return self.apart, *inner

    def __getitem__(self, place: int | slice) -> FarTensor:
        rest, first, size = self.shape[1:], place, self.shape[1:]
        if isinstance(place, slice):
            first, end, _ = place.indices(self.shape[0])
            size = (end - first, *rest)
        return FarTensor(
            self.address + first * prod(rest) * self.element_bytes, size, self.element_bytes
        )

    def __iter__(self) -> Iterator[FarTensor]:
        return (self[number] for number in range(self.shape[0]))

    def view(self, *how: Any) -> FarTensor:
        """The tensor in another size, or as elements of another dtype."""
        if isinstance(how[0], int):
            return FarTensor(self.address, how, self.element_bytes)
        each = how[0].itemsize
        return FarTensor(self.address, (self.numel() * self.element_bytes // each,), each)

    def t(self) -> FarTensor:
        return FarTensor(self.address, self.shape[::-1], self.element_bytes)


class FarMemory:
    """Regions of addresses, what a load of each gives, and how far each was used."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sizes: list[int] = []
        self.values: dict[str, int] = {}
        self.farthest: dict[str, int] = {}
        self.wrong: set[str] = set()

    def region(self, name: str, size_bytes: int, value: int = 0) -> int:
        """The address of a new one, of which a load gives `value`."""
        self.names.append(name)
        self.sizes.append(size_bytes)
        self.values[name] = value
        return len(self.names) * APART

    def tensor(
        self, name: str, size: Sequence[int], element_bytes: int, value: int = 0
    ) -> FarTensor:
        address = self.region(name, prod(size) * element_bytes, value)
        return FarTensor(address, size, element_bytes)

    def seen(self, where: str, addresses: Any, mask: Any, element_bytes: int) -> str:
        """Note accesses of one instruction; the region of the first of them."""
        wanted = np.asarray(addresses)[np.broadcast_to(np.asarray(mask) != 0, addresses.shape)]
        if wanted.size == 0:
            return ""
        low, high = int(wanted.min()), int(wanted.max()) + element_bytes
        first = ""
        for address, end in ((low, low), (high - element_bytes, high)):
            number, offset = divmod(address, APART)
            name = self.names[number - 1] if 0 < number <= len(self.names) else ""
            first = first or name
            if not name or end - number * APART > self.sizes[number - 1]:
                place = f"{name or 'memory of nobody'} at byte {offset}"
                self.wrong.add(f"{where}: {place} of {self.sizes[number - 1] if name else 0}")
            else:
                self.farthest[name] = max(self.farthest.get(name, 0), offset)
        return first

    def install(self) -> None:
        """From now on every launch of this process runs here."""
        import torch
        from triton.runtime import interpreter
        from triton.runtime.interpreter import TensorHandle, _get_np_dtype

        from tftune.kernels.comm.copy_engine import HostRuntime
        from tftune.kernels.device import gemm
        from tftune.kernels.runtime.compile import KernelSource

        builder, memory = interpreter.interpreter_builder, self
        types: dict[Any, Mapping[str, str]] = {}
        running = [""]
        original = KernelSource.__init__

        def noted(self: Any, kernel: Any, *more: Any, **named: Any) -> None:
            original(self, kernel, *more, **named)
            types[kernel.fn.__name__] = self.types

        def load(ptrs: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
            kind = ptrs.get_element_ty()
            dtype = np.dtype(_get_np_dtype(kind))
            name = memory.seen(running[0], ptrs.data, mask.data, dtype.itemsize)
            value = memory.values.get(name, 0)
            if kind.name == "int64" and name in ("control", "words"):
                value = EPOCH << 32  # a word of LL that has come
            return TensorHandle(np.full(ptrs.data.shape, value, dtype), kind)

        def store(ptrs: Any, value: Any, mask: Any, *_: Any, **__: Any) -> None:
            size = np.asarray(value.data).dtype.itemsize
            memory.seen(running[0], ptrs.data, mask.data, size)

        def atomic(_op: Any, ptr: Any, val: Any, mask: Any, *_: Any) -> Any:
            name = memory.seen(running[0], ptr.data, mask.data, 4)
            shape = np.broadcast_shapes(ptr.data.shape, val.data.shape)
            value = EPOCH if name == "control" else 1 << 20  # a counter that is high enough
            return TensorHandle(np.full(shape, value, val.data.dtype), val.dtype.scalar)

        def everywhere(ptr: Any) -> Any:
            return TensorHandle(np.ones(ptr.data.shape, bool), interpreter.tl.int1)

        def run(executor: Any, *_: Any, **values: Any) -> None:
            running[0] = executor.fn.__name__
            known = types[running[0]]
            scope = interpreter._patch_lang(executor.fn)
            names = inspect.getfullargspec(executor.fn).args
            arguments = {
                name: argument(value, known[name]) if name in known else constant(value)
                for name, value in values.items()
                if name in names
            }
            for module, loaded in list(sys.modules.items()):
                if module.startswith("tftune.kernels.") and (
                    ".device." in module or ".variants." in module
                ):
                    loaded.range = first_and_last  # type: ignore[attr-defined]
            builder.set_grid_dim(*executor.grid)
            for program in {0, executor.grid[0] - 1}:
                builder.set_grid_idx(program, 0, 0)
                executor.fn(**arguments)
            scope.restore()

        def constant(value: Any) -> Any:
            if isinstance(value, tuple):
                return type(value)(*map(constant, value))
            return value

        def argument(value: Any, kind: str) -> Any:
            tl = interpreter.tl
            if kind.startswith("*"):
                address = value.data_ptr() if hasattr(value, "data_ptr") else value
                pointer = tl.pointer_type(tl.str_to_ty(kind[1:], None))
                data = np.array([address], dtype=np.uint64)
                return tl.tensor(TensorHandle(data, pointer), pointer)
            scalar = tl.str_to_ty(kind, None)
            dtype = np.dtype(_get_np_dtype(scalar))
            if kind.startswith("i") and not -(1 << 31) <= value < 1 << 31 and kind == "i32":
                memory.wrong.add(f"{running[0]}: {value} is passed as 32 bits")
                value = 0
            return tl.tensor(TensorHandle(np.array([value], dtype=dtype), scalar), scalar)

        def last_item(first: Any, end: Any = None, step: Any = None, **_: Any) -> Any:
            low, high = (0, int(first)) if end is None else (int(first), int(end))
            return range(max(low, high - 1) if high else low, high)

        def first_and_last(*bounds: Any) -> Any:
            items = range(*map(int, bounds))
            return items if len(items) < 3 else (items[0], items[-1])

        def last_unit(control: Any, pid: Any, units: Any, *_: Any) -> Any:
            return units - 1

        def no_more(control: Any, unit: Any, *_: Any) -> Any:
            return unit + (1 << 29)

        def multiply(a: FarTensor, b: FarTensor, out: FarTensor) -> None:
            """The vendor's GEMM: rows that lie together."""
            for one in (a, b, out):
                last = one.address + (one.numel() - 1) * one.element_bytes
                at = np.array([one.address, last], dtype=np.int64)
                memory.seen("matmul", at, np.ones(2), one.element_bytes)

        def copy(self: Any, piece: Any, target: int, source: int, stream: Any) -> None:
            for start, pitch in ((target, piece.target_pitch), (source, piece.source_pitch)):
                for row in {0, piece.runs - 1}:
                    at = np.array([start + row * pitch], dtype=np.int64)
                    memory.seen("copy", at, np.ones(1), piece.run_bytes)

        patch = interpreter._patch_lang

        def patched(function: Any) -> Any:
            found = patch(function)
            for module in {function.__globals__.get("tl")} - {None}:
                module.range = last_item
            return found

        KernelSource.__init__ = noted  # type: ignore[method-assign]
        interpreter._patch_lang = patched
        interpreter.GridExecutor.__call__ = run
        builder.create_load = lambda ptr, *_: load(ptr, everywhere(ptr), None)
        builder.create_store = lambda ptr, value, *_: store(ptr, value, everywhere(ptr))
        builder.create_masked_load, builder.create_masked_store = load, store
        builder.create_atomic_rmw = atomic
        gemm.first_unit, gemm.next_unit = last_unit, no_more
        HostRuntime.copy = copy  # type: ignore[method-assign]
        torch.matmul = multiply
