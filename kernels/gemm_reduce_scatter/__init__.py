"""C = reduce_scatter(A @ B), where the inner size is split over the ranks: the second half of a
tensor-parallel layer (attention output, MLP down).

Standard library only: the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tftune.kernels.core.row_parallel import RowParallel


@dataclass(frozen=True, order=True)
class GemmReduceScatter(RowParallel):
    """One call: `m` tokens, `n` columns, `k` the whole inner size, `world` ranks.

    Each rank holds A[:, K/world] and its K/world rows of B, and keeps M/world rows of the sum over
    ranks. b_layout "nk": B is stored [N, K/world], as `nn.Linear` does; "kn": [K/world, N]. Raises
    ValueError where m or k is not divisible by `world`.

    >>> GemmReduceScatter.parse("m=4096,n=8192,k=28672,world=8")
    GemmReduceScatter(m=4096, n=8192, k=28672, world=8, dtype='bf16', b_layout='nk')
    """

    op: ClassVar[str] = "gemm_reduce_scatter"

    def check(self) -> None:
        self.check_divisible("m", "k")

    @classmethod
    def example(cls) -> str:
        return "m=4096,n=8192,k=28672,world=8"

    @property
    def shard_rows(self) -> int:
        """Rows of the sum that one rank keeps."""
        return self.m // self.world

    @property
    def shard_bytes(self) -> int:
        """Bytes that one rank sends to each peer, in the shape's dtype."""
        return self.shard_rows * self.n * self.element_bytes


SHAPE = GemmReduceScatter
