"""Features: named, explained, finite for any shape, and those of the operation's own folder."""

from __future__ import annotations

import math

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.registry import OPS
from tftune.models import features


@pytest.mark.parametrize("op", OPS)
def test_every_feature_has_a_name_and_a_meaning(op: str) -> None:
    assert features.names(op) == tuple(features.meanings(op))
    assert all(len(meaning) > 3 for meaning in features.meanings(op).values())


def test_vector_follows_the_names() -> None:
    shape = AllGatherGemm(m=64, n=3584, k=8192, world=8, shard="m")
    values = dict(zip(features.names(shape.op), features.vector(shape.op, shape), strict=True))
    assert values["m"] == 64 and values["world"] == 8 and values["shard_kb"] == 8 * 8192 * 2 / 1024
    assert (values["small_tiles"], values["large_tiles"], values["weights_mb"]) == (28, 14, 3584 * 8192 * 2 / 2**20)


def test_every_shape_of_the_paper_differs_and_is_finite() -> None:
    vectors = [features.vector("all_gather_gemm", shape) for shape in paper()]
    assert len(set(vectors)) == len(vectors) and all(math.isfinite(value) for vector in vectors for value in vector)


def test_a_shape_of_another_operation() -> None:
    with pytest.raises(ValueError, match=r"belongs to all_gather_gemm, not to flash_decode"):
        features.vector("flash_decode", AllGatherGemm(m=1, n=1, k=2, world=2))
