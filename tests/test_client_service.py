"""The client and the service, as they are: rows, artifacts, signatures, captures, findings and
reports over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import serving
from command_line import Tftune
from serving import OP, TARGET, Served

from tftune.cli.fleet_commands import send_report
from tftune.client.push import node_name
from tftune.db.drift import Moved
from tftune.db.findings import Finding, Series, add
from tftune.db.store import Store
from tftune.models.artifact import digest, parse_artifact


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Served, str]]:
    """A service on SQLite, and its address; an empty home folder, and a token for everything."""
    with (
        serving.opened("sqlite", tmp_path) as found,
        serving.live(found.settings, found.database) as url,
    ):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("TFTUNE_TOKEN", found.token("admin"))
        yield found, url


def test_the_client_and_the_service_understand_each_other(
    served: tuple[Served, str], tftune: Tftune, tmp_path: Path
) -> None:
    service, url = served
    with Store.open(tmp_path / "r.db") as store:
        store.add_run(serving.run())
        for trial in serving.trials(7):
            store.add_trial(trial)
    assert ": 7 stored by" in tftune(f"push --db r.db --url {url}").out
    assert "0 stored by" in tftune(f"push --again --db r.db --url {url}").out

    count = {"op": serving.SHAPE.op, "shape": str(serving.SHAPE), "mode": "graph", "calls": 1}
    document = {"capture": 1, "shapes": [count | {"replays": 2, "selections": 0}]}
    process = {"host": "a", "pid": 7, "began": "2026-11-23T00:00:00+00:00"}
    for name, more in (
        ("", {}),
        (".a-7-1", {"process": process}),
        (".b-7-1", {"process": process}),
    ):
        (tmp_path / f"shapes{name}.json").write_text(json.dumps(document | more))
    ran = tftune(f"push --captured shapes.json --target {TARGET} --url {url}")
    assert ran.code == 0 and "3 captures are with" in ran.out
    (found,) = service.get(f"/v1/captures/{serving.SHAPE.op}/{TARGET}").json()["shapes"]
    assert found["counts"] == {"calls": 2, "replays": 4}, "the later one of a process counts"
    with service.database.reading() as connection:
        named = connection.exec_driver_sql("SELECT DISTINCT node FROM captures").scalars().all()
    assert named == [node_name()]


def test_a_new_artifact_replaces_a_kept_one_when_it_is_signed(
    served: tuple[Served, str], tftune: Tftune, tmp_path: Path
) -> None:
    """A client that pulled before the release was signed has the bytes, and still gets the
    signature."""
    service, url = served
    serving.placed(service)
    pull = f"pull {OP} --target {TARGET} --url {url} --stage candidate"
    path = tftune(pull).out.strip()
    assert "unchanged" in tftune(pull).err
    public_key = tftune("keys create release.pem").out.strip()
    (tmp_path / "pinned.toml").write_text(f'public_key = "{public_key}"\n')
    pull += " --config pinned.toml"
    ran = tftune(pull)
    assert ran.code == 2 and "it is not signed" in ran.err
    tftune(f"sign {path} --key release.pem --send --url {url}")
    ran = tftune(pull)
    assert ran.code == 0 and "signature checked" in ran.err
    later = {"created": "2030-01-01T00:00:00+00:00"}
    document = {**serving.shipped(), **later}
    serving.placed(service, later)
    ran = tftune(pull)
    assert ran.code == 1 and "it is not signed" in ran.err, "the last good one is kept"
    assert digest(document)[:12] not in ran.out


def test_what_a_sentinel_and_a_verify_say_is_taken(
    served: tuple[Served, str], tftune: Tftune, tmp_path: Path
) -> None:
    service, url = served
    with Store.open(tmp_path / "r.db") as store:
        store.add_run(serving.run())
        (trial,) = serving.trials(1)
        store.add_trial(trial)
        moved = Moved(4, 1.05, 1.04, 1.06)
        add(store, Finding.new(Series.of(trial), moved, trial.created, "it is slower"))
    for _ in range(2):
        ran = tftune(f"push --db r.db --url {url}")
        assert ran.code == 0, ran.err
    (found,) = service.get("/v1/findings").json()
    assert (found["text"], found["state"], found["shape"]) == (
        "it is slower", "open", str(trial.shape),
    )  # fmt: skip

    made = serving.placed(service)
    artifact = parse_artifact(service.get(f"{serving.AT_REST}?stage=candidate").json())
    send_report(url, artifact, {"triton": "3.6.0"}, serving.report(made)["rows"])
    assert artifact.digest == made
