"""What graphs may hold that no kernel takes: `tftune.compile_pass` leaves it or copies it, and says
so."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any

import dumped
import lock_step
import pytest
import told
import torch
from pass_graphs import (
    GATHERED,
    PLAIN,
    SCATTERED,
    SUM,
    TIMES,
    TURNED,
    faster,
    graph,
    kernel,
    normed,
    passed,
    plain,
    reason,
    summed,
    targets,
    workspace,
)

import tftune
from tftune.graph_pass.matching import why_misplaced
from tftune.graph_pass.rewrite import Editor
from tftune.kernels.comm.workspace import Workspace

__all__ = ["faster", "workspace"]
MULTIPLIED, SCATTER, WAIT = SCATTERED
ODD = "int32", "bool", "complex64"
OTHERS = {
    "all_to_all_single": "all_to_all_single.default(a, [4, 4], [4, 4], '0')",
    "broadcast": "broadcast.default(a, 0, '0')",
    "all_reduce_": "all_reduce_.default(a, 'sum', '0')",
}
LEFT = (
    (plain().replace("a, 2, '0'", "a, 2, 'tp'"), "it is of group tp, not 0"),
    (plain().replace("(a, 2,", "(a, 4,"), "it is of 4 ranks and the workspace of 2"),
    (plain(b="float16 [32, 64] [128, 1]"),
     r"B is not contiguous: \[64, 32\] of strides \[1, 128\]"),
    (plain(b="float16 [s5, 64]"), r"N or K is symbolic: B is \[64, s.*"),
    (plain(a="float32 [8, 64]", b="float32 [32, 64]"), ".*float32 is not one of.*"),
    (graph(*GATHERED, "s = aten.split.Tensor(w, 8)", "j = aten.cat.default([s[1], s[0]])", TURNED,
           "c = aten.mm.default(j, t)", "c"),
     "rows are joined otherwise than a gather leaves them"),
    (graph(*GATHERED, *TIMES, "c, w"),
     "output needs the gathered A itself, which no kernel returns"),
    (graph(*GATHERED, "v = _c10d_functional.wait_tensor.default(g)", "w, v"),
     "2 of its 2 users wait for it, and a kernel has no wait"),
    (graph(*GATHERED, "v = aten.reshape.default(w, [1, 64])", TURNED, "c = aten.mm.default(v, t)",
           "c", a="float16 [32]"),
     "it gathers elements, not rows"),
    (graph(*GATHERED, "h = aten.mul_.Scalar(a, 2)", *TIMES, "c"), ".*writes in place.*"),
    (graph(TURNED, MULTIPLIED, SCATTER.replace("sum", "avg"), WAIT, "w"),
     "it reduces by avg, not by sum"),
    (graph(TURNED, *SCATTERED, "m, w"), "the result of the GEMM is used elsewhere, too"),
    (graph(SCATTER.replace("(m", "(a"), WAIT, "w"), "no GEMM feeds it"),
    (graph(TURNED, MULTIPLIED, "f = prims.convert_element_type.default(m, torch.float32)",
           SCATTER.replace("(m", "(f"), WAIT, "w"),
     "the result of the GEMM is added up as torch.float32"),
    (graph(TURNED, "x = aten.select.int(b, 1, 0)", "m = aten.addmm.default(x, a, t)", SCATTER,
           WAIT, "w"),
     "a bias is added before the sum over ranks"),
    (summed("float16 []"), "what it exchanges has no dimension"),
    (summed("float16 [0, 8]"), ".*m=0 must be an integer of at least 1.*"),
    (summed("float16 [2, 0]"), ".*n=0 must be an integer of at least 1.*"),
    *((summed(f"{dtype} [8, 8]"), f".*{dtype} is not one of.*") for dtype in ODD),
    (summed("float16 [8, 8]", "avg"), "it reduces by avg, not by sum"),
    (summed("float16 [2, 2, 2, 2, 8]", "max"), "it reduces by max, not by sum"),
    *((graph(f"c = _c10d_functional.{line}", "e = _c10d_functional.wait_tensor.default(c)", "e"),
       f"no kernel does what _c10d_functional.{name}.default does")
      for name, line in OTHERS.items()),
)  # fmt: skip
"""Graphs that no kernel fits, each with a pattern of the whole reason."""


@pytest.mark.parametrize(("text", "said"), LEFT)
def test_what_no_kernel_does_is_left_as_it_was(
    text: str, said: str, workspace: Workspace, faster: None
) -> None:
    found = reason(text, workspace)
    assert re.fullmatch(said, found), found


@pytest.mark.parametrize("step", ["gather_gemm", "placed", "_value"])
def test_a_failure_leaves_the_graph_and_is_told(
    step: str, workspace: Workspace, faster: None, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """A fault of the pass's own, at its last step: nothing of the replacement stays."""
    original, calls = getattr(Editor, step), []

    def failing(self: Editor, *given: Any) -> Any:
        found = original(self, *given)
        calls.append(step)
        if step != "_value" or len(calls) == 1:
            raise RuntimeError("planted")
        return found

    monkeypatch.setattr(Editor, step, failing)
    text = normed() if step == "placed" else PLAIN
    with caplog.at_level(logging.WARNING, "tftune"):
        said = reason(text, workspace)
    assert said == "tftune.compile_pass failed: RuntimeError: planted" and calls
    assert len(caplog.records) == 1 and "planted" in caplog.text


