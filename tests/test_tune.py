"""The first day: its commands exist and take their options, share the budget, and a failing one
says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Tftune, programs

from tftune.cli.tune import Step, run, steps
from tftune.db.target import Target

TARGET = Target.parse("mi300x8")


def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    monkeypatch.chdir(tmp_path)
    return list(steps("all_gather_gemm", TARGET, "paper", 3600, Path("t.db")))


def test_the_commands_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [step.arguments[0] for step in found(tmp_path, monkeypatch)]
    assert names == ["doctor", "calibrate", "search", "search", "train", "export", "report"]
    (tmp_path / "mi300x8.chip.json").touch()
    assert [step.arguments[0] for step in found(tmp_path, monkeypatch)] == ["doctor", *names[2:]]


@pytest.mark.parametrize(("budget_s", "given"), [(3600, ["2160s", "1260s"]), (1, ["1s", "1s"])])
def test_the_searches_share_the_budget(budget_s: float, given: list[str]) -> None:
    listed = steps("all_gather_gemm", TARGET, "paper", budget_s, Path("t.db"))
    assert [step.arguments[-1] for step in listed if "--budget" in step.arguments] == given


def test_every_command_takes_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = dict(programs())["tftune"].commands
    for step in found(tmp_path, monkeypatch):
        command, *words = step.arguments
        # This raises for an unknown option or a value that does not fit.
        assert commands[command].make_context(command, words).args == []


def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, codes: dict[str, int]) -> list[str]:
    """The commands that ran, where those named ended with these codes."""
    ran: list[str] = []

    def call(arguments: tuple[str, ...]) -> int:
        ran.append(arguments[0])
        if codes.get(arguments[0]) == -1:
            raise KeyboardInterrupt
        return codes.get(arguments[0], 0)

    try:
        run(iter(found(tmp_path, monkeypatch)), call)
    except (ValueError, KeyboardInterrupt) as error:
        ran.append(f"{type(error).__name__}: {error}")
    return ran


def test_what_was_measured_becomes_an_artifact_whatever_a_search_ended_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = ends(monkeypatch, tmp_path, {"search": 2, "train": 2, "report": 2})
    assert ran == ["doctor", "calibrate", "search", "search", "train", "export", "report"]
    said = capsys.readouterr()
    assert "ended with 2; pairs are missing" in said.err
    assert "== the machine's constants" in said.out


@pytest.mark.parametrize("code", [-1, 130])
def test_a_stopped_search_is_exported_before_the_command_ends(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = ends(monkeypatch, tmp_path, {"search": code})
    assert ran == ["doctor", "calibrate", "search", "export", "KeyboardInterrupt: "]


def test_a_step_that_nothing_can_follow_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *ran, said = ends(monkeypatch, tmp_path, {"calibrate": 2})
    assert ran == ["doctor", "calibrate"]
    assert "`tftune calibrate --out mi300x8.chip.json` ended with 2; no world" in said


def test_show_runs_nothing(tftune: Tftune) -> None:
    shown = tftune("tune --show mi300x8 --budget 2h").out
    assert "tftune calibrate --out mi300x8.chip.json\n" in shown and "--budget 4320s" in shown
    assert list(Path().iterdir()) == []
