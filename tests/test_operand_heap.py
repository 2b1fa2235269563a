"""Operands on the heap, from `Workspace.empty` to what is selected for them: memory that is handed
out, errors, the shape that a call has, its rows and its answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from synthetic import exported

import tftune
from tftune.db.target import Target
from tftune.db.trial import Measurement
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.comm import emulated
from tftune.kernels.comm.operand_heap import ALIGNMENT, OperandHeap
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.operands import read_in_place
from tftune.models.artifact import read_artifact
from tftune.models.selector import Selector
from tftune.models.tree.codec import layout_of
from tftune.tuner.bench.clock import copies
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import Rounds
from tftune.tuner.bench.worker import SEEDS, operand_bytes

SIZES = 7, 72, 264, 2
LOCAL, HEAP = AllGatherGemm(*SIZES), AllGatherGemm(*SIZES, operands="heap")


@pytest.fixture
def heap() -> OperandHeap:
    return OperandHeap(torch.zeros(4096, dtype=torch.uint8))


def test_operands_follow_each_other_at_aligned_places(heap: OperandHeap) -> None:
    first, second = heap.empty((3, 8), torch.float16), heap.empty((5,), torch.bfloat16)
    assert (first.shape, first.dtype, second.dtype) == ((3, 8), torch.float16, torch.bfloat16)
    assert first.data_ptr() == heap.begin and second.data_ptr() == heap.begin + ALIGNMENT
    assert heap.holds(first) and heap.holds(second[2:]) and not heap.holds(torch.zeros(3))
    heap.clear()
    assert heap.empty((1,), torch.float16).data_ptr() == first.data_ptr()


def test_what_does_not_fit_is_refused_with_both_numbers(heap: OperandHeap) -> None:
    heap.empty((1,), torch.float16)
    heap.empty((3840 // 2,), torch.float16)
    heap.clear()
    heap.empty((1,), torch.float16)
    with pytest.raises(
        ValueError,
        match=r"an operand of \[1921\] has 3842 bytes and the workspace's operands have 3840 of "
        r"4096 left; create it with Workspace.create\(group, payload_bytes, operand_bytes=4098\)",
    ):
        heap.empty((1921,), torch.float16)
    none = OperandHeap()
    assert not none.holds(torch.zeros(3))
    with pytest.raises(ValueError, match=r"has 2 bytes .* have 0 of 0 left"):
        none.empty((1,), torch.float16)


def test_a_plan_that_reads_in_place_refuses_what_peers_could_not_read(heap: OperandHeap) -> None:
    called: list[Any] = []
    plan = read_in_place(lambda *operands: called.append(operands), heap)
    x, out = heap.empty((8,), torch.float16), heap.empty((8,), torch.float16)
    plan(x, out)
    assert len(called) == 1
    with pytest.raises(ValueError, match="the first operand does not lie in the workspace's heap"):
        plan(torch.zeros(8, dtype=torch.float16), out)
    with pytest.raises(ValueError, match="the result's 16 bytes overlap the first operand's 16"):
        plan(x, x)
    assert len(called) == 1


def test_a_layout_names_the_heap_alone() -> None:
    """What was written before there was one is of local operands, and stays as it is."""
    assert str(HEAP) == f"{LOCAL},operands=heap" and AllGatherGemm.parse(str(HEAP)) == HEAP
    assert LOCAL.layout == ("fp16", "k", "kn", 2) and HEAP.layout == (*LOCAL.layout, "heap")
    for shape in (LOCAL, HEAP):
        named = type(shape).named(shape.layout)
        assert layout_of("all_gather_gemm", named) == shape.layout
    assert layout_of("all_gather_gemm", {**AllGatherGemm.named(LOCAL.layout), "operands": "local"})
    with pytest.raises(ValueError, match="its layout has operands='there'"):
        layout_of("all_gather_gemm", {**AllGatherGemm.named(LOCAL.layout), "operands": "there"})
    with pytest.raises(ValueError, match="a layout says dtype where one of all_reduce has dtype"):
        layout_of("all_reduce", {"dtype": "fp16"})
    assert HEAP.family != LOCAL.family and HEAP.problem != LOCAL.problem


@pytest.mark.parametrize(
    "shape", [HEAP, AllReduce(64, 8192, 2, operands="heap"), AllReduce(1, 64, 2, operands="heap")]
)
def test_a_bench_has_memory_for_all_operands_it_rotates_over(shape: Any) -> None:
    cache = 60 << 20
    inputs = operation(shape.op).module("reference").make_inputs(shape, 0, 0)
    sets = len(SEEDS) - 1 + copies(sum(tensor.nbytes for tensor in inputs), cache)
    heap = OperandHeap(torch.empty(operand_bytes(shape, cache), dtype=torch.uint8))
    for _ in range(sets):
        heap.empty(inputs[0].shape, inputs[0].dtype)
    assert operand_bytes(LOCAL, cache) == 0


def test_a_search_measures_operands_on_the_heap() -> None:
    """In a world that has room for them: one that was made for others is made anew."""
    bench = NodeBench(Target.parse("h200x2"), 1 << 20, emulated=True, rounds=Rounds(1, 2, 2))
    try:
        for shape in (LOCAL, HEAP):
            pull = next(c for c in operation(shape.op).space.defaults(shape) if c.variant == "pull")
            found = bench.measure(shape, pull, "eager", None)
            assert isinstance(found, Measurement) and found.check_error is not None, found
        assert len(bench.starts_s) == 2
    finally:
        bench.close()


def called(workspace: Workspace, path: Path) -> dict[str, Any]:
    """What runs on this rank for the same A outside of the heap and in it."""
    from tftune.kernels.all_gather_gemm import host, reference
    from tftune.kernels.all_reduce import host as reduce_host
    from tftune.ops import all_gather_gemm
    from tftune.tuner.bench.check import relative_error

    tftune.bind(workspace.group, path=path, allow_modelled=True)
    a, b = reference.make_inputs(LOCAL, workspace.rank, 0)
    shared = workspace.empty(a.shape, a.dtype).copy_(a)
    exact = reference.reference(LOCAL, a, b, workspace.group)
    results = [all_gather_gemm(given, b, workspace) for given in (a, shared, a, shared)]
    rows = workspace.empty((4, 8), torch.float16), torch.zeros(4, 8, dtype=torch.float16)
    return {
        "errors": max(relative_error(c, exact) for c in results) / reference.tolerance(LOCAL),
        "shapes": [host.shape_of(given, b, workspace, "k", "kn") for given in (a, shared)],
        "reduced": [reduce_host.shape_of(x, None, None, workspace).operands for x in rows],
        "plans": len(workspace.calls),
    }


def test_where_an_operand_lies_is_part_of_its_shape(make_rows: Any, tmp_path: Path) -> None:
    shapes = [AllGatherGemm(m, 72, 264, 2, operands=o) for m in (1, 7) for o in ("local", "heap")]
    path = exported(make_rows(tuple(shapes), bench="node"), tmp_path / "a.json")
    selector = Selector(read_artifact(path), allow_modelled=True)
    assert selector.select(HEAP).source == selector.select(LOCAL).source == "measured"
    for found in emulated.run(2, called, path, operand_bytes=1 << 16):
        assert found["errors"] < 1 and found["plans"] == 2
        assert found["shapes"] == [LOCAL, HEAP] and found["reduced"] == ["heap", "local"]


def test_local_answers_serve_where_the_heap_was_not_measured(
    make_rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tftune.operator import _served

    shapes = tuple(AllGatherGemm(m, 72, 264, 2) for m in (1, 7))
    path = exported(make_rows(shapes, bench="node"), tmp_path / "a.json")
    selector = Selector(read_artifact(path), allow_modelled=True)
    monkeypatch.setattr(tftune, "_default", selector)
    assert selector.select(LOCAL).source == "measured"
    refused = selector.select(HEAP)
    assert refused.source == "fallback" and "operands=heap was never measured" in refused.reason
    assert _served(HEAP, "graph") == (LOCAL, selector.select(LOCAL).config)


def test_warm_up_takes_local_operands() -> None:
    from types import SimpleNamespace

    from tftune.confirm.request import check_shape

    workspace: Any = SimpleNamespace(world=2, generation_bytes=1 << 20)
    with pytest.raises(ValueError, match="has its operands on the heap, where warm_up makes none"):
        check_shape(HEAP, workspace)


def test_pull_has_one_way_to_read_in_place() -> None:
    """Knobs of what it does not do there have one value."""
    space = operation("all_gather_gemm").space
    shape = AllGatherGemm(256, 72, 2048, 2, operands="heap")
    one = dict(block_m=16, block_n=32, k_per_flag=256, group_m=1, comm_programs=8, rows_per_flag=16)
    assert space.why_invalid(shape, Config("pull", **one)) is None
    for other in (dict(comm_programs=16), dict(rows_per_flag=64), dict(order="column")):
        refused = Config("pull", **one | other)
        assert "pull moves nothing of operands on the heap" in str(
            space.why_invalid(shape, refused)
        )
        assert space.why_invalid(replace(shape, operands="local"), refused) is None
