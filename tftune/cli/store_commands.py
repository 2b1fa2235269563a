"""The commands that look after a database: trials import, export, list and stats, db check."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tftune.cli.console import note, print_json, print_table
from tftune.cli.options import DEFAULT_DB, Db, Json, TargetName, file_to_write, open_store
from tftune.db.trial import Failure
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation

if TYPE_CHECKING:
    from tftune.db.trial import Trial

OneOp = Annotated[str | None, typer.Option("--op", help="Only this operation.")]
AnyMode = Annotated[
    Literal["graph", "eager"] | None, typer.Option("--mode", help="Only this mode.")
]
AnyBench = Annotated[
    Literal["node", "model", "replay", "drill"] | None,
    typer.Option("--bench", help="Only rows of this bench."),
]


def import_trials(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="JSONL rows to add, plain or packed (.xz, .gz, .bz2)."),
    ],
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Add the rows of a JSONL file to the database: all of them or none; rows already there are
    passed over."""
    from tftune.db.files import refuse_special

    refuse_special(file)  # a pipe would be waited for
    with open_store(db, write=True) as store:
        added, there = store.import_rows(file)
    if as_json:
        return print_json({"file": str(file), "db": str(db), "added": added, "there": there})
    print(f"{file}: {added} trials added to {db}, {there} already there")


def export_trials(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            callback=file_to_write,
            help="JSONL file to write, packed if named .xz, .gz or .bz2; replaced whole.",
        ),
    ],
    op: OneOp = None,
    target: TargetName = None,
    bench: AnyBench = None,
    mode: AnyMode = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Write rows of the database, and the runs they belong to, as JSONL."""
    with open_store(db) as store:
        count = store.export_rows(file, **filters_of(op, target, bench, mode, db))
    if as_json:
        return print_json({"file": str(file), "db": str(db), "trials": count})
    print(f"{count} trials written to {file}")


def list_trials(
    op: OneOp = None,
    target: TargetName = None,
    bench: AnyBench = None,
    mode: AnyMode = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Only so many, the newest ones.")
    ] = 20,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show the newest rows of the database, the newest last."""
    with open_store(db) as store:
        trials = store.trials(**filters_of(op, target, bench, mode, db), condition=None)
    shown = [_listed(trial) for trial in trials[-limit:]]
    if as_json:
        return print_json(shown)
    head = ["shape", "mode", "target", "stage", "times", "variant", "us", "over BSP"]
    title = f"{len(shown):,} of {len(trials):,} trials in {db}"
    print_table(title, head, [_cells(row) for row in shown])
    print("us: median time of one call, or why there is none; over BSP: how many times as long the")
    print("strongest unfused form took in the same rounds; --json has the configs")


def stats(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Count the rows of the database by operation, target, bench, mode and stage."""
    with open_store(db) as store:
        groups = _counted(store.trials(condition=None))
    if as_json:
        return print_json(groups)
    head = ["op", "target", "bench", "mode", "stage", "trials", "failed", "shapes", "first", "last"]
    print_table(f"trials in {db}", head, [[_cell(row[name]) for name in head] for row in groups])
    print("failed: trials without a time; first, last: when the rows were stored, UTC")


def check(
    drop: Annotated[
        bool,
        typer.Option("--drop", help="Move rows that are wrong to the end of DB.dropped."),
    ] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Read every row of the database and say what is wrong with it; exit code 1 where something
    is."""
    from tftune.db.lock import DamagedError

    try:
        with open_store(db) as store:
            problems = store.check()
        if drop and problems:
            with open_store(db, write=True) as store:
                count, place = store.drop()
                problems = store.check()
            note(f"{count:,} rows moved to {place}")
    except DamagedError as error:
        problems = [str(error)]
    if as_json:
        print_json({"db": str(db), "sound": not problems, "problems": problems})
    else:
        print("\n".join(problems) or f"{db} is sound")
    raise typer.Exit(1 if problems else 0)


def filters_of(
    op: str | None, target: str | None, bench: str | None, mode: str | None, db: Path
) -> dict[str, Any]:
    """The filters of a store, with names as its rows have them; raises ValueError for an unknown
    one."""
    from tftune.pipeline.bench_factory import name_in_rows

    return {
        "op": operation(op).name if op else None,
        "target": name_in_rows(target, db) if target else None,
        "bench": bench,
        "mode": mode,
    }


def _listed(trial: Trial) -> dict[str, Any]:
    """One trial as `trials list --json` shows it."""
    from tftune.db.evidence import measurement
    from tftune.report.tables import BENCH_WORDS

    failed = trial.outcome if isinstance(trial.outcome, Failure) else None
    return {
        "id": trial.id, "op": trial.op, "shape": str(trial.shape), "mode": trial.mode,
        "target": trial.target, "bench": trial.bench, "times": BENCH_WORDS[trial.bench],
        "stage": trial.stage, "condition": trial.condition, "config": trial.config.to_dict(),
        "us": None if failed else measurement(trial).median_us,
        "speedup": None if failed else measurement(trial).speedup,
        "failure": failed and failed.kind, "text": failed and failed.text,
        "run": trial.run, "created": trial.created,
    }  # fmt: skip


def _cell(value: str | int) -> str:
    """A count, or a word; of an instant, the day and the second."""
    return f"{value:,}" if isinstance(value, int) else value[:19]


def _cells(row: dict[str, Any]) -> list[str]:
    speedup = row["speedup"]
    return [
        " ".join(filter(None, (row["shape"], row["condition"]))),
        *(row[name] for name in ("mode", "target", "stage", "times")),
        row["config"]["variant"],
        row["failure"] or f"{row['us']:,.1f}",
        "-" if speedup is None else f"{speedup:.2f}x",
    ]


def _counted(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """The trials by what rows must have in common to be compared."""
    names = ("op", "target", "bench", "mode", "stage")
    return [
        dict(zip(names, key, strict=True))
        | {
            "trials": len(group),
            "failed": sum(isinstance(trial.outcome, Failure) for trial in group),
            "shapes": len({trial.shape for trial in group}),
            "first": min(trial.created for trial in group),
            "last": max(trial.created for trial in group),
        }
        for key, group in groups(trials, attrgetter(*names)).items()
    ]
