"""The command `tftune search`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tftune.cli.console import note, print_json, print_table
from tftune.cli.options import (
    DEFAULT_DB,
    Budget,
    ChipFile,
    Db,
    Json,
    Lengths,
    Modes,
    On,
    Op,
    Shapes,
    TargetName,
    modes_of,
    open_store,
)
from tftune.kernels.core.registry import Operation, operation

if TYPE_CHECKING:
    from tftune.cli.captured import Part
    from tftune.db.target import Target
    from tftune.report.tables import Line

COLUMNS = """\
us: median time of one call, of each variant's best config. winner over BSP: how many times as long
BSP, the strongest unfused form, takes. evaluations: configs tried, of those considered. off by: at
95 %, how much longer than the best of those considered the winner may take."""
"""Below the table of a search."""
FEW_COLUMNS = """\
us: median time of one call, BSP's and of the best config of any variant. over BSP: how many
times as long BSP, the strongest unfused form, takes. kept: what the discount on modelled
speed-ups leaves. A wider terminal, or a pipe, shows every variant and how many configs were
tried."""
"""Below its short form."""


HOW = ("effort", "sampler", "variant", "seed", "pool")
"""The options that say how to search, in which a portfolio has no part."""


@dataclass(frozen=True)
class SearchOptions:
    """What `tftune search` is asked for."""

    op: Op
    shapes: Shapes = None
    captured: Annotated[
        list[Path] | None,
        typer.Option(
            "--captured",
            metavar="FILE",
            help="In place of --shapes: the shapes of this capture, those with most time at stake "
            "first; repeat for several.",
        ),
    ] = None
    share: Annotated[
        float,
        typer.Option(
            "--share",
            min=0.01,
            max=1.0,
            help="Of the captured time at stake: shapes beyond it are left out.",
        ),
    ] = 0.99
    on: On = "node"
    target: TargetName = None
    mode: Modes = "both"
    effort: Annotated[
        Literal["quick", "default", "thorough", "exhaustive", "scout"],
        typer.Option("--effort", help="Trials for each shape and mode."),
    ] = "default"
    budget: Budget = None
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant", metavar="VARIANT", help="Only this variant, and BSP; repeat for several."
        ),
    ] = None
    sampler: Annotated[
        Literal["mixed", "lfbo", "gp", "tpe", "random", "exhaustive"],
        typer.Option("--sampler", help="How the next config is proposed."),
    ] = "mixed"
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sampler and of --inject.")] = 0
    pool: Annotated[
        int | None,
        typer.Option(
            "--pool",
            min=1,
            help="Consider only this many configs of each variant, and compile all of them before "
            "the first trial.",
        ),
    ] = None
    portfolio: Annotated[
        bool,
        typer.Option(
            "--portfolio",
            help="Measure the configs that cover what was searched, and each shape's best, on "
            "every shape.",
        ),
    ] = False
    lengths: Lengths = "full"
    db: Db = DEFAULT_DB
    inject: Annotated[
        str | None,
        typer.Option(
            "--inject",
            metavar="FAULTS",
            help="A drill: faults on purpose, as in hang=0.1,crash=0.05, the probability for each "
            "config.",
        ),
    ] = None
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, help="Use at most this many GPUs.")
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Deal the shapes to the nodes of this Ray cluster, such as auto or "
            "ray://head:10001; each is searched alone.",
        ),
    ] = None
    chip: ChipFile = None
    as_json: Json = False

    def given(self, names: Sequence[str]) -> str:
        """Those of some options whose value is not their default, as a command line has them."""
        return ", ".join(
            f"--{name}" for name in names if getattr(self, name) != getattr(SearchOptions, name)
        )


def search(asked: SearchOptions) -> None:
    """Find the fastest config of each shape; every trial is stored, and the same command resumes
    after a stop."""
    from tftune.cli.ray_nodes import over_nodes
    from tftune.cli.search_job import need_all, run
    from tftune.pipeline.bench_factory import (
        check_worlds,
        find_target,
        lengths_of,
        make_bench,
        make_drill,
        seconds,
    )  # fmt: skip
    from tftune.report.tables import BENCH_WORDS

    began, known, on, db = monotonic(), operation(asked.op), asked.on, asked.db
    conditions = lengths_of(known, asked.lengths)
    for name in asked.variant or ():
        known.space.choices(name)  # refuses one that there is not
    how = {name: getattr(asked, name) for name in ("effort", "sampler", "seed", "pool")}
    how["variants"] = tuple(asked.variant or ())
    if asked.portfolio and (given := asked.given(HOW)):
        raise ValueError(
            f"--portfolio measures what was searched, and {given} says how to search; leave it out"
        )
    until = None if asked.budget is None else began + seconds(asked.budget)
    drill = make_drill(asked.inject, asked.seed, on)
    if asked.ray:
        _refuse_what_is_of_one_node(asked)
    machine = find_target(
        "model" if asked.ray and asked.target else on, asked.target, asked.chip, db
    )
    title = f"{known.name} on {machine.name}, {BENCH_WORDS['drill' if drill else on]}"
    parts = _parts(asked, known, machine)
    wanted = list(dict.fromkeys(shape for part in parts for shape in part.shapes))
    check_worlds(wanted, machine, asked.gpus)
    tables: list[tuple[str, list[Line]]] = []
    missing = 0
    count = f"{len(wanted)} shape{'s' * (len(wanted) > 1)}"
    plan = f"{count}, mode {asked.mode}, effort {asked.effort}, stored in {db}"
    with open_store(db, write=True) as store:
        if asked.ray:
            note(f"{title}: {plan}")
            lines = over_nodes(asked.ray, known.name, on, machine, parts, store, how, until)
            tables.append((title, lines))
        for text in () if asked.ray else conditions:
            named = f"{title}, lengths={text}" if text else title
            bench = make_bench(on, known, machine, wanted, store, drill, asked.portfolio, text)
            note(f"{named}: {plan}")
            if on == "model":
                note(f"modelled: {machine.chip.assumptions}")
            with closing(bench):
                options = None if asked.portfolio else how
                lines, left = run(known.name, parts, bench, store, options, until)
            tables.append((named, lines))
            missing += left
    if asked.as_json:
        print_json([line.to_dict() for _, lines in tables for line in lines])
    for named, lines in () if asked.as_json else tables:
        _show(lines, named, machine.name, db)
    need_all(missing)


def _refuse_what_is_of_one_node(asked: SearchOptions) -> None:
    """Raises ValueError naming the options given that a search over nodes does not have, and
    ModuleNotFoundError without Ray."""
    if given := asked.given(("portfolio", "inject", "chip", "lengths")):
        raise ValueError(f"--ray searches on many nodes, and {given} is of one; leave it out")
    if find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")


def _parts(asked: SearchOptions, known: Operation, machine: Target) -> list[Part]:
    """What is searched: the shapes that are named, or captured ones; what is at stake there is said
    on stderr."""
    from tftune.cli.captured import Part, parts, sentences, stakes
    from tftune.cli.shapes_file import read_shapes

    modes = modes_of(asked.mode)
    if not asked.captured:
        named = read_shapes(known, asked.shapes or [known.searched_set], machine.gpus)
        return [Part(modes, tuple(named), 1.0)]
    if asked.shapes:
        raise ValueError("--captured names the shapes, and so does --shapes; leave one out")
    at_stake = stakes(asked.captured, known.name, machine, asked.db)
    if not (taken := parts(at_stake, asked.share, modes)):
        raise ValueError(f"nothing of {known.name} was captured in mode {modes[0]}; see --mode")
    for sentence in sentences(at_stake, taken):
        note(sentence)
    return taken


def _show(found: Sequence[Line], title: str, target: str, db: Path) -> None:
    """The table of a search, what it comes to, what its columns mean, and the commands that make
    answers of it."""
    from tftune.report import tables

    shown = tables.variants_of(found)
    rows = [tables.cells(line, shown) for line in found]
    whole = print_table(title, tables.head(shown), rows, tables.compact(found))
    for sentence in tables.headline(found):
        print(sentence)
    print(COLUMNS if whole else FEW_COLUMNS)
    if found:
        shape, op = found[0].shape, found[0].shape.op
        modelled = " --allow-modelled" if found[0].winner.bench == "model" else ""
        out = f"{op}__{target}.json"
        note(
            f"next: `tftune export {op} --db {db} --target {target} --out {out}`, then "
            f"`tftune select {op} {shape} --artifact {out}{modelled}`"
        )