def both(text: str, workspace: Workspace) -> Any:
    """What a graph returns with the pass and without, on two ranks in one process."""
    inputs = [
        [one.clone() for one in tensors]
        for tensors in zip(*(dumped.random_inputs(dumped.rebuilt(text), r) for r in (0, 1)),
                           strict=True)
    ]  # fmt: skip
    module, pass_ = passed(text, workspace)
    plain = lock_step.run(dumped.rebuilt(text), inputs)
    return lock_step.run(module, inputs), plain, pass_.report


def test_a_residual_that_is_a_slice_is_copied(workspace: Workspace, faster: None) -> None:
    text = normed()
    module, pass_ = passed(text, workspace)
    assert "residual and norm" in pass_.report[0].reason
    read = kernel(module).all_input_nodes
    assert all(why_misplaced("it", n.meta["val"]) is None for n in read)
    for got, exact in zip(*both(text, workspace)[:2], strict=True):
        for a, b in zip(got, exact, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-2)


def test_the_copy_of_a_residual_counts(
    workspace: Workspace, faster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.graph_pass.decide.Judge.copy_us", lambda self, size: 9.0)
    _, pass_ = passed(normed(), workspace)
    assert pass_.report[0].replaced and "norm" not in pass_.report[0].reason


@pytest.mark.parametrize(
    "text",
    [
        normed(g="float32 [64]"),
        normed(g="float16 [1]"),
        normed().replace("aten.mul.Tensor(y, g)", "aten.mul.Tensor(y, aten_one)").replace(
            "    y = ", "    aten_one = torch.ops.aten.add.Tensor(g, 1)\n    y = "
        ),
        normed().replace("(x, t)\n", "(x, t)\n    h = torch.ops.aten.mul_.Scalar(g, 2)\n"),
    ],
)  # fmt: skip
def test_weights_that_no_kernel_reads_are_not_taken(
    text: str, workspace: Workspace, faster: None
) -> None:
    """Weights of another dtype or size, computed ones (Gemma adds 1), or ones written between."""
    _, pass_ = passed(text, workspace)
    assert "residual and norm" not in pass_.report[0].reason


def test_a_norm_over_rows_of_another_view_has_its_own_rows(
    workspace: Workspace, faster: None
) -> None:
    text = (
        normed("aten.reshape.default(b, [8, 2, 64])", a="float16 [8, 128]")
        .replace("aten.add.Tensor(w, s)", "aten.add.Tensor(v, s)")
        .replace("    s = ", "    v = torch.ops.aten.reshape.default(w, [8, 2, 64])\n    s = ")
        .replace("[1], True", "[2], True")
    )
    got, exact, report = both(text, workspace)
    assert "residual and norm" in report[0].reason
    torch.testing.assert_close(got[0], exact[0], rtol=1e-2, atol=1e-2)


def test_a_gather_is_shared_only_with_one_that_ends_before(
    workspace: Workspace, faster: None
) -> None:
    text = graph(
        GATHERED[0], "f = _c10d_functional.all_gather_into_tensor.default(a, 2, '0')",
        "v = _c10d_functional.wait_tensor.default(f)", "u = aten.add.Tensor(v, 1)",
        GATHERED[1], "u, w",
    )  # fmt: skip
    module, _ = passed(text, workspace)
    assert targets(module) == {"collectives": 2}


def test_gathers_that_cannot_be_merged_stay(
    workspace: Workspace, faster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Editor, "_swap")
    text = graph(
        *GATHERED, "f = _c10d_functional.all_gather_into_tensor.default(a, 2, '0')",
        "v = _c10d_functional.wait_tensor.default(f)", "v, w",
    )  # fmt: skip
    module, _ = passed(text, workspace)
    assert targets(module) == {"collectives": 2}


IN_FLIGHT = [
    ("_c10d_functional.all_gather_into_tensor.default(a, 4, 'dp')", "f"),
    ("_c10d_functional.all_reduce_coalesced.default([a, a], 'sum', 'dp')", "f[0]"),
    ("_c10d_functional.all_to_all_single.default(a, [4, 4], [4, 4], '0')", "f"),
    ("_c10d_functional.broadcast.default(a, 0, '0')", "f"),
    ("_c10d_functional.all_reduce_.default(b, 'sum', '0')", "b"),
    ("_c10d_functional.all_gather_into_tensor_out.default(a, 2, '0', out=b)", "b"),
    ("_c10d_functional_autograd.all_to_all_single.default(a, [4, 4], [4, 4], '0')", "f"),
]


def waits_before(module: torch.fx.GraphModule) -> bool:
    """Whether something is waited for before the kernel."""
    order = [str(node.target) for node in module.graph.nodes]
    return (
        "_c10d_functional.wait_tensor.default" in order[: order.index(str(kernel(module).target))]
    )


@pytest.mark.parametrize("line, waited", IN_FLIGHT)
@pytest.mark.parametrize("ends", [True, False])
def test_no_collective_of_any_kind_is_in_flight_beside_a_kernel(
    line: str, waited: str, ends: bool, workspace: Workspace, faster: None
) -> None:
    """Its waits come first; where there is none, one is made."""
    late = (f"x = _c10d_functional.wait_tensor.default({waited})",) if ends else ()
    text = graph(
        f"f = {line}",
        "m = aten.mm.default(a, k)",
        "r = _c10d_functional.all_reduce.default(m, 'sum', '0')",
        "w = _c10d_functional.wait_tensor.default(r)",
        *late,
        "w",
        b="float16 [16, 64]" if "out=" in line else "float16 [32, 64]",
        k="float16 [64, 32]",
    )
    module = passed(text, workspace)[0]
    assert targets(module)[SUM] == 1 and waits_before(module)


@pytest.mark.parametrize("line", ["isend.default(a, 1, 0, 'pp')", "irecv.default(a, 1, 0, 'pp')"])
def test_beside_point_to_point_nothing_is_replaced(
    line: str, workspace: Workspace, faster: None
) -> None:
    """To wait for it first may never end: the other rank may be behind its own kernel."""
    text = graph(
        f"f = _c10d_functional.{line}", TURNED, *SCATTERED,
        "x = _c10d_functional.wait_tensor.default(f)", "w, x",
    )  # fmt: skip
    module, pass_ = passed(text, workspace)
    assert module.code == dumped.rebuilt(text).code
    assert "ranks may differ in their order" in pass_.report[1].reason


def test_a_tensor_that_another_graph_fills_is_waited_for_first(
    workspace: Workspace, faster: None
) -> None:
    late = "x = _c10d_functional.wait_tensor.default(p)"
    text = graph(TURNED, *SCATTERED, late, "w, x", p="float16 [8]")
    assert waits_before(passed(text, workspace)[0])


def test_both_needs_of_an_all_reduce_are_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GEMM and the norm: what either needs, and the gain of the one that fits."""
    monkeypatch.setattr(tftune, "select_kernel", told.select())
    text = dumped.text("reduce_torch213")
    _, pass_ = passed(text, replace(workspace, generation_bytes=16))
    for decision in pass_.report:
        assert re.search(r"gemm_all_reduce: it needs \d+ bytes", decision.reason)
        assert re.search(r"\ball_reduce: it needs \d+ bytes", decision.reason)
    assert "all_reduce with norm: it needs" in pass_.report[0].reason
