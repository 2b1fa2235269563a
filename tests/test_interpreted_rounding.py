"""What the interpreter stores as bf16 is what a GPU stores: rounded to nearest even, zeros as
zeros."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.device.gemm import store_tile

SIZE = 16
VALUES = (
    0.0, -0.0, 1.0, -1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 3 * 2**-8, 1 + 2**-8 + 2**-20,
    2**-126, 2**-130, 2**-133, 2**-134, 2**-149, 3.39e38, float("inf"), float("nan"),
)  # fmt: skip
"""Halves between two values of bf16, subnormal numbers of bf16 and of fp32, and one that rounds to
infinity."""


@triton.jit
def store(values_ptr, c_ptr, SIZE: tl.constexpr, ARCH: tl.constexpr):
    """One row of values as c_ptr's dtype."""
    columns = tl.arange(0, SIZE)
    row = tl.load(values_ptr + columns)[None, :]
    store_tile(c_ptr, row, 0, columns, 1, SIZE, 1, ARCH)


def stored(workspace: Workspace) -> list[int]:
    """VALUES, and a NaN of all bits set, as bits of bf16."""
    poison = torch.tensor([-1], dtype=torch.int32).view(torch.float32)
    values = torch.cat([torch.tensor(VALUES[:-1]), poison])
    c = torch.empty(SIZE, dtype=torch.bfloat16)
    store[(1,)](values, c, SIZE, workspace.arch)
    return c.view(torch.int16).tolist()


def test_bf16_is_rounded_as_torch_rounds_it() -> None:
    (bits,) = emulated.run(1, stored)
    expected = torch.tensor(VALUES).to(torch.bfloat16)
    found = torch.tensor(bits, dtype=torch.int16).view(torch.bfloat16)
    assert found[-1].isnan() and bits[:-1] == expected.view(torch.int16).tolist()[:-1]
