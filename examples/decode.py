"""Decode steps over a KV cache that is sharded along the sequence: token t lies on rank t % world.

torchrun --nproc-per-node 8 examples/decode.py
python examples/decode.py --cpu
"""

from __future__ import annotations

import torch
from ranks import bind, relative_error, start

import tftune
from tftune.ops import flash_decode

LIMIT = 2.0**-7
"""Roundings to bf16 of the result and of the weights."""
STEPS = 4


class ShardedCache:
    """This rank's keys and values [batch, kv_len, kv_heads, head_dim], and how many tokens of each
    sequence it has: int32 on the device, so that no step waits for the host."""

    def __init__(self, workspace: tftune.Workspace, size: tuple[int, ...]) -> None:
        self.rank, self.world, self.tokens = workspace.rank, workspace.world, 0
        options = {"dtype": torch.bfloat16, "device": workspace.device}
        self.k, self.v = torch.zeros(2, *size, **options)
        self.lengths = torch.zeros(size[0], dtype=torch.int32, device=workspace.device)

    def append(self, k: torch.Tensor, v: torch.Tensor) -> None:
        """The next token of each sequence [batch, kv_heads, dim], kept by one rank."""
        if self.tokens % self.world == self.rank:
            place = self.tokens // self.world
            self.k[:, place], self.v[:, place] = k, v
            self.lengths += 1
        self.tokens += 1


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The reference in fp32, of one token over whole sequences [batch, tokens, kv_heads, dim]."""
    group = q.shape[1] // k.shape[2]
    k, v = (x.float().repeat_interleave(group, 2) for x in (k, v))
    scores = torch.einsum("bhd,bthd->bht", q.float(), k) * q.shape[-1] ** -0.5
    return torch.einsum("bht,bthd->bhd", scores.softmax(-1), v)


def example(workspace: tftune.Workspace, artifact: str | None) -> str:
    bind(workspace, artifact)
    small = workspace.arch == "interpreter"
    batch, q_heads, kv_heads, dim, kv_len = (2, 8, 2, 64, 32) if small else (4, 64, 8, 128, 1024)
    cache = ShardedCache(workspace, (batch, kv_len, kv_heads, dim))
    tokens = kv_len * workspace.world - 3  # the ranks have unequal numbers of them
    torch.manual_seed(0)  # the same on every rank, as the projections of a real layer are
    options = {"dtype": torch.bfloat16, "device": workspace.device}
    k, v = torch.randn(2, batch, tokens, kv_heads, dim, **options)
    for token in range(tokens - STEPS):
        cache.append(k[:, token], v[:, token])
    worst = 0.0
    for token in range(tokens - STEPS, tokens):
        cache.append(k[:, token], v[:, token])
        q = torch.randn(batch, q_heads, dim, **options)
        out = flash_decode(q, cache.k, cache.v, cache.lengths, workspace, mode="eager")
        exact = attention(q, k[:, : token + 1], v[:, : token + 1])
        worst = max(worst, relative_error(out, exact))
    if not worst < LIMIT:
        raise ValueError(f"the error {worst:.1e} must be below {LIMIT:.1e}")
    sizes = f"{batch} sequences of {tokens} tokens on {workspace.world} ranks"
    return f"checked {STEPS} decode steps, {sizes}: error {worst:.1e}, below {LIMIT:.1e}"


if __name__ == "__main__":
    start(example, payload_bytes=1 << 24)
