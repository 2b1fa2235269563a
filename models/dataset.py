"""What the rows of one target say: the time of each config for each shape, the oracle, and a small portfolio worth choosing from."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import islice

from tftune.db.target import Target
from tftune.db.trial import BENCHES, MODES, STAGES, Failure, Measurement, Trial
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config

ORACLE_EVALUATIONS = 160
"""An oracle of fewer evaluations, in a space not exhausted, is called incomplete."""
MODEL_ERROR = 1.44
"""How many times the model may overstate a speed-up over BSP: 95 % of configs stay below, out of sample (benchmarks/model.py)."""
SMALLEST_GAIN = 1e-3
"""A config joins the portfolio where the mean log regret falls by at least this: a tenth of a percent of the time."""
UNTRIED = 1.5
"""Times as long as the best BSP form, what a form is taken to need at a shape where it was never measured."""
MATRIX_SIZE = 24
"""Configs of each mode, BSP's forms among them, that `tftune search --portfolio` measures on every shape: more than a tree needs, so that
one which is trained on a part of the shapes has others to choose from."""


@dataclass(frozen=True)
class Oracle:
    """The best config known for one shape, by the figure that counts: final rows where there are any."""

    config: Config
    us: float
    evaluations: int
    complete: bool
    """Whether the space is exhausted, or 160 configs were tried."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One operation on one target, in one mode, from one bench. Every shape has a measured BSP form."""

    op: str
    target: str
    mode: str
    bench: str
    shapes: tuple[Shape, ...]
    outcomes: Mapping[Shape, Mapping[Config, Trial]]
    """The row that counts for each pair: final before search, then the newest."""
    times_us: Mapping[Shape, Mapping[Config, float]]
    """Of the pairs that were measured. Captured, for a fused config the best BSP's time times the ratio of the rounds that both shared,
    because absolute times drift between worlds and days; else the median. Eager, the median: there BSP drifts most, by its host (the same
    final configs in two sessions: medians differ by 5 %, ratios to BSP by 11 %, in the median; docs/measured.md)."""
    oracles: Mapping[Shape, Oracle]
    kernels: Mapping[str, str]
    """Kernel hash of each variant; rows of older kernels are left out."""
    rows: int
    rows_digest: str
    skipped: tuple[Shape, ...]
    """Shapes left out because no BSP form of them was measured."""

    def measurement(self, shape: Shape, config: Config) -> Measurement | None:
        """None where the pair failed or was never measured."""
        trial = self.outcomes[shape].get(config)
        return trial.outcome if trial is not None and isinstance(trial.outcome, Measurement) else None

    def time_us(self, shape: Shape, config: Config) -> float | None:
        """Comparable time of a pair (see `times_us`); None where it failed or was never measured."""
        return self.times_us[shape].get(config)

    def bsp(self, shape: Shape) -> Config:
        """The fastest BSP form."""
        forms = {config: us for config, us in self.times_us[shape].items() if config.variant == "bsp"}
        return min(forms, key=forms.__getitem__)

    def bsp_us(self, shape: Shape) -> float:
        return self.times_us[shape][self.bsp(shape)]

    def oracle(self, shape: Shape) -> Oracle:
        return self.oracles[shape]

    def log_regret(self, shape: Shape, config: Config) -> float | None:
        """Logarithm of time over the oracle's, at least 0 (a search row may look faster than the oracle's final one)."""
        us = self.time_us(shape, config)
        return None if us is None else max(math.log(us / self.oracle(shape).us), 0.0)

    def speedup_low(self, shape: Shape, config: Config) -> float:
        """The lower bound of the speed-up over BSP: of the rounds they shared, else of their separate intervals, less the model's own
        error where both were modelled; 0 where not measured."""
        found = self.measurement(shape, config)
        if found is None:
            return 0.0
        if self.bench != "model" and found.speedup_interval is not None and found.speedup is not None:
            return found.speedup_interval[0] * min(1.0, self.bsp_us(shape) / (self.times_us[shape][config] * found.speedup))
        bsp = self.measurement(shape, self.bsp(shape)) or found
        return bsp.interval_us[0] / found.interval_us[1] / (MODEL_ERROR if self.bench == "model" else 1.0)

    def allowed(self, shape: Shape, config: Config) -> bool:
        """Whether a leaf with this shape may name the config: measured, valid, and BSP or faster than BSP with confidence."""
        if self.measurement(shape, config) is None or self.why_invalid(shape, config) is not None:
            return False
        return config.variant == "bsp" or self.speedup_low(shape, config) >= 1

    def loss(self, shape: Shape, config: Config) -> float:
        """Log regret through the production path, where the best BSP form stands in for what is not allowed."""
        served = config if self.allowed(shape, config) else self.bsp(shape)
        return self.log_regret(shape, served) or 0.0

    def why_invalid(self, shape: Shape, config: Config) -> str | None:
        return _why_invalid(self.op, self.target, shape, config)

    def only(self, shapes: Iterable[Shape]) -> Dataset:
        """The same rows for fewer shapes, as held-out evaluation trains on."""
        return replace(self, shapes=tuple(shapes))

    @property
    def configs(self) -> tuple[Config, ...]:
        """The default portfolio."""
        return portfolio(self)

    def candidates(self) -> tuple[Config, ...]:
        """Configs measured on at least half of the shapes, of some family, that they are valid for: in final rows where the family has
        them, since among many rows of a search the fastest is fast by luck, too. And each shape's own oracle, where a final row says
        so: a leaf may name it for that shape alone."""
        families: dict[object, list[Shape]] = defaultdict(list)
        for shape in self.shapes:
            families[shape.family].append(shape)
        common = {config for shapes in families.values() for config in self._common(shapes)}
        own = {self.oracle(shape).config for shape in self.shapes}
        return tuple(sorted(common | {config for config in own if any(self.is_final(shape, config) for shape in self.shapes)}))

    @cached_property
    def listed(self) -> tuple[Config, ...]:
        """The configs of a matrix: those that `tftune search --portfolio` measured at a shape whose own default they are not; and at half
        of those that they are possible for, since what was a default when it was measured may be none now."""
        space, chip = operation(self.op).space, Target.parse(self.target).chip
        found: set[Config] = set()
        for shape in self.matrix:
            own = {space.complete(config) for config in space.defaults(shape, chip)}
            found |= self._in_matrix[shape] - own
        return tuple(sorted(config for config in found if self._is_everywhere(config)))

    @cached_property
    def _in_matrix(self) -> Mapping[Shape, frozenset[Config]]:
        """What was measured at each shape of the matrix."""
        stages = {shape: self.outcomes[shape].items() for shape in self.matrix}
        return {shape: frozenset(config for config, trial in rows if trial.stage == "matrix") for shape, rows in stages.items()}

    def _is_everywhere(self, config: Config) -> bool:
        count = sum(config in configs for configs in self._in_matrix.values())
        possible = (shape for shape in self.matrix if self.why_invalid(shape, config) is None)
        return len(list(islice(possible, 2 * count + 1))) <= 2 * count

    @cached_property
    def matrix(self) -> tuple[Shape, ...]:
        """The shapes of the matrix."""
        return tuple(s for s in self.shapes if any(trial.stage == "matrix" for trial in self.outcomes[s].values()))

    def refuse_missing(self) -> None:
        """Raise ValueError where a pair of the matrix was never tried: a config that is possible for a shape and has neither a time nor
        a failure there would be taken for one that loses nothing."""
        pairs = [(shape, config) for shape in self.matrix for config in self.listed if config not in self.outcomes[shape]]
        missing = [(shape, config) for shape, config in pairs if self.why_invalid(shape, config) is None]
        if missing:
            shape, config = missing[0]
            count = Counter(shape for shape, _ in missing)
            raise ValueError(
                f"{len(missing)} pairs of the portfolio were never measured in mode {self.mode}, at {len(count)} of {len(self.matrix)} "
                f"shapes, such as {config} at {shape}; run `tftune search {self.op} --portfolio` with these shapes again"
            )

    def is_final(self, shape: Shape, config: Config) -> bool:
        """Whether a row of the final stage, or of the matrix, speaks of the pair."""
        trial = self.outcomes[shape].get(config)
        return trial is not None and trial.stage != "search"

    def _common(self, shapes: list[Shape]) -> Iterator[Config]:
        """Stops counting valid shapes as soon as they are too many: most rows of a search are of configs tried once."""
        pairs = [(shape, config) for shape in shapes for config in self.times_us[shape]]
        final = [(shape, config) for shape, config in pairs if self.outcomes[shape][config].stage != "search"]
        for config, count in Counter(config for _, config in final or pairs).items():
            valid = (shape for shape in shapes if self.why_invalid(shape, config) is None)
            if 2 * count >= len(shapes) or 0 < len(list(islice(valid, 2 * count + 1))) <= 2 * count:
                yield config


