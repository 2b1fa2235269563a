"""Which variants win, and which values of their knobs never did, from the committed rows that
count: final and matrix rows of the newest code. The winner of a shape and mode is the config with
the highest ratio to BSP, however near the next one comes.

usage: python benchmarks/wins.py [--op all_gather_gemm]

Prints a table of wins for each target and mode; then, for each variant, knobs with one value, and
values of no winner: of the variant's own best configs, either, behind a colon.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tftune.db.committed import files_of, read_trials, targets
from tftune.db.evidence import completed, of_newest_code
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.space import Config, Space

Best = dict[tuple[object, ...], tuple[float, Config]]


def best(trials: Iterable[Trial], *, of_each_variant: bool = False) -> Best:
    """The config with the highest ratio to BSP of each target, mode and shape, or of each variant
    there, with that ratio."""
    found: Best = {}
    for trial in trials:
        if trial.stage == "search" or not isinstance(trial.outcome, Measurement):
            continue
        key: tuple[object, ...] = (trial.target, trial.mode, trial.shape)
        key += (trial.config.variant,) if of_each_variant else ()
        new = trial.outcome.speedup or 0.0, trial.config
        if key not in found or new[0] > found[key][0]:
            found[key] = new
    return found


def table(space: Space, winners: Best) -> Iterator[str]:
    """Wins of each variant, a line for each target and mode."""
    wins: dict[tuple[object, object], Counter[str]] = defaultdict(Counter)
    for (target, mode, *_), (_, config) in winners.items():
        wins[target, mode][config.variant] += 1
    yield f"| target, mode | shapes | {' | '.join(space.variants)} |"
    yield "|---" * (2 + len(space.variants)) + "|"
    for (target, mode), counts in wins.items():
        cells = [str(counts[variant]) for variant in space.variants]
        yield f"| {target}, {mode} | {counts.total()} | {' | '.join(cells)} |"


def idle(space: Space, winners: Best, own: Best) -> Iterator[str]:
    """Values that no winner has, and behind the colon those that no best config of the variant
    has."""
    won, led = (
        {value for _, config in found.values() for value in _values(config)}
        for found in (winners, own)
    )
    for variant in space.variants:
        for choice in space.choices(variant):
            if len(choice.values) == 1:
                yield f"{variant} {choice.name}: one value, {choice.values[0]}"
                continue
            never, nor = (
                [str(value) for value in choice.values if (variant, choice.name, value) not in some]
                for some in (won, led)
            )
            if never:
                yield f"{variant} {choice.name}: {', '.join(never)}: {', '.join(nor) or 'none'}"


def _values(config: Config) -> Iterator[tuple[str, str, int | str]]:
    return ((config.variant, name, value) for name, value in config.knobs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--op", default="all_gather_gemm", choices=OPS)
    options = parser.parse_args()
    space, rows = operation(options.op).space, list[Trial]()
    for target in targets(options.op):
        rows += completed(space, of_newest_code(read_trials(files_of(options.op, target))))
    winners = best(rows)
    own = best(rows, of_each_variant=True)
    print("\n".join([*table(space, winners), "", *idle(space, winners, own)]))


if __name__ == "__main__":
    main()
