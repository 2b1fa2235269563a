"""The command `tftune search`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from time import monotonic
from typing import Any

from tftune.cli.options import (
    DEFAULT_DB,
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
    open_store,
)
from tftune.db.trial import MODES
from tftune.kernels.core.registry import Operation, operation

COLUMNS = """\
us: median time of one call, of each variant's best config. winner over BSP: how many times as long
BSP, the strongest unfused form, takes. evaluations: configs tried, of those considered. off by: at
95 %, how much longer than the best of those considered the winner may take."""
"""Below the table of a search."""


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

    began, known = monotonic(), operation(op)
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
        open_store(db, write=True) as store,
        closing(make_bench(on, known, machine, wanted, store, drill, portfolio)) as bench,
    ):
        note(
            f"{op} on {machine.name}, {word}: {len(wanted)} shape{'s' * (len(wanted) > 1)}, "
            f"mode {mode}, effort {effort}, stored in {db}"
        )
        if on == "model":
            note(f"modelled: {machine.chip.assumptions}")
        options: dict[str, Any] = dict(
            effort=effort, sampler=sampler, variants=variants, seed=seed, pool=pool
        )
        earlier, progress = len(store.runs()), Progress(budget_s)
        left_s = None if budget_s is None else max(0.0, budget_s - (monotonic() - began))
        if portfolio:
            found, missing = fill(op, wanted, modes, bench, store, progress, left_s)
        else:
            found, missing = find(op, wanted, modes, bench, store, progress, options, left_s), 0
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
        print(COLUMNS)
        named = f"{op} --db {db} --target {machine.name}"
        modelled = " --allow-modelled" if found and found[0].winner.bench == "model" else ""
        note(
            f"next: `tftune export {named} --out a.json`, then "
            f"`tftune select {op} SHAPE --artifact a.json{modelled}`"
        )
    if missing:
        raise ValueError(
            f"{missing:,} pairs of a shape and a config are missing: the budget was too small; "
            "the same command goes on"
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
