"""The list of operations that `tftune.ops` declares: how each result's size follows."""

from __future__ import annotations

from typing import Any

import torch

from tftune import checks
from tftune.models.compatibility import log_once
from tftune.operator import Operator


def layout_of(a: Any, b: Any, workspace: Any, shard: str, b_layout: str) -> tuple[str, str]:
    """How A is sharded and B is stored where the caller does not say: as their sizes allow. One
    rank shards along M. A layout that no engine has is said once in a warning, since it was the
    default. Raises ValueError where several layouts fit. Operands that do not fit are the host's to
    refuse."""
    if (shard and b_layout) or a.dim() != 2 or b.dim() != 2:
        return shard or "m", b_layout or "nk"
    own, whole = a.shape[1], a.shape[1] * workspace.world
    fitting = [
        (along, stored)
        for along, k in (("m", own), ("k", whole))
        for stored, there in (("nk", b.shape[1]), ("kn", b.shape[0]))
        if k == there and shard in ("", along) and b_layout in ("", stored)
    ]
    if workspace.world == 1 and not shard:
        fitting = [each for each in fitting if each[0] == "m"]
    said = [f"shard={along!r}, b_layout={stored!r}" for along, stored in fitting]
    if len(fitting) > 1:
        raise ValueError(
            f"a of {a.shape[0]} x {a.shape[1]} and b of {b.shape[0]} x {b.shape[1]} on "
            f"{workspace.world} ranks may be {' or '.join(said)}; say which"
        )
    if not fitting:
        return shard or "m", b_layout or "nk"
    along, stored = fitting[0]
    unusual = (not shard and along == "k") or (not b_layout and stored == "kn")
    if unusual and not torch.compiler.is_compiling():
        log_once(f"all_gather_gemm takes {said[0]}, as the sizes of its operands say; give them")
    return along, stored


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
    anywhere=("lse",),
    casts=False,
    instead_of_gradient="merge with torch.distributed's operators",
)
