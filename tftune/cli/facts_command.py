"""The command `facts`: what the lengths of sequences change about a shape's config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from tftune.cli.console import Progress, note, print_json, print_table
from tftune.cli.options import (
    DEFAULT_DB,
    ArtifactPath,
    Budget,
    Db,
    Json,
    Modes,
    On,
    Op,
    Shapes,
    TargetName,
    modes_of,
    open_store,
)
from tftune.kernels.core.registry import operation

if TYPE_CHECKING:
    from tftune.db.evidence import Place
    from tftune.db.store import Store
    from tftune.db.target import Target
    from tftune.kernels.core.shape import Shape
    from tftune.kernels.core.space import Config
    from tftune.models.artifact import Artifact
    from tftune.models.facts import FactsModel

DEFAULT = "full,uniform/1,uniform/2,zipf/1,zipf/2,one_long/1,one_long/2,chat/1,chat/2"
HEAD = ["held out", "as it is", "K", "G", "best", "cases"]
COLUMNS = """\
us a call, mean over shapes and seeds of a distribution that the trees did not see. as it is: the
config that the shape alone selects. K: the form that it names without facts. G: with facts.
best: the fastest of the forms each time."""
"""Below the table."""


def facts(
    op: Op,
    shapes: Shapes = None,
    lengths: Annotated[
        str, typer.Option("--lengths", metavar="NAMES", help="Distributions with seeds.")
    ] = DEFAULT,
    on: On = "node",
    target: TargetName = None,
    mode: Modes = "graph",
    artifact: ArtifactPath = None,
    budget: Budget = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Measure every form of each shape's config under several distributions of lengths, and learn
    when a rank should follow its own; the same command resumes after a stop."""
    from tftune.cli.search_job import need_all
    from tftune.cli.shapes_file import read_shapes
    from tftune.models.artifact import SHIPPED, read_artifact
    from tftune.models.forms import forms_of
    from tftune.pipeline.bench_factory import check_worlds, find_target, lengths_of, seconds
    from tftune.pipeline.facts_job import learned
    from tftune.report.tables import BENCH_WORDS

    began, known = monotonic(), operation(op)
    forms_of(known.name)
    if on == "replay":
        raise ValueError("--on replay has no rows of every form; give --on node, or --on model")
    names = [text or "full" for text in lengths_of(known, lengths)]
    machine = find_target(on, target, None, db)
    loaded = read_artifact(artifact or SHIPPED / f"{known.name}__{machine}.json")
    if (loaded.op, loaded.target.name) != (known.name, machine.name):
        raise ValueError(
            f"{loaded.path} is of {loaded.op} on {loaded.target}, not of {known.name} on {machine}"
        )
    modes = [each for each in modes_of(mode) if each in loaded.modes]
    asked = read_shapes(known, shapes or [known.main_set], machine.gpus)
    check_worlds(asked, machine, None)
    until = None if budget is None else began + seconds(budget)
    with open_store(db, write=True) as store:
        note(f"{op} on {machine}, {BENCH_WORDS[on]}: {len(asked)} shapes, lengths {lengths}")
        missing = _measure(on, machine, loaded, asked, modes, names, store, until)
        rows = store.trials(op=op, target=machine.name, bench=on, condition=None)
    ragged = [row for row in rows if row.condition.startswith("lengths=")]
    models = {each: learned(loaded, each, ragged) for each in modes}
    if as_json:
        print_json({each: model and model.to_dict() for each, model in models.items()})
    for each, model in () if as_json else models.items():
        _show(each, model, f"{op} on {machine}, mode {each}, {BENCH_WORDS[on]}")
    need_all(missing)
    if not as_json:
        note(f"next: `tftune export {op} --db {db} --target {machine}` puts the trees in")


def _measure(
    on: str,
    machine: Target,
    artifact: Artifact,
    shapes: Sequence[Shape],
    modes: Sequence[str],
    names: Sequence[str],
    store: Store,
    until: float | None,
) -> int:
    """Fill the rows of every distribution; returns how many pairs are missing. Raises ValueError
    where the artifact answers for none of the shapes."""
    from tftune.pipeline.bench_factory import make_bench
    from tftune.tuner.search.matrix_stage import fill_with

    wanted = dict(_wanted(artifact, shapes, modes))
    missing = 0
    for name in names:
        left_s = None if until is None else max(0.0, until - monotonic())
        bench = make_bench(on, operation(artifact.op), machine, shapes, store, None, True, name)
        with closing(bench):
            matrix = fill_with(
                artifact.op, wanted, bench, store, budget_s=left_s, progress=Progress(left_s)
            )
        missing += len(matrix.missing)
    return missing


def _wanted(
    artifact: Artifact, shapes: Sequence[Shape], modes: Sequence[str]
) -> Iterator[tuple[Place, list[Config]]]:
    from tftune.models.selector import Selector
    from tftune.pipeline.facts_job import wanted

    selector = Selector(artifact, allow_modelled=True)
    answered = 0
    for shape in shapes:
        for mode in modes:
            selection = selector.without_facts(shape, mode)
            if selection.source == "fallback":
                note(f"left out: {shape}, mode {mode}: {selection.reason}")
                continue
            answered += 1
            yield (shape, mode), wanted(selector, shape, mode, artifact.target.chip)
    if not answered:
        raise ValueError(
            f"{artifact.path} answers for none of these shapes; run `tftune search {artifact.op}` "
            "and `tftune export` first, and give that file with --artifact"
        )


def _show(mode: str, model: FactsModel | None, title: str) -> None:
    from tftune.models.facts import rules

    if model is None:
        print(f"{title}: rows of too few distributions for trees; name more with --lengths")
        return
    print("\n".join(rules(model)))
    print_table(title, HEAD, list(_cells(model)))
    print(COLUMNS)


def _cells(model: FactsModel) -> Iterator[list[str]]:
    for name, totals in model.held_out.items():
        us = (totals[each] / totals["cases"] for each in ("as_it_is", "known", "told", "best"))
        yield [name, *(f"{each:.2f}" for each in us), str(totals["cases"])]
