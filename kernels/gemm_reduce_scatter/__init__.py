"""C = reduce_scatter(A @ B), where the inner size is split over the ranks: the second half of a
tensor-parallel layer (attention output, MLP down).

Standard library only: the shape, and the named sets of shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import Shape


@dataclass(frozen=True, order=True)
class GemmReduceScatter(Shape):
    """One call: `m` tokens, `n` columns, `k` the whole inner size, `world` ranks.

    Each rank holds A[:, K/world] and its K/world rows of B, and keeps M/world rows of the sum over
    ranks. b_layout "nk": B is stored [N, K/world], as `nn.Linear` does; "kn": [K/world, N]. Raises
    ValueError where m or k is not divisible by `world`.

    >>> GemmReduceScatter.parse("m=4096,n=8192,k=28672,world=8")
    GemmReduceScatter(m=4096, n=8192, k=28672, world=8, dtype='bf16', b_layout='nk')
    """

    op: ClassVar[str] = "gemm_reduce_scatter"
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
        for name in ("m", "k"):
            if (size := getattr(self, name)) % self.world:
                advice = "; pad to the next multiple" if name == "m" else ""
                raise ValueError(
                    f"{name}={size} must be divisible by world={self.world}: each rank has an "
                    f"equal part{advice}"
                )

    @classmethod
    def example(cls) -> str:
        return "m=4096,n=8192,k=28672,world=8"

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
    def shard_rows(self) -> int:
        """Rows of the sum that one rank keeps."""
        return self.m // self.world

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def shard_bytes(self) -> int:
        """Bytes that one rank sends to each peer, in the shape's dtype."""
        return self.shard_rows * self.n * self.element_bytes

    @property
    def flops(self) -> int:
        """Multiplications and additions of one rank."""
        return 2 * self.m * self.n * self.inner


SHAPE = GemmReduceScatter
