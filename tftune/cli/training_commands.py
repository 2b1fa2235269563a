"""The commands that learn from rows or show them: train, export, report.

As in app.py, where they are registered, whatever is heavy is imported inside the command that needs
it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tftune.cli.options import (
    DEFAULT_DB,
    BenchName,
    Db,
    Json,
    Op,
    TargetName,
    open_store,
    out_option,
)
from tftune.db.trial import TAX
from tftune.kernels.core.registry import operation

if TYPE_CHECKING:
    from tftune.pipeline.training_job import Source


def train(
    op: Op,
    target: TargetName = None,
    bench: BenchName = None,
    db: Db = DEFAULT_DB,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print each tree and the constant rules.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Learn from the rows and judge it on held-out shapes; prints both and writes nothing (export
    writes the artifact)."""
    from tftune.cli.console import note, print_json, print_table
    from tftune.models.export import pack_mode
    from tftune.pipeline.training_job import fit
    from tftune.report import tables
    from tftune.report.training import HEAD, REGRET, details, summary

    found = fit(_source(op, target, bench, db), say=note)
    word = tables.BENCH_WORDS[found.source.bench]
    if as_json:
        modes = {
            name: {**pack_mode(mode), "held_out": found.reports[name]}
            for name, mode in found.modes.items()
        }
        return print_json(
            {
                "op": op,
                "target": found.source.target,
                "bench": found.source.bench,
                "times": word,
                "modes": modes,
            }
        )
    print_table(f"{op} on {found.source.target}, {word}", HEAD, summary(found))
    print(REGRET)
    print("\n" + "\n".join(details(found)) if verbose else "--verbose prints each tree")
    for sentence in tables.assumptions(found.source.bench, found.source.target):
        print(sentence)


def export(
    op: Op,
    target: TargetName = None,
    bench: BenchName = None,
    out: Annotated[
        Path | None, out_option("The artifact to write; default: OP__TARGET.json here.")
    ] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Train as `train` does, and write the artifact: trees, provenance, held-out report and digest
    in one JSON file."""
    from tftune.cli.console import note, print_json
    from tftune.models.export import export as write
    from tftune.models.export import provenance
    from tftune.pipeline.training_job import fit, newest_build
    from tftune.report.tables import BENCH_WORDS, assumptions

    found = fit(_source(op, target, bench, db), say=note)
    origin = provenance(found.datasets, found.reports, newest_build(found.source))
    path = write(found.modes, out or Path(f"{op}__{found.source.target}.json"), origin)
    if as_json:
        return print_json(
            {
                "artifact": str(path),
                "op": op,
                "target": found.source.target,
                "bench": found.source.bench,
                "times": BENCH_WORDS[found.source.bench],
                "modes": list(found.modes),
                "rows": origin.rows,
            }
        )
    print(
        f"{path}: {op} on {found.source.target}, {BENCH_WORDS[found.source.bench]}, "
        f"modes {', '.join(found.modes)}, {origin.rows:,} rows"
    )
    for sentence in assumptions(found.source.bench, found.source.target):
        print(sentence)


def report(
    op: Annotated[str | None, typer.Option("--op", help="Only this operation.")] = None,
    target: TargetName = None,
    bench: BenchName = None,
    out: Annotated[Path, out_option("Folder for the pages and their PNGs.", "DIR")] = Path(
        "report"
    ),
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Write a page with figures (HTML, and PNGs beside it) for each operation, target and bench in
    the database."""
    from tftune.cli.console import note, print_json
    from tftune.pipeline.bench_factory import name_in_rows
    from tftune.pipeline.training_job import modes_or_reasons, sources
    from tftune.report.report import Page, write
    from tftune.studies.taxes.figure import section
    from tftune.studies.taxes.rows import current

    with open_store(db) as store:
        machine = name_in_rows(target, db) if target else None
        wanted = (operation(op).name if op else None, machine, bench)
        found, runs = sources(store.trials(), store.runs()), store.runs()
        taxes = current(store.trials(stage=TAX, condition=None), runs)
    chosen = [
        s
        for s in found
        if all(
            want in (None, has) for want, has in zip(wanted, (s.op, s.target, s.bench), strict=True)
        )
    ]
    if not chosen:
        there = ", ".join(f"{s.op} on {s.target} ({s.bench})" for s in found) or "nothing"
        raise ValueError(f"{db} has no rows to report; it has {there}; run `tftune search`")
    written: list[str] = []
    for source in chosen:
        note(f"{source.op} on {source.target}, {source.bench}: {len(source.trials):,} rows")
        kept = source.op, source.target, source.bench, source.trials, source.runs
        mine = [t for t in taxes if (t.op, t.target, t.bench) == kept[:3]]
        more = [("taxes", "The three taxes", partial(section, mine))]
        paths = write(Page(*kept, modes_or_reasons(source), more), out)
        written += map(str, paths)
        if not as_json:
            print("\n".join(map(str, paths)), flush=True)
    if as_json:
        print_json({"files": written})


def _source(op: str, target: str | None, bench: str | None, db: Path) -> Source:
    """The rows of the database that train and export are meant to use."""
    from tftune.pipeline.training_job import choose, sources

    with open_store(db) as store:
        found = sources(store.trials(condition=None), store.runs())
    return choose(found, operation(op).name, target, bench, str(db))
