"""Walk the service's whole way on a fresh machine: install, serve, push committed rows, build,
promote, pull, select.

usage: python benchmarks/serve_walk.py [--within 180] [--keep FOLDER] [--here]

It makes an empty folder with a virtual environment of its own, and does there what docs/service.md
says. Each command is printed with its seconds; the last line is a RESULT line. The exit code is 1
where a step failed, or all of them took longer than --within seconds. --here leaves the
installation out, and takes this Python's tftune.

Without a GPU no second node can verify the artifact, so the walk ends at stage canary; it asks for
stable, too, and shows that the gate refuses that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch
from serve_load import Client, answers, free_port

ROOT = Path(__file__).resolve().parent.parent
OP, TARGET = "flash_decode", "h200x8"
SHAPE = "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=8192,world=8"
POLL_S = 0.5
REFUSED = 409


@dataclass
class Walk:
    """The steps so far: what was typed, and the seconds that it took."""

    folder: Path
    programs: Path
    """Where `tftune` and `python` are."""
    environment: dict[str, str]
    steps: list[tuple[str, float]] = field(default_factory=list)

    def timed(self, typed: str, step: Callable[[], Any]) -> Any:
        """What a step returns; it is printed with its seconds."""
        print(f"$ {typed}", flush=True)
        began = time.monotonic()
        returned = step()
        self.steps.append((typed, time.monotonic() - began))
        print(f"  [{self.steps[-1][1]:.1f} s]", flush=True)
        return returned

    def run(self, *words: str, typed: str = "") -> str:
        """What a command prints. Raises SystemExit with its complaint where it fails."""

        def step() -> str:
            done = subprocess.run(
                [str(self.programs / words[0]), *words[1:]],
                cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
            print("".join(f"  {line}\n" for line in done.stdout.splitlines()[-4:]), end="")
            return done.stdout.strip()

        return str(self.timed(typed or " ".join(words), step))

    @property
    def total_s(self) -> float:
        return sum(seconds for _, seconds in self.steps)


class Service:
    """Requests that have no command of their own."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer, refusals included."""
        data = None if body is None else json.dumps(body).encode()
        kind, client = "application/json", Client(self._port, self._token)
        status, text = client.ask(method, f"/v1/{path}", data, Content_Type=kind)
        return status, json.loads(text)

    def built(self) -> dict[str, Any]:
        """The job of a build, once it has ended."""
        _, asked = self.ask("POST", f"artifacts/{OP}/{TARGET}/build")
        while True:
            _, job = self.ask("GET", f"jobs/{asked['job']}")
            if job["state"] not in ("queued", "running"):
                print(f"  {json.dumps(job)}")
                return dict(job)
            time.sleep(POLL_S)

    def promoted(self, digest: str, stage: str) -> int:
        asked = {"digest": digest, "stage": stage}
        status, said = self.ask("POST", f"artifacts/{OP}/{TARGET}/promote", asked)
        print(f"  {status} {json.dumps(said)}")
        return status


def installed(walk: Walk) -> None:
    """tftune with the service, in a new virtual environment."""
    command = [sys.executable, "-m", "venv", str(walk.folder / ".venv")]
    walk.timed("python3 -m venv .venv", lambda: subprocess.run(command, check=True))
    quiet = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    walk.run("python", *quiet, f"{ROOT}[serve]", typed="pip install '.[serve]'")


@contextmanager
def serving(walk: Walk, port: int) -> Iterator[None]:
    """`tftune serve`, from when it answers; it is stopped at the end."""
    command = [str(walk.programs / "tftune"), "serve", "--port", str(port)]
    with open(walk.folder / "serve.log", "wb") as log:
        process = subprocess.Popen(command, cwd=walk.folder, env=walk.environment, stderr=log)
    try:
        if not walk.timed(f"tftune serve --port {port} &", lambda: answers(port, process)):
            raise SystemExit(f"it did not start:\n{(walk.folder / 'serve.log').read_text()}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def walked(walk: Walk) -> None:
    """Every step behind the installation. Raises SystemExit at the first that fails."""
    token = walk.run("tftune", "tokens", "create", "admin", "--scope", "admin")
    walk.environment["TFTUNE_TOKEN"] = token
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with serving(walk, port):
        rows = ROOT / "db/trials" / TARGET / f"{OP}-2026-11-22.jsonl.xz"  # as docs/service.md does
        walk.run("tftune", "trials", "import", str(rows), "--db", "rows.db")
        walk.run("tftune", "push", "--db", "rows.db", "--url", url)
        service = Service(port, token)
        at = f"artifacts/{OP}/{TARGET}"
        job = walk.timed(f"curl -X POST {url}/v1/{at}/build", service.built)
        if job["state"] != "done":
            raise SystemExit(f"the build ended as {job}")
        for stage, wanted in (("canary", 200), ("stable", REFUSED)):
            typed = f'curl -d \'{{"digest": ..., "stage": "{stage}"}}\' {url}/v1/{at}/promote'
            status = walk.timed(typed, lambda stage=stage: service.promoted(job["digest"], stage))
            if status != wanted:
                raise SystemExit(f"promotion to {stage} was answered {status}, not {wanted}")
        asked = ("--target", TARGET, "--stage", "canary", "--url", url)
        artifact = walk.run("tftune", "pull", OP, *asked).splitlines()[-1]
        walk.run("tftune", "select", OP, SHAPE, "--artifact", artifact)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = launch.parser(__doc__)
    parser.add_argument("--within", type=float, default=180.0, metavar="SECONDS")
    parser.add_argument("--keep", type=Path, help="work there, and leave it")
    parser.add_argument("--here", action="store_true", help="take the tftune of this Python")
    asked = parser.parse_args(arguments)
    if asked.keep is not None:
        asked.keep.mkdir(parents=True)
    place = nullcontext(asked.keep) if asked.keep else tempfile.TemporaryDirectory()
    with place as name:
        folder = Path(name).resolve()
        programs = Path(sys.executable).parent if asked.here else folder / ".venv/bin"
        walk = Walk(folder, programs, os.environ | {"HOME": str(folder)})
        if not asked.here:
            installed(walk)
        install_s = walk.total_s
        walked(walk)
    print(
        f"RESULT serve_walk seconds={walk.total_s:.0f} install_s={install_s:.0f} "
        f"service_s={walk.total_s - install_s:.0f} steps={len(walk.steps)} "
        f"cores={os.cpu_count()}"
    )
    return int(walk.total_s > asked.within)


if __name__ == "__main__":
    sys.exit(main())
