"""The list of operations that `tftune.ops` declares: how each result's size follows."""

from __future__ import annotations

from typing import Any

import torch

from tftune import checks
from tftune.models.compatibility import log_once
from tftune.operator import Operator


def layout_of(a: Any, b: Any, workspace: Any, shard: str) -> str:
    """How B of an `all_gather_gemm` is stored where the caller does not say: by the place of K.
    "kn" is said once in a warning, since it was the default. Raises ValueError where both sizes of
    B are K. Operands that do not fit are the host's to refuse."""
    if a.dim() != 2 or b.dim() != 2:
        return "kn"
    k = a.shape[1] * (workspace.world if shard == "k" else 1)
    if b.shape[0] == b.shape[1] == k:
        raise ValueError(
            f"b of {b.shape[0]} x {b.shape[1]} may be [K, N] or [N, K]; give b_layout='nk' for the "
            "weight of nn.Linear, or b_layout='kn'"
        )
    if b.shape[1] == k:
        return "nk"
    if b.shape[0] == k and not torch.compiler.is_compiling():
        log_once("all_gather_gemm takes b as [K, N], as its sizes say; give b_layout='kn'")
    return "kn"


def _columns(a: Any, b: Any, b_layout: str) -> Any:
    """N of a GEMM."""
    if b.dim() != 2 or a.dtype is not b.dtype:
        raise ValueError(f"b is {list(b.shape)} of {b.dtype}; a is {list(a.shape)} of {a.dtype}")
    return b.shape[0 if b_layout == "nk" else 1]


def _own_heads(ranks: int, x: Any, output: str) -> Any:
    """[batch, heads of this rank, head_dim] of x, which has the heads of all ranks."""
    return x.shape[0], x.shape[1] // (ranks if output == "heads" else 1), x.shape[2]


ALL_GATHER_GEMM = Operator(
    "all_gather_gemm",
    lambda ranks, a, b, shard, b_layout: (
        a.shape[0] * (ranks if shard == "m" else 1),
        _columns(a, b, b_layout),
    ),
)
GEMM_REDUCE_SCATTER = Operator(
    "gemm_reduce_scatter",
    lambda ranks, a, b, b_layout: (a.shape[0] // ranks, _columns(a, b, b_layout)),
)
GEMM_ALL_REDUCE = Operator(
    "gemm_all_reduce",
    lambda ranks, a, b, b_layout: (a.shape[0], _columns(a, b, b_layout)),
)
ALL_REDUCE = Operator(
    "all_reduce",
    lambda ranks, x, residual, weight: x.shape if residual is None else (2, *x.shape),
    casts=False,
    arranged=lambda *operands: tuple([each for each in operands if each is not None]),
)
FLASH_DECODE = Operator(
    "flash_decode",
    lambda ranks, q, k, v, lengths, table, output: _own_heads(ranks, q, output),
    dims=3,
    instead_of_gradient="train with torch's attention",
    arranged=lambda q, k, v, lengths, table: (
        q, k, v, lengths, lengths if table is None else table,
    ),
    check_first=checks.check_first_lengths,
)  # fmt: skip
FLASH_PREFILL = Operator(
    "flash_prefill",
    lambda ranks, q, k, v, causal: q.shape,
    dims=4,
    leading=2,
    instead_of_gradient="train with torch's attention",
)
MERGE_ATTENTION = Operator(
    "merge_attention",
    lambda ranks, o, lse, output, base: _own_heads(ranks, o, output),
    dims=3,
    casts=False,
    instead_of_gradient="merge with torch.distributed's operators",
)
