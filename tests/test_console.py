"""What a search says while it runs and at its end: the time left, a bar in a terminal, its speed,
and what its machine was like."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tftune.cli.console import Progress, duration, note, print_table
from tftune.cli.search_job import how_it_went
from tftune.db.committed import files_of, read_trials
from tftune.db.store import Store
from tftune.db.trial import Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config
from tftune.report import tables

SMALL = "m=64,n=512,k=1024,world=2"


def some_trial() -> Trial:
    shape = AllGatherGemm.parse(SMALL)
    return Trial(shape, Config("push"), "graph", "mi300x8", "model", "r", "k", Measurement((12.5,)))


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_time_left_is_the_mean_so_far_times_what_is_to_come(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    progress = Progress(every=2, clock=lambda: now[0])
    progress.start(6)
    assert progress.left_s() is None
    for _ in range(4):
        now[0] += 30
        progress.advance(some_trial())
    progress.finish()
    assert lines_of(capsys) == [
        "6 trials to come",
        f"trial 2 of 6, 2 min 0 s left: {SMALL} graph push 12.5 us modelled",
        f"trial 4 of 6, 1 min 0 s left: {SMALL} graph push 12.5 us modelled",
    ]


def test_the_first_trials_of_many_say_nothing_of_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They waited for imports and a world: 50 of 2,044 trials once said 12 min, and it was one."""
    now = [0.0]
    for budget_s in (None, 50.0):
        progress = Progress(budget_s, every=1, clock=lambda: now[0])
        progress.start(100)
        now[0] += 30
        progress.advance(some_trial())
        assert progress.left_s() is None
    now[0] += 21
    progress.advance(some_trial())
    shown = [line.partition(":")[0] for line in lines_of(capsys)]
    assert shown == [
        "100 trials to come",
        "trial 1 of 100",
        "100 trials to come",
        "trial 1 of 100, at most 20 s left",
        "trial 2 of 100, the budget is spent",
    ]


