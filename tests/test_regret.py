"""benchmarks/regret.py: what it reads, the bars that it names, and its RESULT lines."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import regret

from tftune.db.store import write_rows
from tftune.db.trial import Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.models.dataset import Dataset, load
from tftune.models.tree.trainer import train_layout

SHAPES = tuple(
    AllGatherGemm(m, n, 8192, 8) for n in (1024, 2048, 3584, 7168) for m in (16, 64, 256, 1024)
)
LAYOUT = "dtype=fp16,shard=k,b_layout=kn,world=8"
FEW = tuple(replace(shape, dtype="bf16") for shape in SHAPES[:4])
RUN = Run("run", "h200x8", "node", {}, "2026-11-21", {})
Rows = Callable[..., list[Trial]]


@pytest.fixture(scope="module")
def dataset(make_rows: Rows) -> Dataset:
    return load(make_rows(SHAPES, bench="node"), "all_gather_gemm", "h200x8", "graph", "node")


@pytest.fixture
def file(tmp_path: Path, make_rows: Rows) -> Path:
    """Captured rows of two layouts, one of which has few shapes, and eager ones of one."""
    rows = [*make_rows((*SHAPES, *FEW), bench="node"), *make_rows(SHAPES, "eager", bench="node")]
    write_rows(tmp_path / "rows.jsonl", [RUN], rows)
    return tmp_path / "rows.jsonl"


def test_it_prints_tables_bars_and_result_lines_for_each_mode_and_layout(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regret.main(["--target", "h200x8", str(file)]) == 0
    printed = capsys.readouterr().out
    for mode in ("graph", "eager"):
        part = printed.split(f"**all_gather_gemm on h200x8, mode {mode}, {LAYOUT}.**")[1].split(
            "**all_gather"
        )[0]
        assert "family and m held out at once: 16 shapes in " in part
        assert "one family of shapes held out at a time: 16 shapes in 4 folds" in part
        assert (
            "one m held out at a time, but for the least and the greatest: 8 shapes in 2 folds"
            in part
        )
        assert part.count("| selector |") == part.count("| always BSP |") == 3
        assert part.count("complete (an exhausted space, or 160 configs) at 0 of 16") == 2
    assert (
        "mode graph, dtype=bf16,shard=k,b_layout=kn,world=8: 4 shapes are too few to hold any out"
        in printed
    )
    number = r"\d+\.\d{3}"
    lines = [line for line in printed.splitlines() if line.startswith("RESULT")]
    for line, (mode, name) in zip(
        lines, [(m, n) for m in ("graph", "eager") for n in ("regret_any", "regret")], strict=True
    ):
        assert re.fullmatch(
            rf"RESULT {name} target=h200x8 op=all_gather_gemm mode={mode} layout={LAYOUT} "
            rf"geomean={number} p95={number} max={number} "
            rf"captured=-?{number} below_bsp=\d+", line,
        )  # fmt: skip


def test_the_result_lines_are_of_family_and_size_at_once_and_of_families(dataset: Dataset) -> None:
    reports = regret.held_out(dataset)
    assert list(reports) == ["any", "family", "m"]
    assert reports["family"] == regret.evaluate(dataset, split="family")
    for split, name in (("any", "regret_any"), ("family", "regret")):
        score = reports[split].selector
        expected = (
            f"geomean={score.geomean_regret:.3f} p95={score.p95_regret:.3f} "
            f"max={score.worst_regret:.3f}"
        )
        captured = f"captured={score.oracle_gain_captured:.3f} below_bsp={score.slower_than_bsp}"
        assert regret.result(dataset, split, reports[split]).startswith(f"RESULT {name} target=")
        assert regret.result(dataset, split, reports[split]).endswith(
            f"layout={LAYOUT} {expected} {captured}"
        )
    assert reports["any"].selector != reports["family"].selector
    assert (regret.held_out(dataset.only(SHAPES[:4]))) == {}


def test_many_shapes_share_their_folds_among_processes(
    tmp_path: Path,
    make_rows: Rows,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is sent to them can be sent, and the report is the same."""
    write_rows(tmp_path / "rows.jsonl", [RUN], make_rows(SHAPES, bench="node"))
    printed, sent = [], list[int]()

    @contextmanager
    def sharing() -> Iterator[Callable[..., list[Any]]]:
        def each(work: Any, items: Iterable[Any]) -> list[Any]:
            listed = list(items)
            sent.append(len(listed))
            return [
                pickle.loads(pickle.dumps(work))(pickle.loads(pickle.dumps(item)))
                for item in listed
            ]

        yield each

    monkeypatch.setattr(regret, "splits", lambda dataset: ["any"])
    monkeypatch.setattr(regret, "_sharing", sharing)
    for many, folds in ((len(SHAPES) + 1, 0), (len(SHAPES), 1)):
        monkeypatch.setattr(regret, "MANY", many)
        assert regret.main(["--target", "h200x8", str(tmp_path / "rows.jsonl")]) == 0
        printed.append(capsys.readouterr().out)
        assert len(sent) == folds
    assert f"16 shapes in {sent[0]} folds" in printed[0]
    assert printed[0] == printed[1]
    assert printed[0].count("RESULT") == 1


