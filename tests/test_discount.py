"""A modelled speed-up is shown with what is left of it after the discount, wherever the selector
takes the discount off; a measured one is shown as it is. What was never measured says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tftune
from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.space import Config
from tftune.models.dataset import load
from tftune.models.layout import MODEL_ERROR, Answerer, Terms, discounted
from tftune.models.tree.trainer import train_layout
from tftune.report import tables

SHAPES = [tftune.AllGatherGemm(m, 3584, 8192, 8) for m in (16, 64)]
TIMES = {16: (42.0, 25.0), 64: (42.0, 30.0)}
"""BSP and push: 1.68 times as fast, and 1.40 times, which the discount leaves 0.97 of."""


@pytest.fixture
def lines(make_rows: Callable[..., list[Trial]]) -> Callable[[str], list[tables.Line]]:
    def made(bench: str) -> list[tables.Line]:
        (row, *_) = make_rows((SHAPES[0],), bench=bench)
        rows = [
            replace(
                row, shape=shape, bench=bench, config=config, outcome=Measurement((us,) * 5, None)
            )
            for shape in SHAPES
            for config, us in zip((Config("bsp"), Config("push")), TIMES[shape.m], strict=True)
        ]
        return tables.lines(rows)

    return made


def test_the_table_of_a_modelled_search_shows_both(lines: Callable[..., list[Any]]) -> None:
    first, second = lines("model")
    assert tables.over_bsp_text(first) == "1.68x, 1.17x after discount"
    assert tables.cells(second, ["bsp", "push"])[-3] == "1.40x, 0.97x after discount"
    assert second.to_dict()["speedup_discounted"] == pytest.approx(1.4 / MODEL_ERROR)
    *_, last = tables.headline([first, second])
    assert last.startswith(f"Modelled speed-ups are divided by {MODEL_ERROR} before the selector")
    assert last.endswith("1 of 2 stay above 1.")


def test_nothing_is_taken_off_a_measured_one(lines: Callable[..., list[Any]]) -> None:
    (_, second) = found = lines("node")
    assert tables.over_bsp_text(second) == "1.40x"
    assert second.to_dict()["speedup_discounted"] is None
    assert not [line for line in tables.headline(found) if "Modelled" in line]


def test_both_in_words() -> None:
    assert discounted(1.41) == "0.98 times after the discount of 1.44 on modelled speed-ups"


def test_a_search_and_an_explanation_agree(tmp_path: Path) -> None:
    """The demo: where the table says that push wins, the selector that answers BSP says why."""

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "tftune", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    op = "all_gather_gemm"
    shapes = "paper:m=16+64;m=16,n=4096,k=4096,world=8"
    on = ("--on", "model", "--target", "mi300x8", "--mode", "graph", "--effort", "quick")
    table = run("search", op, "--shapes", shapes, *on, "--pool", "40")
    assert "after discount" in table and "Modelled speed-ups are divided by 1.44" in table
    run("export", op, "--out", "a.json")
    asked = (op, str(SHAPES[1]), "--artifact", "a.json", "--allow-modelled")
    said = run("explain", *asked)
    found = json.loads(run("explain", *asked, "--json"))
    nearest = found["nearest"][0]
    assert nearest["shape"] == str(SHAPES[1]) and nearest["speedup_discounted"] is not None
    both = f"{nearest['speedup']:.2f} times as fast as BSP here, {discounted(nearest['speedup'])}"
    asked_again = run("select", *asked)
    assert found["reason"] in asked_again and both.replace(" here,", " on this shape;") in said
    assert both in said and "the discount of 1.44 on modelled speed-ups" in found["reason"]
    assert found["source"] == "modelled" and "modelled, not measured" in said


@pytest.mark.parametrize("m", [1, 3, 16, 48, 100, 1 << 15])
@pytest.mark.parametrize("n", [3584, 4096])
def test_what_was_modelled_never_says_that_it_was_measured(m: int, n: int) -> None:
    selector = tftune.load(target="mi300x8", allow_modelled=True)
    for mode in ("graph", "eager"):
        found = selector.select(tftune.AllGatherGemm(m, n, 8192, 8), mode)
        assert found.source in ("modelled", "fallback") and "measured" not in found.reason


def test_where_bsp_answers_a_selection_names_both_speedups(
    make_rows: Callable[..., list[Trial]],
) -> None:
    """At modelled shapes, and where two neighbours have no fused config in common."""
    (row, *_) = make_rows((SHAPES[0],), bench="model")
    large = replace(SHAPES[1], m=256)
    times = {
        shape: {Config("bsp"): 42.0, Config("push"): us}
        for shape, us in zip((*SHAPES, large), (40.0, 30.0, 35.0), strict=True)
    }
    times[large] = {Config("bsp"): 42.0, Config("pull"): 20.0}
    rows = [
        replace(row, shape=shape, config=config, outcome=Measurement((us,) * 5, ()))
        for shape, found in times.items()
        for config, us in found.items()
    ]
    data = load(rows, "all_gather_gemm", row.target, "graph", "model")
    (part,) = data.by_layout().values()
    made = train_layout(part)
    chip = Target.parse(row.target).chip
    answerer = Answerer(made, Terms(chip, lambda config, kernel: None, MODEL_ERROR), lambda s: 0)

    def reason(m: int) -> str:
        return answerer.answer(replace(SHAPES[0], m=m), lambda shape: Config("bsp")).reason

    small = "push is predicted to be 1.40 times as fast as BSP on this shape"
    assert reason(64) == f"{small}; {discounted(1.4)}: BSP"
    assert reason(128) == (
        f"pull is predicted to be 2.10 times as fast as BSP on modelled shapes nearby; "
        f"{discounted(2.1)}, but no config at all of them: BSP"
    )
