"""How good the timeline model is, against rows measured on GPUs: error of each config, ranking
within a shape, and what a search gains.

usage: python benchmarks/model.py [--target h200x2] [--mode graph] [--seeds 40] [--shapes] [--fit]
                                  [--chip FILE]

Out of sample: six constants of the chip were fitted (`--fit` does it again) to two families of
shapes, fp16, A sharded along K, B stored [K, N]: N=3584, K=8192, without M = 16 and M = 2048, and
N=2048, K=2048. The figures of the RESULT line are of all other shapes: other layouts and bf16;
other N and K, of a grid.

The rows are those of the kernels as they are; a config's time is the median over its rows of their
medians. Rows of failures do not count. Only the replayed searches go by superseded
rows, too: spaces that were exhausted.

mdape          median over configs of |modelled - measured| / measured
spearman       median over shapes of the rank correlation of modelled and measured times
top10          share of shapes where one of the ten configs that the model puts first is within 5 %
               of the best measured one; both of shapes with more than ten configs: two or three
               are in some order by chance
warm_over_cold evaluations until a config within 5 % of the best, of a search that starts with the
               model's best and asks lfbo with the model as a column, over those of lfbo without the
               model: medians over seeds, added up over the exhausted spaces; BSP first in both

overstated     the modelled speed-up over BSP over the measured one: 95 % of fused configs stay
               below; training on modelled rows allows for it

`roofline`: the same figures of the longest of operations, memory and links, each at its full rate,
for BSP their sum.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import launch
import sampler
from scipy.optimize import least_squares
from scipy.stats import spearmanr

from tftune.db.calibration_file import calibrated
from tftune.db.committed import files_of, read_trials
from tftune.db.target import Target
from tftune.db.trial import MODES, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import predict, timeline

NEAR, TOP = 1.05, 10
FITTED = ("unit_flops_per_us", "l2_bytes_per_us", "load_us", "block_us", "poll_us", "skew_us")
FIT_PER_SHAPE = 60
"""Configs of each shape that the fit sees, so that none outweighs the others."""

Times = dict[AllGatherGemm, dict[Config, float]]
Model = Callable[[AllGatherGemm, Config], float]


def in_fit(shape: AllGatherGemm) -> bool:
    """Whether the constants were fitted to this shape."""
    return in_fitted_layout(shape) and (
        (shape.n, shape.k) == (2048, 2048)
        or ((shape.n, shape.k) == (3584, 8192) and shape.m not in (16, 2048))
    )


def in_fitted_layout(shape: AllGatherGemm) -> bool:
    layout = shape.dtype, shape.shard, shape.b_layout, shape.operands
    return layout == ("fp16", "k", "kn", "local")


def read(target: str, every: bool = False) -> list[Trial]:
    """The committed rows that count, or every one."""
    return read_trials(files_of("all_gather_gemm", target), every=every)


def times(trials: Iterable[Trial], mode: str) -> Times:
    """Microseconds of each config of each shape, in a fixed order."""
    us_of: dict[AllGatherGemm, dict[Config, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        if trial.mode == mode and isinstance(trial.outcome, Measurement):
            us_of[trial.shape][trial.config].append(trial.outcome.median_us)  # type: ignore[index]
    return {
        shape: {config: median(us) for config, us in sorted(rows.items())}
        for shape, rows in sorted(us_of.items())
    }


@dataclass(frozen=True)
class Score:
    """How a model does on one shape."""

    errors: tuple[float, ...]
    """Modelled over measured, less 1, of each config."""
    spearman: float
    regret: float
    """The best measured time among the model's first ten, over the best of all."""


def score(measured: Mapping[Config, float], model: Callable[[Config], float]) -> Score:
    modelled = {config: model(config) for config in measured}
    first = sorted(measured, key=modelled.__getitem__)[:TOP]
    alike = len(set(modelled.values())) == 1
    rank = 0.0 if alike else spearmanr(list(modelled.values()), list(measured.values())).statistic
    return Score(
        tuple(modelled[config] / us - 1 for config, us in measured.items()),
        float(rank),
        min(measured[config] for config in first) / min(measured.values()),
    )


