"""benchmarks/node.py: what it asks `tftune search` for, how it shares its time, and that a search
which overruns is stopped."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import node
import pytest

from tftune.cli.shapes_file import read_shapes
from tftune.kernels.all_gather_gemm import paper
from tftune.kernels.all_gather_gemm.workloads import grid
from tftune.kernels.core.registry import operation

SLOW = (
    sys.executable,
    "-c",
    # Ctrl-C reaches it also where whoever runs the tests ignores SIGINT, as `nohup` and `&` do.
    "import signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "try: time.sleep(60)\nexcept KeyboardInterrupt: print('committed'); raise SystemExit(130)",
)


def shapes(part: str, world: int) -> list[Any]:
    return read_shapes(operation(node.PARTS[part].op), [node.PARTS[part].at(world)])


@pytest.mark.parametrize("world", [2, 4, 8])
def test_the_parts_are_the_sets_that_the_readme_reports(world: int) -> None:
    assert shapes("paper", world) == list(paper(world))
    kinds = Counter(
        (shape.dtype, shape.shard, shape.b_layout) for shape in shapes("layouts", world)
    )
    assert kinds == {("fp16", "m", "kn"): 4, ("bf16", "k", "kn"): 4, ("fp16", "k", "nk"): 4}
    assert {(shape.m, shape.n, shape.k, shape.world) for shape in shapes("layouts", world)} == {
        (m, 3584, 8192, world) for m in (16, 128, 1024, 8192)
    }
    assert len(set(shapes("models", world))) == 44
    assert shapes("grid", world) == shapes("portfolio", world) == list(grid(world))
    decodes = operation("flash_decode").shape_sets
    assert shapes("decode", world) == list(decodes["llama3-70b"](world=world))
    assert len(set(shapes("decode", world))) == 20
    assert shapes("decode-paper", world) == list(decodes["paper"](world=world))
    layouts = Counter(
        (shape.output, shape.page_size, shape.dtype) for shape in shapes("decode-layouts", world)
    )
    assert layouts == {("heads", 0, "fp16"): 4, ("all", 16, "fp16"): 4, ("all", 0, "bf16"): 4}


def test_strong_scaling_is_one_problem() -> None:
    found = [shape for world in (1, 2, 4, 8) for shape in shapes("decode-scaling", world)]
    assert {shape.problem for shape in found} == {
        "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=65536"
    }
    assert [(shape.world, shape.kv_len) for shape in found] == [
        (1, 65_536),
        (2, 32_768),
        (4, 16_384),
        (8, 8192),
    ]


def test_a_command_is_one_that_the_program_takes() -> None:
    command = node.search((4, node.PARTS["layouts"]), "node.db", 120, 84)
    assert command[: len(node.TFTUNE) + 2] == [*node.TFTUNE, "search", "all_gather_gemm"]
    assert command[-8:] == ["--mode", "both", "--pool", "60", "--budget", "84s", "--db", "node.db"]
    assert node.search((8, node.PARTS["decode"]), "node.db", 120, 84)[len(node.TFTUNE) :][:2] == [
        "search",
        "flash_decode",
    ]
    scout, matrix = (
        node.search((4, node.PARTS[name]), "node.db", 120, 84) for name in ("grid", "portfolio")
    )
    assert scout[-8:-4] == ["--mode", "both", "--effort", "scout"] and "--pool" not in scout
    assert matrix[-7:-4] == ["--mode", "both", "--portfolio"] and "--pool" not in matrix


class FakeClock:
    """Searches that use this part of their budget, and what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, used: float, code: int = 0) -> None:
        self.now, self.used, self.code = 0.0, used, code
        self.budgets: list[int] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def run(self, command: Sequence[str], until: float) -> int:
        self.budgets.append(int(command[command.index("--budget") + 1].removesuffix("s")))
        self.now += self.used * self.budgets[-1] + node.RESERVE_S
        return self.code


