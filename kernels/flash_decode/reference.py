"""The one formula of flash_decode, from torch.distributed, and the inputs that tests, checks and
benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.core.dtypes import ROUNDING, torch_dtype
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.lengths import FULL, Lengths

if TYPE_CHECKING:
    import torch

RAGGED_SEED = 1
"""Inputs of this seed have sequences of random lengths, the first of which is empty on rank 0, and
the third on every rank. All others have the lengths that are asked for: they are what is timed."""
TOKENS = 16_384
"""Tokens of one sequence that the reference scores at a time."""


def make_inputs(
    shape: FlashDecode, rank: int, seed: int, device: Any = "cpu", lengths: str = FULL
) -> tuple[torch.Tensor, ...]:
    """q, the same on every rank, and this rank's k, v, lengths and table, random normal, as the
    host function takes them.

    Pages lie in random order; the table is empty where there are none. Keys are scaled so that few
    tokens have most of the weight. `lengths`: as rows name them, the same for every seed.
    """
    import torch

    dtype = torch_dtype(shape.dtype)
    shared = torch.Generator(device=device).manual_seed(1_000_003 * seed)
    own = torch.Generator(device=device).manual_seed(1_000_003 * seed + 1 + rank)
    q = torch.randn(shape.batch, shape.q_heads, shape.head_dim, generator=shared, device=device).to(
        dtype
    )
    rows = (
        (shape.batch, shape.kv_len)
        if shape.page_size == 0
        else (shape.batch * shape.kv_len // shape.page_size, shape.page_size)
    )
    size = (*rows, shape.kv_heads, shape.head_dim)
    k = torch.randn(size, generator=own, device=device, dtype=dtype)
    v = torch.randn(size, generator=own, device=device, dtype=dtype)
    local = Lengths.parse(lengths).local(shape, rank)
    held = torch.tensor(local, dtype=torch.int32, device=device)
    if seed == RAGGED_SEED:
        held = torch.randint(
            0, shape.kv_len + 1, (shape.batch,), generator=own, device=device, dtype=torch.int32
        )
        held[0] *= rank > 0
        held[2:3] = 0
    if shape.page_size == 0:
        return q, k, v, held, torch.zeros(0, dtype=torch.int32, device=device)
    table = (
        torch.randperm(rows[0], generator=own, device=device).to(torch.int32).view(shape.batch, -1)
    )
    return q, k, v, held, table


def make_output(shape: FlashDecode, device: Any = "cpu") -> torch.Tensor:
    """An empty output [batch, own heads, head_dim] in the shape's dtype."""
    import torch

    dtype = torch_dtype(shape.dtype)
    return torch.empty(shape.batch, shape.own_heads, shape.head_dim, device=device, dtype=dtype)


def reference(
    shape: FlashDecode,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor,
    table: torch.Tensor,
    group: Any,
) -> torch.Tensor:
    """This rank's output [batch, own heads, head_dim] in fp32: the softmax over the tokens of all
    ranks, its largest score, its sum and the weighted values each reduced over the group; in
    float64 on the CPU, fp32 elsewhere. Zero where there is no token at all."""
    import torch
    import torch.distributed as dist

    exact = torch.float64 if q.device.type == "cpu" else torch.float32
    queries = (
        q.to(exact).view(shape.batch, shape.kv_heads, shape.group, shape.head_dim)
        * shape.head_dim**-0.5
    )
    top = torch.full(queries.shape[:-1], -torch.inf, dtype=exact, device=q.device)
    for index, keys, _ in _parts(shape, k, v, lengths, table):
        top[index] = torch.maximum(
            top[index], torch.einsum("hgd,nhd->hgn", queries[index], keys.to(exact)).amax(-1)
        )
    dist.all_reduce(top, dist.ReduceOp.MAX, group=group)
    total, out = torch.zeros_like(top), torch.zeros_like(queries)
    for index, keys, values in _parts(shape, k, v, lengths, table):
        weights = torch.exp(
            torch.einsum("hgd,nhd->hgn", queries[index], keys.to(exact)) - top[index].unsqueeze(-1)
        )
        total[index] += weights.sum(-1)
        out[index] += torch.einsum("hgn,nhd->hgd", weights, values.to(exact))
    dist.all_reduce(total, group=group)
    dist.all_reduce(out, group=group)
    result = torch.where(total.unsqueeze(-1) > 0, out / total.unsqueeze(-1), 0.0).view(q.shape)
    first = dist.get_rank(group) * shape.own_heads if shape.output == "heads" else 0
    return result[:, first : first + shape.own_heads].to(torch.float32)


def _parts(
    shape: FlashDecode, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor, table: torch.Tensor
) -> Any:
    """Each sequence's index, and keys and values [tokens, kv_heads, head_dim] of up to TOKENS of
    its tokens, in order."""
    import torch

    for index, length in enumerate(lengths.tolist()):
        for start in range(0, length, TOKENS):
            tokens = torch.arange(start, min(start + TOKENS, length), device=k.device)
            if shape.page_size:
                pages, inside = (
                    table[index, tokens // shape.page_size].long(),
                    tokens % shape.page_size,
                )
                yield index, k[pages, inside], v[pages, inside]
            else:
                yield (
                    index,
                    k[index, start : start + len(tokens)],
                    v[index, start : start + len(tokens)],
                )


def tolerance(shape: FlashDecode) -> float:
    """Largest admissible norm(out - reference) / norm(reference) of a head: one rounding of the
    result to its dtype and one of each weight, both by at most half a unit in the last place, 2^-11
    for fp16 and 2^-8 for bf16 (IEEE 754, bfloat16).

    Roundings of weights are independent, so that their sum errs by less than one of them; what is
    left of it is for fp32 sums.
    """
    return 2 * ROUNDING[shape.dtype]
