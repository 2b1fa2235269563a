"""Rows go to the service once each, whatever fails on the way; artifacts come back checked, or the
last good one serves."""

from __future__ import annotations

import json
import logging
import socket
import time
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import stored
from command_line import Tftune, refused
from fake_service import TOKEN, FakeService

import tftune as public
from tftune.client import keys
from tftune.client import push as pushing
from tftune.client.http import Service, ServiceError, Unreachable
from tftune.client.pull import Source
from tftune.client.settings import Settings, read_settings
from tftune.db.files import replace_file
from tftune.db.store import Store
from tftune.models.artifact import SHIPPED, digest

OP, TARGET = "all_gather_gemm", "h200x8"
SHAPE = public.AllGatherGemm(m=64, n=3584, k=8192, world=8)
CONTENT = (SHIPPED / f"{OP}__{TARGET}.json").read_bytes()


@pytest.fixture
def rows(path: Path) -> Store:
    with Store.open(path) as store:
        store.add_run(stored.RUN)
        for number in range(7):
            store.add_trial(stored.trial(number))
        yield store


def changed(created: str = "2030-01-01T00:00:00+00:00") -> bytes:
    """Another artifact of the same operation, whole."""
    document = json.loads(CONTENT) | {"created": created}
    return json.dumps(document | {"sha256": digest(document)}).encode()


# Rows.


