"""How the model of a layout answers for a shape. Standard library only.

A shape that was measured is answered by what was the fastest there. Between two measured sizes of
one family each config's time formula is corrected by what it missed at both. For other families the
tree says which configs to choose from, and their formulas choose. BSP answers unless a fused config
is estimated to be faster by more than such estimates err.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial

from tftune.db.discount import MODEL_ERROR, discount, discounted
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.config_times import ConfigTimes
from tftune.models.layout import (
    NEAR,
    Known,
    LayoutModel,
    Source,
    families_text,
    interval_text,
    size_text,
)  # fmt: skip
from tftune.models.selection import Selection
from tftune.models.surroundings import Named, Surroundings
from tftune.models.tree.tree import Leaf, Sizes, leaves_of

SURE = 0.67
"""Standard deviations by which the logarithm of an estimated speed-up must exceed 0: three of four
such estimates are faster than BSP. More caution gave up more than it saved (docs/notebook.md)."""
WIDE = 1.64
"""Standard deviations that an interval reaches to either side: nine of ten speed-ups lie in it."""
ROUNDED = 1.01
"""By what factor rounding may put a speed-up outside of its interval, where both are written."""


@dataclass(frozen=True)
class Terms:
    """What an answer depends on besides the rows."""

    chip: Chip
    why_stale: Callable[[Config, str], str | None]
    """Why a config's times, of this revision, do not hold here; None where they do."""
    modelled_error: float = 1.0
    """How many times speed-ups may be overstated: above 1 where times are modelled."""


@dataclass(frozen=True)
class _Estimate:
    """What may answer for a shape, by number, and how far off speed-ups among them may be."""

    sure: dict[int, float]
    """Times of the configs that were measured at a smaller and a larger size of the same family."""
    others: tuple[int, ...]
    """The other candidates, whose time is that of their formula."""
    us: Callable[[int], float]
    """The time by a formula: a recipe must be worked out for it."""
    error: float
    """The error of a speed-up where not both configs are sure."""
    near: tuple[Sizes, ...]


