"""The commands of the sentinel: `tftune verify --watch` and `tftune findings`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tftune.cli.console import note, print_json, print_table
from tftune.cli.options import DEFAULT_DB, Db, Json, open_store

if TYPE_CHECKING:
    from tftune.db.findings import Finding
    from tftune.models.artifact import Artifact
    from tftune.sentinel import Leaf


def watch(artifact: Artifact, leaves: int, db: Path, interval: str, count: int) -> int:
    """Measure a few leaves of an artifact on a schedule; returns how many findings were opened. The
    GPUs are free between two checks."""
    import time
    from contextlib import closing
    from functools import partial

    from tftune import sentinel
    from tftune.kernels.core.registry import payload_bytes
    from tftune.pipeline.bench_factory import seconds
    from tftune.tuner.bench.node import NodeBench

    picked, interval_s = sentinel.watched(artifact, leaves), seconds(interval, "--interval")
    payload = payload_bytes(*(sample.shape for sample in picked))

    def measure() -> None:
        with closing(NodeBench(artifact.target, payload)) as bench:
            if not sentinel.measure(picked, bench, db):
                note("no leaf could be measured; `tftune trials list` says why")

    def told(leaves: list[Leaf], opened: list[Finding]) -> None:
        for leaf in leaves:
            note(leaf.sentence())
        for finding in opened:
            print(f"finding {finding.id}: {finding.shape}, {finding.mode}: {finding.text}")

    note(f"{len(picked)} leaves of {artifact.op} on {artifact.target}, stored in {db}")
    look = partial(sentinel.look, artifact.op, artifact.target.name, db)
    return sentinel.watch(
        measure, look, interval_s=interval_s, count=count, told=told, sleep=time.sleep,
        clock=time.monotonic,
    )  # fmt: skip


def list_findings(
    acknowledge: Annotated[
        str | None,
        typer.Option("--acknowledge", metavar="ID", help="Somebody knows of this one."),
    ] = None,
    close: Annotated[
        str | None,
        typer.Option(
            "--close", metavar="ID", help="This one is over: its leaf begins a new baseline."
        ),
    ] = None,
    note: Annotated[str, typer.Option("--note", help="What you say of it.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Closed ones, too.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """List the times that have moved on this node, or say what became of one; exit code 1 where one
    is open."""
    from tftune.db.findings import change, findings
    from tftune.db.trial import now
    from tftune.sentinel import variant

    if acknowledge and close:
        raise ValueError("--acknowledge and --close name a finding each; give one of them")
    if name := acknowledge or close:
        with open_store(db, write=True, new=False) as store:
            change(store, name, "closed" if close else "acknowledged", note, now())
    with open_store(db) as store:
        all_findings = findings(store)
    shown = [finding for finding in all_findings if every or finding.state != "closed"]
    if as_json:
        print_json([finding.to_dict() for finding in shown])
    else:
        head = ["id", "shape", "mode", "variant", "times", "state", "opened", "note"]
        rows = [
            [
                one.id, one.shape, one.mode, variant(one.series),
                f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})", one.state,
                one.opened[:19], one.note or "-",
            ]
            for one in shown
        ]  # fmt: skip
        print_table(f"{len(shown)} of {len(all_findings)} findings in {db}", head, rows)
        print("times: of the last checks over the baseline, with its 95 % interval")
        for one in shown:
            print(f"{one.id}: {one.text}")
    raise typer.Exit(1 if any(finding.state == "open" for finding in all_findings) else 0)
