"""The steps of a whole node: their commands, and what becomes of one that fails or hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import whole_node


@pytest.mark.thorough
def test_every_step_is_a_command_that_its_program_takes(tmp_path: Path) -> None:
    """Each script is asked for its help, and each option of the step stands in it."""
    for name, command, seconds in whole_node.commands(list(whole_node.STEPS), tmp_path, 4, 500):
        assert seconds > whole_node.START_S, name
        script = next((word for word in command if word.endswith(".py")), "")
        if name == "contract":
            assert all((Path(__file__).parent.parent / w).exists() for w in command[-2:])
            continue
        asked = [sys.executable, script] if script else command[: command.index("taxes") + 1]
        told = subprocess.run([*asked, "--help"], capture_output=True, text=True, check=True).stdout
        own = command[command.index(script) :] if script else command
        assert all(word in told for word in own if word.startswith("--")), name


def test_the_time_is_shared(tmp_path: Path) -> None:
    planned = whole_node.commands(["rows", "llama"], tmp_path, 8, 350)
    assert [seconds for _, _, seconds in planned] == [200, 150]
    assert "--world 8" in " ".join(planned[0][1]) and "--seconds 185" in " ".join(planned[0][1])


def test_a_step_that_fails_or_hangs_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    step = whole_node.Step
    steps = {
        "fails": step(1, "{python} -c 'import sys; print(7); sys.exit(3)'", "fails"),
        "hangs": step(1, "{python} -c 'import time; time.sleep(60)'", "hangs"),
        "works": step(1, "{python} -c 'print(\"RESULT it works\")'", "works"),
    }
    monkeypatch.setattr(whole_node, "STEPS", steps)
    monkeypatch.setattr(whole_node, "START_S", 0)
    folder = tmp_path / "node"
    assert whole_node.main([str(folder), "--seconds", "6", "--steps", *steps]) == 1
    told = capsys.readouterr().out
    assert "ended with 3" in told and "\n7\n" in told and "RESULT it works" in told
    assert "ended with -2" in told or "ended with 1" in told
    assert sorted(path.name for path in folder.iterdir()) == ["fails.log", "hangs.log", "works.log"]


def test_shown_commands_do_not_run(tmp_path: Path, capsys: Any) -> None:
    assert whole_node.main([str(tmp_path / "none"), "--world", "4", "--show"]) == 0
    told = capsys.readouterr().out
    assert told.count("# ") == len(whole_node.STEPS) and not (tmp_path / "none").exists()
