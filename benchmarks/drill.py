"""A drill: search the same configs of one small shape twice, cleanly and with faults injected, and
hold the two beside each other.

usage: python benchmarks/drill.py [--world 2] [--trials 100] [--share 0.3] [--seconds 1200] [--keep
FOLDER] [--emulated]

Prints a table and a RESULT line. The exit code is 1 where a fault was not stored under its kind, a
config was lost or failed without a fault, or something is left of the searches. --emulated takes
ranks in host memory: the same protocol without a GPU, and times that mean nothing. --keep leaves
the two databases in a folder, and the same command resumes from them.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median
from typing import NoReturn

import launch
from traces import MARK, left, traces

from tftune.db.evidence import paired_speedup
from tftune.db.target import Target, detect
from tftune.db.trial import MODES, Failure, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200
from tftune.kernels.core.registry import operation, payload_bytes
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.faults import FAULTS, Drill, injected
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import Deadlines, Rounds

OP = "all_gather_gemm"
CLEAN_SHARE, RESERVE_S = 0.2, 40.0
"""The clean search's share of the time; and the seconds that are kept for ending, looking and
comparing."""
NEAR = 0.03


@dataclass(frozen=True)
class Scene:
    """Where a drill is played. A is sharded along M: there BSP has one form only, so that both
    searches have the same baseline."""

    shape: AllGatherGemm
    target: Target
    emulated: bool
    deadlines: Deadlines
    rounds: Rounds

    def bench(self, drill: Drill | None) -> NodeBench:
        return NodeBench(
            self.target, payload_bytes(self.shape), emulated=self.emulated,
            deadlines=self.deadlines, rounds=self.rounds, inject=drill.fault if drill else None,
        )  # fmt: skip

    def configs(self, pool: int) -> tuple[Config, ...]:
        """What a search with this pool tries."""
        from tftune.tuner.search.feasible import Feasible

        space, chip = operation(OP).space, self.target.chip
        defaults = [space.complete(config) for config in space.defaults(self.shape, chip)]
        drawn = Feasible.of(space, self.shape, chip, pool=pool).configs
        return tuple(dict.fromkeys([*drawn, *defaults]))


def node(world: int) -> Scene:
    """GPUs of this machine. Raises ValueError where there are none, or too few."""
    target = detect()
    if world > target.gpus:
        raise ValueError(f"--world {world} is more than the {target.gpus} GPUs of {target.name}")
    shape = AllGatherGemm(64, 1024, 2048, world, shard="m")
    return Scene(shape, target, False, Deadlines(check=8.0), Rounds())


def emulated(world: int) -> Scene:
    """Ranks in host memory. The chip has 16 units, so that few programs communicate: each is
    interpreted, one after another. No config is hopeless, since all are far slower than BSP here,
    and a stopped one has next to no interval."""
    target = Target.of(replace(H200, name="emulated", units=16), world)
    shape = AllGatherGemm(4 * world, 40, 256, world, shard="m")
    return Scene(shape, target, True, Deadlines(check=6.0), Rounds(2, 4, 4, 0.0))


FUSED = ("pull", "staged", "push")


def pool_of(trials: int) -> int:
    """Configs of each fused variant, so that a search in both modes makes so many trials, or few
    more. Copy engines are left out: what they move at once is more than a drill's shapes have."""
    return ceil(trials / (len(MODES) * len(FUSED)))


def make_drill(shape: Shape, configs: Iterable[Config], share: float) -> Drill:
    """The first seed with which the faults befall that share of the fused configs and not one more,
    each fault half of its part or more."""
    fused = [config for config in configs if config.variant != "bsp"]
    shares = tuple((name, share / len(FAULTS)) for name in FAULTS)
    wanted = int(share * len(fused))
    for seed in range(10_000):
        drill = Drill(shares, seed)
        counts = Counter(fault for config in fused if (fault := drill.fault(shape, config)))
        enough = all(2 * len(FAULTS) * counts[name] >= wanted for name in FAULTS)
        if counts.total() == wanted and enough:
            return drill
    raise ValueError(
        f"a share of {share:g} of {len(fused)} configs cannot hold {len(FAULTS)} faults; give "
        "more --trials or --share"
    )


