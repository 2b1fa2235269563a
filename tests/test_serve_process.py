"""The service as a process: the commands, a graceful stop, and kills under load, after which
nothing is lost and nothing is there twice."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
import serve_load
import serve_walk
from command_line import Tftune, refused
from serving import body, place_of

from tftune.serve.database import Database
from tftune.serve.tokens import caller_of


def test_tokens_are_made_listed_and_revoked(tftune: Tftune, tmp_path: Path) -> None:
    made = tftune("tokens create me --scope read --scope rows --days 2 --node node-1 --db t.db")
    token = made.out.strip()
    database = Database.open(str(tmp_path / "t.db"))
    caller = caller_of(database, token)
    assert caller.scopes == {"read", "rows"} and caller.node == "node-1"
    (listed,) = json.loads(tftune("tokens list --db t.db --json").out)
    assert listed["name"] == "me" and token.split("_", 2)[2] not in str(listed)
    assert caller.id in tftune("tokens list --db t.db").out
    assert tftune(f"tokens revoke {caller.id} --db t.db").code == 0
    with pytest.raises(ValueError, match="revoked"):
        caller_of(database, token)
    database.close()
    assert refused(tftune("tokens revoke none --db t.db"), "tokens list")
    assert refused(tftune("tokens create me --scope root --db t.db"), "read, rows, promote, admin")
    assert refused(tftune("serve --db no/folder/t.db"), "no/folder", "check --db")


@pytest.mark.parametrize(
    ("host", "said"),
    [("127.0.0.1", "already in use"), ("203.0.113.1", "port"), ("no.host", "no.h")],
)
def test_an_address_that_cannot_be_listened_on_is_refused_before_anything_starts(
    tftune: Tftune, tmp_path: Path, host: str, said: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        ran = tftune(f"serve --host {host} --port {port} --db t.db")
    assert refused(ran, "cannot listen on", said, "--port") and "started" not in ran.err
    assert not (tmp_path / "t.db").exists()


def test_a_service_without_its_extra_says_what_to_install(
    tftune: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "fastapi" else find_spec(name)
    )
    assert refused(tftune("serve"), "fastapi", "pip install '.[serve]'")


@pytest.mark.thorough
def test_a_stop_ends_what_runs_first(tmp_path: Path) -> None:
    """An upload that is on its way when SIGTERM comes is stored and acknowledged."""
    with serve_load.running(str(tmp_path / "t.db"), tmp_path) as (server, database, token):
        text = body(200)
        wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        wire.putrequest("POST", "/v1/rows")
        wire.putheader("authorization", f"Bearer {token}")
        wire.putheader("content-length", str(len(text)))
        wire.endheaders(text[:1000])
        time.sleep(0.5)
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        with pytest.raises(OSError):
            serve_load.Client(server.port, token).ask("GET", "/healthz")
        wire.send(text[1000:])
        answer = wire.getresponse()
        assert (answer.status, json.loads(answer.read())["stored"]) == (200, 200)
        assert server.process.wait(30) in (0, -signal.SIGTERM)
        assert len(serve_load.stored_ids(database)) == 200


@pytest.mark.drill
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_kills_under_load_lose_nothing(kind: str, tmp_path: Path) -> None:
    with (
        place_of(kind, tmp_path) as place,
        serve_load.running(place, tmp_path) as (server, database, token),
    ):
        found = serve_load.kill_under_load(server, token, kills=6)
        ids = serve_load.stored_ids(database)
    assert found.kills == 6 and found.repeated > 0
    assert len(found.acknowledged) >= serve_load.CHUNK
    assert len(ids) == len(set(ids)), "stored twice"
    assert found.acknowledged <= set(ids) <= found.sent


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_load_is_answered(kind: str, tmp_path: Path) -> None:
    with (
        place_of(kind, tmp_path) as place,
        serve_load.running(place, tmp_path) as (server, database, token),
    ):
        shapes = serve_load.make_stable(database)
        given = list(serve_load.chunks(4, "load"))
        with ThreadPoolExecutor(1) as pool:
            pushed = pool.submit(serve_load.push_rows, server.port, token, given)
            selected = serve_load.selections(server.port, token, shapes, 10, 1.0)
            whole, known = serve_load.downloads(server.port, token, 0.5)
        assert (
            pushed.result() > 0
            and len(set(serve_load.stored_ids(database))) == 4 * serve_load.CHUNK
        )
        assert all(each.seconds for each in (selected, whole, known))


@pytest.mark.thorough
def test_the_walk_ends_with_a_selection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the installation, which is pip's; its limit is judged where it runs alone."""
    assert serve_walk.main(["--here", "--within", "900", "--keep", str(tmp_path / "walk")]) == 0
    said = capsys.readouterr().out
    assert "3,025 stored" in said and "measured, on this very shape" in said
    assert "no second node has verified it" in said and "RESULT serve_walk seconds=" in said
    assert serve_walk.Walk(tmp_path, tmp_path, {}, [("a", 1.0), ("b", 0.5)]).total_s == 1.5


def test_a_step_that_fails_ends_the_walk_with_its_complaint(tmp_path: Path) -> None:
    walk = serve_walk.Walk(tmp_path, Path(sys.executable).parent, dict(os.environ))
    with pytest.raises(SystemExit, match="no scope"):
        walk.run("tftune", "tokens", "create", "me", "--scope", "other")
    assert walk.steps == []
