"""The pages: what they show, that they are escaped, and that they need a token."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from serving import OP, ROOT, TARGET, Served, lines, opened, placed, report, run, trials
from test_serve_artifacts import make_stable

from tftune.db.row_files import read_rows
from tftune.serve.pages import link
from tftune.serve.plots import speedups
from tftune.serve.views import measured

SHAPE = "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=2048,world=8"
HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


def filled(served: Served) -> str:
    """Rows of 8x H200 from two nodes, a stable artifact, captures and findings; its digest."""
    for number, name in enumerate(("flash_decode-2026-11-22", "all_gather_gemm-2026-11-22-repeat")):
        runs, rows = read_rows(ROOT / f"db/trials/h200x8/{name}.jsonl.xz")
        runs = [replace(each, role="evidence") for each in runs]
        assert served.push(lines(runs, rows), f"node-{number + 1}").status_code == 200
    made = placed(served)
    make_stable(served, made)
    other = SHAPE.replace("=1,", "=3,")
    counts = [{"op": OP, "shape": SHAPE, "calls": 1000}, {"op": OP, "shape": other, "calls": 50}]
    capture = {"id": "a", "target": TARGET, "node": "node-1", "shapes": counts}
    assert served.post("/v1/captures", json=capture).status_code == 200
    finding = {"op": OP, "target": TARGET, "node": "node-2", "shape": SHAPE,
               "text": "5.2 % slower than on 2026-11-22, more than its interval"}  # fmt: skip
    assert served.post("/v1/findings", json=finding).status_code == 200
    return made


def addresses(digest: str) -> dict[str, str]:
    of = {"op": OP, "target": TARGET}
    return {
        "targets": "/", "operation": link("/operation", **of),
        "artifacts": link("/artifacts", **of), "artifact": link("/artifact", digest=digest, **of),
        "shape": link("/shape", shape=SHAPE, **of), "findings": "/findings", "nodes": "/nodes",
        "api": "/api", "error": link("/operation", op="nothing", target=TARGET),
    }  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Served, dict[str, str]]:
    """One filled service for the tests that only read."""
    context = opened("sqlite", tmp_path_factory.mktemp("pages"))
    served = context.__enter__()  # the folder goes with the session
    pages = {name: served.get(path).text for name, path in addresses(filled(served)).items()}
    return served, pages


def geomeans() -> list[str]:
    """The geomean regrets of the shipped artifact, in both modes, as its pages show them."""
    shipped = json.loads((ROOT / f"models/artifacts/{OP}__{TARGET}.json").read_text())
    layout, modes = "dtype=fp16,output=all,page_size=0,world=8", shipped["held_out"].values()
    return [f"{reports[layout]['selector']['geomean_regret']:.3f}" for reports in modes]


EXPECTED = {
    "targets": ("flash_decode", "h200x8", "3,025", "measured", "1 open finding"),
    "operation": ("node-1 (3,025)", "<svg", "of its time runs on measured shapes", "95 % interval"),
    "artifacts": ("stable", "canary", "candidate", "promote to stable"),
    "artifact": ("Held out", *geomeans(), "node-2", "confirms it", "class='tree'"),
    "shape": ("Mode graph", "measured", "persistent", "node-1", "9"),
    "findings": ("5.2 % slower", "open", "node-2"),
    "nodes": ("node-1", "node-2", "3.6"),
    "api": ("/v1/artifacts/{op}/{target}", "POST"),
    "error": ("there is no row of nothing on h200x8",),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_page_shows_what_it_is_about(whole: tuple[Served, dict[str, str]], name: str) -> None:
    page = whole[1][name].replace("<wbr>", "")
    assert [part for part in EXPECTED[name] if part not in page] == []
    assert re.search(r"\sstyle=|<script|\son\w+=", page) is None, "the policy would block it"
    assert page.count("<h1>") == 1 and "<html lang" in page and "<title>" in page


def test_links_of_the_pages_lead_somewhere(whole: tuple[Served, dict[str, str]]) -> None:
    from html import unescape

    served, pages = whole
    found = {
        unescape(each) for page in pages.values() for each in re.findall(r'href="(/[^"#]*)"', page)
    }
    assert len(found) >= 9
    assert {path: served.get(path).status_code for path in found} == dict.fromkeys(found, 200)


def test_a_plot_says_in_words_what_it_draws(whole: tuple[Served, dict[str, str]]) -> None:
    series = measured(whole[0].database, OP, TARGET, None).series
    several = next(each for each in series if len(each.lines) > 3)
    drawn = speedups(several)
    for line in several.lines:
        assert line.ratio is not None and f"{line.ratio.ratio:.2f}" in drawn
    assert drawn.count("<circle") == len(several.lines) and "role='img'" in drawn
    numbers = [float(each) for each in re.findall(r"c[xy]='([-\d.]+)'", drawn)]
    assert min(numbers) >= 0 and max(numbers) <= 316


def test_new_rows_are_on_the_page_at_once(served: Served) -> None:
    path = link("/operation", op="all_gather_gemm", target=TARGET)
    served.push(lines([run()], trials(2)))
    assert "2 rows that count" in served.get(path).text
    served.push(lines([run()], trials(3)))
    assert "3 rows that count" in served.get(path).text
    served.push(lines([run(role="superseded")], []))
    assert served.get(path).status_code == 404


def test_what_nodes_say_is_escaped(served: Served) -> None:
    hostile = replace(run(), id=HOSTILE, target=TARGET)
    rows = [replace(each, run=HOSTILE) for each in trials(2)]
    name = "<script>alert(1)</script>"
    assert served.push(lines([hostile], rows), node=name).status_code == 200
    finding = {"op": HOSTILE, "target": TARGET, "node": HOSTILE, "text": HOSTILE, "shape": HOSTILE}
    assert served.post("/v1/findings", json=finding).status_code == 200
    made = placed(served, nodes={HOSTILE: 1})
    served.post("/v1/reports", json=report(made, HOSTILE))
    gemm = {"op": "all_gather_gemm", "target": TARGET}
    shape = str(trials(1)[0].shape)
    for path in (
        "/", "/nodes", "/findings", link("/operation", **gemm), link("/shape", shape=shape, **gemm),
        *list(addresses(made).values())[2:4], link("/operation", op=HOSTILE, target=HOSTILE),
    ):  # fmt: skip
        page = served.get(path).text
        assert "<script" not in page and "{{7" not in page.replace("{{7*7}}", ""), path
        assert "<h1>" in page
    assert "&lt;script&gt;" in served.get("/nodes").text


def test_pages_need_a_token_and_a_browser_asks_for_it(served: Served) -> None:
    for path in addresses("0" * 64).values():
        refused = served.get(path, None)
        assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith(
            "Basic"
        )
        assert served.get(path, "rows").status_code == 403
    word = base64.b64encode(f"me:{served.token('read')}".encode()).decode()
    assert served.get("/", None, headers={"authorization": f"Basic {word}"}).status_code == 200
    assert served.get("/style.css", None).status_code == 200
    for bad in ("Basic !!!", "Basic ", "Basic " + base64.b64encode(b"\xff:\xff").decode()):
        assert served.get("/", None, headers={"authorization": bad}).status_code == 401


def test_a_page_of_a_folder_is_no_page(served: Served, tmp_path: Path) -> None:
    outside = link("/artifact", op="../..", target="../..", digest="../../etc/passwd")
    for path in (
        "/../pyproject.toml",
        "/%2e%2e/pyproject.toml",
        "/style.css/..%2fbase.html",
        "/templates/base.html",
        "/v1/artifacts/..%2f..%2fetc/passwd",
        outside,
    ):
        answer = served.get(path)
        assert answer.status_code in (404, 422) and "root:" not in answer.text
