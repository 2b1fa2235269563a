"""BSP against the winner of each shape, recomputed from committed rows: prints a table and a RESULT
line for each mode and set, then how near each winner, as measured, comes to the physical limit, as
computed (limit.py).

usage: python benchmarks/speedup.py [--target h200x8] [--op all_gather_gemm] [--chip CHIP.json]
[--page] [ROWS.jsonl ...]

--page prints what docs/results.md shows between its markers; a test holds the two together. --chip
takes the limit's rates from a machine's own calibration, such as those in db/calibrations/. Files
of rows, such as those that a newer session superseded (db/trials/README.md), take the place of the
target's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import launch
import limit

from tftune.db.calibration_file import calibrated
from tftune.db.committed import FOLDER, files_of, read_trials
from tftune.db.evidence import (
    BspForms,
    is_fused,
    is_surely_faster,
    measurement,
    oldest_first,
    speedup_interval,
)
from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core import grouping
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.report.series import symbol

TARGET = "h200x8"
"""What docs/results.md shows."""


@dataclass(frozen=True)
class Line:
    """One shape in one mode: the best trial of each variant, all of the final stage, measured
    beside the same BSP."""

    shape: Shape
    best: dict[str, Trial]

    @property
    def winner(self) -> Trial:
        return max(self.best.values(), key=speedup)

    @property
    def interval(self) -> tuple[float, float]:
        return speedup_interval(self.winner)

    @property
    def winner_us(self) -> float:
        return self.median_us(self.winner.config.variant)

    def median_us(self, variant: str) -> float:
        """The variant's median; for BSP the one beside the winner: in eager mode it drifts from
        minute to minute, and the ratio is of the same rounds."""
        beside = measurement(self.winner).bsp_samples_us
        own = variant != "bsp" or not beside
        return measurement(self.best[variant]).median_us if own else median(beside)

    @property
    def fused_wins(self) -> bool:
        return is_fused(self.winner.config.variant) and is_surely_faster(self.interval)


def speedup(trial: Trial) -> float:
    """BSP's time over this one's, in the same rounds; 1 for the strongest BSP itself."""
    return measurement(trial).speedup or 1.0


def lines(trials: Iterable[Trial], mode: str, stage: str = "final") -> list[Line]:
    """The final rows of one mode, a line for each shape that has a BSP row. Of rows of the same
    config the newest counts. Final rows beside another form of BSP than the newest final row do
    not: ratios to different forms do not compare."""
    newest: dict[Shape, dict[Config, Trial]] = defaultdict(dict)
    for trial in trials:
        if trial.mode == mode and trial.stage == stage and isinstance(trial.outcome, Measurement):
            newest[trial.shape][trial.config] = trial
    shapes: dict[Shape, dict[str, Trial]] = defaultdict(dict)
    for shape, rows in newest.items():
        forms = BspForms(rows.items())
        form = forms.beside(oldest_first(rows.values())[-1])
        for trial in rows.values():
            if stage == "final" and forms.beside(trial) not in (None, form):
                continue
            best = shapes[shape].get(trial.config.variant)
            if best is None or speedup(trial) > speedup(best):
                shapes[shape][trial.config.variant] = trial
    return [Line(shape, best) for shape, best in sorted(shapes.items()) if "bsp" in best]


def table(rows: list[Line]) -> Iterator[str]:
    """Markdown: microseconds of each variant, medians of the slowest rank; BSP's in the winner's
    own rounds."""
    known = operation(rows[0].shape.op).space.variants
    variants = [name for name in known if any(name in row.best for row in rows)]
    names = limit.varying([row.shape for row in rows])
    head = (*map(symbol, names), *variants, "winner", "BSP / winner (95 % interval)")
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        times = [f"{row.median_us(name):.1f}" if name in row.best else "-" for name in variants]
        variant, (low, high) = row.winner.config.variant, row.interval
        ratio = f"{speedup(row.winner):.2f} ({low:.2f} to {high:.2f})"
        cells = (*times, variant, "1" if variant == "bsp" else ratio)
        yield f"| {limit.sizes(row.shape, names)} | {' | '.join(cells)} |"


def result(rows: list[Line], **names: object) -> str:
    """The RESULT line: geometric means over shapes of BSP / winner and of its lower bound, BSP
    being a winner of 1."""
    geomean = geometric_mean(speedup(row.winner) for row in rows)
    lower = geometric_mean(row.interval[0] for row in rows)
    named = " ".join(f"{name}={value}" for name, value in names.items())
    wins = sum(row.fused_wins for row in rows)
    return (
        f"RESULT speedup {named} geomean={geomean:.3f} lower={lower:.3f} fused_wins={wins} "
        f"shapes={len(rows)}"
    )


def groups(trials: list[Trial]) -> dict[tuple[object, ...], list[Trial]]:
    """Trials by what is held apart in a table: the family of their shapes."""
    return grouping.groups(trials, lambda trial: trial.shape.family)


def read(target: str, op: str = "all_gather_gemm", files: Sequence[Path] = ()) -> list[Trial]:
    """The committed rows of one target and operation that count, or every one of these files,
    oldest first."""
    trials = read_trials(files or files_of(op, target), every=bool(files))
    return oldest_first(trial for trial in trials if (trial.op, trial.target) == (op, target))


def sets(target: str, op: str, trials: list[Trial]) -> Iterator[str]:
    """RESULT lines for each named set, asked with any options, of which every shape has rows of one
    stage, in each mode: of the set, and of each part of it."""
    known, chip = operation(op).module("limit"), Target.parse(target).chip
    for (name, shapes), (mode, stage) in product(
        operation(op).shape_sets.items(), product(("graph", "eager"), ("final", "matrix"))
    ):
        for options in asked(shapes, trials):
            wanted = possible(shapes, Target.parse(target).gpus, options)
            rows = lines([trial for trial in trials if trial.shape in wanted], mode, stage)
            if wanted and {row.shape for row in rows} == wanted:
                named = {"op": op, "target": target, "mode": mode, "set": name, **options}
                named |= {} if stage == "final" else {"stage": stage}
                yield result(rows, **named)
                judged = () if chip.missing(1) else rows
                parts = grouping.groups(judged, lambda row: known.part(row.shape, chip))
                yield from (
                    result(some, **named, part=part) for part, some in parts.items() if part
                )


def asked(
    shapes: Callable[..., tuple[Shape, ...]], trials: Iterable[Trial]
) -> list[dict[str, Any]]:
    """What else a named set can be asked for, such as a dtype: its defaults first, then each
    combination that shapes with rows have."""
    options = signature(shapes).parameters.items()
    defaults = {name: option.default for name, option in options if name != "world"}
    places = {trial.shape for trial in trials}
    measured = {tuple(place.to_dict()[name] for name in defaults) for place in places}
    others = sorted(measured - {tuple(defaults.values())})
    return [defaults, *(dict(zip(defaults, values, strict=True)) for values in others)]


def possible(
    shapes: Callable[..., tuple[Shape, ...]], world: int, options: dict[str, Any]
) -> set[Shape]:
    """The shapes of a set that so many ranks can share."""
    try:
        return set(shapes(world=world, **options))
    except ValueError:
        return set()


def family_report(trials: list[Trial], chip: Chip, rates: str) -> Iterator[str]:
    """The table of a family in each mode, and how near it comes to what these rates allow."""
    op, target, shape = trials[0].op, trials[0].target, trials[0].shape.to_dict()
    open_names = limit.varying([trial.shape for trial in trials])
    names = {name: value for name, value in shape.items() if name not in open_names}
    for mode in ("graph", "eager"):
        if not (rows := lines(trials, mode)):
            continue
        named = {"op": op, "target": target, "mode": mode, **names}
        yield f"\n{op} on {target}, {mode}: {', '.join(f'{k}={v}' for k, v in names.items())}\n"
        yield from table(rows)
        yield result(rows, **named)
        if chip.missing(2):
            yield f"\nno limit is computed: {chip.why_no_model(2)}"
            continue
        shares = limit.shares(((row.shape, row.winner_us) for row in rows), chip)
        allowed = f"what the {rates} rates of {chip.name} allow, computed"
        yield f"\n{allowed}, and the winner, measured; microseconds ({chip.assumptions})\n"
        yield from limit.table(shares)
        yield limit.result(shares, **named)


def main() -> None:
    import results_page  # which asks this module for lines and tables

    parser = launch.parser(__doc__)
    parser.add_argument("--target", default=TARGET)
    parser.add_argument("--op", default="all_gather_gemm", choices=OPS)
    parser.add_argument("--chip", type=Path, help="this machine's, from `tftune calibrate`")
    parser.add_argument("--page", action="store_true", help="only what docs/results.md shows")
    parser.add_argument("rows", nargs="*", type=Path, metavar="ROWS.jsonl",
                        help="files of rows; default: the target's committed ones")  # fmt: skip
    options = parser.parse_args()
    if options.page:
        print(results_page.page())
        return
    target, rates = Target.parse(options.target), "calibrated" if options.chip else "usual"
    chip = (calibrated(target, options.chip) if options.chip else target).chip
    committed = read(options.target, options.op, options.rows)
    if not committed:
        where = ", ".join(map(str, options.rows)) or FOLDER
        parser.error(
            f"no rows of {options.op} are committed for {options.target}, in {where}; "
            "CONTRIBUTING.md says how to measure some"
        )
    for trials in groups(committed).values():
        for text in family_report(trials, chip, rates):
            print(text)
    print("\n" + "\n".join(sets(options.target, options.op, committed)))
    print("\n".join(results_page.engine_results(options.target, options.op)))


if __name__ == "__main__":
    main()
