"""Tensors of more than 2^31 elements: no kernel computes an offset in 32 bits (iris #415)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from draws import draw
from far_memory import FarMemory, FarTensor

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import CONTROL_BYTES, Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.merge_attention import MergeAttention

DRAWS, EACH = 2000, 2
"""Configs drawn of a variant, and of those that a shape takes, how many run."""
ELEMENTS, FEW = 1 << 31, 1 << 24
"""So many elements must be passed by each config, but for a few in front of the last tile."""
WORLD = 2
QUICK = ("gather_k", "scatter_square", "merge", "reduce_sum")
"""Shapes of different kernels that take about a second."""
M, N, K = 1 << 18, 1 << 18, 1 << 15
BF16 = {"dtype": "bf16"}
SHAPES: dict[str, Shape] = {
    "gather_k": AllGatherGemm(1 << 19, N, 1 << 14, WORLD),
    "gather_k_tall": AllGatherGemm(1 << 19, 256, 1 << 14, WORLD),
    "gather_m": AllGatherGemm(1 << 19, N, 1 << 14, WORLD, "bf16", "m", "nk"),
    "gather_m_tall": AllGatherGemm(1 << 19, 256, 1 << 14, WORLD, "bf16", "m"),
    "gather_m_wide": AllGatherGemm(1 << 15, 256, 1 << 18, WORLD, "bf16", "m"),
    "scatter": GemmReduceScatter(M, N, K, WORLD, **BF16, b_layout="nk"),
    "scatter_tall": GemmReduceScatter(M, 256, K, WORLD, **BF16, b_layout="kn"),
    "scatter_flat": GemmReduceScatter(256, N, K, WORLD, **BF16, b_layout="nk"),
    "scatter_square": GemmReduceScatter(1 << 17, 1 << 16, 128, WORLD, **BF16, b_layout="nk"),
    "gemm_reduce_tall": GemmAllReduce(M, 256, K, WORLD, **BF16, b_layout="kn"),
    "gemm_reduce_flat": GemmAllReduce(16, N, K, WORLD, **BF16, b_layout="nk"),
    "gemm_reduce_square": GemmAllReduce(1 << 16, 1 << 16, 128, WORLD, **BF16, b_layout="nk"),
    "reduce_sum": AllReduce(M, 1 << 14, WORLD, "bf16"),
    "reduce_norm": AllReduce(M, 1 << 14, WORLD, "bf16", "rms"),
    "decode": FlashDecode(256, 64, 8, 128, 1 << 15, WORLD),
    "decode_pages": FlashDecode(256, 64, 8, 128, 1 << 15, WORLD, "bf16", "heads", 16),
    "decode_parts": FlashDecode(1 << 17, 128, 8, 128, 1 << 10, WORLD),
    "decode_long": FlashDecode(1, 8, 8, 128, 1 << 22, WORLD),
    "prefill": FlashPrefill(4, 1 << 17, 64, 64, 128, **BF16),
    "merge": MergeAttention(1 << 12, 64, 128, WORLD, "bf16"),
}
"""Shapes of which an operand, a buffer or a result has more than 2^31 elements."""
SMALL = {
    "all_reduce.one_shot_ll", "all_reduce.one_shot_lamport", "gemm_all_reduce.one_shot_ll",
    "merge_attention.one_shot_ll",
}  # fmt: skip
"""Variants whose rules keep every offset below: their words lie in a mailbox."""


def operands(shape: Any, memory: FarMemory) -> tuple[FarTensor, ...]:
    """The operands of one rank, as its host function's plan takes them."""
    make = memory.tensor
    if shape.op == "all_gather_gemm":
        a = make("a", (shape.shard_rows, shape.shard_columns), 2)
        return a, make("b", (shape.n, shape.k), 2), make("c", (shape.m, shape.n), 2)
    if shape.op in ("gemm_reduce_scatter", "gemm_all_reduce"):
        rows = shape.m // (shape.world if shape.op == "gemm_reduce_scatter" else 1)
        a, b = make("a", (shape.m, shape.inner), 2), make("b", (shape.n, shape.inner), 2)
        return a, b, make("c", (rows, shape.n), 2)
    if shape.op == "all_reduce":
        size = shape.m, shape.n
        if not shape.normed:
            return make("x", size, 2), make("out", size, 2)
        named = make("x", size, 2), make("residual", size, 2), make("weight", size[1:], 2)
        return *named, make("out", (2, *size), 2)
    if shape.op == "flash_prefill":
        heads = (shape.q_heads, shape.kv_heads, shape.kv_heads, shape.q_heads)
        names = zip(("q", "k", "v", "out"), heads, strict=True)
        return tuple(
            make(name, (shape.batch, shape.seq_len, count, shape.head_dim), 2)
            for name, count in names
        )
    if shape.op == "merge_attention":
        apart = 1 << 21  # a slice of a wide tensor
        whole = make("o", (shape.batch, apart), 2)
        o = FarTensor(whole.address, (shape.batch, shape.heads, shape.head_dim), 2, apart)
        lse = make("lse", (shape.batch, shape.heads), 4)
        return o, lse, make("out", (shape.batch, shape.own_heads, shape.head_dim), 2)
    pages = shape.batch * shape.kv_len // (shape.page_size or 1)
    cache = (pages, shape.page_size or 1, shape.kv_heads, shape.head_dim)
    return (
        make("q", (shape.batch, shape.q_heads, shape.head_dim), 2),
        make("k", cache, 2),
        make("v", cache, 2),
        make("lengths", (shape.batch,), 4, shape.kv_len),
        make("table", (pages,), 4, pages - 1),
        make("out", (shape.batch, shape.own_heads, shape.head_dim), 2),
    )


