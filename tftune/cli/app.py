"""The command `tftune`: search, train, export, report, trials, db; and of artifact_commands.py
select, explain, verify, diff, doctor.

Each command only gathers its arguments, asks the rooms, and prints. Whatever is heavy is imported
inside the command that needs it. Wrong input is one sentence on stderr and exit code 2;
TFTUNE_DEBUG=1 shows the traceback. The environment is read here only.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from tftune.cli.options import (  # before typer: it says what typer comes with
    DEFAULT_DB,
    BenchName,
    Budget,
    ChipFile,
    Db,
    EffortName,
    Gpus,
    Inject,
    Json,
    Modes,
    On,
    Op,
    Pool,
    Portfolio,
    SamplerName,
    Seed,
    Shapes,
    TargetName,
    Variants,
)

# isort: split
import typer

from tftune.cli import artifact_commands, chip_commands
from tftune.db.trial import MODES
from tftune.kernels.core.registry import Operation, operation

if TYPE_CHECKING:
    from tftune.cli.training_job import Source
    from tftune.db.store import Store

USAGE, INTERRUPTED = 2, 130
UsageError: Any = typer.BadParameter.__bases__[
    0
]  # typer brings its own click, or takes the installed one, by its version
EXPECTED = (ValueError, OSError, ImportError, NotImplementedError, UsageError)
"""What the rooms raise for wrong input or a machine that lacks something: each carries its
sentence."""

HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
trials_app = typer.Typer(help="Move rows between databases and JSONL files.")
db_app = typer.Typer(help="Look after a database.")
app.add_typer(trials_app, name="trials")
app.add_typer(db_app, name="db")


def _print_version(asked: bool) -> None:
    if asked:
        from tftune import __version__

        print(f"tftune {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and end.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Tune, train and select kernels that fuse communication into computation on one multi-GPU
    node."""


@app.command()
def search(
    op: Op,
    shapes: Shapes = None,
    on: On = "node",
    target: TargetName = None,
    mode: Modes = "both",
    effort: EffortName = "default",
    budget: Budget = None,
    variant: Variants = None,
    sampler: SamplerName = "mixed",
    seed: Seed = 0,
    pool: Pool = None,
    portfolio: Portfolio = False,
    db: Db = DEFAULT_DB,
    inject: Inject = None,
    gpus: Gpus = None,
    chip: ChipFile = None,
    as_json: Json = False,
) -> None:
    """Find the fastest config of each shape; every trial is stored, and the same command resumes
    after a stop."""
    from tftune.cli.bench_factory import check_worlds, find_target, make_bench, make_drill, seconds
    from tftune.cli.console import Progress, note, print_json, print_table
    from tftune.cli.search_job import fill, find, how_it_went
    from tftune.cli.shapes_file import read_shapes
    from tftune.report import tables

    known = operation(op)
    variants = _known_variants(known, variant or [])
    if portfolio and (given := _search_only(effort, variants, sampler, seed, pool)):
        raise ValueError(
            f"--portfolio measures what was searched, and {given} says how to search; leave it out"
        )
    budget_s = None if budget is None else seconds(budget)
    drill = make_drill(inject, seed, on)
    machine = find_target(on, target, chip, db)
    wanted = read_shapes(known, shapes or [known.main_set], machine.gpus)
    check_worlds(wanted, machine, gpus)
    word = tables.BENCH_WORDS["drill" if drill else on]
    modes = MODES if mode == "both" else (mode,)
    with (
        _open(db, write=True) as store,
        closing(make_bench(on, known, machine, wanted, store, drill, portfolio)) as bench,
    ):
        note(
            f"{op} on {machine.name}, {word}: {len(wanted)} shape{'s' * (len(wanted) > 1)}, mode {mode}, effort {effort}, stored in {db}"
        )
        if on == "model":
            note(f"modelled: {machine.chip.assumptions}")
        options: dict[str, Any] = dict(
            effort=effort,
            budget_s=budget_s,
            sampler=sampler,
            variants=variants,
            seed=seed,
            pool=pool,
        )
        began, earlier = monotonic(), len(store.runs())
        progress = Progress(budget_s)
        if portfolio:
            found, missing = fill(op, wanted, modes, bench, store, progress, budget_s)
        else:
            found, missing = find(op, wanted, modes, bench, store, progress, options), 0
        for line in how_it_went(bench, store, earlier, monotonic() - began):
            note(line)
    if as_json:
        print_json([line.to_dict() for line in found])
    else:
        shown = tables.variants_of(found)
        print_table(
            f"{op} on {machine.name}, {word}",
            tables.head(shown),
            [tables.cells(line, shown) for line in found],
        )
        for sentence in tables.headline(found):
            print(sentence)
    if missing:
        raise ValueError(
            f"{missing:,} pairs of a shape and a config are missing: the budget was too small; the same command goes on"
        )


def _search_only(
    effort: str, variants: tuple[str, ...], sampler: str, seed: int, pool: int | None
) -> str:
    """The options given that only a search has, in words."""
    given = {
        "--effort": effort != "default",
        "--variant": variants,
        "--sampler": sampler != "mixed",
        "--seed": seed,
        "--pool": pool,
    }
    return ", ".join(name for name, value in given.items() if value)


