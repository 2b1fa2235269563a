"""Plans own no memory: their buffers are the workspace's, shared by all shapes, and a day of random
sizes ends with a few times the memory of the largest."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import get_ident
from typing import Any

import pytest
import torch
from lone import lone
from planted import SHAPE

import tftune
from tftune.confirm import bench
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.runtime import plan
from tftune.kernels.runtime.compile import KernelSource
from tftune.models.selector import MEMO, Selector
from tftune.recorder import Recorder

SIZES = 10_000


def _nothing(*given: Any, **named: Any) -> None:
    pass


def held() -> int:
    """Bytes of all tensors of this process."""
    gc.collect()
    plain = (one for one in gc.get_objects() if type(one) is torch.Tensor)
    tensors = [one for one in plain if not torch._is_functional_tensor(one)]
    storages = {one.untyped_storage().data_ptr(): one.untyped_storage() for one in tensors}
    return sum(storage.nbytes() for storage in storages.values())


def layer(op: str, m: int, workspace: Workspace, mode: str) -> None:
    from tftune import ops

    a, b = torch.zeros(m, 8).half(), torch.zeros(8, 16).half()
    if op == "all_gather_gemm":
        ops.all_gather_gemm(a, b, workspace, shard="m", mode=mode)
    elif op == "all_reduce":
        ops.all_reduce(a, workspace, residual=a, weight=a[0].clone(), mode=mode)
    else:
        ops.gemm_reduce_scatter(torch.cat([a, a]), b, workspace, b_layout="kn", mode=mode)


@pytest.mark.parametrize("op", ["all_gather_gemm", "all_reduce", "gemm_reduce_scatter"])
def test_ten_thousand_sizes_keep_memory_flat(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    """BSP of every size that a day of prefill brings, in the default mode."""
    monkeypatch.setattr(torch, "matmul", _nothing)
    for name in ("all_gather_into_tensor", "reduce_scatter_tensor"):
        monkeypatch.setattr(torch.distributed, name, _nothing)
    monkeypatch.setattr(KernelSource, "compile", lambda source, target=None: None)
    monkeypatch.setattr(plan, "interpreted", lambda *given: _nothing)
    monkeypatch.setattr("tftune.kernels.all_reduce.variants.bsp._library", lambda *given: _nothing)
    monkeypatch.setattr(tftune, "_default", selector := Selector())
    workspace, dice = lone(generation_bytes=1 << 20), random.Random(5)
    sizes = [dice.randint(1, 4096) for _ in range(SIZES)]
    before, largest = held(), 2 * 4096 * 16 * 2
    for m in sizes:
        layer(op, m, workspace, "graph")
    assert held() - before <= 4 * 2 * largest
    assert len(workspace.calls) == plan.PLANS
    answers = selector._by_shape, *selector._answers.values()
    assert all(len(kept) <= MEMO for kept in answers)


def test_plans_of_one_size_share_buffers_and_growing_frees_none() -> None:
    """A captured graph holds the addresses that it was captured with."""
    workspace = lone()
    small = workspace.buffer("gathered", (4, 8), torch.float16)
    again = workspace.buffer("gathered", (2, 16), torch.bfloat16)
    assert small.data_ptr() == again.data_ptr() and again.shape == (2, 16)
    large = workspace.buffer("gathered", (4, 9), torch.float16)
    assert large.untyped_storage().nbytes() == 2 * small.untyped_storage().nbytes()
    assert workspace.buffer("gathered", (4, 8), torch.float16).data_ptr() == small.data_ptr()
    assert workspace.buffer("copied", (4, 8), torch.float16).data_ptr() != small.data_ptr()
    zeros = workspace.buffer("arrivals", (7,), torch.int32, zeros=True)
    assert not zeros.any() and [len(found) for found in workspace.buffers.values()] == [2, 1, 1]


def test_memory_is_allocated_in_another_thread_on_the_caller_s_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that it is of no pool of the caller's, and no tensor of inference mode."""
    entered: list[object] = []
    devices: list[object] = []
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(
        torch.cuda, "set_device", lambda device: devices.append((device, get_ident()))
    )
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"of {get_ident()}")
    monkeypatch.setattr(
        torch.cuda, "stream", lambda stream: nullcontext(entered.append((stream, get_ident())))
    )

    def allocate(count: int) -> torch.Tensor:
        entered.append(("allocated", get_ident()))
        return torch.empty(count, dtype=torch.uint8)

    workspace = lone(device="cuda:0")
    with torch.inference_mode():
        taken = workspace.buffer("gathered", (8,), torch.int32, allocate)
        assert workspace.buffer("gathered", (4,), torch.int32, allocate).shape == (4,)
    (stream, other), (_, thread) = entered
    assert stream == f"of {get_ident()}" and other == thread != get_ident()
    assert not taken.is_inference() and devices == [(workspace.device, thread)]
    with pytest.raises(ZeroDivisionError):
        workspace.buffer("copied", (8,), torch.int32, lambda count: 1 // 0)


def test_registered_memory_is_allocated_in_its_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of torch is the thread's that enters it."""
    events: list[tuple[str, int]] = []

    @contextmanager
    def pool(workspace: Workspace) -> Iterator[None]:
        events.append(("entered", get_ident()))
        yield
        events.append(("left", get_ident()))

    def empty(*size: Any, **options: Any) -> torch.Tensor:
        events.append(("allocated", get_ident()))
        return torch.zeros(*size, **options)

    monkeypatch.setattr(Workspace, "_registered", pool)
    monkeypatch.setattr(torch, "empty", empty)
    workspace = lone()
    known = workspace.buffer("gathered", (8,), torch.int32, registered=True)
    assert [name for name, _ in events] == ["entered", "allocated", "left"]
    assert len({thread for _, thread in events}) == 1
    assert workspace.buffer("gathered", (8,), torch.int32).data_ptr() != known.data_ptr()
    assert [name for name, _ in events] == ["entered", "allocated", "left", "allocated"]


def test_memory_that_is_missing_in_a_capture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    workspace = lone(device="cuda:0")
    workspace.buffers["gathered"] = [torch.zeros(64, dtype=torch.uint8)]
    assert workspace.buffer("gathered", (8,), torch.int32).shape == (8,)
    with pytest.raises(
        ValueError, match="needs 68 bytes for 'gathered' of which the workspace has 64; make this"
    ):
        workspace.buffer("gathered", (17,), torch.int32)


def test_what_a_capture_counts_is_one_place_for_each_shape(tmp_path: Any) -> None:
    """A plan that was dropped and made again adds no line."""
    recorder = Recorder(tmp_path / "shapes.json")
    for _ in range(3):
        recorder.counted(lambda: None, AllGatherGemm(4, 8, 16, 2), "graph")()
    assert list(recorder.calls.values()) == [3]


def split(workspace: Workspace) -> list[float]:
    """Errors, in tolerances, of calls of one shape whose parts are added up by 2 and by 4."""
    from tftune.kernels.all_gather_gemm import reference
    from tftune.ops import operators
    from tftune.tuner.bench.check import relative_error

    shape, found = AllGatherGemm(7, 40, 1024, workspace.world), []
    a, b = reference.make_inputs(shape, workspace.rank, 0)
    exact = reference.reference(shape, a, b, workspace.group)
    for parts in (2, 4, 2, 4):
        small = dict(block_m=16, block_n=32, block_k=64, rows_per_flag=16, k_per_flag=256)
        config = Config("push", **small, group_m=1, comm_programs=8, split_k=parts, num_warps=4)
        c = operators.ALL_GATHER_GEMM.call(
            (a, b), workspace, ("k", "kn"), "graph", None, config=config
        )
        found.append(relative_error(c, exact) / reference.tolerance(shape))
    return found


def test_calls_of_two_splits_share_no_counters() -> None:
    for errors in emulated.run(2, split, timeout_s=120):
        assert len(errors) == 4 and max(errors) < 1


def test_a_kernel_is_loaded_once_for_all_plans_that_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton loads a copy for each that it is asked for, and unloads none."""

    class Compiled:
        pass

    monkeypatch.setattr(KernelSource, "_compiled", lambda source, target: Compiled())
    from tftune.kernels.all_gather_gemm import host

    config = Config("push", block_m=16, block_n=32, group_m=1)
    one, other = (host.source(AllGatherGemm(m, 40, 512, 2), config, "cuda") for m in (130, 131))
    first = one.compile()
    assert other.compile() is first
    assert host.source(AllGatherGemm(130, 48, 512, 2), config, "cuda").compile() is not first


def without_room(workspace: Workspace) -> bool:
    """Whether buffers of live plans are kept where a warm-up cannot begin."""

    def full() -> None:
        raise OSError(28, "No space left on device")

    kept = workspace.buffer("words", (4,), torch.float32)
    bench.Shared.make = full  # type: ignore[method-assign, assignment]
    tftune.use(Selector())
    with pytest.raises((OSError, RuntimeError, ValueError), match="No space left"):
        tftune.warm_up([SHAPE], workspace)
    return workspace.buffer("words", (4,), torch.float32).data_ptr() == kept.data_ptr()


def test_a_warm_up_that_cannot_begin_keeps_the_buffers_of_captured_graphs() -> None:
    assert emulated.run(2, without_room) == [True, True]
