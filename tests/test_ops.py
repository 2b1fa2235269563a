"""tftune.ops on emulated ranks: what is selected runs, and ranks that cannot agree all run BSP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lone import lone
from synthetic import exported
from told import select
from torch._dynamo.testing import CompileCounter

import tftune
from tftune import ops
from tftune.db.trial import MODES
from tftune.kernels.all_gather_gemm import AllGatherGemm, host, reference
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.all_reduce import reference as sums
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode import host as decode_host
from tftune.kernels.flash_decode import reference as decodes
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.merge_attention import MergeAttention
from tftune.kernels.runtime import plan
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.operator import mode_at
from tftune.tuner.bench.check import relative_error

SHAPE = AllGatherGemm(7, 72, 264, 2)
B = torch.zeros(16, 8, dtype=torch.float16)


def told(variant: str, **knobs: Any) -> Selection:
    return Selection(Config(variant, **knobs), "fallback", "as told")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[Any, Config]], list[Any]]:
    """The shape and config of each plan that is made, and the operands of each call. Plans do
    nothing; what is not told otherwise answers BSP."""
    made, called = list[tuple[Any, Config]](), list[Any]()

    def prepare(shape: Any, config: Config, workspace: Workspace) -> Any:
        made.append((shape, config))
        return lambda *operands: called.append(operands)

    for its_host in (host, decode_host):
        monkeypatch.setattr(its_host, "prepare", prepare)
    tftune.use(Selector())
    return made, called


def gathered(m: int, workspace: Workspace, layout: str = "kn", mode: str = "graph") -> None:
    """A call along K for layout "kn", and along M for "nk"."""
    a = torch.zeros(m, 8, dtype=torch.float16)
    shard = "k" if layout == "kn" else "m"
    ops.all_gather_gemm(a, B, workspace, shard=shard, b_layout=layout, mode=mode)


def decoded() -> tuple[torch.Tensor, ...]:
    """q, k and lengths of 2 sequences in a cache of 32 tokens."""
    q, k = torch.zeros(2, 4, 64).half(), torch.zeros(2, 32, 2, 64).half()
    return q, k, torch.zeros(2, dtype=torch.int32)


def called(workspace: Workspace, paths: list[Path]) -> tuple[str, str, float]:
    """This rank's variant, why, and the error of two calls in tolerances, after all ranks bound
    what they loaded."""
    tftune.use(tftune.load(paths[workspace.rank], allow_modelled=True))
    tftune.bind(workspace.group)
    selection = tftune.select_kernel(SHAPE)
    a, b = reference.make_inputs(SHAPE, workspace.rank, 0)
    exact = reference.reference(SHAPE, a, b, workspace.group)
    errors = [relative_error(ops.all_gather_gemm(a, b, workspace), exact) for _ in range(2)]
    return selection.config.variant, selection.reason, max(errors) / reference.tolerance(SHAPE)


@pytest.fixture
def artifact(make_rows: Any, tmp_path: Path) -> Path:
    shapes = tuple(AllGatherGemm(m, 72, 264, 2) for m in (1, 4, 7, 16))
    return exported(make_rows(shapes, bench="node"), tmp_path / "a.json")


def summed(workspace: Workspace) -> tuple[str, float]:
    """The form that another machine's artifact names for a sum, and its error in tolerances."""
    shape = AllReduce(3, 64, 2)
    tftune.use(tftune.load(target="h200x2"))
    inputs = sums.make_inputs(shape, workspace.rank, 0)
    exact = sums.reference(shape, *inputs, workspace.group)
    error = relative_error(ops.all_reduce(inputs[0], workspace), exact)
    return str(tftune.select_kernel(shape).config["form"]), error / sums.tolerance(shape)


def test_a_form_of_another_machine_gives_way_to_the_library() -> None:
    for form, error in emulated.run(2, summed):
        assert form == "one_shot" and error < 1


def test_what_is_selected_runs(artifact: Path) -> None:
    for variant, reason, error in emulated.run(2, called, [artifact, artifact]):
        assert variant == "push", reason
        assert error < 1


def test_ranks_with_different_artifacts_all_run_bsp(
    artifact: Path, make_rows: Any, tmp_path: Path
) -> None:
    shapes = SHAPE, AllGatherGemm(2, 72, 264, 2)
    other = exported(make_rows(shapes, bench="node"), tmp_path / "other.json")
    for variant, reason, error in emulated.run(2, called, [artifact, other]):
        assert variant == "bsp"
        assert "rank 1 differs from rank 0 in artifacts" in reason
        assert error < 1


LAYERS: tuple[tuple[Any, dict[str, float]], ...] = (
    (SHAPE, {}),
    (AllGatherGemm(16, 72, 264, 2), {}),
    (FlashDecode(2, 4, 2, 64, 64, 2), {}),
    (FlashDecode(2, 4, 2, 64, 64, 2, output="heads", page_size=16), {}),
    (AllReduce(3, 64, 2), {}),
    (AllReduce(3, 64, 2, norm="rms"), {}),
    (AllReduce(3, 64, 2, norm="rms"), {"eps": 0.5}),
    (FlashPrefill(1, 2, 1, 64, 40, dtype="fp16"), {}),
    (MergeAttention(3, 4, 64, 2), {}),
)
"""Shapes of layers, and what else their calls are given."""


