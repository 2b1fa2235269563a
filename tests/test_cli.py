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
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import shipped
import synthetic
from unprivileged import read_only

from tftune.cli import app as cli
from tftune.db.audit import read_audits
from tftune.db.store import Store, write_rows
from tftune.db.target import Target
from tftune.db.trial import Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.models.artifact import SHIPPED, read_artifact
from tftune.models.tree.tree import Split

OP = "all_gather_gemm"
SMALL, LARGE = "m=64,n=512,k=1024,world=2", "m=512,n=512,k=1024,world=2"
SEARCH = f"search {OP} --shapes {SMALL};{LARGE} --on model --target mi300x8 --mode graph --effort quick --variant push"


class Ran(tuple[int, str, str]):
    """Exit code, stdout and stderr of one command."""

    code = property(lambda self: self[0])
    out = property(lambda self: self[1])
    err = property(lambda self: self[2])


Tftune = Callable[[str], Ran]


@pytest.fixture
def tftune(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Tftune:
    """Run a command line inside this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("TFTUNE_DB", "TFTUNE_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(line: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(line.split())
        return Ran((int(ended.value.code or 0), *capsys.readouterr()))

    return run


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The database of a quick search of two shapes on the model bench."""
    db = tmp_path_factory.mktemp("searched") / "t.db"
    with pytest.raises(SystemExit) as ended:
        cli.main([*SEARCH.split(), "--db", str(db)])
    assert not ended.value.code
    yield db


@pytest.fixture
def db(searched: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copy(searched, tmp_path / "mine.db"))


def refused(ran: Ran, *parts: str) -> bool:
    """Exit code 2, nothing on stdout, and one line on stderr that starts with `error:` and holds
    these parts."""
    (last,) = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert (ran.code, ran.out) == (2, "") and "Traceback" not in ran.err
    assert [part for part in parts if part not in last] == []
    return True


def test_a_search_says_modelled_and_prints_plain_lines_outside_a_terminal(tftune: Tftune) -> None:
    ran = tftune(f"{SEARCH} --db new.db")
    assert ran.code == 0 and "\x1b" not in ran.out + ran.err
    assert "trial " in ran.err and " left: " in ran.err and "us modelled" in ran.err
    title, head, *rows = ran.out.splitlines()
    assert title.split() == [OP, "on", "mi300x8,", "modelled"]
    assert head.split() == [
        "shape",
        "mode",
        "times",
        "BSP",
        "us",
        "push",
        "us",
        "winner",
        "over",
        "BSP",
        "evaluations",
        "off",
        "by",
    ]
    assert [row.split()[:3] for row in rows[:2]] == [
        [SMALL, "graph", "modelled"],
        [LARGE, "graph", "modelled"],
    ]
    assert "measured" not in ran.out and rows[2].startswith("graph: a fused variant beats BSP on ")


def test_a_portfolio_is_measured_on_every_shape_that_was_searched(tftune: Tftune, db: Path) -> None:
    matrix = f"search {OP} --shapes {SMALL};{LARGE} --on model --target mi300x8 --mode graph --portfolio --db {db}"
    ran = tftune(matrix)
    assert (
        ran.code == 0
        and "\n6 configs: 8 pairs measured, 0 failed\n" in ran.err
        and "missing" not in ran.err
    )
    with Store.open(db, write=False) as store:
        before = len(store.trials())
    assert "0 trials to come" in tftune(matrix).err
    with Store.open(db, write=False) as store:
        assert len(store.trials()) == before
    unsearched = tftune(matrix.replace(SMALL, "m=32,n=512,k=1024,world=2"))
    assert (
        unsearched.code == 0
        and "\n3 trials to come\n" in unsearched.err
        and "m=32,n=512,k=1024,world=2" in unsearched.out
    )
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
    search = f"search {OP} --shapes {SMALL} --on model --target mi300x8 --mode graph --db {tmp_path / 'a.db'}"
    assert tftune(f"{search} --effort scout").code == 0
    ran = tftune(f"{search} --portfolio --budget 0.001s {form}")
    assert (
        ran.code == 2
        and "pairs of a shape and a config are missing: the budget was too small" in ran.err
    )
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
    with Store.open(db, write=False) as store:
        before = len(store.trials())
    ran = tftune(f"{SEARCH} --db {db} --json")
    with Store.open(db, write=False) as store:
        assert len(store.trials()) == before
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


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of 5 layers with 6 values of M, in two layouts of which one has few shapes, as
    if an analytic model timed them."""
    folder = tmp_path_factory.mktemp("layers")
    half = [replace(place, dtype="fp16") for place in synthetic.SHAPES[:12]]
    rows = synthetic.rows([*synthetic.SHAPES, *half], bench="model")
    write_rows(
        folder / "rows.jsonl", [Run("run", synthetic.TARGET, "model", {}, "2026-11-22", {})], rows
    )
    with Store.open(folder / "t.db") as store:
        store.import_rows(folder / "rows.jsonl")
    return folder / "t.db"


def test_train_prints_the_tree_and_the_held_out_regret(tftune: Tftune, layers: Path) -> None:
    ran = tftune(f"train {OP} --db {layers}")
    assert ran.code == 0 and ran.out.startswith(
        f"{OP} on h200x2, mode graph: 42 shapes, 112 rows, modelled\n"
    )
    engine, half = (f"dtype={dtype},shard=m,b_layout=nk,world=2" for dtype in ("bf16", "fp16"))
    assert (
        f"\n{engine}: 30 modelled shapes, each answered by what was the fastest there\n" in ran.out
    )
    assert "\ntree for other shapes, formulas choose among the configs of a leaf:\n" in ran.out
    assert (
        "\nheld out (modelled): family and m held out at once, 30 shapes in 25 folds: regret 1."
        in ran.out
    )
    assert (
        "\nconstant rules there: regret always BSP 1." in ran.out
        and ", always pull - (no time), " in ran.out
    )
    assert re.search(
        r", vLLM: BSP below 4096 tokens, push above 1\.\d{3} \(25 of 30 shapes\), ", ran.out
    ), "the default push has no time"
    assert (
        f"\n{half}: 12 modelled shapes, " in ran.out
        and f"\n{half} is answered by {engine}: the same code, and " in ran.out
    )
    assert ran.out.splitlines()[-1].startswith("modelled: ") and "measured times" not in ran.out
    found = json.loads(tftune(f"train {OP} --db {layers} --json").out)
    assert found["times"] == "modelled" and set(found["modes"]) == {"graph"}
    graph = found["modes"]["graph"]
    held_out = graph["held_out"][engine]
    assert (
        held_out["selector"]["geomean_regret"]
        > held_out["rules"]["nearest measured shape"]["geomean_regret"]
        >= 1
    )
    assert {layout["rule"] for layout in graph["layouts"]} == {
        ""
    } and "answers for other shapes instead" not in ran.out, "the rule minds no error of the model"
    assert [layout["layout"]["dtype"] for layout in graph["layouts"]] == ["bf16", "fp16"] and len(
        graph["lent"]
    ) == 1


def test_train_on_two_shapes_has_nothing_to_hold_out(tftune: Tftune, db: Path) -> None:
    ran = tftune(f"train {OP} --db {db}")
    assert (
        ran.code == 0
        and "2 shapes" in ran.out
        and ": 2 modelled shapes, " in ran.out
        and "held out" not in ran.out
    )
    found = json.loads(tftune(f"train {OP} --db {db} --json").out)
    assert (
        found["times"] == "modelled"
        and found["modes"]["graph"]["held_out"] == {}
        and set(found["modes"]) == {"graph"}
    )


def test_export_select_and_explain(tftune: Tftune, db: Path) -> None:
    ran = tftune(f"export {OP} --db {db} --target mi300x8 --out a.json")
    assert ran.code == 0 and ran.out.startswith("a.json: all_gather_gemm on mi300x8, modelled")
    refusing = json.loads(tftune(f"select {OP} {LARGE} --artifact a.json --json").out)
    assert (
        refusing["source"] == "fallback"
        and refusing["config"]["variant"] == "bsp"
        and "modelled" in refusing["reason"]
    )
    answer = json.loads(
        tftune(f"select {OP} {LARGE} --artifact a.json --allow-modelled --json").out
    )
    assert (
        answer["source"] == "modelled"
        and answer["target"] == "mi300x8"
        and answer["near"] == [[512, 512, 1024]]
    )
    assert (
        answer["expected_us"] > 0
        and answer["speedup"] == answer["bsp_us"] / answer["expected_us"] >= 1
    )
    text = tftune(f"select {OP} {LARGE} --artifact a.json --allow-modelled").out
    first, *rest = text.splitlines()
    assert (
        first == str(Config.from_dict(answer["config"]))
        and rest[0] == f"  modelled, not measured: {LARGE} in mode graph on mi300x8"
    )
    assert (
        rest[1] == f"  why: {answer['reason']}"
        and rest[2].startswith("  expected: ")
        and rest[3].startswith("  modelled: ")
    )
    why = json.loads(
        tftune(f"explain {OP} {LARGE} --artifact a.json --allow-modelled --db {db} --json").out
    )
    assert why["config"] == answer["config"] and (why["leaf"], why["path"]) == (None, []), (
        "its own rows answer"
    )
    assert [line["shape"] for line in why["nearest"]] == [LARGE, SMALL] and why["nearest"][0][
        "times"
    ] == "modelled"
    spoken = tftune(f"explain {OP} {SMALL} --artifact a.json --allow-modelled --db {db}").out
    assert (
        "  path: " not in spoken
        and "  leaf: " not in spoken
        and "nearest shapes, modelled" in spoken
    )


def test_explain_names_the_leaf_of_a_shape_between_the_measured_ones(
    tftune: Tftune, layers: Path
) -> None:
    assert tftune(f"export {OP} --db {layers} --out a.json").code == 0
    asked = "m=100,n=3072,k=4096,world=2,dtype=bf16,shard=m,b_layout=nk"
    line = f"explain {OP} {asked} --artifact a.json --allow-modelled --db {layers}"
    why, spoken = json.loads(tftune(f"{line} --json").out), tftune(line).out
    (model,) = [
        each for each in read_artifact(Path("a.json")).modes["graph"].layouts.values() if each.spans
    ]
    leaf = why["leaf"]
    assert (
        why["source"] == "modelled"
        and why["config"] in leaf["candidates"]
        and leaf["rows"] > 0 < leaf["error"]
    )
    space, shape, chip = (
        operation(OP).space,
        AllGatherGemm.parse(asked),
        Target.parse(synthetic.TARGET).chip,
    )
    possible = {space.concrete(shape, config, chip) for config in model.configs}
    assert {Config.from_dict(candidate) for candidate in leaf["candidates"]} <= possible and len(
        leaf["candidates"]
    ) > 1
    assert bool(why["path"]) == isinstance(model.root, Split)
    assert f"\n  path: {', then '.join(why['path']) or 'the tree is a single leaf'}\n" in spoken
    assert "\n  leaf: " in spoken and all(
        str(Config.from_dict(candidate)) in spoken for candidate in leaf["candidates"]
    )
    assert (
        "held out in mode graph: regret " in spoken
        and "both as modelled" not in spoken.partition("held out in mode")[0]
    )
    assert why["near"] == leaf["near"] and len(why["nearest"]) == 3


@shipped.needs(OP, "h200x4")
def test_explain_says_what_shapes_like_this_one_lost_unseen(tftune: Tftune) -> None:
    reports = json.loads((SHIPPED / f"{OP}__h200x4.json").read_text())["held_out"]["graph"]
    layout = "dtype=fp16,shard=k,b_layout=kn,world=4"
    mean, worst = reports[layout]["groups"]["n=1792,k=5120"]
    spoken = tftune(f"explain {OP} m=100,n=1792,k=5120,world=4 --target h200x4").out
    assert f"held out with all of n=1792,k=5120: {mean:.3f}, at worst {worst:.3f}\n" in spoken


def test_explain_without_a_database_uses_the_rows_of_the_checkout(
    tftune: Tftune, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tftune(f"export {OP} --db {db} --out a.json")
    folder = db.parent / "checkout/db"
    (folder / "trials/mi300x8").mkdir(parents=True)
    tftune(f"trials export {folder}/trials/mi300x8/{OP}-2026-01-01.jsonl --db {db}")
    monkeypatch.setattr("tftune.db.committed.FOLDER", folder / "trials")
    why = json.loads(
        tftune(f"explain {OP} {LARGE} --artifact a.json --allow-modelled --db none.db --json").out
    )
    assert len(why["nearest"]) == 2 and not Path("none.db").exists()


def test_report_writes_a_page_for_what_the_database_holds(tftune: Tftune, db: Path) -> None:
    ran = tftune(f"report --db {db} --out page --op {OP}")
    paths = [Path(line) for line in ran.out.splitlines()]
    assert (
        ran.code == 0
        and paths[0] == Path(f"page/{OP}__mi300x8__model.html")
        and all(path.exists() for path in paths)
    )
    assert {path.suffix for path in paths[1:]} == {".png"} and "modelled" in paths[0].read_text()
    assert refused(
        tftune(f"report --db {db} --target h200x8"),
        "no rows to report",
        "all_gather_gemm on mi300x8 (model)",
    )


def test_trials_travel_as_rows(tftune: Tftune, db: Path) -> None:
    with Store.open(db, write=False) as store:
        count = len(store.trials())
    assert (
        tftune(f"trials export rows.jsonl --db {db} --op {OP}").out
        == f"{count} trials written to rows.jsonl\n"
    )
    assert (
        tftune("trials import rows.jsonl --db other.db").out
        == f"rows.jsonl: {count} trials added to other.db, 0 already there\n"
    )
    assert (
        f"0 trials added to other.db, {count} already there"
        in tftune("trials import rows.jsonl --db other.db").out
    )
    assert tftune(f"trials export none.jsonl --db {db} --target h200x8").out.startswith("0 trials")
    before = Path("rows.jsonl").read_bytes()
    ran = tftune(f"trials export rows.jsonl --db {db} --op flash_decode")
    assert refused(
        ran,
        "rows.jsonl keeps its",
        "of op flash_decode",
        f"of {OP} on mi300x8 (model, graph)",
        "or a new file",
    )
    assert Path("rows.jsonl").read_bytes() == before


def test_db_check_tells_a_sound_database_from_a_changed_one(tftune: Tftune, db: Path) -> None:
    assert json.loads(tftune(f"db check --db {db} --json").out) == {
        "db": str(db),
        "sound": True,
        "problems": [],
    }
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
    assert (
        (ran.code, ran.err) == (1, "") and str(db) in ran.out and "bring back a backup" in ran.out
    )
    assert json.loads(tftune(f"db check --db {db} --json").out)["sound"] is False
    assert refused(tftune(f"train {OP} --db {db}"), str(db), "bring back a backup")
    assert refused(tftune("db check --db none.db"), "there is no database")


def test_a_database_in_a_folder_that_cannot_be_written_is_read(
    tftune: Tftune, db: Path, tmp_path: Path
) -> None:
    Path(
        shutil.copytree(
            db.parent,
            tmp_path / "folder",
            ignore=lambda folder, names: [n for n in names if n != db.name],
        )
    )
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


def test_a_binary_file_is_named_whatever_it_is_given_as(tftune: Tftune) -> None:
    Path("b.bin").write_bytes(b"\x96\xff" * 9000)
    for line in (
        f"select {OP} {SMALL} --artifact b.bin",
        f"search {OP} --on model --target mi300x8 --chip b.bin",
        f"search {OP} --on model --target mi300x8 --shapes b.bin",
        "trials import b.bin",
        "diff b.bin b.bin",
        f"train {OP} --db b.bin",
    ):
        assert refused(tftune(line), "b.bin")
    with pytest.raises(ValueError, match=r"^b\.bin is no rows of an audit: it is no text"):
        read_audits(Path("b.bin"))


def test_a_search_replays_measured_rows(tftune: Tftune) -> None:
    shape = AllGatherGemm.parse(LARGE)
    forms = [Config("bsp", form=form) for form in ("gather_copy", "local_transpose")]
    rows = [
        Trial(
            shape, form, "graph", "h200x8", "node", "r1", "k1", Measurement((50.0,) * 9, (), 1e-4)
        )
        for form in forms
    ]
    write_rows(
        Path("rows.jsonl"), [Run("r1", "h200x8", "node", {}, "2026-11-20T10:00:00+00:00", {})], rows
    )
    tftune("trials import rows.jsonl")
    ran = tftune(
        f"search {OP} --shapes {LARGE} --on replay --target h200x8 --mode graph --effort quick --variant bsp --json"
    )
    assert (
        ran.code == 0
        and json.loads(ran.out)[0]["us"] == {"bsp": 50.0}
        and json.loads(ran.out)[0]["times"] == "replayed"
    )


def test_replay_takes_rows_of_a_space_with_fewer_knobs_or_more_values(tftune: Tftune) -> None:
    shape = AllGatherGemm.parse(LARGE)
    full = operation(OP).space.complete(Config("push", block_m=64))
    less = Config("push", **{name: value for name, value in full.knobs if name != "block_n"})
    gone = Config("push", **dict(full.knobs) | {"block_m": 48})
    times = {Config("bsp", form="gather_copy"): 50.0, less: 40.0, gone: 30.0}
    rows = [
        Trial(
            shape,
            c,
            "graph",
            "h200x8",
            "node",
            "r1",
            "k1",
            Measurement((us,) * 9, (50.0,) * 9, 1e-4),
        )
        for c, us in times.items()
    ]
    write_rows(
        Path("rows.jsonl"), [Run("r1", "h200x8", "node", {}, "2026-11-20T10:00:00+00:00", {})], rows
    )
    tftune("trials import rows.jsonl")
    ran = tftune(f"search {OP} --shapes {LARGE} --on replay --target h200x8 --mode graph --json")
    assert ran.code == 0 and json.loads(ran.out)[0]["us"] == {"bsp": 50.0, "push": 40.0}
    with Store.open(Path("tftune.db"), write=False) as store:
        assert {trial.config for trial in store.trials(bench="replay")} == {
            Config("bsp", form="gather_copy"),
            full,
        }


def test_doctor_always_answers(tftune: Tftune) -> None:
    ran = tftune("doctor")
    assert (
        ran.code == 0
        and ran.out.startswith("python 3.")
        and "optuna" in ran.out
        and "import iris: " in ran.out
    )
    found = json.loads(tftune("doctor --json").out)
    assert set(found["packages"]) == {"tune", "cuda"} and all(found["packages"]["tune"].values())
    assert bool(found["target"]) != bool(found["why_no_target"])


def test_doctor_says_why_an_artifact_does_not_apply(
    tftune: Tftune, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tftune(f"export {OP} --db {db} --out shipped/good.json")
    (tmp_path / "shipped/broken.json").write_text('{"schema": 1')
    monkeypatch.setattr("tftune.models.artifact.SHIPPED", tmp_path / "shipped")
    broken, good = json.loads(tftune("doctor --json").out)["artifacts"]
    assert not broken["applies"] and "cut off" in broken["why_not"][0]
    assert (good["target"], good["times"], good["applies"]) == ("mi300x8", "modelled", False)
    assert "artifact good.json: does not apply here: " in tftune("doctor").out


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("search foo", ["there is no operation 'foo'", OP]),
        (f"search {OP} --on model", ["--on model needs --target"]),
        (f"search {OP} --on model --target b300x8", ["'b300x8' is no target", "mi300x", "h200"]),
        (f"search {OP} --on model --target h200x8 --variant pul", ["no variant 'pul'", "bsp, pull, staged, push"]),
        (f"search {OP} --on model --target h200x8 --shapes m=1,n=8,k=8,world=2,q=3", ["no shape field 'q'", "m, n, k, world, dtype"]),
        (f"search {OP} --on model --target h200x8 --shapes m=1,n=8,k=9,world=2", ["k=9", "world=2"]),
        (f"search {OP} --on model --target h200x4 --shapes paper:world=8", ["world=8", "4 GPUs of h200x4"]),
        (f"search {OP} --on model --target h200x8 --gpus 9", ["--gpus 9", "8 GPUs of h200x8"]),
        (f"search {OP} --on model --target h200x8 --gpus 4", ["world=8", "--gpus 4"]),
        (f"search {OP} --on model --target h200x8 --shapes pape", ["'pape' is no shape", "paper"]),
        (f"search {OP} --on model --target h200x8 --shapes paper:tp=4", ["no option 'tp'", "world, dtype, shard", "m, n, k keep a part"]),
        (f"search {OP} --on model --target h200x8 --shapes paper:m=16+24", ["'paper' has no m=24", "m=1+2+4+8+16+32"]),
        (f"search {OP} --on model --target h200x8 --shapes paper:m=16-32", ["m='16-32' must be an integer"]),
        (f"search {OP} --on model --target h200x8 --shapes none.yaml", ["none.yaml", "No such file"]),
        (f"search {OP} --on model --target h200x8 --budget soon", ["'soon' is no duration", "10m"]),
        (f"search {OP} --on model --target h200x8 --inject hang=0.1", ["--inject needs --on node", "--on model"]),
        (f"search {OP} --inject hagn=0.1", ["no fault 'hagn'", "hang, crash, wrong, oom, rank_error"]),
        (f"search {OP} --inject hang=x", ["hang=x is no probability"]),
        (f"search {OP} --inject hang=0.9,oom=0.2", ["sum to 1.1", "above 1"]),
        (f"search {OP} --on replay --target mi300x8 --db r.db", ["no measured rows", "tftune trials import"]),
        (f"search {OP} --on modell", ["'modell' is not one of 'node', 'model', 'replay'", "tftune search --help"]),
        (f"search {OP} --on model --target h200x8 --db /proc/none/t.db", ["cannot write /proc/none/t.db"]),
        ("serch", ["No such command 'serch'"]),
        ("trials", ["Missing command", "tftune trials --help"]),
        (f"train {OP} --db none.db", ["there is no database", "none.db", "tftune search"]),
        (f"select {OP} m=64,n=512 --target h200x8", ["lacks k, world"]),
        (f"select {OP} {SMALL} --artifact none.json", ["none.json", "tftune export"]),
        (f"select {OP} {SMALL} --target mi300x3", ["no artifact is shipped for mi300x3", "tftune search"]),
        (f"explain {OP} {SMALL} --artifact none.json", ["none.json", "tftune export"]),
        ("trials import none.jsonl", ["cannot read none.jsonl"]),
        ("trials export rows.jsonl --op foo", ["there is no operation 'foo'"]),
        ("report --target foo", ["'foo' is no target"]),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(tftune: Tftune, line: str, parts: list[str]) -> None:
    assert refused(tftune(line), *parts)


def test_a_node_search_without_a_gpu_names_the_model(
    tftune: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.target.find_spec", lambda name: None)
    assert (
        refused(tftune(f"search {OP}"), "no GPU", "--on model") and not Path("tftune.db").exists()
    )


def test_a_rehearsal_without_torch_says_what_it_needs(
    tftune: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.target.find_spec", lambda name: None)
    assert refused(
        tftune("calibrate --emulated h200x2"),
        "tftune calibrate --emulated needs torch and triton",
        "`tftune doctor`",
    )


def test_a_target_that_is_not_this_machine(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tftune.cli.bench_factory.detect", lambda: Target.parse("h200x4"))
    assert refused(tftune(f"search {OP} --target h200x8"), "h200x8", "h200x4")
    assert refused(tftune(f"search {OP} --shapes paper:world=8"), "world=8", "4 GPUs of h200x4")


def test_a_node_bench_is_sized_for_the_largest_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    from tftune.cli.bench_factory import make_bench
    from tftune.kernels.all_gather_gemm.host import payload_bytes
    from tftune.tuner.bench.node import MATRIX, Rounds

    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "tftune.tuner.bench.node.NodeBench",
        lambda *arguments, rounds: made.append((*arguments, rounds)),
    )
    target, shapes = Target.parse("h200x8"), paper()
    make_bench("node", operation(OP), target, shapes, store=None)
    make_bench("node", operation(OP), target, shapes, store=None, matrix=True)
    size = payload_bytes(shapes[-1])
    assert (
        made == [(target, size, Rounds()), (target, size, MATRIX)]
        and size >= shapes[-1].gathered_bytes
    )


def test_rows_of_a_drill_are_not_trained_on(
    tftune: Tftune, tmp_path: Path, make_rows: Callable[..., list[Trial]]
) -> None:
    drilled = [replace(row, bench="drill") for row in make_rows(paper()[:2], bench="node")]
    run = Run("run", "h200x8", "drill", {}, "2026-11-20", {})
    write_rows(tmp_path / "drill.jsonl", [run], drilled)
    tftune("trials import drill.jsonl --db d.db")
    for command in (f"train {OP}", f"export {OP} --out a.json"):
        assert refused(
            tftune(f"{command} --db d.db"), "rows of a drill are not trained on", "without --inject"
        )
    write_rows(
        tmp_path / "clean.jsonl",
        [replace(run, id="clean", bench="node")],
        [replace(r, bench="node", run="clean") for r in drilled],
    )
    tftune("trials import clean.jsonl --db d.db")
    found = json.loads(tftune(f"train {OP} --db d.db --json").out)
    assert found["bench"] == "node"
    pages = [
        Path(line) for line in tftune("report --db d.db").out.splitlines() if line.endswith(".html")
    ]
    assert (
        ["measured in a drill" in page.read_text() for page in pages]
        == ["drill" in page.name for page in pages]
        == [True, False]
    )


def test_rows_of_several_targets_must_be_told_apart(tftune: Tftune, db: Path) -> None:
    tftune(
        f"search {OP} --shapes {SMALL} --on model --target h200x8 --mode graph --effort quick --variant bsp --db {db}"
    )
    assert refused(tftune(f"train {OP} --db {db}"), "h200x8, mi300x8", "--target")
    assert refused(
        tftune(f"train {OP} --db {db} --target h200x4"),
        "no rows of all_gather_gemm on h200x4",
        "mi300x8 (model)",
    )
    assert refused(tftune(f"train {OP} --db {db} --bench node"), "from the node bench")


def unchanged(db: Path, act: Callable[[], Any]) -> bool:
    """Whether the file is the same to the byte after an act."""
    before = db.read_bytes()
    act()
    return db.read_bytes() == before


def test_a_second_search_on_the_same_database_waits_for_nobody(tftune: Tftune, db: Path) -> None:
    with Store.open(db):
        assert unchanged(
            db,
            lambda: refused(tftune(f"{SEARCH} --db {db}"), str(db), "is being written by process"),
        )


def test_a_database_of_a_newer_schema_is_left_alone(tftune: Tftune, db: Path) -> None:
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE tft_meta SET value = '99' WHERE name = 'schema'")
    connection.close()
    assert unchanged(
        db, lambda: refused(tftune(f"{SEARCH} --db {db}"), "schema 99", "upgrade tftune")
    )
    assert refused(tftune(f"train {OP} --db {db}"), "schema 99")


def test_a_half_written_line_adds_nothing(tftune: Tftune, db: Path) -> None:
    tftune(f"trials export rows.jsonl --db {db}")
    Path("half.jsonl").write_text(Path("rows.jsonl").read_text()[:-40])
    with Store.open(db, write=False) as store:
        count = len(store.trials()) + len(store.runs())
    assert refused(
        tftune("trials import half.jsonl --db empty.db"),
        f"line {count} of half.jsonl is no whole row",
    )
    with Store.open(Path("empty.db"), write=False) as store:
        assert store.trials() == []


@pytest.mark.parametrize("command", ["report --out taken", f"export {OP} --out taken/a.json"])
def test_a_place_that_cannot_be_written(tftune: Tftune, db: Path, command: str) -> None:
    Path("taken").write_text("a file where a folder is wanted")
    assert refused(tftune(f"{command} --db {db}"), "taken")


def test_a_traceback_only_when_asked_for(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTUNE_DEBUG", "1")
    with pytest.raises(ValueError, match="there is no operation"):
        cli.main(["search", "foo"])


def test_no_arguments_show_the_help(tftune: Tftune) -> None:
    ran = tftune("")
    assert ran.code == 0 and all(name in ran.out for name in ("search", "doctor", "trials", "db"))


def hear_interrupts() -> None:
    """A shell starts what it puts into the background with SIGINT ignored, and children inherit
    that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_says_that_the_same_command_resumes(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tftune",
        "search",
        OP,
        "--on",
        "model",
        "--target",
        "mi300x8",
        "--effort",
        "quick",
    ]
    searching = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
    )
    assert searching.stderr is not None
    while "trial " not in searching.stderr.readline():
        assert searching.poll() is None
    searching.send_signal(signal.SIGINT)
    assert (
        searching.stderr.read().splitlines()[-1]
        == "stopped; what finished is stored, and the same command resumes"
    )
    assert searching.wait(timeout=30) == 130
    with Store.open(tmp_path / "tftune.db") as store:
        assert len(store.trials()) >= 50 and store.check() == []
