"""The taxes of one shape: which config and form of BSP are held against each other, the arms that
are measured, and the rows that they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from tftune.db import target as machine
from tftune.db.evidence import completed, counting, is_current, other_build, strongest_bsp
from tftune.db.target import Target
from tftune.db.trial import EVIDENCE, TAX, Measurement, Run, Trial, now
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.studies.taxes import operations
from tftune.studies.taxes.arms import Arm
from tftune.studies.taxes.rows import MODE, Case, current, groups, outcome_of

if TYPE_CHECKING:
    from tftune.db.store import Store

Measure = Callable[..., Mapping[str, Mapping[Arm, Measurement]]]
"""`studies.taxes.bench.measure`, or what a test has in its place."""


def case_of(shape: Shape, rows: Iterable[Trial], target: Target, variant: str | None) -> Case:
    """The fastest config and form of BSP that the rows have of a shape, else the defaults.
    `variant`: the only one that is taken. Raises ValueError for an operation, or a variant, without
    taxes, and where no config can run the shape."""
    known = operation(shape.op)
    names: tuple[str, ...] = operations.of(shape.op).FUSED
    if variant is not None and variant not in names:
        raise ValueError(
            f"the taxes of {shape.op} are isolated with {', '.join(names)}, not with {variant}"
        )
    wanted = names if variant is None else (variant,)
    mine = [
        trial
        for trial in completed(known.space, rows)
        if (trial.shape, trial.mode) == (shape, MODE)
        and trial.stage in EVIDENCE
        and isinstance(trial.outcome, Measurement)
        and is_current(trial)
    ]
    fused = [trial for trial in mine if trial.config.variant in wanted]
    defaults = known.space.defaults(shape, target.chip)
    usual = [each for name in wanted for each in defaults if each.variant == name]
    if not fused and not usual:
        raise ValueError(f"no config of {' or '.join(wanted)} can run {shape} on {target}")
    fastest = min(fused, key=lambda trial: outcome_of(trial).median_us, default=None)
    config = fastest.config if fastest else usual[0]
    best = strongest_bsp(mine)
    form = best.config if best else known.space.fallbacks(shape, target.chip)[0]
    complete = known.space.complete
    return Case(shape, complete(config), complete(form))


def usual_rows(op: str, target: Target, store: Store) -> list[Trial]:
    """The rows of searches that count: what `case_of` chooses from."""
    return counting(store.trials(op=op, target=target.name, bench="node"), store.runs())


def stored(case: Case, target: Target, store: Store) -> dict[str, dict[Arm, Measurement]]:
    """By mode, the newest rows of all arms that share their rounds: none where an arm is
    missing."""
    runs = store.runs()
    others = other_build(runs, machine.build(), unknown=False)
    found_rows = store.trials(
        op=case.shape.op, shape=case.shape, target=target.name, bench="node", stage=TAX,
        condition=None,
    )  # fmt: skip
    rows = [trial for trial in current(found_rows, runs) if trial.run not in others]
    measurements = {}
    for mode in (MODE, "eager"):
        for group in groups(trial for trial in rows if trial.mode == mode):
            if case.is_in(group, mode):  # the newest stays
                measurements[mode] = {arm: outcome_of(trial) for arm, trial in group.items()}
    return measurements


def measured(
    case: Case, target: Target, store: Store, measure: Measure
) -> dict[str, dict[Arm, Measurement]]:
    """The rows of a case: those that are stored, else measured now and committed."""
    known = stored(case, target, store)
    asked = case.arms(clocks=True)
    if known.keys() == asked.keys():
        return known
    started = now()
    outcomes = measure(case.shape, asked, case.config, case.form, target)
    _commit(case, outcomes, target, store, started)
    return stored(case, target, store)


def _commit(
    case: Case,
    outcomes: Mapping[str, Mapping[Arm, Measurement]],
    target: Target,
    store: Store,
    started: str,
) -> None:
    """Rows of one run; clocks are read while the GPUs are still awake."""
    from tftune.tuner.search.session import described

    clocks = machine.clocks() | described(target.chip)
    run = Run(uuid4().hex[:12], target.name, "node", machine.build(), started, clocks)
    store.add_run(run)
    for mode, of_mode in outcomes.items():
        for arm, outcome in of_mode.items():
            config = case.config_of(arm)
            code = installed(case.shape.op, config.variant)
            store.add_trial(Trial(
                case.shape, config, mode, target.name, "node", run.id, code, outcome, TAX, now(),
                f"{TAX}={arm}",
            ))  # fmt: skip
