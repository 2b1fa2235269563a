"""Shapes parse, print, and refuse what does not fit with both numbers."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftune.kernels.all_gather_gemm import SHAPE_SETS, AllGatherGemm, paper
from tftune.kernels.core.shape import Shape

sizes = st.integers(1, 10_000)
shapes = st.builds(
    lambda m, n, k, world, *rest: AllGatherGemm(m * world, n, k * world, world, *rest),
    sizes, sizes, sizes, st.integers(1, 16), st.sampled_from(["fp16", "bf16"]),
    st.sampled_from("km"), st.sampled_from(["kn", "nk"]),
)  # fmt: skip


@given(shapes)
def test_the_string_and_the_mapping_are_the_shape(shape: AllGatherGemm) -> None:
    assert AllGatherGemm.parse(str(shape)) == shape == AllGatherGemm.from_dict(shape.to_dict())


@given(shapes, shapes)
def test_the_key_is_equal_where_shapes_are(shape: AllGatherGemm, other: AllGatherGemm) -> None:
    """In another process, too, where text hashes otherwise: the key is a tuple of plain values, and
    no field."""
    assert (shape.key == other.key) == (shape == other) and pickle.loads(
        pickle.dumps(shape)
    ).key == shape.key
    assert (
        shape.key == ("all_gather_gemm", *shape.to_dict().values())
        and replace(shape, n=7).key != replace(shape, n=8).key
    )


@given(shapes)
def test_sizes_add_up(shape: AllGatherGemm) -> None:
    assert shape.shard_rows * shape.shard_columns * shape.world == shape.m * shape.k
    assert shape.shard_bytes * shape.world == shape.gathered_bytes
    assert shape.flops == 2 * shape.m * shape.n * shape.k


def test_spaces_and_defaults() -> None:
    shape = AllGatherGemm.parse(" m=64, n=3584,k=8192,world=8 ")
    assert shape == AllGatherGemm(64, 3584, 8192, 8, "fp16", "k", "kn")
    assert str(AllGatherGemm(64, 3584, 8192, 8, shard="m")) == "m=64,n=3584,k=8192,world=8,shard=m"
    assert (
        shape.family
        == AllGatherGemm(128, 3584, 8192, 8).family
        != AllGatherGemm(64, 3584, 4096, 8).family
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("m=64,n=3584,k=8190,world=8", r"k=8190 must be divisible by world=8"),
        (
            "m=63,n=3584,k=8192,world=8,shard=m",
            r"m=63 must be divisible by world=8 where A is sharded along M",
        ),
        ("m=0,n=1,k=8,world=8", r"m=0 must be an integer of at least 1"),
        ("m=x,n=1,k=8,world=8", r"m='x' must be an integer of at least 1"),
        ("m=1,n=1,k=8,world=8,dtype=fp8", r"dtype='fp8' is not one of fp16, bf16"),
        ("m=1,n=1,k=8,world=8,b_layout=tn", r"b_layout='tn' is not one of kn, nk"),
        (
            "m=1,n=1,k=8,world=8,rows=3",
            r"no shape field 'rows'; it has m, n, k, world, dtype, shard, b_layout, operands",
        ),
        ("m=1,n=1", r"lacks k, world, as in 'm=64,n=3584,k=8192,world=8'"),
        ("m=1,m=2", r"names 'm' twice"),
        ("m=1,64", r"'64' in the shape .* is not written as field=value"),
    ],
)
def test_bad_shapes_say_why(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        AllGatherGemm.parse(text)


def test_a_size_is_an_integer() -> None:
    with pytest.raises(ValueError, match="m=True must be an integer"):
        AllGatherGemm(True, 1, 8, 8)


def test_the_paper_set() -> None:
    assert SHAPE_SETS["paper"] is paper
    assert [shape.m for shape in paper()] == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        512,
        1024,
        2048,
        4096,
        8192,
    ]
    assert {(shape.n, shape.k, shape.world) for shape in paper()} == {(3584, 8192, 8)}
    assert paper(shard="m")[0].m == 8


def test_the_base_names_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="Shape does not name its family"):
        _ = Shape().family
    with pytest.raises(NotImplementedError, match="Shape has no example"):
        Shape.example()
