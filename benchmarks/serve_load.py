"""How much the service takes, and that a kill loses nothing: rows pushed, selections, downloads,
then `kill -9` under load.

    python benchmarks/serve_load.py                      # SQLite in a temporary folder
    python benchmarks/serve_load.py --db postgresql://... --kills 50

Clients are threads of this process, so that server and clients share the machine's cores. Rows are
committed ones, each under a new run. After the kills every row that was acknowledged must be
stored, and none twice.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import launch
import sqlalchemy as sa

from tftune.db.row_files import read_rows, row_lines
from tftune.db.trial import Run, Trial, shape_of
from tftune.models.artifact import SHIPPED, parse_artifact
from tftune.serve import artifacts, tokens
from tftune.serve.database import Database
from tftune.serve.tables import ROWS
from tftune.verify import measured_shapes

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "db/trials/h200x8/flash_decode-2026-11-22.jsonl.xz"
OP, TARGET = "flash_decode", "h200x8"
CHUNK = 500
"""Rows of one request, as `tftune push` sends them."""
CLIENTS = 4
START_S = 60.0
LOG_CHARACTERS = 8_000


@dataclass(frozen=True)
class Chunk:
    """One upload, and the ids of its trials."""

    body: bytes
    ids: tuple[str, ...]


def chunks(count: int, name: str) -> Iterator[Chunk]:
    """So many uploads of committed rows; each has a run of its own, which makes its rows new."""
    runs, trials = read_rows(SOURCE)
    for number in range(count):
        start = number * CHUNK % (len(trials) - CHUNK)
        yield chunk(runs[0], trials[start : start + CHUNK], f"{name}-{number}")


def chunk(run: Run, trials: Sequence[Trial], name: str) -> Chunk:
    renamed = [replace(trial, run=name) for trial in trials]
    text = "".join(row_lines([replace(run, id=name)], renamed))
    return Chunk(gzip.compress(text.encode(), 1), tuple(trial.id for trial in renamed))


class Server:
    """`tftune serve` as a process that can be killed and started again."""

    def __init__(self, place: str, log: Path, python: Path | str = sys.executable) -> None:
        self.place, self.log, self.port, self.python = place, log, free_port(), python
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Returns the seconds until it answers. Raises RuntimeError where it does not."""
        began = time.monotonic()
        command = ["-P", "-m", "tftune", "serve", "--port", str(self.port)]
        environment = os.environ | {"TFTUNE_SERVE_DB": self.place}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.python, *command], stderr=log, env=environment, cwd=self.log.parent
            )
        if not answers(self.port, self.process):
            raise RuntimeError(f"the service did not start; see {self.log}")
        return time.monotonic() - began

    def end(self, how: int) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(60)


def answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Waits until the service answers; false where its process ended or took too long."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError, http.client.HTTPException):
            if Client(port, "").ask("GET", "/healthz")[0] == 200:
                return True
        time.sleep(0.05)
    return False


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Client:
    """A connection that is kept, and opened again where it was lost."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        """Status and body. Raises OSError or HTTPException where the connection is lost."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self._connection.request(method, path, body, self._headers | named)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise


@dataclass
class Timed:
    """What requests of one kind took."""

    seconds: list[float] = field(default_factory=list)
    wall_s: float = 0.0

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
        return (
            f"{len(ordered) / self.wall_s:,.0f} requests/s, median {1e3 * median(ordered):.2f} ms, "
            f"p99 {1e3 * p99:.2f} ms ({len(ordered):,} requests of {CLIENTS} clients)"
        )


def timed(port: int, token: str, seconds: float, ask: Callable[[Client], int]) -> Timed:
    """What `ask` takes, by so many clients at once. `ask` returns a status, which must be good."""
    took, until = Timed(), time.monotonic() + seconds
    bad: list[int] = []

    def work() -> None:
        client = Client(port, token)
        while (began := time.monotonic()) < until:
            status = ask(client)
            took.seconds.append(time.monotonic() - began)
            if status not in (200, 304):
                bad.append(status)

    began = time.monotonic()
    at_once([work] * CLIENTS)
    took.wall_s = time.monotonic() - began
    if bad:
        raise RuntimeError(f"{len(bad)} requests were answered {bad[0]}")
    return took


