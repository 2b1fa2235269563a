"""out = the sum over ranks of x; with norm "rms", the residual added and RMSNorm applied as well.

Each rank has all rows of its own partial sums, as a row-parallel projection leaves them. Standard
library only: the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import HEAP, LOCAL, Shape

EPSILON = 1e-6
"""Added to the mean of squares where a call says nothing else."""
GRANULE = 8
"""A row is a multiple of so many elements, so that each begins at a multiple of 16 bytes."""
LONGEST_ROW = 16_384
"""Elements of a row that is normalised: one program holds it in registers."""


@dataclass(frozen=True, order=True)
class AllReduce(Shape):
    """One call: x [m, n] of every rank; the result is the same on every rank.

    norm "none": out = round(sum of x over ranks), [m, n]. norm "rms", with residual [m, n] and
    weight [n], the same on every rank, gives two results [m, n]. Roundings are to the dtype, in the
    order of vLLM's `fused_add_rms_norm` (csrc/layernorm_kernels.cu) behind an all-reduce:

        y = round(sum of x over ranks)
        new_residual = round(y + residual)
        scale = 1 / sqrt(mean(new_residual ** 2) + eps), in fp32
        out = round(round(new_residual * scale) * weight)

    eps is an argument of the call. Sums over ranks are in fp32, in the order of ranks. operands
    "heap": x lies in the symmetric heap on every rank (`Workspace.empty`), where peers read it
    without a copy. Raises ValueError where a row is no multiple of 8 elements, or too long to be
    normalised.

    >>> AllReduce.parse("m=64,n=8192,world=8,norm=rms")
    AllReduce(m=64, n=8192, world=8, dtype='bf16', norm='rms', operands='local')
    """

    op: ClassVar[str] = "all_reduce"
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "dtype": tuple(DTYPE_BYTES),
        "norm": ("none", "rms"),
        "operands": (LOCAL, HEAP),
    }
    SIZE: ClassVar[str] = "m"
    LAYOUT: ClassVar[tuple[str, ...]] = ("dtype", "norm", "world", "operands")
    LATER: ClassVar[tuple[str, ...]] = ("operands",)

    m: int
    n: int
    world: int
    dtype: str = "bf16"
    norm: str = "none"
    operands: str = LOCAL

    def check(self) -> None:
        if self.n % GRANULE:
            raise ValueError(f"n={self.n} must be a multiple of {GRANULE}: pad the rows")
        if self.norm == "rms" and self.n > LONGEST_ROW:
            raise ValueError(f"n={self.n} must be at most {LONGEST_ROW} where rows are normalised")

    @classmethod
    def example(cls) -> str:
        return "m=64,n=8192,world=8"

    @property
    def family(self) -> tuple[Any, ...]:
        return self.n, self.world, self.dtype, self.norm, self.operands

    @property
    def problem(self) -> str:
        """The same sum, of as many partial sums as there are ranks."""
        place = "" if self.operands == LOCAL else f",operands={self.operands}"
        return f"m={self.m},n={self.n},dtype={self.dtype},norm={self.norm}{place}"

    @property
    def normed(self) -> bool:
        return self.norm == "rms"

    @property
    def elements(self) -> int:
        return self.m * self.n

    @property
    def message_bytes(self) -> int:
        """Bytes of x."""
        return self.elements * self.element_bytes

    @property
    def local_bytes(self) -> int:
        """Bytes that one rank must read and write at least: x and the results; residual and weight
        where rows are normalised."""
        return self.message_bytes * (4 if self.normed else 2) + (
            self.n * self.element_bytes if self.normed else 0
        )


SHAPE = AllReduce
