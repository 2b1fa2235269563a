"""How much time the selector loses on shapes that its training did not see, from the committed
rows, beside constant rules.

usage: python benchmarks/regret.py [--target h200x2] [--op all_gather_gemm] [--layout
dtype=bf16,shard=m] [ROWS.jsonl ...]

For each mode, and each layout with enough shapes, three ways to hold shapes out: their family and
their size at once, whole families (as N and K), and sizes (as M). `RESULT regret_any` is of the
first, `RESULT regret` of the second. Nothing is measured here; the answers come through the path
that serves them, abstention included.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import launch

from tftune.db.committed import files_of, read_files
from tftune.db.trial import Run, Trial
from tftune.kernels.core.registry import OPS, operation
from tftune.models.dataset import ORACLE_EVALUATIONS, Dataset, load
from tftune.models.evaluate import Each, Evaluation, Score, evaluate, splits
from tftune.models.layout import LayoutModel, layout_text
from tftune.models.tree.trainer import train_layout
from tftune.pipeline.training_job import MANY, Source, _sharing, choose, sources

GEOMEAN, P95, WORST, CAPTURED = 1.04, 1.12, 1.25, 0.90
"""The bars, of family and size held out at once: ratios to the oracle, and a share of its gain over
BSP. No shape may be slower than BSP by 2 %."""
RESULTS = {"any": "regret_any", "family": "regret"}
"""The name of the RESULT line of a split."""


def wanted(op: str, text: str) -> dict[str, str]:
    """The fields of `--layout`; raises ValueError for one that no layout has."""
    known = operation(op).shape.LAYOUT
    pairs = [part.partition("=") for part in text.split(",") if part]
    if unknown := [name for name, equals, _ in pairs if name not in known or not equals]:
        raise ValueError(
            f"--layout names {unknown[0]!r}; write field=value, with fields of {', '.join(known)}"
        )
    return {name: value for name, _, value in pairs}


def layouts(dataset: Dataset, fields: Mapping[str, str]) -> dict[str, Dataset]:
    """The rows of each layout with these values, those with most shapes first."""
    named = operation(dataset.op).shape.named
    parts = {
        layout_text(dataset.op, layout): part
        for layout, part in dataset.by_layout().items()
        if fields.items() <= named(list(map(str, layout))).items()
    }
    if not parts:
        there = "; ".join(layout_text(dataset.op, layout) for layout in dataset.by_layout())
        asked = ",".join(f"{name}={value}" for name, value in fields.items())
        raise ValueError(f"no layout has {asked}; there are {there}")
    return parts


def held_out(
    dataset: Dataset, each: Each = map, train: Callable[[Dataset], LayoutModel] = train_layout
) -> dict[str, Evaluation]:
    """The evaluation of each split, of a layout with enough shapes to hold out family and size at
    once; else empty."""
    first = evaluate(dataset, train, "any", each)
    if first is None:
        return {}
    others = {
        name: evaluate(dataset, train, name, each) for name in splits(dataset) if name != "any"
    }
    return {"any": first} | {name: report for name, report in others.items() if report is not None}


def table(report: Evaluation) -> Iterator[str]:
    """Markdown: the selector, then the rules from the least regret to the largest."""
    fewest, most = report.oracle_evaluations
    yield (
        f"{report.split}: {report.shapes} shapes in {report.folds} folds; ratios to the oracle, "
        "with 95 % bootstrap intervals."
    )
    yield (
        f"The oracle is the best of {fewest} to {most} configs; it is complete (an exhausted "
        f"space, or {ORACLE_EVALUATIONS} configs) "
        f"at {report.complete_oracles} of {report.shapes} shapes."
    )
    yield (
        "\n| rule | geomean | p95 | worst | at | of the oracle's gain | slower than BSP | "
        "unknown |\n|---|---|---|---|---|---|---|---|"
    )
    ranked = sorted(report.rules.items(), key=lambda item: item[1].geomean_regret)
    yield from (_row(name, score) for name, score in [("selector", report.selector), *ranked])


def _row(name: str, score: Score) -> str:
    cells = [
        name, f"{score.geomean_regret:.3f} {_interval(score.geomean_interval)}",
        f"{score.p95_regret:.3f} {_interval(score.p95_interval)}",
        f"{score.worst_regret:.3f}", score.worst_shape,
        "-" if (captured := score.oracle_gain_captured) is None
        else f"{captured:.3f} {_interval(score.captured_interval)}",
        str(score.slower_than_bsp), str(score.unknown),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _interval(interval: tuple[float, float] | None) -> str:
    return f"({interval[0]:.3f} to {interval[1]:.3f})" if interval else ""


def missed(report: Evaluation) -> Iterator[str]:
    """A sentence for each bar that the selector does not reach, and for each rule that loses less
    and has no fewer times."""
    score = report.selector
    bars = {"geomean": GEOMEAN, "p95": P95, "worst": WORST}
    for name, bar in bars.items():
        if (value := getattr(score, f"{name}_regret")) > bar:
            yield f"{name} {value:.3f} is above {bar:.2f}"
    if score.oracle_gain_captured is not None and score.oracle_gain_captured < CAPTURED:
        yield f"captured {score.oracle_gain_captured:.3f} is below {CAPTURED:.2f}"
    if score.slower_than_bsp or score.unknown:
        slower = f"{score.slower_than_bsp} shapes are slower than BSP"
        yield f"{slower}, and {score.unknown} have no time"
    for name, rule in report.rules.items():
        if rule.geomean_regret < score.geomean_regret and rule.unknown <= score.unknown:
            yield f"{name} does better"


def result(dataset: Dataset, split: str, report: Evaluation) -> str:
    """The RESULT line: ratios to the oracle, a share and a count."""
    score, layout = report.selector, layout_text(dataset.op, dataset.shapes[0].layout)
    captured = "nan" if score.oracle_gain_captured is None else f"{score.oracle_gain_captured:.3f}"
    return (
        f"RESULT {RESULTS[split]} target={dataset.target} op={dataset.op} mode={dataset.mode} "
        f"layout={layout} "
        f"geomean={score.geomean_regret:.3f} p95={score.p95_regret:.3f} "
        f"max={score.worst_regret:.3f} captured={captured} "
        f"below_bsp={score.slower_than_bsp}"
    )


def judged(source: Source, fields: Mapping[str, str], each: Each = map) -> Iterator[str]:
    """The report of each mode that the rows have, and of each layout with enough shapes."""
    for mode in source.modes:
        rows = load(source.current, source.op, source.target, mode, source.bench)
        for title, part in layouts(rows, fields).items():
            named = f"{source.op} on {source.target}, mode {mode}, {title}"
            reports = held_out(part, each)
            if not reports:
                yield f"\n{named}: {len(part.shapes)} shapes are too few to hold any out"
                continue
            yield f"\n**{named}.**"
            yield from ("\n" + "\n".join(table(report)) for report in reports.values())
            yield "\n" + "\n".join(missed(reports["any"]))
            yield from (
                result(part, split, reports[split]) for split in RESULTS if split in reports
            )


def rows_of(files: Iterable[Path]) -> tuple[list[Trial], list[Run]]:
    """Measured rows, and the runs that they are of; raises ValueError where there are none."""
    read, trials = read_files(files)
    runs = {run.id: run for run in read}
    if not trials:
        raise ValueError(
            "no rows are given, and none are committed for this target; see CONTRIBUTING.md for "
            "how to measure a grid"
        )
    return trials, sorted(runs.values(), key=lambda run: run.started)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = launch.parser(__doc__)
    add = parser.add_argument
    add("rows", nargs="*", type=Path, help="JSONL files; default: those committed for the target")
    add("--target", default="h200x2")
    add("--op", default="all_gather_gemm", choices=OPS)
    add("--layout", default="", help="only layouts with these values, as in dtype=bf16,shard=m")
    options = parser.parse_args(arguments)
    try:
        fields = wanted(options.op, options.layout)
        trials, runs = rows_of(options.rows or files_of(options.op, options.target))
        source = choose(sources(trials, runs), options.op, options.target, "node", "what is given")
        many = len({trial.shape for trial in source.current}) >= MANY
        with _sharing() if many else nullcontext(map) as each:
            for part in judged(source, fields, each):
                print(part, flush=True)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