def test_the_time_is_shared_and_what_is_left_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    todo = node.works([8, 4], node.DEFAULT_PARTS)
    full = FakeClock(monkeypatch, used=1.0)
    assert node.measure(todo, "node.db", 120, 440, full.run) == []
    assert full.budgets == [130, 70, 130, 70] and full.now == 440
    quick = FakeClock(monkeypatch, used=0.0)
    assert node.measure(todo, "node.db", 120, 440, quick.run) == []
    assert quick.budgets == [130, 103, 260, 400]


def test_what_was_not_begun_or_failed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    todo = node.works([8], node.DEFAULT_PARTS)
    overrun = FakeClock(monkeypatch, used=2.0, code=2)
    problems = node.measure(todo, "node.db", 120, 120, overrun.run)
    assert overrun.budgets == [65]
    assert problems[0].startswith("ended with 2: world 8, the tables of docs/results.md")
    assert problems[1].startswith("not begun: world 8, four M")
    assert "0 s were left for 1 searches" in problems[1]


def test_a_search_that_overruns_is_stopped_as_by_ctrl_c(capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    assert node.run(SLOW, began + 2) == 130
    assert time.monotonic() - began < 20
    assert "committed" in capfd.readouterr().out


def test_commands_run_without_multicast(capfd: pytest.CaptureFixture[str]) -> None:
    told = (
        "import os; print(os.environ['NCCL_NVLS_ENABLE'], "
        "os.environ['TORCH_SYMM_MEM_DISABLE_MULTICAST'])"
    )
    assert node.run((sys.executable, "-c", told), time.monotonic() + 60) == 0
    assert "0 1" in capfd.readouterr().out


def test_show_prints_every_command_and_runs_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "run", None)
    assert node.main(["node.db", "--world", "2", "4", "--parts", "paper", "models", "--show"]) == 0
    printed = [
        shlex.split(line) for line in capsys.readouterr().out.splitlines() if " search " in line
    ]
    assert [line[line.index("--shapes") + 1].partition(";")[0] for line in printed] == [
        "paper:world=2", "llama3-70b:world=2", "paper:world=4", "llama3-70b:world=4",
    ]  # fmt: skip


def test_a_run_ends_with_a_check_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        node, "TFTUNE", (sys.executable, "-c", "import sys; print('asked', *sys.argv[1:])")
    )
    assert node.main([str(tmp_path / "node.db"), "--world", "2", "--seconds", "60"]) == 0
    printed = capfd.readouterr().out
    assert printed.count("asked search all_gather_gemm") == 2 and "asked db check" in printed
    assert "2 of 2 runs ended well" in printed


def test_winners_are_measured_beside_other_libraries_once_the_searches_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two minutes of each world are kept for them; one that fails is told."""
    asked = list[list[str]]()
    monkeypatch.setattr(
        node, "measure", lambda todo, db, pool, seconds: asked.append([f"{seconds:g}"]) or []
    )
    monkeypatch.setattr(
        node, "run", lambda command, until: asked.append(list(command)) or int("4" in command)
    )
    arguments = ["node.db", "--world", "2", "4", "--seconds", "600", "--rivals", str(tmp_path)]
    assert node.main(arguments) == 1
    (seconds,), two, four, check = asked
    assert seconds == "360"
    assert two[1].endswith("benchmarks/rivals.py")
    assert check[-4:] == ["db", "check", "--db", "node.db"]
    assert two[2:] == [
        "--db",
        "node.db",
        "--out",
        f"{tmp_path}/rivals-world-2.jsonl",
        "--world",
        "2",
        "--seconds",
        "110",
    ]
    assert four[7] == "4"
    printed = capsys.readouterr().out
    assert "ended with 1: " in printed and "5 of 6 runs ended well" in printed
    assert node.main([*arguments, "--show"]) == 0
    assert capsys.readouterr().out.count("rivals.py --db node.db") == 2
