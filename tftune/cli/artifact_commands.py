"""The commands that ask an exported artifact, or hold it against this machine: select, explain,
verify, diff, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tftune.cli.console import print_json, print_table
from tftune.cli.options import (
    DEFAULT_DB,
    AllowModelled,
    ArtifactPath,
    Db,
    Json,
    OneMode,
    Op,
    OtherDb,
    ShapeText,
    TargetName,
    open_store,
    out_option,
)
from tftune.kernels.core.registry import operation, payload_bytes

if TYPE_CHECKING:
    from tftune.db.trial import Trial
    from tftune.models.artifact import Artifact


def select(
    op: Op,
    shape: ShapeText,
    mode: OneMode = "graph",
    target: TargetName = None,
    artifact: ArtifactPath = None,
    allow_modelled: AllowModelled = False,
    as_json: Json = False,
) -> None:
    """The config to run for one shape, and whether it was measured, interpolated or modelled."""
    from tftune.cli import base

    base.select(op, shape, mode, target, artifact, allow_modelled, as_json)


def explain(
    op: Op,
    shape: ShapeText,
    mode: OneMode = "graph",
    target: TargetName = None,
    artifact: ArtifactPath = None,
    allow_modelled: AllowModelled = False,
    db: OtherDb = None,
    as_json: Json = False,
) -> None:
    """Why that config: the path in the tree, its leaf, and the nearest shapes with their times and
    intervals."""
    from tftune.cli.base import asked as asked_of
    from tftune.report.explain import explain as say
    from tftune.report.explain import nearest_table

    asked = operation(op).shape.parse(shape)
    selector = asked_of(artifact, target, allow_modelled)
    artifact_of = selector.artifact(asked, mode)
    explanation = say(selector, asked, mode, _rows_of(artifact_of, db) if artifact_of else [])
    if as_json:
        return print_json(explanation.to_dict())
    print("\n".join(explanation.sentences()))
    if explanation.nearest:
        print()
        print_table(
            f"nearest shapes, {explanation.nearest[0].word}", *nearest_table(explanation.nearest)
        )


def _rows_of(artifact: Artifact, db: Path | None) -> list[Trial]:
    """The rows of an artifact's machine and bench: of a database, else of the checkout."""
    from tftune.pipeline.bench_factory import stored_or_committed

    same = artifact.op, artifact.target.name, artifact.bench
    if db is None and not DEFAULT_DB.exists():
        return stored_or_committed(None, *same)
    with open_store(db or DEFAULT_DB) as store:
        return stored_or_committed(store, *same)


def verify(
    op: Op,
    artifact: ArtifactPath = None,
    leaves: Annotated[
        int,
        typer.Option(
            "--leaves", min=1, help="Measure so many answers, as long as the minute lasts."
        ),
    ] = 4,
    out: Annotated[
        Path | None, out_option("Write the stamped artifact here; default: in place.")
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Measure on a schedule, store the times, and open a finding where one moves; "
            "nothing is stamped.",
        ),
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="Between checks of --watch.")
    ] = "15m",
    count: Annotated[
        int, typer.Option("--count", min=0, help="Checks of --watch; 0: until it is stopped.")
    ] = 0,
    send: Annotated[
        str | None,
        typer.Option("--send", metavar="URL", help="Give the report to the service there."),
    ] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Measure a few answers again on this node, say what changed, and stamp the artifact with this
    build; exit code 1 where one fails, or where --watch opened a finding."""
    from contextlib import closing

    from tftune.db.target import build
    from tftune.models.compatibility import stamp
    from tftune.models.export import stamped, write
    from tftune.pipeline.bench_factory import measured_here
    from tftune.tuner.bench.node import NodeBench
    from tftune.verify import HEAD, changes, check, samples

    loaded = measured_here(op, artifact)
    if watch:
        from tftune.cli import watch_commands

        opened = watch_commands.watch(loaded, leaves, db, interval, count)
        raise typer.Exit(1 if opened else 0)
    picked = samples(loaded, leaves)
    payload = payload_bytes(*(sample.shape for sample in picked))
    with closing(NodeBench(loaded.target, payload)) as bench:
        checks = check(picked, bench)
    now = build()
    changed, sound = changes(stamp(loaded.document), now), all(each.holds for each in checks)
    place = write(stamped(loaded.document, now, len(checks)), out or loaded.file) if sound else None
    if send:
        from tftune.cli.fleet_commands import send_report

        send_report(send, loaded, now, [each.to_dict() for each in checks])
    if as_json:
        answer = {"artifact": str(loaded.file), "changed": changed, "stamped": place and str(place)}
        print_json(answer | {"checks": [each.to_dict() for each in checks]})
    else:
        print_table(
            f"{op} on {loaded.target}, measured again", HEAD, [each.row() for each in checks]
        )
        print(f"build: {', '.join(changed) or 'unchanged'}")
        again = f"not stamped; run `tftune search {op}` and `tftune export {op}`"
        print(f"{place}: stamped with this build" if place else again)
    raise typer.Exit(0 if sound else 1)


def diff(
    one: Annotated[Path, typer.Argument(metavar="A", help="An artifact.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="Another one, of the same operation.")],
    as_json: Json = False,
) -> None:
    """What differs from artifact A to artifact B: origin, build, kernels, and the answers for the
    shapes that were measured."""
    from tftune.models.artifact import read_artifact
    from tftune.report.diff import diff as compare

    difference = compare(read_artifact(one), read_artifact(other))
    print_json(difference.to_dict()) if as_json else print("\n".join(difference.sentences()))


def doctor(
    artifact: Annotated[
        list[Path] | None,
        typer.Option(
            "--artifact", metavar="PATH", help="Also look at this artifact; repeat for several."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """What works on this machine: packages, GPUs, driver, links, and why an artifact does or does
    not apply; exit code 1 where one is broken."""
    from tftune.cli import base

    raise typer.Exit(base.doctor(artifact or [], as_json))
