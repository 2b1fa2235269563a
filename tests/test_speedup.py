"""benchmarks/speedup.py: its tables and RESULT lines say what rows say, of any operation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import results_page
import speedup

from tftune.db.calibration_file import write_chip
from tftune.db.store import write_rows
from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode

DECODES = operation("flash_decode").shape_sets["llama3-70b"](world=8)


def trial(
    shape: FlashDecode, config: Config, us: float, bsp_us: float, mode: str = "graph"
) -> Trial:
    outcome = Measurement((us,) * 9, (bsp_us,) * 9, 1e-4)
    return Trial(shape, config, mode, "h200x8", "node", "r1", "k1", outcome, "final", "2026-11-21")


def rows() -> list[Trial]:
    """A decode of two steps: BSP takes 40 us, `gather` 32, `persistent` 20 where the cache is
    short, and 41 where it is long."""
    found = []
    for shape in DECODES:
        short = shape.cache_bytes / 4.25e6 < 100
        steps = (("gather", 32.0), ("persistent", 20.0 if short else 41.0))
        found += [
            trial(shape, Config("bsp"), 40.0, 40.0),
            *(trial(shape, Config(name), us, 40.0) for name, us in steps),
        ]
    return found


def test_every_step_has_a_column_and_every_open_size_too() -> None:
    head, _, first, *others = speedup.table(speedup.lines(rows(), "graph"))
    assert (
        head
        == "| batch | kv_len | bsp | gather | persistent | winner | BSP / winner (95 % interval) |"
    )
    assert first == "| 1 | 1024 | 40.0 | 32.0 | 20.0 | persistent | 2.00 (2.00 to 2.00) |"
    assert len(others) == len(DECODES) - 1 == 19


def test_a_set_is_told_whole_and_in_parts() -> None:
    whole, *parts = speedup.sets("h200x8", "flash_decode", rows())
    long = sum(shape.cache_bytes / 4.25e6 >= 100 for shape in DECODES)
    start = (
        "RESULT speedup op=flash_decode target=h200x8 mode=graph set=llama3-70b dtype=fp16 "
        "output=all page_size=0 "
    )
    assert whole.startswith(f"{start}geomean=1.") and whole.endswith("fused_wins=20 shapes=20")
    assert set(parts) == {
        f"{start}part=kv_below_100_us geomean=2.000 lower=2.000 fused_wins={20 - long} "
        f"shapes={20 - long}",
        f"{start}part=kv_from_100_us geomean=1.250 lower=1.250 fused_wins={long} shapes={long}",
    }
    assert 0 < long < 20


def test_a_set_that_lacks_a_shape_is_not_told() -> None:
    without = [row for row in rows() if row.shape != DECODES[3]]
    assert list(speedup.sets("h200x8", "flash_decode", without)) == []


@pytest.mark.parametrize(("slower", "said"), [(1, "usual"), (2, "calibrated")])
def test_the_limit_takes_its_rates_from_a_calibration(
    slower: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first shape's cache is 2 x 8 heads x 1024 x 128 fp16, 4.19 MB, and its memory time at 4.3
    TB/s 1.0 us; at half of that 2.0."""
    target = Target.parse("h200x8")
    write_rows(tmp_path / "rows.jsonl", [], rows())
    rate = {"hbm_bytes_per_us": target.chip.rates.hbm_bytes_per_us / slower}
    write_chip(tmp_path / "its.chip.json", target, rate, {}, {}, "2026-11-22")
    chip = ["--chip", str(tmp_path / "its.chip.json")] if slower > 1 else []
    monkeypatch.setattr(
        "sys.argv", ["speedup.py", "--op", "flash_decode", *chip, str(tmp_path / "rows.jsonl")]
    )
    speedup.main()
    printed = capsys.readouterr().out
    assert f"what the {said} rates of h200 allow, computed" in printed
    limits = printed.partition("limit (computed)")[2].splitlines()
    first = next(line for line in limits if line.startswith("| 1 | 1024 |"))
    assert float(first.split("|")[4]) == pytest.approx(
        DECODES[0].cache_bytes / target.chip.rates.hbm_bytes_per_us * slower, abs=0.1
    )