def search(
    scene: Scene, db: Path, pool: int, drill: Drill | None, budget_s: float
) -> tuple[list[Trial], NodeBench]:
    """The rows of the search stage once every config of the pool was tried in both modes, or the
    time was up; and the closed bench."""
    # Not at the top: ranks import this file again, and would wait for what they do not need.
    from tftune.cli.console import Progress, note
    from tftune.db.store import Store
    from tftune.tuner.search.search import search as run

    how = f"with --inject {drill} --seed {drill.seed}" if drill else "without faults"
    note(f"{OP} on {scene.target.name}, {scene.shape}: a search {how}")
    with Store.open(db) as store, closing(scene.bench(drill)) as bench:
        run(
            OP, (scene.shape,), MODES, bench, store, effort="exhaustive", sampler="exhaustive",
            pool=pool, budget_s=budget_s, progress=Progress(budget_s),
        )  # fmt: skip
        return store.trials(bench=bench.name, stage="search"), bench


@dataclass(frozen=True)
class Comparison:
    """A faulty search beside a clean one: what of the clean one's measurements became of each."""

    injected: Counter[str]
    """Trials by the fault that they were to run into."""
    stored: Counter[str]
    """Those of them that failed with the fault's kind, and say that it was injected."""
    lost: list[str]
    failed: list[str]
    """Without a fault."""
    gaps: list[float]
    """For each good fused trial, its ratio to BSP over the clean one's, less 1."""
    agreeing: int
    """How many of them have a ratio that is the clean one's within the joint interval."""
    near: int
    """The same within the larger of `NEAR` and the joint interval: an interval knows the noise of
    one world, not how two worlds differ."""

    @property
    def agree(self) -> float:
        """The share of good fused trials whose ratio is the clean one's within the joint
        interval."""
        return self.agreeing / len(self.gaps) if self.gaps else 0.0

    @property
    def sound(self) -> bool:
        return self.stored == self.injected and not self.lost and not self.failed


def compare(clean: Sequence[Trial], faulty: Sequence[Trial], drill: Drill) -> Comparison:
    """Trial by trial of the clean search; what failed there never came as far as its fault, and is
    left out."""
    outcomes = {(trial.config, trial.mode): trial.outcome for trial in faulty}
    result = Comparison(Counter(), Counter(), [], [], [], 0, 0)
    agreeing = near = 0
    for trial in (trial for trial in clean if isinstance(trial.outcome, Measurement)):
        fault = drill.fault(trial.shape, trial.config)
        outcome = outcomes.get((trial.config, trial.mode))
        failed, named = isinstance(outcome, Failure), f"{trial.config} in mode {trial.mode}"
        result.injected.update([fault] if fault else [])
        if outcome is None:
            result.lost.append(named)
        elif fault:
            fits = failed and outcome.kind == FAULTS[fault].kind and injected(outcome) == fault
            result.stored.update([fault] if fits else [])
        elif failed:
            result.failed.append(f"{named}: {outcome.kind}: {outcome.text}")
        elif trial.config.variant != "bsp":
            faulty_speedup, clean_speedup = map(paired_speedup, (outcome, trial.outcome))
            assert faulty_speedup and clean_speedup
            gap = faulty_speedup.ratio / clean_speedup.ratio - 1
            alike = agree(faulty_speedup, clean_speedup)
            result.gaps.append(gap)
            agreeing += alike
            near += alike or abs(gap) <= NEAR
    return replace(result, agreeing=agreeing, near=near)


