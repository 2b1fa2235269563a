"""benchmarks/regret.py: what it reads, the bars that it names, and its RESULT line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tftune.db.store import write_rows
from tftune.db.trial import Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.models.dataset import Dataset
from tftune.models.leaves import best_bsp, make_leaf, measured
from tftune.models.tree import Tree

SHAPES = tuple(AllGatherGemm(m, n, 8192, 8) for n in (1024, 3584, 7168) for m in (16, 1024))
Rows = Callable[..., list[Trial]]


@pytest.fixture(scope="module")
def regret(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("regret")


@pytest.fixture
def file(tmp_path: Path, make_rows: Rows) -> Path:
    write_rows(tmp_path / "rows.jsonl", [Run("run", "h200x8", "node", {}, "2026-11-21", {})], make_rows(SHAPES, bench="node"))
    return tmp_path / "rows.jsonl"


def test_it_prints_tables_bars_and_one_result_line_for_each_mode(
    regret: ModuleType, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regret.main(["--target", "h200x8", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "one family of shapes held out at a time: 6 shapes in 3 folds" in printed and "one octave of m held out" in printed
    assert (
        "world size" not in printed
        and printed.count("| selector |") == 2
        and "complete (an exhausted space, or 160 configs) at 0 of 6" in printed
    )
    (line,) = [line for line in printed.splitlines() if line.startswith("RESULT")]
    number = r"\d+\.\d{3}"
    assert re.fullmatch(
        rf"RESULT regret target=h200x8 op=all_gather_gemm mode=graph geomean={number} p95={number} max={number} captured=-?{number} "
        r"below_bsp=\d+", line,
    )  # fmt: skip


def test_a_bar_that_is_missed_is_named(regret: ModuleType, make_rows: Rows) -> None:
    dataset = regret.load(make_rows(SHAPES, bench="node"), "all_gather_gemm", "h200x8", "graph", "node")
    always = regret.evaluate(dataset, lambda part: bsp_everywhere(dataset), split="family")
    told = list(regret.missed(always))
    assert any(re.match(r"geomean 1\.\d{3} is above 1\.03", sentence) for sentence in told) and "captured 0.000 is below 0.90" in told
    assert "always push does better" in told and "always BSP does better" not in told


def bsp_everywhere(dataset: Dataset) -> Tree:
    bsp = best_bsp(dataset, dataset.shapes)
    return Tree(dataset.op, dataset.mode, make_leaf(dataset, dataset.shapes, (bsp,), bsp), measured(dataset.shapes))


def test_without_rows_it_says_so(regret: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        regret.main(["--target", "mi300x8"])
    assert ended.value.code == 2 and "none are committed for this target" in capsys.readouterr().err
