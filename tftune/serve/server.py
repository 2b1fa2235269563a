"""The process: uvicorn with bounds for slow and for many clients, and a graceful stop."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from contextlib import closing
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tftune import __version__
from tftune.serve.app import create_app
from tftune.serve.database import Database
from tftune.serve.settings import Settings
from tftune.serve.telemetry import say
from tftune.serve.tokens import listed

GRACE_S = 20
"""For requests that run when the service is stopped."""
KEEP_ALIVE_S = 15
BACKLOG = 1024
HEADER_BYTES = 65_536
LOG = "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s"


class Protocol(H11Protocol):
    """As uvicorn's, but a request's line and headers must arrive in time: uvicorn would wait for
    them for ever."""

    headers_s = 10.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._clear()

    def _watch(self) -> None:
        """The deadline runs while no request is being answered. Idle connections that may be used
        again are uvicorn's to close."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.transport.is_closing():
            self._clear()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.headers_s, self._late)

    def _clear(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            say("slow_headers", client=(self.client or ("-",))[0], seconds=self.headers_s)
            self.transport.close()


def run(settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises ValueError where the address cannot be listened on,
    StoreError where the database cannot be opened."""
    with listening(host, port) as listener, closing(Database.open(settings.db)) as database:
        logging.Formatter.converter = time.gmtime
        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.basicConfig(
            stream=sys.stderr, format=LOG, datefmt="%Y-%m-%dT%H:%M:%S", level=logging.INFO,
            force=True,
        )  # fmt: skip
        say("started", version=__version__, db=str(database), address=f"http://{host}:{port}")
        if not listed(database):
            say("no_tokens", next="tftune tokens create NAME --scope admin --db DB")
        uvicorn.Server(config(settings, database)).run([listener])


def listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections at this address; uvicorn's own would end the process without
    a sentence of ours. Raises ValueError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {host}, port {port}: {error.strerror}; give another --port or "
            f"--host, or end what `ss -ltnp sport = :{port}` shows"
        ) from error


def config(settings: Settings, database: Database) -> uvicorn.Config:
    """How uvicorn serves it, on a socket that listens already."""
    limits = settings.limits
    protocol = type("BoundProtocol", (Protocol,), {"headers_s": limits.headers_s})
    return uvicorn.Config(
        create_app(settings, database), http=protocol, ws="none", log_config=None,
        access_log=False, server_header=False, proxy_headers=False,
        limit_concurrency=limits.connections, timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S, backlog=BACKLOG,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )  # fmt: skip
