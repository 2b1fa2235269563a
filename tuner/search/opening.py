"""What a search tries before its sampler is asked: defaults, what is like BSP, what won nearby, and
the model's best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf, log

import numpy as np

from tftune.db.evidence import BSP, Place, completed
from tftune.db.trial import Trial
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import Predict
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.feasible_sampler import Hint
from tftune.tuner.search.local_refinement import best_of_tiles, descend, transplanted
from tftune.tuner.search.recipes import fitted
from tftune.tuner.search.residual_correction import Correction, Describe
from tftune.tuner.search.session import Rows
from tftune.tuner.search.warm_start import NEAR, PastWinners, Shipped, neighbours

PREDICTED = 4
"""Configs that the model may name, besides the best of each variant that contends."""
PREDICTED_FROM = 4096
"""Feasible configs that the model is asked about at most; of more, a random part."""
AS_THEY_WON, BY_MODEL = 6, 6
"""Warm configs that are tried: the first as they come, the nearest shape's first, then those that
the model puts first."""
CONTENDS = 1.15
"""A variant contends where the model's best of it takes at most so many times the best of all."""
SAMPLED = 96
"""Configs of each variant that the model is asked about to see whether it contends: each tile once,
and more."""


def _nothing(shape: Shape, mode: str) -> Sequence[Config]:
    return ()


@dataclass(frozen=True)
class Knowledge:
    """What is known before a search: handed over by who knows models, artifacts and committed
    rows."""

    predict: Predict | None = None
    """The model's time."""
    describe: Describe | None = None
    """Numbers of a pair by which rows of other shapes correct the model; None: it is not
    corrected."""
    former: Sequence[Trial] = field(default=(), repr=False)
    """Rows of whatever kernel, world or layout."""
    shipped: Shipped = _nothing
    """What an artifact names near a shape."""


NOTHING_KNOWN = Knowledge()


