"""`tftune.compile_pass` on graphs: what it replaces, what it leaves and why. Nothing runs here; the
numbers are in test_compile_pass_ranks.py."""

from __future__ import annotations

import copy
import logging
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import dumped
import pytest
import told
import torch
import torch.distributed as dist

import tftune
from tftune.graph_pass import inductor
from tftune.graph_pass.inductor import CompilePass
from tftune.graph_pass.matching import COLLECTIVES
from tftune.graph_pass.report import Decision, table
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace

VERSIONS = ("torch211", "torch213")
GATHER, SCATTER, SUM = "all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce"
EXPECTED = {
    "sequence": ({GATHER: 2, SCATTER: 2}, 0),
    "sequence_batch2": ({GATHER: 2, SCATTER: 2}, 0),
    "sequence_dynamic": ({SCATTER: 2}, 2),
    "sequence_training": ({SCATTER: 2}, 2),
    "sequence_training_backward": ({SCATTER: 5}, 2),
    "reduce": ({SUM: 2}, 0),
}
"""Operators that replace, and collectives that stay, where kernels are faster for every shape."""
HEAD = "# a = float16 [8, 64] [64, 1]\n# b = float16 [32, 64] [64, 1]\ndef forward(self, a, b):\n"
OPS = "    {0} = torch.ops.{1}\n"


def graph(*lines: str, head: str = HEAD) -> str:
    """The text of a graph: `name = target(...)` lines, targets without their `torch.ops.`."""
    body = (OPS.format(*line.split(" = ", 1)) for line in lines[:-1])
    return head + "".join(body) + f"    return ({lines[-1]},)\n"


GATHERED = (
    "g = _c10d_functional.all_gather_into_tensor.default(a, 2, '0')",
    "w = _c10d_functional.wait_tensor.default(g)",
)
TURNED = "t = aten.permute.default(b, [1, 0])"
PLAIN = graph(*GATHERED, TURNED, "c = aten.mm.default(w, t)", "c")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Rank 0 of two, whose peer never runs."""
    emulated.prepare(tmp_path, 2, 1 << 20)
    return emulated.workspace(tmp_path, 0, 2, 1 << 20)


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel is faster for every shape."""
    monkeypatch.setattr(tftune, "select_kernel", told.select())


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


def reason(text: str, workspace: Workspace, **options: Any) -> str:
    """Why the graph's only collective stays; the graph is as it was."""
    module, pass_ = passed(text, workspace, **options)
    assert module.code == dumped.rebuilt(text).code
    (decision,) = pass_.report
    assert not decision.replaced
    return decision.reason


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
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tftune, "select_kernel", told.select({}))
    module, pass_ = passed(dumped.text("sequence_torch213"), workspace)
    assert targets(module) == {"collectives": 4}  # of 7: q, k and v share one, gate and up another
    assert {d.reason.split(": ")[-1] for d in pass_.report} == {"BSP is faster"}


@pytest.mark.parametrize(
    "text",
    [
        graph(TURNED, "c = aten.mm.default(a, t)", "c"),
        graph(TURNED, "c = aten.mm.default(a, t)", "d = aten.add.Tensor(c, 1)", "d"),
    ],
)
def test_a_graph_without_collectives_is_unchanged(
    text: str, workspace: Workspace, faster: None
) -> None:
    module, pass_ = passed(text, workspace)
    assert module.code == dumped.rebuilt(text).code and pass_.report == ()
    assert pass_.table() == "replaced=0 kept=0"


def test_other_groups_are_left_alone(workspace: Workspace, faster: None) -> None:
    assert reason(PLAIN, workspace, group="tp") == "it is of group 0, not tp"
    assert passed(PLAIN, workspace)[1].report[0].replaced


def test_another_group_size_is_left_alone(workspace: Workspace, faster: None) -> None:
    four = PLAIN.replace("default(a, 2,", "default(a, 4,")
    assert reason(four, workspace) == "it is of 4 ranks and the workspace of 2"


def test_an_uncontiguous_weight_is_left_alone(workspace: Workspace, faster: None) -> None:
    strided = PLAIN.replace("# b = float16 [32, 64] [64, 1]", "# b = float16 [32, 64] [128, 1]")
    assert reason(strided, workspace) == "B is not contiguous: [64, 32] of strides [1, 128]"


