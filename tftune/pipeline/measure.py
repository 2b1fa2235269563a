"""All places of a model, one after another in one world of ranks, within a budget of seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from time import monotonic, sleep

from tftune.db.evidence import BSP, Place
from tftune.db.journal import EXCLUDING
from tftune.db.trial import MODES, Failure
from tftune.kernels.core.space import Config
from tftune.pipeline.places import Stake, forms, unknown
from tftune.pipeline.proposals import Proposals
from tftune.pipeline.ranks import Ranks
from tftune.tuner.bench.benches import Bench
from tftune.tuner.bench.sandbox import Broken
from tftune.tuner.search.session import Rows
from tftune.tuner.warm_up.order import Order

logger = logging.getLogger(__name__)

TOP = 6
"""Fused configs that a place is first tried with, where the time suffices."""
MORE = 6
"""Those of each later visit."""
VISITS = 2
"""A place is left alone after so many later visits in a row that found nothing faster."""
WINDOW, AHEAD = 64, 8
"""First visits, and later ones, whose kernels compile while another one is measured."""
FORMS = 2
"""Forms of BSP that are asked for however short the time is; the rest waits for a later visit."""
FINAL_SHARE, FINAL_STARTS = 0.2, 2.0
"""The share of the budget that is kept to time winners again in a fresh world; where that is not so
many times what a world takes to start, they are not timed again."""
TIMING_SHARE, LEAST_S, MOST_S = 0.7, 0.05, 2.0
"""The share of a place's time that is for rounds; and the least and the most seconds of that."""
DEADLINE_S = 15.0
"""For the first launches of one config, and beyond the budget of the rounds of a place."""
SAVED_S = 60.0
"""Artifacts are written before the later visits where so much time is left: a kill costs none."""
PATIENCE_S, POLL_S = 60.0, 0.02
"""How long compilers are waited for before a place goes without what they had not compiled."""
LOST_WORLDS = 3
"""Worlds in a row that ended before anything was launched: then it is the machine."""


@dataclass(frozen=True)
class Task:
    """What to measure together at one place."""

    place: Place
    forms: tuple[Config, ...]
    candidates: tuple[Config, ...]
    stage: str = "search"

    @property
    def configs(self) -> tuple[Config, ...]:
        return (*self.forms, *self.candidates)


