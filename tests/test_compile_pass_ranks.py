"""`tftune.compile_pass` on emulated ranks: kernels run in the place of collectives, with the same
numbers."""

from __future__ import annotations

import re
from typing import Any

import dumped
import pytest
import told
import torch
import torch._inductor.config
import torch.distributed._functional_collectives as funcol
from pass_graphs import GATHERED, PLAIN, SCATTERED, TURNED, graph
from torch import Tensor

import tftune
from tftune.graph_pass.inductor import CompilePass
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace

DUMPS = ("sequence_torch211", "sequence_batch2_torch213", "sequence_training_backward_torch211")
NORMS = (
    "reduce_torch213+norm",
    "reduce_torch213+rounded",
    "reduce_torch213+eps=9.999999747378752e-06",
    "reduce_torch211+eps=0.25",
)
"""The last epsilon changes every result by far more than a rounding."""
MORE = (
    "sequence_torch213",
    "sequence_batch2_torch211",
    "sequence_dynamic_torch211",
    "sequence_training_torch213",
    "sequence_training_torch211",
    "sequence_training_backward_torch213",
    "reduce_torch211",
)
SNIPPETS = {
    "tokens": PLAIN,
    "bias": graph(
        *GATHERED, TURNED, "x = aten.select.int(b, 1, 3)", "c = aten.addmm.default(x, w, t)", "c"
    ),
    "cast": graph(
        *GATHERED, "f = prims.convert_element_type.default(w, torch.float16)", TURNED,
        "c = aten.mm.default(f, t)", "c", a="float32 [8, 64]",
    ),
    "columns": graph(
        *GATHERED, "s = aten.split.Tensor(w, 8)", "k = aten.cat.default([s[0], s[1]], 1)", TURNED,
        "c = aten.mm.default(k, t)", "c", a="float16 [8, 32]",
    ),
    "scatter": graph(TURNED, *SCATTERED, "w"),
    "batch": graph(
        *GATHERED, "s = aten.split.Tensor(w, 2)", "j = aten.cat.default([s[0], s[1]], 1)",
        "f = aten.reshape.default(j, [16, 64])", TURNED, "c = aten.mm.default(f, t)",
        "v = aten.reshape.default(c, [2, 8, 32])", "p = aten.split.Tensor(v, 4, 1)",
        "q = aten.cat.default([p[0], p[1]])", "c", a="float16 [2, 4, 64]",
    ),
}  # fmt: skip
CAST = r"torch.ops.prims.convert_element_type.default"
WEIGHTED = (
    r"    (\w+) = torch.ops.aten.mul.Tensor\((\w+), (\w+)\)\n"
    rf"    (\w+) = {CAST}\(\1, torch.float16\)\n"
)
ROUNDED = rf"    \1 = {CAST}(\2, torch.float16)\n" + r"    \4 = torch.ops.aten.mul.Tensor(\3, \1)\n"
"""A norm that rounds before the product with its weight, as Hugging Face's, for one behind it."""
SMALL = {"all_reduce": (5.0, 10.0)}


def differences(workspace: Workspace, names: tuple[str, ...]) -> dict[str, tuple[int, float]]:
    """How many collectives were replaced in each graph, and the largest relative difference of a
    result from the graph's own."""
    found = {}
    for name in names:
        key, _, normed = name.partition("+")
        tftune.select_kernel = told.select(SMALL if normed else None)  # type: ignore[assignment]
        text = SNIPPETS[key] if key in SNIPPETS else dumped.text(key)
        if normed == "rounded":
            text, count = re.subn(WEIGHTED, ROUNDED, text)
            assert count == 2
        if normed.startswith("eps="):
            text = dumped.with_eps(key, normed.removeprefix("eps="))
        module = dumped.rebuilt(text)
        inputs = dumped.random_inputs(module, workspace.rank, tokens=12)
        expected = module(*inputs)
        pass_ = CompilePass("0", workspace)
        pass_(module.graph, "training" not in name)
        module.recompile()
        errors = [
            float((a.double() - b.double()).norm() / b.double().norm())
            for a, b in zip(module(*inputs), expected, strict=True)
            if isinstance(a, torch.Tensor)
        ]
        found[name] = sum(d.replaced for d in pass_.report), max(errors)
    return found


