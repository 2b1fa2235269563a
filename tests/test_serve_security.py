"""What an attacker, or a broken client, sends to a service that listens: refused or bounded, and
the service answers others meanwhile."""

from __future__ import annotations

import http.client
import logging
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from serving import ROOT, Served, body, live, opened

from tftune.serve.settings import MB, Limits

LIMITS = Limits(
    rows_bytes=4 * MB, headers_s=0.5, idle_s=0.5, body_s=1.5, rows_s=1.5, connections=200
)
SOON_S = 8.0
"""In which a test expects what takes the service half a second: the machine may be busy."""


class Site:
    """A service that listens, by its socket."""

    def __init__(self, served: Served, address: str) -> None:
        self.served, self.port = served, urlsplit(address).port
        assert self.port is not None

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port or 0), timeout=SOON_S)

    def head(self, path: str, *lines: str, method: str = "POST", scopes: str = "admin") -> bytes:
        token = f"authorization: Bearer {self.served.token(scopes)}"
        return "\r\n".join([f"{method} {path} HTTP/1.1", "host: x", token, *lines, "", ""]).encode()

    def answer(self, *parts: bytes) -> tuple[int, str]:
        """What is answered to these bytes; (0, "") where the connection is closed without."""
        with self.connect() as wire:
            for part in parts:
                wire.sendall(part)
            return answered(wire)

    def is_well(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SOON_S)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200


def answered(wire: socket.socket) -> tuple[int, str]:
    found = b""
    with suppress(ConnectionError):
        while not found.endswith((b"}", b"ok\n")) and (part := wire.recv(65536)):
            found += part
    return (int(found.split(b" ", 2)[1]) if found else 0), found.decode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    logging.getLogger("tftune.serve").setLevel(logging.INFO)
    with (
        opened("sqlite", tmp_path_factory.mktemp("live"), limits=LIMITS) as served,
        live(served.settings, served.database) as address,
    ):
        yield Site(served, address)


@pytest.mark.parametrize(
    ("path", "most"), [("/v1/rows", "4 MB"), ("/v1/select", "1 MB"), ("/v1/findings", "1 MB")]
)
def test_a_gigabyte_is_refused_before_it_is_sent(site: Site, path: str, most: str) -> None:
    status, text = site.answer(site.head(path, "content-length: 1000000000"))
    assert status == 413 and most in text and "1e+03 MB" in text


@pytest.mark.parametrize("path", ["/v1/rows", "/v1/select", "/v1/captures"])
def test_a_gigabyte_without_a_length_is_cut_off(site: Site, path: str) -> None:
    """In chunks: the service stops reading a bit beyond the limit."""
    chunk = b"10000\r\n" + b"\n" * 65536 + b"\r\n"
    sent = 0
    with site.connect() as wire:
        wire.sendall(site.head(path, "transfer-encoding: chunked"))
        with suppress(ConnectionError):
            while sent < 1_000_000_000:
                wire.sendall(chunk)
                sent += 65536
        status, _ = answered(wire)
    assert sent < 40 * MB and status in (0, 413)
    assert site.is_well()


def test_a_bomb_is_not_unpacked(site: Site) -> None:
    import gzip

    bomb = gzip.compress(b" " * 20_000_000, 1)
    assert len(bomb) < MB
    began = time.monotonic()
    status, text = site.answer(site.head("/v1/rows", f"content-length: {len(bomb)}"), bomb)
    assert status == 413 and "4 MB" in text and time.monotonic() - began < SOON_S


def test_headers_that_do_not_come_are_not_waited_for(site: Site) -> None:
    with site.connect() as wire:
        wire.sendall(b"GET / HTTP/1.1\r\nhost: ")
        began = time.monotonic()
        assert answered(wire)[0] in (0, 400, 408) and time.monotonic() - began < SOON_S
    with site.connect() as wire:  # nothing at all
        assert answered(wire)[0] == 0


def test_headers_that_come_byte_by_byte_are_cut_off(site: Site) -> None:
    with site.connect() as wire, pytest.raises(ConnectionError):
        for _ in range(200):
            wire.sendall(b"G")
            time.sleep(0.05)


@pytest.mark.parametrize("path", ["/v1/rows", "/v1/select"])
def test_a_body_that_does_not_come_is_not_waited_for(site: Site, path: str) -> None:
    began = time.monotonic()
    status, text = site.answer(site.head(path, "content-length: 1000"), b"{")
    assert status == 408 and "1 bytes" in text and time.monotonic() - began < SOON_S


def test_a_body_that_drips_is_cut_off(site: Site) -> None:
    with site.connect() as wire:
        wire.sendall(site.head("/v1/rows", "content-length: 1000"))
        with suppress(ConnectionError):
            for _ in range(100):
                wire.sendall(b" ")
                time.sleep(0.1)
        assert answered(wire)[0] in (0, 408)


def test_slow_uploads_do_not_stop_others(site: Site) -> None:
    """They hold no transaction, and their number is bounded."""
    slow = [site.connect() for _ in range(LIMITS.uploads - 1)]
    try:
        for wire in slow:
            wire.sendall(site.head("/v1/rows", "content-length: 1000"))
        text = body(3, "run-slow")
        head = site.head("/v1/rows", f"content-length: {len(text)}")
        status, answer = site.answer(head, text)
        assert status == 200 and '"stored":3' in answer
    finally:
        for wire in slow:
            wire.close()


def test_a_client_that_leaves_is_no_error(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with site.connect() as wire:
        wire.sendall(site.head("/v1/rows", "content-length: 1000") + b"{")
        time.sleep(0.1)
    until = time.monotonic() + SOON_S
    while "path=/v1/rows status=400" not in caplog.text:
        assert time.monotonic() < until, caplog.text
        time.sleep(0.05)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n",
        b"POST /v1/rows HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /v1/rows HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_is_refused(site: Site, head: bytes) -> None:
    assert site.answer(head)[0] in (0, 400, 401, 413, 414, 431)
    assert site.is_well()


def test_a_thousand_clients_are_bounded(site: Site) -> None:
    """Those beyond the limit are answered 503; afterwards everybody is served again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    clients: list[socket.socket] = []
    try:
        for _ in range(1000):
            clients.append(site.connect())
        time.sleep(0.1)
        wanted = site.head("/healthz", method="GET")
        statuses = set()
        for wire in clients[-20:]:
            with suppress(OSError):
                wire.sendall(wanted)
                wire.settimeout(SOON_S)
                statuses.add(answered(wire)[0])
        assert statuses <= {0, 200, 503}
    finally:
        for wire in clients:
            wire.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until = time.monotonic() + SOON_S
    while not site.is_well():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_nothing_of_the_service_unpickles() -> None:
    for path in (ROOT / "tftune/serve").rglob("*.py"):
        text = path.read_text()
        assert not any(word in text for word in ("pickle", "marshal", "shelve", "eval(", "exec("))
