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
from statistics import median
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
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config

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

    def median_us(self, variant: str) -> float:
        """The variant's median; for BSP the one beside the winner: in eager mode it drifts from
        minute to minute, and the ratio is of the same rounds."""
        beside = measurement(self.winner).bsp_samples_us
        return (
            median(beside)
            if variant == "bsp" and beside
            else measurement(self.best[variant]).median_us
        )

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
    for shape, found in newest.items():
        forms = BspForms(found.items())
        form = forms.beside(oldest_first(found.values())[-1])
        for trial in found.values():
            if stage == "final" and forms.beside(trial) not in (None, form):
                continue
            best = shapes[shape].get(trial.config.variant)
            if best is None or speedup(trial) > speedup(best):
                shapes[shape][trial.config.variant] = trial
    return [Line(shape, best) for shape, best in sorted(shapes.items()) if "bsp" in best]


def table(rows: list[Line]) -> Iterator[str]:
    """Markdown: microseconds of each variant, medians of the slowest rank; BSP's in the winner's
    own rounds."""
    variants = [
        name
        for name in operation(rows[0].shape.op).space.variants
        if any(name in row.best for row in rows)
    ]
    names = limit.varying([row.shape for row in rows])
    yield (
        f"| {' | '.join(map(limit.title, names))} | {' | '.join(variants)} | winner | BSP / "
        "winner (95 % interval) |"
    )
    yield "|---" * (2 + len(names) + len(variants)) + "|"
    for row in rows:
        times = [f"{row.median_us(name):.1f}" if name in row.best else "-" for name in variants]
        low, high = row.interval
        ratio = (
            f"{speedup(row.winner):.2f} ({low:.2f} to {high:.2f})"
            if row.winner.config.variant != "bsp"
            else "1"
        )
        yield (
            f"| {limit.sizes(row.shape, names)} | {' | '.join(times)} | "
            f"{row.winner.config.variant} | {ratio} |"
        )


def result(rows: list[Line], **names: object) -> str:
    """The RESULT line: geometric means over shapes of BSP / winner and of its lower bound, BSP
    being a winner of 1."""
    geomean = limit.geomean([speedup(row.winner) for row in rows])
    lower = limit.geomean([row.interval[0] for row in rows])
    named = " ".join(f"{name}={value}" for name, value in names.items())
    wins = sum(row.fused_wins for row in rows)
    return (
        f"RESULT speedup {named} geomean={geomean:.3f} lower={lower:.3f} fused_wins={wins} "
        f"shapes={len(rows)}"
    )


def groups(trials: list[Trial]) -> dict[tuple[object, ...], list[Trial]]:
    """Trials by what is held apart in a table: the family of their shapes."""
    found: dict[tuple[object, ...], list[Trial]] = defaultdict(list)
    for trial in trials:
        found[trial.shape.family].append(trial)
    return found


def read(target: str, op: str = "all_gather_gemm", files: Sequence[Path] = ()) -> list[Trial]:
    """The committed rows of one target and operation that count, or every one of these files,
    oldest first."""
    trials = read_trials(files or files_of(op, target), every=bool(files))
    return sorted(
        (trial for trial in trials if (trial.op, trial.target) == (op, target)),
        key=lambda trial: trial.created,
    )


def results_page() -> Any:
    """The module of that name, which asks this one for lines and tables."""
    import results_page

    return results_page


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
                named = dict(
                    op=op,
                    target=target,
                    mode=mode,
                    set=name,
                    **options,
                    **({} if stage == "final" else {"stage": stage}),
                )
                yield result(rows, **named)
                known_parts = (known.part(row.shape, chip) for row in rows)
                parts = [] if chip.missing(1) else [part for part in known_parts if part]
                for part in dict.fromkeys(parts):
                    yield result(
                        [row for row in rows if known.part(row.shape, chip) == part],
                        **named,
                        part=part,
                    )


def asked(
    shapes: Callable[..., tuple[Shape, ...]], trials: Iterable[Trial]
) -> list[dict[str, Any]]:
    """What else a named set can be asked for, such as a dtype: its defaults first, then each
    combination that shapes with rows have."""
    defaults = {
        name: option.default
        for name, option in signature(shapes).parameters.items()
        if name != "world"
    }
    measured = {tuple(trial.shape.to_dict()[name] for name in defaults) for trial in trials} - {
        tuple(defaults.values())
    }
    return [defaults, *(dict(zip(defaults, values, strict=True)) for values in sorted(measured))]


def possible(
    shapes: Callable[..., tuple[Shape, ...]], world: int, options: dict[str, Any]
) -> set[Shape]:
    """The shapes of a set that so many ranks can share."""
    try:
        return set(shapes(world=world, **options))
    except ValueError:
        return set()


def main() -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--target", default=TARGET)
    parser.add_argument("--op", default="all_gather_gemm", choices=OPS)
    parser.add_argument(
        "--chip", type=Path, help="the machine's constants, from `tftune calibrate`"
    )
    parser.add_argument("--page", action="store_true", help="only what docs/results.md shows")
    parser.add_argument(
        "rows",
        nargs="*",
        type=Path,
        metavar="ROWS.jsonl",
        help="files of rows; default: the target's committed ones",
    )
    options = parser.parse_args()
    if options.page:
        print(results_page().page())
        return
    target = Target.parse(options.target)
    chip, rates = (
        (calibrated(target, options.chip).chip, "calibrated")
        if options.chip
        else (target.chip, "usual")
    )
    committed = read(options.target, options.op, options.rows)
    if not committed:
        where = ", ".join(map(str, options.rows)) or FOLDER
        parser.error(
            f"no rows of {options.op} are committed for {options.target}, in {where}; "
            "CONTRIBUTING.md says how to measure some"
        )
    for _, trials in groups(committed).items():
        shape = trials[0].shape.to_dict()
        open_names = limit.varying([trial.shape for trial in trials])
        names = {name: value for name, value in shape.items() if name not in open_names}
        for mode in ("graph", "eager"):
            if rows := lines(trials, mode):
                print(
                    f"\n{options.op} on {options.target}, {mode}: "
                    f"{', '.join(f'{k}={v}' for k, v in names.items())}\n"
                )
                print("\n".join(table(rows)))
                print(result(rows, op=options.op, target=options.target, mode=mode, **names))
                if chip.missing(2):
                    print(f"\nno limit is computed: {chip.why_no_model(2)}")
                    continue
                shares = limit.shares(
                    ((row.shape, row.median_us(row.winner.config.variant)) for row in rows), chip
                )
                allowed = f"what the {rates} rates of {chip.name} allow, computed"
                print(f"\n{allowed}, and the winner, measured; microseconds ({chip.assumptions})\n")
                print("\n".join(limit.table(shares)))
                print(
                    limit.result(shares, op=options.op, target=options.target, mode=mode, **names)
                )
    print("\n" + "\n".join(sets(options.target, options.op, committed)))
    print("\n".join(results_page().engine_results(options.target, options.op)))


if __name__ == "__main__":
    main()
