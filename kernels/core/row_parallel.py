"""The shape of a row-parallel layer: a GEMM whose inner size is split over the ranks, so that the
products are added up. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import Shape


@dataclass(frozen=True, order=True)
class RowParallel(Shape):
    """One call: `m` tokens, `n` columns, `k` the whole inner size, `world` ranks, of which each has
    A[:, K/world] and its K/world rows of B. b_layout "nk": B is stored [N, K/world], as
    `nn.Linear` does; "kn": [K/world, N]."""

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

    def check_divisible(self, *names: str) -> None:
        """Raise ValueError for a size that the ranks cannot share evenly."""
        for name in names:
            if (size := getattr(self, name)) % self.world:
                advice = "; pad to the next multiple" if name == "m" else ""
                raise ValueError(
                    f"{name}={size} must be divisible by world={self.world}: each rank has an "
                    f"equal part{advice}"
                )

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
    def flops(self) -> int:
        """Multiplications and additions of one rank."""
        return 2 * self.m * self.n * self.inner
