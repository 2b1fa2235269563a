"""Jobs that build artifacts: a queue in the database, and a worker that runs one at a time in a
process of its own.

A service writes the beat of its job every few seconds. Where the last beat is older than `LEASE_S`,
whichever service sees it first takes the job over. The former owner then meets a beat that it did
not write, and ends its build. Whichever build is done first, a job stores one artifact (`finish`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from tftune.kernels.core.registry import operation
from tftune.serve.database import Database, now
from tftune.serve.refusal import Refusal, unknown
from tftune.serve.tables import JOBS, ROWS
from tftune.serve.telemetry import say

LEASE_S = 30.0
BEAT_S = 5.0
POLL_S = 0.5
LONGEST_S = 3600.0
"""A build that takes longer is ended, and has failed."""
STOP_S = 5.0


def queue(database: Database, op: str, target: str, bench: str, by: str) -> str:
    """The id of a new job, or of the same one where it waits or runs already. Raises Refusal where
    there is no such operation, or no row to learn from."""
    try:
        operation(op)
    except ValueError as error:
        raise Refusal(404, str(error)) from error
    of = {"op": op, "target": target, "bench": bench}
    with database.writing() as connection:
        rows = sa.select(ROWS.c.number).filter_by(**of).limit(1)
        if connection.execute(rows).first() is None:
            raise Refusal(
                409, f"there are no rows of {op} on {target} ({bench}); push some to /v1/rows"
            )
        unfinished = JOBS.c.state.in_(("queued", "running"))
        open_ = sa.select(JOBS.c.id).filter_by(**of).where(unfinished)
        if (known := connection.execute(open_).scalar()) is not None:
            return str(known)
        job = uuid4().hex
        values = {"id": job, "state": "queued", "by": by, "created": now(), "beat": 0.0, "said": ""}
        connection.execute(sa.insert(JOBS).values({**of, **values}))
        return job


def found(database: Database, job: str) -> dict[str, Any]:
    """A job as the API shows it. Raises Refusal 404."""
    with database.reading() as connection:
        row = connection.execute(sa.select(JOBS).where(JOBS.c.id == job)).mappings().one_or_none()
    if row is None:
        raise unknown(f"job {job[:32]!r}", "POST /v1/artifacts/{op}/{target}/build starts one")
    return {name: value for name, value in row.items() if name != "beat"}


def update(database: Database, job: str, held: float | None = None, **values: Any) -> bool:
    """Change what is said of a job that runs; whether that was done. `held`: only where this is
    still the job's last beat, so that nobody else has taken it over."""
    where = [JOBS.c.id == job, JOBS.c.state == "running"]
    where += [] if held is None else [JOBS.c.beat == held]
    with database.writing() as connection:
        return connection.execute(sa.update(JOBS).where(*where).values(values)).rowcount == 1


def finish(connection: sa.Connection, job: str, digest: str, said: str) -> None:
    """Write that a job made an artifact, in the transaction that stores it. Raises ValueError where
    the job has ended already."""
    change = sa.update(JOBS).where(JOBS.c.id == job, JOBS.c.state == "running")
    values = {"state": "done", "said": said, "digest": digest, "finished": now()}
    if connection.execute(change.values(values)).rowcount != 1:
        raise ValueError(f"job {job} was ended by another service; nothing was stored")


def claim(database: Database, beat: float) -> str | None:
    """The oldest job that waits, or whose service was lost. It is this worker's from here on, with
    this first beat, in seconds since 1970."""
    stale = sa.and_(JOBS.c.state == "running", JOBS.c.beat < beat - LEASE_S)
    free = sa.or_(JOBS.c.state == "queued", stale)
    with database.reading() as connection:
        job = connection.execute(sa.select(JOBS.c.id).where(free).order_by(JOBS.c.created)).scalar()
    if job is None:
        return None
    with database.writing() as connection:
        change = sa.update(JOBS).where(JOBS.c.id == job, free)
        taken = connection.execute(change.values(state="running", beat=beat)).rowcount == 1
    return str(job) if taken else None


class Worker(threading.Thread):
    """Takes jobs until it is stopped."""

    def __init__(self, database: Database, place: str) -> None:
        super().__init__(name="tftune-builds", daemon=True)
        self._database, self._place = database, place
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(POLL_S):
            try:
                if (job := claim(self._database, beat := time.time())) is not None:
                    self._build(job, beat)
            except sa.exc.SQLAlchemyError as error:  # the database may be back in a while
                say("job_worker", error=str(error))
                self._stopped.wait(BEAT_S)

    def stop(self) -> None:
        """Ends the build that runs, which waits in the queue then, and the thread."""
        self._stopped.set()
        if self.is_alive():
            self.join(2 * STOP_S)

    def _build(self, job: str, beat: float) -> None:
        """Run `tftune.serve.build` in a process. It learns its database by stdin: a command line
        is seen by other users of the machine. Its stdin stays open until it ends: where this
        process is killed the pipe closes, and the build ends, too."""
        say("job", id=job, state="running")
        command = [sys.executable, "-P", "-m", "tftune.serve.build"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdin is not None and process.stderr is not None
        last: list[str] = []
        reader = threading.Thread(target=lambda: last.extend(process.stderr or ()), daemon=True)
        reader.start()
        try:
            process.stdin.write(json.dumps({"db": self._place, "job": job}) + "\n")
            process.stdin.flush()
            began = time.monotonic()
            while process.poll() is None and time.monotonic() - began < LONGEST_S:
                held, beat = beat, time.time()
                if not update(self._database, job, held, beat=beat):
                    break
                if self._stopped.wait(BEAT_S if time.monotonic() - began > BEAT_S else POLL_S):
                    break
        finally:
            self._end(process)
            process.stdin.close()
        reader.join(STOP_S)
        if self._stopped.is_set() and process.returncode:
            update(self._database, job, beat, state="queued")
        elif process.returncode:
            said = last[-1].strip() if last else f"its process ended with {process.returncode}"
            update(self._database, job, beat, state="failed", said=said[:4000], finished=now())
        say("job", id=job, state=found(self._database, job)["state"])

    def _end(self, process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
