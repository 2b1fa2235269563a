"""Shapes parse, print, and refuse what does not fit with both numbers."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftune.kernels.all_gather_gemm import SHAPE_SETS, AllGatherGemm, paper
from tftune.kernels.core.registry import operation
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
    assert (shape.key == other.key) == (shape == other)
    assert pickle.loads(pickle.dumps(shape)).key == shape.key
    assert shape.key == ("all_gather_gemm", *shape.to_dict().values())
    assert replace(shape, n=7).key != replace(shape, n=8).key


@given(shapes)
def test_sizes_add_up(shape: AllGatherGemm) -> None:
    assert shape.shard_rows * shape.shard_columns * shape.world == shape.m * shape.k
    assert shape.shard_bytes * shape.world == shape.gathered_bytes
    assert shape.flops == 2 * shape.m * shape.n * shape.k


def test_spaces_and_defaults() -> None:
    shape = AllGatherGemm.parse(" m=64, n=3584,k=8192,world=8 ")
    assert shape == AllGatherGemm(64, 3584, 8192, 8, "fp16", "k", "kn")
    assert str(AllGatherGemm(64, 3584, 8192, 8, shard="m")) == "m=64,n=3584,k=8192,world=8,shard=m"
    assert shape.family == replace(shape, m=128).family != replace(shape, k=4096).family


GEMM, SUM, DECODE, MERGE, PREFILL = (
    operation(name).shape
    for name in (
        "all_gather_gemm",
        "all_reduce",
        "flash_decode",
        "merge_attention",
        "flash_prefill",
    )
)
OWN = "run the engine's own attention over this"


@pytest.mark.parametrize(
    ("kind", "changed", "sentence"),
    [
        (GEMM, {"k": 8190}, "k=8190 must be divisible by world=8"),
        (GEMM, {"m": 63, "shard": "m"},
            "m=63 must be divisible by world=8 where A is sharded along M"),
        (GEMM, {"m": 0}, "m=0 must be an integer of at least 1"),
        (GEMM, {"m": "x"}, "m='x' must be an integer of at least 1"),
        (GEMM, {"m": True}, "m=True must be an integer"),
        (GEMM, {"dtype": "fp8"}, "dtype='fp8' is not one of fp16, bf16"),
        (GEMM, {"b_layout": "tn"}, "b_layout='tn' is not one of kn, nk"),
        (GEMM, {"rows": 3},
            "no shape field 'rows'; it has m, n, k, world, dtype, shard, b_layout, operands"),
        (SUM, {"n": 100}, "n=100 must be a multiple of 8"),
        (SUM, {"n": 32_768, "norm": "rms"}, "n=32768 must be at most 16384"),
        (SUM, {"norm": "layer"}, "none, rms"),
        (DECODE, {"head_dim": 96}, "one of 64, 128, 256; run the engine's own"),
        (DECODE, {"head_dim": 512}, f"head_dim=512 is not one of 64, 128, 256; {OWN}"),
        (DECODE, {"q_heads": 48, "kv_heads": 1}, f"kv_heads=1; {OWN}"),
        (DECODE, {"q_heads": 60}, "q_heads=60 must be 1 to 16 times kv_heads=8"),
        (DECODE, {"q_heads": 136}, "q_heads=136 must be 1 to 16 times kv_heads=8"),
        (DECODE, {"output": "heads", "world": 3}, "q_heads=64 must be divisible by world=3"),
        (DECODE, {"page_size": 3}, "kv_len=8192 must be whole pages of page_size=3"),
        (DECODE, {"page_size": -1}, "page_size=-1 must be an integer of at least 0"),
        (DECODE, {"output": "some"}, "output='some' is not one of all, heads"),
        (MERGE, {"head_dim": 96}, "not one of 64, 128, 256, 512; pad rows of o"),
        (MERGE, {"heads": 9}, "heads=9 must be divisible by world=8"),
        (MERGE, {"base": "10"}, "base='10' is not one of e, 2"),
        (PREFILL, {"kv_heads": 3}, "multiple of kv_heads=3"),
        (PREFILL, {"head_dim": 56}, "one of 64, 128; call torch.nn"),
        (PREFILL, {"world": 2}, "world=2 must be 1"),
        (PREFILL, {"causal": "maybe"}, "yes, no"),
    ],
)  # fmt: skip
def test_a_shape_that_cannot_be_is_refused(
    kind: type[Shape], changed: dict[str, Any], sentence: str
) -> None:
    """What differs from the shape that help shows."""
    with pytest.raises(ValueError, match=sentence):
        kind.from_dict(kind.parse(kind.example()).to_dict() | changed)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("m=1,n=1", r"lacks k, world, as in 'm=64,n=3584,k=8192,world=8'"),
        ("m=1,m=2", r"names 'm' twice"),
        ("m=1,64", r"'64' in the shape .* is not written as field=value"),
        ("m=x,n=1,k=8,world=8", r"m='x' must be an integer of at least 1"),
    ],
)
def test_text_that_is_no_shape_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        AllGatherGemm.parse(text)


def test_the_paper_set() -> None:
    assert SHAPE_SETS["paper"] is paper
    assert [shape.m for shape in paper()] == [2**doublings for doublings in range(14)]
    assert {(shape.n, shape.k, shape.world) for shape in paper()} == {(3584, 8192, 8)}
    assert paper(shard="m")[0].m == 8


def test_the_base_names_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="Shape does not name its family"):
        _ = Shape().family
    with pytest.raises(NotImplementedError, match="Shape has no example"):
        Shape.example()
