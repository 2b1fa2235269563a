"""Rows of a fleet: whole or not at all, never twice, and given back as they came."""

from __future__ import annotations

import gzip
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from serving import ROOT, TARGET, Served, body, lines, opened, run, trials

from tftune.db.row_files import read_rows
from tftune.db.store import Store
from tftune.serve import rows
from tftune.serve.settings import Limits
from tftune.serve.tables import ROWS, RUNS


def count(served: Served, table: sa.Table = ROWS) -> int:
    with served.database.reading() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


@pytest.mark.parametrize("packed", [False, True])
def test_rows_are_stored_once(served: Served, packed: bool) -> None:
    first = served.push(body(5, packed=packed))
    assert (first.status_code, first.json()) == (200, {"stored": 5, "known": 0})
    again = served.push(body(7, packed=not packed))
    assert again.json() == {"stored": 2, "known": 5}
    assert count(served) == 7 and count(served, RUNS) == 1


def test_rows_come_back_as_a_node_has_them(served: Served, tmp_path: Path) -> None:
    """A page of rows is an export: a node imports it, and has the same digests."""
    served.push(body(5))
    found = served.get("/v1/rows?op=all_gather_gemm").json()
    text = lines([run()], trials(5)).decode().splitlines()
    assert [json.loads(line)["trial"] for line in text[1:]] == [r["trial"] for r in found["rows"]]
    assert {row["node"] for row in found["rows"]} == {"node-1"}
    assert {row["build"] for row in found["rows"]} == {"3.6"}
    back = tmp_path / "rows.jsonl"
    back.write_bytes(b"".join(
        json.dumps(row).encode() + b"\n"
        for row in [{"run": each} for each in found["runs"]]
        + [{"trial": each["trial"]} for each in found["rows"]]
    ))  # fmt: skip
    with Store.open(tmp_path / "t.db") as store:
        assert store.import_rows(back) == (5, 0)
        assert [trial.id for trial in store.trials()] == [row["id"] for row in found["rows"]]


def test_pages_hold_every_row_once(served: Served) -> None:
    served.push(body(7))
    seen: list[str] = []
    after: str | None = "0"
    while after is not None:
        page = served.get(f"/v1/rows?limit=3&after={after}").json()
        seen += [row["id"] for row in page["rows"]]
        after = page["next"]
    assert seen == [trial.id for trial in trials(7)]


def test_rows_are_chosen_by_what_they_are_of(served: Served) -> None:
    served.push(body(2))
    other = run("run-2", build={"triton": "3.7.1"}, target="h200x2")
    text = lines([other], [replace(each, target="h200x2") for each in trials(3, "run-2")])
    served.push(text, node="node-2")
    shape = str(trials(1)[0].shape)
    for query, expected in (
        ("", 5), ("target=h200x2", 3), ("build=3.6", 2), ("op=flash_decode", 0),
        (f"shape={shape}&build=3.7", 3), ("target=nothing", 0),
    ):  # fmt: skip
        assert len(served.get(f"/v1/rows?{query}").json()["rows"]) == expected, query