def test_every_row_is_pushed_once(
    rows: Store, service: Service, server: FakeService, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(pushing, "CHUNK_ROWS", 3)
    first = pushing.push(service, tmp_path, rows.runs(), rows.trials())
    assert (first.rows, first.sent, first.stored, first.known, first.skipped) == (7, 7, 7, 0, 0)
    sent = {json.loads(line)["trial"]["config"]["block_m"] for line in server.rows.values()}
    assert sent == set(range(16, 23))
    rows.add_trial(stored.trial(7))
    second = pushing.push(service, tmp_path, rows.runs(), rows.trials())
    assert (second.sent, second.stored, second.known, second.skipped) == (2, 1, 1, 6)
    rows.add_run(stored.ENDED)
    third = pushing.push(service, tmp_path, rows.runs(), rows.trials())
    assert (third.sent, third.known, third.skipped) == (8, 8, 0), "a run that ended is sent again"
    again = pushing.push(service, tmp_path, rows.runs(), rows.trials(), again=True)
    assert (again.sent, again.known) == (8, 8) and len(server.rows) == 8


def test_a_push_that_was_stopped_goes_on(
    rows: Store, service: Service, server: FakeService, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(pushing, "CHUNK_ROWS", 2)
    server.statuses = [200, 200, 400]
    with pytest.raises(ServiceError, match="answered 400"):
        pushing.push(service, tmp_path, rows.runs(), rows.trials())
    assert len(server.rows) == 4
    with open(pushing.service_folder(tmp_path, server.url) / "pushed.txt", "a") as file:
        file.write("cut o")  # the machine lost power there
    done = pushing.push(service, tmp_path, rows.runs(), rows.trials())
    assert (done.skipped, done.stored, len(server.rows)) == (4, 3, 7)


def test_an_answer_without_counts_is_refused_and_nothing_counts_as_pushed(
    rows: Store, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = SimpleNamespace(status=200, headers={}, read=lambda most: b'{"stored": "7"}')
    strange = replace(service, send=lambda *_: nullcontext(answer))
    with pytest.raises(ServiceError, match="without how many it stored"):
        pushing.push(strange, tmp_path, rows.runs(), rows.trials())
    assert pushing.push(service, tmp_path, rows.runs(), rows.trials()).stored == 7


# Artifacts.


@pytest.fixture
def source(service: Service, tmp_path: Path) -> Source:
    return Source(service, tmp_path / "cache")


def test_an_artifact_is_pulled_once_and_then_known(server: FakeService, source: Source) -> None:
    server.artifacts[OP, TARGET, "stable"] = CONTENT, ""
    pulled = source.pull(OP, TARGET)
    assert pulled.fresh == "new" and pulled.path.read_bytes() == CONTENT and not pulled.signed
    assert source.pull(OP, TARGET).fresh == "unchanged"
    server.artifacts[OP, TARGET, "stable"] = changed(), ""
    assert source.pull(OP, TARGET).artifact.document["created"].startswith("2030")
    pulled.path.write_bytes(b"damaged")
    server.artifacts[OP, TARGET, "stable"] = CONTENT, ""
    assert source.pull(OP, TARGET).path.read_bytes() == CONTENT


@pytest.mark.parametrize("status", [0, 401, 404, 500, 503])
def test_without_an_answer_the_last_good_one_serves(
    server: FakeService, source: Source, status: int
) -> None:
    server.artifacts[OP, TARGET, "stable"] = CONTENT, ""
    server.statuses = [status] * 6
    with pytest.raises(ServiceError):
        source.pull(OP, TARGET)
    server.statuses = []
    source.pull(OP, TARGET)
    server.statuses = [status] * 6
    kept = source.pull(OP, TARGET)
    assert kept.fresh == "kept" and kept.path.read_bytes() == CONTENT and kept.why_kept
    assert str(kept.why_kept) in kept.sentence()


FORGED = {
    "bytes cut off": (CONTENT[:-100], {}, "cut off"),
    "content edited": (CONTENT.replace(b'"rows": ', b'"rows": 1', 1), {}, "was edited"),
    "another announced": (changed(), {"X-Tftune-Digest": "0" * 64}, "announced the digest 000000"),
    "none announced": (changed(), {"X-Tftune-Digest": ""}, "announced the digest none"),
    "of another target": (
        (SHIPPED / f"{OP}__h200x4.json").read_bytes(), {}, "sent all_gather_gemm on h200x4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_what_is_forged_never_serves(server: FakeService, source: Source, name: str) -> None:
    content, headers, said = FORGED[name]
    server.artifacts[OP, TARGET, "stable"] = content, ""
    server.headers = headers
    with pytest.raises(ServiceError, match=said):
        source.pull(OP, TARGET)
    assert [*source.cache.rglob("*.json")] == []
    server.headers, server.artifacts[OP, TARGET, "stable"] = {}, (CONTENT, "")
    source.pull(OP, TARGET)
    server.headers, server.artifacts[OP, TARGET, "stable"] = headers, (content, "")
    kept = source.pull(OP, TARGET)
    assert kept.fresh == "kept" and kept.path.read_bytes() == CONTENT and said in kept.sentence()


def test_a_pinned_key_refuses_what_it_did_not_sign(
    server: FakeService, source: Source, tmp_path: Path
) -> None:
    key = keys.create(tmp_path / "a.pem")
    other = keys.create(tmp_path / "b.pem")
    good, wrong = (
        keys.sign(CONTENT, keys.read_private(tmp_path / name)) for name in ("a.pem", "b.pem")
    )
    pinned = replace(source, public_key=key)
    for signature, said in (
        ("", "not signed, and a public key is pinned"),
        (wrong, "not the release key's"),
        (good[:-8], "is not base64 of 64 bytes"),
    ):  # fmt: skip
        server.artifacts[OP, TARGET, "stable"] = CONTENT, signature
        with pytest.raises(ServiceError, match=said):
            pinned.pull(OP, TARGET)
    server.artifacts[OP, TARGET, "stable"] = CONTENT, good
    assert pinned.pull(OP, TARGET).signed and pinned.pull(OP, TARGET).fresh == "unchanged"
    server.artifacts[OP, TARGET, "stable"] = changed(), good
    assert "not the release key's" in pinned.pull(OP, TARGET).sentence()
    server.statuses = [503] * 99
    with pytest.raises(Unreachable):  # what is kept is not of the key that is pinned now
        replace(pinned, public_key=other).pull(OP, TARGET)
    with pytest.raises(ValueError, match="is not base64 of 32 bytes"):
        replace(pinned, public_key="mistyped").pull(OP, TARGET)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"op": "../etc"}, "no operation '../etc'"),
        ({"target": "../x8"}, "is no target"),
        ({"stage": ".."}, "stage='..' is not one of"),
        ({"build": "../../x"}, "names no operation, target, stage or build"),
    ],
)
def test_no_name_leads_out_of_the_folder(
    source: Source, given: dict[str, str], said: str, server: FakeService
) -> None:
    words = {"op": OP, "target": TARGET} | given
    more = {name: words.pop(name) for name in ("stage", "build") if name in words}
    with pytest.raises(ValueError, match=said):
        replace(source, **more).pull(words["op"], words["target"])
    assert server.asked == []


def test_a_slot_keeps_few_artifacts_and_the_current_one(
    server: FakeService, source: Source
) -> None:
    content = b""
    for number in range(7):
        content = changed(f"2030-01-0{1 + number}T00:00:00+00:00")
        server.artifacts[OP, TARGET, "stable"] = content, ""
        source.pull(OP, TARGET)
    assert len([*source.cache.rglob("*.json")]) == 4 + 1
    assert source.pull(OP, TARGET).path.name == f"{sha256(content).hexdigest()}.json"


# In a process that serves.


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose configuration file names the token and a cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tftune.client.pull.SERVING_S", 1.0)
    monkeypatch.delenv("TFTUNE_TOKEN", raising=False)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    words = f'token_file = "{tmp_path}/token"\ncache = "{tmp_path}/kept"\n'
    replace_file(tmp_path / ".config/tftune/client.toml", words, make_folder=True)
    return tmp_path


def test_load_serves_what_the_service_has_and_later_what_it_had(
    server: FakeService, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.artifacts[OP, TARGET, "canary"] = CONTENT, ""

    def loaded() -> public.Selector:
        return public.load(url=server.url, target=TARGET, stage="canary")

    first = loaded()
    assert list(first.artifacts) == [OP] and first.select(SHAPE).source == "measured"
    server.statuses = [503] * 99
    with caplog.at_level(logging.WARNING, "tftune"):
        assert [loaded().select(SHAPE).config for _ in range(3)] == [first.select(SHAPE).config] * 3
    told = [record.message for record in caplog.records if "answered 503" in record.message]
    assert len(told) == 1 and f"{OP} on {TARGET}: keeps " in told[0]
    with pytest.raises(ValueError, match="takes a path or a url"):
        public.load("a.json", url=server.url)


def test_load_takes_the_token_of_the_environment(
    server: FakeService, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".config/tftune/client.toml").unlink()
    server.artifacts[OP, TARGET, "stable"] = CONTENT, ""
    with pytest.raises(ValueError, match="no such token; give a token by TFTUNE_TOKEN"):
        public.load(url=server.url, target=TARGET)
    monkeypatch.setenv("TFTUNE_TOKEN", TOKEN)
    assert list(public.load(url=server.url, target=TARGET).artifacts) == [OP]


def test_load_waits_once_for_a_service_that_does_not_answer(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"does not answer|cannot be reached"):
            public.load(url=url, target=TARGET)
    assert time.monotonic() - began < 4.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('colour = "red"', "has no field 'colour' to set; it has url, token_file"),
        ("plain_http = 1", "plain_http in .* is 1, and must be of type bool"),
        ("url =", "cannot read .*client.toml"),
    ],
)
def test_a_configuration_that_cannot_be_is_named(tmp_path: Path, text: str, said: str) -> None:
    place = tmp_path / "client.toml"
    place.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_settings(place)


