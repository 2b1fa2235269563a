"""The search stage: shape after shape BSP, the opening, then what the sampler proposes, until the
effort or the time is spent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from math import inf
from typing import Any

import optuna

from tftune.db.evidence import BSP, Place, time_ratio
from tftune.db.trial import Trial
from tftune.kernels.core.registry import Operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Bench
from tftune.tuner.search.bound import may_be_off_by
from tftune.tuner.search.efforts import Effort
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.feasible_sampler import finished
from tftune.tuner.search.local_refinement import around
from tftune.tuner.search.opening import Knowledge, Opening
from tftune.tuner.search.samplers import Proposer
from tftune.tuner.search.session import Rows

SETTLE_SHARE, COMPILE_S = 0.5, 1800.0
"""A share of the time for searching, and the most seconds: how long a pool may compile before the
first trial."""
CONSIDERED = 320
"""Configs of each variant that a search considers where no pool is given; only those about to be
tried are compiled."""
REFINED = 3
"""Configs, the best so far, around which all others are considered, too."""
SCOUT_POOL = 120
"""The same of a search that samples nothing, and takes the model's best of them."""
CONCLUDED = "concluded"
"""The attribute of a study that holds what its place was concluded with."""

logger = logging.getLogger(__name__)


def study_name(op: Operation, shape: Shape, mode: str, bench: Bench) -> str:
    """The name of the study in the database. It changes with the space, since Optuna refuses a
    changed categorical, and with the condition of the calls."""
    where = bench.target.name, bench.name, *([bench.condition] if bench.condition else [])
    return "/".join((op.name, str(shape), mode, *where, op.space.digest()))


@dataclass
class _Track:
    """One shape in one mode, while it is searched."""

    place: Place
    bsp: Trial
    proposer: Proposer
    stored: optuna.Study | None
    """None where no study hears of it."""
    rows: dict[Config, Trial]
    limit: float
    refined: set[Config] = field(default_factory=set)
    """Configs around which more were taken into what is considered."""

    @property
    def room(self) -> bool:
        return len(self.rows) < self.limit

    def tell(self, trial: Trial) -> None:
        """Tell the sampler of a trial. It is left out where nothing is sampled: it costs a
        millisecond."""
        if self.stored is not None:
            self.proposer.tell(trial.config, time_ratio(trial, self.bsp))

    def copy(self, trial: Trial) -> None:
        """Tell the study in the database, where there is one, of a committed row."""
        if self.stored is not None:
            space, ratio = self.proposer.feasible.space, time_ratio(trial, self.bsp)
            self.stored.add_trial(finished(space, trial.config, ratio, trial=trial.id))


