"""`tftune.compile_pass` on graphs: what it replaces and by what. Nothing runs here. What it leaves
is in test_compile_pass_faults.py, and numbers are in test_compile_pass_ranks.py."""

from __future__ import annotations

import copy
import logging
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import dumped
import pytest
import told
import torch
import torch.distributed as dist
from pass_graphs import (
    GATHER,
    GATHERED,
    PLAIN,
    SCATTER,
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
    slower,
    targets,
    workspace,
)

import tftune
from tftune.graph_pass import inductor
from tftune.graph_pass.inductor import CompilePass
from tftune.graph_pass.report import Decision, table
from tftune.kernels.comm.workspace import Workspace

__all__ = ["faster", "slower", "workspace"]
VERSIONS = ("torch211", "torch213")
SUMS = {"all_reduce": (5.0, 10.0)}
EXPECTED = {
    "sequence": ({GATHER: 2, SCATTER: 2}, 0),
    "sequence_batch2": ({GATHER: 2, SCATTER: 2}, 0),
    "sequence_dynamic": ({SCATTER: 2}, 2),
    "sequence_training": ({SCATTER: 2}, 2),
    "sequence_training_backward": ({SCATTER: 5}, 2),
    "reduce": ({SUM: 2}, 0),
}
"""Operators that replace, and collectives that stay, where kernels are faster for every shape."""


def select(monkeypatch: pytest.MonkeyPatch, selected: Any) -> None:
    """`selected(shape, mode)` answers what the pass asks."""
    monkeypatch.setattr(tftune, "select_kernel", selected)


def test_every_dump_is_expected() -> None:
    assert dumped.names() == sorted(f"{name}_{v}" for name in EXPECTED for v in VERSIONS)
    for name in dumped.names():
        version = f"{name[-3]}.{name[-2:]}"
        assert dumped.text(name).startswith(f"# By tests/dump_graphs.py with torch {version}.")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", EXPECTED)
def test_patterns_of_dtensor_are_replaced(
    name: str, version: str, workspace: Workspace, faster: None
) -> None:
    training = "training" in name
    module, pass_ = passed(dumped.text(f"{name}_{version}"), workspace, training=training)
    replaced, kept = EXPECTED[name]
    assert targets(module) == +Counter(replaced | {"collectives": kept})
    assert Counter(d.operation for d in pass_.report if d.replaced) == Counter(replaced)
    assert sum(not d.replaced for d in pass_.report) == kept
    kinds = {d.graph for d in pass_.report}
    assert kinds == {("backward" if "back" in name else "forward") if training else "inference"}
    assert pass_.table().endswith(f"replaced={sum(replaced.values())} kept={kept}")


def test_where_bsp_is_faster_only_equal_gathers_are_merged(
    workspace: Workspace, slower: None
) -> None:
    module, pass_ = passed(dumped.text("sequence_torch213"), workspace)
    assert targets(module) == {"collectives": 4}  # of 7: q, k and v share one, gate and up another
    assert {d.reason.split(": ")[-1] for d in pass_.report} == {"BSP is faster"}


def test_a_graph_without_collectives_is_unchanged(workspace: Workspace, faster: None) -> None:
    text = graph(TURNED, "c = aten.mm.default(a, t)", "d = aten.add.Tensor(c, 1)", "d")
    module, pass_ = passed(text, workspace)
    assert module.code == dumped.rebuilt(text).code and pass_.report == ()
    assert pass_.table() == "replaced=0 kept=0"


def test_a_weight_stored_transposed_is_taken_as_it_lies(workspace: Workspace, faster: None) -> None:
    found = {}
    for layout, b in {"nk": "float16 [64, 32] [1, 64]", "kn": "float16 [64, 32]"}.items():
        text = graph(*GATHERED, "c = aten.mm.default(w, b)", "c", b=b)
        found[layout] = kernel(passed(text, workspace)[0])
        assert found[layout].args[4] == layout
    assert found["nk"].args[1].meta["val"].is_contiguous()
    assert found["kn"].args[1].name == "b"


