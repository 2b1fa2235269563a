"""C[M,N] = all_gather(A) @ B, where A is sharded over the ranks and each rank has its own columns
of B.

Standard library only: the shape, and the named sets of shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import HEAP, LOCAL, Shape


@dataclass(frozen=True, order=True)
class AllGatherGemm(Shape):
    """One call: `m` tokens, `n` columns of this rank, `k` the whole inner size, `world` ranks.

    shard "k": each rank holds A[:, K/world] (the layout of "Eliminating Multi-GPU Performance
    Taxes", arXiv 2511.02168). shard "m": each rank holds A[M/world, :] (sequence parallel).
    b_layout "kn": B is stored [K, N]; "nk": [N, K], as `nn.Linear` does. operands "heap": A lies in
    the symmetric heap on every rank (`Workspace.empty`), where peers read it without a copy. Raises
    ValueError where the sharded size is not divisible by `world`.

    >>> AllGatherGemm.parse("m=64,n=3584,k=8192,world=8") == AllGatherGemm(64, 3584, 8192, 8)
    True
    """

    op: ClassVar[str] = "all_gather_gemm"
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "dtype": tuple(DTYPE_BYTES),
        "shard": ("k", "m"),
        "b_layout": ("kn", "nk"),
        "operands": (LOCAL, HEAP),
    }
    SIZE: ClassVar[str] = "m"
    LAYOUT: ClassVar[tuple[str, ...]] = ("dtype", "shard", "b_layout", "world", "operands")
    LATER: ClassVar[tuple[str, ...]] = ("operands",)

    m: int
    n: int
    k: int
    world: int
    dtype: str = "fp16"
    shard: str = "k"
    b_layout: str = "kn"
    operands: str = LOCAL

    def check(self) -> None:
        if self.shard == "k" and self.k % self.world:
            both = f"k={self.k} must be divisible by world={self.world}"
            raise ValueError(f"{both} where A is sharded along K")
        if self.shard == "m" and self.m % self.world:
            raise ValueError(
                f"m={self.m} must be divisible by world={self.world} where A is sharded along M"
            )

    @classmethod
    def example(cls) -> str:
        return "m=64,n=3584,k=8192,world=8"

    @property
    def family(self) -> tuple[Any, ...]:
        return (self.n, self.k, self.world, self.dtype, self.shard, self.b_layout, self.operands)

    @property
    def problem(self) -> str:
        """The same tokens and the same layer, whose columns any number of ranks share."""
        return str(replace(self, n=self.n * self.world, world=1)).replace(",world=1", "")

    @property
    def shard_rows(self) -> int:
        """Rows of A that one rank holds."""
        return self.m if self.shard == "k" else self.m // self.world

    @property
    def shard_columns(self) -> int:
        """Columns of A that one rank holds."""
        return self.k // self.world if self.shard == "k" else self.k

    @property
    def shard_bytes(self) -> int:
        """Bytes that one rank sends to each peer."""
        return self.shard_rows * self.shard_columns * self.element_bytes

    @property
    def gathered_bytes(self) -> int:
        return self.m * self.k * self.element_bytes

    @property
    def flops(self) -> int:
        """Multiplications and additions of one rank."""
        return 2 * self.m * self.n * self.k


def paper(world: int = 8, dtype: str = "fp16", shard: str = "k") -> tuple[AllGatherGemm, ...]:
    """M = 1, 2, 4, ... 1024, 2048, 4096, 8192 with N=3584, K=8192: Llama-3-70B's MLP at tensor
    parallel 8 (arXiv 2511.02168)."""
    rows = [2**i for i in range(14)]
    return tuple(
        AllGatherGemm(m, 3584, 8192, world, dtype, shard)
        for m in rows
        if shard == "k" or m % world == 0
    )


SHAPE = AllGatherGemm
SHAPE_SETS = {"paper": paper}