BAD = {
    "no JSON": b"{",
    "no row": b'{"else": 1}',
    "a failed check": lines([], [trials(1)[0]]).replace(b"40.0", b"-1.0"),
    "an unknown shape": lines([], [trials(1)[0]]).replace(b"m=64", b"m=x"),
    "an unknown run": lines([], trials(1, "nobody")),
    "a NUL": lines([run()], []).replace(b"h200x8", b"h2\\u000000x8"),
    "half a surrogate": lines([run()], []).replace(b"h200x8", b"\\ud800"),
    "a long word": lines([run()], []).replace(b"h200x8", b"h" * 300),
    "a deep line": b"[" * 100_000,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_row_refuses_the_upload_with_its_line(served: Served, bad: bytes) -> None:
    refused = served.push(body(3) + b"\n" + bad.rstrip(b"\n") + b"\n" + lines([], trials(1)))
    assert refused.status_code == 422 and "line 6 " in refused.json()["detail"]
    assert count(served) == 0 and count(served, RUNS) == 0


def test_a_cut_upload_stores_nothing(served: Served) -> None:
    packed = gzip.compress(body(200))
    for part in (packed[:-20], packed[: len(packed) // 2], packed[:9], packed[:-4] + b"\0\0\0\0"):
        assert served.push(part).status_code == 422
    assert served.push(body(5)[:-30]).status_code == 422
    assert count(served) == 0


def test_gzip_of_several_members_is_one_body(served: Served) -> None:
    text = body(50)
    packed = gzip.compress(text[:3000]) + gzip.compress(text[3000:])
    assert served.push(packed).json() == {"stored": 50, "known": 0}


def test_a_run_that_ends_later_is_the_same_run(served: Served) -> None:
    served.push(body(1))
    ended = run(ended={"0": {"celsius": 40.0}})
    assert served.push(lines([ended], [])).status_code == 200
    assert served.push(body(2)).json() == {"stored": 1, "known": 1}
    assert rows.runs_of(served.database, TARGET) == [ended]
    assert served.push(lines([replace(ended, role="superseded")], [])).status_code == 200
    assert rows.runs_of(served.database, TARGET)[0].role == "superseded"


def test_another_run_of_the_same_id_is_refused(served: Served) -> None:
    served.push(body(1))
    for other in (run(target="h200x2"), run(started="2026-11-24"), run(build={})):
        refused = served.push(lines([other], []))
        assert refused.status_code == 409 and "run-1" in refused.json()["detail"]
    assert rows.runs_of(served.database, TARGET) == [run()]


def test_uploads_at_once_store_each_row_once(served: Served) -> None:
    """Eight nodes push overlapping rows in both orders."""
    rows_of = trials(120)

    def push(number: int) -> Any:
        part = rows_of[number * 10 : number * 10 + 50]
        part = part if number % 2 else part[::-1]
        return served.push(lines([run()], part), node=f"node-{number}")

    served.token("rows")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(push, range(8)))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert sum(answer.json()["stored"] for answer in answers) == count(served) == 120


def test_an_upload_beyond_a_limit_is_refused_with_both_numbers(tmp_path: Path) -> None:
    limits = Limits(rows_bytes=2_000_000, line_bytes=50_000)
    with opened("sqlite", tmp_path, limits=limits) as served:
        text = (b" " * 999 + b"\n") * 2_100
        for upload, said in (
            (gzip.compress(20 * text), "2 MB"), (b" " * 60_000, "50,000"), (text, "2.1 MB"),
        ):  # fmt: skip
            refused = served.push(upload)
            assert refused.status_code == 413 and said in refused.json()["detail"]
        assert count(served) == 0


@pytest.mark.parametrize("line", [b"\n", b" \n", b"\r\n"])
def test_an_upload_of_line_ends_is_refused_before_it_costs_time(
    served: Served, line: bytes
) -> None:
    """The largest upload of nothing: half a megabyte as sent."""
    packed = gzip.compress(line * (250_000_000 // len(line)))
    began = time.process_time()
    refused = served.push(packed)
    assert refused.status_code == 413 and "100,000 lines" in refused.json()["detail"]
    assert time.process_time() - began < 2.0


def test_a_committed_file_of_rows_is_stored(served: Served) -> None:
    """The smallest of 8x H200, as a node exported it."""
    path = ROOT / "db/trials/h200x8/all_gather_gemm-2026-11-22-repeat.jsonl.xz"
    runs, found = read_rows(path)
    answer = served.push(lines(runs, found))
    assert answer.json() == {"stored": len(found), "known": 0}
    assert [trial.id for trial in rows.trials_of(served.database, "all_gather_gemm", TARGET)] == [
        trial.id for trial in found
    ]
    assert sorted(map(str, map(asdict, rows.runs_of(served.database, TARGET)))) == sorted(
        map(str, map(asdict, runs))
    )
