"""What the rows of one target say: the time of each config at each shape, beside which form of BSP,
and the best config known."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from tftune.db.discount import discount_of
from tftune.db.evidence import (
    BSP,
    Speedup,
    answer,
    comparable_us,
    complete,
    counted,
    is_surely_faster,
    of_newest_code,
    oldest_first,
    over_bsp,
)
from tftune.db.target import Target
from tftune.db.trial import BENCHES, EVIDENCE, MODES, Failure, Measurement, Trial
from tftune.kernels.core.chip import Chip
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, check_word
from tftune.kernels.core.space import Config

T = TypeVar("T")

ORACLE_EVALUATIONS = 160
"""An oracle of fewer evaluations, in a space not exhausted, is called incomplete."""


@dataclass(frozen=True)
class Oracle:
    """The best config known for one shape, by the figure that counts: final rows where there are
    any."""

    config: Config
    us: float
    evaluations: int
    complete: bool
    """Whether the space is exhausted, or 160 configs were tried."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One operation on one target, in one mode, from one bench. Every shape has a measured BSP
    form."""

    op: str
    target: str
    mode: str
    bench: str
    shapes: tuple[Shape, ...]
    outcomes: Mapping[Shape, Mapping[Config, Trial]]
    """The row that counts for each pair: final before search, then the newest."""
    times_us: Mapping[Shape, Mapping[Config, float]]
    """Comparable times of the pairs that were measured, see `evidence.comparable_us`."""
    oracles: Mapping[Shape, Oracle]
    kernels: Mapping[str, str]
    """The revision of each variant; rows of older ones are left out."""
    rows: int
    rows_digest: str
    skipped: tuple[Shape, ...]
    """Shapes left out because no BSP form of them was measured."""
    _results: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What `once` has worked out, by key."""

    def once(self, key: Hashable, work: Callable[..., T], *arguments: Any) -> T:
        """The result of `work(*arguments)`, computed once for each key. Datasets of fewer of the
        same shapes share results, so a result must not depend on which shapes these are."""
        if key not in self._results:
            self._results[key] = work(*arguments)
        result: T = self._results[key]
        return result

    def column(self, name: Hashable, at: Callable[[Shape], Any]) -> np.ndarray:
        """[shapes, ...]: a number of each shape, or several, worked out once for all shapes of the
        rows, whichever of them a fold has."""
        whole = self.once(name, lambda: np.array([*map(at, self.oracles)], dtype=float))
        return whole[self._places]

    @cached_property
    def _places(self) -> list[int]:
        place = {shape: number for number, shape in enumerate(self.oracles)}
        return [place[shape] for shape in self.shapes]

    def possible(self, shape: Shape) -> Possible:
        """What can run a shape on this target."""
        return self._possible.at(shape)

    @cached_property
    def _possible(self) -> _Shapes:
        return _shapes_on(self.op, Target.parse(self.target).chip)

    def measurement(self, shape: Shape, config: Config) -> Measurement | None:
        """None where the pair failed or was never measured."""
        trial = self.outcomes[shape].get(self.concrete(shape, config))
        return (
            trial.outcome if trial is not None and isinstance(trial.outcome, Measurement) else None
        )

    def concrete(self, shape: Shape, config: Config) -> Config:
        """The config that a recipe names for a shape (see `Space.concrete`); the recipe itself
        where it names none."""
        return config if config.knobs else self.possible(shape).concrete(config)

    def time_us(self, shape: Shape, config: Config) -> float | None:
        """Comparable time of a pair (see `times_us`); None where it failed or was never
        measured."""
        return self.times_us[shape].get(self.concrete(shape, config))

    def bsp(self, shape: Shape) -> Config:
        """The fastest BSP form."""
        return self.once((shape, "bsp"), self._bsp, shape)

    def _bsp(self, shape: Shape) -> Config:
        times = self.times_us[shape]
        return min((config for config in times if config.variant == BSP), key=times.__getitem__)

    def bsp_us(self, shape: Shape) -> float:
        return self.times_us[shape][self.bsp(shape)]

    def oracle(self, shape: Shape) -> Oracle:
        return self.oracles[shape]

    def log_regret(self, shape: Shape, config: Config) -> float | None:
        """Logarithm of time over the oracle's, at least 0: a search row may look faster than a
        final one."""
        us = self.time_us(shape, config)
        return None if us is None else max(math.log(us / self.oracle(shape).us), 0.0)

    def speedup(self, shape: Shape, config: Config) -> Speedup:
        """BSP's time over the config's, with its 95 % interval.

        BSP is its fastest form. The interval is that of the rounds which the config shared with a
        form of BSP, moved to the fastest one; without shared rounds, of the two separate intervals.
        The low bound of modelled times has the discount (`discount_of`). Zeros where the pair was
        not measured.
        """
        measurement = self.measurement(shape, config)
        if measurement is None:
            return Speedup(0.0, 0.0, 0.0)
        us, bsp_us = self.times_us[shape][self.concrete(shape, config)], self.bsp_us(shape)
        if self.bench != "model" and measurement.speedup is not None:
            trial = self.outcomes[shape][self.concrete(shape, config)]
            return Speedup(bsp_us / us, *over_bsp(trial, us, bsp_us).interval)
        bsp = self.measurement(shape, self.bsp(shape)) or measurement
        (bsp_low, bsp_high), (low, high) = bsp.interval_us, measurement.interval_us
        return Speedup(bsp_us / us, bsp_low / high / discount_of(self.bench), bsp_high / low)

    def allowed(self, shape: Shape, config: Config) -> bool:
        """Whether an answer for this shape may name the config: measured, valid, and BSP or
        surely faster."""
        return self.once((shape, config), self._allowed, shape, config)

    def _allowed(self, shape: Shape, config: Config) -> bool:
        if self.measurement(shape, config) is None or self.why_invalid(shape, config) is not None:
            return False
        return config.variant == BSP or is_surely_faster(
            self.speedup(shape, config).interval, discount_of(self.bench)
        )

    def best(self, shape: Shape) -> Config:
        """What answers for this very shape, see `evidence.answer`."""
        known = self.outcomes[shape], self.times_us[shape], partial(self.allowed, shape)
        return self.once((shape, "best"), answer, *known)

    def why_invalid(self, shape: Shape, config: Config) -> str | None:
        return self.possible(shape).why_invalid(config)

    def only(self, shapes: Iterable[Shape]) -> Dataset:
        """The same rows for fewer shapes, as held-out evaluation trains on."""
        return replace(self, shapes=tuple(shapes))

    def by_layout(self) -> dict[tuple[int | str, ...], Dataset]:
        """The shapes apart by their layouts, those with most shapes first."""
        alike = groups(self.shapes, lambda shape: shape.layout)
        ranked = sorted(alike.items(), key=lambda item: (-len(item[1]), str(item[0])))
        return {layout: self.only(shapes) for layout, shapes in ranked}

    def is_final(self, shape: Shape, config: Config) -> bool:
        """Whether a row of the final stage, or of the matrix, speaks of the pair."""
        trial = self.outcomes[shape].get(self.concrete(shape, config))
        return trial is not None and trial.stage != "search"

    @cached_property
    def matrix(self) -> tuple[Shape, ...]:
        """The shapes of the matrix, where some config was measured as one of those that are
        measured everywhere."""
        return tuple(
            shape
            for shape in self.shapes
            if any(trial.stage == "matrix" for trial in self.outcomes[shape].values())
        )


