"""The command line: the main job end to end on the model bench, one sentence for each wrong input,
and what goes to stdout."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import LARGE, OP, SEARCH, SMALL, Tftune, hear_interrupts, refused
from unprivileged import read_only

from tftune.db.store import Store, write_rows
from tftune.db.trial import Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config


def test_a_search_says_modelled_in_plain_lines_and_which_commands_follow(tftune: Tftune) -> None:
    ran = tftune(f"{SEARCH} --db new.db")
    assert ran.code == 0 and "\x1b" not in ran.out + ran.err
    assert "trial " in ran.err and " left: " in ran.err and "us modelled" in ran.err
    title, head, *rows = ran.out.splitlines()
    assert title.split() == [OP, "on", "mi300x8,", "modelled"]
    columns = "shape  mode  times  BSP us  push us  winner  over BSP  evaluations  off by"
    assert head.split() == columns.split()
    assert [row.split()[:3] for row in rows[:2]] == [
        [shape, "graph", "modelled"] for shape in (SMALL, LARGE)
    ]
    assert "measured" not in ran.out and rows[2].startswith("graph: a fused variant beats BSP on ")
    export, select = re.findall(r"`tftune ([^`]*)`", ran.err.splitlines()[-1])
    assert tftune(export).code == 0
    answered = tftune(select.replace("SHAPE", SMALL))
    assert answered.code == 0 and "modelled, not measured" in answered.out


def count_of(db: Path) -> int:
    with Store.open(db, write=False) as store:
        return len(store.trials())


def test_a_portfolio_is_measured_on_every_shape_that_was_searched(tftune: Tftune, db: Path) -> None:
    matrix = (
        f"search {OP} --shapes {SMALL};{LARGE} --on model --target mi300x8 --mode graph "
        f"--portfolio --db {db}"
    )
    ran = tftune(matrix)
    assert ran.code == 0 and "missing" not in ran.err
    assert "\n6 configs: 8 pairs measured, 0 failed\n" in ran.err
    before = count_of(db)
    assert "0 trials to come" in tftune(matrix).err and count_of(db) == before
    unsearched = tftune(matrix.replace(SMALL, "m=32,n=512,k=1024,world=2"))
    assert unsearched.code == 0 and "\n3 trials to come\n" in unsearched.err
    assert "m=32,n=512,k=1024,world=2" in unsearched.out
    other = matrix.replace(SMALL, f"{SMALL},shard=m")
    assert refused(
        tftune(other),
        f"no shape of the layout of {SMALL},shard=m was searched in mode graph",
        f"run `tftune search {OP}`",
    )


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_matrix_with_gaps_is_an_error_in_either_form(
    form: str, tftune: Tftune, tmp_path: Path
) -> None:
    search = (
        f"search {OP} --shapes {SMALL} --on model --target mi300x8 --mode graph --db "
        f"{tmp_path / 'a.db'}"
    )
    assert tftune(f"{search} --effort scout").code == 0
    ran = tftune(f"{search} --portfolio --budget 0.001s {form}")
    said = "pairs of a shape and a config are missing: the budget was too small"
    assert ran.code == 2 and said in ran.err
    whole = tftune(f"{search} --portfolio --json")
    (line,) = json.loads(whole.out)
    assert whole.code == 0 and line["evaluations"] == line["feasible"] == 5
    assert set(line["us"]) == {"bsp", "pull", "push"}, (
        "staged took more than 1.5 times as long as the fastest"
    )
    assert refused(
        tftune(f"{search} --portfolio --effort scout --pool 8"),
        "--effort, --pool says how to search",
    )


def test_the_same_search_again_measures_nothing(tftune: Tftune, db: Path) -> None:
    before = count_of(db)
    ran = tftune(f"{SEARCH} --db {db} --json")
    assert count_of(db) == before
    lines = json.loads(ran.out)
    assert [(line["shape"], line["times"], line["bench"]) for line in lines] == [
        (shape, "modelled", "model") for shape in (SMALL, LARGE)
    ]
    assert all(
        line["us"]["bsp"] > 0 and line["evaluations"] == 24 <= line["feasible"] for line in lines
    )


def test_the_database_may_come_from_the_environment(
    tftune: Tftune, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFTUNE_DB", str(db))
    assert tftune("db check").out == f"{db} is sound\n"


def test_trials_travel_as_rows(tftune: Tftune, db: Path) -> None:
    count, into = count_of(db), "trials import rows.jsonl --db other.db"
    exported = tftune(f"trials export rows.jsonl --db {db} --op {OP}").out
    assert exported == f"{count} trials written to rows.jsonl\n"
    added = f"rows.jsonl: {count} trials added to other.db, 0 already there\n"
    assert tftune(into).out == added
    assert f"0 trials added to other.db, {count} already there" in tftune(into).out
    assert tftune(f"trials export none.jsonl --db {db} --target h200x8").out.startswith("0 trials")
    before = Path("rows.jsonl").read_bytes()
    ran = tftune(f"trials export rows.jsonl --db {db} --op flash_decode")
    has = f"of {OP} on mi300x8 (model, graph)"
    assert refused(ran, "rows.jsonl keeps its", "of op flash_decode", has, "or a new file")
    assert Path("rows.jsonl").read_bytes() == before


def test_db_check_tells_a_sound_database_from_a_changed_one(tftune: Tftune, db: Path) -> None:
    sound = {"db": str(db), "sound": True, "problems": []}
    assert json.loads(tftune(f"db check --db {db} --json").out) == sound
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE tft_trials SET mode = 'eager' WHERE number = 1")
    connection.close()
    ran = tftune(f"db check --db {db}")
    assert ran.code == 1 and "was changed" in ran.out
    assert json.loads(tftune(f"db check --db {db} --json").out)["sound"] is False


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"\x96\xff" * 9000, lambda content: content[: len(content) // 2]],
    ids=["garbage", "cut"],
)
def test_db_check_counts_a_damaged_file_as_found(
    tftune: Tftune, db: Path, damage: Callable[[bytes], bytes]
) -> None:
    db.write_bytes(damage(db.read_bytes()))
    ran = tftune(f"db check --db {db}")
    assert (ran.code, ran.err) == (1, "")
    assert str(db) in ran.out and "bring back a backup" in ran.out
    assert json.loads(tftune(f"db check --db {db} --json").out)["sound"] is False
    assert refused(tftune(f"train {OP} --db {db}"), str(db), "bring back a backup")
    assert refused(tftune("db check --db none.db"), "there is no database")


def test_a_database_in_a_folder_that_cannot_be_written_is_read(
    tftune: Tftune, db: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    shutil.copy(db, tmp_path / "folder")
    with read_only(tmp_path / "folder"):
        for line in (
            f"train {OP}",
            f"export {OP} --out a.json",
            "report --out page",
            f"explain {OP} {SMALL} --artifact a.json",
            "db check",
        ):
            ran = tftune(f"{line} --db folder/{db.name}")
            assert ran.code == 0, (line, ran.err)
        assert refused(tftune(f"{SEARCH} --db folder/{db.name}"), "cannot write")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == [db.name]


def test_replay_takes_rows_of_a_space_with_fewer_knobs_or_more_values(tftune: Tftune) -> None:
    full = operation(OP).space.complete(Config("push", block_m=64))
    less = Config("push", **{name: value for name, value in full.knobs if name != "block_n"})
    gone = Config("push", **dict(full.knobs) | {"block_m": 48})
    times = {Config("bsp", form="gather_copy"): 50.0, less: 40.0, gone: 30.0}
    rows = [
        Trial(
            AllGatherGemm.parse(LARGE), config, "graph", "h200x8", "node", "r1", "k1",
            Measurement((us,) * 9, (50.0,) * 9, 1e-4),
        )
        for config, us in times.items()
    ]  # fmt: skip
    run = Run("r1", "h200x8", "node", {}, "2026-11-20T10:00:00+00:00", {})
    write_rows(Path("rows.jsonl"), [run], rows)
    tftune("trials import rows.jsonl")
    ran = tftune(f"search {OP} --shapes {LARGE} --on replay --target h200x8 --mode graph --json")
    (line,) = json.loads(ran.out)
    assert ran.code == 0 and line["us"] == {"bsp": 50.0, "push": 40.0}
    assert line["times"] == "replayed"
    with Store.open(Path("tftune.db"), write=False) as store:
        replayed = {trial.config for trial in store.trials(bench="replay")}
    assert replayed == {Config("bsp", form="gather_copy"), full}


def test_ctrl_c_says_that_the_same_command_resumes(tmp_path: Path) -> None:
    words = f"-m tftune search {OP} --on model --target mi300x8 --effort quick"
    searching = subprocess.Popen(
        [sys.executable, *words.split()],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts,
    )  # fmt: skip
    assert searching.stderr is not None
    while "trial " not in searching.stderr.readline():
        assert searching.poll() is None
    searching.send_signal(signal.SIGINT)
    last = searching.stderr.read().splitlines()[-1]
    assert last == "stopped; what finished is stored, and the same command resumes"
    assert searching.wait(timeout=30) == 130
    with Store.open(tmp_path / "tftune.db") as store:
        assert len(store.trials()) >= 50 and store.check() == []
