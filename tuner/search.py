"""The search: BSP first, then what is likely to be fast, then what the sampler proposes; last the winners again, in a fresh world.

Our rows are the truth. Each outcome is committed before any study hears of it, and a search reads them back first: the same command
goes on where it was stopped and measures nothing twice. The live study is in memory, made from the rows at each start; the study in
the database is a copy of them for Optuna's tools.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import inf
from typing import Protocol

import numpy as np
import optuna

from tftune.db.store import Store
from tftune.db.trial import MODES, Trial
from tftune.kernels.distance import distance
from tftune.kernels.registry import Operation, operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.tuner.benches import Bench, Predict
from tftune.tuner.feasible import Feasible
from tftune.tuner.finals import Best, conclude, final_stage
from tftune.tuner.former import Former
from tftune.tuner.rows import BSP, Place, Rows, ratio
from tftune.tuner.samplers import SAMPLERS, Hint, Proposer, finished

FINAL_SHARE, FINAL_S, FINAL_MOST = 0.2, 1.3, 0.5
"""Of a wall-clock budget, kept for the final stage: this share, or so many seconds for each shape and mode where ranks measure it (110 s
over 88 of them on 8x H200), but at most that share."""
SETTLE_SHARE, COMPILE_S = 0.5, 1800.0
"""Of the time for searching, and in seconds, how long a pool may compile before the first trial."""
PREDICTED = 8
"""Configs that the model may name, besides the best of each variant."""
PREDICTED_FROM = 4096
"""Feasible configs that the model is asked about at most; of more, a random part."""
NEAREST = 2
"""Shapes whose winners are tried."""
SCOUT_POOL = 120
"""Configs of each variant among which a search that samples nothing takes the model's best, where no pool is given."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Effort:
    """How much a search may try."""

    trials: int | None
    """For each shape and mode; None: every feasible config."""
    finalists: int
    """Configs of each mode that are measured again on every shape, beside each shape's own winners."""
    meaning: str
    sampled: bool = True
    """False: only what is likely to be fast is tried, no study hears of it, and nothing is measured again."""


EFFORTS = {
    "quick": Effort(24, 4, "24 trials for each shape and mode: a first look"),
    "default": Effort(64, 8, "64 trials for each shape and mode"),
    "exhaustive": Effort(None, 8, "every feasible config of each shape and mode: hours on a node; give a budget"),
    "scout": Effort(48, 0, "only the defaults, the model's best and what won nearby, once: for --portfolio to go on from", sampled=False),
}


class Progress(Protocol):
    """What is told while a search runs."""

    def start(self, total: int) -> None:
        """About this many trials are to come."""

    def advance(self, trial: Trial) -> None:
        """This trial is committed."""

    def finish(self) -> None:
        """No more trials come, whether the search ended well or not."""


def search(
    op: str,
    shapes: Iterable[Shape],
    modes: Iterable[str],
    bench: Bench,
    store: Store,
    *,
    effort: str = "default",
    budget_s: float | None = None,
    sampler: str = "lfbo",
    variants: tuple[str, ...] = (),
    seed: int = 0,
    pool: int | None = None,
    progress: Progress | None = None,
    predict: Predict | None = None,
    former: Iterable[Trial] = (),
) -> list[Best]:
    """Search each shape in each mode, then measure the winners again; every outcome is a committed row of `store`.

    `budget_s` is wall-clock time; BSP and the default configs of every shape, and each shape's own winners, are measured whatever it
    says. `variants` limits the search (BSP is always among them); `pool` limits it to that many configs of each variant, a fixed random
    part that is compiled ahead; a replay is limited by its rows instead. `former`: rows of any kernel, whose winners near a shape are
    tried. A shape and mode where no BSP form could be measured is left out.
    Raises ValueError for an unknown name, a shape that the target is too small for, or if nothing at all could be measured.
    """
    shapes, modes = tuple(dict.fromkeys(shapes)), tuple(dict.fromkeys(modes))
    _check(op, shapes, modes, bench, effort, sampler)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    started, budget = time.monotonic(), inf if budget_s is None else budget_s
    rows = Rows(operation(op), bench, store, progress.advance if progress else None)
    stage = _SearchStage(rows, EFFORTS[effort], sampler, variants, seed, pool, predict, former)
    places = [(shape, mode) for shape in shapes for mode in modes]
    if progress:
        progress.start(stage.planned(places))
    try:
        stage.run(shapes, modes, started + budget - (_for_finals(budget, len(places), bench) if EFFORTS[effort].sampled else 0.0))
        rows.refuse_nothing(places)
        if EFFORTS[effort].sampled:
            final_stage(rows, places, EFFORTS[effort].finalists, started + budget)
        rows.end()
    finally:
        if progress:
            progress.finish()
    return [conclude(rows, place, bsp, stage.feasible[place]) for place in places if (bsp := rows.bsp(place))]


