"""How much time the selector loses on shapes that its training did not see, from the committed rows, beside constant rules.

usage: python benchmarks/regret.py [--target h200x2] [--op all_gather_gemm] [ROWS.jsonl ...]

For each mode: whole families (N, K) held out, then octaves of M, then world sizes where there are several. The RESULT line is of the
families. Nothing is measured here; the answers come through the path that serves them, abstention included.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tftune.db.store import read_rows
from tftune.db.trial import MODES, Trial
from tftune.kernels.registry import OPS
from tftune.models.between import Estimate
from tftune.models.dataset import ORACLE_EVALUATIONS, Dataset, load
from tftune.models.evaluate import Evaluation, Score, evaluate, folds, score_of, splits
from tftune.models.grown import Grown

TRIALS = Path(__file__).resolve().parent.parent / "db" / "trials"
GEOMEAN, P95, WORST, CAPTURED = 1.03, 1.10, 1.15, 0.90
"""The bars, of families held out: ratios to the oracle, and a share of its gain over BSP. No shape may be slower than BSP by 2 %."""


def committed(target: str, op: str) -> list[Path]:
    """The files of the kernels as they are; rows of earlier ones lie in folders beside them."""
    return sorted((TRIALS / target).glob(f"{op}-*.jsonl*"))


def held_out(dataset: Dataset) -> dict[str, Evaluation]:
    """Every way to hold out of which the rows have at least two groups."""
    keys = {name: key for name, (_, key) in splits(dataset).items()}
    return {name: evaluate(dataset, split=name) for name, key in keys.items() if len({key(shape) for shape in dataset.shapes}) > 1}


def table(report: Evaluation) -> Iterator[str]:
    """Markdown: the selector, then the rules from the least regret to the largest."""
    fewest, most = report.oracle_evaluations
    yield f"{report.split}: {report.shapes} shapes in {report.folds} folds; ratios to the oracle, with 95 % bootstrap intervals."
    yield (
        f"The oracle is the best of {fewest} to {most} configs; it is complete (an exhausted space, or {ORACLE_EVALUATIONS} configs) "
        f"at {report.complete_oracles} of {report.shapes} shapes."
    )
    yield "\n| rule | geomean | p95 | worst | at | of the oracle's gain | slower than BSP | unknown |\n|---|---|---|---|---|---|---|---|"
    ranked = sorted(report.rules.items(), key=lambda item: item[1].geomean_regret)
    yield from (_row(name, score) for name, score in [("selector", report.selector), *ranked])


def _row(name: str, score: Score) -> str:
    cells = [
        name, f"{score.geomean_regret:.3f} {_interval(score.geomean_interval)}", f"{score.p95_regret:.3f} {_interval(score.p95_interval)}",
        f"{score.worst_regret:.3f}", score.worst_shape,
        "-" if score.oracle_gain_captured is None else f"{score.oracle_gain_captured:.3f} {_interval(score.captured_interval)}",
        str(score.slower_than_bsp), str(score.unknown),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _interval(interval: tuple[float, float] | None) -> str:
    return f"({interval[0]:.3f} to {interval[1]:.3f})" if interval else ""


def without_tree(dataset: Dataset, split: str) -> Score:
    """What the estimate alone would reach that the tree is grown on, asked for each shape held out: what it costs that one small tree must
    answer for all shapes at once. Nobody serves this: it takes milliseconds, and no measured shape speaks for what it names."""
    judged, picks, groups = set(dataset.matrix or dataset.shapes), {}, []
    for held in folds(dataset, split)[1].values():
        if not (asked := [shape for shape in held if shape in judged]):
            continue
        seen = dataset.only([shape for shape in dataset.shapes if shape not in held])
        configs = Grown(seen).configs
        valid = np.array([[seen.why_invalid(shape, config) is None for config in configs] for shape in asked])
        losses = Estimate(seen).losses(asked, configs, valid)
        for shape, possible, lost in zip(asked, valid, losses, strict=True):
            picks[shape] = configs[int(np.where(possible, lost, np.inf).argmin())]
        groups.append(asked)
    return score_of(dataset, picks, groups)


def missed(report: Evaluation) -> Iterator[str]:
    """A sentence for each bar that the selector does not reach."""
    score = report.selector
    bars = (("geomean", score.geomean_regret, GEOMEAN), ("p95", score.p95_regret, P95), ("worst", score.worst_regret, WORST))
    yield from (f"{name} {value:.3f} is above {bar:.2f}" for name, value, bar in bars if value > bar)
    if score.oracle_gain_captured is not None and score.oracle_gain_captured < CAPTURED:
        yield f"captured {score.oracle_gain_captured:.3f} is below {CAPTURED:.2f}"
    if score.slower_than_bsp or score.unknown:
        yield f"{score.slower_than_bsp} shapes are slower than BSP, and {score.unknown} have no time"
    yield from (f"{name} does better" for name, rule in report.rules.items() if rule.geomean_regret < score.geomean_regret)


def result(dataset: Dataset, report: Evaluation) -> str:
    """The RESULT line: ratios to the oracle, a share and a count."""
    score = report.selector
    captured = "nan" if score.oracle_gain_captured is None else f"{score.oracle_gain_captured:.3f}"
    return (
        f"RESULT regret target={dataset.target} op={dataset.op} mode={dataset.mode} geomean={score.geomean_regret:.3f} "
        f"p95={score.p95_regret:.3f} max={score.worst_regret:.3f} captured={captured} below_bsp={score.slower_than_bsp}"
    )


def judged(trials: Sequence[Trial], op: str, target: str) -> Iterator[str]:
    """The report of each mode that the rows have."""
    for mode in (mode for mode in MODES if any(trial.mode == mode for trial in trials)):
        dataset = load(trials, op, target, mode, "node")
        dataset.refuse_missing()
        reports = held_out(dataset)
        for report in reports.values():
            yield "\n".join([f"\n**{op} on {target}, mode {mode}.** {next(told := table(report))}", *told])
        if "family" in reports:
            yield _row("without a tree", without_tree(dataset, "family"))
            yield "\n" + "\n".join(missed(reports["family"]) or ())
            yield result(dataset, reports["family"])


def rows_of(files: Iterable[Path]) -> list[Trial]:
    """Measured rows; raises ValueError where there are none."""
    found = [trial for path in files for trial in read_rows(path)[1]]
    if not found:
        raise ValueError("no rows are given, and none are committed for this target; see CONTRIBUTING.md for how to measure a grid")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", type=Path, help="JSONL files; default: those committed for the target")
    parser.add_argument("--target", default="h200x2")
    parser.add_argument("--op", default="all_gather_gemm", choices=OPS)
    options = parser.parse_args(arguments)
    try:
        for part in judged(rows_of(options.rows or committed(options.target, options.op)), options.op, options.target):
            print(part, flush=True)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
