"""Bad input of many kinds, for every command: each is one sentence that names what was given, with
exit code 2, and no file is made, changed or waited for."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic
from command_line import OP, SMALL, Tftune, refused

from tftune.cli import app as cli
from tftune.db.store import Store, write_rows
from tftune.db.trial import Run
from tftune.serve.database import Database

SEARCH = f"search {OP} --on model --target mi300x8"
Refuses = Callable[..., None]


def _item(**sizes: object) -> str:
    return json.dumps([{"m": 64, "n": 512, "k": 1024, "world": 2, **sizes}])


FILES = {
    "empty": "",
    "empty.json": "",
    "cut.json": "[1,",
    "object.json": "{}",
    "nested.json": "[[1]]",
    "itself.json": '["itself.json"]',
    "nan.json": "NaN",
    "infinite.json": _item(m=1e400),
    "negative.json": _item(m=-1),
    "boolean.json": _item(m=True),
    "deep.json": "[" * 100_000,
    "deep.yaml": "[" * 3_000,
    "cut.yaml": "a: [",
    "code.yaml": '!!python/object/apply:os.system ["true"]',
    "field.yaml": "- {m: 1, n: 8, k: 8, wrld: 2}",
    "second.yaml": "- m=1,n=8,k=8,world=2\n- 7",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are not what a command wants, and a sound database."""
    folder = tmp_path_factory.mktemp("input")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "binary").write_bytes(b"\x96\xff" * 500)
    (folder / "folder.json").mkdir()
    for name in ("pipe", "pipe.json"):
        os.mkfifo(folder / name)
    (folder / "loop").symlink_to("loop")
    with sqlite3.connect(folder / "foreign.db") as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    Database.open(str(folder / "service.db")).close()
    run = Run("run", synthetic.TARGET, "model", {}, "2026-11-22", {})
    write_rows(folder / "rows.jsonl", [run], synthetic.rows(synthetic.SHAPES[:2], bench="model"))
    with Store.open(folder / "t.db") as store:
        store.import_rows(folder / "rows.jsonl")
    return folder