def _for_finals(budget_s: float, places: int, bench: Bench) -> float:
    """Seconds of a budget that the search stage leaves."""
    needed = FINAL_S * places if bench.compare is not None else 0.0
    return max(FINAL_SHARE * budget_s, min(needed, FINAL_MOST * budget_s)) if budget_s < inf else 0.0


def _check(op: str, shapes: Sequence[Shape], modes: Sequence[str], bench: Bench, effort: str, sampler: str) -> None:
    for what, names, known in (("mode", modes, MODES), ("effort", (effort,), EFFORTS), ("sampler", (sampler,), SAMPLERS)):
        if wrong := [name for name in names if name not in known]:
            raise ValueError(f"there is no {what} {wrong[0]!r}; there are {', '.join(known)}")
    if not shapes or not modes:
        raise ValueError(f"a search needs a shape and a mode: {len(shapes)} shapes and {len(modes)} modes were given")
    for shape in shapes:
        if shape.op != op:
            raise ValueError(f"the shape {shape} is of {shape.op}, not of {op}")
        if (world := shape.to_dict().get("world", 1)) > bench.target.gpus:
            raise ValueError(
                f"the shape {shape} needs world={world} GPUs and {bench.target.name} has {bench.target.gpus}; give another --target"
            )
        if not any(known is None or known for known in (bench.known(shape, mode) for mode in modes)):
            raise ValueError(
                f"there are no rows of {shape} on {bench.target.name} in mode {' or '.join(modes)} to replay; "
                "leave it out, or add rows with `tftune trials import`"
            )


def study_name(op: Operation, shape: Shape, mode: str, bench: Bench) -> str:
    """The name of the study in the database. It changes with the space, since Optuna refuses a changed categorical."""
    return "/".join((op.name, str(shape), mode, bench.target.name, bench.name, op.space.digest()))


@dataclass
class _Track:
    """One shape in one mode, while it is searched."""

    place: Place
    bsp: Trial
    proposer: Proposer
    stored: optuna.Study | None
    """None where no study hears of it."""
    rows: dict[Config, Trial]
    limit: int

    @property
    def room(self) -> bool:
        return len(self.rows) < self.limit

    def tell(self, trial: Trial) -> None:
        """Of no use where nothing is sampled, and then left out: it costs a millisecond."""
        if self.stored is not None:
            self.proposer.tell(trial.config, ratio(trial, self.bsp))


