"""Artifacts: served by stage and build, promoted only through the gate, rolled back, signed, and
built from all nodes' rows."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from serving import AT_REST, OP, ROOT, TARGET, Served, lines, placed, report, run, shipped, trials

from tftune.db.row_files import read_rows
from tftune.db.trial import Failure
from tftune.models.artifact import Artifact, digest, parse_artifact
from tftune.serve import build, gate, jobs
from tftune.serve.gate import Check, Report

GEMM = f"/v1/artifacts/all_gather_gemm/{TARGET}"


def promote(served: Served, digest: str, stage: str) -> Any:
    return served.post(f"{AT_REST}/promote", json={"digest": digest, "stage": stage})


def make_stable(served: Served, digest: str) -> None:
    assert promote(served, digest, "canary").status_code == 200
    assert served.post("/v1/reports", json=report(digest)).json()["confirms"]
    assert promote(served, digest, "stable").status_code == 200


def changed(number: int) -> dict[str, Any]:
    return {"created": f"2026-11-23T00:00:{number:02d}+00:00"}


def test_an_artifact_is_served_as_its_bytes_with_its_digest(served: Served) -> None:
    made = placed(served)
    found = served.get(f"{AT_REST}?stage=candidate")
    document = json.loads(found.content)
    assert found.headers["etag"] == f'"{made}"' and found.headers["x-tftune-digest"] == made
    assert "x-tftune-signature" not in found.headers
    assert digest(document) == made and parse_artifact(document).op == OP
    for tag, status in ((f'"{made}"', 304), (f'"x", W/"{made}"', 304), ("*", 304), ('"x"', 200)):
        again = served.get(f"{AT_REST}?stage=candidate", headers={"if-none-match": tag})
        assert again.status_code == status and again.headers["etag"] == f'"{made}"'
        assert bool(again.content) == (status == 200)
    assert served.get(AT_REST).status_code == 404
    assert served.get(f"{AT_REST}?stage=best").status_code == 422


def test_stages_are_apart_by_build(served: Served) -> None:
    old = placed(served)
    new = placed(served, {"build": {"triton": "3.7.1"}})
    for query, expected in (("", new), ("&build=3.6", old), ("&build=3.7.0", new)):
        found = served.get(f"{AT_REST}?stage=candidate{query}")
        assert found.headers["x-tftune-digest"] == expected
    assert served.get(f"{AT_REST}?stage=candidate&build=3.8").status_code == 404


def test_promotion_needs_each_step_and_a_second_node(served: Served) -> None:
    made = placed(served)
    refused = promote(served, made, "stable")
    assert refused.status_code == 409 and "not the canary" in refused.json()["detail"]
    assert promote(served, made, "canary").status_code == 200
    refused = promote(served, made, "stable")
    assert refused.status_code == 409 and "no second node" in refused.json()["detail"]
    own = served.post("/v1/reports", json=report(made, "node-1"))  # whose rows it is made of
    assert own.json()["confirms"] and promote(served, made, "stable").status_code == 409
    served.post("/v1/reports", json=report(made, "node-2", holds=False, speedup=0.9))
    refused = promote(served, made, "stable")
    assert refused.status_code == 409 and "4 of 4 checks of node node-2" in refused.json()["detail"]
    served.post("/v1/reports", json=report(made, "node-2"))
    assert promote(served, made, "stable").json() == {"digest": made, "stage": "stable", "was": ""}
    assert served.get(AT_REST).headers["x-tftune-digest"] == made
    assert [row["stage"] for row in served.get(f"{AT_REST}/history").json()] == [
        "stable", "canary", "candidate",
    ]  # fmt: skip


def test_a_digest_that_is_not_known_names_nothing(served: Served) -> None:
    placed(served)
    assert served.post("/v1/reports", json=report("0" * 64)).status_code == 404
    assert promote(served, "0" * 64, "canary").status_code == 404
    signed = {"digest": "0" * 64, "signature": "A" * 86 + "=="}
    assert served.post(f"{AT_REST}/signature", json=signed).status_code == 404


def test_rolling_back_goes_one_artifact_back_each_time(served: Served) -> None:
    made = [placed(served, changed(number)) for number in range(3)]
    for each in made:
        make_stable(served, each)
    for expected in (made[1], made[0]):
        assert served.post(f"{AT_REST}/rollback").json()["digest"] == expected
        assert served.get(AT_REST).headers["x-tftune-digest"] == expected
    refused = served.post(f"{AT_REST}/rollback")
    assert refused.status_code == 409 and served.get(AT_REST).headers["x-tftune-digest"] == made[0]
    make_stable(served, made[2])
    assert served.post(f"{AT_REST}/rollback").json()["digest"] == made[0]
    assert len(served.get(f"{AT_REST}/history").json()) == 3 + 3 + 3 + 2 + 1 + 1


def test_a_diff_is_that_of_two_artifacts(served: Served) -> None:
    one, other = placed(served), placed(served, changed(1))
    found = served.get(f"{AT_REST}/diff?a={one}&b={other}").json()
    assert any("created" in sentence for sentence in found["origin"]) and found["answers"] == []
    assert served.get(f"{AT_REST}/diff?a={one}&b={'0' * 64}").status_code == 404
    assert served.get(f"/v1/artifacts/{OP}/h200x4/diff?a={one}&b={other}").status_code == 404


def test_a_signature_goes_out_with_the_bytes_that_it_is_of(served: Served) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    made = placed(served)
    key = Ed25519PrivateKey.generate()
    signature = key.sign(served.get(f"{AT_REST}?stage=candidate").content)
    given = {"digest": made, "signature": base64.b64encode(signature).decode()}
    assert served.post(f"{AT_REST}/signature", json=given).status_code == 200
    found = served.get(f"{AT_REST}?stage=candidate")
    raw = base64.b64decode(found.headers["x-tftune-signature"])
    key.public_key().verify(raw, found.content)  # raises where it is none
    for bad in ("", "AAAA", "not base64!", base64.b64encode(b"x" * 65).decode()):
        refused = served.post(f"{AT_REST}/signature", json={"digest": made, "signature": bad})
        assert refused.status_code == 422
    given["digest"] = sha256(found.content).hexdigest()  # as `tftune sign --send` names it
    assert served.post(f"{AT_REST}/signature", json=given).json()["digest"] == made


# The gate.

NODES = {"node-1": 100}


def artifact(
    op: str = OP, target: str = TARGET, regret: float | None = None, bsp: float | None = None,
    unknown: int = 0, **change: Any,
) -> Artifact:  # fmt: skip
    """A shipped artifact whose graph layouts have these held-out regrets: served, and BSP
    everywhere, which has no time at `unknown` of 31 shapes."""
    document = deepcopy(shipped(op, target)) | change
    for found in document["held_out"]["graph"].values():
        if regret is not None:
            found["selector"] |= {"geomean_regret": regret}
        if bsp is not None:
            found["shapes"], found["selector"]["unknown"] = 31, 0
            found["rules"]["always BSP"] |= {"geomean_regret": bsp, "unknown": unknown}
    return parse_artifact(document)


def holds(why: str | None, says: str | None) -> bool:
    return why is None if says is None else says in str(why)


def confirmed(speedup: float | None = 1.2, count: int = 4, node: str = "node-2") -> Report:
    return Report(node, (Check(True, 1.2, speedup),) * count)


@pytest.mark.parametrize(
    ("given", "stable", "says"),
    [
        ({"target": "h200x2"}, None, None),
        ({}, None, None),
        ({"op": "all_gather_gemm", "target": "h200x4"}, None, None),
        ({"op": "all_gather_gemm"}, None, "1.2 is allowed"),  # its rows are of few families
        ({"op": "all_gather_gemm", "target": "mi300x8"}, None, "model bench"),
        ({"held_out": {"graph": {}, "eager": {}}}, None, "hold any out"),
        ({"regret": 1.19}, None, None),
        ({"regret": 1.21}, None, "1.2 is allowed"),
        ({"regret": 1.10}, 1.09, None),
        ({"regret": 1.12}, 1.09, "stable artifact's 1.090"),
        ({"bsp": 1.0}, None, "BSP everywhere 1.000"),
        ({"regret": 1.1, "bsp": 1.0, "unknown": 30}, None, None),
    ],
)
def test_the_gate_holds_held_out_regret(
    given: dict[str, Any], stable: float | None, says: str | None
) -> None:
    before = artifact(regret=stable) if stable is not None else None
    why = gate.why_not(artifact(**given), "canary", "candidate", before, [], NODES)
    assert holds(why, says), why


@pytest.mark.parametrize(
    ("reports", "says"),
    [
        ([], "no second node"),
        ([confirmed(node="node-1")], "no second node"),
        ([confirmed()], None),
        ([confirmed(count=2)], "3 are needed"),
        ([confirmed(1.12)], "0.93 of the promised"),
        ([confirmed(1.15)], None),
        ([confirmed(None)], "0.00 of the promised"),
        ([confirmed(), confirmed(1.0, node="node-3")], "node-3"),
        ([confirmed(1.0), confirmed()], None),
    ],
)
def test_the_gate_wants_a_second_node_to_agree(reports: list[Report], says: str | None) -> None:
    why = gate.why_not(artifact(), "stable", "canary", None, reports, NODES)
    assert holds(why, says), why


def test_a_node_of_half_the_rows_is_a_second_node_and_of_most_is_not() -> None:
    found = artifact()
    for rows, expected in ((100, True), (101, False)):
        nodes = {"node-1": 100, "node-2": rows}
        why = gate.why_not(found, "stable", "canary", None, [confirmed()], nodes)
        assert (why is None) == expected


# Jobs.


def claimed(served: Served, later_s: float = 0.0) -> str | None:
    """What a service would take up after so many seconds."""
    return jobs.claim(served.database, time.time() + later_s)


def queued(served: Served) -> str:
    """A job over the rows of one committed file, half from each of two nodes."""
    runs, rows = read_rows(ROOT / "db/trials/h200x8/all_gather_gemm-2026-11-22-repeat.jsonl.xz")
    runs = [replace(each, role="evidence") for each in runs]
    for node, part in (("node-1", rows[::2]), ("node-2", rows[1::2])):
        assert served.push(lines(runs, part), node).status_code == 200
    return str(served.post(f"{GEMM}/build").json()["job"])


def test_a_build_makes_the_candidate_of_all_nodes_rows(served: Served) -> None:
    job = queued(served)
    assert served.post(f"{GEMM}/build").json()["job"] == job, "the same job waits already"
    assert claimed(served) == job and claimed(served) is None
    build.build(served.database, job)
    done = served.get(f"/v1/jobs/{job}").json()
    assert done["state"] == "done" and "rows of 2 nodes" in done["said"]
    found = served.get(f"{GEMM}?stage=candidate")
    assert found.headers["x-tftune-digest"] == done["digest"]
    assert parse_artifact(json.loads(found.content)).op == "all_gather_gemm"
    (row,) = served.get(f"{GEMM}/history").json()
    assert sorted(row["nodes"]) == ["node-1", "node-2"] and row["by"] == "test admin"


def test_what_cannot_be_built_is_refused(served: Served) -> None:
    assert served.post("/v1/artifacts/nothing/h200x8/build").status_code == 404
    refused = served.post(f"{AT_REST}/build")
    assert refused.status_code == 409 and "push some" in refused.json()["detail"]
    assert served.get("/v1/jobs/none").status_code == 404


def test_a_build_ends_with_its_service(served: Served) -> None:
    """The system closes the pipe where the service was killed."""
    job = queued(served)
    claimed(served)
    asked = json.dumps({"db": served.settings.db, "job": job}) + "\n"
    command = [sys.executable, "-P", "-m", "tftune.serve.build"]
    assert subprocess.run(command, input=asked, text=True, timeout=60).returncode == 1
    assert jobs.found(served.database, job)["state"] == "running"
    assert served.get(f"{GEMM}/history").json() == []


def test_a_job_that_two_services_build_stores_one_artifact(served: Served) -> None:
    """The first was suspended for longer than the lease."""
    job = queued(served)
    assert claimed(served) == job and claimed(served, jobs.LEASE_S - 1) is None
    assert claimed(served, jobs.LEASE_S + 1) == job
    build.build(served.database, job)
    with pytest.raises(ValueError, match="ended by another service"):
        build.build(served.database, job)
    (row,) = served.get(f"{GEMM}/history").json()
    assert row["digest"] == jobs.found(served.database, job)["digest"]


def test_a_worker_ends_the_build_of_a_job_that_was_taken_over(served: Served) -> None:
    job = queued(served)
    worker = jobs.Worker(served.database, served.settings.db)
    beat = time.time()
    assert jobs.claim(served.database, beat) == job
    assert jobs.claim(served.database, beat + jobs.LEASE_S + 1) == job
    began = time.monotonic()
    worker._build(job, beat)
    assert time.monotonic() - began < jobs.STOP_S
    assert jobs.found(served.database, job)["state"] == "running", "it is the other service's"


@pytest.mark.thorough
def test_a_worker_builds_in_a_process_of_its_own(served: Served) -> None:
    job = queued(served)
    worker = jobs.Worker(served.database, served.settings.db)
    worker.start()
    try:
        until = time.monotonic() + 120
        while jobs.found(served.database, job)["state"] in ("queued", "running"):
            assert time.monotonic() < until
            time.sleep(0.2)
    finally:
        worker.stop()
    done = jobs.found(served.database, job)
    assert done["state"] == "done" and done["digest"], done


@pytest.mark.thorough
def test_a_worker_that_is_stopped_gives_its_job_back(served: Served) -> None:
    job = queued(served)
    worker = jobs.Worker(served.database, served.settings.db)
    worker.start()
    while jobs.found(served.database, job)["state"] == "queued":
        time.sleep(0.05)
    worker.stop()
    assert not worker.is_alive() and jobs.found(served.database, job)["state"] == "queued"


def test_a_build_that_fails_says_why(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows without a time teach nothing."""
    failed = [replace(trial, outcome=Failure("crash", "a rank died")) for trial in trials(3)]
    served.push(lines([run()], failed))
    job = served.post(f"{GEMM}/build").json()["job"]
    claimed(served)
    assert build.main({"db": served.settings.db, "job": job}) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert "all_gather_gemm" in said and served.get("/v1/rows").status_code == 200