def overstated(rows: Times, model: Model) -> float:
    """The ratio of modelled to measured speed-up over the best form of BSP, of which 95 % of the
    configs that are not library calls stay below."""
    ratios = []
    for shape, measured in rows.items():
        forms = [config for config in measured if config.variant == "bsp"]
        if forms:
            bsp = min(model(shape, form) for form in forms) / min(measured[form] for form in forms)
            fused = (config for config in measured if not config.variant.startswith("bsp"))
            ratios += [bsp * measured[config] / model(shape, config) for config in fused]
    return sorted(ratios)[math.ceil(0.95 * len(ratios)) - 1]


def scores(rows: Times, model: Model) -> dict[AllGatherGemm, Score]:
    return {shape: score(measured, partial(model, shape)) for shape, measured in rows.items()}


def result(found: Iterable[Score]) -> dict[str, float]:
    found = list(found)
    ranked = [one for one in found if len(one.errors) > TOP] or found
    return {
        "mdape": median(abs(error) for one in found for error in one.errors),
        "spearman": median(one.spearman for one in ranked),
        "top10": sum(one.regret <= NEAR for one in ranked) / len(ranked),
    }


def roofline(shape: AllGatherGemm, config: Config, chip: Chip) -> float:
    """What a config must at least take: the longest of its parts, or for BSP their sum."""
    size = shape.element_bytes * (shape.k * (shape.m + shape.n) + shape.m * shape.n)
    times = -(-shape.n // config["block_n"]) if config.variant == "pull" else 1
    sent = shape.shard_bytes * (shape.world - 1) * times
    gemm_us = max(shape.flops / chip.rates.matrix_flops_per_us, size / chip.rates.hbm_bytes_per_us)
    links_us = sent / chip.links.rate(shape.world)
    return gemm_us + links_us if config.variant == "bsp" else max(gemm_us, links_us)


def fitted(rows: Times, mode: str, chip: Chip) -> Chip:
    """The chip with the constants of FITTED as they fit these rows best: least squares of log
    errors, large ones damped."""
    points = [(shape, *row) for shape, measured in rows.items() for row in _spread(measured)]
    start = [math.log(chip.known(name)) for name in FITTED]

    def residuals(logs: Iterable[float]) -> list[float]:
        tried = chip.with_constants(_exponentials(logs))
        return [math.log(predict(shape, config, mode, tried) / us) for shape, config, us in points]

    bounds = ([log - 3 for log in start], [log + 3 for log in start])
    fit = least_squares(
        residuals, start, bounds=bounds, loss="soft_l1", f_scale=0.1, diff_step=1e-3, max_nfev=15
    )
    return chip.with_constants(_exponentials(fit.x))


def _exponentials(logs: Iterable[float]) -> dict[str, float]:
    """The constants of FITTED by their logarithms."""
    return {name: math.exp(log) for name, log in zip(FITTED, logs, strict=True)}


def _spread(measured: Mapping[Config, float]) -> list[tuple[Config, float]]:
    """At most so many configs of a shape, evenly from the sorted ones."""
    rows = list(measured.items())
    step = max(1, math.ceil(len(rows) / FIT_PER_SHAPE))
    return rows[::step]


def warm_over_cold(
    trials: Iterable[Trial], target: Target, mode: str, seeds: int, least: int
) -> tuple[float, list[str]]:
    """The ratio, and a line for each exhausted space."""
    spaces = sampler.spaces(trials, target, mode, least)
    outcomes = sampler.run_all(spaces, ("warm", "plain"), seeds)
    lines, total = [], {"warm": 0.0, "plain": 0.0}
    for number, one in enumerate(spaces):
        warm, plain = (median(t.evaluations for t in outcomes[number, arm]) for arm in total)
        total = {"warm": total["warm"] + warm, "plain": total["plain"] + plain}
        lines.append(f"| {one.shape} | {len(one.ratios)} | {plain:g} | {warm:g} |")
    return total["warm"] / total["plain"], lines


def by_shape(found: Mapping[AllGatherGemm, Score]) -> Iterator[str]:
    yield "| shape | configs | median error | bias | spearman | first ten |"
    yield "|---" * 6 + "|"
    for shape, one in found.items():
        error, bias = median(map(abs, one.errors)), median(one.errors)
        rest = f"{one.spearman:.3f} | {one.regret:.3f}"
        yield f"| {shape} | {len(one.errors)} | {error:.3f} | {bias:+.3f} | {rest} |"


def taxes(rows: Times, mode: str, chip: Chip) -> Iterator[str]:
    """Modelled, for the best measured BSP and fused config of the paper's shapes."""
    yield "| M | config | measured us | modelled us | launch | wait | memory | work |"
    yield "|---" * 8 + "|"
    for shape, measured in rows.items():
        shown = (shape.n, shape.k) == (3584, 8192) and shape.m in (1, 64, 1024, 8192)
        for fused in (False, True) if shown and in_fitted_layout(shape) else ():
            kind = (config for config in measured if (config.variant != "bsp") == fused)
            config = min(kind, key=measured.__getitem__)
            one = timeline(shape, config, mode, chip)
            parts = (one.us, one.launch_us, one.wait_us, one.memory_us, one.work_us)
            times = " | ".join(f"{us:.1f}" for us in (measured[config], *parts))
            yield f"| {shape.m} | {config.variant} | {times} |"


def shown(figures: Mapping[str, float]) -> str:
    return " ".join(f"{name}={value:.3f}" for name, value in figures.items())


def main() -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--target", default="h200x2")
    parser.add_argument("--mode", default="graph", choices=MODES)
    parser.add_argument("--seeds", type=int, default=40, help="of replayed searches; 0: none")
    parser.add_argument("--least", type=int, default=380, help="configs of an exhausted space")
    parser.add_argument("--shapes", action="store_true", help="a line for each shape")
    parser.add_argument("--chip", type=Path, help="this machine's, from `tftune calibrate`")
    parser.add_argument("--fit", action="store_true", help="fit the constants again; score so")
    options = parser.parse_args()
    target, trials = Target.parse(options.target), read(options.target)
    if not any(trial.mode == options.mode for trial in trials):
        parser.error(
            f"no row of the kernels as they are is committed for {options.target}, mode "
            f"{options.mode}; name another --target"
        )
    rows = times(trials, options.mode)
    chip = (calibrated(target, options.chip) if options.chip else target).chip
    print(f"{target}: {chip.assumptions}")
    inside = {shape: measured for shape, measured in rows.items() if in_fit(shape)}
    outside = {shape: measured for shape, measured in rows.items() if not in_fit(shape)}
    if options.fit:
        chip = fitted(inside, options.mode, chip)
        print("\n".join(f"{name} = {chip.known(name):.4g}" for name in FITTED))
    if not outside:
        parser.error(f"every row of {options.target}, mode {options.mode}, is of a fitted shape")

    def modelled(shape: AllGatherGemm, config: Config) -> float:
        return predict(shape, config, options.mode, chip)

    for name, part in (("fitted to", inside), ("held out", outside)):
        if not part:
            print(f"\n{name}: no row of {options.target}")
            continue
        score_of = scores(part, modelled)
        print(
            f"\n{name}: {len(part)} shapes, {sum(map(len, part.values()))} configs, "
            f"{shown(result(score_of.values()))}"
        )
        if options.shapes:
            print("\n".join(by_shape(score_of)))
    large = [one for one in score_of.values() if len(one.errors) >= 4 * TOP]
    print(f"of those, {len(large)} shapes have {4 * TOP} configs or more: {shown(result(large))}")
    plain = scores(outside, lambda shape, config: roofline(shape, config, chip))
    print("roofline:", shown(result(plain.values())))
    print("\n".join(["", *taxes(rows, options.mode, chip)]))
    figures = result(score_of.values()) | {"overstated": overstated(outside, modelled)}
    if options.seeds:
        try:
            every = read(target.name, every=True)
            figures["warm_over_cold"], lines = warm_over_cold(
                every, target, options.mode, options.seeds, options.least
            )
        except ValueError as error:
            parser.error(f"{error}; or leave the replayed searches out with --seeds 0")
        head = ["", "| shape | configs | cold: evaluations | warm |", "|---" * 4 + "|"]
        print("\n".join([*head, *lines]))
    print(f"\nRESULT model {shown(figures)}")


if __name__ == "__main__":
    main()