def test_a_weight_stored_transposed_is_taken_as_it_lies(workspace: Workspace, faster: None) -> None:
    head = HEAD.replace("[32, 64] [64, 1]", "[64, 32] [1, 64]")
    module, _ = passed(graph(*GATHERED, "c = aten.mm.default(w, b)", "c", head=head), workspace)
    (node,) = (n for n in module.graph.nodes if str(n.target).startswith("tftune"))
    assert node.args[4] == "nk" and node.args[1].meta["val"].is_contiguous()
    plain = HEAD.replace("[32, 64] [64, 1]", "[64, 32] [32, 1]")
    module, _ = passed(graph(*GATHERED, "c = aten.mm.default(w, b)", "c", head=plain), workspace)
    (node,) = (n for n in module.graph.nodes if str(n.target).startswith("tftune"))
    assert node.args[1].name == "b" and node.args[4] == "kn"


def test_a_symbolic_n_is_left_alone(workspace: Workspace, faster: None) -> None:
    symbolic = PLAIN.replace("[32, 64] [64, 1]", "[s5, 64] [64, 1]")
    assert reason(symbolic, workspace).startswith("N or K is symbolic: B is [64, s")


def test_a_symbolic_m_is_selected_at_run_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLAIN.replace("[8, 64] [64, 1]", "[s5, 64] [64, 1]")

    def selected(shape: Any, mode: str) -> Any:
        return told.fused(shape, told.FASTER if shape.m == 64 else told.SLOWER)

    monkeypatch.setattr(tftune, "select_kernel", selected)
    _, pass_ = passed(text, workspace)
    (decision,) = pass_.report
    assert decision.replaced and "times are of M = 64" in decision.reason
    assert decision.shape.startswith("m=2*s")
    monkeypatch.setattr(tftune, "select_kernel", told.select({}))
    assert reason(text, workspace).startswith("BSP for every M tried, 4 to ")