class Measuring:
    """The rows of each operation, and the ranks that add to them."""

    def __init__(
        self,
        rows: Mapping[str, Rows],
        proposals: Mapping[str, Proposals],
        ranks: Ranks,
        bench: Bench,
        save: Callable[[], object] = lambda: None,
    ) -> None:
        """`bench`: compiles ahead, and names the target. `save`: called when every place has rows
        and much time is left."""
        self._rows, self._proposals, self._ranks, self._bench = rows, proposals, ranks, bench
        self._save, self._config_s = save, 0.0
        self._left_out = {
            (trial.op, trial.config)
            for each in rows.values()
            for mode in MODES
            for place in each.places(mode)
            for trial in each.searched(place).values()
            if isinstance(trial.outcome, Failure) and trial.outcome.kind in EXCLUDING
        }
        self._lost = 0
        self.measured = 0
        """Places measured so far, repeated ones included."""

    def run(self, stakes: Sequence[Stake], budget_s: float) -> None:
        """Measure every place that has no current rows, then try more where most is at stake, then
        time winners again. The first place is measured whatever the budget. The budget begins when
        ranks are ready. Raises Broken where no world of ranks can be had."""
        places = unknown(stakes, self._rows)
        coming = map(self._first, places)
        first = list(islice(coming, WINDOW))
        self._compile(first)
        start_s = self._ranks.start()
        until = monotonic() + budget_s
        finals_s = FINAL_SHARE * budget_s if self._bench.name == "node" else 0.0
        if finals_s < FINAL_STARTS * start_s:
            finals_s = 0.0
        self._all(chain(first, coming), WINDOW, until, len(places))
        if until - monotonic() >= SAVED_S:
            self._save()
        self._all(self._later(stakes), AHEAD, until - finals_s)
        if until - monotonic() > start_s and finals_s and (finals := self._finals(stakes)):
            self._ranks.start()
            self._all(finals, len(finals), until)

    def _first(self, stake: Stake) -> Task:
        proposed = self._proposals[stake.shape.op].first(stake.place)
        chip = self._bench.target.chip
        return Task(stake.place, forms(stake.shape, chip), tuple(proposed[:TOP]))

    def _later(self, stakes: Sequence[Stake]) -> Iterator[Task]:
        """Visit by visit, the places with more to try, most time at stake first."""
        fruitless = {stake.place: 0 for stake in stakes}
        best: dict[Place, float] = {}
        while fruitless:
            for place in list(fruitless):
                ratios = self._rows[place[0].op].ratios(place)
                least = min(ratios.values(), default=1.0)
                fruitless[place] = 0 if least < best.get(place, 9e9) else fruitless[place] + 1
                best[place] = least
                more = self._proposals[place[0].op].more(place, MORE)
                if fruitless[place] >= VISITS or not more or not ratios:
                    del fruitless[place]
                else:
                    yield self._again(place, more)

    def _again(self, place: Place, more: Sequence[Config]) -> Task:
        """The best form of BSP, those that were not tried yet, and the fastest config, beside more
        of them."""
        rows = self._rows[place[0].op]
        bsp, tried = rows.bsp(place), rows.searched(place)
        untried = [c for c in forms(place[0], self._bench.target.chip) if c not in tried]
        best = (bsp.config,) if bsp else ()
        return Task(place, (*best, *untried), (*rows.winners(place)[:1], *more))

    def _finals(self, stakes: Iterable[Stake]) -> list[Task]:
        """The two fastest configs of each place where one is faster than BSP."""
        tasks = []
        for stake in stakes:
            rows = self._rows[stake.shape.op]
            ratios, bsp = rows.ratios(stake.place), rows.bsp(stake.place)
            ranked = sorted((c for c in ratios if c.variant != BSP), key=ratios.__getitem__)
            if bsp and ranked and ratios[ranked[0]] < 1 and not rows.finals(stake.place):
                tasks.append(Task(stake.place, (bsp.config,), tuple(ranked[:2]), "final"))
        return tasks

    def _all(self, tasks: Iterable[Task], window: int, until: float, count: int = 0) -> None:
        """Measure tasks as their kernels are compiled; so many wait for that at a time. `count`:
        how many tasks there are, where that is known to be more."""
        coming = iter(tasks)
        pending = list(islice(coming, window))
        self._compile(pending)
        while pending and not (monotonic() >= until and self.measured):
            left = max(count, len(pending))
            task = self._ready(pending, until, left)
            share_s = max(until - monotonic(), 0.0) / left
            self._measure(task, share_s)
            count -= 1
            pending = [other for other in pending if other.place != task.place]
            more = list(islice(coming, 1))
            self._compile(more)
            pending += more

    def _compile(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._bench.ahead(task.place[0], task.configs)

    def _ready(self, pending: Sequence[Task], until: float, left: int) -> Task:
        """The first task that is compiled. Where waiting for one would cost some of the places that
        are `left` their turn, the first task, without what is not compiled yet."""
        patience = monotonic() + PATIENCE_S
        while True:
            for task in pending:
                if all(self._bench.ready(task.place[0], config) for config in task.configs):
                    return task
            configs = sum(len(task.configs) for task in pending)
            needed_s = self._config_s * configs * left / len(pending)
            if monotonic() + needed_s >= until or monotonic() >= patience:
                shape = pending[0].place[0]
                ready = [c for c in pending[0].candidates if self._bench.ready(shape, c)]
                return replace(pending[0], candidates=tuple(ready))
            sleep(POLL_S)

    def _measure(self, task: Task, share_s: float) -> None:
        order = self._order(task, share_s)
        began = monotonic()
        try:
            outcomes, _ = self._ranks.confirm(order)
        except Broken as broken:
            self._lost += 1
            logger.warning("not measured: shape=%s error=%s", order.shape, broken)
            if self._lost >= LOST_WORLDS:
                raise
            return
        took_s = (monotonic() - began) / (len(order.forms) + len(order.candidates))
        self._config_s = (self._config_s + took_s) / 2 if self._config_s else took_s
        self._lost, self.measured = 0, self.measured + 1
        self._left_out |= {
            (order.shape.op, config)
            for config, outcome in outcomes.items()
            if isinstance(outcome, Failure) and outcome.kind in EXCLUDING
        }
        self._rows[order.shape.op].keep(task.place, outcomes, task.stage)

    def _order(self, task: Task, share_s: float) -> Order:
        """What the ranks are asked: as many candidates as the time suffices for, one at least."""
        (shape, mode), most = task.place, len(task.candidates)
        first, *others = [*self._safe(shape.op, task.forms)] or task.forms[:1]
        if self._config_s:
            suffices = int(share_s / self._config_s)
            others = others[: max(FORMS, suffices // 2) - 1]
            most = max(1, suffices - 1 - len(others))
        budget_s = min(max(TIMING_SHARE * share_s, LEAST_S), MOST_S)
        return Order(
            shape, mode, (first, *others),
            tuple(self._safe(shape.op, task.candidates))[:most],
            budget_s, DEADLINE_S + budget_s, self._bench.target.name, self._ranks.run,
        )  # fmt: skip

    def _safe(self, op: str, configs: Iterable[Config]) -> Iterator[Config]:
        """Without what hung, crashed or was wrong at any place."""
        return (config for config in configs if (op, config) not in self._left_out)