def test_the_stages_of_a_search_are_counted_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The finals are announced with the search, at most; their own mean counts once there are
    enough of them."""
    now = [0.0]
    progress = Progress(every=10, clock=lambda: now[0])
    progress.start(50)
    for total, stage, seconds in ((30, "", 1.0), (20, "final", 3.0)):
        if stage:
            progress.start(total, stage)
            assert progress.left_s() == 20.0
        for _ in range(total):
            now[0] += seconds
            progress.advance(some_trial())
    progress.start(None)
    progress.advance(some_trial())
    assert [line.partition(":")[0] for line in lines_of(capsys)] == [
        "50 trials to come",
        *(f"trial {done} of 50, {left} s left" for done, left in ((10, 40), (20, 30), (30, 20))),
        "20 final trials to come",
        "trial 40 of 50, 30 s left",
        "trial 50 of 50, 0 s left",
    ]


def test_what_takes_a_while_is_named_after_ten_silent_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    progress = Progress(clock=lambda: now[0])
    for seconds, what in ((9, "draws"), (2, "ranks"), (9, "compiles"), (1, "shape 1 of 2")):
        now[0] += seconds
        progress.doing(what)
    assert lines_of(capsys) == ["ranks", "shape 1 of 2"]


def test_a_terminal_gets_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    progress = Progress()
    progress.start(2)
    progress.advance(some_trial())
    progress.finish()
    shown = capsys.readouterr().err
    assert "1/2" in shown and "left" in shown and "\u2501" in shown and "trial 1 of 2" not in shown


HEAD = ["shape", "mode", "BSP us", "push us", "winner", "over BSP"]
TABLE = [
    [f"m={m},n=3584,k=8192,world=8,dtype=bf16", "graph", "1,042.1", us, "push", "1.11x (1.09-1.13)"]
    for m, us in ((64, "38.0"), (128, "1,042.07"))
]


@pytest.fixture
def terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """What a table looks like in a terminal of that many columns."""

    def printed(columns: int, *table: Any) -> str:
        for name, value in (("TTY_COMPATIBLE", "1"), ("COLUMNS", str(columns))):
            monkeypatch.setenv(name, value)
        print_table(*table)
        return re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)

    return printed


@pytest.mark.parametrize("columns", [1, 40, 80, 90, 120, 200])
@pytest.mark.parametrize("rows", [TABLE, TABLE[:1], []])
def test_no_width_of_a_terminal_cuts_a_cell(
    columns: int, rows: list[list[str]], terminal: Callable[..., str]
) -> None:
    shown = terminal(columns, "trials in /a/database/of/mine.db", HEAD, rows)
    assert "/a/database/of/mine.db" in shown and "\u2026" not in shown
    assert [cell for row in rows for cell in row if cell not in shown] == []
    widest = max(len(cell) for cell in (*HEAD, *(cell for row in rows for cell in row)))
    assert all(len(line) <= max(columns, widest + 12) or not rows for line in shown.splitlines())


def test_a_narrow_terminal_says_once_what_all_rows_share_and_then_gives_each_row_lines(
    terminal: Callable[..., str],
) -> None:
    head, wide = ["shape", "mode", "variant", "us"], "of a very long name"
    rows = [[row[0], "graph", wide, us] for row, us in zip(TABLE, "12", strict=True)]
    assert terminal(60, "a", head, rows).splitlines() == [
        "a",
        "in every row:",
        f"  mode: graph   variant: {wide}",
        f"{'shape':38}  us",
        f"{TABLE[0][0]:38}   1",
        f"{TABLE[1][0]:38}   2",
    ]
    rows = [[row[0], "graph", wide + us, us] for row, us in zip(TABLE, "12", strict=True)]
    assert terminal(40, "a", head, rows).splitlines() == [
        "a",
        "in every row:",
        "  mode: graph",
        *(TABLE[0][0], f"  variant: {wide}1   us: 1"),
        *(TABLE[1][0], f"  variant: {wide}2   us: 2"),
    ]


def test_a_narrow_terminal_gets_the_short_form_where_there_is_one(
    terminal: Callable[..., str],
) -> None:
    few = [("graph: k=8192", ["m", "us"], [["64", "1"], ["128", "2"]])]
    assert terminal(60, "a", HEAD, TABLE, few).splitlines() == [
        "a", "graph: k=8192", "m    us", "64    1", "128   2",
    ]  # fmt: skip
    assert terminal(200, "a", HEAD, TABLE, few) == terminal(200, "a", HEAD, TABLE)


@pytest.mark.parametrize("op", ["all_gather_gemm", "all_reduce", "flash_decode", "merge_attention"])
def test_the_short_form_of_measured_tables_fits_80_columns(
    op: str, terminal: Callable[..., str]
) -> None:
    found = tables.lines(read_trials(files_of(op, "h200x4")))
    few = tables.compact(found)
    assert sum(len(rows) for _, _, rows in few) == len(found) >= 8
    for title, head, rows in few:
        words = {row[-1] for row in rows}
        assert head[-5:] == ["BSP us", "best us", "variant", "over BSP", "verdict"]
        assert words <= {"faster", "BSP", "tie: BSP"} and "faster" in words
        shown = terminal(80, title, head, rows).splitlines()
        assert len(shown) == len(rows) + 2 and max(map(len, shown[1:])) <= 80
    line = next(line for line in found if line.fused_wins)
    title, head, ((*_, bsp_us, best_us, variant, over, word),) = tables.compact([line])[0]
    assert word == "faster" and variant == line.winner.config.variant and "x (" in over
    assert float(bsp_us.replace(",", "")) >= float(best_us.replace(",", ""))
    assert title.startswith(f"{line.mode}: ") and head[0] == line.shape.SIZE


def test_no_control_character_reaches_a_terminal(
    terminal: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure's text is what a compiler or a kernel said."""
    assert terminal(80, "a", ["text"], [["it failed\x1b[2J\r"]]).splitlines()[2] == (
        r"it failed\x1b[2J\r"
    )
    note("it failed:\x1b[2J\nno")
    assert capsys.readouterr().err == "it failed:\\x1b[2J\nno\n"


def test_tables_are_printed_in_one_place(root: Path) -> None:
    """What is not printed by `print_table` may cut a number, an id or a name."""
    users = [
        path.name
        for folder in ("tftune", "tuner", "models", "db")
        for path in (root / folder).rglob("*.py")
        if re.search(r"rich\.table|\bljust\(|\{[^{}]+:[<>]\d+", path.read_text())
    ]
    assert users == ["console.py"]


def test_durations_in_words() -> None:
    said = [duration(seconds) for seconds in (0, 59.4, 61, 3600)]
    assert said == ["0 s", "59 s", "1 min 1 s", "1 h 0 min"]


def test_a_node_search_says_its_speed_and_what_its_machine_was_like(tmp_path: Path) -> None:
    """It says this of the runs that this search added. A modelled one has neither."""
    shape, bsp = AllGatherGemm(m=64, n=3584, k=8192, world=2), Config("bsp", form="gather_copy")
    bench: Any = SimpleNamespace(spent_s={"time": 1.0, "compile": 2.0}, recoveries_s=[])
    with Store.open(tmp_path / "a.db") as store:
        for name, kind in (("r0", "node"), ("r1", "node"), ("r2", "model")):
            store.add_run(Run(name, "h200x2", kind, {}, "2026-11-21", {"0": {"sm_mhz": 1980.0}}))
            made = Trial(shape, bsp, "graph", "h200x2", kind, name, "k", Measurement((1.0,)))
            store.add_trial(replace(made, created=f"2026-11-2{name[1]}"))
        said = list(how_it_went(bench, store, 1, 4.0))
    assert said == [
        "wall time 4 s: 50 % compile, 25 % time, 25 % tuner",
        "1 configs checked and timed: 0.25 a second, 0.50 without waiting for the compiler",
        "at the first trial SM 1980 MHz",
    ]
