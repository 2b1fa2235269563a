"""out = softmax(q K^T / sqrt(head_dim)) V for all tokens of each sequence, on one GPU.

Nothing is exchanged: a rank of a tensor-parallel layer computes its own heads. Standard library
only: the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tftune.kernels.core.dtypes import DTYPE_BYTES
from tftune.kernels.core.shape import Shape

HEAD_DIMS = (64, 128)
INSTEAD = "call torch.nn.functional.scaled_dot_product_attention"


@dataclass(frozen=True, order=True)
class FlashPrefill(Shape):
    """One call: `batch` sequences of `seq_len` tokens, `q_heads` query heads that share `kv_heads`.

    causal "yes": a token attends to itself and to those before it; "no": to all. `q_heads` are
    those of one GPU, and `world` is 1. Raises ValueError where sizes do not fit each other.

    >>> FlashPrefill.parse("batch=1,q_heads=32,kv_heads=8,head_dim=128,seq_len=8192").flops
    549822922752
    """

    op: ClassVar[str] = "flash_prefill"
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "dtype": tuple(DTYPE_BYTES),
        "causal": ("yes", "no"),
    }
    SIZE: ClassVar[str] = "seq_len"
    LAYOUT: ClassVar[tuple[str, ...]] = ("dtype", "causal", "world")
    EXCHANGES: ClassVar[bool] = False

    batch: int
    q_heads: int
    kv_heads: int
    head_dim: int
    seq_len: int
    world: int = 1
    dtype: str = "bf16"
    causal: str = "yes"

    def check(self) -> None:
        if self.head_dim not in HEAD_DIMS:
            known = ", ".join(map(str, HEAD_DIMS))
            raise ValueError(f"head_dim={self.head_dim} is not one of {known}; {INSTEAD}")
        if self.q_heads % self.kv_heads:
            raise ValueError(
                f"q_heads={self.q_heads} must be a multiple of kv_heads={self.kv_heads}; {INSTEAD}"
            )
        if self.world != 1:
            raise ValueError(
                f"world={self.world} must be 1: flash_prefill runs on one GPU; give the heads that "
                "one rank has"
            )

    @classmethod
    def example(cls) -> str:
        return "batch=1,q_heads=32,kv_heads=8,head_dim=128,seq_len=8192"

    @property
    def family(self) -> tuple[Any, ...]:
        return self.q_heads, self.kv_heads, self.head_dim, self.dtype, self.causal

    @property
    def problem(self) -> str:
        """The same call: there is one rank."""
        return str(self)

    @property
    def is_causal(self) -> bool:
        return self.causal == "yes"

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.q_heads // self.kv_heads

    @property
    def pairs(self) -> int:
        """Pairs of a query token and a token that it attends to, of one head."""
        tokens = self.seq_len
        return tokens * (tokens + 1) // 2 if self.is_causal else tokens * tokens

    @property
    def flops(self) -> int:
        """Multiplications and additions of both products, masked pairs left out."""
        return 4 * self.batch * self.q_heads * self.head_dim * self.pairs

    @property
    def head_bytes(self) -> int:
        """Bytes of the keys and values of one KV head of one sequence."""
        return 2 * self.seq_len * self.head_dim * self.element_bytes

    @property
    def local_bytes(self) -> int:
        """Bytes that must be read and written at least: queries, keys, values, output."""
        rows = 2 * self.batch * self.q_heads * self.seq_len * self.head_dim
        return rows * self.element_bytes + self.batch * self.kv_heads * self.head_bytes


SHAPE = FlashPrefill