class SearchStage:
    """Shape after shape; the modes of a shape go side by side, so that a node bench compiles and
    checks a config once for both."""

    def __init__(
        self,
        rows: Rows,
        effort: Effort,
        sampler: str,
        variants: tuple[str, ...],
        seed: int,
        pool: int | None,
        knowledge: Knowledge,
        doing: Callable[[str], None] = lambda what: None,
    ) -> None:
        """`doing` hears what takes a while before the next trial."""
        self.rows, self.effort, self._doing = rows, effort, doing
        self.sampler, self.seed, self.pool = sampler, seed, pool
        self.space, self.chip = rows.op.space, rows.bench.target.chip
        self.variants = tuple(
            name for name in self.space.variants if not variants or name in (BSP, *variants)
        )
        for name in variants:
            self.space.choices(name)  # an unknown variant is a ValueError that lists the known ones
        self.modes: Sequence[str] = ()
        self.opening = Opening(rows, self.variants, knowledge, seed)
        self.feasible: dict[Place, int] = {}
        """Configs that may be tried at each place."""
        self.off_by: dict[Place, float | None] = {}
        """How many times the best config's time the winner's may be (see `bound`)."""
        self._considered: dict[Shape, tuple[Config, ...]] = {}
        self.stopped = False
        """Whether a shape's share of the time ended before its trials."""

    def run(self, shapes: Sequence[Shape], modes: Sequence[str], until: float) -> None:
        """Search every shape; each may use its share of the time that is left until then (of
        `time.monotonic`)."""
        self.modes = modes
        shapes = [shape for shape in shapes if not self._over(shape)]
        if self.pool is not None or not self.effort.sampled:  # few enough to compile them all
            self._draw(shapes, until)
            self._compile(shapes, until)
        for done, shape in enumerate(shapes):
            self._doing(f"shape {done + 1} of {len(shapes)}: {shape}")
            self._search(shape, until, shapes[done:])

    def _over(self, shape: Shape) -> bool:
        """Whether the same search ended at this shape before, with all its trials: then it is as it
        was concluded, and nothing is drawn, ranked or compiled for it again."""
        known = {place: ended for place in self._places(shape) if (ended := self._concluded(place))}
        if len(known) < len(self.modes):
            return False
        for place, ended in known.items():
            self.feasible[place], self.off_by[place] = ended["feasible"], ended["off_by"]
            self.opening.learn(place)
        return True

    def _concluded(self, place: Place) -> dict[str, Any] | None:
        """What the same search concluded at this place with all its trials, where it did."""
        rows, defaults = self.rows.searched(place), self.opening.defaults(place[0])
        forms = (config for config in defaults if config.variant == BSP)
        if (
            len(rows) < self.effort.most
            or self.rows.bench.known(*place) is not None
            or not self.rows.bsp(place)
            or any(self.rows.can(place, form) and form not in rows for form in forms)
            or (study := self._stored(place)) is None
        ):
            return None
        conclusion: dict[str, Any] = study.user_attrs.get(CONCLUDED, {})
        return conclusion if conclusion.get("of") == self._of(place) else None

    def _of(self, place: Place) -> str:
        """A digest of what a place is concluded from: its rows, and how it is searched."""
        how = self.pool, self.sampler, self.seed, self.variants, self.effort.trials
        rows = sorted(trial.id for trial in self.rows.searched(place).values())
        return sha256(repr((how, rows)).encode()).hexdigest()

    def _compile(self, shapes: Sequence[Shape], until: float) -> None:
        """Have the pools compiled: what is tried first before the rest, as far as the time goes."""
        end = _settled_by(until)
        for source in (self._opened, self._all):
            for shape in shapes:
                if time.monotonic() >= end:
                    break
                self._doing(f"ranks what to compile for {shape}")
                self.rows.bench.ahead(shape, source(shape))
        self._doing("compiles")
        self.rows.bench.settle(max(0.0, min(COMPILE_S, end - time.monotonic())))

    def _draw(self, shapes: Sequence[Shape], until: float) -> None:
        """Draw the pool of every shape, each in its part of the time that compiling may take,
        too."""
        end = _settled_by(until)
        for done, shape in enumerate(shapes):
            now = time.monotonic()
            self._doing(f"draws configs for {shape}")
            self._pool(shape, now + (end - now) / (len(shapes) - done))

    def _opened(self, shape: Shape) -> list[Config]:
        """What is tried first, in that order."""
        warm = (
            config
            for place in self._places(shape)
            for config in self.opening.warm(place)
            if self.rows.can(place, config)
        )
        return list(dict.fromkeys([*self.opening.defaults(shape), *warm]))

    def _all(self, shape: Shape) -> list[Config]:
        """What may be tried: of a search that samples, the whole pool."""
        configs: list[Config] = []
        for place in self._places(shape):
            feasible = self._feasible(place)
            configs += (
                feasible.configs if self.effort.sampled else self.opening.predicted(place, feasible)
            )
        return configs

    def _search(self, shape: Shape, until: float, left: Sequence[Shape]) -> None:
        """The shapes left share the time that remains once BSP and the defaults of this one are
        measured: a world may start for them."""
        opening, places = self.opening.defaults(shape), self._places(shape)
        self.rows.bench.ahead(shape, opening)
        if time.monotonic() < until:
            self.rows.bench.ahead(shape, self._opened(shape))
        baselines = {place: bsp for place in places if (bsp := self._baseline(place, opening))}
        for default in opening:
            for place, bsp in baselines.items():
                rows = self.rows.searched(place)
                untried = default not in rows and len(rows) < self.effort.most
                if untried and self.rows.can(place, default):
                    self.rows.measure(place, default, bsp.config)
        now = time.monotonic()
        # The defaults took all the time: nothing is drawn, and no model asked, for no trials.
        if now >= until:
            self.stopped = True
            self.feasible.update((place, len(self.rows.searched(place))) for place in baselines)
            return
        tracks = [self._track(place, bsp) for place, bsp in baselines.items()]
        for following in left[1:2]:
            self.rows.bench.ahead(following, self.opening.defaults(following))
        candidates = self._candidates(tracks)
        while time.monotonic() < now + (until - now) / len(left):
            if (config := next(candidates, None)) is None:
                break
            self._try(tracks, config)
        else:
            self.stopped = True
        for track in tracks:
            self._conclude(track)
        if self.pool is None:
            self._considered.pop(shape, None)

    def _places(self, shape: Shape) -> list[Place]:
        return [(shape, mode) for mode in self.modes]

    def _baseline(self, place: Place, opening: Sequence[Config]) -> Trial | None:
        """The strongest form of BSP; None, with a warning, where none could be measured. Where all
        have failed so far, all are measured once more: it may have been the machine."""
        forms = [form for form in opening if form.variant == BSP and self.rows.can(place, form)]
        for again in (False, True):
            for form in forms:
                if again or form not in self.rows.searched(place):
                    best = self.rows.bsp(place)
                    self.rows.measure(place, form, best.config if best else None)
            if best := self.rows.bsp(place):
                return best
        logger.warning("%s in mode %s is left out: no form of BSP could be measured there", *place)
        self.feasible[place] = 0
        return None

    def _feasible(self, place: Place) -> Feasible:
        """What may be tried in one mode of a shape: what is considered there, or what the bench
        knows of it."""
        known = self.rows.bench.known(*place)
        if known is not None:
            named = sorted(config for config in known if config.variant in self.variants)
            return Feasible(
                self.space, (config for config in named if self.rows.can(place, config))
            )
        shape, defaults = place[0], self.opening.defaults(place[0])
        warm = (config for each in self._places(shape) for config in self.opening.warm(each))
        likely = [*defaults, *self.opening.like_bsp(shape, defaults), *warm]
        return Feasible(self.space, dict.fromkeys([*self._pool(shape), *likely]))

    def _pool(self, shape: Shape, until: float = inf) -> tuple[Config, ...]:
        """Every possible config of a shape, or a pool of them, as far as it is drawn until then;
        kept for the shapes still to come where a pool keeps them few."""
        if shape not in self._considered:
            every = self.effort.trials is None and self.pool is None
            few = self.pool or (CONSIDERED if self.effort.sampled else SCOUT_POOL)
            drawn = Feasible.of(
                self.space, shape, self.chip, self.variants, None if every else few, until=until
            )
            self._considered[shape] = drawn.configs
        return self._considered[shape]

    def _contending(self, place: Place) -> Feasible:
        """What may be tried. Where not all can be, variants that cannot win have had their trial,
        and where no pool is given the model goes down from its best ones."""
        feasible = self._feasible(place)
        if self.effort.sampled and len(feasible) > self.effort.most:
            contending = self.opening.contenders(place, feasible, self.effort.most)
            likely = (config for config in feasible.configs if config.variant in contending)
            feasible = Feasible(self.space, likely)
            if self._open(place):
                feasible.grow(self.opening.descent(place, feasible))
        return feasible

    def _open(self, place: Place) -> bool:
        """Whether configs beyond a pool may be tried."""
        return self.pool is None and self.rows.bench.known(*place) is None

    def _track(self, place: Place, bsp: Trial) -> _Track:
        """The track of a place whose BSP is measured."""
        feasible, rows = self._contending(place), self.rows.searched(place)
        proposer = Proposer(feasible, self.sampler, self._seed(place), self.opening.hint(place))
        bench, shape = self.rows.bench, place[0]
        proposer.look_ahead(partial(bench.ready, shape), partial(bench.ahead, shape))
        limit = len(feasible) if self.effort.trials is None else self.effort.trials
        track = _Track(place, bsp, proposer, self._stored(place), rows, limit)
        copied = track.stored.get_trials(deepcopy=False) if track.stored else []
        stored = {trial.user_attrs.get("trial") for trial in copied}
        for trial in rows.values():
            track.tell(trial)
            if trial.id not in stored:
                track.copy(trial)
        return track

    def _seed(self, place: Place) -> int:
        name = study_name(self.rows.op, *place, self.rows.bench)
        return int.from_bytes(sha256(f"{name}/{self.seed}".encode()).digest()[:4])

    def _stored(self, place: Place) -> optuna.Study | None:
        """The study in the database; None where nothing is sampled."""
        if not self.effort.sampled:
            return None
        name = study_name(self.rows.op, *place, self.rows.bench)
        storage = self.rows.store.optuna_storage()
        return optuna.create_study(storage=storage, study_name=name, load_if_exists=True)

    def _try(self, tracks: Sequence[_Track], config: Config) -> None:
        """Measure a config in every mode that has room and has not seen it."""
        for track in tracks:
            if self._may_try(track, config) and config not in track.rows and track.room:
                trial = self.rows.measure(track.place, config, track.bsp.config)
                track.tell(trial)
                track.copy(trial)

    def _may_try(self, track: _Track, config: Config) -> bool:
        """Whether it is among the feasible ones; where nothing is sampled these are a pool, and
        whatever is possible may be tried."""
        return config in track.proposer.feasible or (
            not self.effort.sampled and self.rows.can(track.place, config)
        )

    def _candidates(self, tracks: Sequence[_Track]) -> Iterator[Config]:
        """What is like the strongest BSP, the warm configs, the model's best, then the proposals of
        the modes' samplers in turn."""
        opening, likely = self.opening, dict[str, list[Config]]()
        sources: tuple[Callable[[_Track], list[Config]], ...] = (
            lambda track: opening.like_bsp(track.place[0], [track.bsp.config]),
            lambda track: opening.warm(track.place),
            lambda track: opening.predicted(track.place, track.proposer.feasible),
        )
        for source in sources:
            for track in (track for track in tracks if track.room):
                configs = [config for config in source(track) if self._may_try(track, config)]
                self.rows.bench.ahead(track.place[0], configs)
                likely.setdefault(track.place[1], []).extend(configs)
        for track in tracks:
            track.proposer.think()
        for configs in likely.values():
            yield from configs
        if self.effort.sampled:
            yield from self._proposed(tracks)

    def _proposed(self, tracks: Sequence[_Track]) -> Iterator[Config]:
        while turns := [track for track in tracks if track.room and track.proposer.any_left]:
            for track in turns:
                if self._open(track.place) and self.effort.trials is not None:
                    track.proposer.grow(self._refined(track))
                if config := track.proposer.ask():
                    yield config

    def _refined(self, track: _Track) -> list[Config]:
        """What lies around the best configs so far, of those around which nobody has looked yet."""
        ratios = self.rows.ratios(track.place)
        known = [config for config in ratios if config in track.proposer.feasible]
        best = sorted(known, key=ratios.__getitem__)[:REFINED]
        fresh = [config for config in best if config not in track.refined]
        track.refined.update(fresh)
        shape = track.place[0]
        return [near for each in fresh for near in around(self.space, shape, self.chip, each)]

    def _conclude(self, track: _Track) -> None:
        """What the place's rows say of the best config, and of the shapes to come."""
        self.feasible[track.place] = len(track.proposer.feasible)
        if self.effort.sampled:
            ratios = {config: time_ratio(trial, track.bsp) for config, trial in track.rows.items()}
            self.off_by[track.place] = may_be_off_by(
                track.proposer.feasible, ratios, self.opening.hint(track.place)
            )
        if track.stored:
            kept = {"feasible": self.feasible[track.place], "off_by": self.off_by[track.place]}
            track.stored.set_user_attr(CONCLUDED, {"of": self._of(track.place), **kept})
        self.opening.learn(track.place)


def _settled_by(until: float) -> float:
    """When a pool must be drawn, or compiled, for what is left until then."""
    now = time.monotonic()
    return now + SETTLE_SHARE * max(0.0, until - now)