class _SearchStage:
    """Shape after shape; the modes of a shape go side by side, so that a node bench compiles and checks a config once for both."""

    def __init__(
        self,
        rows: Rows,
        effort: Effort,
        sampler: str,
        variants: tuple[str, ...],
        seed: int,
        pool: int | None,
        predict: Predict | None,
        former: Iterable[Trial],
    ) -> None:
        self.rows, self.effort, self.sampler, self.seed, self.predict = rows, effort, sampler, seed, predict
        self.pool = pool if effort.sampled else pool or SCOUT_POOL
        self.space, self.chip = rows.op.space, rows.bench.target.chip
        self.variants = tuple(name for name in self.space.variants if not variants or name in (BSP, *variants))
        for name in variants:
            self.space.choices(name)  # an unknown variant is a ValueError that lists the known ones
        self.feasible: dict[Place, int] = {}
        """Configs that may be tried at each place."""
        self._kept: dict[Shape, Feasible] = {}
        self._hints: dict[Place, Hint] = {}
        self._former = Former(self.space, former)

    def planned(self, places: Sequence[Place]) -> int:
        """About how many trials are to come, the final stage included."""
        finals = 1 + self.effort.finalists if self.effort.sampled else 0
        return sum(max(0, self._limit(place) - len(self.rows.searched(place))) + finals for place in places)

    def _limit(self, place: Place) -> int:
        return len(self._feasible_at(place)) if self.effort.trials is None else self.effort.trials

    def run(self, shapes: Sequence[Shape], modes: Sequence[str], until: float) -> None:
        """Search every shape; each may use its share of the time that is left until then (of `time.monotonic`)."""
        if self.pool is not None:  # few enough to compile them all
            for shape in shapes:
                self.rows.bench.ahead(shape, self._announced(shape, modes))
            self.rows.bench.settle(min(COMPILE_S, SETTLE_SHARE * (until - time.monotonic())))
        for done, shape in enumerate(shapes):
            self._search(shape, modes, until, len(shapes) - done)

    def _announced(self, shape: Shape, modes: Sequence[str]) -> Sequence[Config]:
        """What will be tried: of a search that samples, the whole pool may be."""
        if self.effort.sampled:
            return self._feasible(shape).configs
        likely = [config for mode in modes for source in (self._won_before, self._predicted) for config in source((shape, mode))]
        return [*self._defaults(shape), *(config for config in likely if self.rows.can((shape, modes[0]), config))]

    def _search(self, shape: Shape, modes: Sequence[str], until: float, left: int) -> None:
        """`left` shapes share the time that remains once BSP and the defaults of this one are measured: a world may start for them."""
        opening = self._defaults(shape)
        self.rows.bench.ahead(shape, opening)
        tracks = [track for mode in modes if (track := self._track((shape, mode), opening))]
        for default in opening:
            self._try(tracks, default)
        candidates, now = self._candidates(tracks), time.monotonic()
        while time.monotonic() < now + (until - now) / left and (config := next(candidates, None)):
            self._try(tracks, config)

    def _defaults(self, shape: Shape) -> list[Config]:
        """The default configs of the variants searched, those that are possible."""
        defaults = [self.space.complete(config) for config in self.space.defaults(shape, self.chip) if config.variant in self.variants]
        return [config for config in defaults if self.space.why_invalid(shape, config, self.chip) is None]

    def _like_bsp(self, shape: Shape, forms: Iterable[Config]) -> list[Config]:
        """The default of every other variant with the knobs that it shares with each of these forms of BSP, where BSP has such knobs: what
        makes BSP strong at this shape is tried in all of them."""
        others = [config for config in self._defaults(shape) if config.variant != BSP]
        shared = {other: {choice.name for choice in self.space.choices(other.variant)} for other in others}
        found = [
            Config(other.variant, **dict(other.knobs) | {name: value for name, value in form.knobs if name in shared[other]})
            for form in forms if form.variant == BSP for other in others
        ]  # fmt: skip
        new = [config for config in dict.fromkeys(found) if config not in others]
        return [config for config in new if self.space.why_invalid(shape, config, self.chip) is None]

    def _feasible(self, shape: Shape) -> Feasible:
        """Kept for the shape in work, of which there may be tens of thousands; and for every shape where a pool keeps them few."""
        if shape not in self._kept:
            if self.pool is None:
                self._kept.clear()
            likely = () if self.pool is None else self._likely(shape)
            self._kept[shape] = Feasible.of(self.space, shape, self.chip, self.variants, self.pool, likely)
        return self._kept[shape]

    def _likely(self, shape: Shape) -> tuple[Config, ...]:
        """What a pool must hold: the defaults, what is like any form of BSP, winners nearby."""
        defaults = self._defaults(shape)
        return (*defaults, *self._like_bsp(shape, defaults), *self._won_nearby(shape))

    def _won_nearby(self, shape: Shape) -> list[Config]:
        """What a pool must hold, too: winners of the nearest shapes in any mode, those that are possible here."""
        won = [config for mode in MODES for config in self._winners(shape, mode) if config.variant in self.variants]
        return [config for config in won if self.space.why_invalid(shape, config, self.chip) is None]

    def _feasible_at(self, place: Place) -> Feasible:
        """What may be tried in one mode of a shape: every feasible config, or those that the bench knows."""
        known = self.rows.bench.known(*place)
        if known is None:
            return self._feasible(place[0])
        return Feasible(self.space, sorted(c for c in known if c.variant in self.variants and self.rows.can(place, c)))

    def _track(self, place: Place, opening: Sequence[Config]) -> _Track | None:
        """The track of a place once its BSP is measured; None, with a warning, where BSP could not be measured."""
        feasible = self._feasible_at(place)
        self.feasible[place] = len(feasible)
        bsp = self._baseline(place, [config for config in opening if config.variant == BSP and config in feasible])
        if bsp is None:
            logger.warning("%s in mode %s is left out: no form of BSP could be measured there", *place)
            return None
        rows = self.rows.searched(place)
        name = study_name(self.rows.op, *place, self.rows.bench)
        seed = int.from_bytes(sha256(f"{name}/{self.seed}".encode()).digest()[:4])
        limit = len(feasible) if self.effort.trials is None else self.effort.trials
        track = _Track(place, bsp, Proposer(feasible, self.sampler, seed, self._hint(place)), self._stored(name), rows, limit)
        stored = {trial.user_attrs.get("trial") for trial in track.stored.get_trials(deepcopy=False)} if track.stored else set()
        for trial in rows.values():
            track.tell(trial)
            if trial.id not in stored:
                self._copy(track, trial)
        return track

    def _hint(self, place: Place) -> Hint | None:
        """The model's time of a config, asked for once."""
        if self.predict is None:
            return None
        if place not in self._hints:
            predict, (shape, mode) = self.predict, place
            self._hints[place] = cache(lambda config: predict(shape, config, mode, self.chip))
        return self._hints[place]

    def _baseline(self, place: Place, forms: Sequence[Config]) -> Trial | None:
        """The strongest form of BSP. Where all have failed so far, all are measured once more: it may have been the machine."""
        for again in (False, True):
            for form in forms:
                if again or form not in self.rows.searched(place):
                    best = self.rows.bsp(place)
                    self.rows.measure(place, form, best.config if best else None)
            if best := self.rows.bsp(place):
                return best
        return None

    def _stored(self, name: str) -> optuna.Study | None:
        if not self.effort.sampled:
            return None
        return optuna.create_study(storage=self.rows.store.optuna_storage(), study_name=name, load_if_exists=True)

    def _copy(self, track: _Track, trial: Trial) -> None:
        """Tell the study in the database, where there is one, of a committed row."""
        if track.stored:
            track.stored.add_trial(finished(self.space, trial.config, ratio(trial, track.bsp), trial=trial.id))

    def _try(self, tracks: Sequence[_Track], config: Config) -> None:
        """Measure a config in every mode that has room and has not seen it."""
        for track in tracks:
            if self._may_try(track, config) and config not in track.rows and track.room:
                trial = self.rows.measure(track.place, config, track.bsp.config)
                track.tell(trial)
                self._copy(track, trial)

    def _may_try(self, track: _Track, config: Config) -> bool:
        """Whether it is among the feasible ones; where nothing is sampled these are a pool, and whatever is possible may be tried."""
        return config in track.proposer.feasible or (not self.effort.sampled and self.rows.can(track.place, config))

    def _candidates(self, tracks: Sequence[_Track]) -> Iterator[Config]:
        """What is like the strongest BSP, what won before, the model's best, the winners of the nearest shapes, then the proposals of the
        modes' samplers in turn."""
        strongest = {track.place: track.bsp.config for track in tracks}

        def like_bsp(place: Place) -> list[Config]:
            return self._like_bsp(place[0], [strongest[place]])

        for source in (like_bsp, self._won_before, self._predicted, lambda place: self._winners(*place)):
            for track in tracks:
                if track.room:
                    likely = [config for config in source(track.place) if self._may_try(track, config)]
                    self.rows.bench.ahead(track.place[0], likely)
                    yield from likely
        if self.effort.sampled:
            yield from self._proposed(tracks)

    def _proposed(self, tracks: Sequence[_Track]) -> Iterator[Config]:
        while turns := [track for track in tracks if track.room and track.proposer.any_left]:
            for track in turns:
                if config := track.proposer.ask():
                    yield config

    def _won_before(self, place: Place) -> list[Config]:
        """The winners of the nearest rows of earlier kernels or other worlds, where such rows are given, of the variants searched."""
        return [config for config in self._former.near(*place, NEAREST) if config.variant in self.variants]

    def _predicted(self, place: Place) -> list[Config]:
        """The model's best, of all feasible configs or a random part of them."""
        hint = self._hint(place)
        if hint is None:
            return []
        configs = self._feasible_at(place).configs
        if len(configs) > PREDICTED_FROM:
            part = np.random.default_rng(self.seed).choice(len(configs), PREDICTED_FROM, replace=False)
            configs = tuple(configs[number] for number in part)
        return likeliest(configs, hint)

    def _winners(self, shape: Shape, mode: str) -> list[Config]:
        """Of the nearest other shapes that were searched in this mode."""
        others = sorted((place for place in self.rows.places(mode) if place[0] != shape), key=lambda place: distance(shape, place[0]))
        won = [winners for place in others if (winners := self.rows.winners(place))]
        return [config for winners in won[:NEAREST] for config in winners]


def likeliest(configs: Iterable[Config], hint: Hint) -> list[Config]:
    """The best of each variant in the model's opinion, then the best of all."""
    ranked = sorted(configs, key=hint)
    first = {config.variant: config for config in reversed(ranked)}
    return list(dict.fromkeys([*(config for config in ranked if config is first[config.variant]), *ranked[:PREDICTED]]))