def test_a_symbolic_m_is_selected_at_run_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = plain(a="float16 [s5, 64]")

    def selected(shape: Any, mode: str) -> Any:
        return told.fused(shape, told.FASTER if shape.m == 64 else told.SLOWER)

    select(monkeypatch, selected)
    (decision,) = passed(text, workspace)[1].report
    assert decision.replaced and "times are of M = 64" in decision.reason
    assert decision.shape.startswith("m=2*s")
    select(monkeypatch, told.select({}))
    assert reason(text, workspace).startswith("BSP for every M tried, 4 to ")


def test_what_gains_at_most_sizes_is_taken_whatever_one_prompt_gains(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The all-reduce alone gains 31 us of a prompt of 4096, with its norm 10 us; at sizes of
    decoding the norm gains more (2x H200, `n=4096`, in vLLM, 2026-11-26)."""
    rows = "float16 [s5, 64]"
    text = normed("aten.clone.default(b)", a=rows, b=rows)

    def selected(shape: Any, mode: str) -> Any:
        gain = 30.0 if shape.m == 2048 else 3.0
        if shape.norm == "rms":
            gain = 10.0 if shape.m == 2048 else 4.0
        return told.fused(shape, (10.0, 10.0 + gain))

    select(monkeypatch, selected)
    for sizes, with_norm in (((1, 16, 64, 2048), True), ((2048,), False), ((1, 2), True)):
        pass_ = CompilePass("0", workspace)
        pass_.sizes = sizes
        pass_(dumped.rebuilt(text).graph, True)
        (decision,) = pass_.report
        assert decision.replaced and ("with residual and norm" in decision.reason) == with_norm


def test_rows_of_a_batch_are_put_in_order_where_that_is_no_loss(
    workspace: Workspace, faster: None
) -> None:
    """Batch 2 with the sequence sharded: [2, 4, K] of each rank become [2, 8, K]."""
    lines = (
        *GATHERED,
        "s = aten.split.Tensor(w, 2)",
        "j = aten.cat.default([s[0], s[1]], 1)",
        "f = aten.reshape.default(j, [16, 64])",
        TURNED,
        "m = aten.mm.default(f, t)",
        "m",
    )
    module, pass_ = passed(graph(*lines, a="float16 [2, 4, 64]"), workspace)
    assert targets(module) == {GATHER: 1} and pass_.report[0].replaced
    widest = graph(*lines, a="float16 [2, 4, 64]", b="float16 [96, 64]")
    assert reason(widest, workspace) == "ordering rows of 96 of C costs more than 64 of A"


def test_a_group_with_too_small_a_workspace_is_left_alone(
    workspace: Workspace, faster: None
) -> None:
    small = replace(workspace, generation_bytes=512)
    said = "it needs 2048 bytes and the workspace has 512: compile_pass(max_bytes=2048)"
    assert reason(PLAIN, small) == said


def test_several_gemms_of_one_gather_stay_where_joining_costs_more_than_it_gains(
    workspace: Workspace, faster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = "u = aten.permute.default(d, [1, 0])", "e = aten.mm.default(w, u)"
    text = graph(*GATHERED, *TIMES, *second, "c, e", d="float16 [32, 64]")
    module, pass_ = passed(text, workspace)
    assert targets(module) == {GATHER: 1} and "weights joined" in pass_.report[0].reason
    monkeypatch.setattr("tftune.graph_pass.decide.Judge.copy_us", lambda self, size: size / 1024)
    assert reason(text, workspace) == (
        "2 GEMMs use it: it is no faster, 8.0 us of copying beside it"
    )  # 2 x 32 x 64 x 2 bytes


def test_a_slice_of_joined_columns_is_no_operand(workspace: Workspace, faster: None) -> None:
    """A GEMM behind one of two that were joined: rows of its A are as long as those of both."""
    text = graph(
        *GATHERED,
        *TIMES,
        "e = aten.mm.default(w, t)",
        "v = aten.reshape.default(c, [1, 16, 32])",
        "u = aten.reshape.default(v, [16, 32])",
        "f = aten.mm.default(u, b)",
        "r = _c10d_functional.reduce_scatter_tensor.default(f, 'sum', 2, '0')",
        "x = _c10d_functional.wait_tensor.default(r)",
        "x, e",
    )
    module, pass_ = passed(text, workspace)
    assert [d.replaced for d in pass_.report] == [True, False]
    assert pass_.report[1].reason == "A is not contiguous: [16, 32] of strides [64, 1]"
    assert targets(module) == {GATHER: 1, "collectives": 1}


def test_calls_for_each_gemm_win_where_they_are_faster_together(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small calls of 1 us each, and BSP of the joined weights takes 10."""

    def selected(shape: Any, mode: str) -> Any:
        return told.fused(shape, (1.0, 2.0) if shape.n <= 48 else told.FASTER)

    select(monkeypatch, selected)
    module, pass_ = passed(dumped.text("sequence_torch211"), workspace)
    assert targets(module)[GATHER] == 5 and targets(module)["collectives"] == 0
    assert all("GEMMs of a gather" in d.reason for d in pass_.report if d.operation == GATHER)


@pytest.mark.parametrize(("training", "joined"), [(False, [(64, 64)]), (True, [])])
def test_constants_are_joined_once_and_only_in_inference(
    training: bool, joined: list[Any], workspace: Workspace, faster: None
) -> None:
    module = dumped.rebuilt(dumped.text("sequence_torch213"))
    for node in [n for n in module.graph.nodes if n.op == "placeholder"][2:5]:
        module.register_buffer(f"_{node.name}", torch.ones(node.meta["val"].shape).half())
        with module.graph.inserting_before(node):
            constant = module.graph.get_attr(f"_{node.name}")
        constant.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(constant)
    CompilePass("0", workspace, training=training)(module.graph, not training)
    module.graph.lint()
    made = {name: one.shape for name, one in module.named_buffers() if name.startswith("_tftune")}
    assert list(made.values()) == joined


@pytest.mark.parametrize(
    "times, replaced",
    [
        ({SUM: (4.0, 10.0)} | SUMS, SUM),
        ({SUM: (6.0, 10.0)} | SUMS, "all_reduce"),
        (SUMS, "all_reduce"),
    ],
)
def test_an_all_reduce_takes_the_gemm_or_the_norm_whichever_gains_more(
    times: Any, replaced: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    select(monkeypatch, told.select(times))
    module, pass_ = passed(dumped.text("reduce_torch211"), workspace)
    assert targets(module) == {replaced: 2}
    with_norm = [d for d in pass_.report if "residual and norm" in d.reason]
    assert len(with_norm) == (replaced == "all_reduce")
    roots = sum(node.target is torch.ops.aten.rsqrt.default for node in module.graph.nodes)
    assert roots == 2 - len(with_norm)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_norm_keeps_its_epsilon(
    version: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Llama adds 1e-5."""
    select(monkeypatch, told.select(SUMS))
    text = dumped.with_eps(f"reduce_{version}", dumped.LLAMA_EPS)
    module, pass_ = passed(text, workspace)
    (with_norm,) = (d for d in pass_.report if "residual and norm" in d.reason)
    target = torch.ops.tftune.all_reduce.default
    (found,) = (n for n in module.graph.nodes if n.target is target and n.args[2] is not None)
    assert with_norm.replaced and found.args[5] == float(dumped.LLAMA_EPS)


@pytest.mark.parametrize(
    "old, new",
    [
        (r"pow\.Tensor_Scalar\((\w+), 2\)", r"pow.Tensor_Scalar(\1, 3)"),
        (r"pow\.Tensor_Scalar\((\w+), 2\)", r"add.Tensor(\1, \1)"),
        (r"mean\.dim\((\w+), \[2\]", r"mean.dim(\1, [1]"),
        (r"rsqrt\.default", "sqrt.default"),
    ],
)
def test_what_is_no_rms_norm_is_not_taken_for_one(
    old: str, new: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    select(monkeypatch, told.select(SUMS))
    text, count = re.subn(old, new, dumped.text("reduce_torch213"))
    assert count == 2
    module, pass_ = passed(text, workspace)
    assert targets(module) == {"all_reduce": 2}
    assert not any("residual and norm" in d.reason for d in pass_.report)


def test_without_a_workspace_the_pass_is_idle_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module, pass_ = passed(PLAIN, None, why_idle="no GPU")
    assert module.code == dumped.rebuilt(PLAIN).code
    assert pass_.table() == "no GPU" and "no GPU" in caplog.text and "no GPU" in repr(pass_)


def test_training_false_leaves_graphs_of_training_alone(workspace: Workspace, faster: None) -> None:
    module = dumped.rebuilt(dumped.text("sequence_training_torch213"))
    code = module.code
    pass_ = CompilePass("0", workspace, training=False)
    pass_(module.graph, is_inference=False)
    module.recompile()
    assert module.code == code and pass_.report == ()


def test_a_stale_artifact_replaces_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels whose revision is not the measured one."""
    tftune.use(tftune.load(target="h200x2"))
    text = graph(
        *GATHERED, "s = aten.split.Tensor(w, 64)", "c = aten.cat.default([s[0], s[1]], 1)",
        "m = aten.mm.default(c, b)", "m", a="float16 [64, 4096]", b="float16 [8192, 3584]",
    )  # fmt: skip
    _, pass_ = passed(text, workspace)
    assert pass_.report[0].replaced and pass_.report[0].gain_us > 0
    monkeypatch.setattr("tftune.models.chain.installed", lambda op, variant: "r999")
    tftune.use(tftune.load(target="h200x2"))
    assert "has changed: its revision here is r999" in reason(text, workspace)


def test_uuid_holds_what_compiled_code_rests_on(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_ = CompilePass("0", workspace)
    seen = {pass_.uuid()}
    for target in ("h200x2", "h200x4"):
        tftune.use(tftune.load(target=target))
        seen.add(pass_.uuid())
    seen.add(CompilePass("0", workspace, mode="eager").uuid())
    seen.add(CompilePass("0", replace(workspace), training=True).uuid())
    assert len(seen) == 5 and pass_.uuid() in seen
    tftune.use(tftune.load(target="h200x2"))
    assert pass_.uuid() in seen
    monkeypatch.setattr(inductor, "_source", lambda: "changed")
    assert pass_.uuid() not in seen


def test_torch_compile_may_copy_its_options(workspace: Workspace) -> None:
    """It does so for some of them, and a process group cannot be copied."""
    options = {"post_grad_custom_post_pass": CompilePass("0", workspace)}
    assert copy.deepcopy(options) == options


def test_a_graph_is_logged_once(
    workspace: Workspace, faster: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tftune"):
        passed(PLAIN, workspace)
    (record,) = caplog.records
    assert "replaced=1 kept=0" in record.getMessage()


def test_a_table_shows_what_has_no_times() -> None:
    kept = Decision(SUM, "all_reduce", "inference", "", False, "no GEMM feeds it")
    assert kept.gain_us is None
    assert table([kept]).splitlines()[0].endswith("  no GEMM feeds it")


def test_compile_pass_needs_ranks_and_a_known_mode() -> None:
    with pytest.raises(ValueError, match=r"dist\.init_process_group first"):
        tftune.compile_pass()
    with pytest.raises(ValueError, match="mode='captured' is not one of"):
        tftune.compile_pass(mode="captured")


def test_compile_pass_without_a_gpu_is_idle() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        pass_ = tftune.compile_pass()
        assert "no GPU" in str(pass_.why_idle) and pass_.workspace is None
    finally:
        dist.destroy_process_group()
