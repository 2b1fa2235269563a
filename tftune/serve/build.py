"""One build, in a process of its own: train on all nodes' current rows, judge held out, store the
candidate.

Run by `jobs.Worker` as `python -m tftune.serve.build`, with {"db", "job"} as a line of JSON on
stdin. Where stdin ends before the build, the service was killed, and the build ends, too.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from threading import Thread

import sqlalchemy as sa

from tftune.db.row_files import learned
from tftune.models.artifact import parse_artifact
from tftune.models.export import document, provenance, text_of
from tftune.pipeline.training_job import choose, fit, newest_build, sources
from tftune.serve import artifacts, gate, jobs, rows
from tftune.serve.database import Database
from tftune.serve.tables import ROWS

NICE = 10
"""Requests go before builds."""


def main(asked: Mapping[str, str]) -> int:
    """Exit code 0 where a candidate was stored; else the last line of stderr says why not."""
    database = Database(asked["db"])
    try:
        build(database, asked["job"])
    except ValueError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    finally:
        database.close()
    return 0


def build(database: Database, job: str) -> None:
    """Do what a job says. Raises ValueError where nothing can be learned from its rows."""
    asked = jobs.found(database, job)
    op, target, bench = asked["op"], asked["target"], asked["bench"]

    def say(sentence: str) -> None:
        jobs.update(database, job, said=sentence)

    runs = learned(database.engine.url.database or "the database", rows.runs_of(database, target))
    source = choose(
        sources(rows.trials_of(database, op, target), runs), op, target, bench, "the service"
    )
    made = fit(source, say=say)
    origin = provenance(made.datasets, made.reports, newest_build(source))
    content = document(made.modes, origin)
    nodes = _nodes(database, op, {trial.run for trial in source.current})
    lost = gate.regrets(parse_artifact(content))
    worst = max((regret for regret, _ in lost.values()), default=None)
    said = f"{origin.rows:,} rows of {len(nodes)} nodes; " + (
        "no layout has enough shapes to hold any out"
        if worst is None
        else f"the largest held-out regret of a layout is {worst:.3f}"
    )
    artifacts.add(database, text_of(content).encode(), content, nodes, asked["by"], job, said)


def _nodes(database: Database, op: str, runs: set[str]) -> dict[str, int]:
    """How many rows each node gave, of these runs."""
    query = sa.select(ROWS.c.run, ROWS.c.node, sa.func.count()).where(ROWS.c.op == op)
    counts = Counter[str]()
    with database.reading() as connection:
        for run, node, count in connection.execute(query.group_by(ROWS.c.run, ROWS.c.node)):
            counts[node] += count if run in runs else 0
    return {node: count for node, count in sorted(counts.items()) if count}


def _end_with_service() -> None:
    while os.read(0, 4096):
        """Nothing follows the first line."""
    os._exit(1)


if __name__ == "__main__":
    os.nice(NICE)
    line = sys.stdin.readline()
    Thread(target=_end_with_service, daemon=True).start()
    sys.exit(main(json.loads(line)))
