"""Gradients of tftune.ops on emulated ranks are those of the library's functional collectives and
of DTensor, in float64, within rounding: called directly and compiled, by BSP and by fused
kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch._dynamo.testing import CompileCounterWithBackend
from torch.distributed.tensor import DTensor, Partial, Replicate

import tftune
from tftune import casts, ops
from tftune.gradients import FORMULAS, placed
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.dtypes import ROUNDING, torch_dtype
from tftune.kernels.core.registry import operation
from tftune.models.selection import Selection

Tensors = tuple[torch.Tensor, ...]
Case = tuple[str, str, str]
"""An operation, how A is sharded, and the layout of B; of all_reduce, the norm."""
CASES = (
    *(("all_gather_gemm", shard, layout) for shard in ("m", "k") for layout in ("nk", "kn")),
    *(("gemm_reduce_scatter", "", layout) for layout in ("nk", "kn")),
    *(("gemm_all_reduce", "", layout) for layout in ("nk", "kn")),
    *(("all_reduce", "", norm) for norm in ("none", "rms")),
)
EPS = 0.5
"""The epsilon of RMSNorm, so large that a gradient without it is wrong."""


def select(variant: str, asked: set[tuple[str, str]], chip: Any) -> None:
    """Make BSP, or a fused config, what is selected in this process: the first default of a GPU,
    the first one possible on emulated ranks. `asked` gets operation and variant."""

    def selected(shape: Any, mode: str = "graph") -> Selection:
        space = operation(shape.op).space
        names = tuple(name for name in space.variants if (name == "bsp") == (variant == "bsp"))
        given = space.defaults(shape, chip) if chip else space.configs(shape, None, names)
        config = next(config for config in given if config.variant in names)
        asked.add((shape.op, config.variant))
        return Selection(config, "fallback", "as told")

    tftune.select_kernel = selected


def sizes(workspace: Workspace) -> tuple[int, int, int]:
    """Tokens of each rank, columns and inner size: odd ones where kernels are interpreted."""
    return (3, 40, 48) if workspace.arch == "interpreter" else (128, 1024, 2048)


def operands(workspace: Workspace, case: Case, dtype: torch.dtype) -> Tensors:
    """Leaves a and b; of all_reduce x, residual and weight. Random normal, b by 1/sqrt(K)."""
    (op, shard, layout), world = case, workspace.world
    own = torch.Generator().manual_seed(dist.get_rank())
    tokens, n, k = sizes(workspace)
    m = tokens * world
    if op == "all_reduce":
        shared = torch.Generator().manual_seed(100)
        x = torch.randn(m, n, generator=own)
        residual, weight = torch.randn(m, n, generator=shared), torch.rand(n, generator=shared)
        given: Tensors = (x, residual, weight) if layout == "rms" else (x,)
    else:
        inner = k if op == "all_gather_gemm" else k // world
        rows, columns = (m // world, k) if shard == "m" else (m, k // world)
        b = torch.randn(n, inner, generator=own) * k**-0.5
        given = torch.randn(rows, columns, generator=own), b.t() if layout == "kn" else b
    placed = (each.to(workspace.device, dtype).contiguous() for each in given)
    return tuple(each.requires_grad_() for each in placed)


def ours(
    case: Case, workspace: Workspace, keep_gathered: bool = False
) -> Callable[..., torch.Tensor]:
    op, shard, layout = case
    if op == "all_gather_gemm":
        return lambda a, b: ops.all_gather_gemm(
            a, b, workspace, shard=shard, b_layout=layout, keep_gathered=keep_gathered
        )
    if op == "all_reduce":
        return lambda x, residual=None, weight=None: ops.all_reduce(
            x, workspace, residual=residual, weight=weight, eps=EPS
        )
    return lambda a, b: getattr(ops, op)(a, b, workspace, b_layout=layout)


def librarys(case: Case, mesh: Any) -> Callable[..., torch.Tensor]:
    """The same by torch over a mesh: its differentiable collectives, and DTensor for what all ranks
    share."""
    (op, shard, layout), group = case, mesh.get_group()

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ (b.t() if layout == "nk" else b)

    def normed(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        rows = shared(x, mesh) + residual
        norm = torch.nn.functional.rms_norm(rows, rows.shape[1:], weight, EPS)
        return torch.stack((norm, rows))

    return {
        "all_gather_gemm": lambda a, b: product(
            funcol.all_gather_tensor_autograd(a, 0 if shard == "m" else 1, group), b
        ),
        "gemm_reduce_scatter": lambda a, b: funcol.reduce_scatter_tensor_autograd(
            product(a, b), "sum", 0, group
        ),
        "gemm_all_reduce": lambda a, b: shared(product(a, b), mesh),
        "all_reduce": normed if layout == "rms" else lambda x: shared(x, mesh),
    }[op]


def shared(partial: torch.Tensor, mesh: Any) -> torch.Tensor:
    """The sum over ranks, the same on every rank, as DTensor replicates it."""
    whole = DTensor.from_local(partial, mesh, [Partial()]).redistribute(placements=[Replicate()])
    return whole.to_local()


def wanted(result: torch.Tensor, rank: int) -> torch.Tensor:
    """The gradient that a result is given, in float64: halves, which fp16 holds."""
    generator = torch.Generator().manual_seed(200 + rank)
    halves = torch.randint(-4, 5, result.shape, generator=generator).double() / 2
    return halves.to(result.device)


def gradients(call: Callable[..., torch.Tensor], leaves: Tensors, rank: int) -> Tensors:
    result = call(*leaves)
    return torch.autograd.grad(result, leaves, wanted(result, rank).to(result.dtype))


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    assert found.shape == exact.shape and found.is_contiguous()
    return float((found.double() - exact).norm() / exact.norm())


Errors = tuple[dict[tuple[Any, ...], float], set[tuple[str, str]]]
"""The largest error of each case's gradients, in roundings to the dtype; and what ran."""