class Answerer:
    """Answers for the shapes of one layout. Each answer is worked out anew: who asks often keeps
    them."""

    def __init__(
        self, model: LayoutModel, terms: Terms, find: Callable[[Shape], int],
        lent: str = "", lent_error: float = 0.0, own: Answerer | None = None,
    ) -> None:  # fmt: skip
        """`find`: from a shape to the number of its leaf. `lent`: the layout that was
        measured, where it answers for another one, from which it was seen to differ by
        `lent_error`, of the logarithm of a speed-up. `own`: of that other one's rows, which answer
        for their very shapes."""
        op = operation(model.op)
        self.model, self._given, self._find = model, terms, find
        self._lent, self._lent_error, self._own = lent, lent_error, own
        self._leaves = list(leaves_of(model.root)) if model.root is not None else []
        self._space, self.times = op.space, ConfigTimes(model, terms.chip)
        self._names = op.shape.coordinates()
        self._place = self._names.index(op.shape.SIZE)
        self._is_bsp = [config.variant == "bsp" for config in model.configs]
        self._surroundings = Surroundings(model, model.gains, self.times) if model.gains else None
        self._judge = cache(self._judge_of)
        self._source: Source = "interpolated" if terms.modelled_error == 1.0 else "modelled"

    @property
    def _word(self) -> str:
        """How its times are called: a predicted one is never said to be measured."""
        return "measured" if self._source == "interpolated" else "modelled"

    @cached_property
    def _by_sizes(self) -> dict[Sizes, Known]:
        return {known.sizes: known for known in self.model.known}

    @cached_property
    def _families(self) -> dict[Sizes, list[Known]]:
        """Measured shapes by all sizes but the one that grows, from small to large."""
        ordered = sorted(self.model.known, key=lambda known: known.sizes[self._place])
        return groups(ordered, lambda known: self._family(known.sizes))

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        """From where to where there are answers, in each size. No formula holds above the largest
        size that grows: there planes alone say something."""
        columns = zip(*(known.sizes for known in self.model.known), strict=True)
        ranges = [(min(column) / NEAR, max(column) * NEAR) for column in columns]
        if self._surroundings is None:
            least, most = ranges[self._place]
            ranges[self._place] = least, most / NEAR
        return ranges

    def _family(self, sizes: Sizes) -> Sizes:
        return sizes[: self._place] + sizes[self._place + 1 :]

    def answer(self, shape: Shape, default: Callable[[Shape], Config]) -> Selection:
        """The answer for a shape of this layout. `default`: the form of BSP where nothing is
        known."""
        sizes = shape.sizes_key
        if self._own is not None and sizes in self._own._by_sizes:
            return self._own.answer(shape, default)
        known = None if self._lent else self._by_sizes.get(sizes)
        why = None if known is None else self._why_not(shape, known.best)
        if known is not None and why is None:
            return self._measured(shape, known)
        estimate = self._estimate(shape, sizes)
        if isinstance(estimate, str):
            return Selection(default(shape), "fallback", why or estimate)
        return self._decided(shape, estimate, default)

    def shortlist(self, shape: Shape) -> Iterator[Config]:
        """The configs that may answer for a shape, BSP's forms among them, the fastest first."""
        sizes = shape.sizes_key
        known, estimate = self._by_sizes.get(sizes), self._estimate(shape, sizes)
        listed = sorted((us, number) for number, us in known.times_us) if known else []
        if not isinstance(estimate, str):
            if around := next(self._around(shape, estimate), None):
                listed.append((around.us, around.number))
            listed += sorted(self._times(estimate, True) + self._times(estimate, False))
        seen = set()
        for number in dict.fromkeys(number for _, number in listed):
            config = self.times.concrete(shape, number)
            if config not in seen and self._why_not(shape, number) is None:
                seen.add(config)  # a recipe may name what is listed with its knobs, too
                yield config

    def leaf(self, shape: Shape) -> Leaf | None:
        """The leaf that answers for a shape; None where rows of its own family or speed-ups around
        it do, or nothing does."""
        sizes = shape.sizes_key
        known = sizes in self._by_sizes or self._neighbours(sizes) is not None
        if known or self._why_outside(sizes) or self.around(shape):
            return None
        return self._leaves[self._find(shape)]

    def around(self, shape: Shape) -> dict[str, float]:
        """Estimated speed-up of each variant by what was measured around a shape, the highest
        first; empty where that does not answer."""
        sizes = shape.sizes_key
        known = None if self._lent else self._by_sizes.get(sizes)
        own = known is not None and self._why_not(shape, known.best) is None
        borrowed = self._own is not None and sizes in self._own._by_sizes
        estimate = self._estimate(shape, sizes)
        if own or borrowed or isinstance(estimate, str):
            return {}
        named = self._around(shape, estimate)
        return {self.model.configs[one.number].variant: one.bsp_us / one.us for one in named}

    def _measured(self, shape: Shape, known: Known) -> Selection:
        """The answer of rows of this very shape."""
        config, us = self.times.concrete(shape, known.best), dict(known.times_us)[known.best]
        fastest_us = min(us for number, us in known.times_us if self._is_bsp[number])
        bsp_us: float | None = fastest_us
        source: Source = "modelled" if self._word == "modelled" else "measured"
        how = "measured" if source == "measured" else "predicted"
        said = f"{config.variant} was {how} to be"
        if known.interval is None and how == "predicted":
            reason = self._too_little([known], "on this shape")
        elif known.interval is None:
            reason = "no fused config was measured to be surely 1 % faster than BSP on this shape"
        else:
            (low, high), ratio = known.interval, fastest_us / us
            if low / ROUNDED <= ratio <= high * ROUNDED:
                interval = interval_text(known.interval, 95)
                reason = f"{said} {ratio:.2f} times as fast as BSP on this shape ({interval})"
                if how == "predicted":
                    reason += f"; {discounted(ratio)}"
            else:
                # The interval is of shared rounds. BSP's fastest time is of others, in a faster or
                # slower moment of the host.
                bsp_us, ratios = None, f"{low:.2f} to {high:.2f}"
                reason = f"{said} {ratios} times as fast as BSP on this shape (95 % interval)"
        return Selection(config, source, reason, us, bsp_us, known.interval, (known.sizes,))

    def _too_little(self, shapes: Iterable[Known], where: str) -> str:
        """Why BSP answers by modelled times: how fast a fused config is predicted to be at most at
        these shapes, and what the discount leaves of it. Above 1 that is where neighbours have no
        config in common."""
        gains = [
            (min(us for other, us in known.times_us if self._is_bsp[other]) / us, number)
            for known in shapes
            for number, us in known.times_us
            if not self._is_bsp[number]
        ]
        if not gains:
            return f"no fused config is predicted to be faster than BSP {where} by {discount()}"
        ratio, number = max(gains)
        predicted = f"predicted to be {ratio:.2f} times as fast as BSP {where}"
        but = ", but no config at all of them" if ratio > MODEL_ERROR else ""
        variant = self.model.configs[number].variant
        return f"{variant} is {predicted}; {discounted(ratio)}{but}: BSP"

    def _estimate(self, shape: Shape, sizes: Sizes) -> _Estimate | str:
        """Estimated times, or the sentence for which there are none."""
        neighbours, outside = self._neighbours(sizes), self._why_outside(sizes)
        if neighbours is None and outside is not None:
            return outside
        leaf = self._leaves[self._find(shape)] if outside is None else None
        curve = self.times.curve(sizes)
        sure = self.times.between(sizes, curve, *neighbours) if neighbours else {}
        size, formulas = sizes[self._place], self.model.formulas
        others = [
            number
            for number in (leaf.candidates if leaf else ())
            if number not in sure and formulas[number].holds(size)
        ]
        beside = leaf.near if leaf else ()
        near = tuple(known.sizes for known in neighbours) if neighbours else beside
        error = leaf.error if leaf else self.model.error
        return _Estimate(
            sure, tuple(others), lambda number: self.times.us(number, sizes, curve), error, near
        )

    def _times(self, estimate: _Estimate, is_bsp: bool) -> list[tuple[float, int]]:
        """Estimated times of the forms of BSP, or of the fused configs, with their numbers."""
        sure = [(us, number) for number, us in estimate.sure.items()]
        others = [number for number in estimate.others if self._is_bsp[number] == is_bsp]
        return [timed for timed in sure if self._is_bsp[timed[1]] == is_bsp] + [
            (estimate.us(number), number) for number in others
        ]

    def _why_outside(self, sizes: Sizes) -> str | None:
        """Why the tree says nothing about these sizes, or None."""
        if not self._leaves or not self.model.spans:
            known = f"{self._word} for {families_text(len(self._families))}"
            return (
                f"{self.model.title} was {known}, and this shape is not between two shapes of one"
            )
        for name, size, (least, most) in zip(self._names, sizes, self._ranges, strict=True):
            if not least <= size <= most:
                within = f"{math.ceil(least)} to {math.floor(most)}"
                known = f"what was {self._word} for {self.model.title}"
                return f"{size_text(name, size)} is outside of {within}, where {known} holds"
        return None

    def _neighbours(self, sizes: Sizes) -> tuple[Known, Known] | None:
        """The measured shapes of the same family just below and above."""
        family = self._families.get(self._family(sizes))
        if family is None:
            return None
        place = bisect_left(family, sizes[self._place], key=lambda known: known.sizes[self._place])
        if place < len(family) and family[place].sizes == sizes and 0 < place < len(family) - 1:
            # Its own rows name a config that may not answer.
            return family[place - 1], family[place + 1]
        return (family[place - 1], family[place]) if 0 < place < len(family) else None

    def _why_not(self, shape: Shape, number: int) -> str | None:
        """Why a config may not answer for a shape: its times do not hold here, or it breaks a
        rule."""
        return self._judge(number)(shape)

    def _judge_of(self, number: int) -> Callable[[Shape], str | None]:
        config = self.model.configs[number]
        kernel = self.model.kernels[number]
        stale = None if self._is_bsp[number] else self._given.why_stale(config, kernel)
        if stale is None:
            try:
                if self._space.is_recipe(config):
                    return partial(self._why_not_recipe, number)
                return self._space.judge(config, self._given.chip)
            except ValueError as error:  # a knob that is no more
                stale = str(error)
        return lambda shape: stale

    def _why_not_recipe(self, number: int, shape: Shape) -> str | None:
        config = self.times.concrete(shape, number)
        if not config.knobs:
            return f"{config.variant} has no default for this shape"
        return self._space.judge(config, self._given.chip)(shape)

    def _first(self, shape: Shape, times: Iterable[tuple[float, int]]) -> tuple[float, int] | None:
        """The fastest that may run."""
        allowed = (timed for timed in sorted(times) if self._why_not(shape, timed[1]) is None)
        return next(allowed, None)

    def _decided(
        self, shape: Shape, estimate: _Estimate, default: Callable[[Shape], Config]
    ) -> Selection:
        """The fastest fused config where it is surely faster than BSP, else BSP's fastest form."""
        word, near = self._word, estimate.near
        if named := next(self._around(shape, estimate), None):
            bsp, (us, bsp_us, number, near, error) = None, named
            where = f"{word} shapes around it"
        else:
            bsp = self._first(shape, self._times(estimate, True))
            fused = self._first(shape, self._times(estimate, False))
            if bsp is None or fused is None:
                known_us = bsp[0] if bsp else None
                nothing = f"no form of BSP was {word} nearby"
                why = nothing if fused else self._why_none(shape, estimate)
                form = self.times.concrete(shape, bsp[1]) if bsp else default(shape)
                source = self._source if bsp else "fallback"
                return Selection(form, source, why, known_us, known_us, None, near)
            (bsp_us, of_bsp), (us, number) = bsp, fused
            sure = {number, of_bsp} <= estimate.sure.keys()
            error = self.model.error if sure else estimate.error
            where = (
                f"the sizes {word} below and above" if sure else f"{word} shapes of other families"
            )
        error += self._lent_error
        ratio, config = bsp_us / us, self.times.concrete(shape, number)
        interval = ratio * math.exp(-WIDE * error), ratio * math.exp(WIDE * error)
        lent = f" with {self._lent}" * bool(self._lent)
        reason = (
            f"{config.variant} is estimated to be {ratio:.2f} times as fast as BSP "
            f"({interval_text(interval, 90)}), from {where}{lent}"
        )
        kept, needed = ratio / self._given.modelled_error, math.exp(SURE * error)
        if self._given.modelled_error > 1:
            reason += f"; {discounted(ratio)}"
        if kept > needed:
            return Selection(config, self._source, reason, us, bsp_us, interval, near)
        if kept > 1:
            reason += (
                f"; more than {needed:.3g} times is asked for, as such estimates err by "
                f"{math.expm1(error):.0%} (standard deviation)"
            )
        bsp = bsp or self._first(shape, self._times(estimate, True))
        form = self.times.concrete(shape, bsp[1]) if bsp else default(shape)
        return Selection(form, self._source, f"{reason}: BSP", bsp_us, bsp_us, None, near)

    def _around(self, shape: Shape, estimate: _Estimate) -> Iterator[Named]:
        """What speed-ups measured around a shape say of each variant, the highest first. Nothing
        where a kernel and BSP were both measured at a smaller and a larger size of the family,
        which says more."""
        if self._surroundings is None:
            return iter(())
        sure = [(us, number) for number, us in estimate.sure.items()]
        bsp, fused = (
            self._first(shape, [each for each in sure if self._is_bsp[each[1]] == is_bsp])
            for is_bsp in (True, False)
        )
        if bsp and fused:
            return iter(())
        bsp_us = bsp[0] if bsp else None
        return self._surroundings.named(shape.sizes_key, bsp_us, partial(self._why_not, shape))

    def _why_none(self, shape: Shape, estimate: _Estimate) -> str:
        """Why no fused config may answer."""
        for _, number in sorted(self._times(estimate, False)):
            why = self._why_not(shape, number)
            return f"{self.model.configs[number].variant} would be the fastest: {why}"
        if self._given.modelled_error > 1:
            near = (self._by_sizes[sizes] for sizes in estimate.near if sizes in self._by_sizes)
            return self._too_little(near, "on modelled shapes nearby")
        return f"nothing {self._word} nearby says that a fused config is faster than BSP"