def at_once(works: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def push_rows(port: int, token: str, given: Sequence[Chunk]) -> float:
    """Rows stored per second."""
    waiting, stored = list(given), list[int]()

    def work() -> None:
        client = Client(port, token)
        while True:
            try:
                chunk = waiting.pop()
            except IndexError:
                return
            status, body = client.ask("POST", "/v1/rows", chunk.body)
            if status != 200:
                raise RuntimeError(body.decode())
            stored.append(json.loads(body)["stored"])

    began = time.monotonic()
    at_once([work] * CLIENTS)
    return sum(stored) / (time.monotonic() - began)


def make_stable(database: Database) -> list[str]:
    """The shipped artifact at stage stable, by hand; returns the shapes that it has measured."""
    content = (SHIPPED / f"{OP}__{TARGET}.json").read_bytes()
    document = json.loads(content)
    digest = artifacts.add(database, content, document, {"node": 1}, "load")
    place = {"op": OP, "target": TARGET, "build": "3.6", "stage": "stable", "digest": digest}
    with database.writing() as connection:
        artifacts.put(connection, **place, action="load", by="load", reason="by hand")
    return [str(shape) for shape in measured_shapes(parse_artifact(document), "graph")]


def selections(port: int, token: str, shapes: Sequence[str], each: int, seconds: float) -> Timed:
    """Requests of `each` shapes. Half of the shapes were never measured."""
    asked = [other for shape in shapes for other in (shape, next_to(shape))]
    bodies = [
        json.dumps({"op": OP, "target": TARGET, "shapes": random.sample(asked, each)}).encode()
        for _ in range(50)
    ]

    def ask(client: Client) -> int:
        return client.ask("POST", "/v1/select", random.choice(bodies),
                          Content_Type="application/json")[0]  # fmt: skip

    return timed(port, token, seconds, ask)


def next_to(text: str) -> str:
    """A shape beside a measured one, of whole pages."""
    shape = shape_of(OP, text)
    sizes = shape.to_dict()
    longer = {"kv_len": sizes["kv_len"] + max(8, sizes["page_size"])}
    return str(type(shape).from_dict(sizes | longer))


def downloads(port: int, token: str, seconds: float) -> tuple[Timed, Timed]:
    """Times of downloads of the whole artifact, and of one that the client has."""
    path = f"/v1/artifacts/{OP}/{TARGET}"
    digest = json.loads(Client(port, token).ask("GET", path)[1])["sha256"]
    whole = timed(port, token, seconds, lambda client: client.ask("GET", path)[0])
    known = timed(port, token, seconds, lambda client: client.ask(
        "GET", path, If_None_Match=f'"{digest}"')[0])  # fmt: skip
    return whole, known


@dataclass
class Kills:
    """What came of kills under load."""

    kills: int = 0
    acknowledged: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    repeated: int = 0
    """Uploads that were lost on the way and sent again."""
    started_s: list[float] = field(default_factory=list)


def kill_under_load(server: Server, token: str, kills: int, seed: int = 0) -> Kills:
    """Kill the server so many times while clients push; each upload is sent until it is
    acknowledged."""
    tally, random_ = Kills(), random.Random(seed)
    given = chunks(100_000, f"kill-{os.getpid()}-{seed}")
    over, lock = threading.Event(), threading.Lock()

    def push() -> None:
        client = Client(server.port, token)
        while not over.is_set():
            with lock:
                chunk = next(given)
                tally.sent.update(chunk.ids)
            while True:
                try:
                    status, body = client.ask("POST", "/v1/rows", chunk.body)
                except (OSError, http.client.HTTPException):
                    tally.repeated += 1
                    time.sleep(0.05)
                    continue
                if status == 200:
                    break
                raise RuntimeError(f"{status}: {body.decode()}")
            with lock:
                tally.acknowledged.update(chunk.ids)

    threads = [threading.Thread(target=push, daemon=True) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(random_.uniform(0.05, 1.0))
        server.end(signal.SIGKILL)
        tally.kills += 1
        tally.started_s.append(server.start())
    over.set()
    for thread in threads:
        thread.join(120)
    return tally


def stored_ids(database: Database) -> list[str]:
    """The id of every stored row, as its record has it: not the column that is unique."""
    with database.reading() as connection:
        records = connection.execute(sa.select(ROWS.c.record)).scalars().all()
    return [Trial.from_dict(json.loads(record)).id for record in records]


@contextmanager
def running(place: str, folder: Path) -> Iterator[tuple[Server, Database, str]]:
    """A service that listens, its database, and an admin's token. What fails meanwhile carries the
    end of the service's log."""
    database = Database.open(place)
    server = Server(place, folder / "serve.log")
    server.start()
    try:
        yield server, database, tokens.create(database, "load", ["admin"])
    except Exception as error:
        error.add_note(server.log.read_text()[-LOG_CHARACTERS:])
        raise
    finally:
        server.end(signal.SIGTERM)
        database.close()


def main() -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--db", help="default: SQLite in a temporary folder")
    parser.add_argument("--chunks", type=int, default=60, help=f"uploads of {CHUNK} rows")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each kind of request")
    parser.add_argument("--kills", type=int, default=50)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(asked.db or str(folder / "serve.db"), folder) as (server, database, token):
            shapes = make_stable(database)
            load(server.port, token, shapes, asked.chunks, asked.seconds)
            tally = kill_under_load(server, token, asked.kills)
            ids = stored_ids(database)
    lost, twice = len(tally.acknowledged - set(ids)), len(ids) - len(set(ids))
    print(
        f"kill -9: {tally.kills} times, {len(tally.acknowledged):,} rows acknowledged, "
        f"{tally.repeated:,} uploads sent again; lost {lost}, stored twice {twice}; "
        f"up again after {median(tally.started_s):.1f} s (median)"
    )
    sys.exit(1 if lost or twice else 0)


def load(port: int, token: str, shapes: Sequence[str], uploads: int, seconds: float) -> None:
    """Print what the service takes."""
    made = list(chunks(uploads, f"load-{os.getpid()}"))
    print(f"rows: {push_rows(port, token, made):,.0f} pushed/s, in uploads of {CHUNK}", flush=True)
    for each in (1, 100):
        took = selections(port, token, shapes, each, seconds)
        rate = each * len(took.seconds) / took.wall_s
        print(f"select, {each} shapes: {rate:,.0f} selections/s; {took}", flush=True)
    whole, known = downloads(port, token, seconds)
    print(f"artifact, whole: {whole}\nartifact, known by ETag: {known}", flush=True)


if __name__ == "__main__":
    main()