def of_all_ranks(workspace: Workspace, variant: str, dtype: str) -> Errors:
    mesh = dist.init_device_mesh(workspace.device.type, (workspace.world,))
    return errors(workspace, mesh, variant, dtype)


def of_each_half(whole: Workspace, variant: str, dtype: str) -> Errors:
    """Data parallel over halves of the ranks, each with operands and a workspace of its own, one
    ahead of the other."""
    mesh = dist.init_device_mesh("cpu", (2, whole.world // 2), mesh_dim_names=("data", "tensor"))
    half, rank, world = mesh.get_local_rank("data"), mesh.get_local_rank("tensor"), mesh.size(1)
    folder = Path(sys.argv[1]) / f"half-{half}"
    if rank == 0:
        folder.mkdir()
        emulated.prepare(folder, world, whole.generation_bytes)
    dist.barrier()
    group = mesh["tensor"].get_group()
    workspace = emulated.workspace(folder, rank, world, whole.generation_bytes, group)
    time.sleep(0.5 * half)
    return errors(workspace, mesh["tensor"], variant, dtype)


def errors(workspace: Workspace, mesh: Any, variant: str, dtype: str) -> Errors:
    asked, found = set[tuple[str, str]](), dict[tuple[Any, ...], float]()
    select(variant, asked, workspace.chip)
    for case in CASES:
        whole = case[0] in ("gemm_all_reduce", "all_reduce")
        rank = 0 if whole else workspace.rank
        leaves = operands(workspace, case, torch_dtype(dtype))
        doubles = tuple(leaf.detach().double().requires_grad_() for leaf in leaves)
        exact = gradients(librarys(case, mesh), doubles, rank)
        for keep in (False, True) if case[0] == "all_gather_gemm" else (False,):
            own = gradients(ours(case, workspace, keep), leaves, rank)
            found[*case, keep] = max(map(error, own, exact)) / ROUNDING[dtype]
    return found, asked


@pytest.mark.parametrize(
    "world,variant,dtype",
    [
        (2, "bsp", "bf16"),
        (3, "fused", "fp16"),
        *(
            pytest.param(*each, marks=pytest.mark.thorough)
            for each in ((1, "bsp", "fp16"), (2, "fused", "fp16"), (3, "bsp", "fp16"))
        ),
    ],
)
def test_gradients_are_those_of_the_library(world: int, variant: str, dtype: str) -> None:
    check(emulated.run(world, of_all_ranks, variant, dtype), world, variant)


@pytest.mark.parametrize("variant", ["bsp", pytest.param("fused", marks=pytest.mark.thorough)])
def test_tensor_parallel_halves_do_not_disturb_each_other(variant: str) -> None:
    check(emulated.run(4, of_each_half, variant, "fp16"), 2, variant)


def check(of_ranks: list[Errors], world: int, variant: str) -> None:
    for found, asked in of_ranks:
        assert len(found) == len(CASES) + 4
        limit = (world + 2) ** 0.5
        assert {case: wrong for case, wrong in found.items() if not wrong < limit} == {}
        assert all((name == "bsp") == (variant == "bsp") for _, name in asked)
        assert {op for op, _ in asked} == {case[0] for case in CASES}


class Layer(torch.nn.Module):
    """Every operation that has a gradient, in the order of a tensor-parallel MLP: rows of this rank
    in, rows of this rank and those of all ranks out."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        generator, (_, n, k) = torch.Generator().manual_seed(workspace.rank), sizes(workspace)
        self.workspace = workspace
        for name, size in {"up": (n, k), "gate": (n, k), "down": (k, n), "out": (k, n)}.items():
            weight = torch.randn(size, generator=generator) * size[1] ** -0.5
            self.register_parameter(name, torch.nn.Parameter(weight))
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 2, k))
        self.to(workspace.device, torch.float16)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        words: dict[str, Any] = dict(shard="m", b_layout="nk")
        up = ops.all_gather_gemm(x, self.up, self.workspace, **words)
        gate = ops.all_gather_gemm(x, self.gate, self.workspace, keep_gathered=True, **words)
        hidden = torch.tanh(gate) * up
        rows = ops.gemm_reduce_scatter(hidden, self.down, self.workspace)
        whole = ops.gemm_all_reduce(hidden, self.out, self.workspace) + residual
        normed, added = ops.all_reduce(
            hidden @ self.out.t(), self.workspace, residual=residual, weight=self.scale
        )
        return rows + x, whole * normed + added


def layer_gradients(
    layer: Layer, call: Callable[..., Any], tokens: int, workspace: Workspace
) -> Tensors:
    """The gradients of the layer's inputs and parameters, for so many tokens of each rank."""
    own, shared = (torch.Generator().manual_seed(seed) for seed in (workspace.rank, 9))
    k = sizes(workspace)[2]
    x = torch.randn(tokens, k, generator=own)
    residual = torch.randn(tokens * workspace.world, k, generator=shared)
    inputs = (each.to(workspace.device, torch.float16) for each in (x, residual))
    leaves = *(each.requires_grad_() for each in inputs), *layer.parameters()
    rows, whole = call(*leaves[:2])
    given = wanted(rows, workspace.rank).half(), wanted(whole, 0).half()
    return torch.autograd.grad((rows, whole), leaves, given)


def compiled_and_direct(workspace: Workspace, variant: str) -> dict[str, float]:
    """How far the gradients of a layer that is compiled once are from those of direct calls, in
    roundings, for two numbers of tokens; what opcheck finds is raised."""
    select(variant, set(), workspace.chip)
    layer = Layer(workspace)
    graphs = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, backend=graphs, fullgraph=True, dynamic=True)
    wrong = dict[str, float]()
    for tokens in (sizes(workspace)[0], sizes(workspace)[0] + 2):
        found = [layer_gradients(layer, call, tokens, workspace) for call in (layer, compiled)]
        errors = map(error, found[0], (one.double() for one in found[1]))
        named = ("x", "residual", *(name for name, _ in layer.named_parameters()))
        wrong |= {
            f"{name} {tokens}": one / ROUNDING["fp16"]
            for name, one in zip(named, errors, strict=True)
        }
    assert graphs.frame_count == 1
    a, b = operands(workspace, ("all_gather_gemm", "k", "nk"), torch.float16)
    for operator in (
        torch.ops.tftune.all_gather_gemm.default,
        torch.ops.tftune.all_gather_gemm_with_gathered.default,
    ):
        torch.library.opcheck(operator, (a, b, workspace.handle, "k", "nk", "graph"))
    torch.library.opcheck(torch.ops.tftune.gather.default, (a.detach(), workspace.handle, "m"))
    for op in ("gemm_reduce_scatter", "gemm_all_reduce"):
        a, b = operands(workspace, (op, "k", "nk"), torch.float16)
        operator = getattr(torch.ops.tftune, op).default
        torch.library.opcheck(operator, (a, b, workspace.handle, "nk", "graph"))
    return wrong


@pytest.mark.parametrize(
    "world,variant", [(2, "fused"), pytest.param(3, "bsp", marks=pytest.mark.thorough)]
)
def test_a_compiled_layer_has_the_gradients_of_direct_calls(world: int, variant: str) -> None:
    for found in emulated.run(world, compiled_and_direct, variant):
        check_compiled(found)


def check_compiled(found: dict[str, float]) -> None:
    assert len(found) == 14 and max(found.values()) < 3, found


def kept_elements(call: Callable[[], torch.Tensor]) -> int:
    """Elements that one call keeps for its backward."""
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda saved: kept.append(saved.numel()) or saved, lambda saved: saved
    ):
        call()
    return sum(kept)


