"""A request to the service: what is tried again and for how long, what is refused at once, and what
no token is sent to."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import urllib.error
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from fake_service import TOKEN, FakeService

from tftune.client.http import Service, ServiceError, Unreachable


@pytest.mark.parametrize("status", [429, 502, 503, 504, 0])
def test_what_is_transient_is_tried_again_with_pauses_that_double(
    server: FakeService, service: Service, pauses: list[float], status: int
) -> None:
    server.statuses = [status, status, status]
    assert service.post_json("v1", "captures", value={"a": 1}) == {"ok": True}
    assert pauses == [1.0, 2.0, 4.0] and server.posted == {"/v1/captures": [{"a": 1}]}


def test_a_proxy_that_refuses_is_asked_for_a_tunnel_each_time(
    server: FakeService, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """urllib asks in clear text, token and all, with a request that a proxy had before."""
    server.statuses = [503] * 99
    monkeypatch.setenv("https_proxy", server.url)
    with pytest.raises(Unreachable, match="Tunnel connection failed"):
        replace(service, url="https://tune.example").get("v1")
    assert [asked[:2] for asked in server.asked] == [("CONNECT", "tune.example:443")] * 6


def test_it_ends_in_time_and_says_so(
    server: FakeService, service: Service, pauses: list[float]
) -> None:
    server.statuses = [503] * 99
    with pytest.raises(Unreachable, match=r"answered 503: asked .* \(tried for 25 s\).*healthz"):
        service.get("v1", "rows")
    assert len(server.asked) == 6 and pauses == [1.0, 2.0, 4.0, 8.0, 8.0]


def test_a_pause_that_lasts_too_long_ends_it_as_well(server: FakeService, service: Service) -> None:
    server.statuses = [503] * 99
    now = [0.0]
    asleep = replace(service, clock=lambda: now[0], sleep=lambda s: now.append(now.pop() + 60.0))
    with pytest.raises(Unreachable, match="answered 503"):
        asleep.get("v1", "rows")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [(302, "302"), (400, "asked to answer 400"), (403, "scopes"), (413, "413"), (500, "500")],
)
def test_what_is_refused_is_not_tried_again(
    server: FakeService, service: Service, pauses: list[float], status: int, said: str
) -> None:
    """Nor does another host get the token by a redirect."""
    server.statuses = [status]
    with pytest.raises(ServiceError, match=said) as caught:
        service.get("v1", "rows")
    assert caught.value.status == status and pauses == [] and len(server.asked) == 1


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ssl.SSLCertVerificationError("self-signed"), "not trusted: .*self-signed"),
        (ssl.SSLError(1, "wrong version number"), "does not speak TLS as asked: .*wrong version"),
        (socket.gaierror(socket.EAI_NONAME, "Name unknown"), "no host that is known here: .*Name"),
        (http.client.BadStatusLine("SSH-2.0"), "does not speak HTTP: SSH-2.0"),
    ],
)
def test_what_repeating_cannot_change_is_told_at_once(
    service: Service, pauses: list[float], cause: Exception, said: str
) -> None:
    def send(*_: Any) -> Any:
        raise (
            cause if isinstance(cause, http.client.HTTPException) else urllib.error.URLError(cause)
        )

    with pytest.raises(ServiceError, match=said) as caught:
        replace(service, send=send).get("v1")
    assert not isinstance(caught.value, Unreachable) and pauses == []


def hanging(wire: socket.socket) -> None:
    """Takes the connection, and never answers."""
    time.sleep(60)


def dripping(wire: socket.socket) -> None:
    """A byte of an answer now and then: no timeout between two bytes would end it."""
    with suppress(OSError):
        wire.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            wire.sendall(b"a")
            time.sleep(0.1)


@pytest.mark.parametrize("answer", [hanging, dripping])
def test_a_service_that_does_not_answer_is_named_and_given_up(
    answer: Callable[[socket.socket], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tftune.client.wait.SAID_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: answer(listener.accept()[0]), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(Unreachable, match=rf"{url}.*curl {url}/healthz"):
            replace(Service.at(url), limit_s=1.0).get("v1")
        assert time.monotonic() - began < 5.0
    (said,) = caplog.messages
    assert said == f"waits for {url} ({url}/v1 does not answer); gives up after 1 s"


def test_a_refused_port_is_named_while_it_is_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.client.wait.SAID_S", 0.2)
    with pytest.raises(Unreachable, match=r"Connection refused.* \(tried for 2 s\)"):
        replace(Service.at("http://127.0.0.1:9"), limit_s=2.0).get("v1")
    (said,) = caplog.messages
    assert "waits for http://127.0.0.1:9 (" in said and "Connection refused" in said


@pytest.mark.parametrize(
    ("url", "token", "said"),
    [
        ("ftp://a", "", "is no web address"),
        ("tune.example", "", "is no web address"),
        ("https://me:secret@a", "", "holds more than a host and a path"),
        ("http://tune.example", TOKEN, "is not encrypted, and a token would be read"),
        ("https://a", "two words", "holds characters that none has"),
        ("https://a", "x\r\nX: y", "holds characters that none has"),
    ],
)
def test_an_address_or_token_that_cannot_be_is_refused(url: str, token: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        Service.at(url, token)
    assert "secret" not in str(caught.value) and (not token or token not in str(caught.value))
    if url.startswith("http://"):
        assert TOKEN not in repr(Service.at(url, token, plain_http=True))
