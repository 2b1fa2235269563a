"""Do two searches agree? For each shape and mode their winners and tie sets, and the ratios to BSP
of what both have measured.

usage: python benchmarks/agree.py ONE.db OTHER.db [--target h200x4] [--op all_gather_gemm]

Run two searches into two databases, so that neither knows of the other and their worlds are started
separately. A file that ends in .jsonl is read as exported rows. The searches agree at a place where
their tie sets share a config. Two measurements of a config agree where its two ratios to BSP differ
by no more than 3 %, or than their joint interval: both half-widths in quadrature, as logarithms.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import hypot, log
from pathlib import Path

from tftune.db.evidence import (
    BSP,
    Place,
    concluding,
    counting,
    measurement,
    oldest_first,
    ranking,
    tied,
)
from tftune.db.store import Store, read_rows
from tftune.db.trial import MODES, Measurement, Trial
from tftune.kernels.core.space import Config

NEAR = 1.03
"""Ratios of two worlds may differ by as much, however well each is known."""
Rows = dict[Config, Trial]


@dataclass(frozen=True)
class Winner:
    """The outcome of one search for one shape and mode, by its final rows: the winner, and all that
    it ties with."""

    trial: Trial
    ties: frozenset[Config]

    @property
    def text(self) -> str:
        return (
            f"{self.trial.config.variant} {measurement(self.trial).speedup or 1.0:.3f} (tie of "
            f"{len(self.ties)})"
        )


@dataclass(frozen=True)
class Agreement:
    """Two searches at one place; and of the configs that both measured there, how many there are
    and how many agree."""

    place: Place
    one: Winner
    other: Winner
    configs: int
    within: int

    @property
    def agreed(self) -> bool:
        return bool(self.one.ties & self.other.ties)


def by_place(trials: Iterable[Trial]) -> dict[Place, dict[str, Rows]]:
    """What was measured, by place and stage; of rows of the same config the newest counts."""
    found: dict[Place, dict[str, Rows]] = defaultdict(lambda: {"search": {}, "final": {}})
    for trial in oldest_first(trials):
        if isinstance(trial.outcome, Measurement) and trial.stage in ("search", "final"):
            found[trial.shape, trial.mode][trial.stage][trial.config] = trial
    return found


def winner(stages: dict[str, Rows]) -> Winner | None:
    """The fastest of the final rows that are not older than the search, beside BSP; None where BSP
    has none of them."""
    finals = concluding(stages["final"], stages["search"].values())
    bsp = next((trial for trial in reversed(finals.values()) if trial.config.variant == BSP), None)
    if bsp is None:
        return None
    best = finals[ranking(finals, bsp)[0]]
    return Winner(best, frozenset(config for config, trial in finals.items() if tied(trial, best)))


def agree(one: Trial, other: Trial) -> bool | None:
    """Whether two measurements of a config in two worlds agree in their ratio to BSP; None for BSP
    itself, for rows without rounds beside it, and for rows of two kernels."""
    first, second = measurement(one), measurement(other)
    if (
        one.config.variant == BSP
        or one.revision != other.revision
        or not first.speedup
        or not second.speedup
    ):
        return None
    widths = [
        log(high / low) / 2
        for low, high in (first.speedup_interval or (1, 1), second.speedup_interval or (1, 1))
    ]
    return abs(log(first.speedup / second.speedup)) <= max(log(NEAR), hypot(*widths))


def compare(one: Iterable[Trial], other: Iterable[Trial]) -> Iterator[Agreement]:
    """Every place that both searches brought to an end. Rows are compared with rows of the same
    stage, final ones before others."""
    first, second = by_place(one), by_place(other)
    for place in sorted(
        first.keys() & second.keys(),
        key=lambda place: (MODES.index(place[1]), place[0].family, place[0]),
    ):
        mine, theirs = first[place], second[place]
        verdicts: dict[Config, bool | None] = {}
        for stage in ("search", "final"):
            verdicts |= {
                config: agree(mine[stage][config], theirs[stage][config])
                for config in mine[stage].keys() & theirs[stage].keys()
            }
        known = [verdict for verdict in verdicts.values() if verdict is not None]
        ends = winner(mine), winner(theirs)
        if ends[0] and ends[1]:
            yield Agreement(place, ends[0], ends[1], len(known), sum(known))


def table(found: Iterable[Agreement]) -> Iterator[str]:
    """Markdown: the winner of each search with its speed-up over BSP and the size of its tie
    set."""
    yield "| shape | mode | one | other | agree | configs of both | within |"
    yield "|---" * 7 + "|"
    for each in found:
        said = "yes" if each.agreed else "no"
        yield (
            f"| {each.place[0]} | {each.place[1]} | {each.one.text} | {each.other.text} | "
            f"{said} | {each.configs} | {each.within} |"
        )


def result(found: list[Agreement]) -> str:
    """The RESULT line: places where both searches ended and those that agree; configs that both
    measured and those that agree."""
    places, agreed = len(found), sum(each.agreed for each in found)
    return (
        f"RESULT agree {places=} {agreed=} configs={sum(e.configs for e in found)} "
        f"within={sum(e.within for e in found)}"
    )


def read(path: Path, op: str, target: str | None) -> list[Trial]:
    """The measured rows of a database, or of exported rows."""
    if ".jsonl" in path.suffixes:
        trials = counting(read_rows(path)[1], ())
    else:
        with Store.open(path, write=False) as store:
            trials = store.trials()
    return [
        trial
        for trial in trials
        if (trial.op, trial.bench) == (op, "node") and target in (None, trial.target)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("databases", nargs=2, type=Path, metavar="DB")
    parser.add_argument("--target")
    parser.add_argument("--op", default="all_gather_gemm")
    options = parser.parse_args()
    try:
        found = list(
            compare(*(read(path, options.op, options.target) for path in options.databases))
        )
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print("\n".join(table(found)))
    print(result(found))


if __name__ == "__main__":
    main()
