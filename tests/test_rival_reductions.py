"""Other libraries' reductions without GPUs: that torch (its gather, too) and Iris take the calls as
they are written, and that what is missing is said before anything runs."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import rival_reductions as reductions
import rival_rows
import rivals
import torch
from test_rivals import on_a_gpu

from tftune.db.trial import Failure, Measurement
from tftune.kernels.all_reduce import AllReduce, host
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.tuner.bench.worker import WorldSpec

GEMM, SUM = GemmReduceScatter(8, 16, 32, 1), AllReduce(8, 16, 1)
FLASHINFER_ARGUMENTS = """
allreduce_in world_size world_rank token_num hidden_dim workspace_ptrs launch_with_pdl
trigger_completion_at_end fp32_acc pattern_code use_oneshot allreduce_out residual_in residual_out
norm_out quant_out scale_out rms_gamma rms_eps scale_factor layout_code
"""
"""Those of `trtllm_allreduce_fusion` that have no default."""


TORCH_CALLS = """
from types import SimpleNamespace
import torch, torch.distributed as dist
import rival_calls, rival_reductions as reductions
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

dist.init_process_group("gloo", init_method="file:///{file}", rank=0, world_size=1)
workspace = SimpleNamespace(device=torch.device("cuda"))
def meta(*size):
    return torch.empty(size, device="meta", dtype=torch.bfloat16)
for shard in "km":
    call = rival_calls.Torch(AllGatherGemm(8, 12, 16, 1, shard=shard), workspace)
    call.into_c, c = False, meta(8, 12)
    call(meta(8, 16), meta(16, 12), c)
    print(tuple(call.results[c.data_ptr()].shape))
call = reductions.TorchReduceScatter(GemmReduceScatter(8, 16, 32, 1), workspace)
call.into_c = False
c = meta(8, 16)
call(meta(8, 32), meta(16, 32), c)
print(tuple(call.results[c.data_ptr()].shape))
call = reductions.TorchAllReduce(AllReduce(8, 16, 1), workspace)
call.into_c, x = False, meta(8, 16)
call._symmetric[x.data_ptr()] = meta(8, 16)
call(x, c)
print(tuple(call.results[c.data_ptr()].shape))
call = reductions.TorchTwoShot(AllReduce(8, 16, 1), workspace)
print(*(each.name for each in call._call.default._schema.arguments))
"""


def test_torch_takes_the_calls_as_they_are_written(tmp_path: Path) -> None:
    """Its operators without data (meta tensors), on a group of one rank: the arguments fit. The
    two-shot one has no form for meta tensors, but a schema."""
    code = TORCH_CALLS.format(file=str(tmp_path / "rendezvous").lstrip("/"))
    folder = Path(reductions.__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120
    )
    told = ["(8, 12)"] * 2 + ["(8, 16)"] * 2 + ["input reduce_op group_name"]
    assert done.stdout.splitlines() == told, done.stderr


def test_a_library_that_lacks_the_call_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotImplementedError, match=r"has no torch\.ops\.symm_mem\.four_shot"):
        reductions.torch_operator("four_shot")
    with pytest.raises(NotImplementedError, match=r"iris\.ops cannot be imported here"):
        monkeypatch.setitem(sys.modules, "iris.ops", None)
        reductions.iris_operation("matmul_all_reduce")
    monkeypatch.setitem(sys.modules, "iris", iris := ModuleType("iris"))
    monkeypatch.setitem(sys.modules, "iris.ops", ModuleType("iris.ops"))
    monkeypatch.setattr(iris, "ops", sys.modules["iris.ops"], raising=False)
    with pytest.raises(NotImplementedError, match=r"this Iris has no iris\.ops\.matmul_all_reduce"):
        reductions.iris_operation("matmul_all_reduce")


@pytest.mark.parametrize(
    ("kind", "shape", "said"),
    [
        (reductions.TorchAllReduce, AllReduce(8, 16, 2, norm="rms"), "no residual"),
        (reductions.TorchTwoShot, AllReduce(8, 16, 2, "fp16"), "bf16 and fp32, not fp16"),
        (reductions.IrisReduceScatter, GemmReduceScatter(256, 64, 64, 2), "of 512, not 256"),
    ],
)
def test_what_a_rival_does_not_take_is_said_before_anything_runs(
    kind: Any, shape: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reductions, "iris_operation", lambda name: None)
    with pytest.raises(NotImplementedError, match=said):
        kind(shape, on_a_gpu(owner=(None,)))
    with pytest.raises(NotImplementedError, match="it needs GPUs"):
        kind(shape, SimpleNamespace(device=torch.device("cpu")))


@pytest.mark.parametrize(
    ("kind", "shape", "rows"),
    [
        (reductions.IrisReduceScatter, GemmReduceScatter(512, 8, 16, 2), slice(256, 512)),
        (reductions.IrisReduction, GemmAllReduce(3, 8, 16, 2), slice(0, 3)),
    ],
)
def test_iris_reduces_in_the_heap_and_keeps_its_buffers(
    kind: Any, shape: Any, rows: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's rows of what Iris left there are copied out on checks and kept on the clock."""
    given: list[Any] = []

    def fused(context: Any, c: Any, a: Any, b: Any, workspace: Any) -> str:
        given.append(workspace)
        c.copy_(a.float() @ b.float())
        return "buffers"

    monkeypatch.setattr(reductions, "iris_operation", lambda name: fused)
    context = SimpleNamespace(
        zeros=lambda *size, dtype: torch.zeros(*size, dtype=dtype), barrier=lambda: None
    )
    a, b = torch.randn(shape.m, 8), torch.randn(8, 8)
    c = torch.empty(rows.stop - rows.start, 8)
    call = kind(shape, on_a_gpu(owner=(context,)))
    call.stage([(a, b)])
    call(a, b, c)
    assert torch.equal(c, (a @ b.t())[rows]) and not call.captured
    call.into_c = False
    call(a, b, c.zero_())
    assert not c.any() and given == [None, "buffers"]
    call.deliver(c)
    assert torch.equal(c, (a @ b.t())[rows])