@lru_cache(maxsize=2**19)
def _why_invalid(op: str, target: str, shape: Shape, config: Config) -> str | None:
    return _judge(op, target, config)(shape)


@lru_cache(maxsize=2**12)
def _judge(op: str, target: str, config: Config) -> Callable[[Shape], str | None]:
    return operation(op).space.judge(config, Target.parse(target).chip)


def _times_us(found: Mapping[Config, Trial], fastest_us: Mapping[Config, float], mode: str) -> dict[Config, float]:
    """Of each config that was measured: its median, where captured scaled to rounds in which BSP takes what it takes in the rows that
    count. BSP of a matrix counts with the fastest it was seen at in any stage: beside many other configs its collective is slower."""
    measured = {config: trial.outcome for config, trial in found.items() if isinstance(trial.outcome, Measurement)}
    bsp_us = min((outcome.median_us for config, outcome in measured.items() if config.variant == "bsp"), default=math.nan)
    shared = {config: outcome.speedup for config, outcome in measured.items() if outcome.speedup is not None and mode == "graph"}
    scaled = {config: bsp_us / speedup for config, speedup in shared.items()}
    medians = {config: outcome.median_us for config, outcome in measured.items()}
    beside_many = {config for config in measured if found[config].stage == "matrix"}
    return medians | scaled | {config: us for config, us in fastest_us.items() if config in beside_many}