def test_without_a_configuration_there_is_no_service(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no service is named; give --url"):
        Settings().service()
    with pytest.raises(ValueError, match="there is no configuration file"):
        read_settings(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="cannot read the token in"):
        Settings(url="https://a", token_file=str(tmp_path / "none")).service()


# The commands.


def test_push_pull_and_sign(
    tftune: Tftune, server: FakeService, home: Path, rows: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tftune(f"push --db {rows.path} --url {server.url}")
    assert ran.code == 0 and f": 7 stored by {server.url}, 0 known to it" in ran.out
    assert "7 of 7 rows, 7 new to" in ran.err
    assert refused(tftune(f"push --db {rows.path} --url {server.url} --op flash_decode"), "no such")
    server.artifacts[OP, TARGET, "stable"] = CONTENT, ""
    pull = f"pull {OP} --target {TARGET} --url {server.url}"
    ran = tftune(f"{pull} --out mine.json")
    assert (ran.code, ran.out) == (0, "mine.json\n") and "new artifact" in ran.err
    public_key = tftune("keys create release.pem").out.strip()
    assert (home / "release.pem").stat().st_mode & 0o777 == 0o600
    assert refused(tftune("keys create release.pem"), "is there already")
    signature = tftune(f"sign mine.json --key release.pem --send --url {server.url}").out.strip()
    posted = server.posted[f"/v1/artifacts/{OP}/{TARGET}/signature"]
    assert posted == [{"digest": sha256(CONTENT).hexdigest(), "signature": signature}]
    server.artifacts[OP, TARGET, "stable"] = CONTENT, signature
    assert "signature checked" in tftune(f"{pull} --public-key {public_key}").err
    server.statuses = [500]
    ran = tftune(pull)
    assert ran.code == 1 and "keeps" in ran.err and Path(ran.out.strip()).read_bytes() == CONTENT
    assert refused(tftune(f"{pull} --public-key abc"), "is not base64 of 32 bytes")
    monkeypatch.setenv("TFTUNE_TOKEN", "wrong")
    ran = tftune(f"push --again --db {rows.path} --url {server.url}")
    assert refused(ran, "answered 401: no such token") and "wrong" not in ran.err


def test_a_file_that_is_no_private_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no key")
    with pytest.raises(ValueError, match="is no private key without a passphrase"):
        keys.read_private(tmp_path / "c.pem")
