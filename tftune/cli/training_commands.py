"""The commands that learn from rows or show them: train, export, report."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tftune.cli.console import note, print_json, print_table
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
from tftune.cli.store_commands import OneOp
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
    from tftune.models.export import pack_mode
    from tftune.pipeline.training_job import fit
    from tftune.report import tables
    from tftune.report.training import HEAD, REGRET, details, summary

    source = _source(op, target, bench, db)
    fitted, word = fit(source, say=note), tables.BENCH_WORDS[source.bench]
    if as_json:
        modes = {
            name: {**pack_mode(mode), "held_out": fitted.reports[name]}
            for name, mode in fitted.modes.items()
        }
        return print_json(
            {"op": op, "target": source.target, "bench": source.bench, "times": word,
             "modes": modes}
        )  # fmt: skip
    print_table(f"{op} on {source.target}, {word}", HEAD, summary(fitted))
    print(REGRET)
    print("\n" + "\n".join(details(fitted)) if verbose else "--verbose prints each tree")
    for sentence in tables.assumptions(source.bench, source.target):
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
    from tftune.models.export import export as write
    from tftune.models.export import provenance
    from tftune.pipeline.training_job import fit, newest_build
    from tftune.report.tables import BENCH_WORDS, assumptions

    source = _source(op, target, bench, db)
    fitted, word = fit(source, say=note), BENCH_WORDS[source.bench]
    origin = provenance(fitted.datasets, fitted.reports, newest_build(source))
    path = write(fitted.modes, out or Path(f"{op}__{source.target}.json"), origin)
    if as_json:
        return print_json(
            {"artifact": str(path), "op": op, "target": source.target, "bench": source.bench,
             "times": word, "modes": list(fitted.modes), "rows": origin.rows}
        )  # fmt: skip
    modes = ", ".join(fitted.modes)
    print(f"{path}: {op} on {source.target}, {word}, modes {modes}, {origin.rows:,} rows")
    for sentence in assumptions(source.bench, source.target):
        print(sentence)


def report(
    op: OneOp = None,
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
    from tftune.pipeline.bench_factory import name_in_rows
    from tftune.pipeline.training_job import modes_or_reasons, sources
    from tftune.report.report import Page, write
    from tftune.studies.taxes.figure import section
    from tftune.studies.taxes.rows import current

    with open_store(db) as store:
        machine = name_in_rows(target, db) if target else None
        wanted = (operation(op).name if op else None, machine, bench)
        all_sources, runs = sources(store.trials(), store.runs()), store.runs()
        taxes = current(store.trials(stage=TAX, condition=None), runs)
    chosen = [
        source
        for source in all_sources
        if all(w in (None, h) for w, h in zip(wanted, source.key, strict=True))
    ]
    if not chosen:
        there = ", ".join(f"{s.op} on {s.target} ({s.bench})" for s in all_sources) or "nothing"
        raise ValueError(f"{db} has no rows to report; it has {there}; run `tftune search`")
    written: list[str] = []
    for source in chosen:
        note(f"{source.op} on {source.target}, {source.bench}: {len(source.trials):,} rows")
        mine = [t for t in taxes if (t.op, t.target, t.bench) == source.key]
        more = [("taxes", "The three taxes", partial(section, mine))]
        learned = modes_or_reasons(source)
        paths = write(Page(*source.key, source.trials, source.runs, learned, more), out)
        written += map(str, paths)
        if not as_json:
            print("\n".join(map(str, paths)), flush=True)
    if as_json:
        print_json({"files": written})


def _source(op: str, target: str | None, bench: str | None, db: Path) -> Source:
    """The rows of the database that train and export are meant to use."""
    from tftune.pipeline.training_job import choose, sources

    with open_store(db) as store:
        all_sources = sources(store.trials(condition=None), store.runs())
    return choose(all_sources, operation(op).name, target, bench, str(db))