class Possible:
    """What can run one shape on one chip. Training asks about the same configs many times, so
    answers are kept."""

    def __init__(self, op: str, chip: Chip, shape: Shape) -> None:
        self._op, self._chip, self._shape = op, chip, shape
        self.why_invalid = cache(self._why_invalid)

    @cached_property
    def _recipes(self) -> Mapping[str, Config]:
        space = operation(self._op).space
        return space.recipes(self._shape, space.variants, self._chip)

    def concrete(self, config: Config) -> Config:
        """The config that a recipe names; the recipe itself where it names none."""
        return config if config.knobs else self._recipes.get(config.variant, config)

    def _why_invalid(self, config: Config) -> str | None:
        """The sentence for which the config, or what a recipe names, cannot run; or None."""
        config = self.concrete(config)
        if operation(self._op).space.is_recipe(config):
            return f"{config.variant} has no default for this shape"
        return operation(self._op).space.judge(config, self._chip)(self._shape)


class _Shapes:
    """What can run the shapes that were asked about last."""

    def __init__(self, op: str, chip: Chip) -> None:
        self._given = op, chip
        self.at = lru_cache(maxsize=2**13)(partial(Possible, op, chip))

    def __reduce__(self) -> tuple[Callable[[str, Chip], _Shapes], tuple[str, Chip]]:
        """Another process makes its own: rules are functions, which cannot be sent."""
        return _shapes_on, self._given