@pytest.fixture
def refuses(folder: Path, tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> Refuses:
    """refuses(line, *parts): a command is refused with these parts, and no file changes but for
    locks."""
    monkeypatch.chdir(folder)

    def content() -> dict[str, bytes | None]:
        own = (".lock", ".db-shm", ".db-wal")
        files = (path for path in folder.iterdir() if path.suffix not in own)
        return {path.name: path.read_bytes() if path.is_file() else None for path in files}

    def run(line: str, *parts: str) -> None:
        before = content()
        assert refused(tftune(line), *parts) and content() == before

    return run


@pytest.mark.parametrize(
    "case",
    [
        *(
            (f"--budget={text}", f"--budget '{text}' is no duration", "10m")
            for text in ("-5s", "0s", "nan", "1e9h", "")
        ),
        ("--pool 0", "'--pool': Input should be greater than or equal to 1, and '0' was given"),
        ("--pool=-1", "and '-1' was given"),
        ("--pool 1e3", "and '1e3' was given"),
        ("--seed abc", "and 'abc' was given"),
        ("--gpus 1.5", "and '1.5' was given"),
        ("--gpus 9", "--gpus 9 is more than the 8 GPUs of mi300x8"),
        ("--gpus 99999999999999999999", "--gpus 99999999999999999999 is more than the 8 GPUs"),
        ("--gpus 4 --shapes paper:world=8", "world=8", "--gpus 4"),
        ("--mode none", "'none' is not one of 'graph', 'eager', 'both'", "tftune search --help"),
        ("--variant=", "has no variant ''"),
        ("--shapes m=1e3,n=8,k=8,world=2", "m='1e3' must be an integer"),
        ("--shapes m=nan,n=8,k=8,world=2", "m='nan' must be an integer"),
        ("--shapes m=0,n=8,k=8,world=2", "m=0 must be an integer of at least 1"),
        ("--shapes m=99999999999,n=8,k=8,world=2", "m=99999999999,n=8,k=8,world=2 is above"),
        ("--shapes m=1,m=2,n=8,k=8,world=2", "names 'm' twice"),
        ("--shapes m=1,n=8,k=8,world=2,dtype=fp8", "dtype='fp8' is not one of fp16, bf16"),
        ("--shapes m=1,n=8,k=9,world=2", "k=9", "world=2"),
        ("--shapes ;;", "no shapes are given"),
        ("--shapes paper:world=3", "world=3"),
        ("--shapes paper:world=", "world='' must be an integer"),
        ("--shapes paper:tp=4", "no option 'tp'", "world, dtype, shard", "m, n, k keep a part"),
        ("--shapes paper:m=16+24", "'paper' has no m=24", "m=1+2+4+8+16+32"),
        ("--shapes paper:m=16-32", "m='16-32' must be an integer"),
        ("--shapes none.yaml", "none.yaml", "No such file"),
        ("--shapes field.yaml", "item 1: all_gather_gemm has no shape field 'wrld'"),
        ("--shapes second.yaml", "item 2: 7 is neither a mapping of fields nor a shape"),
        ("--shapes empty.json", "empty.json is not valid JSON"),
        ("--shapes cut.json", "cut.json is not valid JSON"),
        ("--shapes object.json", "object.json must hold a list of shapes, not dict"),
        ("--shapes nested.json", "nested.json, item 1: [1] is neither"),
        ("--shapes itself.json", "itself.json, item 1"),
        ("--shapes nan.json", "nan.json must hold a list"),
        ("--shapes infinite.json", "infinite.json, item 1: m=inf"),
        ("--shapes negative.json", "negative.json, item 1: m=-1"),
        ("--shapes boolean.json", "boolean.json, item 1: m=True"),
        ("--shapes deep.json", "deep.json is nested deeper than any list of shapes"),
        ("--shapes deep.yaml", "deep.yaml is nested deeper than any list of shapes"),
        ("--shapes cut.yaml", "cut.yaml is not valid YAML"),
        ("--shapes code.yaml", "code.yaml is not valid YAML: could not determine a constructor"),
        ("--shapes folder.json", "folder.json: Is a directory"),
        ("--shapes pipe.json", "pipe.json: it is a pipe or a device, not a file"),
        *((f"--chip {name}", name) for name in ("pipe", "empty", "binary", "folder.json")),
        ("--chip deep.json", "deep.json"),
        *((f"--db {name}", name) for name in ("pipe", "folder.json", "loop", "binary")),
        ("--db foreign.db", "foreign.db is no database of searches: it has mine"),
        ("--db /dev/full", "/dev/full is no database"),
        ("--db /proc/none/t.db", "cannot write /proc/none/t.db"),
        ("--inject hang=0.1", "--inject needs --on node", "--on model"),
        ("--on replay --db r.db", "no measured rows", "tftune trials import"),
        ("--target h200x4 --shapes paper:world=8", "world=8", "4 GPUs of h200x4"),
        ("--target b300x8", "'b300x8' is no target", "mi300x", "h200"),
        ("--target mi300x0", "'mi300x0' is no target"),
        ("--target \u00fcn\u00efx8", "'\u00fcn\u00efx8' is no target"),
        ("--onn model", "No such option: --onn"),
        ("--target h20x8", "did you mean 'h200x8'?"),
        ("--variant pushce", "no variant 'pushce'", "bsp, pull, staged, push", "mean 'push_ce'?"),
        ("--shapes papper:world=8", "'papper:world=8' is no shape", "did you mean 'paper'?"),
        ("--shapes m=1,nn=8,k=8,world=2", "no shape field 'nn'", "m, n, k, world", "mean 'n'?"),
    ],
    ids=lambda case: case[0],
)
def test_a_search_refuses(case: tuple[str, ...], refuses: Refuses) -> None:
    words, *parts = case
    shape = "" if "--shapes" in words else f" --shapes {SMALL}"
    refuses(f"{SEARCH}{shape} {words}", *parts)


@pytest.mark.parametrize(
    "case",
    [
        ("serch", "No such command 'serch'"),
        ("trials", "Missing command", "tftune trials --help"),
        ("search foo", "there is no operation 'foo'", OP),
        (f"search {OP} --on model", "--on model needs --target"),
        (f"search {OP} --inject hagn=0.1", "no fault 'hagn'", "hang, crash, wrong, oom, rank_er"),
        (f"search {OP} --inject hang=x", "hang=x is no probability"),
        (f"search {OP} --inject hang=0.9,oom=0.2", "sum to 1.1", "above 1"),
        (f"train {OP} --db none.db", "there is no database", "none.db", "tftune search"),
        (f"select {OP} m=64,n=512 --target h200x8", "lacks k, world"),
        (f"select {OP} {SMALL} --artifact none.json", "none.json", "tftune export"),
        (f"explain {OP} {SMALL} --artifact none.json", "none.json", "tftune export"),
        (f"select {OP} {SMALL} --target mi300x3", "shipped for mi300x3", "tftune tune"),
        ("diff binary binary", "binary"),
        ("trials import none.jsonl", "cannot read none.jsonl"),
        ("report --target foo --db t.db", "'foo' is no target"),
        (f"export {OP} --db t.db --out empty/a.json", "empty"),
        *((f"train {OP} --db {name}", name) for name in ("pipe", "binary", "foreign.db", "loop")),
        (f"train {OP} --db empty", "empty has no trials"),
        (f"export {OP} --db t.db --out folder.json", "folder.json: Is a directory"),
        (f"export {OP} --db t.db --out pipe", "pipe: it is a pipe or a device"),
        (f"export {OP} --db t.db --out t.db", "t.db is a database, which would be lost"),
        (f"export {OP} --db t.db --out loop", "loop: Too many levels of symbolic links"),
        ("report --db t.db --out empty", "cannot write empty/"),
        ("trials import -", "'-' is no file here"),
        ("trials import rows.jsonl --db=-", "'-' is no file here"),
        *(
            (f"select {OP} {SMALL} --artifact {name}", name)
            for name in ("pipe", "folder.json", "loop", "empty", "binary", "nan.json", "t.db")
        ),
        (f"explain {OP} {SMALL} --target h200x8 --db pipe", "pipe is no database"),
        ("diff rows.jsonl pipe", "rows.jsonl"),
        (f"verify {OP} --leaves 0", "and '0' was given"),
        (f"select {OP[1:]} {SMALL}", f"did you mean '{OP}'?"),
        (f"audit {OP} --against binary", "binary is no rows of an audit"),
        (f"audit {OP} --against pipe", "cannot read pipe"),
        (f"audit {OP} --arch gfx1", "gfx1 is another"),
        ("calibrate --emulated nope", "'nope' is no target"),
        ("tune --show mi300x8 --shapes nope", "'nope' is no shape, named set or file"),
        ("tune --show mi300x4 --shapes paper:world=8", "world=8"),
        (f"{SEARCH} --gpus 4", "world=8"),
        ("tune --show mi300x8 --budget x", "--budget 'x' is no duration"),
        *((f"trials import {name}", name) for name in ("pipe", "folder.json", "binary")),
        *((f"trials export {name} --db t.db", name) for name in ("pipe", "folder.json", "t.db")),
        *(
            (f"{line} --db none.db", "there is no database")
            for line in (
                f"export {OP}",
                "report --target x9x8",
                f"explain {OP} {SMALL} --target h200x8",
                "trials export rows2.jsonl --target x9x8",
                "trials list --target x9x8",
                "trials stats",
                "db check",
                "db check --drop",
                "findings",
                "findings --close f1",
                "push --url http://127.0.0.1:1",
                "tokens list",
                "tokens revoke t1",
            )
        ),
        ("tokens list --db t.db", "has the rows of searches (`tftune search`)"),
        ("serve --db t.db", "has the rows of searches (`tftune search`)"),
        ("trials list --db service.db", "it has the tables of `tftune serve`"),
        ("trials import rows.jsonl --db service.db", "it has the tables of `tftune serve`"),
        *(
            (line, "'-' is no file here, and stdout takes none; give a name")
            for line in (
                "trials export - --db t.db",
                f"export {OP} --db t.db --out -",
                "report --db t.db --out -",
                "calibrate --out -",
                "tune --model config.json --out -",
                "audit --out -",
                f"pull {OP} --out -",
                "verify --artifact a.json --out -",
                "keys create -",
            )
        ),
        ("trials list --db t.db --limit 0", "and '0' was given"),
        ("trials list --db t.db --op nope", "there is no operation 'nope'"),
        ("trials stats --db foreign.db", "foreign.db is no database of searches"),
        ("db check --db pipe", "pipe is no database"),
        ("sets nope", "there is no operation 'nope'"),
        ("sets --shapes paper", "--shapes 'paper' needs an operation"),
        (f"sets {OP} --shapes nope", "'nope' is no shape, named set or file"),
        ("version x", "unexpected extra argument"),
    ],
    ids=lambda case: case[0],
)
def test_a_command_refuses(case: tuple[str, ...], refuses: Refuses, folder: Path) -> None:
    line, *parts = case
    if "trials import" in line and "--db" not in line:
        line += f" --db {folder}/t.db"
    refuses(line, *parts)


@pytest.mark.parametrize(("module", "extra"), [("optuna", "tune"), ("triton.language", "cuda")])
def test_what_is_not_installed_is_named_with_its_extra(
    module: str, extra: str, refuses: Refuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("tftune.cli.shapes_file.read_shapes", missing)
    needs, install = f"error: this needs {module.partition('.')[0]}, ", f"pip install '.[{extra}]'"
    refuses(f"{SEARCH} --shapes {SMALL}", needs, install, "`tftune doctor`")


def test_a_list_in_yaml_needs_a_reader(refuses: Refuses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    refuses(f"{SEARCH} --shapes cut.yaml", "this needs yaml, ")


def test_ctrl_c_says_what_is_left(
    folder: Path, tftune: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tftune.pipeline.training_job.load", stopped)
    for command in (f"train {OP}", f"export {OP} --out new.json", "report --out new"):
        ran = tftune(f"{command} --db {folder}/t.db")
        last = ran.err.splitlines()[-1]
        assert (ran.code, last) == (
            130,
            "stopped; each file is whole, as it was or as it was to be",
        )
    assert list(Path().glob("new*")) == []


def test_rows_are_listed_and_counted_in_tables(folder: Path, tftune: Tftune) -> None:
    with Store.open(folder / "t.db", write=False) as store:
        trials = store.trials()
    listed = tftune(f"trials list --limit 2 --db {folder}/t.db")
    title, head, *rows = listed.out.splitlines()
    assert listed.code == 0 and title == f"2 of {len(trials)} trials in {folder}/t.db"
    assert head.endswith("us  over BSP")
    assert [row.split()[0] for row in rows[:2]] == [str(trial.shape) for trial in trials[-2:]]
    assert rows[2].startswith("us: median time of one call")
    rows = tftune(f"trials stats --db {folder}/t.db").out.splitlines()
    counted = next(row.split() for row in rows if row.startswith(f"{OP} "))
    assert counted[:8] == [OP, "h200x2", "model", "graph", "matrix", f"{len(trials)}", "0", "2"]


def test_summaries_are_whole_sentences(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    every = [("--help", [*cli.COMMANDS, *cli.GROUPS])]
    every += [(f"{name} --help", [*commands]) for name, (*_, commands) in cli.GROUPS.items()]
    for line, names in every:
        commands = tftune(line).out.partition("Commands:\n")[2].splitlines()
        assert [row.split()[0] for row in commands] == list(names)
        assert [row for row in commands if not row.endswith(".") or row.endswith("..")] == []
