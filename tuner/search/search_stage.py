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
        self._doing = doing
        self.rows, self.effort, self.sampler, self.seed, self.pool = (
            rows,
            effort,
            sampler,
            seed,
            pool,
        )
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

    def planned(self, places: Sequence[Place]) -> int | None:
        """How many trials of this stage are to come at most; None where each config is one, since
        to count them takes minutes."""
        if self.effort.trials is None:
            return None
        return sum(max(0, self.effort.trials - len(self.rows.searched(place))) for place in places)

    def progress(self, places: Sequence[Place]) -> str:
        """How many trials of all that there would be without a budget, in words."""
        tried = [len(self.rows.searched(place)) for place in places]
        if self.effort.trials is None:
            return f"{sum(tried):,} trials, and every feasible config is wanted"
        wanted = sum(max(count, self.effort.trials) for count in tried)
        return f"{sum(tried):,} of {wanted:,} trials"

    def run(self, shapes: Sequence[Shape], modes: Sequence[str], until: float) -> None:
        """Search every shape; each may use its share of the time that is left until then (of
        `time.monotonic`)."""
        self.modes = modes
        shapes = [shape for shape in shapes if not self._over(shape, modes)]
        if self.pool is not None or not self.effort.sampled:  # few enough to compile them all
            self._draw(shapes, until)
            self._compile(shapes, modes, until)
        for done, shape in enumerate(shapes):
            self._doing(f"shape {done + 1} of {len(shapes)}: {shape}")
            self._search(shape, modes, until, shapes[done:])

    def _over(self, shape: Shape, modes: Sequence[str]) -> bool:
        """Whether the same search ended at this shape before, with all its trials: then it is as it
        was concluded, and nothing is drawn, ranked or compiled for it again."""
        places = [(shape, mode) for mode in modes]
        forms = [config for config in self.opening.defaults(shape) if config.variant == BSP]
        if any(
            len(rows := self.rows.searched(place)) < self._limit()
            or self.rows.bench.known(*place) is not None
            or not self.rows.bsp(place)
            or any(self.rows.can(place, form) and form not in rows for form in forms)
            for place in places
        ):
            return False
        names = [study_name(self.rows.op, *place, self.rows.bench) for place in places]
        studies = [study for name in names if (study := self._stored(name))]
        known = [study.user_attrs.get(CONCLUDED, {}) for study in studies]
        if [each.get("of") for each in known] != [self._of(place) for place in places]:
            return False
        for place, each in zip(places, known, strict=True):
            self.feasible[place], self.off_by[place] = each["feasible"], each["off_by"]
            self.opening.hint(place)
            self.opening.learn(place)
        return True

    def _of(self, place: Place) -> str:
        """A digest of what a place is concluded from: its rows, and how it is searched."""
        how = self.pool, self.sampler, self.seed, self.variants, self.effort.trials
        rows = sorted(trial.id for trial in self.rows.searched(place).values())
        return sha256(repr((how, rows)).encode()).hexdigest()

    def _compile(self, shapes: Sequence[Shape], modes: Sequence[str], until: float) -> None:
        """Have the pools compiled: what is tried first before the rest, as far as the time goes."""
        now = time.monotonic()
        end = now + SETTLE_SHARE * max(0.0, until - now) if until < inf else inf
        for source in (self._opened, self._all):
            for shape in shapes:
                if time.monotonic() >= end:
                    break
                self._doing(f"ranks what to compile for {shape}")
                self.rows.bench.ahead(shape, source(shape, modes))
        self._doing("compiles")
        self.rows.bench.settle(max(0.0, min(COMPILE_S, end - time.monotonic())))

    def _draw(self, shapes: Sequence[Shape], until: float) -> None:
        """Draw the pool of every shape, each in its part of the time that compiling may take,
        too."""
        now = time.monotonic()
        end = now + SETTLE_SHARE * max(0.0, until - now) if until < inf else inf
        for done, shape in enumerate(shapes):
            now = time.monotonic()
            self._doing(f"draws configs for {shape}")
            self._pool(shape, now + (end - now) / (len(shapes) - done))

    def _opened(self, shape: Shape, modes: Sequence[str]) -> list[Config]:
        """What is tried first, in that order."""
        warm = (
            config
            for mode in modes
            for config in self.opening.warm((shape, mode))
            if self.rows.can((shape, mode), config)
        )
        return list(dict.fromkeys([*self.opening.defaults(shape), *warm]))

    def _all(self, shape: Shape, modes: Sequence[str]) -> Sequence[Config]:
        """What may be tried: of a search that samples, the whole pool."""
        if self.effort.sampled:
            return [config for mode in modes for config in self._feasible((shape, mode)).configs]
        return [
            config
            for mode in modes
            for config in self.opening.predicted((shape, mode), self._feasible((shape, mode)))
        ]

    def _search(
        self, shape: Shape, modes: Sequence[str], until: float, left: Sequence[Shape]
    ) -> None:
        """The shapes left share the time that remains once BSP and the defaults of this one are
        measured: a world may start for them."""
        opening, places = self.opening.defaults(shape), [(shape, mode) for mode in modes]
        self.rows.bench.ahead(shape, opening)
        if time.monotonic() < until:
            self.rows.bench.ahead(shape, self._opened(shape, modes))
        baselines = {place: bsp for place in places if (bsp := self._baseline(place, opening))}
        for default in opening:
            for place, bsp in baselines.items():
                if (
                    default not in (rows := self.rows.searched(place))
                    and len(rows) < self._limit()
                    and self.rows.can(place, default)
                ):
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

    def _limit(self) -> float:
        return inf if self.effort.trials is None else self.effort.trials

    def _baseline(self, place: Place, opening: Sequence[Config]) -> Trial | None:
        """The strongest form of BSP; None, with a warning, where none could be measured. Where all
        have failed so far, all are measured once more: it may have been the machine."""
        forms = [
            config for config in opening if config.variant == BSP and self.rows.can(place, config)
        ]
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
            return Feasible(
                self.space,
                sorted(c for c in known if c.variant in self.variants and self.rows.can(place, c)),
            )
        shape, defaults = place[0], self.opening.defaults(place[0])
        warm = (config for mode in self.modes for config in self.opening.warm((shape, mode)))
        likely = [*defaults, *self.opening.like_bsp(shape, defaults), *warm]
        return Feasible(self.space, dict.fromkeys([*self._pool(shape), *likely]))

    def _pool(self, shape: Shape, until: float = inf) -> tuple[Config, ...]:
        """Every possible config of a shape, or a pool of them, as far as it is drawn until then;
        kept for the shapes still to come where a pool keeps them few."""
        if shape not in self._considered:
            every = self.effort.trials is None and self.pool is None
            size = (
                None if every else self.pool or (CONSIDERED if self.effort.sampled else SCOUT_POOL)
            )
            self._considered[shape] = Feasible.of(
                self.space, shape, self.chip, self.variants, size, until=until
            ).configs
        return self._considered[shape]

    def _contending(self, place: Place) -> Feasible:
        """What may be tried. Where not all can be, variants that cannot win have had their trial,
        and where no pool is given the model goes down from its best ones."""
        feasible = self._feasible(place)
        if self.effort.sampled and len(feasible) > self._limit():
            contending = self.opening.contenders(place, feasible, self._limit())
            feasible = Feasible(
                self.space, (config for config in feasible.configs if config.variant in contending)
            )
            if self._open(place):
                feasible.grow(self.opening.descent(place, feasible))
        return feasible

    def _open(self, place: Place) -> bool:
        """Whether configs beyond a pool may be tried."""
        return self.pool is None and self.rows.bench.known(*place) is None

    def _track(self, place: Place, bsp: Trial) -> _Track:
        """The track of a place whose BSP is measured."""
        feasible = self._contending(place)
        rows = self.rows.searched(place)
        name = study_name(self.rows.op, *place, self.rows.bench)
        proposer = Proposer(feasible, self.sampler, self._seed(place), self.opening.hint(place))
        bench, shape = self.rows.bench, place[0]
        proposer.look_ahead(partial(bench.ready, shape), partial(bench.ahead, shape))
        limit = len(feasible) if self.effort.trials is None else self.effort.trials
        track = _Track(place, bsp, proposer, self._stored(name), rows, limit)
        stored = (
            {trial.user_attrs.get("trial") for trial in track.stored.get_trials(deepcopy=False)}
            if track.stored
            else set()
        )
        for trial in rows.values():
            track.tell(trial)
            if trial.id not in stored:
                self._copy(track, trial)
        return track

    def _seed(self, place: Place) -> int:
        name = study_name(self.rows.op, *place, self.rows.bench)
        return int.from_bytes(sha256(f"{name}/{self.seed}".encode()).digest()[:4])

    def _stored(self, name: str) -> optuna.Study | None:
        if not self.effort.sampled:
            return None
        return optuna.create_study(
            storage=self.rows.store.optuna_storage(), study_name=name, load_if_exists=True
        )

    def _copy(self, track: _Track, trial: Trial) -> None:
        """Tell the study in the database, where there is one, of a committed row."""
        if track.stored:
            track.stored.add_trial(
                finished(self.space, trial.config, time_ratio(trial, track.bsp), trial=trial.id)
            )

    def _try(self, tracks: Sequence[_Track], config: Config) -> None:
        """Measure a config in every mode that has room and has not seen it."""
        for track in tracks:
            if self._may_try(track, config) and config not in track.rows and track.room:
                trial = self.rows.measure(track.place, config, track.bsp.config)
                track.tell(trial)
                self._copy(track, trial)

    def _may_try(self, track: _Track, config: Config) -> bool:
        """Whether it is among the feasible ones; where nothing is sampled these are a pool, and
        whatever is possible may be tried."""
        return config in track.proposer.feasible or (
            not self.effort.sampled and self.rows.can(track.place, config)
        )

    def _candidates(self, tracks: Sequence[_Track]) -> Iterator[Config]:
        """What is like the strongest BSP, the warm configs, the model's best, then the proposals of
        the modes' samplers in turn."""
        opening, sources = self.opening, dict[str, list[Config]]()
        for source in (self._like_bsp, lambda track: opening.warm(track.place), self._predicted):
            for track in (track for track in tracks if track.room):
                likely = [config for config in source(track) if self._may_try(track, config)]
                self.rows.bench.ahead(track.place[0], likely)
                sources.setdefault(track.place[1], []).extend(likely)
        for track in tracks:
            track.proposer.think()
        for likely in sources.values():
            yield from likely
        if self.effort.sampled:
            yield from self._proposed(tracks)

    def _like_bsp(self, track: _Track) -> list[Config]:
        return self.opening.like_bsp(track.place[0], [track.bsp.config])

    def _predicted(self, track: _Track) -> list[Config]:
        return self.opening.predicted(track.place, track.proposer.feasible)

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
        ranked = sorted(
            (config for config in ratios if config in track.proposer.feasible),
            key=lambda config: ratios[config],
        )
        fresh = [config for config in ranked[:REFINED] if config not in track.refined]
        track.refined.update(fresh)
        return [
            near
            for config in fresh
            for near in around(self.space, track.place[0], self.chip, config)
        ]

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
