"""A search as the command line runs it: the tuner given what the models know, its results as table
lines, and where its time went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from tftune.cli.captured import Part, timed
from tftune.cli.console import Progress, note
from tftune.db.trial import MODES, Trial
from tftune.db.verdict import Best
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.report.tables import Line

if TYPE_CHECKING:
    from tftune.db.store import Store
    from tftune.tuner.bench.benches import Bench


def run(
    op: str,
    parts: Sequence[Part],
    bench: Bench,
    store: Store,
    how: Mapping[str, Any] | None,
    until: float | None,
) -> tuple[list[Line], int]:
    """A search with these options, or the matrix of a portfolio where there are none; how it went
    is said. Returns what was found, and how many pairs of a matrix are missing. `until`: the end of
    its time, of time.monotonic."""
    began = monotonic()
    budget_s = None if until is None else max(0.0, until - began)
    earlier, progress = len(store.runs()), Progress(budget_s)
    if how is None:
        shapes = list(dict.fromkeys(shape for part in parts for shape in part.shapes))
        modes = list(dict.fromkeys(mode for part in parts for mode in part.modes))
        table_lines, missing = fill(op, shapes, modes, bench, store, progress, budget_s)
    else:
        table_lines, missing = [], 0
        for part, left_s in timed(parts, until):
            table_lines += find(op, part.shapes, part.modes, bench, store, progress, how, left_s)
    for line in how_it_went(bench, store, earlier, monotonic() - began):
        note(line)
    return table_lines, missing


def need_all(missing: int) -> None:
    """Raise ValueError where pairs of a matrix are missing."""
    if missing:
        raise ValueError(
            f"{missing:,} pairs of a shape and a config are missing: the budget was too small; "
            "the same command goes on"
        )


def find(
    op: str,
    shapes: Sequence[Shape],
    modes: Sequence[str],
    bench: Bench,
    store: Store,
    progress: Any,
    options: Mapping[str, Any],
    budget_s: float | None = None,
) -> list[Line]:
    """The tuner's search, given the analytic model, where the chip has one, committed rows and the
    shipped artifact for its first proposals. What reading them takes is taken from the budget."""
    from tftune.pipeline.bench_factory import world_of
    from tftune.pipeline.seeds import knowledge
    from tftune.tuner.search.search import search

    off = bench.target.chip.why_no_model(world_of(*shapes))
    if off:
        note(f"without the model's proposals: {off}")
    began = monotonic()
    known = knowledge(op, bench.target, shapes, store, with_model=not off)
    left_s = None if budget_s is None else max(0.0, budget_s - (monotonic() - began))
    more = dict(options, progress=progress, knowledge=known, budget_s=left_s)
    return _lines(search(op, shapes, modes, bench, store, **more))


def fill(
    op: str,
    shapes: Sequence[Shape],
    modes: Sequence[str],
    bench: Bench,
    store: Store,
    progress: Any,
    budget_s: float | None,
) -> tuple[list[Line], int]:
    """The tuner's matrix of a portfolio that the models choose; says what became of its pairs, and
    how many are still missing."""
    from tftune.models.portfolio import cover
    from tftune.tuner.search import matrix_stage as portfolio

    def pick(trials: Sequence[Trial], mode: str) -> tuple[Config, ...]:
        return cover(trials, op, bench.target.name, mode, bench.name)

    matrix = portfolio.fill(
        op, shapes, modes, bench, store, pick, budget_s=budget_s, progress=progress
    )
    for sentence in matrix.sentences():
        note(sentence)
    return _lines(matrix.best), len(matrix.missing)


def _lines(found: Sequence[Best]) -> list[Line]:
    lines = [Line(**vars(best)) for best in found]
    return sorted(lines, key=lambda line: MODES.index(line.mode))


def how_it_went(bench: Bench, store: Store, earlier: int, whole_s: float) -> Iterator[str]:
    """Where the time of a search went; on a node also how many configs a second, and what clocks
    and caches were like. `earlier`: the runs that were stored before it."""
    from tftune.report import run_health as conditions
    from tftune.report import tables

    spent_s = bench.spent_s
    yield tables.shares(spent_s, whole_s)
    if bench.recoveries_s:
        yield tables.recoveries(bench.recoveries_s, bench.starts_s)
    for run in (run for run in store.runs()[earlier:] if run.bench in ("node", "drill")):
        trials = [
            trial for trial in store.trials(bench=run.bench, condition=None) if trial.run == run.id
        ]
        yield tables.throughput(trials, spent_s.get("compile", 0.0), whole_s)
        yield conditions.sentence(run)
