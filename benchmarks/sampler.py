"""How many configs each sampler tries until one is within 5 % of the best, replayed from rows: a
table for each shape, and a RESULT line.

usage: python benchmarks/sampler.py [--target h200x4] [--mode graph] [--db FILE] [--bench node]
                                    [--least 600] [--seeds 40]

A space is every config of one shape that was measured in one mode, failures included; its best
config is the oracle, by the ratio to BSP in the same rounds. The forms of BSP are tried first,
since ratios need them, and count. Then each arm asks alone:

lfbo        our sampler as a search has it: the analytic model's time is a column beside the knobs
plain       the same without the model
search      lfbo after the opening of a search: default configs and the model's best, which count
warm        the same without the default configs: what the model alone is worth to a search
near_tpe    `--sampler tpe`: Optuna's multivariate TPE, each proposal moved to the nearest config
            that was not tried
random      configs at random, none twice
tpe         stock Optuna: TPESampler with its defaults over the fused variants and their knobs, all
            categorical. A config that breaks a rule is pruned, one that was asked for before is
            answered as before; both count, like any ask. A possible config that has no row is
            answered by the nearest config not tried yet: that the rows are a part of the space
            costs it nothing.

An arm gives up after 320 evaluations. `distinct` is how many configs it measured; `after 80` is the
best of its first 80 evaluations over the oracle. The RESULT line takes the shape that speaks most
against us: the largest figure of lfbo, plain and search, the smallest of the others.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import ceil, inf, log
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median

import launch
import numpy as np
import optuna

from tftune.db.committed import files_of, read_trials
from tftune.db.evidence import (
    BSP,
    completed,
    of_most_measured_code,
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
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.feasible_sampler import suggest
from tftune.tuner.search.opening import likeliest
from tftune.tuner.search.samplers import Proposer

NEAR = 1.05
EARLY, LIMIT = 80, 320
PROCESSES = 2


@dataclass(frozen=True)
class Measured:
    """One shape in one mode: its configs, and the ratio of each to BSP's time, None where it
    failed."""

    shape: Shape
    mode: str
    target: Target
    feasible: Feasible
    ratios: dict[Config, float | None]

    @property
    def bsp(self) -> list[Config]:
        return [config for config in self.ratios if config.variant == BSP]

    @cached_property
    def oracle(self) -> float:
        return min(value for value in self.ratios.values() if value is not None)

    @cached_property
    def good(self) -> set[Config]:
        return {config for config in self.ratios if self.regret(config) <= NEAR}

    def regret(self, config: Config) -> float:
        """Its time over the oracle's; infinite where it failed or is not possible."""
        value = self.ratios.get(config)
        return inf if value is None else value / self.oracle

    def hint(self, configs: Sequence[Config]) -> list[float]:
        """The logarithm of the model's time of each."""
        return [log(predict(self.shape, config, self.mode, self.target.chip)) for config in configs]

    def likely(self) -> list[Config]:
        """What a search tries since the model puts it first."""
        return [c for c in likeliest(tuple(self.ratios), self.hint) if c.variant != BSP]

    def opening(self) -> list[Config]:
        """What a search tries after BSP and before its sampler is asked."""
        space = self.feasible.space
        defaults = map(space.complete, space.defaults(self.shape, self.target.chip))
        tried = dict.fromkeys([*defaults, *self.likely()])
        return [config for config in tried if config in self.ratios and config.variant != BSP]


def ours(
    sampler: str,
    hinted: bool = False,
    opening: Callable[[Measured], list[Config]] = lambda measured: [],
) -> Callable[[Measured, int], Iterator[Config]]:
    """What one of our samplers asks for, through the `Proposer` that a search uses."""

    def asks(measured: Measured, seed: int) -> Iterator[Config]:
        proposer = Proposer(measured.feasible, sampler, seed, measured.hint if hinted else None)
        for config in chain(measured.bsp, opening(measured), iter(proposer.ask, None)):
            yield config
            proposer.tell(config, measured.ratios.get(config))

    return asks


