"""The command line: train, export, select, explain and report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from command_line import LARGE, OP, SMALL, Tftune, refused

from tftune.db.store import Store, write_rows
from tftune.db.target import Target
from tftune.db.trial import Run
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.models.artifact import SHIPPED, read_artifact
from tftune.models.tree.tree import Split

pytestmark = pytest.mark.usefixtures("fitted_once")


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
    ran = tftune(f"train {OP} --db {layers} --verbose")
    assert ran.code == 0 and "--verbose" not in ran.out
    assert f"\n{OP} on h200x2, mode graph: 42 shapes, 112 rows, modelled\n" in ran.out
    engine, half = (f"dtype={dtype},shard=m,b_layout=nk,world=2" for dtype in ("bf16", "fp16"))
    answered = "30 modelled shapes, each answered by what was the fastest there"
    assert f"\n{engine}: {answered}\n" in ran.out
    assert "\ntree for other shapes, formulas choose among the configs of a leaf:\n" in ran.out
    folds = "family and m held out at once, 30 shapes in 25 folds: regret 1."
    assert f"\nheld out (modelled): {folds}" in ran.out
    assert "\nconstant rules there: regret always BSP 1." in ran.out
    assert ", always pull - (no time), " in ran.out
    assert re.search(
        r", vLLM: BSP below 4096 tokens, push above 1\.\d{3} \(25 of 30 shapes\), ", ran.out
    ), "the default push has no time"
    assert f"\n{half}: 12 modelled shapes, " in ran.out
    assert f"\n{half} is answered by {engine}: the same code, and " in ran.out
    assert ran.out.splitlines()[-1].startswith("modelled: ") and "measured times" not in ran.out
    found = json.loads(tftune(f"train {OP} --db {layers} --json").out)
    assert found["times"] == "modelled" and set(found["modes"]) == {"graph"}
    graph = found["modes"]["graph"]
    scores = graph["held_out"][engine]
    nearest = scores["rules"]["nearest measured shape"]["geomean_regret"]
    assert scores["selector"]["geomean_regret"] > nearest >= 1 == len(graph["lent"])
    assert [layout["layout"]["dtype"] for layout in graph["layouts"]] == ["bf16", "fp16"]


def test_train_prints_one_row_a_layout_and_says_what_regret_is(
    tftune: Tftune, layers: Path
) -> None:
    """The figures are those of the JSON; the trees come with --verbose only."""
    ran, found = tftune(f"train {OP} --db {layers}"), tftune(f"train {OP} --db {layers} --json")
    title, head, engine, half, regret, more, assumed = ran.out.splitlines()
    assert title.strip() == f"{OP} on h200x2, modelled"
    assert head.split()[:3] == ["layout", "mode", "shapes"]
    report = json.loads(found.out)["modes"]["graph"]["held_out"][engine.split()[0]]
    scores = (report["selector"], report["rules"]["always BSP"])
    figures = [f"{score['geomean_regret']:.3f}" for score in scores]
    slower = f"{scores[0]['slower_than_bsp']} of 30"
    assert engine.split()[1:] == ["graph", "30", "tree", *figures, *slower.split()]
    assert half.split()[1:3] == ["graph", "12"] and regret.startswith("regret: time of the answer")
    assert more == "--verbose prints each tree" and assumed.startswith("modelled: ")


def test_train_on_two_shapes_has_nothing_to_hold_out(tftune: Tftune, db: Path) -> None:
    ran = tftune(f"train {OP} --db {db} --verbose")
    assert ran.code == 0 and "2 shapes" in ran.out and ": 2 modelled shapes, " in ran.out
    assert "held out (" not in ran.out
    row = " ".join(ran.out.splitlines()[2].split()[1:])
    assert row == "graph 2 between sizes only - - -"
    found = json.loads(tftune(f"train {OP} --db {db} --json").out)
    assert found["times"] == "modelled" and set(found["modes"]) == {"graph"}
    assert found["modes"]["graph"]["held_out"] == {}


def test_export_select_and_explain(tftune: Tftune, db: Path) -> None:
    ran = tftune(f"export {OP} --db {db} --target mi300x8 --out a.json")
    assert ran.code == 0 and ran.out.startswith("a.json: all_gather_gemm on mi300x8, modelled")
    asked = f"{OP} {LARGE} --artifact a.json"
    refusing = json.loads(tftune(f"select {asked} --json").out)
    assert (refusing["source"], refusing["config"]["variant"]) == ("fallback", "bsp")
    assert "modelled" in refusing["reason"]
    answer = json.loads(tftune(f"select {asked} --allow-modelled --json").out)
    assert (answer["source"], answer["target"]) == ("modelled", "mi300x8")
    assert answer["near"] == [[512, 512, 1024]] and answer["expected_us"] > 0
    assert answer["speedup"] == answer["bsp_us"] / answer["expected_us"] >= 1
    first, *rest = tftune(f"select {asked} --allow-modelled").out.splitlines()
    assert first == str(Config.from_dict(answer["config"]))
    assert rest[0] == f"  modelled, not measured: {LARGE} in mode graph on mi300x8"
    assert rest[1] == f"  why: {answer['reason']}"
    assert rest[2].startswith("  expected: ") and rest[3].startswith("  modelled: ")
    why = json.loads(tftune(f"explain {asked} --allow-modelled --db {db} --json").out)
    assert why["config"] == answer["config"]
    assert (why["leaf"], why["path"]) == (None, []), "its own rows answer"
    assert [line["shape"] for line in why["nearest"]] == [LARGE, SMALL]
    assert why["nearest"][0]["times"] == "modelled"
    spoken = tftune(f"explain {OP} {SMALL} --artifact a.json --allow-modelled --db {db}").out
    assert "  path: " not in spoken and "  leaf: " not in spoken
    assert "nearest shapes, modelled" in spoken


def test_explain_names_the_leaf_of_a_shape_between_the_measured_ones(
    tftune: Tftune, layers: Path
) -> None:
    assert tftune(f"export {OP} --db {layers} --out a.json").code == 0
    asked = "m=100,n=3072,k=4096,world=2,dtype=bf16,shard=m,b_layout=nk"
    line = f"explain {OP} {asked} --artifact a.json --allow-modelled --db {layers}"
    why, spoken = json.loads(tftune(f"{line} --json").out), tftune(line).out
    layouts = read_artifact(Path("a.json")).modes["graph"].layouts.values()
    (model,) = [each for each in layouts if each.spans]
    leaf = why["leaf"]
    assert why["source"] == "modelled" and why["config"] in leaf["candidates"]
    assert leaf["rows"] > 0 < leaf["error"]
    space, chip = operation(OP).space, Target.parse(synthetic.TARGET).chip
    shape = AllGatherGemm.parse(asked)
    possible = {space.concrete(shape, config, chip) for config in model.configs}
    candidates = [Config.from_dict(candidate) for candidate in leaf["candidates"]]
    assert {*candidates} <= possible and len(candidates) > 1
    assert bool(why["path"]) == isinstance(model.root, Split)
    assert f"\n  path: {', then '.join(why['path']) or 'the tree is a single leaf'}\n" in spoken
    assert "\n  leaf: " in spoken
    assert [config for config in candidates if str(config) not in spoken] == []
    assert "held out in mode graph: regret " in spoken
    assert "both as modelled" not in spoken.partition("held out in mode")[0]
    assert why["near"] == leaf["near"] and len(why["nearest"]) == 3


def test_explain_says_what_shapes_like_this_one_lost_unseen(
    tftune: Tftune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.db.committed.FOLDER", tmp_path)  # to read rows takes longest
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
    why = json.loads(tftune(f"explain {OP} {LARGE} --artifact a.json --allow-modelled --json").out)
    assert len(why["nearest"]) == 2 and not Path("tftune.db").exists()


def test_report_writes_a_page_for_what_the_database_holds(tftune: Tftune, db: Path) -> None:
    ran = tftune(f"report --db {db} --out page --op {OP}")
    paths = [Path(line) for line in ran.out.splitlines()]
    assert ran.code == 0 and paths[0] == Path(f"page/{OP}__mi300x8__model.html")
    assert all(path.exists() for path in paths)
    assert {path.suffix for path in paths[1:]} == {".png"} and "modelled" in paths[0].read_text()
    ran = tftune(f"report --db {db} --target h200x8")
    assert refused(ran, "no rows to report", "all_gather_gemm on mi300x8 (model)")