def _fastest_bsp(rows: Iterable[tuple[Config, Trial]]) -> dict[Shape, dict[Config, float]]:
    """The least median of each BSP form at each shape, whatever the stage."""
    found: dict[Shape, dict[Config, float]] = defaultdict(dict)
    for config, trial in rows:
        if config.variant == "bsp" and isinstance(trial.outcome, Measurement):
            found[trial.shape][config] = min(trial.outcome.median_us, found[trial.shape].get(config, math.inf))
    return found


def _oracle(op: str, target: str, shape: Shape, found: Mapping[Config, Trial], times_us: Mapping[Config, float]) -> Oracle:
    final = {config: us for config, us in times_us.items() if found[config].stage != "search" or config.variant == "bsp"}
    times = final if any(trial.stage != "search" for trial in found.values()) else times_us
    config, count = min(times, key=times.__getitem__), len(found)
    feasible = operation(op).space.configs(shape, Target.parse(target).chip)
    complete = count >= ORACLE_EVALUATIONS or len(list(islice(feasible, count + 1))) <= count
    return Oracle(config, times[config], count, complete)


def load(trials: Iterable[Trial], op: str, target: str, mode: str, bench: str) -> Dataset:
    """The dataset of these rows; raises ValueError, with the next command, where none of them can be used."""
    for name, value, known in (("mode", mode, MODES), ("bench", bench, BENCHES)):
        if value not in known:
            raise ValueError(f"{name}={value!r} is not one of {', '.join(known)}")
    if bench == "drill":
        raise ValueError(f"rows of a drill are not trained on, since faults were injected; run `tftune search {op}` without --inject")
    wanted = [t for t in trials if (t.op, t.target, t.mode, t.bench) == (op, target, mode, bench)]
    rows = _current(op, sorted(wanted, key=lambda trial: trial.created))
    outcomes: dict[Shape, dict[Config, Trial]] = defaultdict(dict)
    for config, trial in sorted(rows, key=lambda row: list(STAGES).index(row[1].stage)):
        outcomes[trial.shape][config] = trial
    measured = {shape: _has_bsp(found) for shape, found in sorted(outcomes.items())}
    if not any(measured.values()):
        on = "" if bench == "node" else f" --on {bench} --target {target}"
        raise ValueError(
            f"no row of {op} on {target} in mode {mode} from the {bench} bench has a measured BSP ({len(wanted)} such rows); "
            f"run `tftune search {op}{on} --mode {mode}`"
        )
    shapes = tuple(shape for shape, has in measured.items() if has)
    fastest = _fastest_bsp(rows)
    times = {shape: _times_us(outcomes[shape], fastest[shape], mode) for shape in shapes}
    return Dataset(
        op, target, mode, bench, shapes, dict(outcomes),
        times_us=times,
        oracles={shape: _oracle(op, target, shape, outcomes[shape], times[shape]) for shape in shapes},
        kernels={config.variant: trial.kernel_hash for config, trial in rows},
        rows=len(rows),
        rows_digest=rows_digest(trial for _, trial in rows),
        skipped=tuple(shape for shape, has in measured.items() if not has),
    )  # fmt: skip


