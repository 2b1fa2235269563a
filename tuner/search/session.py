"""The rows that a search stands on: what was measured and still holds, and the one way to measure
and commit another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tftune.db import evidence
from tftune.db import target as machine
from tftune.db.evidence import BSP, Place
from tftune.db.store import Store, StoreError
from tftune.db.trial import STAGES, Failure, Measurement, Outcome, Run, Trial, now
from tftune.kernels.core.chips import CHIPS, Chip
from tftune.kernels.core.registry import Operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Bench


def described(chip: Chip) -> dict[str, Any]:
    """What a run says of a GPU that other machines cannot know by its name."""
    return {} if chip.name in CHIPS else {"chip": chip.description()}


class Rows:
    """The rows of one operation on one target and bench, by stage, shape and mode.

    A row counts while it is of the bench's condition, its config is in the space, it is current
    (`evidence.is_current`), its run is evidence, and Triton, which compiled it, has the same minor
    version. Of two rows of a config the newer one counts.
    """

    def __init__(
        self, op: Operation, bench: Bench, store: Store, told: Callable[[Trial], None] | None = None
    ) -> None:
        """`told` hears of each new trial once it is committed."""
        self.op, self.bench, self.store, self._told = op, bench, store, told
        self._run: Run | None = None
        self._started = now()
        self._rows: dict[str, dict[Place, dict[Config, Trial]]] = {stage: {} for stage in STAGES}
        others = self._of_other_builds() | evidence.set_aside(store.runs())
        for trial in evidence.completed(
            op.space,
            store.trials(
                op=op.name, target=bench.target.name, bench=bench.name, condition=bench.condition
            ),
        ):
            if trial.run not in others:
                self._take(trial)

    def _of_other_builds(self) -> set[str]:
        """The runs with another minor version of Triton than is installed, or beside another BSP,
        on a bench that compiles."""
        here = machine.build() if self.bench.name in ("node", "drill") else {}
        known = "triton" in here
        return evidence.other_build(self.store.runs(), here, unknown=False) if known else set()

    def _take(self, trial: Trial) -> None:
        if evidence.is_current(trial):
            rows = self._rows[trial.stage].setdefault((trial.shape, trial.mode), {})
            if trial.config not in rows or rows[trial.config].created <= trial.created:
                rows[trial.config] = trial

    def places(self, mode: str) -> list[Place]:
        """Where something was searched in this mode."""
        return [place for place, rows in self._rows["search"].items() if place[1] == mode and rows]

    def searched(self, place: Place) -> dict[Config, Trial]:
        return self._rows["search"].setdefault(place, {})

    def finals(self, place: Place) -> dict[Config, Trial]:
        """The final rows that are not older than the newest search row of the place."""
        return evidence.concluding(
            self._rows["final"].get(place, {}), self.searched(place).values()
        )

    def matrix(self, place: Place) -> dict[Config, Trial]:
        """What was measured there as one of the configs that are measured everywhere."""
        return self._rows["matrix"].setdefault(place, {})

    def bsp(self, place: Place) -> Trial | None:
        """The strongest form of BSP in the search stage; None where none could be measured."""
        return evidence.strongest_bsp(self.searched(place).values())

    def ratios(self, place: Place) -> dict[Config, float]:
        """Time over BSP's time of what could be measured in the search stage."""
        bsp = self.bsp(place)
        return evidence.time_ratios(self.searched(place), bsp) if bsp else {}

    def winners(self, place: Place) -> list[Config]:
        """The best config of each variant but BSP in the search stage, the fastest first."""
        best: dict[str, Config] = {}
        for config, _ in sorted(self.ratios(place).items(), key=lambda pair: pair[1]):
            if config.variant != BSP:
                best.setdefault(config.variant, config)
        return list(best.values())

    def rivals(self, place: Place, limit: int) -> list[Config]:
        """At most so many configs of the search stage that it cannot tell from its winner, the
        fastest first."""
        ratios, searched = self.ratios(place), self.searched(place)
        fused = (config for config in ratios if config.variant != BSP)
        ranked = sorted(fused, key=ratios.__getitem__)
        speedups = {config: evidence.speedup_interval(searched[config]) for config in ranked}
        near = [
            config
            for config in ranked[1:]
            if evidence.overlap(speedups[config], speedups[ranked[0]])
        ]
        return near[:limit]

    def can(self, place: Place, config: Config) -> bool:
        """Whether the config is possible at the place, and the bench can answer for it."""
        shape, mode = place
        known = self.bench.known(shape, mode)
        return self.op.space.why_invalid(shape, config, self.bench.target.chip) is None and (
            known is None or config in known
        )

    def measure(
        self, place: Place, config: Config, baseline: Config | None, stage: str = "search"
    ) -> Trial:
        """Measure a config and commit the row, whatever came of it."""
        shape, mode = place
        (outcome,) = self._outcomes(
            1, lambda: [self.bench.measure(shape, config, mode, baseline, stage=stage)]
        )
        return self._commit(place, config, outcome, stage)

    def compare(
        self, place: Place, configs: Sequence[Config], baseline: Config, stage: str = "final"
    ) -> None:
        """Measure finalists and their baseline in the same rounds, on a bench that has rounds, and
        commit their rows."""
        shape, mode = place
        compare = self.bench.compare
        assert compare is not None
        outcomes = self._outcomes(1 + len(configs), lambda: compare(shape, configs, mode, baseline))
        for config, outcome in zip((baseline, *configs), outcomes, strict=True):
            self._commit(place, config, outcome, stage)

    def keep(self, place: Place, outcomes: Mapping[Config, Outcome], stage: str) -> None:
        """Commit what was measured elsewhere, forms of BSP first: rows stand beside them."""
        for config in sorted(outcomes, key=lambda config: config.variant != BSP):
            self._commit(place, config, outcomes[config], stage)

    def _commit(self, place: Place, config: Config, outcome: Outcome, stage: str) -> Trial:
        (shape, mode), bench = place, self.bench
        code = installed(self.op.name, config.variant)
        key = shape, config, mode, bench.target.name, bench.name, self._run_id(), code
        trial = Trial(*key, outcome, stage, now(), bench.condition)
        # As a resumed search reads it: a rounded time may choose another winner.
        trial = Trial.from_dict(trial.to_dict())
        self.store.add_trial(trial)
        self._take(trial)
        if self._told:
            self._told(trial)
        return trial

    def _outcomes(self, count: int, ask: Callable[[], list[Outcome]]) -> list[Outcome]:
        """So many outcomes, as the bench gives them."""
        try:
            return ask()
        except StoreError:
            raise
        except Exception as error:  # one config must not end the search: it is its result
            return [Failure("crash", f"{type(error).__name__}: {error}")] * count

    def _run_id(self) -> str:
        """The run of this search, stored with its first trial: a search that measures nothing
        leaves no run, and clocks are read after a measurement, when the GPUs are awake."""
        if self._run is None:
            target, build = self.bench.target, machine.build()
            clocks = self.bench.conditions() | described(target.chip)
            name = uuid4().hex[:12]
            self._run = Run(name, target.name, self.bench.name, build, self._started, clocks)
            self.store.add_run(self._run)
        return self._run.id

    def end(self) -> None:
        """Store with the run what the machine is like after the last trial."""
        if self._run is not None:
            self.store.add_run(replace(self._run, ended=self.bench.conditions()))

    def refuse_nothing(self, places: Iterable[Place]) -> None:
        """Raise ValueError where not one config could be measured, with the first reason."""
        trials = [trial for place in places for trial in self.searched(place).values()]
        if not any(isinstance(trial.outcome, Measurement) for trial in trials):
            reasons = [
                f"; the first failure: {trial.outcome.text}"
                for trial in trials
                if isinstance(trial.outcome, Failure)
            ]
            raise ValueError(
                f"nothing could be measured on {self.bench.target.name} ({len(trials)} trials "
                f"failed){(reasons or [''])[0]}"
            )
