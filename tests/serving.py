"""A service inside the test's process, over SQLite or over a PostgreSQL that is started here from
Debian's package."""

from __future__ import annotations

import functools
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
import uvicorn
from fastapi.testclient import TestClient

from tftune.db.row_files import row_lines
from tftune.db.trial import Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.models.artifact import digest
from tftune.models.export import text_of
from tftune.serve import artifacts
from tftune.serve.app import create_app
from tftune.serve.database import Database
from tftune.serve.server import config, listening
from tftune.serve.settings import Settings
from tftune.serve.tokens import create

ROOT = Path(__file__).resolve().parent.parent
OP, TARGET = "flash_decode", "h200x8"
BUILD = {"triton": "3.6.0", "torch": "2.11.0"}
AT_REST = f"/v1/artifacts/{OP}/{TARGET}"
SHAPE = AllGatherGemm(64, 3584, 8192, 8)


class Served:
    """One service with its client, and a token for each set of scopes that a test asks for."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.settings, self.database = settings, database
        self.client = TestClient(create_app(settings, database), raise_server_exceptions=False)
        self._tokens: dict[str, str] = {}

    def token(self, scopes: str) -> str:
        if scopes not in self._tokens:
            self._tokens[scopes] = create(self.database, f"test {scopes}", scopes.split())
        return self._tokens[scopes]

    def ask(self, method: str, path: str, scopes: str | None = "admin", **more: Any) -> Any:
        """The answer to one request by a token of these scopes; None: without one."""
        headers = dict(more.pop("headers", {}))
        if scopes is not None:
            headers["authorization"] = f"Bearer {self.token(scopes)}"
        return self.client.request(method, path, headers=headers, **more)

    def get(self, path: str, scopes: str | None = "read", **more: Any) -> Any:
        return self.ask("GET", path, scopes, **more)

    def post(self, path: str, scopes: str | None = "admin", **more: Any) -> Any:
        return self.ask("POST", path, scopes, **more)

    def routes(self) -> list[tuple[str, str]]:
        """Methods and paths of the schema."""
        paths = self.client.app.openapi()["paths"]  # type: ignore[attr-defined]
        return [(method.upper(), path) for path, of in paths.items() for method in of]

    def push(self, body: bytes, node: str = "node-1", scopes: str = "rows") -> Any:
        return self.post("/v1/rows", scopes, content=body, headers={"x-tftune-node": node})


@contextmanager
def opened(kind: str, folder: Path, **settings: Any) -> Iterator[Served]:
    """A service over a fresh database of this kind."""
    with place_of(kind, folder) as place:
        database = Database.open(place)
        try:
            yield Served(Settings(place, builds=False, **settings), database)
        finally:
            database.close()


@contextmanager
def live(settings: Settings, database: Database) -> Iterator[str]:
    """The address of a service that listens, in a thread of this process."""
    listener = listening("127.0.0.1", 0)
    server = uvicorn.Server(config(settings, database))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def place_of(kind: str, folder: Path) -> Iterator[str]:
    """What `--db` names; a database of PostgreSQL is dropped afterwards."""
    if kind == "sqlite":
        yield str(folder / "serve.db")
        return
    socket = postgresql()
    name = f"t{uuid4().hex}"
    server = f"postgresql+psycopg://postgres@/postgres?host={socket}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    try:
        yield f"postgresql://postgres@/{name}?host={socket}"
    finally:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        engine.dispose()


@functools.cache
def postgresql() -> str:
    """The folder of the socket of a PostgreSQL of this process, which ends with it."""
    import atexit

    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("there is no PostgreSQL; `apt-get install postgresql` brings it")
    programs_at = found[-1].parent
    folder = Path(tempfile.mkdtemp(prefix="tftune-pg-"))
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    make = [programs_at / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-N"]
    subprocess.run([*as_user, *map(str, make)], check=True, stdout=subprocess.DEVNULL, cwd="/")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c max_connections=200"
    control = [str(programs_at / "pg_ctl"), "-D", str(folder / "data"), "-w", "-l"]
    start = [*as_user, *control, str(folder / "log"), "-o", options, "start"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def stop() -> None:
        command = [*as_user, *control[:3], "-m", "immediate", "stop"]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, cwd="/")
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return str(folder)


def run(name: str = "run-1", **other: Any) -> Run:
    """A run on 8x H200."""
    return replace(Run(name, TARGET, "node", BUILD, "2026-11-23T00:00:00+00:00", {}), **other)


def trials(count: int = 5, run: str = "run-1", start: int = 0) -> list[Trial]:
    """So many trials of one run, all different."""
    code = installed(SHAPE.op, "bsp")
    return [
        Trial(
            SHAPE, Config("bsp"), "graph", TARGET, "node", run, code,
            Measurement((40.0 + number, 41.0), (42.0, 43.0), 1e-4), "search",
            f"2026-11-23T00:00:{number % 60:02d}.{number:06d}+00:00",
        )
        for number in range(start, start + count)
    ]  # fmt: skip


def lines(runs: Sequence[Run], rows: Sequence[Trial]) -> bytes:
    """As `tftune trials export` writes them."""
    return "".join(row_lines(runs, rows)).encode()


def body(count: int = 5, name: str = "run-1", start: int = 0, packed: bool = False) -> bytes:
    """An upload of one run with so many trials."""
    text = lines([run(name)], trials(count, name, start))
    return gzip.compress(text) if packed else text


def shipped(op: str = OP, target: str = TARGET) -> dict[str, Any]:
    """The document of an artifact that comes with tftune."""
    path = ROOT / f"models/artifacts/{op}__{target}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def placed(
    served: Served, change: Mapping[str, Any] | None = None, nodes: Mapping[str, int] | None = None
) -> str:
    """A candidate made of a shipped artifact with some fields changed; returns its digest."""
    document = {**shipped(), **(change or {})}
    document |= {"sha256": digest(document)}
    content = text_of(document).encode()
    return artifacts.add(served.database, content, document, nodes or {"node-1": 100}, "test")


def report(digest: str, node: str = "node-2", **change: Any) -> dict[str, Any]:
    """A verify report whose checks hold."""
    row = {
        "shape": "m=64,n=3584,k=8192,world=8", "mode": "graph", "holds": True, "promised": 1.2,
        "speedup": 1.25, "verdict": "holds",
    }  # fmt: skip
    return {"digest": digest, "node": node, "rows": [{**row, **change}] * 4}