def test_a_set_asked_with_other_options_is_told_beside_its_defaults() -> None:
    """Llama 3 70B for each rank its own heads, whole; paged, but for one shape."""
    heads = [
        trial(replace(shape, output="heads"), Config(name), us, 40.0)
        for shape in DECODES
        for name, us in (("bsp", 40.0), ("fused", 20.0))
    ]
    paged = [
        trial(replace(shape, page_size=16), Config("bsp"), 40.0, 40.0) for shape in DECODES[1:]
    ]
    every = speedup.sets("h200x8", "flash_decode", rows() + heads + paged)
    told = [line for line in every if "part=" not in line]
    assert ["output=all" in line for line in told] == [True, False]
    assert (
        "mode=graph set=llama3-70b dtype=fp16 output=heads page_size=0 geomean=2.000 lower=2.000 "
        "fused_wins=20 shapes=20" in told[1]
    )


REDUCTIONS = [
    ("all_reduce", "engine", "two_shot"),
    ("gemm_reduce_scatter", "llama3-70b", "push"),
    ("gemm_all_reduce", "llama3-70b", "two_shot"),
]


def reduced(op: str, name: str, variant: str, target: str = "h200x8") -> list[Trial]:
    """Every shape of a set: BSP takes twice as long as the winner, and the winner 4 times as long
    as the limit of the call."""
    known, chip = operation(op), Target.parse(target).chip
    form = "scatter" if op == "gemm_reduce_scatter" else "library"
    found = []
    for shape in known.shape_sets[name](world=8):
        us = 4 * known.module("limit").limit(shape, chip).us
        found += [
            trial(shape, Config("bsp", form=form), 2 * us, 2 * us),  # type: ignore[arg-type]
            trial(shape, Config(variant), us, 2 * us),  # type: ignore[arg-type]
        ]
    return found


@pytest.mark.parametrize(("op", "name", "variant"), REDUCTIONS)
def test_a_reduction_is_told_with_its_share_of_the_limit(op: str, name: str, variant: str) -> None:
    found = reduced(op, name, variant)
    whole, *parts = speedup.sets("h200x8", op, found)
    assert whole.startswith(f"RESULT speedup op={op} target=h200x8 mode=graph set={name} ")
    assert " geomean=2.000 lower=2.000 " in whole and "part=" in parts[0]

    def committed(target: str, asked: str) -> list[Trial]:
        return found if (target, asked) == ("h200x8", op) else []

    head, _, table, *others = results_page.reduction(op, committed)
    assert head == f"## {op}"
    first = table.splitlines()[2]
    assert first.startswith("| 8x H200 | `") and first.endswith("| 2.000 (2.000) | 0.25 |")
    titles, _, row, *_ = others[1].splitlines()
    assert titles.endswith("| limit | limit / winner |")
    assert f"| {variant} | " in row and row.endswith(" | 0.25 |")


def test_a_reduction_without_rows_of_several_gpus_says_so() -> None:
    told = list(results_page.reduction("all_reduce", lambda target, op: []))
    assert told[0] == "## all_reduce" and told[1].startswith("Not measured on H200, but for single")


def test_which_form_wins_is_told_of_runs_that_timed_two() -> None:
    """The last such run of a shape counts: one with a single form names no winner."""
    shape, other = AllReduce(1, 4096, 2), AllReduce(2, 4096, 2)

    def timed(run: str, us: float, config: Config, at: AllReduce = shape) -> Trial:
        outcome = Measurement((us,) * 5, (us,) * 5, 1e-4)
        return Trial(at, config, "graph", "h200x2", "node", run, "r1", outcome, "search", "2026")

    def form(name: str) -> Config:
        return Config("bsp", form=name)

    kernel, slow = Config("one_shot", parts=1), Config("one_shot", parts=2)
    two = [timed("1", 8.0, form("library")), timed("1", 6.0, form("one_shot")),
           timed("1", 9.0, slow), timed("1", 4.0, kernel)]  # fmt: skip
    one = [timed("2", 5.0, form("library")), timed("2", 1.0, kernel)]
    assert results_page.form_times(two + one) == {
        shape: {"library": 8.0, "one_shot": 6.0, "kernel": 4.0}
    }
    ties = [timed("1", 3.0, form("one_shot"), other), timed("1", 4.0, form("library"), other),
            timed("1", 3.0, kernel, other)]  # fmt: skip
    times = results_page.form_times([*two, *ties]).values()
    assert results_page.form_and_gain(list(times)) == "one_shot 2; 1.22; 1 of 2"
    assert results_page.form_and_gain([]) == "-"
