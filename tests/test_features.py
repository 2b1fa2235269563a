"""Features: named, explained, finite for any shape, and those of the operation's own folder."""

from __future__ import annotations

import math

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.merge_attention import MergeAttention
from tftune.models import features

SHAPES: dict[str, Shape] = {
    "all_gather_gemm": AllGatherGemm(m=16, n=72, k=264, world=4),
    "flash_decode": FlashDecode(3, 16, 4, 64, 80, 2),
    "all_reduce": AllReduce(24, 7168, 4),
    "flash_prefill": FlashPrefill(3, 24, 8, 64, 1500),
    "gemm_reduce_scatter": GemmReduceScatter(m=16, n=72, k=264, world=4),
    "gemm_all_reduce": GemmAllReduce(m=16, n=72, k=264, world=4),
    "merge_attention": MergeAttention(3, 24, 64, 2),
}
"""A shape for each operation, whose sizes all differ."""


@pytest.mark.parametrize("op", OPS)
def test_every_feature_has_a_name_and_a_meaning_of_its_own(op: str) -> None:
    """A feature that is named as a size of the shape is that size."""
    names = features.names(op)
    meanings = [text for text, _ in operation(op).module("features").FEATURES.values()]
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