@pytest.mark.parametrize(
    "names",
    [
        (*SNIPPETS, *DUMPS, "reduce_torch213", *NORMS),
        pytest.param(MORE, marks=pytest.mark.thorough),
    ],
)
def test_kernels_give_the_same_numbers(names: tuple[str, ...]) -> None:
    for found in emulated.run(2, differences, names):
        assert tuple(found) == names
        for name, (replaced, error) in found.items():
            assert replaced > 0 and error < 2e-3, (name, replaced, error)


def kernels_are_faster() -> None:
    """To what this rank compiles, which it does anew."""
    torch._inductor.config.force_disable_caches = True  # type: ignore[attr-defined]
    tftune.select_kernel = told.select()  # type: ignore[assignment]
    tftune.use(tftune.load(target="h200x2"))


def compiled(workspace: Workspace) -> list[Any]:
    """A layer through torch.compile and inductor with the pass: for static and dynamic M how often
    it was compiled for 2 M, the kernels called, the largest error and the report's end."""
    kernels_are_faster()
    torch._dynamo.config.automatic_dynamic_shapes = False  # type: ignore[attr-defined]
    group = workspace.group
    column, row = (torch.randn(32, 64).half() / 8, torch.randn(64, 32).half() / 8)

    def layer(x: Tensor) -> Tensor:
        hidden = funcol.all_gather_tensor(x, 0, group) @ column.t()
        return funcol.reduce_scatter_tensor(hidden @ row.t(), "sum", 0, group)

    found: list[Any] = []
    for dynamic in (False, True):
        torch._dynamo.reset()
        pass_ = tftune.compile_pass(workspace=workspace)
        seen: list[int] = []
        options = {"post_grad_custom_post_pass": pass_}
        fast = torch.compile(layer, fullgraph=dynamic, options=options)
        errors = []
        for m in (4, 6):
            x = torch.randn(m, 64).half()
            if dynamic:
                torch._dynamo.mark_dynamic(x, 0)
            errors.append(float((fast(x) - layer(x)).norm() / layer(x).norm()))
            seen.append(len(pass_.report))
        found.append((seen, max(errors), pass_.table().splitlines()[-1]))
    return found


def test_torch_compile_takes_the_pass() -> None:
    for static, dynamic in emulated.run(2, compiled):
        assert static[0] == [2, 4] and static[2] == "replaced=4 kept=0"
        assert dynamic[0] == [2, 2] and dynamic[2] == "replaced=2 kept=0"
        assert max(static[1], dynamic[1]) < 2e-3


def trained(workspace: Workspace) -> tuple[dict[str, float], list[str]]:
    """A training step through torch.compile with the pass: the largest difference of each gradient
    from the uncompiled layer's, and what was replaced in which graph."""
    kernels_are_faster()
    group, own = workspace.group, torch.Generator().manual_seed(workspace.rank)
    sizes = {"x": (4, 64), "column": (32, 64), "row": (64, 32)}
    made = {name: torch.randn(size, generator=own).half() / 8 for name, size in sizes.items()}

    def layer(x: Tensor, column: Tensor, row: Tensor) -> Tensor:
        hidden = funcol.all_gather_tensor_autograd(x, 0, group) @ column.t()
        return funcol.reduce_scatter_tensor_autograd(hidden @ row.t(), "sum", 0, group)

    pass_ = tftune.compile_pass(workspace=workspace)
    options = {"post_grad_custom_post_pass": pass_}
    gradients = []
    for step in (layer, torch.compile(layer, fullgraph=True, options=options)):
        leaves = {name: tensor.clone().requires_grad_() for name, tensor in made.items()}
        step(**leaves).square().sum().backward()
        gradients.append({name: leaf.grad.double() for name, leaf in leaves.items()})
    plain, compiled = gradients
    errors = {n: float((plain[n] - compiled[n]).norm() / plain[n].norm()) for n in sizes}
    return errors, [f"{d.graph} {d.operation}" for d in pass_.report if d.replaced]


@pytest.mark.thorough
def test_gradients_through_the_pass_are_the_same() -> None:
    for errors, replaced in emulated.run(2, trained):
        assert replaced == ["forward gemm_reduce_scatter", "backward gemm_reduce_scatter"]
        assert max(errors.values()) < 2e-3, errors
