"""A service of the fleet as its HTTP contract says, on a port of this machine, with faults on
purpose."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "a-token"


class FakeService:
    """What it holds, what it was asked, and how it should fail."""

    def __init__(self) -> None:
        self.rows = dict[str, str]()
        """Lines of trials, by digest."""
        self.artifacts = dict[tuple[str, str, str], tuple[bytes, str]]()
        """Bytes and signature, by operation, target and stage."""
        self.posted = dict[str, list[Any]]()
        """JSON values, by path."""
        self.asked = list[tuple[str, str, dict[str, str]]]()
        self.statuses = list[int]()
        """Statuses of the next requests: 0 for one that is cut off, 200 for an answered one."""
        self.headers = dict[str, str]()
        """Sent with artifacts in place of the true ones."""
        self.url = ""


@contextmanager
def running() -> Iterator[FakeService]:
    """The service on a free port, until the end of the block."""
    service = FakeService()

    class Handler(_Handler):
        state = service

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: FakeService

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        if self._failed(b""):
            return
        path, _, query = self.path.partition("?")
        *_, op, target = path.split("/")
        stage = dict(pair.split("=") for pair in query.split("&") if pair).get("stage", "stable")
        if (found := self.state.artifacts.get((op, target, stage))) is None:
            return self._answer(404, {"detail": f"no artifact of {op} on {target} in {stage}"})
        content, signature = found
        digest = sha256(content).hexdigest()
        if self.headers.get("If-None-Match") == f'"{digest}"':
            return self._answer(304, None)
        told = {"ETag": f'"{digest}"', "X-Tftune-Digest": digest, "X-Tftune-Signature": signature}
        self._send(200, content, told | self.state.headers)

    def do_CONNECT(self) -> None:
        """As a proxy that refuses every tunnel."""
        self._failed(b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._failed(body):
            return
        if self.path != "/v1/rows":
            self.state.posted.setdefault(self.path, []).append(json.loads(body))
            return self._answer(200, {"ok": True})
        lines = gzip.decompress(body).decode().splitlines()
        runs = {json.loads(line)["run"]["id"] for line in lines if line.startswith('{"run"')}
        trials = [line for line in lines if line.startswith('{"trial"')]
        assert {json.loads(line)["trial"]["run"] for line in trials} == runs
        new = {sha256(line.encode()).hexdigest(): line for line in trials}
        stored = len(new.keys() - self.state.rows.keys())
        self.state.rows |= new
        self._answer(200, {"stored": stored, "known": len(trials) - stored})

    def _failed(self, body: bytes) -> bool:
        """Whether the request was refused, or ended in a fault that was asked for."""
        self.state.asked.append((self.command, self.path, dict(self.headers.items())))
        status = self.state.statuses.pop(0) if self.state.statuses else 200
        if status == 0:
            self.close_connection = True
            self.connection.close()
        elif status == 302:
            self._send(status, b"", {"Location": "http://127.0.0.1:1/"})
        elif status != 200:
            self._answer(status, {"detail": f"asked to answer {status}"})
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status = 401
            self._answer(401, {"detail": "no such token"})
        return status != 200

    def _answer(self, status: int, value: Any) -> None:
        self._send(status, b"" if value is None else json.dumps(value).encode(), {})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
