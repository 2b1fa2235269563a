"""Features: named, explained, finite for any shape, and those of the operation's own folder."""

from __future__ import annotations

import math

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.shape import Shape
from tftune.models import features

SHAPES: dict[str, Shape] = {
    op: operation(op).shape.parse(text)
    for op, text in {
        "all_gather_gemm": "m=16,n=72,k=264,world=4",
        "flash_decode": "batch=3,q_heads=16,kv_heads=4,head_dim=64,kv_len=80,world=2",
        "all_reduce": "m=24,n=7168,world=4",
        "flash_prefill": "batch=3,q_heads=24,kv_heads=8,head_dim=64,seq_len=1500",
        "gemm_reduce_scatter": "m=16,n=72,k=264,world=4",
        "gemm_all_reduce": "m=16,n=72,k=264,world=4",
        "merge_attention": "batch=3,heads=24,head_dim=64,world=2",
    }.items()
}
"""A shape for each operation, whose sizes all differ."""


@pytest.mark.parametrize("op", OPS)
def test_every_feature_has_a_name_and_a_meaning_of_its_own(op: str) -> None:
    """A feature that is named as a size of the shape is that size."""
    names = features.names(op)
    meanings = [meaning for meaning, _ in operation(op).module("features").FEATURES.values()]
    assert operation(op).shape.SIZE in names and all(name.isidentifier() for name in names)
    assert all(len(text) > 3 for text in meanings)
    assert len(set(meanings)) == len(meanings) == len(names)
    for name, value in zip(names, features.vector(op, SHAPES[op]), strict=True):
        assert value == SHAPES[op].to_dict().get(name, value), name


def test_vector_follows_the_names() -> None:
    shape = AllGatherGemm(m=64, n=3584, k=8192, world=8, shard="m")
    values = dict(zip(features.names(shape.op), features.vector(shape.op, shape), strict=True))
    assert values["m"] == 64 and values["world"] == 8 and values["shard_kb"] == 8 * 8192 * 2 / 1024
    assert values["small_tiles"] == 28
    assert values["large_tiles"] == 14
    assert values["weights_mb"] == 3584 * 8192 * 2 / 2**20


def test_every_shape_of_the_paper_differs_and_is_finite() -> None:
    vectors = [features.vector("all_gather_gemm", shape) for shape in paper()]
    assert len(set(vectors)) == len(vectors)
    assert all(math.isfinite(value) for vector in vectors for value in vector)


def test_a_shape_of_another_operation() -> None:
    with pytest.raises(ValueError, match=r"belongs to all_gather_gemm, not to flash_decode"):
        features.vector("flash_decode", AllGatherGemm(m=1, n=1, k=2, world=2))