def stock_tpe(measured: Measured, seed: int) -> Iterator[Config]:
    """What the obvious objective asks for under Optuna's default TPE, once BSP is known: see the
    top of this file."""
    yield from measured.bsp
    whole, answered = measured.feasible.space, dict[Config, Config]()
    variants = {name: choices for name, choices in whole.variants.items() if name != BSP}
    fused = replace(whole, variants=variants)
    untried = np.array([config.variant != BSP for config in measured.feasible.configs])
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    while untried.any():
        trial = study.ask()
        config = suggest(trial, fused)
        if fused.why_invalid(measured.shape, config, measured.target.chip):
            yield config
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            continue
        if config not in answered:
            number = measured.feasible.nearest(config, np.flatnonzero(untried))[0]
            untried[number] = False
            answered[config] = measured.feasible.configs[number]
        yield answered[config]
        value, states = measured.ratios[answered[config]], optuna.trial.TrialState
        study.tell(trial, value, state=states.FAIL if value is None else states.COMPLETE)


ARMS = {
    "lfbo": ours("lfbo", hinted=True),
    "plain": ours("lfbo"),
    "search": ours("lfbo", hinted=True, opening=Measured.opening),
    "warm": ours("lfbo", hinted=True, opening=Measured.likely),
    "near_tpe": ours("tpe"),
    "random": ours("random"),
    "tpe": stock_tpe,
}
OURS = ("lfbo", "plain", "search", "warm")


@dataclass(frozen=True)
class Tried:
    """One arm with one seed: evaluations until the first good config, infinite where it gave up."""

    evaluations: float
    distinct: int
    repeated: int
    infeasible: int
    early: float
    """The best of the first `EARLY` evaluations, over the oracle."""
    ms_per_ask: float
    """Processor time of one ask, the answer included."""


def run(arm: str, measured: Measured, seed: int) -> Tried:
    """Ask until a good config is found, or too often."""
    asked: list[Config] = []
    began = time.process_time()
    for config in ARMS[arm](measured, seed):
        asked.append(config)
        if config in measured.good or len(asked) == LIMIT:
            break
    spent = 1000 * (time.process_time() - began) / len(asked)
    possible = [config for config in asked if config in measured.ratios]
    distinct, found = len(set(possible)), asked[-1] in measured.good
    early, repeated = min(map(measured.regret, asked[:EARLY])), len(possible) - distinct
    evaluations, infeasible = len(asked) if found else inf, len(asked) - len(possible)
    return Tried(evaluations, distinct, repeated, infeasible, early, spent)


def spaces(trials: Iterable[Trial], target: Target, mode: str, least: int) -> list[Measured]:
    """Each shape with at least so many possible configs in that mode, by the rows of the search
    stage: of the kernel of each variant that has the most rows there, since a space is of one
    version of it; of two rows of a config the newer counts. Raises ValueError where there is
    none."""
    newest: dict[Shape, dict[Config, Trial]] = defaultdict(dict)
    rows = [row for row in oldest_first(trials) if (row.mode, row.stage) == (mode, "search")]
    for trial in of_most_measured_code(rows):
        newest[trial.shape][trial.config] = trial
    spaces = (space(shape, rows, target, mode) for shape, rows in sorted(newest.items()))
    measured = [one for one in spaces if one]
    if enough := [one for one in measured if len(one.ratios) >= least]:
        return enough
    largest = max((len(one.ratios) for one in measured), default=0)
    raise ValueError(
        f"no shape has {least} configs measured on {target.name} in mode {mode}, the most is "
        f"{largest}; give --least {max(largest, 1)}, "
        "or measure more with `tftune search --effort exhaustive --pool 600`"
    )


def space(shape: Shape, rows: dict[Config, Trial], target: Target, mode: str) -> Measured | None:
    """The configs that still are possible; None where BSP was not measured."""
    known = operation(shape.op).space
    done = {
        trial.config: trial
        for trial in completed(known, rows.values())
        if not known.why_invalid(shape, trial.config, target.chip)
    }
    bsp = strongest_bsp(done.values())
    ratios = {config: time_ratio(done[config], bsp) for config in sorted(done)} if bsp else {}
    return Measured(shape, mode, target, Feasible(known, ratios), ratios) if ratios else None


def read(target: str, op: str, db: str | None, bench: str) -> list[Trial]:
    """The rows of a database, else every committed one."""
    if db:
        with Store.open(Path(db), write=False) as store:
            return store.trials(op=op, target=target, bench=bench)
    return read_trials(files_of(op, target), every=True)


_spaces: list[Measured] = []


