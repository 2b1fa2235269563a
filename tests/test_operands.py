"""Operands that do not fit are refused, however often the shape ran before."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from lone import lone

import tftune
from tftune.models.selector import fallback

A, B = torch.zeros(4, 8, dtype=torch.float16), torch.zeros(16, 8, dtype=torch.float16)


@pytest.mark.parametrize(
    ("device", "given", "sentence"),
    [
        ("cpu", dict(a=torch.zeros(8, 4).half().t()), "a must be contiguous"),
        (
            "cpu",
            dict(a=torch.zeros(36).half()[4:].view(4, 8)),
            "a begins 8 bytes behind a multiple",
        ),
        ("cpu", dict(b=B.bfloat16()), "b is torch.bfloat16"),
        ("cpu", dict(out=torch.zeros(4, 9).half()), r"out is \[4, 9\] but must be \[4, 8\]"),
        ("cuda:0", {}, "a is on cpu but the workspace is on cuda:0"),
    ],
)
def test_a_shape_that_ran_before_is_still_checked(
    monkeypatch: pytest.MonkeyPatch, device: str, given: dict[str, torch.Tensor], sentence: str
) -> None:
    """What changes from call to call: where the operands lie, and their types. Loads are 16 bytes
    wide, and a plan holds addresses of one GPU."""
    from tftune import operator, ops
    from tftune.kernels.all_gather_gemm import host

    ran, workspace, seen = lone(), lone(device=device), list[Any]()
    monkeypatch.setattr(operator, "_served", lambda shape, mode: (shape, fallback(shape)))
    monkeypatch.setattr(host, "prepare", lambda *_: lambda *call: seen.append(call))
    ops.all_gather_gemm(A, B, ran, shard="k")
    workspace.calls.update(ran.calls)
    with pytest.raises(ValueError, match=sentence):
        ops.all_gather_gemm(**{"a": A, "b": B} | given, workspace=workspace, shard="k")
    assert len(seen) == 1


def test_an_unknown_word_is_refused_with_the_known_ones() -> None:
    """Before anything is loaded, and before sizes are compared: a wrong layout is why they do not
    fit."""
    from tftune import ops

    workspace = lone()
    a, b = torch.zeros(4, 8, dtype=torch.float16), torch.zeros(24, 16, dtype=torch.float16)
    for words, sentence in (
        ({"mode": "cuda_graph"}, "mode='cuda_graph' is not one of graph, eager"),
        ({"shard": "n"}, "shard='n' is not one of k, m"),
        ({"b_layout": "NK"}, "b_layout='NK' is not one of kn, nk"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ops.all_gather_gemm(a, b, workspace, **words)
    q, k, lengths = (
        torch.zeros(2, 4, 64).half(),
        torch.zeros(2, 32, 3, 64).half(),
        torch.zeros(2, dtype=torch.int32),
    )
    for words, sentence in (
        ({"mode": "cuda_graph"}, "mode='cuda_graph' is not one of graph, eager"),
        ({"output": "head"}, "output='head' is not one of all, heads"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ops.flash_decode(q, k, k, lengths, workspace, **words)
    assert tftune._default is None


def test_layouts_that_are_left_out_are_read_off_the_sizes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where several fit they are asked for; each that is no engine's is warned of once."""
    from tftune import operator, ops
    from tftune.kernels.all_gather_gemm import host

    asked = list[tuple[str, str]]()
    monkeypatch.setattr(operator, "_served", lambda shape, mode: (shape, fallback(shape)))
    monkeypatch.setattr(
        host, "prepare", lambda shape, *_: lambda *call: asked.append((shape.shard, shape.b_layout))
    )
    workspace = {world: lone(world) for world in (1, 2)}
    a = torch.zeros(4, 8, dtype=torch.float16)

    def ran(b_sizes: tuple[int, int], world: int = 2, **words: str) -> tuple[str, str]:
        b = torch.zeros(b_sizes, dtype=torch.float16)
        for _ in range(2):
            ops.all_gather_gemm(a, b, workspace[world], **words)
        return asked.pop()

    assert ran((24, 8)) == ran((24, 8), world=1) == ran((8, 8), b_layout="nk") == ("m", "nk")
    assert ran((8, 16), shard="m", b_layout="kn") == ("m", "kn")
    assert ran((24, 16), shard="k") == ran((16, 16), shard="k", b_layout="nk") == ("k", "nk")
    assert not caplog.records
    assert ran((8, 24)) == ran((8, 24), world=1) == ("m", "kn")
    assert ran((24, 16)) == ("k", "nk") and ran((16, 24)) == ran((16, 24), shard="k") == ("k", "kn")
    assert [record.message.partition(",")[0][-9:] for record in caplog.records] == [
        "shard='m'", "shard='k'", "shard='k'",
    ]  # fmt: skip
    for sizes, words in (((8, 8), {}), ((16, 8), {}), ((16, 16), {"shard": "k"})):
        with pytest.raises(ValueError, match=r"may be shard='.*' or shard='.*'; say which"):
            ran(sizes, **words)
    with pytest.raises(ValueError, match="the gathered a has 8 columns but b has 12 rows"):
        ran((24, 12))
