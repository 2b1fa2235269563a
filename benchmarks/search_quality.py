"""How near a search of 64 evaluations comes to the best config known: a table of shapes and modes,
and a RESULT line.

usage: python benchmarks/search_quality.py [ROWS.jsonl ...] [--db FILE] [--target h200x2]
                                           [--op all_gather_gemm] [--mode graph]
                                           [--evaluations 64] [--least 160] [--near 1.05]

Rows are those of the files and of the database; without either, the committed ones. Judged is every
shape that was searched long enough, `--least` evaluations of the search stage (`tftune search
--effort thorough` goes on where `--effort default` stopped, with the same database).

ended       the best config among the first evaluations, in the order in which they were committed
best known  the best of all configs that have a row there, of any stage: a longer search, a matrix,
            other tools that store rows
regret      ended over best known. A config's time is its time over BSP's in the same rounds: the
            median over its rows of the final or matrix stage where it has some, since they have
            more rounds, else of the search stage
within      the share of the best known that the search's own bound allowed for: whether regret is
            at most what `tftune search` would have said after those evaluations (see
            tuner/search/bound.py)
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, fsum, inf, log
from pathlib import Path
from statistics import median

import numpy as np

from tftune.db.committed import files_of, read_trials
from tftune.db.evidence import (
    BSP,
    Place,
    completed,
    is_current,
    oldest_first,
    strongest_bsp,
    time_ratio,
)
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import MODES, Trial
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import predict
from tftune.tuner.search.bound import may_be_off_by
from tftune.tuner.search.feasible import Feasible

NOISE = 1.005
"""Two configs whose times differ by less than this are not told apart."""


@dataclass(frozen=True)
class Judged:
    """One shape in one mode: what a search had after so many evaluations, and what is known
    today."""

    shape: Shape
    mode: str
    evaluations: int
    """Of the whole search."""
    known: int
    """Configs with a time there, of any stage."""
    ended: Config
    best: Config
    regret: float
    allowed: float | None
    """What the regret could be by the search's own bound; None where it said nothing."""

    @property
    def held(self) -> bool | None:
        return None if self.allowed is None else self.regret <= self.allowed * NOISE


def values(rows: Sequence[Trial]) -> dict[Config, float]:
    """Time over BSP's time of each config that was measured; empty without BSP."""
    bsp = strongest_bsp(row for row in rows if row.stage == "search")
    found: dict[Config, list[tuple[bool, float]]] = defaultdict(list)
    for row in rows if bsp else ():
        # BSP's own rows of another stage lie beside other rounds: it is the unit of all of them.
        if (
            bsp
            and (row.config.variant != BSP or row.stage == "search")
            and (value := time_ratio(row, bsp))
        ):
            found[row.config].append((row.stage == "search", value))
    return {config: _value(measured) for config, measured in found.items()}


def _value(measured: Sequence[tuple[bool, float]]) -> float:
    again = [value for search, value in measured if not search]
    return median(again or [value for _, value in measured])


def judge(rows: Sequence[Trial], target: Target, evaluations: int, least: int) -> Judged | None:
    """All rows of one shape in one mode; None where it was not searched long enough, or without
    BSP."""
    shape, mode = rows[0].shape, rows[0].mode
    searched = list(
        dict.fromkeys(row.config for row in oldest_first(rows) if row.stage == "search")
    )
    measured = values(rows)
    first = [config for config in searched[:evaluations] if config in measured]
    if len(searched) < least or not first:
        return None
    ended, best = (min(configs, key=measured.__getitem__) for configs in (first, measured))
    allowed = _allowed(measured, searched[:evaluations], shape, mode, target)
    return Judged(
        shape,
        mode,
        len(searched),
        len(measured),
        ended,
        best,
        measured[ended] / measured[best],
        allowed,
    )


def _allowed(
    measured: dict[Config, float], tried: Sequence[Config], shape: Shape, mode: str, target: Target
) -> float | None:
    """The bound after these, of what is known today: the model is the hint, uncorrected."""
    feasible = Feasible(operation(shape.op).space, sorted({*measured, *tried}))

    def hint(configs: Sequence[Config]) -> np.ndarray:
        return np.log([predict(shape, config, mode, target.chip) for config in configs])

    return may_be_off_by(feasible, {config: measured.get(config) for config in tried}, hint)