@lru_cache(maxsize=16)
def _shapes_on(op: str, chip: Chip) -> _Shapes:
    """By the chip rather than by its target's name: the same name may get other constants."""
    return _Shapes(op, chip)


def _oracle(
    op: str,
    target: str,
    shape: Shape,
    found: Mapping[Config, Trial],
    times_us: Mapping[Config, float],
) -> Oracle:
    final = {
        config: us
        for config, us in times_us.items()
        if found[config].stage != "search" or config.variant == BSP
    }
    times = final if any(trial.stage != "search" for trial in found.values()) else times_us
    config, count = min(times, key=times.__getitem__), len(found)
    feasible = operation(op).space.configs(shape, Target.parse(target).chip)
    complete = count >= ORACLE_EVALUATIONS or len(list(islice(feasible, count + 1))) <= count
    return Oracle(config, times[config], count, complete)


def load(
    trials: Iterable[Trial],
    op: str,
    target: str,
    mode: str,
    bench: str,
    stages: Collection[str] = EVIDENCE,
) -> Dataset:
    """The dataset of these rows; raises ValueError, with the next command, where none can be used.

    `stages`: those that count; rows of `warm_up` only where they are named here.
    """
    for name, value, known in (("mode", mode, MODES), ("bench", bench, BENCHES)):
        check_word(name, value, known)
    if bench == "drill":
        raise ValueError(
            "rows of a drill are not trained on, since faults were injected; run `tftune search "
            f"{op}` without --inject"
        )
    key = op, target, mode, bench
    wanted = [
        t
        for t in trials
        if (t.op, t.target, t.mode, t.bench) == key and t.stage in stages and not t.condition
    ]
    rows = _current(op, wanted)
    by_shape = groups(rows, lambda row: row[1].shape)
    outcomes = {shape: counted(of_shape) for shape, of_shape in by_shape.items()}
    measured = {shape: _has_bsp(of_shape) for shape, of_shape in sorted(outcomes.items())}
    if not any(measured.values()):
        on = "" if bench == "node" else f" --on {bench} --target {target}"
        raise ValueError(
            f"no row of {op} on {target} in mode {mode} from the {bench} bench has a measured BSP "
            f"({len(wanted)} such rows); "
            f"run `tftune search {op}{on} --mode {mode}`"
        )
    shapes = tuple(shape for shape, has in measured.items() if has)
    times = {shape: comparable_us(outcomes[shape], by_shape[shape], mode) for shape in shapes}
    return Dataset(
        op, target, mode, bench, shapes, dict(outcomes),
        times_us=times,
        oracles={
            shape: _oracle(op, target, shape, outcomes[shape], times[shape]) for shape in shapes
        },
        kernels={config.variant: trial.revision for config, trial in rows},
        rows=len(rows),
        rows_digest=rows_digest(trial for _, trial in rows),
        skipped=tuple(shape for shape, has in measured.items() if not has),
    )  # fmt: skip


def rows_digest(trials: Iterable[Trial]) -> str:
    """Sixteen hexadecimal digits of a set of rows, whatever their order."""
    return sha256("\n".join(sorted(trial.id for trial in trials)).encode()).hexdigest()[:16]


def _has_bsp(found: Mapping[Config, Trial]) -> bool:
    return any(
        config.variant == BSP and not isinstance(trial.outcome, Failure)
        for config, trial in found.items()
    )


def _current(op: str, trials: Iterable[Trial]) -> list[tuple[Config, Trial]]:
    """Rows of the newest code of each variant, the oldest first, with complete configs; those whose
    knobs no longer exist are left out."""
    space, current = operation(op).space, of_newest_code(oldest_first(trials))
    completed = {config: complete(space, config) for config in {trial.config for trial in current}}
    return [(config, trial) for trial in current if (config := completed[trial.config]) is not None]


def configs_of(dataset: Dataset) -> Iterator[Config]:
    """Every config with a time at some shape, each once, in a fixed order."""
    yield from sorted({config for shape in dataset.shapes for config in dataset.times_us[shape]})