def rows_digest(trials: Iterable[Trial]) -> str:
    """Sixteen hexadecimal digits of a set of rows, whatever their order."""
    return sha256("\n".join(sorted(trial.id for trial in trials)).encode()).hexdigest()[:16]


def _has_bsp(found: Mapping[Config, Trial]) -> bool:
    return any(config.variant == "bsp" and not isinstance(trial.outcome, Failure) for config, trial in found.items())


def _current(op: str, trials: list[Trial]) -> list[tuple[Config, Trial]]:
    """Rows of the newest kernel of each variant, with complete configs; those whose knobs no longer exist are left out."""
    newest = {trial.config.variant: trial.kernel_hash for trial in trials}
    complete = {config: _complete(op, config) for config in {trial.config for trial in trials}}
    current = [(complete[trial.config], trial) for trial in trials if trial.kernel_hash == newest[trial.config.variant]]
    return [(config, trial) for config, trial in current if config is not None]


def _complete(op: str, config: Config) -> Config | None:
    try:
        return operation(op).space.complete(config)
    except ValueError:
        return None


def portfolio(dataset: Dataset, size: int = 12) -> tuple[Config, ...]:
    """Few configs that keep the regret small: the best BSP forms, then, greedily, what lowers the mean log regret most.

    A pair never measured lowers nothing. Raises ValueError where `size` leaves no room for BSP.
    """
    return _cover(dataset, dataset.candidates(), size)


def cover(trials: Iterable[Trial], op: str, target: str, mode: str, bench: str, size: int = MATRIX_SIZE) -> tuple[Config, ...]:
    """What to measure on every shape: the portfolio of all configs in these rows, few of which were tried at more than some shapes."""
    dataset = load(trials, op, target, mode, bench)
    return _cover(dataset, sorted({config for shape in dataset.shapes for config in dataset.times_us[shape]}), size)


def _forms(dataset: Dataset, most: int) -> list[Config]:
    """The best BSP form of each shape; where they are more than so many, as in an operation whose BSP has knobs, those that keep the time
    lost to each shape's best form small. A form never measured at a shape is taken to lose UNTRIED there."""
    forms = sorted({dataset.bsp(shape) for shape in dataset.shapes})
    best = {shape: dataset.bsp_us(shape) for shape in dataset.shapes}
    lost = {form: [math.log(dataset.times_us[s].get(form, UNTRIED * us) / us) for s, us in best.items()] for form in forms}
    chosen = forms if len(forms) <= most else []
    while len(chosen) < min(most, len(forms)):
        least = [min((lost[form][place] for form in chosen), default=math.inf) for place in range(len(dataset.shapes))]
        rest = (form for form in forms if form not in chosen)
        chosen = [*chosen, min(rest, key=lambda form: (sum(map(min, least, lost[form])), form))]
    return sorted(chosen)


def _cover(dataset: Dataset, candidates: Iterable[Config], size: int) -> tuple[Config, ...]:
    chosen = _forms(dataset, max(2, size // 3))
    if size < len(chosen):
        raise ValueError(f"a portfolio of {size} is smaller than the {len(chosen)} best BSP forms")
    losses = {config: [dataset.loss(shape, config) for shape in dataset.shapes] for config in candidates}
    best = [dataset.loss(shape, dataset.bsp(shape)) for shape in dataset.shapes]
    return tuple(sorted([*chosen, *greedy(losses, best, size - len(chosen))]))


def greedy(losses: Mapping[Config, Sequence[float]], best: Sequence[float], most: int) -> list[Config]:
    """At most so many configs, each the one that lowers the mean over shapes of what is lost the most. `losses`: log regret at each shape;
    `best`: what is lost there without any of them."""
    chosen: list[Config] = []
    while losses and len(chosen) < most:
        gains = {config: sum(max(had - loss, 0.0) for had, loss in zip(best, row, strict=True)) for config, row in losses.items()}
        config = max(gains, key=gains.__getitem__)
        if gains[config] < SMALLEST_GAIN * len(best):
            break
        chosen.append(config)
        best = [min(pair) for pair in zip(best, losses[config], strict=True)]
    return chosen
