"""out = the attention over all ranks' parts of a KV cache, from each rank's own: partial outputs
merged by their log-sum-exps.

For engines that keep their own attention kernel. Standard library only: the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import Shape

HEAD_DIMS = (64, 128, 256, 512)
"""512: the latent values of MLA, which its decode context parallelism merges."""


@dataclass(frozen=True, order=True)
class MergeAttention(Shape):
    """One call: o [batch, heads, head_dim] and lse [batch, heads], fp32, of every rank.

        weight[r] = base ** lse[r]
        out = (sum over ranks of weight[r] * o[r]) / (sum over ranks of weight[r])

    base: `e`, as FlashAttention returns log-sum-exps, or `2`, as FlashInfer does. A rank without a
    token of a sequence has lse -inf there; +inf and NaN say the same (what some kernels return for
    an empty part), and its o is not read. Zero where no rank has one.

    output "heads": rank r gets heads r * heads / world and on (decode context parallelism); "all":
    every rank gets every head. Raises ValueError where heads do not divide.

    >>> MergeAttention.parse("batch=4,heads=64,head_dim=128,world=8")
    MergeAttention(batch=4, heads=64, head_dim=128, world=8, dtype='bf16', output='heads', base='e')
    """

    op: ClassVar[str] = "merge_attention"
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "dtype": tuple(DTYPE_BYTES),
        "output": ("heads", "all"),
        "base": ("e", "2"),
    }
    SIZE: ClassVar[str] = "batch"
    LAYOUT: ClassVar[tuple[str, ...]] = ("dtype", "output", "base", "world")
    SAME_CODE: ClassVar[tuple[str, ...]] = ("dtype", "base")

    batch: int
    heads: int
    head_dim: int
    world: int
    dtype: str = "bf16"
    output: str = "heads"
    base: str = "e"

    def check(self) -> None:
        if self.head_dim not in HEAD_DIMS:
            known = ", ".join(map(str, HEAD_DIMS))
            raise ValueError(
                f"head_dim={self.head_dim} is not one of {known}; pad rows of o to the next one, "
                "and cut the result"
            )
        if self.output == "heads" and self.heads % self.world:
            raise ValueError(
                f"heads={self.heads} must be divisible by world={self.world} where each rank gets "
                "its own heads"
            )

    @classmethod
    def example(cls) -> str:
        return "batch=16,heads=64,head_dim=128,world=8"

    @property
    def family(self) -> tuple[Any, ...]:
        return self.heads, self.head_dim, self.world, self.dtype, self.output, self.base

    @property
    def problem(self) -> str:
        """The same heads, of as many partial outputs as there are ranks."""
        return f"batch={self.batch},heads={self.heads},head_dim={self.head_dim},dtype={self.dtype}"

    @property
    def own_heads(self) -> int:
        """Heads of the output that one rank gets."""
        return self.heads if self.output == "all" else self.heads // self.world

    @property
    def rows(self) -> int:
        """Rows of the output on one rank, which are the rows of one message."""
        return self.batch * self.own_heads

    @property
    def message_bytes(self) -> int:
        """Bytes that one rank sends to each peer: rows of o, then the log-sum-exp of each, up to a
        multiple of 16 bytes."""
        return self.rows * self.head_dim * self.element_bytes + -(-self.rows // 4) * 16

    @property
    def local_bytes(self) -> int:
        """Bytes that one rank must read and write at least: o, lse and its output."""
        row_bytes = self.head_dim * self.element_bytes
        return self.batch * self.heads * (row_bytes + 4) + self.rows * row_bytes


SHAPE = MergeAttention
