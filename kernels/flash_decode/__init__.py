"""out = softmax(q K^T / sqrt(head_dim)) V for one new token of each sequence, where the KV cache is
sharded along the sequence.

Every rank has all queries and its own part of each sequence's keys and values; partial results are
merged by log-sum-exp. Standard library only: the shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import Shape

HEAD_DIMS = (64, 128, 256)
LARGEST_GROUP = 16
INSTEAD = (
    "run the engine's own attention over this rank's tokens, then tftune.ops.merge_attention of "
    "its outputs and log-sum-exps"
)
"""What to call where there is no kernel."""


@dataclass(frozen=True, order=True)
class FlashDecode(Shape):
    """One call: `batch` sequences, `q_heads` query heads that share `kv_heads`, `kv_len` tokens
    that a rank can hold of each sequence.

    output "all": every rank gets every head (the layout of "Eliminating Multi-GPU Performance
    Taxes", arXiv 2511.02168); "heads": rank r gets heads r * q_heads / world and on (decode context
    parallelism). page_size: 0 where a sequence's cache is contiguous, else tokens of one page of a
    paged cache. How many tokens there are is in device memory: at most `kv_len`, zero included.
    Raises ValueError where sizes do not fit each other.

    >>> words = "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=8192,world=8"
    >>> FlashDecode.parse(words)  # doctest: +ELLIPSIS
    FlashDecode(batch=1, q_heads=64, kv_heads=8, head_dim=128, kv_len=8192, world=8, ...)
    """

    op: ClassVar[str] = "flash_decode"
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "dtype": tuple(DTYPE_BYTES),
        "output": ("all", "heads"),
    }
    LEAST: ClassVar[dict[str, int]] = {"page_size": 0}
    SIZE: ClassVar[str] = "kv_len"
    LAYOUT: ClassVar[tuple[str, ...]] = ("dtype", "output", "page_size", "world")

    batch: int
    q_heads: int
    kv_heads: int
    head_dim: int
    kv_len: int
    world: int
    dtype: str = "fp16"
    output: str = "all"
    page_size: int = 0

    def check(self) -> None:
        if self.head_dim not in HEAD_DIMS:
            known = ", ".join(map(str, HEAD_DIMS))
            raise ValueError(f"head_dim={self.head_dim} is not one of {known}; {INSTEAD}")
        if self.q_heads % self.kv_heads or self.group > LARGEST_GROUP:
            raise ValueError(
                f"q_heads={self.q_heads} must be 1 to {LARGEST_GROUP} times "
                f"kv_heads={self.kv_heads}; {INSTEAD}"
            )
        if self.output == "heads" and self.q_heads % self.world:
            raise ValueError(
                f"q_heads={self.q_heads} must be divisible by world={self.world} where each rank "
                "gets its own heads"
            )
        if self.page_size and self.kv_len % self.page_size:
            raise ValueError(
                f"kv_len={self.kv_len} must be whole pages of page_size={self.page_size} tokens"
            )

    @classmethod
    def example(cls) -> str:
        return "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=8192,world=8"

    @property
    def family(self) -> tuple[Any, ...]:
        return (
            self.q_heads,
            self.kv_heads,
            self.head_dim,
            self.world,
            self.dtype,
            self.output,
            self.page_size,
        )

    @property
    def problem(self) -> str:
        """The same sequences on any number of ranks."""
        return str(replace(self, kv_len=self.kv_len * self.world, world=1)).replace(",world=1", "")

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.q_heads // self.kv_heads

    @property
    def own_heads(self) -> int:
        """Heads of the output that one rank gets."""
        return self.q_heads if self.output == "all" else self.q_heads // self.world

    @property
    def cache_bytes(self) -> int:
        """Bytes of keys and values that one rank reads where its part of every sequence is full."""
        return self.bytes_of(self.batch * self.kv_len)

    def bytes_of(self, tokens: int) -> int:
        """Bytes of keys and values of so many tokens, of all sequences together."""
        return 2 * tokens * self.kv_heads * self.head_dim * self.element_bytes

    @property
    def message_bytes(self) -> int:
        """Bytes that one rank sends to each peer: rows of fp32, then the log-sum-exp of each, up to
        a multiple of 16 bytes."""
        rows = self.batch * self.own_heads
        return 4 * (rows * self.head_dim + -(-rows // 4) * 4)

    @property
    def flops(self) -> int:
        """Multiplications and additions of one rank."""
        return self.flops_of(self.batch * self.kv_len)

    def flops_of(self, tokens: int) -> int:
        """The same of so many tokens, of all sequences together."""
        return 4 * tokens * self.q_heads * self.head_dim


SHAPE = FlashDecode
