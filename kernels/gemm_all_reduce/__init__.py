"""C = all_reduce(A @ B), where the inner size is split over the ranks: how decoding ends every
row-parallel projection (attention output, MLP down).

Standard library only: the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tftune.kernels.core.row_parallel import RowParallel


@dataclass(frozen=True, order=True)
class GemmAllReduce(RowParallel):
    """One call: `m` tokens, `n` columns, `k` the whole inner size, `world` ranks.

    Each rank holds A[:, K/world] and its K/world rows of B, and gets the whole sum over ranks, the
    same to the bit. b_layout "nk": B is stored [N, K/world], as `nn.Linear` does; "kn":
    [K/world, N]. Raises ValueError where k is not divisible by `world`.

    >>> GemmAllReduce.parse("m=16,n=8192,k=28672,world=8")
    GemmAllReduce(m=16, n=8192, k=28672, world=8, dtype='bf16', b_layout='nk')
    """

    op: ClassVar[str] = "gemm_all_reduce"

    def check(self) -> None:
        self.check_divisible("k")

    @classmethod
    def example(cls) -> str:
        return "m=16,n=8192,k=28672,world=8"

    @property
    def message_bytes(self) -> int:
        """Bytes of C."""
        return self.m * self.n * self.element_bytes


SHAPE = GemmAllReduce