def test_what_gains_at_most_sizes_is_taken_whatever_one_prompt_gains(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The all-reduce alone gains 31 us of a prompt of 4096, with its norm 10 us; at sizes of
    decoding the norm gains more (2x H200, `n=4096`, in vLLM, 2026-11-26)."""
    rows = "[s5, 64] [64, 1]"
    text = graph(
        "s = _c10d_functional.all_reduce.default(a, 'sum', '0')",
        "w = _c10d_functional.wait_tensor.default(s)",
        "d = aten.add.Tensor(w, r)",
        "f = prims.convert_element_type.default(d, torch.float32)",
        "p = aten.pow.Tensor_Scalar(f, 2)",
        "m = aten.mean.dim(p, [1], True)",
        "e = aten.add.Scalar(m, 1e-05)",
        "q = aten.rsqrt.default(e)",
        "x = aten.mul.Tensor(f, q)",
        "y = aten.mul.Tensor(x, g)",
        "z = prims.convert_element_type.default(y, torch.float16)",
        "z",
        head=f"# a = float16 {rows}\n# r = float16 {rows}\n# g = float16 [64] [1]\n"
        "def forward(self, a, r, g):\n",
    )

    def selected(shape: Any, mode: str) -> Any:
        gain = 30.0 if shape.m == 2048 else 3.0
        if shape.norm == "rms":
            gain = 10.0 if shape.m == 2048 else 4.0
        return told.fused(shape, (10.0, 10.0 + gain))

    monkeypatch.setattr(tftune, "select_kernel", selected)
    for sizes, normed in (((1, 16, 64, 2048), True), ((2048,), False), ((1, 2), True)):
        pass_ = CompilePass("0", workspace)
        pass_.sizes = sizes
        pass_(dumped.rebuilt(text).graph, True)
        (decision,) = pass_.report
        assert decision.replaced and ("with residual and norm" in decision.reason) == normed


def test_rows_of_a_batch_are_put_in_order_where_that_is_no_loss(
    workspace: Workspace, faster: None
) -> None:
    """Batch 2 with the sequence sharded: [2, 4, K] of each rank become [2, 8, K]."""
    wide = graph(
        *GATHERED,
        "s = aten.split.Tensor(w, 2)",
        "c = aten.cat.default([s[0], s[1]], 1)",
        "f = aten.reshape.default(c, [16, 64])",
        TURNED,
        "m = aten.mm.default(f, t)",
        "m",
        head=HEAD.replace("[8, 64] [64, 1]", "[2, 4, 64] [256, 64, 1]"),
    )
    module, pass_ = passed(wide, workspace)
    assert targets(module) == {GATHER: 1} and pass_.report[0].replaced
    widest = wide.replace("[32, 64]", "[96, 64]")
    assert reason(widest, workspace) == "ordering rows of 96 of C costs more than 64 of A"


def test_pieces_in_another_order_are_no_gather(workspace: Workspace, faster: None) -> None:
    text = graph(
        *GATHERED,
        "s = aten.split.Tensor(w, 8)",
        "c = aten.cat.default([s[1], s[0]])",
        TURNED,
        "m = aten.mm.default(c, t)",
        "m",
    )
    assert reason(text, workspace) == "rows are joined otherwise than a gather leaves them"


def test_a_gathered_tensor_used_elsewhere_stays(workspace: Workspace, faster: None) -> None:
    text = graph(*GATHERED, TURNED, "c = aten.mm.default(w, t)", "c, w")
    assert reason(text, workspace) == "output needs the gathered A itself, which no kernel returns"


def test_a_group_with_too_small_a_workspace_is_left_alone(
    workspace: Workspace, faster: None
) -> None:
    small = replace(workspace, generation_bytes=512)
    said = "it needs 2048 bytes and the workspace has 512: compile_pass(max_bytes=2048)"
    assert reason(PLAIN, small) == said


def test_a_dtype_that_no_kernel_takes_is_left_alone(workspace: Workspace, faster: None) -> None:
    assert "float32 is not one of" in reason(PLAIN.replace("float16", "float32"), workspace)


SCATTERED = (
    "m = aten.mm.default(a, t)",
    "r = _c10d_functional.reduce_scatter_tensor.default(m, 'sum', 2, '0')",
    "w = _c10d_functional.wait_tensor.default(r)",
)


@pytest.mark.parametrize(
    "lines, said",
    [
        ((TURNED, SCATTERED[0], *(s.replace("sum", "avg") for s in SCATTERED[1:]), "w"),
         "it reduces by avg, not by sum"),
        ((TURNED, *SCATTERED, "m, w"), "the result of the GEMM is used elsewhere, too"),
        ((SCATTERED[1].replace("(m", "(a"), SCATTERED[2], "w"), "no GEMM feeds it"),
        ((TURNED, SCATTERED[0], "f = prims.convert_element_type.default(m, torch.float32)",
          SCATTERED[1].replace("(m", "(f"), SCATTERED[2], "w"),
         "the result of the GEMM is added up as torch.float32"),
        ((TURNED, "x = aten.select.int(b, 1, 0)", "m = aten.addmm.default(x, a, t)",
          *SCATTERED[1:], "w"),
         "a bias is added before the sum over ranks"),
    ],
)  # fmt: skip
def test_sums_that_no_kernel_computes_are_left_alone(
    lines: tuple[str, ...], said: str, workspace: Workspace, faster: None
) -> None:
    assert reason(graph(*lines), workspace) == said


def test_several_gemms_of_one_gather_stay_where_joining_costs_more_than_it_gains(
    workspace: Workspace, faster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = graph(
        *GATHERED, TURNED, "c = aten.mm.default(w, t)", "u = aten.permute.default(d, [1, 0])",
        "e = aten.mm.default(w, u)", "c, e", head=HEAD.replace("a, b)", "a, b, d)").replace(
            "def", "# d = float16 [32, 64] [64, 1]\ndef"),
    )  # fmt: skip
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
        TURNED,
        "c = aten.mm.default(w, t)",
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

    monkeypatch.setattr(tftune, "select_kernel", selected)
    module, pass_ = passed(dumped.text("sequence_torch211"), workspace)
    assert targets(module)[GATHER] == 5 and targets(module)["collectives"] == 0
    assert all("GEMMs of a gather" in d.reason for d in pass_.report if d.operation == GATHER)


def test_constants_are_joined_once_and_only_in_inference(
    workspace: Workspace, faster: None
) -> None:
    text = dumped.text("sequence_torch213")
    modules = {}
    for training in (False, True):
        module = dumped.rebuilt(text)
        for node in [n for n in module.graph.nodes if n.op == "placeholder"][2:5]:
            module.register_buffer(f"_{node.name}", torch.ones(node.meta["val"].shape).half())
            with module.graph.inserting_before(node):
                constant = module.graph.get_attr(f"_{node.name}")
            constant.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(constant)
        CompilePass("0", workspace, training=training)(module.graph, not training)
        module.graph.lint()
        modules[training] = module
    joined = [name for name, _ in modules[False].named_buffers() if name.startswith("_tftune")]
    assert [modules[False].get_buffer(name).shape for name in joined] == [(64, 64)]
    assert not [name for name, _ in modules[True].named_buffers() if name.startswith("_tftune")]


def test_no_collective_is_in_flight_beside_a_kernel(workspace: Workspace, faster: None) -> None:
    """A gather of another group that began before and is waited for behind comes first."""
    text = graph(
        "o = _c10d_functional.all_gather_into_tensor.default(a, 4, 'dp')",
        *GATHERED,
        TURNED,
        "c = aten.mm.default(w, t)",
        "x = _c10d_functional.wait_tensor.default(o)",
        "c, x",
    )
    module, _ = passed(text, workspace)
    order = [node.name for node in module.graph.nodes]
    assert order.index("wait_tensor_default_1") < order.index("all_gather_gemm_default")


@pytest.mark.parametrize(
    "times, replaced",
    [
        ({SUM: (4.0, 10.0), "all_reduce": (5.0, 10.0)}, SUM),
        ({SUM: (6.0, 10.0), "all_reduce": (5.0, 10.0)}, "all_reduce"),
        ({"all_reduce": (5.0, 10.0)}, "all_reduce"),
    ],
)
def test_an_all_reduce_takes_the_gemm_or_the_norm_whichever_gains_more(
    times: Any, replaced: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tftune, "select_kernel", told.select(times))
    module, pass_ = passed(dumped.text("reduce_torch211"), workspace)
    assert targets(module) == {replaced: 2}
    normed = [d for d in pass_.report if "residual and norm" in d.reason]
    assert len(normed) == (replaced == "all_reduce")
    roots = sum(node.target is torch.ops.aten.rsqrt.default for node in module.graph.nodes)
    assert roots == 2 - len(normed)


@pytest.mark.parametrize("version", ["211", "213"])
def test_a_norm_keeps_its_epsilon(
    version: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Llama adds 1e-5."""
    monkeypatch.setattr(tftune, "select_kernel", told.select({"all_reduce": (5.0, 10.0)}))
    text = dumped.with_eps(f"reduce_torch{version}", dumped.LLAMA_EPS)
    module, pass_ = passed(text, workspace)
    (normed,) = (d for d in pass_.report if "residual and norm" in d.reason)
    target = torch.ops.tftune.all_reduce.default
    (found,) = (n for n in module.graph.nodes if n.target is target and n.args[2] is not None)
    assert normed.replaced and found.args[5] == float(dumped.LLAMA_EPS)


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
    monkeypatch.setattr(tftune, "select_kernel", told.select({"all_reduce": (5.0, 10.0)}))
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
    head = HEAD.replace("[8, 64] [64, 1]", "[8192, 64] [64, 1]")
    text = graph(
        *GATHERED, "s = aten.split.Tensor(w, 64)", "c = aten.cat.default([s[0], s[1]], 1)",
        "m = aten.mm.default(c, b)", "m",
        head=head.replace("[8192, 64] [64, 1]", "[64, 4096] [4096, 1]").replace(
            "[32, 64] [64, 1]", "[8192, 3584] [3584, 1]"),
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
    tftune.use(tftune.load(target="h200x2"))
    seen.add(pass_.uuid())
    tftune.use(tftune.load(target="h200x4"))
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
    pass_ = CompilePass("0", workspace)
    assert copy.deepcopy({"post_grad_custom_post_pass": pass_}) == {
        "post_grad_custom_post_pass": pass_
    }


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