class Opening:
    """The sources of first proposals, for all shapes of one search."""

    def __init__(
        self, rows: Rows, variants: Sequence[str], knowledge: Knowledge, seed: int
    ) -> None:
        self._rows, self._variants, self._knowledge, self._seed = rows, variants, knowledge, seed
        self._space, self._chip = rows.op.space, rows.bench.target.chip
        self._former = tuple(completed(self._space, knowledge.former))
        self._past = PastWinners(self._former)
        self._corrections: dict[str, Correction] = {}
        self._fitted = cache(lambda shape, config: fitted(self._space, shape, self._chip, config))

    def defaults(self, shape: Shape) -> list[Config]:
        """The default configs of the variants searched, those that are possible."""
        defaults = [
            self._space.complete(config) for config in self._space.defaults(shape, self._chip)
        ]
        return [
            config
            for config in defaults
            if config.variant in self._variants and self._possible(shape, config)
        ]

    def like_bsp(self, shape: Shape, forms: Iterable[Config]) -> list[Config]:
        """The default of every other variant with the knobs that it shares with each of these forms
        of BSP, where BSP has such knobs: what makes BSP strong at this shape is tried in all of
        them."""
        others = [config for config in self.defaults(shape) if config.variant != BSP]
        shared = {
            other: {choice.name for choice in self._space.choices(other.variant)}
            for other in others
        }
        made = [
            Config(other.variant, **dict(other.knobs)
                   | {name: value for name, value in form.knobs if name in shared[other]})
            for form in forms if form.variant == BSP for other in others
        ]  # fmt: skip
        return [
            config
            for config in dict.fromkeys(made)
            if config not in others and self._possible(shape, config)
        ]

    def warm(self, place: Place) -> list[Config]:
        """What an artifact names near the place, and what won there by rows, each fitted to the
        shape; as many as are worth a try."""
        shape = place[0]
        known = [
            config for config in dict.fromkeys(self._won(place)) if config.variant in self._variants
        ]
        made = [made for config in known for made in self._fitted(shape, config)]
        configs = list(dict.fromkeys([*(config for config in made if config in known), *made]))
        rest = self.ranked(place, configs[AS_THEY_WON:])
        return [*configs[:AS_THEY_WON], *rest[:BY_MODEL]]

    def _won(self, place: Place, near: float = inf) -> list[Config]:
        """What an artifact names near the place, and what won there by rows; of the places that
        this search knows, the best config of each variant whose time is at most so many times the
        fastest's."""
        shape, mode = place
        searched = [
            other
            for other, _ in self._rows.places(mode)
            if other != shape and self._rows.winners((other, mode))
        ]
        here = [
            config
            for other in neighbours(shape, searched)
            for config in self._winners((other, mode), near)
        ]
        return [*self._knowledge.shipped(shape, mode), *here, *self._past.near(shape, mode)]

    def _winners(self, place: Place, near: float) -> list[Config]:
        ratios, winners = self._rows.ratios(place), self._rows.winners(place)
        return [config for config in winners if ratios[config] <= near * ratios[winners[0]]]

    def ranked(self, place: Place, configs: Sequence[Config]) -> list[Config]:
        """These configs in the model's order; in their own where there is none."""
        hint = self.hint(place)
        return list(configs) if hint is None else _in_order(configs, hint)

    def hint(self, place: Place) -> Hint | None:
        """The corrected model's time of configs; None without a model."""
        shape, mode = place
        correction = self._correction(mode)
        return partial(correction.hints, shape) if correction else None

    def _correction(self, mode: str) -> Correction | None:
        """What corrects the model in one mode; None without a model."""
        known = self._knowledge
        if known.predict is not None and mode not in self._corrections:
            made = Correction(self._space, self._chip, mode, known.predict, known.describe)
            made.learn(self._former)
            self._corrections[mode] = made
        return self._corrections.get(mode)

    def learn(self, place: Place) -> None:
        """Let the rows of a place that was searched correct the model at the next shapes."""
        if correction := self._correction(place[1]):
            correction.learn(self._rows.searched(place).values())

    def predicted(self, place: Place, feasible: Feasible) -> list[Config]:
        """The model's best, of all feasible configs or a random part of them."""
        hint = self.hint(place)
        if hint is None:
            return []
        configs = feasible.configs
        if len(configs) > PREDICTED_FROM:
            part = np.random.default_rng(self._seed).choice(
                len(configs), PREDICTED_FROM, replace=False
            )
            configs = tuple(configs[number] for number in part)
        return likeliest(configs, hint)

    def descent(self, place: Place, feasible: Feasible) -> list[Config]:
        """What lies on the model's way down from its best feasible configs."""
        hint = self.hint(place)
        if hint is None:
            return []
        shape, known = place[0], [config for config in feasible.configs if config.variant != BSP]
        made = transplanted(self._space, shape, self._chip, self.ranked(place, known))
        starts = best_of_tiles(self.ranked(place, list(dict.fromkeys([*known, *made]))))
        return [*made, *descend(self._space, shape, self._chip, starts, hint)]

    def contenders(self, place: Place, feasible: Feasible, least: float = 0.0) -> set[str]:
        """The variants that may win, and BSP: those whose best comes near the best of all, by what
        was measured at the place, by the model held against it, or came near it near the place; and
        the next best ones until they have so many feasible configs at `least`: a variant of few
        configs leaves trials over. All of them without a model."""
        hint = self.hint(place)
        if hint is None:
            return set(self._variants)
        measured = {
            config: value
            for config, value in self._rows.ratios(place).items()
            if config in feasible
        }
        best: dict[str, float] = {}
        for variant in self._variants:
            seen = [config for config in measured if config.variant == variant]
            some = [config for config in feasible.configs if config.variant == variant][:SAMPLED]
            best[variant] = _best(seen, [measured[config] for config in seen], some, hint)
        near = log(CONTENDS) + min(best.values())
        carried = {config.variant for config in self._won(place, NEAR)} & {
            config.variant for config in self.warm(place)
        }
        contending = {BSP, *(variant for variant, value in best.items() if value <= near), *carried}
        counts = Counter(config.variant for config in feasible.configs)
        for variant in sorted(best, key=best.__getitem__):
            if sum(counts[name] for name in contending) < least:
                contending.add(variant)
        return contending

    def _possible(self, shape: Shape, config: Config) -> bool:
        return self._space.why_invalid(shape, config, self._chip) is None


def _best(
    seen: Sequence[Config], ratios: Sequence[float], configs: Sequence[Config], hint: Hint
) -> float:
    """The least of the measured ratios of a variant, and of those that the model expects once it is
    held against them: a logarithm. Infinite where nothing of the variant was measured."""
    if not seen:
        return inf
    times = np.log(ratios)
    level = np.median(times - np.asarray(hint(seen)))
    return float(min(times.min(), np.min(hint(configs)) + level if configs else inf))


def _in_order(configs: Sequence[Config], hint: Hint) -> list[Config]:
    return [configs[number] for number in np.argsort(hint(configs), kind="stable")]


def likeliest(configs: Sequence[Config], hint: Hint) -> list[Config]:
    """The best of each variant in the model's opinion, then the best of all."""
    ranked = _in_order(configs, hint)
    first = {config.variant: config for config in reversed(ranked)}
    return list(
        dict.fromkeys(
            [*(config for config in ranked if config is first[config.variant]), *ranked[:PREDICTED]]
        )
    )
