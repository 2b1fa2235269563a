"""What `--json` prints is what docs/json.md says, for every command that has it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import chdir
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import json_schema
import jsonschema
import pytest
import synthetic
from command_line import LARGE, OP, SMALL, Tftune, programs, run
from synthetic import exported
from test_cli_cache import H100, remembered
from test_verify import Fake

from tftune.db.drift import Moved
from tftune.db.findings import Finding, Series, add
from tftune.db.store import Store, write_rows
from tftune.db.target import Target
from tftune.db.trial import Failure, Run, Trial
from tftune.kernels.all_gather_gemm import paper

MODEL = "--on model --target mi300x8 --mode graph"
BETWEEN = "m=100,n=3072,k=4096,world=2,dtype=bf16,shard=m,b_layout=nk"
DECODE = "batch=1,q_heads=8,kv_heads=1,head_dim=128,kv_len=1024,world=2"
DECODED = f"--on model --target h200x2 --shapes {DECODE} --db facts.db"
FACTS = f"{DECODED} --artifact decode.json"
SCHEMAS = json_schema.schemas(json_schema.PAGE.read_text())
ELSEWHERE = ("tftune doctor", "tftune tokens")
"""Commands whose JSON is a report for people, which has no schema."""

Print = Callable[[str], Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json")


@pytest.fixture
def printed(folder: Path, tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> Print:
    """The JSON that a command prints, run in a folder that all tests here share."""
    monkeypatch.chdir(folder)

    def json_of(line: str) -> Any:
        ran = tftune(f"{line} --json")
        assert ran.out, ran.err
        return json.loads(ran.out)

    return json_of


@pytest.fixture(scope="module", autouse=True)
def filled(folder: Path, root: Path, make_rows: Callable[..., list[Trial]]) -> None:
    """Artifacts, rows and databases that the commands ask."""
    shutil.copy(root / "tests/fixtures/models/llama-3.1-8b.json", folder)
    rows = synthetic.rows(synthetic.SHAPES, bench="model")
    failed = Failure("hang", "a rank waited")
    rows.append(replace(rows[0], outcome=failed, created="2026-11-23"))
    made = Run("run", synthetic.TARGET, "model", {}, "2026-11-22", {})
    write_rows(folder / "rows.jsonl", [made], rows)
    with Store.open(folder / "layers.db") as store:
        store.import_rows(folder / "rows.jsonl")
    series = Series.of(rows[0])
    with Store.open(folder / "moved.db") as store:
        add(store, Finding.new(series, Moved(4, 1.05, 1.04, 1.06), "2026-11-23", "it is slower"))
    for words in (
        f"search flash_decode {DECODED} --effort quick --pool 12 --mode graph",
        "export flash_decode --target h200x2 --out decode.json --db facts.db",
    ):
        with chdir(folder):
            assert run(words) == 0
    exported(make_rows(paper(), "graph", bench="node"), folder / "node.json", {"torch": "2.11.0"})


LINES = {
    "tftune search": [
        f"search {OP} --shapes {SMALL};{LARGE} {MODEL} --effort quick --variant push --db s.db",
        f"search {OP} --shapes {SMALL} {MODEL} --portfolio --db s.db",
    ],
    "tftune train": [f"train {OP} --db layers.db"],
    "tftune export": [f"export {OP} --db layers.db --out layers.json"],
    "tftune tune --model": [
        "tune --model llama-3.1-8b.json --tp 2 --on model --target h200x2 --batches 8 --prefill= "
        "--plan all-reduce --budget 5s --db m.db"
    ],
    "tftune report": [f"report --db s.db --op {OP} --out page"],
    "tftune select": [
        f"select {OP} {BETWEEN} --artifact layers.json --allow-modelled",
        f"select {OP} {BETWEEN} --artifact layers.json",
        f"select flash_decode {DECODE} --artifact layers.json",
    ],
    "tftune explain": [
        f"explain {OP} {BETWEEN} --artifact layers.json --allow-modelled --db layers.db",
        f"explain {OP} {SMALL} --artifact layers.json --allow-modelled --db layers.db",
    ],
    "tftune diff": ["diff layers.json layers.json"],
    "tftune facts": [f"facts flash_decode {FACTS}"],
    "tftune study taxes": [f"study taxes {OP} {SMALL} --on model --target mi300x8"],
    "tftune study nodes": [f"study nodes {OP} --nodes 2 --shapes paper:m=16 --skew 0+5 --seeds 5"],
    "tftune sets": ["sets", f"sets {OP}"],
    "tftune sets --shapes": [f"sets {OP} --shapes paper:m=16+32"],
    "tftune version": ["version"],
    "tftune trials import": ["trials import rows.jsonl --db i.db"],
    "tftune trials export": ["trials export out.jsonl --db layers.db"],
    "tftune trials list": ["trials list --db layers.db --limit 5"],
    "tftune trials stats": ["trials stats --db layers.db"],
    "tftune db check": ["db check --db layers.db"],
    "tftune findings": ["findings --db moved.db"],
    "tftune cache list": ["cache list"],
    "tftune cache show": ["cache show h100x2"],
}  # fmt: skip
"""In this order: later ones read what earlier ones wrote."""


@pytest.mark.usefixtures("fitted_once")
@pytest.mark.parametrize("command", LINES)
def test_a_command_prints_what_the_page_says(command: str, printed: Print) -> None:
    if command.startswith("tftune cache"):
        remembered(H100)
    answers = [printed(line) for line in LINES[command]]
    for answer in answers:
        jsonschema.validate(answer, SCHEMAS[command])
    assert all(answers), "a command that prints nothing has no field that could be wrong"


def test_verify_prints_what_the_page_says(
    printed: Print, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: Target.parse("h200x8"))
    for bench in (Fake(0.5), Fake(0.5, push=Failure("crash", "a rank died"))):
        monkeypatch.setattr(
            "tftune.tuner.bench.node.NodeBench", lambda *_, bench=bench, **__: bench
        )
        answer = printed(f"verify {OP} --artifact node.json --out {folder}/stamped.json")
        jsonschema.validate(answer, SCHEMAS["tftune verify"])
        assert len(answer["checks"]) > 0


def test_an_answer_that_differs_is_one_of_the_page(
    printed: Print, folder: Path, make_rows: Callable[..., list[Trial]]
) -> None:
    exported(make_rows(paper()[:7], "graph", bench="node"), folder / "other.json", {})
    found = printed("diff node.json other.json")
    jsonschema.validate(found, SCHEMAS["tftune diff"])
    assert found["answers"]


def test_every_command_with_json_is_on_the_page() -> None:
    having = {
        path
        for path, command in programs()
        if any(each.name == "as_json" for each in command.params) and not path.startswith(ELSEWHERE)
    }
    assert having == {command.partition(" --")[0] for command in SCHEMAS}
    assert {*LINES, "tftune verify"} == set(SCHEMAS)


WRONG: dict[str, Callable[[Any], object]] = {
    "'us' is a required property": lambda row: row.pop("us"),
    "Additional properties are not allowed": lambda row: row.update(extra=1),
    "1 is not of type 'string'": lambda row: row.update(shape=1),
    "'fast' is not of type 'number'": lambda row: row["us"].update(bsp="fast"),
    "'variant' is a required property": lambda row: row["winner"].pop("variant"),
}


def test_the_schemas_see_what_is_wrong(printed: Print) -> None:
    rows = printed(LINES["tftune search"][0])
    for why, make_wrong in WRONG.items():
        make_wrong((changed := deepcopy(rows))[0])
        with pytest.raises(jsonschema.ValidationError, match=why):
            jsonschema.validate(changed, SCHEMAS["tftune search"])