def current(
    trials: Iterable[Trial], op: str, target: Target, modes: Sequence[str], bench: str
) -> list[Trial]:
    """The rows that count: of this operation, target and bench, of the kernels as they are, configs
    still possible."""
    space = operation(op).space
    mine = (
        t
        for t in trials
        if (t.op, t.target, t.bench) == (op, target.name, bench) and t.mode in modes
    )
    return [
        trial for trial in completed(space, mine)
        if is_current(trial) and space.why_invalid(trial.shape, trial.config, target.chip) is None
    ]  # fmt: skip


def judge_all(
    trials: Iterable[Trial], target: Target, evaluations: int, least: int
) -> list[Judged]:
    """Every shape and mode that was searched long enough. Raises ValueError where there is none."""
    places: dict[Place, list[Trial]] = defaultdict(list)
    for trial in trials:
        places[trial.shape, trial.mode].append(trial)
    found = (
        judge(rows, target, evaluations, least)
        for _, rows in sorted(places.items(), key=lambda item: item[0])
    )
    if judged := [one for one in found if one]:
        return judged
    longest = max(
        (len({row.config for row in rows if row.stage == "search"}) for rows in places.values()),
        default=0,
    )
    raise ValueError(
        f"no shape of {target.name} was searched with {least} evaluations, the longest search has "
        f"{longest}; "
        "run `tftune search --effort thorough` on the same database, or give --least"
    )


def table(judged: Sequence[Judged], near: float) -> Iterator[str]:
    """Markdown."""
    yield (
        "| shape | mode | evaluations | configs known | regret | allowed | ended with | best "
        "known |"
    )
    yield "|---" * 8 + "|"
    for one in judged:
        allowed = "-" if one.allowed is None else f"{one.allowed:.3f}" + " (more)" * (not one.held)
        regret = f"**{one.regret:.3f}**" if one.regret > near else f"{one.regret:.3f}"
        best = "the same" if one.best == one.ended else one.best
        cells = [one.shape, one.mode, one.evaluations, one.known, regret, allowed, one.ended, best]
        yield f"| {' | '.join(map(str, cells))} |"


def result(judged: Sequence[Judged], near: float) -> dict[str, str]:
    """The figures of the RESULT line."""
    regrets, said = (
        [one.regret for one in judged],
        [one.held for one in judged if one.held is not None],
    )
    return {
        "shapes": str(len(judged)),
        "within": str(sum(regret <= near for regret in regrets)),
        "geomean": f"{exp(fsum(map(log, regrets)) / len(regrets)):.3f}",
        "worst": f"{max(regrets, default=inf):.3f}",
        "bound_held": f"{sum(said)}/{len(said)}",
    }


def read(files: Sequence[str], db: str | None, op: str) -> list[Trial]:
    """The rows of these files and of this database, each once; without either, every committed
    one."""
    found = read_trials(map(Path, files), every=True)
    if db:
        with Store.open(Path(db), write=False) as store:
            found += store.trials(op=op)
    if not files and not db:
        found = read_trials(files_of(op), every=True)
    return list({trial.id: trial for trial in found}.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="rows as JSONL, beside those of --db")
    parser.add_argument("--db", help="a tftune database")
    parser.add_argument("--target", default="h200x2")
    parser.add_argument("--op", default="all_gather_gemm")
    parser.add_argument("--mode", choices=MODES, help="default: both")
    parser.add_argument("--bench", default="node", help="of the rows")
    parser.add_argument("--evaluations", type=int, default=64, help="of the search that is judged")
    parser.add_argument(
        "--least", type=int, default=160, help="evaluations of the search that it is judged by"
    )
    parser.add_argument(
        "--near", type=float, default=1.05, help="regret up to which a search counts as near"
    )
    options = parser.parse_args()
    target, modes = Target.parse(options.target), (options.mode,) if options.mode else MODES
    try:
        rows = current(
            read(options.files, options.db, options.op), options.op, target, modes, options.bench
        )
        judged = judge_all(rows, target, options.evaluations, options.least)
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(table(judged, options.near)))
    named = {"target": target.name, "op": options.op} | result(judged, options.near)
    print("\nRESULT search", " ".join(f"{name}={value}" for name, value in named.items()))


if __name__ == "__main__":
    main()