def far(workspace: Workspace, name: str) -> dict[str, tuple[set[str], dict[str, int]]]:
    """By variant what went wrong, and how many bytes behind each operand's beginning was used."""
    import torch

    shape: Any = SHAPES[name]
    op, found = operation(shape.op), {}
    memory = FarMemory()
    memory.install()
    for config in tried(shape):
        memory.__init__()  # type: ignore[misc]
        generation = 1 << 45
        control = memory.region("control", CONTROL_BYTES)
        payload = memory.region("payload", 2 * generation)
        bases = {
            place: memory.tensor(f"{place}_bases", (WORLD,), 8, at)
            for place, at in (("control", control), ("payload", payload))
        }
        for each, at in (("control", control), ("payload", payload)):
            object.__setattr__(bases[each], "tolist", lambda at=at: [at] * WORLD)
        here = Workspace(
            WORLD - 1, WORLD, "interpreter", 16, torch.device("cpu"), None, control, payload,
            bases["control"], bases["payload"], generation, None,
        )  # fmt: skip

        def buffer(name: str, size: Any, dtype: Any, *_: Any, **__: Any) -> FarTensor:
            return memory.tensor(name, size, dtype.itemsize)

        object.__setattr__(here, "buffer", buffer)
        given = operands(shape, memory)
        op.module("host").prepare(shape, config, here)(*given)
        found[repr(config)] = memory.wrong, memory.farthest
    return found


def kernels(op: str) -> list[str]:
    """The variants with kernels."""
    return [name for name in operation(op).space.variants if not name.startswith("bsp")]


def taking(shape: Shape, variant: str) -> Iterator[Config]:
    """Configs of a variant that take the shape, drawn from the space."""
    drawn = draw(operation(shape.op).space, shape, None, variant, DRAWS)
    # Offsets of descriptors are computed by hardware.
    return (config for config in drawn if ("loads", "descriptor") not in config.knobs)


def tried(shape: Shape) -> list[Config]:
    """Some of each."""
    return [c for variant in kernels(shape.op) for c in islice(taking(shape, variant), EACH)]


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in SHAPES],
)
def test_no_offset_wraps(name: str) -> None:
    (found,) = emulated.run(1, far, name, timeout_s=240)
    assert {config: wrong for config, (wrong, _) in found.items() if wrong} == {}
    for config, (_, farthest) in found.items():
        assert max(farthest.values()) > ELEMENTS * 2 - FEW, (config, farthest)


def test_every_variant_with_kernels_has_a_far_shape() -> None:
    shapes = defaultdict[str, list[Shape]](list)
    for shape in SHAPES.values():
        shapes[shape.op].append(shape)
    without = {
        f"{op}.{variant}"
        for op, far in shapes.items()
        for variant in kernels(op)
        if not any(next(taking(shape, variant), None) for shape in far)
    }
    assert without == SMALL and len(shapes) == 7