def written(shape: Any, given: Any, workspace: Workspace) -> tuple[Any, dict[str, Any], Any]:
    """The operands of a layer, what it names, and the arguments of its operator."""
    at = workspace.handle
    match shape.op:
        case "all_gather_gemm":
            words = {"shard": shape.shard, "b_layout": shape.b_layout}
            return given, words, (*given, at, *words.values(), "graph")
        case "flash_decode":
            *operands, table = given
            words = {"table": table if shape.page_size else None, "output": shape.output}
            return operands, words, (*operands, at, *words.values(), "graph")
        case "all_reduce":
            x, *added = given
            words = dict(zip(("residual", "weight"), added or (None, None), strict=True))
            return (x,), words, (x, at, *words.values(), "graph")
        case "flash_prefill":
            return given, {"causal": shape.causal}, (*given, at, shape.causal, "graph")
    return given, {"output": shape.output}, (*given, at, shape.output, "e", "graph")


def traced(workspace: Workspace, fused: bool) -> list[float]:
    """Errors, in tolerances, of each layer as a plain call and traced whole, with and without
    `out`; what opcheck finds is raised. One trace serves all shapes of an operation."""
    if fused:
        tftune.select_kernel = select()  # type: ignore[assignment]
    else:
        tftune.use(Selector())
    errors, compiled = list[float](), dict[str, Any]()

    def layer(op: str, first: Any, others: Any, words: dict[str, Any], out: Any) -> Any:
        return getattr(ops, op)(first * 1, *others, workspace, **words, out=out) * 1

    for shape, more in LAYERS:
        if shape.op not in compiled:
            torch._dynamo.reset()
            compiled[shape.op] = torch.compile(layer, backend="aot_eager", fullgraph=True)
        formula = operation(shape.op).module("reference")
        given = formula.make_inputs(shape, workspace.rank, decodes.RAGGED_SEED)
        exact = formula.reference(shape, *given, workspace.group, **more)
        (first, *others), words, arguments = written(shape, given, workspace)
        for call in (layer, compiled[shape.op]):
            for out in (None, formula.make_output(shape).fill_(torch.nan)):
                result = call(shape.op, first, others, words | more, out)
                for each in (result,) if out is None else (result, out):
                    errors.append(relative_error(each, exact) / formula.tolerance(shape))
        operator = getattr(torch.ops.tftune, shape.op).default
        torch.library.opcheck(operator, (*arguments, *more.values()))
    return errors


