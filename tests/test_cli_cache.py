"""`tftune cache`: what was confirmed in place, listed, shown and forgotten."""

from __future__ import annotations

import json
import os
import re

import pytest
from command_line import Tftune

from tftune.confirm.memory import Identity, Memory, folder
from tftune.db.journal import append
from tftune.db.trial import Failure, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config
from tftune.models.selection import Selection

SHAPE = AllGatherGemm(16, 32, 64, 2, "fp16", "m", "nk")
BUILD = {"torch": "2.11.0", "nccl": "2.28.9", "multicast": "off"}
H100, H200 = (Identity(target, BUILD, "", (0, 1), {}) for target in ("h100x2", "h200x2"))


def remembered(identity: Identity) -> None:
    """As a job leaves it that ended: two answers, and one config that hung."""
    memory = Memory.open(identity)
    fused = Selection(Config("push"), "measured", "confirmed here", 10.0, 15.0, (1.4, 1.6))
    bsp = Selection(Config("bsp"), "measured", "confirmed here", 20.0, 20.0)
    memory.keep({("graph", SHAPE): fused, ("eager", SHAPE): bsp})
    run = Run("run", identity.target, "node", {}, "2026-11-25", {})
    hung = Trial(
        SHAPE, Config("pull"), "graph", identity.target, "node", "run", "1",
        Failure("hang", "a rank waited"), "warm_up", "2026-11-25",
    )  # fmt: skip
    append(memory.view.rows, [run], [hung])
    assert memory._lock is not None
    os.close(memory._lock)


@pytest.fixture
def two() -> None:
    remembered(H100)
    remembered(H200)


def test_nothing_is_remembered_at_first(tftune: Tftune) -> None:
    assert str(folder()) in tftune("cache list").out
    assert tftune("cache list --json").out == "[]\n"


@pytest.mark.usefixtures("two")
def test_list_counts_answers_of_each_combination(tftune: Tftune) -> None:
    listed = json.loads(tftune("cache list --json").out)
    assert [row["name"] for row in listed] == sorted([H100.name, H200.name])
    assert {(row["answers"], row["fused"], row["left_out"]) for row in listed} == {(2, 1, 1)}
    assert H100.name in tftune("cache list").out


@pytest.mark.usefixtures("two")
def test_show_says_what_runs_and_what_is_left_out(tftune: Tftune) -> None:
    shown = tftune("cache show h100x2").out
    assert "nccl 2.28.9, multicast off" in shown and "1.50x" in shown
    assert f"left out: all_gather_gemm Config('pull'): hang at {SHAPE}" in shown
    answers = json.loads(tftune("cache show h100x2 --json").out)["answers"]
    assert [row["config"]["variant"] for row in answers] == ["push", "bsp"]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("cache show h", "2 names in .* begin with 'h'; known: h100x2.*, h200x2"),
        ("cache show b", "0 names in .* begin with 'b'; known: h100x2.*, h200x2"),
        ("cache clear", "name one of `tftune cache list`, or give --all"),
        ("cache clear h100x2 --all", "name one of `tftune cache list`, or give --all"),
    ],
)
def test_a_name_that_is_not_one(line: str, sentence: str, tftune: Tftune) -> None:
    ran = tftune(line)
    assert ran.code == 2 and re.search(sentence, ran.err), ran.err


@pytest.mark.usefixtures("two")
def test_clear_forgets_one_or_all(tftune: Tftune) -> None:
    assert tftune("cache clear h100x2").out == f"removed {H100.name}\n"
    assert [path.stem for path in folder().glob("*.json*")] == [H200.name] * 2
    assert tftune("cache clear --all").code == 0
    assert not [*folder().glob("*.json*")]
    Memory._opened.clear()
    assert not Memory.open(H100).view.answers


def test_what_a_running_job_holds_stays(tftune: Tftune) -> None:
    memory = Memory.open(H100)
    memory.keep({})
    ran = tftune("cache clear --all")
    assert ran.code == 2 and "a running job uses" in ran.err
    assert [*folder().glob("*.json")]


def test_a_job_that_hung_at_its_first_config_is_listed_and_forgotten(tftune: Tftune) -> None:
    remembered(H100)
    (folder() / f"{H100.name}.json").unlink()
    (folder() / f"{H100.name}.jsonl.damaged").write_text("no row")
    (row,) = json.loads(tftune("cache list --json").out)
    assert (row["name"], row["answers"], row["left_out"]) == (H100.name, 0, 1)
    shown = tftune("cache show h100")
    assert shown.code == 2 and "has no answers" in shown.err
    assert tftune("cache clear h100").code == 0 and not [*folder().glob("*.json*")]


def test_a_file_that_cannot_be_trusted_is_listed_and_cleared(tftune: Tftune) -> None:
    remembered(H100)
    path = folder() / f"{H100.name}.json"
    path.write_text(path.read_text().replace("push", "pull"))
    with path.with_suffix(".jsonl").open("a") as rows:
        rows.write('no row\n{"half')  # as a killed job leaves it
    ran = tftune("cache list")
    assert ran.code == 0 and "it was changed" in ran.out and f"in {folder()}" in ran.out
    assert json.loads(tftune("cache list --json").out)[0]["left_out"] == 1
    assert tftune(f"cache show {H100.name}").code == 2
    assert tftune("cache clear --all").code == 0 and not path.exists()