@pytest.mark.parametrize(
    ("layout", "sentence"),
    [
        (
            "dtype=fp32",
            r"no layout has dtype=fp32; there are dtype=fp16,shard=k,b_layout=kn,world=8; "
            r"dtype=bf16,shard=k",
        ),
        (
            "colour=red",
            "--layout names 'colour'; write field=value, with fields of dtype, shard, b_layout, "
            "world",
        ),
        ("fp16", "--layout names 'fp16'; write field=value"),
    ],
)
def test_a_layout_that_is_none_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], layout: str, sentence: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        regret.main(["--target", "h200x8", "--layout", layout, str(file)])
    assert ended.value.code == 2 and sentence in capsys.readouterr().err


def test_only_the_layouts_asked_for(file: Path) -> None:
    source = regret.choose(
        regret.sources(*regret.rows_of([file])), "all_gather_gemm", "h200x8", "node", "here"
    )
    dataset = load(source.current, "all_gather_gemm", "h200x8", "graph", "node")
    few = regret.layouts(dataset, {"dtype": "bf16", "world": "8"})
    both = regret.layouts(dataset, {"shard": "k"})
    assert [part.shapes for part in few.values()] == [FEW] and list(both) == [LAYOUT, *few]


def test_a_bar_that_is_missed_is_named(make_rows: Rows, dataset: Dataset) -> None:
    """Where BSP is always the answer."""
    alone = [row for row in make_rows(SHAPES, bench="node") if row.config.variant == "bsp"]
    bsp = load(alone, "all_gather_gemm", "h200x8", "graph", "node")
    always = regret.evaluate(dataset, lambda part: train_layout(bsp.only(part.shapes)), "any")
    told = list(regret.missed(always))
    assert any(re.match(r"geomean 1\.\d{3} is above 1\.04", sentence) for sentence in told)
    assert any(re.match(r"p95 \d\.\d{3} is above 1\.12", sentence) for sentence in told)
    assert any(re.match(r"worst \d\.\d{3} is above 1\.25", sentence) for sentence in told)
    assert "captured 0.000 is below 0.90" in told
    assert "always push does better" in told and "always BSP does better" not in told


def test_bars_that_are_met_are_not_named(dataset: Dataset) -> None:
    report = regret.evaluate(dataset, split="m")
    met = replace(
        report.selector, geomean_regret=1.04, p95_regret=1.12, worst_regret=1.25,
        oracle_gain_captured=0.9, slower_than_bsp=0, unknown=0,
    )  # fmt: skip
    rules = {"lucky": replace(met, geomean_regret=1.0, unknown=1), "alike": met}
    assert list(regret.missed(replace(report, selector=met, rules=rules))) == []
    slow = replace(met, slower_than_bsp=1)
    assert list(regret.missed(replace(report, selector=slow, rules=rules))) == [
        "1 shapes are slower than BSP, and 0 have no time"
    ]


def test_without_rows_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        regret.main(["--target", "mi300x8"])
    assert ended.value.code == 2 and "none are committed for this target" in capsys.readouterr().err