@pytest.mark.parametrize("fused", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_a_layer_runs_what_is_selected_and_torch_compile_sees_one_operator(fused: bool) -> None:
    for errors in emulated.run(2, traced, fused, timeout_s=240):
        assert len(errors) == 6 * len(LAYERS) and max(errors) < 1


def test_no_operator_is_a_custom_op_which_looks_for_aliases_at_each_call() -> None:
    from torch._library.custom_ops import OPDEFS

    assert [name for name in OPDEFS if name.startswith("tftune::")] == []


def test_dynamo_leaves_an_operator_alone_that_a_skipped_frame_calls(recorded: Any) -> None:
    workspace, counted = lone(), CompileCounter()

    @torch._dynamo.disable(recursive=False)
    def skipped(a: torch.Tensor) -> torch.Tensor:
        words = workspace.handle, "k", "kn", "graph"
        return torch.ops.tftune.all_gather_gemm(a, B, *words)

    layer = torch.compile(lambda a: skipped(a * 2) + 1, backend=counted)
    layer(torch.zeros(7, 8, dtype=torch.float16))
    assert len(recorded[1]) == 1 and counted.frame_count == 2


def test_an_operand_of_a_graph_that_begins_elsewhere_is_copied(
    recorded: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """As a part of a flat buffer or of a mapped file may; an eager call without a gradient is told
    so."""
    workspace, (_, called) = lone(), recorded
    a = torch.arange(33).half()[1:].view(4, 8)
    for _ in range(2):
        torch.ops.tftune.all_gather_gemm(a, B, workspace.handle, "m", "nk", "graph")
    assert [given[0].data_ptr() % 16 for given in called] == [0, 0]
    assert torch.equal(called[0][0], a)
    assert caplog.text.count("tftune copies a of all_gather_gemm at each call: it begins 2 ") == 1
    with pytest.raises(ValueError, match="a begins 2 bytes behind a multiple of 16"):
        ops.all_gather_gemm(a, B, workspace, shard="m", b_layout="nk")


def test_a_plan_is_made_once_and_not_kept_when_the_selection_changes(
    recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = lone()
    for form in ("local_transpose", "gather_copy"):
        selector = tftune.use(Selector())
        answer = told("bsp", form=form)
        monkeypatch.setattr(selector, "select", lambda shape, mode, answer=answer: answer)
        for mode in ("graph", "eager", "graph", "eager"):
            gathered(4, workspace, mode=mode)
    forms = [config["form"] for _, config in recorded[0]]
    assert forms == ["local_transpose"] * 2 + ["gather_copy"] * 2, "one for each mode"


def test_a_layer_runs_what_is_selected_for_its_mode(
    recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What wins in a graph is often slower eagerly, where launches count."""
    monkeypatch.setattr(tftune._default, "select", lambda shape, mode: told(mode))
    workspace, (q, k, lengths) = lone(generation_bytes=8192), decoded()
    for mode in ("eager", "graph", "eager"):
        gathered(4, workspace, mode=mode)
        ops.flash_decode(q, k, k, lengths, workspace, mode=mode)
    assert [(shape.op, config.variant) for shape, config in recorded[0]] == [
        (op, mode) for mode in ("eager", "graph") for op in ("all_gather_gemm", "flash_decode")
    ]


def test_a_shape_that_the_workspace_has_no_room_for_runs_bsp(
    recorded: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A layer compiled for any M may see a larger one than the workspace was made for."""
    monkeypatch.setattr(tftune, "select_kernel", lambda shape, mode: told("push"))
    workspace = lone()
    for m in (256, 257, 258):
        gathered(m, workspace, "nk")
    made = [(shape.m, config.variant) for shape, config in recorded[0]]
    assert made == [(512, "bsp"), (514, "bsp"), (516, "bsp")]
    assert caplog.text.count("all_gather_gemm runs BSP for m=512") == 1
    gathered(4, workspace, "nk")
    shape, config = recorded[0][-1]
    assert (shape.m, config.variant) == (8, "push")
    assert len(caplog.records) == 1 and "it needs 8192 bytes of 4096" in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_of_many_shapes_the_oldest_plans_go_and_the_log_says_so(
    mode: str, recorded: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plan, "PLANS", 4)
    workspace = lone()
    with caplog.at_level("INFO", logger="tftune"):
        for m in (1, 2, 3, 4, 5, 2, 6, 1, 5):
            gathered(m, workspace, mode=mode)
    assert [shape.m for shape, _ in recorded[0]] == [1, 2, 3, 4, 5, 6, 1]
    assert len(workspace.calls) == 4
    dropped = [record.message for record in caplog.records]
    assert len(dropped) == 3 and all("plan dropped: kept=4, oldest=" in text for text in dropped)


def test_a_mode_of_sizes_selects_by_rows(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, original = [], tftune.select_kernel

    def select(shape: Any, mode: str) -> Any:
        asked.append((shape.m, mode))
        return original(shape, mode)

    monkeypatch.setattr(tftune, "select_kernel", select)
    workspace = lone()
    for m in (1, 2, 3):
        gathered(m, workspace, mode="graph:2")
    assert asked == [(1, "graph"), (2, "graph"), (3, "eager")]
    decode = tftune.FlashDecode(4, 8, 2, 64, 128, 2)
    assert [mode_at(f"graph:{most}", decode) for most in (3, 4)] == ["eager", "graph"]
    for mode in ("graph:", "graph:-1", "eager:4", "graph:4:4"):
        with pytest.raises(ValueError, match=f"mode='{mode}' is not one of graph, eager"):
            gathered(1, workspace, mode=mode)


def test_a_decode_that_ran_before_makes_no_plan_and_is_still_checked(recorded: Any) -> None:
    (made, called), workspace, (q, k, lengths) = recorded, lone(), decoded()
    pages, table = torch.zeros(4, 16, 2, 64).half(), torch.zeros(2, 2, dtype=torch.int32)
    for _ in range(2):
        for mode, output in (("graph", "all"), ("eager", "all"), ("graph", "heads")):
            result = ops.flash_decode(q, k, k, lengths, workspace, mode=mode, output=output)
            assert result.shape == (2, 4 if output == "all" else 2, 64)
        ops.flash_decode(q, pages, pages, lengths, workspace, table=table)
    shapes = [(shape.output, shape.page_size) for shape, _ in made]
    assert shapes == [("all", 0), ("all", 0), ("heads", 0), ("all", 16)] and len(called) == 8
    for bad, sentence in (
        ((q, k.bfloat16(), k, lengths), "k is torch.bfloat16"),
        ((q, k, k, lengths.long()), "lengths is torch.int64"),
        ((q.mT.contiguous().mT, k, k, lengths), "q must be contiguous"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ops.flash_decode(*bad, workspace)
    with pytest.raises(ValueError, match=r"out is \[2, 4, 32\] but must be \[2, 4, 64\]"):
        ops.flash_decode(q, k, k, lengths, workspace, out=torch.zeros(2, 4, 32).half())
    assert len(called) == 8


def test_a_handle_names_a_workspace_as_long_as_it_lives() -> None:
    workspace = lone()
    handle = workspace.handle
    assert Workspace.of(handle) is workspace
    del workspace
    gone = f"{handle} is gone: keep the workspace as long as what was compiled with it"
    with pytest.raises(ValueError, match=gone):
        Workspace.of(handle)