def agree(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Whether noise explains why two medians (median, low, high) differ: the joint interval of
    their difference holds 0.

    It is made of the two intervals (MOVER; Zou and Donner 2008, Statistics in Medicine 27:1693),
    and is narrower than an overlap.

    >>> agree((1.0, 0.9, 1.1), (1.13, 1.03, 1.23)), agree((1.0, 0.9, 1.1), (1.15, 1.05, 1.25))
    (True, False)
    """
    (below, _, high), (above, low, _) = sorted((one, other))
    return (above - below) ** 2 <= (high - below) ** 2 + (above - low) ** 2


def report(
    scene: Scene, trials: int, found: Comparison, recoveries_s: Sequence[float], remains: list[str]
) -> Iterator[str]:
    """The table and the RESULT line."""
    yield "| fault | trials that ran into it | stored under its kind | kind |"
    yield "|---|---|---|---|"
    for name, fault in FAULTS.items():
        yield f"| {name} | {found.injected[name]} | {found.stored[name]} | {fault.kind} |"
    gaps = sorted(map(abs, found.gaps)) or [float("nan")]
    yield (
        f"\ngood fused trials: {len(found.gaps)} compared, {found.agreeing} with the clean "
        "ratio to BSP within the joint interval"
    )
    yield f"and {found.near} within the larger of {NEAR:.0%} and that"
    yield f"difference of the ratios: {median(gaps):.2%} median, {gaps[-1]:.2%} worst"
    lists = {"lost": found.lost, "failed without a fault": found.failed, "left": remains}
    for what, names in lists.items():
        yield "\n  ".join([f"{what}: {len(names)}", *names])
    middle, worst = (of(recoveries_s or [float("nan")]) for of in (median, max))
    yield f"recoveries: {len(recoveries_s)}, {middle:.1f} s median, {worst:.1f} s worst"
    yield (
        f"RESULT drill target={scene.target.name} trials={trials} faults={found.injected.total()} "
        f"stored={found.stored.total()} "
        f"agree={found.agree:.3f} near={found.near / max(1, len(found.gaps)):.3f} "
        f"recovery_median_s={middle:.2f} recovery_worst_s={worst:.2f} left={len(remains)}"
    )


def play(scene: Scene, pool: int, share: float, folder: Path, seconds: float) -> bool:
    """Both searches and the report; whether all was well."""
    mark = os.environ[MARK] = f"{os.getpid()}-{time.time_ns()}"
    gpus, until = 0 if scene.emulated else scene.target.gpus, time.monotonic() + seconds - RESERVE_S
    before = traces(mark, os.getpid(), gpus)
    drill = make_drill(scene.shape, scene.configs(pool), share)
    clean_s = CLEAN_SHARE * (until - time.monotonic())
    clean, _ = search(scene, folder / "clean.db", pool, None, clean_s)
    faulty, bench = search(scene, folder / "drill.db", pool, drill, until - time.monotonic())
    comparison, remains = compare(clean, faulty, drill), left(mark, gpus, before)
    print("\n".join(report(scene, len(faulty), comparison, bench.recoveries_s, remains)))
    return comparison.sound and not remains


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Ends this process with a sentence when the time is up: by SystemExit, since a search stores
    an Exception as a trial's result."""

    def stop(*_: object) -> NoReturn:
        raise SystemExit(f"the drill had not ended after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = launch.parser(__doc__)
    parser.add_argument("--world", type=int, default=2)
    add = parser.add_argument
    add("--trials", type=int, default=100, help="about, of each search: fused configs, both modes")
    add("--share", type=float, default=0.3, help="of the fused configs, to run into a fault")
    add("--seconds", type=float, default=1200, help="for everything; then it stops")
    add("--keep", type=Path, help="folder for clean.db and drill.db")
    add("--emulated", action="store_true", help="ranks in host memory instead of GPUs")
    options = parser.parse_args(arguments)
    if options.seconds <= RESERVE_S:
        little = f"--seconds {options.seconds:g} is too little"
        parser.error(f"{little}: {RESERVE_S:g} s of it are for ending and comparing")
    try:
        scene = (emulated if options.emulated else node)(options.world)
    except ValueError as error:
        parser.error(str(error))
    with deadline(options.seconds), tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        well = play(scene, pool_of(options.trials), options.share, folder, options.seconds)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
