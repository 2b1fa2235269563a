"""The host function refuses what does not fit, naming it and both numbers; its plans are made
once."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lone import lone

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.host import (
    payload_bytes,
    placed,
    prepare,
    programs,
    shape_of,
    source,
)
from tftune.kernels.all_gather_gemm.reference import make_inputs, tolerance
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm.workspace import Workspace, check_ranks
from tftune.kernels.core.chips import H200
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.operands import check_place

PUSH = Config(
    "push", block_m=16, block_n=32, group_m=1, num_warps=4, rows_per_flag=16, k_per_flag=256
)
FUSED = tuple(variant for variant in SPACE.variants if not variant.startswith("bsp"))


@pytest.fixture
def workspace() -> Workspace:
    """One of two ranks, without a group: good for everything that is refused before a launch."""
    return lone(units=16, bases=torch.zeros(2, dtype=torch.int64))


def half(*size: int) -> torch.Tensor:
    return torch.zeros(*size, dtype=torch.float16)


@pytest.mark.parametrize(
    ("a", "b", "options", "sentence"),
    [
        (torch.zeros(4, 8), half(16, 8), {},
            r"a is torch.float32; all_gather_gemm takes torch.float16 and torch.bfloat16"),
        (half(4), half(16, 8), {}, r"must have 2 dimensions, not 1 and 2"),
        (half(4, 8), half(24, 8), {}, r"gathered a has 16 columns but b has 24 rows"),
        (half(4, 8), half(16, 8), {"shard": "m"},
            r"gathered a has 8 columns but b has 16 rows \(shard='m'"),
        (half(4, 8), half(16, 24), {"b_layout": "nk"},
            r"gathered a has 16 columns but b has 24 rows"),
        (half(4, 8), half(16, 8).bfloat16(), {},
            r"b is torch.bfloat16 on cpu but a is torch.float16 on cpu"),
        (half(8, 4).t(), half(16, 8), {}, r"a must be contiguous; pass a.contiguous\(\)"),
        (half(33)[1:].view(4, 8), half(16, 8), {},
            r"a begins 2 bytes behind a multiple of 16.*pass a.clone\(\)"),
        (half(4, 8), half(8, 8), {"shard": "n"}, r"shard='n' is not one of k, m"),
        (half(4, 8), half(16, 8), {"b_layout": "tn"}, r"b_layout='tn' is not one of kn, nk"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit(
    workspace: Workspace, a: torch.Tensor, b: torch.Tensor, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        shape_of(a, b, workspace, **{"shard": "k", "b_layout": "kn"} | options)


def test_a_clone_is_aligned_where_contiguous_returns_the_operand_itself() -> None:
    """What the error says to pass is right, and what it said before was not."""
    shifted = half(33)[1:].view(4, 8)
    assert shifted.is_contiguous() and shifted.contiguous().data_ptr() % 16
    assert shifted.clone().data_ptr() % 16 == 0
    check_place("a", shifted.clone())
    with pytest.raises(ValueError, match=r"pass lengths.clone\(\)"):
        check_place("lengths", torch.zeros(9, dtype=torch.int32)[1:])


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        (AllGatherGemm(16, 64, 512, 4), Config("push", block_m=16)),
        (AllGatherGemm(16, 64, 512, 1), Config("bsp", form="gather")),
        (FlashDecode(1, 8, 2, 64, 48, 8), Config("bsp")),
    ],
)
def test_a_shape_of_another_world_is_refused(
    workspace: Workspace, shape: Any, config: Config
) -> None:
    """Its flags and its messages would go to ranks that are not there."""
    sentence = f"is of world={shape.world} and the workspace has 2 ranks"
    with pytest.raises(ValueError, match=sentence):
        operation(shape.op).module("host").prepare(shape, config, workspace)


def test_an_impossible_config_says_the_rule(workspace: Workspace) -> None:
    sentence = r"push\(block_k=64, .* cannot run m=16,n=64,k=512,world=2: block_m must not exceed M"
    with pytest.raises(ValueError, match=sentence):
        prepare(AllGatherGemm(16, 64, 512, 2), Config("push", block_m=32), workspace)


@pytest.mark.parametrize("columns", [33, 64, 896, 8192])
def test_both_generations_are_rows_of_one_tensor_and_never_meet(columns: int) -> None:
    """The second starts where it does for every shape; a first one as large as the workspace allows
    ends before it."""
    generation = 3 * 4096 * 11
    rows = generation // (2 * 2 * columns) // 2
    shape = AllGatherGemm(rows, 40, 2 * columns, 2)
    workspace = SimpleNamespace(payload=1 << 20, generation_bytes=generation)
    payload, generation_rows = placed(shape, workspace)
    assert payload + generation_rows * 2 * 2 * columns == workspace.payload + generation
    assert workspace.payload <= payload
    assert payload + payload_bytes(shape) <= workspace.payload + generation


def test_a_launch_is_resident() -> None:
    """Programs wait for each other, so all of a launch must fit at once: one on each unit."""
    for m in (1, 129, 8192):
        shape = AllGatherGemm(m, 3584, 8192, 8)
        for config in map(SPACE.complete, SPACE.defaults(shape, H200)):
            if config.variant in FUSED:
                assert config["comm_programs"] < programs(shape, config, H200.units) <= H200.units
    assert programs(AllGatherGemm(16, 32, 512, 2), SPACE.complete(PUSH), 132) == 16 + 1


@pytest.mark.parametrize("variant", FUSED)
def test_the_kernel_takes_exactly_its_arguments(variant: str) -> None:
    config = SPACE.complete(
        Config(variant, block_m=16, block_n=32, group_m=1, num_warps=4, rows_per_flag=16)
    )
    kernel = source(AllGatherGemm(7, 40, 512, 2), config, "cuda")
    assert set(kernel.kernel.arg_names) == set(kernel.types) | set(kernel.constants)
    assert set(kernel.divisible) <= set(kernel.types)


@pytest.mark.parametrize("loads", ["pointer", "descriptor"])
def test_a_launch_passes_addresses_and_keeps_its_scratch(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, loads: str
) -> None:
    """In the kernel's own order; the descriptor of an address is made once and keeps no operand
    alive."""
    calls: list[tuple[Any, ...]] = []
    launch = {(17, 1, 1): lambda *arguments: calls.append(arguments)}
    monkeypatch.setattr(KernelSource, "compile", lambda self: launch)
    config = Config.from_dict(PUSH.to_dict() | {"loads": loads, "block_k": 64, "split_k": 1})
    shape = AllGatherGemm(4, 32, 256, 2, b_layout="nk")
    plan = prepare(shape, config, dataclasses.replace(workspace, arch="cuda"))
    a, b, c = half(4, 128), half(32, 256), half(4, 32)
    for _ in range(2):
        plan(a, b, c)
    names = source(shape, config, "cuda").kernel.arg_names
    first, second = (dict(zip(names, call, strict=True)) for call in calls)
    operands = [first[name] for name in ("a_ptr", "b_ptr", "c_ptr")]
    assert operands == [tensor.data_ptr() for tensor in (a, b, c)]
    for name in ("parts_ptr", "arrivals_ptr", "control_bases", "payload_bases"):
        assert isinstance(first[name], int) and first[name]
    problem = first["problem"]
    assert (first["M"], first["rank"], problem.N, problem.B_IS_NK) == (4, 0, 32, True)
    descriptors = [first[name] for name in ("a_desc", "payload_desc", "b_desc")]
    if loads == "pointer":
        assert descriptors == [None, None, None]
        return
    bases = [a.data_ptr(), placed(shape, workspace)[0], b.data_ptr()]
    assert [d.base.data_ptr() for d in descriptors] == bases
    assert [(d.shape, d.strides, d.block_shape) for d in descriptors] == [
        ([4, 128], [128, 1], [16, 64]), ([8 + 4, 256], [256, 1], [16, 64]),
        ([32, 256], [256, 1], [32, 64]),
    ]  # fmt: skip
    assert second["a_desc"] is first["a_desc"] and second["b_desc"] is first["b_desc"]


def test_inputs_are_the_same_for_a_seed() -> None:
    shape = AllGatherGemm(7, 40, 66, 2, b_layout="nk")
    (a, b), (again, _), (other, _) = (
        make_inputs(shape, rank, seed) for rank, seed in ((0, 1), (0, 1), (1, 1))
    )
    assert a.shape == (7, 33) and b.shape == (40, 66) and a.dtype == torch.float16
    assert torch.equal(a, again) and not torch.equal(a, other)


def test_the_tolerance_has_no_room_for_fp16_sums() -> None:
    """Half-precision accumulation of the paper's K errs by more, one rounding of an exact result by
    less."""
    shape = AllGatherGemm(8, 64, 8192, 8)
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(8, 8192, generator=generator).half()
    b = (torch.randn(8192, 64, generator=generator) / 8192**0.5).half()
    exact = a.double() @ b.double()
    sums = torch.zeros(8, 64, dtype=torch.float16)
    for k in range(0, 8192, 64):
        sums += (a[:, k : k + 64].float() @ b[k : k + 64].float()).half()
    assert float((exact.half().double() - exact).norm() / exact.norm()) < tolerance(shape)
    assert float((sums.double() - exact).norm() / exact.norm()) > tolerance(shape)


@pytest.mark.parametrize(
    ("ranks", "views", "hip", "sentence"),
    [
        (17, [("a 1", 32)] * 17, False, r"at most 16 ranks, not 17"),
        (8, [("a 1", 8)] * 8 + [("b 2", 8)] * 8, False, r"16 ranks on 2 nodes \(a, b\): Iris maps"),
        (2, [("a 1", 1), ("a 2", 1)], False, r"2 ranks on 2 nodes \(a\)"),
        (8, [("a 1", 8)] * 7 + [("a 1", 4)], False, r"rank 7 sees 4 GPUs; .* or each rank its own"),
        (2, [("a 1", 1)] * 2, True, r"rank 0 sees 1 GPUs; let HIP_VISIBLE_DEVICES .* of the job$"),
    ],
)
def test_ranks_that_cannot_share_a_heap(
    ranks: int, views: list[tuple[str, int]], hip: bool, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_ranks(list(range(ranks)), views, hip)


def test_ranks_that_share_a_heap_see_all_gpus_or_their_own() -> None:
    check_ranks([4, 5, 6, 7], [("a 1", 8)] * 8)
    check_ranks([0], [("a 1", 8)] * 8, hip=True)
    check_ranks([0, 1], [("a 1", 1)] * 2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens where there is no GPU")
def test_without_a_gpu_there_is_no_workspace() -> None:
    sentence = "a Workspace needs a GPU; without one, use tftune.kernels.comm.emulated"
    with pytest.raises(ValueError, match=sentence):
        Workspace.create(None, 4096)


def test_only_some_workspaces_set_their_epoch(workspace: Workspace) -> None:
    with pytest.raises(NotImplementedError, match="cannot set its epoch"):
        workspace.set_epoch(3)
    seen: list[int] = []
    dataclasses.replace(workspace, _set_epoch=seen.append).set_epoch(3)
    assert seen == [2], "even, so that epochs are odd"
