"""The command `tftune search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from tftune.cli.options import (
    DEFAULT_DB,
    Budget,
    Captured,
    ChipFile,
    Db,
    EffortName,
    Gpus,
    Inject,
    Json,
    Lengths,
    Modes,
    On,
    Op,
    Pool,
    Portfolio,
    Ray,
    SamplerName,
    Seed,
    Shapes,
    Share,
    TargetName,
    Variants,
    open_store,
)
from tftune.db.trial import MODES
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


def search(
    op: Op,
    shapes: Shapes = None,
    captured: Captured = None,
    share: Share = 0.99,
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
    lengths: Lengths = "full",
    db: Db = DEFAULT_DB,
    inject: Inject = None,
    gpus: Gpus = None,
    ray: Ray = None,
    chip: ChipFile = None,
    as_json: Json = False,
) -> None:
    """Find the fastest config of each shape; every trial is stored, and the same command resumes
    after a stop."""
    from tftune.cli.console import note, print_json
    from tftune.cli.ray_nodes import over_nodes
    from tftune.cli.search_job import run
    from tftune.pipeline.bench_factory import (
        check_worlds,
        find_target,
        lengths_of,
        make_bench,
        make_drill,
        seconds,
    )  # fmt: skip
    from tftune.report.tables import BENCH_WORDS

    began, known = monotonic(), operation(op)
    conditions = lengths_of(known, lengths)
    variants = _known_variants(known, variant or [])
    how = dict(effort=effort, sampler=sampler, variants=variants, seed=seed, pool=pool)
    if portfolio:
        _refuse_more_than_portfolio(how)
    until = None if budget is None else began + seconds(budget)
    drill = make_drill(inject, seed, on)
    if ray:
        _refuse_what_is_of_one_node(portfolio, inject, chip, lengths)
    machine = find_target("model" if ray and target else on, target, chip, db)
    title = f"{op} on {machine.name}, {BENCH_WORDS['drill' if drill else on]}"
    modes = MODES if mode == "both" else (mode,)
    parts = _parts(known, shapes, captured, share, machine, modes, db)
    wanted = list(dict.fromkeys(shape for part in parts for shape in part.shapes))
    check_worlds(wanted, machine, gpus)
    tables: list[tuple[str, list[Line]]] = []
    missing = 0
    with ExitStack() as stack:
        store = stack.enter_context(open_store(db, write=True))
        plan = f"{_count(wanted)}, mode {mode}, effort {effort}, stored in {db}"
        if ray:
            note(f"{title}: {plan}")
            tables.append((title, over_nodes(ray, op, on, machine, parts, store, how, until)))
        for text in () if ray else conditions:
            named = f"{title}, lengths={text}" if text else title
            bench = make_bench(on, known, machine, wanted, store, drill, portfolio, text)
            note(f"{named}: {plan}")
            if on == "model":
                note(f"modelled: {machine.chip.assumptions}")
            with closing(bench):
                found, left = run(op, parts, bench, store, None if portfolio else how, until)
            tables.append((named, found))
            missing += left
    if as_json:
        print_json([line.to_dict() for _, found in tables for line in found])
    for named, found in () if as_json else tables:
        _show(found, named, machine.name, db)
    if missing:
        raise ValueError(
            f"{missing:,} pairs of a shape and a config are missing: the budget was too small; "
            "the same command goes on"
        )


def _refuse_what_is_of_one_node(
    portfolio: bool, inject: str | None, chip: Path | None, lengths: str
) -> None:
    """Raises ValueError naming the options given that a search over nodes does not have, and
    ModuleNotFoundError without Ray."""
    ragged = lengths != "full"
    options = {
        "--portfolio": portfolio, "--inject": inject, "--chip": chip, "--lengths": ragged,
    }  # fmt: skip
    if given := [name for name, value in options.items() if value]:
        raise ValueError(
            f"--ray searches on many nodes, and {', '.join(given)} is of one; leave it out"
        )
    if find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")


def _parts(
    known: Operation,
    shapes: Sequence[str] | None,
    captured: Sequence[Path] | None,
    share: float,
    machine: Target,
    modes: Sequence[str],
    db: Path,
) -> list[Part]:
    """What is searched: the shapes that are named, or captured ones; what is at stake there is said
    on stderr."""
    from tftune.cli.captured import Part, parts, sentences, stakes
    from tftune.cli.console import note
    from tftune.cli.shapes_file import read_shapes

    if not captured:
        named = read_shapes(known, shapes or [known.searched_set], machine.gpus)
        return [Part(tuple(modes), tuple(named), 1.0)]
    if shapes:
        raise ValueError("--captured names the shapes, and so does --shapes; leave one out")
    found = stakes(captured, known.name, machine, db)
    if not (taken := parts(found, share, modes)):
        raise ValueError(f"nothing of {known.name} was captured in mode {modes[0]}; see --mode")
    for sentence in sentences(found, taken):
        note(sentence)
    return taken


def _count(shapes: Sequence[Any]) -> str:
    return f"{len(shapes)} shape{'s' * (len(shapes) > 1)}"


def _show(found: Sequence[Line], title: str, target: str, db: Path) -> None:
    """The table of a search, what it comes to, what its columns mean, and the commands that make
    answers of it."""
    from tftune.cli.console import note, print_table
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


def _refuse_more_than_portfolio(how: Mapping[str, Any]) -> None:
    """Raises ValueError naming the options given that only a search has."""
    usual = dict(effort="default", sampler="mixed", variants=(), seed=0, pool=None)
    words = {"variants": "variant"}
    given = [f"--{words.get(name, name)}" for name, value in how.items() if value != usual[name]]
    if given:
        raise ValueError(
            f"--portfolio measures what was searched, and {', '.join(given)} says how to search; "
            "leave it out"
        )


def _known_variants(known: Operation, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        known.space.choices(name)
    return tuple(names)
