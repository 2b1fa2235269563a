"""An argument of the wrong kind: one sentence, which names what was given and what is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from lone import lone

import tftune
from tftune import ops
from tftune.kernels.comm.operand_heap import OperandHeap
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation

HALF = torch.zeros(4, 8, dtype=torch.float16)
Q, CACHE, LENGTHS = HALF.view(2, 2, 8), HALF.view(2, 2, 1, 8), torch.zeros(2, dtype=torch.int32)
SHAPE = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
DECODED = tftune.FlashDecode(2, 4, 2, 64, 32, 2)


@pytest.fixture
def workspace() -> Workspace:
    return lone(operands=OperandHeap(torch.zeros(1 << 16, dtype=torch.uint8)))


@pytest.fixture
def ranks() -> Any:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


CALLS: dict[str, tuple[Callable[[Workspace], object], str]] = {
    "target": (lambda _: tftune.load(target=5), "target=5 is a int; give the name of a target"),
    "url": (lambda _: tftune.load(url=5), "url=5 is a int; give an address"),
    "stage": (lambda _: tftune.load(stage=5, target="h200x8"), "stage=5 is a int; give the name"),
    "path": (lambda _: tftune.load(5), "path=5 is a int; give a file, a folder, or several"),
    "paths": (lambda _: tftune.load([5]), "path=5 is a int; give a file"),
    "group": (lambda _: tftune.bind(5), "group=5 is a int; give a group of torch.distributed"),
    "swap": (lambda _: tftune.swap("tp"), "group='tp' is a str; give a group of torch"),
    "pass": (lambda _: tftune.compile_pass(5), "group=5 is a int; give a group of torch"),
    "create": (lambda _: Workspace.create(5, 4096), "group=5 is a int; give a group of torch"),
    "bytes": (lambda _: Workspace.create(None, "4K"), "payload_bytes='4K' is a str; give a number"),
    "warm_up": (lambda w: tftune.warm_up(5, w), "shapes=5 is a int; give a sequence of shapes"),
    "mode": (lambda _: tftune.select_kernel(SHAPE, []), r"mode=\[\] is not one of graph, eager"),
    "dtype": (lambda w: w.empty((4, 8), "bf16"), "dtype='bf16' is a str; give one of torch"),
    "size": (lambda w: w.empty(5, HALF.dtype), "size=5 is a int; give sizes of at least 1"),
    "no row": (lambda w: w.empty((0, 4), HALF.dtype), r"size=\(0, 4\) must be integers of at"),
    "minus": (lambda w: w.empty((2, -1), HALF.dtype), r"size=\(2, -1\) must be integers of at"),
    "scalar": (lambda w: w.empty((), HALF.dtype), r"size=\(\) must be integers of at least 1"),
    "eps": (lambda w: ops.all_reduce(HALF, w, residual=HALF, weight=HALF[0].clone(), eps="1e-5"),
            "eps='1e-5' is a str; give a number"),
    "a": (lambda w: ops.all_gather_gemm([[1.0]], HALF, w), r"a=\[\[1.0\]\] is a list"),
    "b": (lambda w: ops.gemm_all_reduce(HALF, None, w), "b=None is a NoneType; give"),
    "gathered": (lambda w: ops.all_gather_gemm_with_gathered(HALF, [], w), r"b=\[\] is a list"),
    "scattered": (lambda w: ops.gemm_reduce_scatter((), HALF, w), r"a=\(\) is a tuple"),
    "workspace": (lambda _: ops.all_gather_gemm(HALF, HALF, None), "give what tftune.Workspace.c"),
    "x": (lambda w: ops.all_reduce([1], w), r"x=\[1\] is a list; give a torch.Tensor"),
    "residual": (lambda w: ops.all_reduce(HALF, w, residual=[1], weight=HALF[0]),
                 r"residual=\[1\] is a list; give a torch.Tensor, or None"),
    "lengths": (lambda w: ops.flash_decode(Q, CACHE, CACHE, [2, 2], w), r"lengths=\[2, 2\] is a"),
    "told": (lambda w: ops.flash_decode(Q, CACHE, CACHE, LENGTHS, w, facts=7), "facts=7 is a int"),
    "prefill": (lambda w: ops.flash_prefill(CACHE, CACHE, 3, w), "v=3 is a int; give a torch.Tens"),
    "lse": (lambda w: ops.merge_attention(Q, 0.5, w), "lse=0.5 is a float; give a torch.Tensor"),
    "out": (lambda w: ops.flash_prefill(CACHE, CACHE, CACHE, w, out=[]), r"out=\[\] is a list"),
}  # fmt: skip


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("name", CALLS)
def test_what_is_of_another_kind_is_named(
    name: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tftune, "_default", tftune.load(target="h200x8"))
    for op in ("flash_prefill", "merge_attention", "flash_decode"):
        host = operation(op).module("host")
        monkeypatch.setattr(host, "shape_of", lambda *given: DECODED)
        monkeypatch.setattr(host, "prepare", lambda *given: lambda *operands: None)
    call, sentence = CALLS[name]
    with pytest.raises((TypeError, ValueError), match=sentence) as raised:
        call(workspace)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("ranks")
def test_bind_answers_bsp_for_a_target_of_another_kind(caplog: pytest.LogCaptureFixture) -> None:
    """A rank that raised alone would leave the others waiting."""
    assert tftune.bind(target=5).bsp_only is not None  # type: ignore[arg-type]
    assert "target=5 is a int; give the name of a target" in caplog.text


def test_an_error_within_a_call_stays_as_it_is(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> Any:
        raise RuntimeError("the GPU is gone")

    monkeypatch.setattr(operation("gemm_all_reduce").module("host"), "shape_of", broken)
    with pytest.raises(RuntimeError, match="the GPU is gone"):
        ops.gemm_all_reduce(HALF, HALF, workspace)
    with pytest.raises(TypeError, match=r"missing .*'workspace'"):
        ops.gemm_all_reduce(HALF, HALF)  # type: ignore[call-arg]
