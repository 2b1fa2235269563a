"""What graphs may hold that no kernel takes: `tftune.compile_pass` leaves it or copies it, and says
so."""

from __future__ import annotations

import logging
import re
from typing import Any

import dumped
import lock_step
import pytest
import told
import torch
from test_compile_pass import (
    GATHERED,
    HEAD,
    PLAIN,
    SCATTERED,
    SUM,
    TURNED,
    faster,
    graph,
    passed,
    reason,
    targets,
    workspace,
)

import tftune
from tftune.graph_pass.matching import why_misplaced
from tftune.graph_pass.rewrite import Editor
from tftune.kernels.comm.workspace import Workspace

__all__ = ["faster", "workspace"]
FLOWN = "c = _c10d_functional.{}"
END = "e = _c10d_functional.wait_tensor.default({})"


def summed(sizes: list[int], dtype: str = "float16", how: str = "sum") -> str:
    """An all-reduce of a whole tensor of these sizes."""
    strides = torch.empty(sizes).stride()
    return graph(
        f"r = _c10d_functional.all_reduce.default(a, '{how}', '0')",
        "w = _c10d_functional.wait_tensor.default(r)",
        "w",
        head=f"# a = {dtype} {sizes} {list(strides)}\ndef forward(self, a):\n",
    )


@pytest.mark.parametrize(
    "text, said",
    [
        (summed([]), "what it exchanges has no dimension"),
        (summed([0, 8]), "m=0 must be an integer of at least 1"),
        (summed([2, 0]), "n=0 must be an integer of at least 1"),
        (summed([8, 8], "int32"), "int32 is not one of"),
        (summed([8, 8], "bool"), "bool is not one of"),
        (summed([8, 8], "complex64"), "complex64 is not one of"),
        (summed([8, 8], how="avg"), "it reduces by avg, not by sum"),
        (summed([2, 2, 2, 2, 8], how="max"), "it reduces by max, not by sum"),
    ],
)
def test_what_no_kernel_adds_up_is_left(
    text: str, said: str, workspace: Workspace, faster: None
) -> None:
    assert said in reason(text, workspace)


@pytest.mark.parametrize(
    "line, name",
    [
        ("all_to_all_single.default(a, [4, 4], [4, 4], '0')", "all_to_all_single"),
        ("broadcast.default(a, 0, '0')", "broadcast"),
        ("all_reduce_.default(a, 'sum', '0')", "all_reduce_"),
    ],
)
def test_collectives_of_other_kinds_are_reported(
    line: str, name: str, workspace: Workspace, faster: None
) -> None:
    text = graph(FLOWN.format(line), END.format("c"), "e", head=HEAD)
    assert reason(text, workspace) == f"no kernel does what _c10d_functional.{name}.default does"


def test_a_collective_that_is_waited_for_twice_is_reported(
    workspace: Workspace, faster: None
) -> None:
    text = graph(*GATHERED, "v = _c10d_functional.wait_tensor.default(g)", "w, v")
    assert reason(text, workspace) == ("2 of its 2 users wait for it, and a kernel has no wait")


@pytest.mark.parametrize("step", ["gather_gemm", "placed", "_value"])
def test_a_failure_leaves_the_graph_and_is_told(
    step: str, workspace: Workspace, faster: None, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """A fault of the pass's own, at its last step: nothing of the replacement stays."""
    monkeypatch.setattr("tftune.models.compatibility._LOGGED", set())
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


def normed(residual: str = "aten.slice.Tensor(b, 1, 64, 128)", weight: str = "float16") -> str:
    """rms_norm(all_reduce(a) + residual) * weight, of rows of 64."""
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
        head="# a = float16 [8, 64] [64, 1]\n# b = float16 [8, 128] [128, 1]\n"
        f"# g = {weight} [64] [1]\ndef forward(self, a, b, g):\n",
    )


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
    (call,) = (n for n in module.graph.nodes if str(n.target).startswith("tftune"))
    assert all(why_misplaced("it", n.meta["val"]) is None for n in call.all_input_nodes)
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
        normed(weight="float32"),
        re.sub(r"# g = float16 \[64\]", "# g = float16 [1]", normed()),
        normed().replace("aten.mul.Tensor(y, g)", "aten.mul.Tensor(y, aten_one)").replace(
            "    y = ", "    aten_one = torch.ops.aten.add.Tensor(g, 1)\n    y = "
        ),
        normed().replace("(x, t)\n", "(x, t)\n    h = torch.ops.aten.mul_.Scalar(g, 2)\n"),
    ],
)  # fmt: skip
def test_weights_that_no_kernel_reads_are_not_taken(
    text: str, workspace: Workspace, faster: None
) -> None:
    """Of another dtype or size, computed (Gemma adds 1), or written between."""
    _, pass_ = passed(text, workspace)
    assert "residual and norm" not in pass_.report[0].reason