def undisturbed(workspace: Workspace) -> bool:
    """What a call does beside its gradient, and what is said where one cannot be had."""
    select("bsp", set(), workspace.chip)
    a, b = operands(workspace, ("all_gather_gemm", "m", "nk"), torch.float16)
    words: dict[str, Any] = dict(shard="m", b_layout="nk")
    c, whole = ops.all_gather_gemm_with_gathered(a, b, workspace, **words)
    assert c.requires_grad and not whole.requires_grad
    out = torch.empty_like(c)
    kept = ops.all_gather_gemm(a, b, workspace, out=out, **words)
    assert kept is out and torch.equal(kept, c)
    with torch.no_grad():
        plain = ops.all_gather_gemm(a, b, workspace, **words)
    assert not plain.requires_grad and torch.equal(plain, c)
    for keep, elements in ((False, a.numel()), (True, whole.numel())):
        call = partial(ops.all_gather_gemm, a, b, workspace, keep_gathered=keep, **words)
        assert kept_elements(call) == elements + b.numel()
    first = torch.autograd.grad(c.sum(), a, create_graph=True)[0]  # of an expanded scalar
    frozen = ops.all_gather_gemm(a, b.detach(), workspace, **words).sum()
    assert torch.equal(torch.autograd.grad(frozen, a)[0], first)
    with pytest.raises(ValueError, match="the gathered a has 48 columns but b has 40 rows"):
        ops.all_gather_gemm_with_gathered(a, b, workspace, shard="m", b_layout="kn")
    squares = ops.all_gather_gemm(a, b, workspace, **words).square().sum()
    with pytest.raises(RuntimeError, match=r"tftune::gather has no backward"):
        torch.autograd.grad(torch.autograd.grad(squares, b, create_graph=True)[0].sum(), a)
    return True


