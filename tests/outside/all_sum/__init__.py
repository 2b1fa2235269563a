"""out = the sum over all ranks of x: a small operation that lives outside of tftune."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tftune.kernels.core.shape import Shape


@dataclass(frozen=True, order=True)
class AllSum(Shape):
    """One call: x [m, n] of every rank.

    >>> AllSum.parse(AllSum.example())
    AllSum(m=64, n=512, world=2, dtype='fp16')
    """

    op: ClassVar[str] = "all_sum"
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {"dtype": ("fp16", "bf16")}
    SIZE: ClassVar[str] = "m"
    LAYOUT: ClassVar[tuple[str, ...]] = ("dtype", "world")

    m: int
    n: int
    world: int
    dtype: str = "fp16"

    @classmethod
    def example(cls) -> str:
        return "m=64,n=512,world=2"

    @property
    def family(self) -> tuple[Any, ...]:
        return self.n, self.world, self.dtype

    @property
    def problem(self) -> str:
        return f"m={self.m},n={self.n}"

    @property
    def elements(self) -> int:
        return self.m * self.n

    @property
    def bytes(self) -> int:
        """The bytes of x, up to a multiple of 16."""
        return -(-2 * self.elements // 16) * 16


SHAPE = AllSum