@pytest.mark.parametrize("norm", ["none", "rms"])
def test_flashinfer_adds_up_and_normalises_into_the_result(
    norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its buffers are made once; with a norm it writes both halves of the result. The arguments are
    those of FlashInfer 0.6.12."""
    made: list[Any] = []

    class Module:
        AllReduceFusionPattern = SimpleNamespace(kAllReduce=0, kARResidualRMSNorm=1)

        @staticmethod
        def trtllm_create_ipc_workspace_for_all_reduce_fusion(*sizes: int, group: Any) -> Any:
            made.append(sizes)
            return [], "pointers"

        @staticmethod
        def trtllm_allreduce_fusion(**given: Any) -> None:
            assert given.keys() == set(FLASHINFER_ARGUMENTS.split())
            assert given["workspace_ptrs"] == "pointers" and given["use_oneshot"]
            if given["pattern_code"] == 0:
                given["allreduce_out"].copy_(given["allreduce_in"])
            else:
                given["residual_out"].copy_(given["allreduce_in"] + given["residual_in"])
                given["norm_out"].copy_(given["residual_out"] * given["rms_gamma"])

    monkeypatch.setattr(reductions, "flashinfer_module", Module)
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
    shape = AllReduce(4, 8, 2, norm=norm)
    call = reductions.FlashInfer(shape, on_a_gpu())
    x, residual, weight = torch.randn(4, 8), torch.randn(4, 8), torch.randn(8)
    given = (x,) if norm == "none" else (x, residual, weight)
    out = torch.empty(host.result_size(shape))
    for _ in range(2):
        call.stage([(*given, out)])
        call(*given, out)
    assert made == [(1, 2, 4, 8)]
    added = x + residual
    assert torch.equal(out, x if norm == "none" else torch.stack((added * weight, added)))


def test_flashinfer_is_not_asked_where_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its buffers might be mapped for multicast, unless torch is told not to."""
    shape = AllReduce(8, 16, 2)
    monkeypatch.setitem(sys.modules, "flashinfer.comm.trtllm_ar", None)
    with pytest.raises(NotImplementedError, match="on 2, 4 or 8 ranks, not 3"):
        reductions.FlashInfer(AllReduce(8, 16, 3), on_a_gpu())
    monkeypatch.delenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", raising=False)
    with pytest.raises(NotImplementedError, match="set TORCH_SYMM_MEM_DISABLE_MULTICAST=1"):
        reductions.FlashInfer(shape, on_a_gpu())
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
    with pytest.raises(NotImplementedError, match="FlashInfer is not installed"):
        reductions.FlashInfer(shape, on_a_gpu())


def test_what_waits_on_the_host_is_not_captured() -> None:
    """Said before any rank is asked, so that no capture is left half done."""
    bench = rivals.Bench(WorldSpec(Path(), 2, True, 1 << 20, 0), math.inf)
    found = bench.alone(GEMM, Config("iris"), "graph")
    assert isinstance(found, Failure)
    assert (found.kind, found.text) == (
        "invalid",
        "each call waits on the host: no graph can hold it",
    )


def test_rows_of_another_operation_come_back_and_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = Measurement((10.0,) * 3, (20.0,) * 3, 1e-3)
    rows = [
        rival_rows.Row(SUM, "graph", "bsp", Config("bsp", form="library"), ours),
        rival_rows.Row(SUM, "graph", "tftune", Config("two_shot"), ours),
        rival_rows.Row(SUM, "graph", "torch_one_shot", None, Failure("invalid", "none here")),
    ]
    assert [rival_rows.Row.from_json(row.to_json()) for row in rows] == rows
    rival_rows.show(rows, "h200x2")
    shown = capsys.readouterr().out
    assert "\nall_reduce on h200x2, graph: n=16, world=1" in shown
    assert "RESULT rivals op=all_reduce target=h200x2" in shown and "none here" in shown


def test_every_form_of_bsp_of_the_gpu_is_tried() -> None:
    """The strongest counts, torch's over symmetric memory among them."""
    from tftune.kernels.core.chips import H200

    tried: list[Config] = []

    class Bench:
        chip = H200

        def alone(self, shape: Any, config: Config, mode: str) -> Failure:
            tried.append(config)
            return Failure("crash", "no GPU")

    shape = GemmAllReduce(16, 8192, 28672, 8)
    rivals.compare(Bench(), shape, "graph", Config("push"), [], 3)  # type: ignore[arg-type]
    assert {config["form"] for config in tried} == {"library", "one_shot", "two_shot"}
