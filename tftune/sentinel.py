"""Watch a node: a few leaves are measured on a schedule, and a time that has moved is a finding.

Each check is rows of stage `watch`, of the config and of the form of BSP beside it. They say how
the node changes, so training and tables leave them out. The test is in db/drift.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tftune.db import target as machine
from tftune.db.drift import BASELINE, Judged, judge
from tftune.db.findings import Finding, Series, add, findings
from tftune.db.store import Store
from tftune.db.trial import Measurement, Outcome, Run, Trial, now
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact
from tftune.tuner.bench.benches import Bench
from tftune.verify import Sample, changes, check, samples


@dataclass(frozen=True)
class Leaf:
    """One watched config of a shape, and what its checks say."""

    series: Series
    us: float
    """The newest check's median."""
    judged: Judged

    def sentence(self) -> str:
        """How it stands, for a person."""
        name = f"{self.series.shape}, {self.series.mode}, {variant(self.series)}: {self.us:,.1f} us"
        if self.judged.learned < BASELINE:
            return f"{name}; check {self.judged.learned} of the {BASELINE} that make its baseline"
        change = self.us / self.judged.baseline_us - 1
        spread = f"whose checks vary by {self.judged.spread:.1%}"
        said = f"{name}, {change:+.1%} to its baseline, {spread}"
        return f"{said}: 5 % may take more than 10 checks" if self.judged.too_noisy else said


def variant(series: Series) -> str:
    """The variant of its config, for tables."""
    return str(json.loads(series.config)["variant"])


def watched(artifact: Artifact, count: int) -> list[Sample]:
    """The leaves that are watched: of mode graph where there are some, since eager times vary by
    more than what is looked for."""
    every = samples(artifact, 4 * count)
    return [sample for sample in every if sample.mode == "graph"][:count] or every[:count]


def measure(picked: Sequence[Sample], bench: Bench, db: Path) -> int:
    """Measure the leaves once and store their rows under a run of their own; returns how many have
    a time. The database is locked only while rows are written."""
    outcomes: list[tuple[Sample, Config, Outcome]] = []
    started = now()
    check(picked, bench, told=lambda *found: outcomes.append(found))
    target = bench.target.name
    build, clocks = machine.build(), bench.conditions()
    run = Run(uuid4().hex[:12], target, bench.name, build, started, clocks)
    with Store.open(db) as store:
        store.add_run(run)
        for sample, config, outcome in outcomes:
            code = installed(sample.shape.op, config.variant)
            place = (sample.shape, config, sample.mode, target, bench.name, run.id, code)
            store.add_trial(Trial(*place, outcome, "watch", now()))
    return sum(isinstance(outcome, Measurement) for _, _, outcome in outcomes)


def look(op: str, target: str, db: Path) -> tuple[list[Leaf], list[Finding]]:
    """How every watched leaf stands, and the findings opened now.

    A leaf with a finding that is not closed is not judged; one whose finding was closed begins a
    new baseline there.
    """
    with Store.open(db) as store:
        builds = {run.id: run.build for run in store.runs()}
        ended, waiting = _past(findings(store))
        leaves, opened = [], []
        rows = store.trials(op=op, target=target, stage="watch")
        rows.sort(key=lambda trial: trial.created)  # rows of another node may be imported later
        for series, trials in groups(rows, Series.of).items():
            trials = [trial for trial in trials if trial.created > ended.get(series, "")]
            outcomes = [(trial, trial.outcome) for trial in trials]
            times = [(t, each.median_us) for t, each in outcomes if isinstance(each, Measurement)]
            if not times:
                continue
            judged = judge(us for _, us in times)
            leaves.append(Leaf(series, times[-1][1], judged))
            if judged.moved is not None and series not in waiting:
                first, last = times[0][0], times[-1][0]
                text = _said(series, judged, builds[first.run], builds[last.run])
                finding = Finding.new(series, judged.moved, last.created, text)
                if add(store, finding):
                    opened.append(finding)
    return leaves, opened


def watch(
    measure_once: Callable[[], object],
    look_once: Callable[[], tuple[list[Leaf], list[Finding]]],
    *,
    interval_s: float,
    count: int,
    told: Callable[[list[Leaf], list[Finding]], None],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> int:
    """Check, and check again: one begins every `interval_s`, or at once where the one before took
    longer; `count` checks, or for ever where it is 0. Returns how many findings were opened."""
    done = finding_count = 0
    while True:
        began = clock()
        measure_once()
        leaves, opened = look_once()
        told(leaves, opened)
        done, finding_count = done + 1, finding_count + len(opened)
        if done == count:
            return finding_count
        sleep(max(0.0, began + interval_s - clock()))


def _past(every: Iterable[Finding]) -> tuple[dict[Series, str], set[Series]]:
    """When the last finding of each leaf was closed, and the leaves with one that is not."""
    ended, waiting = dict[Series, str](), set[Series]()
    for finding in every:
        if finding.state == "closed":
            ended[finding.series] = max(finding.changed, ended.get(finding.series, ""))
        else:
            waiting.add(finding.series)
    return ended, waiting


def _said(
    series: Series, judged: Judged, before: Mapping[str, str], after: Mapping[str, str]
) -> str:
    """What happened, in words; what else has changed is the first suspect."""
    moved = judged.moved
    assert moved is not None
    changed = ", ".join(changes(before, after)) or "nothing installed"
    return (
        f"{variant(series)} takes {moved.ratio:.3f} times its baseline of "
        f"{judged.baseline_us:,.1f} us (95 % interval {moved.low:.3f} to {moved.high:.3f}), seen "
        f"in {moved.checks} checks; changed since: {changed}"
    )
