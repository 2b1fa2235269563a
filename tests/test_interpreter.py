"""A hastened interpreter gives what Triton's own gives: types, shapes, bits and errors; and bf16 as
GPUs round it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tftune.kernels.comm import emulated
from tftune.kernels.comm.interpreter import hasten
from tftune.kernels.comm.workspace import Workspace

OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor_", "shl", "ashr",
    "less_than", "equal",
)  # fmt: skip
SIZES = ((), (4,), (2, 1), (1, 4), (8,))
"""Those of 8 fit none of the others."""
NUMBERS = (0, 1, -1, 3, 200, 1 << 31, 1 << 40, 1 << 64, -(1 << 31), -(1 << 31) - 1, 0.5, True)


def operands() -> Iterator[Any]:
    """One of each type and shape, among them pointers and what no conversion may touch."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    pointer = tl.pointer_type(tl.int32)
    for its in (
        tl.int1, tl.int8, tl.uint8, tl.int32, tl.uint32, tl.int64, tl.uint64, tl.float16,
        tl.bfloat16, tl.float32, tl.float64, tl.float8e5, pointer,
    ):  # fmt: skip
        for sizes in SIZES:
            values = 1 + np.arange(int(np.prod(sizes))).reshape(sizes or 1)
            if its is tl.bfloat16:  # 1, 2, ... rather than the least numbers, of which Triton errs
                values = values.astype(np.float32).view(np.uint32) >> 16
            handle = interpreter.TensorHandle(values.astype(interpreter._get_np_dtype(its)), its)
            yield tl.tensor(handle, tl.block_type(its, list(sizes)) if sizes else its)


def outcome(call: Any, *given: Any) -> str:
    """What a call returned, or why it did not."""
    try:
        found = call(*given)
    except Exception as error:  # whatever it is, both must say it
        return f"{type(error).__name__}: {error}"
    sizes, bits = [int(size) for size in found.shape], found.handle.data.tobytes().hex()
    return f"{found.dtype} {sizes} {found.type} {int(found.numel)} {bits}"


def outcomes(semantic: Any) -> Iterator[str]:
    """One of each call."""
    every = list(operands())
    for name in OPERATORS:
        operator = getattr(semantic, name)
        more = (False,) if name in ("add", "sub", "mul") else ()
        pairs = itertools.chain(
            itertools.product(every, every),
            itertools.product(every, NUMBERS),
            itertools.product(NUMBERS, every),
        )
        yield from (f"{name} {outcome(operator, *pair, *more)}" for pair in pairs)
    for one, other in itertools.product(every, every):
        yield f"cast {outcome(semantic.cast, one, other.dtype)}"


def told(hastened: bool) -> list[str]:
    """Every outcome in a process of its own."""
    call = f"from test_interpreter import main; main({hastened})"
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", call],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.splitlines()


def main(hastened: bool) -> None:
    from triton.runtime import interpreter

    if hastened:
        hasten()
    else:  # as `hasten` has it: no operator says that a sum overflows
        interpreter.interpreter_builder.options = interpreter.InterpreterOptions(
            sanitize_overflow=False
        )
    print(*outcomes(interpreter.interpreter_semantic), sep="\n")


def test_a_hastened_interpreter_gives_what_tritons_own_gives() -> None:
    plain, hastened = told(False), told(True)
    differing = [pair for pair in zip(plain, hastened, strict=True) if len(set(pair)) > 1]
    assert not differing and len(plain) > 50_000
    assert sum("Error" not in line for line in plain) > 10_000


def rounded(workspace: Workspace) -> tuple[bool, bool, bool]:
    """Whether fp32 in bf16 is what torch makes of it, NaN the same ones; and every word of bf16 in
    fp32."""
    import numpy as np
    import torch
    import triton.language as tl
    from triton.runtime import interpreter

    words = np.random.RandomState(1).randint(0, 1 << 32, size=1 << 20, dtype=np.uint64)
    every = np.arange(1 << 16, dtype=np.uint16)
    # 1 + 2**-8 lies between two, 1 + 3 * 2**-8 too: both become the even one.
    numbers = np.array([1.00390625, 1.01171875, 1.9999999, 3.4e38, 1e-40, np.inf], np.float32)
    given = np.concatenate([words.astype(np.uint32).view(np.float32), numbers])
    builder, handle = interpreter.interpreter_builder, interpreter.TensorHandle
    found = builder.create_fp_trunc(handle(given, tl.float32), tl.bfloat16).data.view(np.int16)
    expected = torch.from_numpy(given).bfloat16()
    wide = builder.create_fp_ext(handle(every, tl.bfloat16), tl.float32).data
    exact = torch.from_numpy(every.view(np.int16)).view(torch.bfloat16).float()
    same = torch.from_numpy(found).view(torch.bfloat16)
    return (
        torch.equal(same.nan_to_num(7.0), expected.nan_to_num(7.0)),
        torch.equal(same.isnan(), expected.isnan()),
        torch.equal(torch.from_numpy(wide).view(torch.int32), exact.view(torch.int32)),
    )


def test_bf16_is_rounded_to_the_nearest() -> None:
    assert emulated.run(1, rounded) == [(True, True, True)]


def test_a_process_that_compiles_is_left_as_it_is() -> None:
    """Its compiler has the same types and rules. It may make workspaces of emulated ranks, too."""
    import triton.language as tl
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    hasten()
    for changed in (
        TritonSemantic.cast, TritonSemantic.broadcast_impl_value, tl.tensor.__init__,
        tl.block_type.__init__, interpreter._get_np_dtype, interpreter._patch_attr,
    ):  # fmt: skip
        assert changed.__module__.startswith("triton.")
