"""What operands in the symmetric heap gain: the same shapes with operands there and elsewhere.

usage: tftune search all_gather_gemm --shapes heap --db heap.db    # on a node; all_reduce alike
       python benchmarks/heap.py heap.db [--op all_gather_gemm]

A file that ends in .jsonl is read as exported rows. Of each variant the config with the highest
ratio to BSP counts, in each of the two layouts by itself. The gain is the ratio there over the
ratio here, in final rows: BSP does the same work in both layouts, and shared each row's rounds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from tftune.db.evidence import counting, is_current, paired_speedup
from tftune.db.store import Store, read_rows
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.registry import OPS
from tftune.kernels.core.shape import LOCAL, Shape

BEST = "best"
"""Stands for the variant: the fastest of all."""


@dataclass(frozen=True)
class Pair:
    """One variant at one shape: its best rows with local operands and with those on the heap."""

    shape: Shape
    """With local operands."""
    mode: str
    variant: str
    local: Trial
    heap: Trial

    @property
    def gain(self) -> float:
        """The ratio to BSP with operands on the heap over that with local ones."""
        return _ratio(self.heap) / _ratio(self.local)


def pairs(trials: Iterable[Trial]) -> list[Pair]:
    """Every variant and the best of all, at every shape that was measured in both layouts."""
    best: dict[tuple[Shape, str, str], dict[bool, Trial]] = defaultdict(dict)
    for trial in trials:
        if not (isinstance(trial.outcome, Measurement) and paired_speedup(trial.outcome)):
            continue
        if trial.stage == "search" or not is_current(trial):
            continue
        shape = type(trial.shape).from_dict(trial.shape.to_dict() | {"operands": LOCAL})
        for variant in (trial.config.variant, BEST):
            found = best[shape, trial.mode, variant]
            held = found.get(trial.shape.on_heap)
            if held is None or _ratio(trial) > _ratio(held):
                found[trial.shape.on_heap] = trial
    return [
        Pair(*place, found[False], found[True])
        for place, found in sorted(best.items())
        if len(found) == 2
    ]


def _ratio(trial: Trial) -> float:
    assert isinstance(trial.outcome, Measurement)
    found = paired_speedup(trial.outcome)
    assert found is not None
    return found.ratio


def table(found: Iterable[Pair]) -> Iterator[str]:
    """A line for each pair."""
    yield "| shape | mode | variant | local us | heap us | BSP / local | BSP / heap | gain |"
    yield "|---" * 8 + "|"
    for each in found:
        local, heap = each.local.outcome, each.heap.outcome
        assert isinstance(local, Measurement) and isinstance(heap, Measurement)
        yield (
            f"| {each.shape} | {each.mode} | {each.variant} | {local.median_us:.1f} | "
            f"{heap.median_us:.1f} | {_ratio(each.local):.3f} | {_ratio(each.heap):.3f} | "
            f"{each.gain:.3f} |"
        )


def results(op: str, found: Iterable[Pair]) -> Iterator[str]:
    """A RESULT line for each mode and variant: the geometric mean of the gains."""
    gains: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for each in found:
        gains[each.local.target, each.mode, each.variant].append(each.gain)
    for (target, mode, variant), ratios in gains.items():
        geomean = exp(sum(map(log, ratios)) / len(ratios))
        yield (
            f"RESULT heap {op=!s} {target=!s} {mode=!s} {variant=!s} shapes={len(ratios)} "
            f"{geomean=:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path, metavar="DB")
    parser.add_argument("--op", default="all_gather_gemm", choices=OPS)
    options = parser.parse_args()
    try:
        if ".jsonl" in options.rows.suffixes:
            trials = counting(read_rows(options.rows)[1], ())
        else:
            with Store.open(options.rows, write=False) as store:
                trials = store.trials()
    except (OSError, ValueError) as error:
        parser.error(str(error))
    found = pairs(trial for trial in trials if (trial.op, trial.bench) == (options.op, "node"))
    if not found:
        parser.error(
            f"{options.rows} has no shape of {options.op} that was measured with operands on the "
            "heap and elsewhere; run "
            f"`tftune search {options.op} --shapes heap --db {options.rows}`"
        )
    print("\n".join([*table(found), *results(options.op, found)]))


if __name__ == "__main__":
    main()