def _known_variants(known: Operation, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        known.space.choices(name)
    return tuple(names)


@app.command()
def train(
    op: Op,
    target: TargetName = None,
    bench: BenchName = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Learn from the rows and judge it on held-out shapes; prints both and writes nothing (export
    writes the artifact)."""
    from tftune.cli.console import print_json
    from tftune.cli.training_job import fit
    from tftune.models.export import pack_mode
    from tftune.report import tables
    from tftune.report.explain import model_text

    found = fit(_source(op, target, bench, db))
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
    for name, mode in found.modes.items():
        data = found.datasets[name]
        print(
            f"{op} on {data.target}, mode {name}: {len(data.shapes)} shapes, {data.rows:,} rows, {word}"
        )
        for model in mode.layouts.values():
            print("\n".join(model_text(model, found.evaluations[name].get(model.title), word)))
        print("\n".join([*(tables.lent_text(op, one) for one in mode.lent.values()), ""]))
    for sentence in tables.assumptions(found.source.bench, found.source.target):
        print(sentence)


@app.command()
def export(
    op: Op,
    target: TargetName = None,
    bench: BenchName = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The artifact to write; default: OP__TARGET.json here.", metavar="PATH"
        ),
    ] = None,
    db: Db = DEFAULT_DB,
) -> None:
    """Train as `train` does, and write the artifact: trees, provenance, held-out report and digest
    in one JSON file."""
    from tftune.cli.training_job import fit, newest_build
    from tftune.models.export import export as write
    from tftune.models.export import provenance
    from tftune.report.tables import BENCH_WORDS, assumptions

    found = fit(_source(op, target, bench, db))
    origin = provenance(found.datasets, found.reports, newest_build(found.source))
    path = write(found.modes, out or Path(f"{op}__{found.source.target}.json"), origin)
    print(
        f"{path}: {op} on {found.source.target}, {BENCH_WORDS[found.source.bench]}, modes {', '.join(found.modes)}, {origin.rows:,} rows"
    )
    for sentence in assumptions(found.source.bench, found.source.target):
        print(sentence)


@app.command()
def report(
    op: Annotated[str | None, typer.Option("--op", help="Only this operation.")] = None,
    target: TargetName = None,
    bench: BenchName = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the pages and their PNGs.", metavar="DIR")
    ] = Path("report"),
    db: Db = DEFAULT_DB,
) -> None:
    """Write a page with figures (HTML, and PNGs beside it) for each operation, target and bench in
    the database."""
    from tftune.cli.bench_factory import named
    from tftune.cli.training_job import modes_or_reasons, sources
    from tftune.report.report import Page, write

    machine = named(target, db).name if target else None
    wanted = (operation(op).name if op else None, machine, bench)
    with _open(db) as store:
        found = sources(store.trials(), store.runs())
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
    for source in chosen:
        page = Page(
            source.op,
            source.target,
            source.bench,
            source.trials,
            source.runs,
            modes_or_reasons(source),
        )
        for path in write(page, out):
            print(path)


for _command in ("select", "explain", "verify", "diff", "doctor"):
    app.command(_command)(getattr(artifact_commands, _command))
for _command in ("audit", "calibrate", "tune"):
    app.command(_command)(getattr(chip_commands, _command))


def _source(op: str, target: str | None, bench: str | None, db: Path) -> Source:
    """The rows of the database that train and export are meant to use."""
    from tftune.cli.training_job import choose, sources

    with _open(db) as store:
        found = sources(store.trials(), store.runs())
    return choose(found, operation(op).name, target, bench, str(db))


@trials_app.command("import")
def import_trials(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL rows to add.")],
    db: Db = DEFAULT_DB,
) -> None:
    """Add the rows of a JSONL file to the database: all of them or none; rows already there are
    passed over."""
    with _open(db, write=True) as store:
        added, there = store.import_rows(file)
    print(f"{file}: {added} trials added to {db}, {there} already there")


@trials_app.command("export")
def export_trials(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSONL file to write; replaced whole.")
    ],
    op: Annotated[str | None, typer.Option("--op", help="Only this operation.")] = None,
    target: TargetName = None,
    bench: BenchName = None,
    mode: Annotated[
        Literal["graph", "eager"] | None, typer.Option("--mode", help="Only this mode.")
    ] = None,
    db: Db = DEFAULT_DB,
) -> None:
    """Write rows of the database, and the runs they belong to, as JSONL."""
    from tftune.cli.bench_factory import named

    op, target = operation(op).name if op else None, named(target, db).name if target else None
    with _open(db) as store:
        count = store.export_rows(file, op=op, target=target, bench=bench, mode=mode)
    print(f"{count} trials written to {file}")


@db_app.command("check")
def check(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Read every row of the database and say what is wrong with it; exit code 1 where something
    is."""
    from tftune.cli.console import print_json
    from tftune.db.lock import DamagedError

    try:
        with _open(db) as store:
            problems = store.check()
    except DamagedError as error:
        problems = [str(error)]
    if as_json:
        print_json({"db": str(db), "sound": not problems, "problems": problems})
    else:
        print("\n".join(problems) or f"{db} is sound")
    raise typer.Exit(1 if problems else 0)


@contextmanager
def _open(path: Path, *, write: bool = False) -> Iterator[Store]:
    from tftune.db.store import Store

    with Store.open(path, write=write) as store:
        yield store


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 with one sentence for wrong input, 130 after Ctrl-C."""
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        code = app(arguments, prog_name="tftune", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except EXPECTED as error:
        if os.environ.get("TFTUNE_DEBUG"):
            raise
        _fail(f"error: {_sentence(error)}", USAGE)
    if code == INTERRUPTED:  # newer typer returns it, older typer raises
        _fail(
            "stopped"
            + "; what finished is stored, and the same command resumes"
            * (arguments[0] == "search"),
            INTERRUPTED,
        )
    sys.exit(code)


def _fail(sentence: str, code: int) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(code)


def _sentence(error: Any) -> str:
    """What an error says, on one line."""
    text = str(error)
    if isinstance(error, UsageError):
        command = error.ctx.command_path if error.ctx else "tftune"
        text = f"{error.format_message().replace('Value error, ', '').rstrip('.')}; see `{command} --help`"
    elif isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}"
    return " ".join(text.split())