def test_a_norm_over_rows_of_another_view_has_its_own_rows(
    workspace: Workspace, faster: None
) -> None:
    text = (
        normed("aten.reshape.default(b, [8, 2, 64])")
        .replace("aten.add.Tensor(w, s)", "aten.add.Tensor(v, s)")
        .replace("    s = ", "    v = torch.ops.aten.reshape.default(w, [8, 2, 64])\n    s = ")
        .replace("# a = float16 [8, 64] [64, 1]", "# a = float16 [8, 128] [128, 1]")
        .replace("[1], True", "[2], True")
    )
    got, exact, report = both(text, workspace)
    assert "residual and norm" in report[0].reason
    torch.testing.assert_close(got[0], exact[0], rtol=1e-2, atol=1e-2)


def test_elements_gathered_one_by_one_are_no_rows(workspace: Workspace, faster: None) -> None:
    text = graph(
        *GATHERED, "v = aten.reshape.default(w, [1, 64])", TURNED, "c = aten.mm.default(v, t)",
        "c", head=HEAD.replace("[8, 64] [64, 1]", "[32] [1]"),
    )  # fmt: skip
    assert reason(text, workspace) == "it gathers elements, not rows"


def test_an_input_that_is_written_between_stays(workspace: Workspace, faster: None) -> None:
    text = graph(*GATHERED, "h = aten.mul_.Scalar(a, 2)", TURNED, "c = aten.mm.default(w, t)", "c")
    assert "writes in place" in reason(text, workspace)


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
    def failing(self: Editor) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Editor, "_swap", failing)
    text = graph(
        *GATHERED, "f = _c10d_functional.all_gather_into_tensor.default(a, 2, '0')",
        "v = _c10d_functional.wait_tensor.default(f)", "v, w",
    )  # fmt: skip
    module, _ = passed(text, workspace)
    assert targets(module) == {"collectives": 2}


IN_FLIGHT = [
    ("_c10d_functional.all_reduce_coalesced.default([a, a], 'sum', 'dp')", "f[0]"),
    ("_c10d_functional.all_to_all_single.default(a, [4, 4], [4, 4], '0')", "f"),
    ("_c10d_functional.broadcast.default(a, 0, '0')", "f"),
    ("_c10d_functional.all_reduce_.default(b, 'sum', '0')", "b"),
    ("_c10d_functional.all_gather_into_tensor_out.default(a, 2, '0', out=b)", "b"),
    ("_c10d_functional_autograd.all_to_all_single.default(a, [4, 4], [4, 4], '0')", "f"),
]


@pytest.mark.parametrize("line, waited", IN_FLIGHT)
@pytest.mark.parametrize("ends", [True, False])
def test_no_collective_of_any_kind_is_in_flight_beside_a_kernel(
    line: str, waited: str, ends: bool, workspace: Workspace, faster: None
) -> None:
    """Its waits come first; where there is none, one is made."""
    head = HEAD.replace("[32, 64]", "[16, 64]") if "out=" in line else HEAD
    late = (f"x = _c10d_functional.wait_tensor.default({waited})",) if ends else ()
    text = graph(
        f"f = {line}",
        "m = aten.mm.default(a, k)",
        "r = _c10d_functional.all_reduce.default(m, 'sum', '0')",
        "w = _c10d_functional.wait_tensor.default(r)",
        *late,
        "w",
        head=head.replace("a, b)", "a, b, k)").replace(
            "def", "# k = float16 [64, 32] [32, 1]\ndef"
        ),
    )
    module = passed(text, workspace)[0]
    order = [str(node.target) for node in module.graph.nodes]
    kernel = next(i for i, name in enumerate(order) if name.startswith("tftune"))
    waits = order[:kernel].count("_c10d_functional.wait_tensor.default")
    assert waits >= 1 and targets(module)[SUM] == 1


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
    text = graph(
        TURNED, *SCATTERED, "x = _c10d_functional.wait_tensor.default(p)", "w, x",
        head=HEAD.replace("a, b)", "a, b, p)").replace("def", "# p = float16 [8] [1]\ndef"),
    )  # fmt: skip
    module, _ = passed(text, workspace)
    order = [str(node.target) for node in module.graph.nodes]
    kernel = next(i for i, name in enumerate(order) if name.startswith("tftune"))
    assert "_c10d_functional.wait_tensor.default" in order[:kernel]


def test_both_needs_of_an_all_reduce_are_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GEMM and the norm: what either needs, and the gain of the one that fits."""
    from dataclasses import replace

    monkeypatch.setattr(tftune, "select_kernel", told.select())
    text = dumped.text("reduce_torch213")
    _, pass_ = passed(text, replace(workspace, generation_bytes=16))
    for decision in pass_.report:
        assert re.search(r"gemm_all_reduce: it needs \d+ bytes", decision.reason)
        assert re.search(r"\ball_reduce: it needs \d+ bytes", decision.reason)
    assert "all_reduce with norm: it needs" in pass_.report[0].reason
