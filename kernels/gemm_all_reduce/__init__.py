"""C = all_reduce(A @ B), where the inner size is split over the ranks: how decoding ends every
row-parallel projection (attention output, MLP down).

Standard library only: the shape, and the named sets of shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import Shape


@dataclass(frozen=True, order=True)
class GemmAllReduce(Shape):
    """One call: `m` tokens, `n` columns, `k` the whole inner size, `world` ranks.

    Each rank holds A[:, K/world] and its K/world rows of B, and gets the whole sum over ranks, the
    same to the bit. b_layout "nk": B is stored [N, K/world], as `nn.Linear` does; "kn":
    [K/world, N]. Raises ValueError where k is not divisible by `world`.

    >>> GemmAllReduce.parse("m=16,n=8192,k=28672,world=8")
    GemmAllReduce(m=16, n=8192, k=28672, world=8, dtype='bf16', b_layout='nk')
    """

    op: ClassVar[str] = "gemm_all_reduce"
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "dtype": tuple(DTYPE_BYTES),
        "b_layout": ("nk", "kn"),
    }
    SIZE: ClassVar[str] = "m"
    LAYOUT: ClassVar[tuple[str, ...]] = ("dtype", "b_layout", "world")

    m: int
    n: int
    k: int
    world: int
    dtype: str = "bf16"
    b_layout: str = "nk"

    def check(self) -> None:
        if self.k % self.world:
            raise ValueError(
                f"k={self.k} must be divisible by world={self.world}: each rank has an equal part"
            )

    @classmethod
    def example(cls) -> str:
        return "m=16,n=8192,k=28672,world=8"

    @property
    def family(self) -> tuple[Any, ...]:
        return (self.n, self.k, self.world, self.dtype, self.b_layout)

    @property
    def problem(self) -> str:
        """The same tokens and the same layer, whose inner size any number of ranks share."""
        return str(replace(self, world=1)).replace(",world=1", "")

    @property
    def inner(self) -> int:
        """Columns of A that one rank multiplies."""
        return self.k // self.world

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def message_bytes(self) -> int:
        """Bytes of C."""
        return self.m * self.n * self.element_bytes

    @property
    def flops(self) -> int:
        """Multiplications and additions of one rank."""
        return 2 * self.m * self.n * self.inner


SHAPE = GemmAllReduce