def test_without_a_gradient_nothing_changes_and_what_has_none_says_so() -> None:
    assert emulated.run(2, undisturbed) == [True, True]


def test_every_operator_has_a_backward_or_refuses_one() -> None:
    assert set(FORMULAS) == set(casts.OPERATORS)


def test_a_gradient_comes_to_where_a_kernel_can_take_it() -> None:
    values = torch.arange(65, dtype=torch.float16)
    for view in (values[:64], values[1:], values[::2], values[3].expand(8)):
        found = placed(view)
        assert torch.equal(found, view)
        assert found.is_contiguous() and found.data_ptr() % 16 == 0
    assert placed(values) is values


@pytest.mark.gpu(2)
@pytest.mark.parametrize("variant", ["bsp", "fused"])
def test_gradients_on_gpus(variant: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, folder, variant]
        ranks = [subprocess.Popen([*words, str(rank)]) for rank in range(2)]
        try:
            assert [process.wait(240) for process in ranks] == [0, 0]
        finally:
            for process in ranks:
                process.kill()
                process.wait()


def on_gpu(folder: str, variant: str, rank: int) -> None:
    """One of two ranks."""
    os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    meeting: dict[str, Any] = dict(init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    dist.init_process_group("nccl", device_id=device, **meeting)
    workspace = Workspace.create(None, 1 << 26)
    for dtype in ("fp16", "bf16"):
        check([of_all_ranks(workspace, variant, dtype)], 2, variant)
    check_compiled(compiled_and_direct(workspace, variant))
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    on_gpu(sys.argv[1], sys.argv[2], int(sys.argv[3]))