def _start(measured: list[Measured]) -> None:
    """What a worker begins with. It inherits the spaces by fork: their rules are functions and
    cannot be sent."""
    import sklearn.ensemble  # noqa: F401  (a second or two, which no ask should count)

    _spaces[:] = measured
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def _work(job: tuple[int, str, int]) -> Tried:
    number, arm, seed = job
    return run(arm, _spaces[number], seed)


def run_all(
    measured: list[Measured], arms: Sequence[str], seeds: int
) -> dict[tuple[int, str], list[Tried]]:
    """The outcomes of every seed, by number of the space and arm."""
    keys = [(number, arm) for number in range(len(measured)) for arm in arms]
    jobs = [(number, arm, seed) for number, arm in keys for seed in range(seeds)]
    with ProcessPoolExecutor(PROCESSES, get_context("fork"), _start, (measured,)) as pool:
        done = list(pool.map(_work, jobs, chunksize=4))
    return {key: done[place * seeds : (place + 1) * seeds] for place, key in enumerate(keys)}


def figure(values: Sequence[float], share: float = 0.5) -> float:
    """The median, or the smallest value that so large a share of all does not exceed."""
    return median(values) if share == 0.5 else sorted(values)[ceil(share * len(values)) - 1]


def shown(value: float) -> str:
    return f">{LIMIT}" if value == inf else f"{value:g}"


def table(outcomes: dict[str, list[Tried]]) -> Iterator[str]:
    """Markdown: evaluations until a good config over seeds, and medians of the rest."""
    middle = ("distinct", "repeated", "infeasible")
    yield f"| arm | median | p95 | gave up | {' | '.join(middle)} | after 80 | ms per ask |"
    yield "|---" * 9 + "|"
    for arm, tried in outcomes.items():
        counts = [one.evaluations for one in tried]
        cells = [arm, shown(figure(counts)), shown(figure(counts, 0.95))]
        cells += [f"{counts.count(inf)} of {len(counts)}"]
        cells += [f"{median(getattr(one, name) for one in tried):g}" for name in middle]
        cells += [f"{median(one.early for one in tried):.2f}"]
        yield f"| {' | '.join(cells)} | {mean(one.ms_per_ask for one in tried):.1f} |"


def result(shapes: Sequence[dict[str, list[Tried]]]) -> dict[str, str]:
    """The figures of the RESULT line: of each arm, those of the shape that speaks most against
    us."""
    figures = {}
    for arm in shapes[0]:
        against = max if arm in OURS else min
        counts = [[one.evaluations for one in shape[arm]] for shape in shapes]
        figures[f"{arm}_median"] = shown(against(map(figure, counts)))
        figures[f"{arm}_p95"] = shown(against(figure(count, 0.95) for count in counts))
    for name in ("repeated", "infeasible"):
        wasted = sum(getattr(one, name) for shape in shapes for one in shape["lfbo"])
        figures[f"lfbo_{name}"] = str(wasted)
    return figures


def main() -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--target", default="h200x4")
    parser.add_argument("--op", default="all_gather_gemm")
    parser.add_argument("--mode", default="graph", choices=MODES)
    parser.add_argument("--db", help="a tftune database; default: the committed rows")
    parser.add_argument("--bench", default="node", help="of the rows of --db")
    parser.add_argument("--least", type=int, default=600, help="configs that a shape must have")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--arm", action="append", choices=ARMS,
                        help="only this arm, and lfbo; repeat for several")  # fmt: skip
    options = parser.parse_args()
    try:
        rows = read(options.target, options.op, options.db, options.bench)
        measured = spaces(rows, Target.parse(options.target), options.mode, options.least)
    except ValueError as error:
        parser.error(str(error))
    arms = [arm for arm in ARMS if not options.arm or arm in ("lfbo", *options.arm)]
    outcomes = run_all(measured, arms, options.seeds)
    shapes = [{arm: outcomes[number, arm] for arm in arms} for number in range(len(measured))]
    for one, tried in zip(measured, shapes, strict=True):
        failed = sum(value is None for value in one.ratios.values())
        print(
            f"\n{one.shape}, {one.mode}: {len(one.ratios)} configs, {failed} of them failed, "
            f"{len(one.good)} within 5 % of the best\n"
        )
        print("\n".join(table(tried)))
    told = f"target={options.target} mode={options.mode} shapes={len(measured)}"
    figures = " ".join(f"{name}={value}" for name, value in result(shapes).items())
    print(f"\nRESULT sampler {told} seeds={options.seeds} {figures}")


if __name__ == "__main__":
    main()
