"""Post-grad graphs as text, a few lines each, and what `tftune.compile_pass` makes of them."""

from __future__ import annotations

from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import dumped
import pytest
import told
import torch

import tftune
from tftune.graph_pass.inductor import CompilePass
from tftune.graph_pass.matching import COLLECTIVES
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace

GATHER, SCATTER, SUM = "all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce"
INPUTS = {"a": "float16 [8, 64]", "b": "float16 [32, 64]"}


def graph(*lines: str, **inputs: str) -> str:
    """The text of a graph: `name = target(...)` lines, targets without their `torch.ops.`, and at
    the end what it returns. Inputs are a dtype and sizes, and strides where they are no tensor's of
    these sizes; `a` and `b` are always there."""
    given = {name: _described(text) for name, text in (INPUTS | inputs).items()}
    head = [f"# {name} = {text}" for name, text in given.items()]
    body = ("    {} = torch.ops.{}".format(*line.split(" = ", 1)) for line in lines[:-1])
    begin = f"def forward(self, {', '.join(given)}):"
    return "\n".join([*head, begin, *body, f"    return ({lines[-1]},)", ""])


def _described(text: str) -> str:
    dtype, sizes = text.split(" ", 1)
    if "] [" in sizes:
        return text
    behind = sizes.strip("[]").split(", ")[1:]
    strides = [prod(map(int, behind[at:])) for at in range(len(behind) + 1)]
    return f"{dtype} {sizes} {strides if sizes != '[]' else []}"


GATHERED = (
    "g = _c10d_functional.all_gather_into_tensor.default(a, 2, '0')",
    "w = _c10d_functional.wait_tensor.default(g)",
)
TURNED = "t = aten.permute.default(b, [1, 0])"
TIMES = TURNED, "c = aten.mm.default(w, t)"
SCATTERED = (
    "m = aten.mm.default(a, t)",
    "r = _c10d_functional.reduce_scatter_tensor.default(m, 'sum', 2, '0')",
    "w = _c10d_functional.wait_tensor.default(r)",
)


def plain(**inputs: str) -> str:
    """A gather and a GEMM behind it."""
    return graph(*GATHERED, *TIMES, "c", **inputs)


PLAIN = plain()


def summed(a: str, how: str = "sum") -> str:
    """An all-reduce of a whole tensor."""
    return graph(
        f"r = _c10d_functional.all_reduce.default(a, '{how}', '0')",
        "w = _c10d_functional.wait_tensor.default(r)",
        "w",
        a=a,
    )


def normed(residual: str = "aten.slice.Tensor(b, 1, 64, 128)", **inputs: str) -> str:
    """rms_norm(all_reduce(a) + residual) * g, of rows of 64."""
    return graph(
        "r = _c10d_functional.all_reduce.default(a, 'sum', '0')",
        "w = _c10d_functional.wait_tensor.default(r)",
        f"s = {residual}",
        "d = aten.add.Tensor(w, s)",
        "x = prims.convert_element_type.default(d, torch.float32)",
        "p = aten.pow.Tensor_Scalar(x, 2)",
        "m = aten.mean.dim(p, [1], True)",
        "q = aten.add.Scalar(m, 1e-05)",
        "t = aten.rsqrt.default(q)",
        "y = aten.mul.Tensor(x, t)",
        "z = aten.mul.Tensor(y, g)",
        "o = prims.convert_element_type.default(z, torch.float16)",
        "o, d",
        **{"b": "float16 [8, 128]", "g": "float16 [64]"} | inputs,
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Rank 0 of two, whose peer never runs."""
    emulated.prepare(tmp_path, 2, 1 << 20)
    return emulated.workspace(tmp_path, 0, 2, 1 << 20)


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel is faster for every shape."""
    monkeypatch.setattr(tftune, "select_kernel", told.select())


@pytest.fixture
def slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """BSP is faster for every shape."""
    monkeypatch.setattr(tftune, "select_kernel", told.select({}))


def passed(
    text: str, workspace: Workspace | None, group: str = "0", **options: Any
) -> tuple[torch.fx.GraphModule, CompilePass]:
    module = dumped.rebuilt(text)
    pass_ = CompilePass(group, workspace, **options)
    pass_(module.graph, options.get("training") is not True)
    module.graph.lint()
    module.recompile()
    return module, pass_


def targets(module: torch.fx.GraphModule) -> Counter[str]:
    """Operators of tftune in the graph, by name, and "collectives"."""
    found: Counter[str] = Counter()
    for node in module.graph.nodes:
        name = str(node.target)
        if name.startswith("tftune."):
            found[name.split(".")[1]] += 1
        found["collectives"] += node.target in COLLECTIVES
    return +found


def kernel(module: torch.fx.GraphModule) -> torch.fx.Node:
    """The only operator of tftune in the graph."""
    (node,) = (n for n in module.graph.nodes if str(n.target).startswith("tftune."))
    return node


def reason(text: str, workspace: Workspace, **options: Any) -> str:
    """Why the graph's only collective stays; the graph is as it was."""
    module, pass_ = passed(text, workspace, **options)
    assert module.code == dumped.rebuilt(text).code
    (decision,) = pass_.report
    assert not decision.replaced
    return decision.reason
