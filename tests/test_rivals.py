"""benchmarks/rivals.py without GPUs: what it tells from made rows, and, on emulated ranks, that a
bad rival is a row and no more."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import rival_calls
import rival_rows
import rivals
import stand_ins
import torch

from tftune.cli.shapes_file import read_shapes
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.tuner.bench.worker import WorldSpec

SMALL, LARGE = AllGatherGemm(16, 3584, 8192, 4), AllGatherGemm(1024, 3584, 8192, 4)
PUSH = rivals.default_fused(SMALL, "graph")


def made_rows() -> list[rival_rows.Row]:
    """tftune at 10 us and 20 us; iris takes twice, then 8 times as long; torch could not run the
    small one, and takes half at the other."""
    rows = []
    for shape, us in ((SMALL, 10.0), (LARGE, 20.0)):
        bsp = Measurement((15.0, 15.0, 15.0), (15.0, 15.0, 15.0), 1e-4)
        ours = Measurement((us, us, 3 * us), (15.0, 15.0, 15.0), 1e-4)
        iris = Measurement(
            tuple(sample * (2 if shape == SMALL else 8) for sample in ours.samples_us),
            (15.0, 15.0, 15.0),
            1e-4,
        )
        torch = (
            Failure("hang", "ranks [0, 1] had not ended")
            if shape == SMALL
            else replace(ours, samples_us=(10.0, 10.0, 30.0))
        )
        rows += [
            rival_rows.Row(shape, "graph", "bsp", Config("bsp", form="gather_copy"), bsp),
            rival_rows.Row(shape, "graph", "tftune", PUSH, ours),
            rival_rows.Row(shape, "graph", "torch", Config("torch"), torch),
            rival_rows.Row(shape, "graph", "iris", Config("iris"), iris),
        ]
    return rows


def test_the_table_has_a_time_or_the_kind_of_failure_for_each() -> None:
    told = list(rival_rows.table(made_rows()))
    assert told[:2] == ["| M | bsp | tftune | torch | iris |", "|---|---|---|---|---|"]
    assert told[2:4] == [
        "| 16 | 15.0 | 10.0 | hang | 20.0 |",
        "| 1024 | 15.0 | 20.0 | 10.0 | 160.0 |",
    ]
    assert told[4:] == ["  torch at M=16: hang: ranks [0, 1] had not ended"]


def test_results_are_geometric_means_over_tftune_in_the_same_rounds() -> None:
    assert list(rival_rows.results(made_rows(), mode="graph")) == [
        "RESULT rivals mode=graph rival=bsp geomean=1.061 least=0.750 error=0.0001 shapes=2 "
        "failed=0",
        "RESULT rivals mode=graph rival=torch geomean=0.500 least=0.500 error=0.0001 shapes=1 "
        "failed=1",
        "RESULT rivals mode=graph rival=iris geomean=4.000 least=2.000 error=0.0001 shapes=2 "
        "failed=0",
    ]
    alone = [row for row in made_rows() if row.name == "torch"]
    assert list(rival_rows.results(alone, mode="graph")) == [
        "RESULT rivals mode=graph rival=torch shapes=0 failed=1"
    ]


def test_rows_are_lines_that_show_prints_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = made_rows()
    assert [rival_rows.Row.from_json(row.to_json()) for row in rows] == rows
    path = tmp_path / "rivals.jsonl"
    path.write_text(
        "\n".join([json.dumps({"run": {"target": "h200x4"}}), *(row.to_json() for row in rows)])
        + "\n"
    )
    rivals.main(["--show", str(path)])
    printed = capsys.readouterr().out
    assert "all_gather_gemm on h200x4, graph: n=3584, k=8192" in printed
    assert printed.count("RESULT rivals op=all_gather_gemm") == 3


def test_the_page_shows_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parent.parent
    for measured in sorted((root / "db/rivals").glob("*x2-*.jsonl")):
        rivals.main(["--show", str(measured)])
    printed = capsys.readouterr().out.splitlines()
    shown = re.findall(r"^\| \d+ \|.*$", (root / "docs/rivals.md").read_text(), re.MULTILINE)
    assert len(shown) == 35 and set(shown) <= set(printed)


def test_the_default_shapes_are_of_both_shardings() -> None:
    found = read_shapes(operation("all_gather_gemm"), [rivals.SHAPES["all_gather_gemm"]], 4)
    assert [(shape.m, shape.shard) for shape in found] == [
        (m, shard) for shard in "km" for m in (16, 128, 1024, 8192)
    ]  # type: ignore[attr-defined]


def test_every_candidate_has_a_meaning_and_every_operation_shapes() -> None:
    names = {name for op in rivals.SHAPES for name in rival_calls.rivals_of(op)}
    assert set(rivals.MEANINGS) == {"bsp", "tftune"} | names
    for op, words in rivals.SHAPES.items():
        assert len(read_shapes(operation(op), [words], 2)) > 3
    with pytest.raises(ValueError, match="no rivals of flash_decode; there are of all_gather_gemm"):
        rival_calls.rivals_of("flash_decode")


def test_the_choice_is_the_winner_of_the_database_or_says_what_is_missing(
    tmp_path: Path, make_rows: Callable[..., list[Trial]]
) -> None:
    rows = make_rows((SMALL,), bench="node", target="h200x4")
    with Store.open(tmp_path / "node.db") as store:
        store.add_run(Run("run", "h200x4", "node", {}, "2026-11-21", {}))
        for row in rows:
            store.add_trial(row)
    pick = rivals.picks(tmp_path / "node.db", Target.parse("h200x4"))
    fastest = min(rows, key=lambda row: row.outcome.median_us)  # type: ignore[union-attr]
    assert pick(SMALL, "graph") == fastest.config
    missing = pick(LARGE, "graph")
    assert isinstance(missing, Failure) and "no final row of m=1024" in missing.text


def test_the_choice_without_a_database_is_the_shipped_artifacts() -> None:
    assert isinstance(rivals.picks(None, Target.parse("h200x2"))(SMALL, "graph"), Config)
    with pytest.raises(ValueError, match="no artifact of all_gather_gemm is shipped for h200x3"):
        rivals.picks(None, Target.parse("h200x3"))


TINY = AllGatherGemm(7, 40, 66, 2)


@pytest.fixture
def bench() -> Iterator[rivals.Bench]:
    bench = rivals.Bench(
        WorldSpec(Path(), 2, True, 1 << 20, 0), time.monotonic() + 120, stand_ins.serve_rivals
    )
    yield bench
    bench.close()


def test_a_bad_rival_is_a_row_and_the_others_are_measured_in_the_same_rounds(
    bench: rivals.Bench,
) -> None:
    push = rivals.default_fused(TINY, "graph")
    names = ["right", "stale", "torch"]
    rows = {row.name: row for row in rivals.compare(bench, TINY, "graph", push, names, rounds=3)}
    assert list(rows) == ["bsp", "tftune", *names]
    bsp = rows["bsp"].outcome
    assert isinstance(bsp, Measurement) and len(bsp.samples_us) == 3
    for name in ("tftune", "right"):
        outcome = rows[name].outcome
        assert isinstance(outcome, Measurement), outcome
        assert outcome.bsp_samples_us == bsp.samples_us
        assert outcome.check_error is not None
        assert outcome.check_error < 1e-3
    failures = {name: rows[name].outcome for name in ("stale", "torch")}
    kinds = {
        name: outcome.kind for name, outcome in failures.items() if isinstance(outcome, Failure)
    }
    assert kinds == {"stale": "wrong", "torch": "invalid"}
    assert "needs GPUs" in failures["torch"].text  # type: ignore[union-attr]


def test_a_rival_that_hangs_alone_or_beside_others_leaves_bsp_and_tftune_measured(
    bench: rivals.Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rivals, "CHECK_S", 4.0)
    monkeypatch.setattr(rivals, "TIME_S", 4.0)
    chosen = Config("bsp", form="gather_copy")  # quick on emulated ranks
    rows = {
        row.name: row.outcome
        for row in rivals.compare(bench, TINY, "graph", chosen, ["hang", "tired"], rounds=9)
    }
    assert isinstance(rows["bsp"], Measurement) and isinstance(rows["tftune"], Measurement)
    failures = [rows[name] for name in ("hang", "tired")]
    assert [outcome.kind for outcome in failures if isinstance(outcome, Failure)] == [
        "hang",
        "hang",
    ]
    assert [
        outcome.text.startswith("beside the others")
        for outcome in failures
        if isinstance(outcome, Failure)
    ] == [False, True]


class Answers(rivals.Bench):
    """Ranks that reply with this error, one rounding being 0.001."""

    def __init__(self, error: float) -> None:
        super().__init__(WorldSpec(Path(), 2, True, 1 << 20, 0), math.inf)
        self.error = error

    def _ask(self, method: str, arguments: tuple[object, ...], deadline_s: float) -> list[object]:
        return {"prepare": [None] * 2, "time": [[[1.0]]] * 2}.get(
            method, [(self.error, 1e-3), (0.0, 1e-3)]
        )


TINY_ROWS = AllGatherGemm(8, 40, 66, 2, shard="m")


def test_what_adds_partial_products_may_round_once_for_each_and_all_others_once() -> None:
    outcome = Answers(1.9e-3).alone(TINY, Config("torch"), "eager")
    assert isinstance(outcome, Measurement) and outcome.check_error == 1.9e-3
    torch, iris = Config("torch"), Config("iris")
    for shape, error, config in (
        (TINY, 2.1e-3, torch),
        (TINY_ROWS, 1.1e-3, torch),
        (TINY, 1.1e-3, iris),
        (TINY, 1.1e-3, PUSH),
    ):
        refused = Answers(error).alone(shape, config, "eager")
        assert isinstance(refused, Failure) and refused.kind == "wrong"


def test_a_rival_given_up_with_a_sharded_one_way_is_tried_the_other_way() -> None:
    bench = Answers(1.0)
    found = [bench.alone(shape, Config("torch"), "eager") for shape in (TINY,) * 3 + (TINY_ROWS,)]
    assert ["not tried" in outcome.text for outcome in found if isinstance(outcome, Failure)] == [
        False,
        False,
        True,
        False,
    ]


def test_a_rival_that_ends_worlds_is_given_up(bench: rivals.Bench) -> None:
    config = Config("wrong")
    outcomes = [bench.alone(TINY, config, "eager") for _ in range(rivals.STRIKES + 1)]
    assert all(isinstance(outcome, Failure) and outcome.kind == "wrong" for outcome in outcomes)
    assert [
        "not tried" in outcome.text for outcome in outcomes if isinstance(outcome, Failure)
    ] == [False, False, True]


def test_the_end_of_the_run_is_not_blamed_on_a_rival(bench: rivals.Bench) -> None:
    assert isinstance(bench.alone(TINY, Config("right"), "graph"), Measurement)
    bench._until = time.monotonic() + 1
    late = bench.alone(TINY, Config("hang"), "graph")
    assert isinstance(late, Failure) and late.text == "the time of the run was over during check"


def test_where_bsp_fails_nothing_is_timed_beside_it() -> None:
    class NoBsp:
        chip = None

        def alone(self, shape: AllGatherGemm, config: Config, mode: str) -> Failure:
            assert config.variant == "bsp"
            return Failure("crash", "no NCCL")

    rows = rivals.compare(NoBsp(), TINY, "graph", PUSH, ["torch"], 3)  # type: ignore[arg-type]
    assert [row.outcome.text for row in rows if isinstance(row.outcome, Failure)] == ["no NCCL"] + [
        "BSP beside it failed: no NCCL"
    ] * 2


def test_after_the_budget_nothing_starts_and_every_row_says_so() -> None:
    rows = list(
        rivals.measure(None, [SMALL], ["graph"], lambda s, m: PUSH, ["torch"], 3, time.monotonic())
    )  # type: ignore[arg-type]
    assert [row.name for row in rows] == ["bsp", "tftune", "torch"]
    assert all(
        isinstance(row.outcome, Failure) and row.outcome.text.startswith("not measured: 0 s")
        for row in rows
    )


def on_a_gpu(**more: Any) -> Any:
    """As much of a workspace as a rival reads when it is made."""
    return SimpleNamespace(device=torch.device("cuda"), rank=1, **more)


def test_iris_reads_a_from_the_heap_and_meets_its_peers_first_in_a_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    context = SimpleNamespace(
        empty=lambda *size, dtype: torch.empty(*size, dtype=dtype),
        device_barrier=lambda: asked.append("device barrier"),
        barrier=lambda: asked.append("barrier"),
    )
    ops = ModuleType("iris.ops")
    ops.all_gather_matmul = lambda context, c, a, b, async_op: asked.append((c, a, b, async_op))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "iris", ModuleType("iris"))
    monkeypatch.setitem(sys.modules, "iris.ops", ops)
    shape = AllGatherGemm(7, 40, 66, 2, b_layout="nk")
    a, b, c = torch.randn(7, 33), torch.randn(40, 66), torch.empty(7, 40)
    call = rival_calls.Iris(shape, on_a_gpu(owner=(context,)))
    call.stage([(a, b)])
    assert asked == ["device barrier", "barrier"]
    for capturing in (False, True):
        asked.clear()
        monkeypatch.setattr(
            torch.cuda, "is_current_stream_capturing", lambda capturing=capturing: capturing
        )
        call(a, b, c)
        *before, (out, heap, weights, async_op) = asked
        assert before == ["device barrier"] * capturing and async_op == capturing and out is c
        assert heap is not a and torch.equal(heap, a) and torch.equal(weights, b.t())


def test_what_iris_does_not_take_is_said_before_anything_runs() -> None:
    workspace = on_a_gpu(owner=(None,))
    with pytest.raises(NotImplementedError, match="along K only"):
        rival_calls.Iris(AllGatherGemm(16, 64, 64, 2, shard="m"), workspace)
    with pytest.raises(
        NotImplementedError,
        match="multiples of 128 rows and of 64 columns of a shard, not 16 and 64",
    ):
        rival_calls.IrisBuffer(AllGatherGemm(16, 64, 128, 2), workspace)
