"""From the rows of one layout to what an artifact says of it: formulas, a tree no larger than it
must be, and the measured shapes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, size_of
from tftune.kernels.core.space import Config
from tftune.models.answerer import WIDE
from tftune.models.dataset import Dataset, configs_of
from tftune.models.features import names
from tftune.models.formula.arrays import Times
from tftune.models.formula.fit import (
    LEAST_ROWS,
    Formulas,
    Judged,
    fastest,
    fit_formulas,
    held_out,
    judge,
)
from tftune.models.gains import Around, Gains, Ranking, logs_of, nearest
from tftune.models.layout import Known, LayoutModel
from tftune.models.portfolio import portfolio
from tftune.models.tree.lattice import CANDIDATES, FORMS, Lattice, plain_tree
from tftune.models.tree.tree import Leaf, Node, Sizes

PORTFOLIO = 24
"""Configs that may answer for unmeasured shapes at most, BSP's forms among them."""
LEAVES = (1, 2, 4, 8, 16, 32)
SUMMARY_LEAVES = 6
"""The most leaves of a tree that only sums up what was measured."""
LEAST_MEMBERS = 6
"""Errors that decide half of a leaf's own error; the rest is that of all leaves."""
FAMILIES = 3
"""Families of shapes from which on the tree answers for families that were never measured."""
UNKNOWN_ERROR = 0.05
"""Taken for the error between two sizes where no size in between was measured."""
LEAST_ERROR = 0.01
"""The least error of a speed-up that is estimated: what two measurements of one pair differ by."""
KEPT = 1.25
"""Times over the fastest's up to which a measured time is kept, to answer between two sizes."""
MOST, MARGIN = 0.9, 0.01
"""A share of the shapes, and mean log time by which fixed knobs must lose less than recipes: their
estimates err more."""


def train_layout(data: Dataset, spanning: bool = True) -> LayoutModel:
    """The model of the rows of one layout. `spanning` False: it answers for no family that was
    never measured."""
    times, judged = _answering(data)
    common = times.configs
    kept = {shape: _kept(data, shape, common) for shape in data.shapes}
    configs = tuple(sorted({*common, *(config for each in kept.values() for config in each)}))
    everything = Times(data, configs)
    formulas = fit_formulas(everything, np.arange(len(data.shapes)))
    spans = spanning and len({shape.layer for shape in data.shapes}) >= FAMILIES
    judged = (judged or judge(times)) if spans else Judged({}, {})
    root = _grown(times, configs, judged) if judged.lost else None
    measured = root is not None and data.bench != "model"  # modelled times are sums, as formulas
    gains = _gains(everything, formulas, kept, judged) if measured else None
    return LayoutModel(
        op=data.op, mode=data.mode, layout=data.shapes[0].layout, configs=configs,
        kernels=tuple(
            "" if config.variant == "bsp" else data.kernels[config.variant] for config in configs
        ),
        formulas=formulas.values(),
        known=tuple(_known(data, shape, kept[shape], configs) for shape in data.shapes),
        root=root or _summary(everything), spans=root is not None,
        error=_error_between(everything, formulas), gains=gains,
    )  # fmt: skip


def _answering(data: Dataset) -> tuple[Times, Judged | None]:
    """The configs that may answer for unmeasured shapes: recipes (what each variant does by
    default, which follows the shape), or a portfolio of fixed knobs where that answers for MOST of
    the shapes held out and loses less by MARGIN. Also how formulas of these answer for shapes held
    out; None where that was not judged."""
    often, is_recipe = _often_measured(data), operation(data.op).space.is_recipe
    fixed = Times(
        data, portfolio(data, [config for config in often if not is_recipe(config)], PORTFOLIO)
    )
    recipes = Times(data, tuple(config for config in often if not config.knobs))
    if recipes.is_bsp.all() or not recipes.is_bsp.any():
        return fixed, None
    if fixed.is_bsp.all():
        return recipes, None
    by_fixed, by_recipes = judge(fixed), judge(recipes)
    both = by_fixed.lost.keys() & by_recipes.lost.keys()
    saved = math.fsum(by_recipes.lost[row] - by_fixed.lost[row] for row in both) / max(len(both), 1)
    enough = len(both) >= MOST * len(by_recipes.lost) and saved > MARGIN
    return (fixed, by_fixed) if enough or not by_recipes.lost else (recipes, by_recipes)


def _often_measured(data: Dataset) -> list[Config]:
    """Configs measured at enough shapes to have a formula of their own; with few shapes, at half of
    them. Rows of a search alone do not count where there is a matrix: among many configs tried once
    the fastest is fast by luck, too."""
    count = Counter(
        config
        for shape in data.shapes
        for config in data.times_us[shape]
        if not data.matrix or data.is_final(shape, config)
    )
    recipes = [Config(variant) for variant in sorted({config.variant for config in count})]
    for recipe in recipes:
        count[recipe] = sum(data.measurement(shape, recipe) is not None for shape in data.shapes)
    enough = min(LEAST_ROWS, max(len(data.shapes) // 2, 1))
    return [config for config in [*configs_of(data), *recipes] if count[config] >= enough]


def _kept(data: Dataset, shape: Shape, common: Sequence[Config]) -> tuple[Config, ...]:
    """The configs whose times at a measured shape are kept: BSP's forms, and what is faster than
    BSP there and near the fastest. Of modelled times also the fastest fused config, whatever the
    discount leaves of it: an answer says by how much it is too slow."""
    is_recipe = operation(data.op).space.is_recipe
    recipes = [
        recipe for recipe in common if is_recipe(recipe) and data.time_us(shape, recipe) is not None
    ]
    times = sorted((us, config) for config, us in data.times_us[shape].items())
    most = KEPT * data.times_us[shape][data.best(shape)]
    forms = [config for _, config in times if config.variant == "bsp"][: 2 * FORMS]
    fused = [(us, config) for us, config in times if config.variant != "bsp"]
    near = [config for us, config in fused if us <= most]
    shown = [config for _, config in fused[:1]] if data.bench == "model" else []
    allowed = [config for config in near if data.allowed(shape, config)][: 2 * CANDIDATES]
    kept = dict.fromkeys([*forms, *shown, *allowed, data.best(shape)])
    return (*kept, *(recipe for recipe in recipes if data.concrete(shape, recipe) in kept))


def _known(data: Dataset, shape: Shape, kept: Sequence[Config], configs: Sequence[Config]) -> Known:
    best, number = data.best(shape), {config: number for number, config in enumerate(configs)}
    interval = None if best.variant == "bsp" else data.speedup(shape, best)[1:]
    times = {number[config]: data.time_us(shape, config) or 0.0 for config in kept}
    return Known(shape.sizes_key, number[best], interval, tuple(sorted(times.items())))


def _gains(
    times: Times,
    formulas: Formulas,
    kept: Mapping[Shape, Collection[Config]],
    by_formulas: Judged,
) -> Gains | None:
    """Speed-ups of variants by shape; None where formulas of times neither lose nor err more, or
    too few shapes could be judged. How far off an estimate below 1 is does not count: BSP answers.
    A variant of which no config is kept has nothing that could answer."""
    data = times.data
    by_shape = [_fastest_of_each(data, shape, times.configs) for shape in data.shapes]
    logs = {
        variant: tuple(
            math.log(data.bsp_us(shape) / each[variant][0]) if variant in each else None
            for shape, each in zip(data.shapes, by_shape, strict=True)
        )
        for variant in sorted({config.variant for config in times.configs} - {"bsp"})
    }
    named = [
        {variant: config for variant, (_, config) in each.items() if config in kept[shape]}
        for shape, each in zip(data.shapes, by_shape, strict=True)
    ]
    errors, lost = dict[int, float](), dict[int, float]()
    for row, estimated, gained in _judged_around(times, formulas, logs, named):
        shape = data.shapes[row]
        lost[row] = math.log(data.bsp_us(shape) / data.oracle(shape).us) - gained
        if estimated > 0:
            errors[row] = gained - estimated
    both, faster = lost.keys() & by_formulas.lost.keys(), errors.keys() & by_formulas.errors.keys()
    if min(len(both), len(faster)) < LEAST_ROWS:
        return None
    loses = [round(math.fsum(each[row] for row in both), 6) for each in (lost, by_formulas.lost)]
    errs = [_spread([each[row] for row in faster]) for each in (errors, by_formulas.errors)]
    worse = loses[0] >= loses[1] and errs[0] >= errs[1]
    return None if worse else Gains(_spread(list(errors.values())), logs)


def _fastest_of_each(
    data: Dataset, shape: Shape, configs: Collection[Config]
) -> dict[str, tuple[float, Config]]:
    """By fused variant, its fastest time at a shape, and that config: the recipe, where it is what
    a recipe names."""
    by_variant: dict[str, tuple[float, Config]] = {}
    for config, us in data.times_us[shape].items():
        if config.variant != "bsp":
            by_variant[config.variant] = min(
                by_variant.get(config.variant, (us, config)), (us, config)
            )
    for variant, (us, config) in by_variant.items():
        recipe = Config(variant)
        if recipe in configs and data.concrete(shape, recipe) == config:
            by_variant[variant] = us, recipe
    return by_variant


def _judged_around(
    times: Times,
    formulas: Formulas,
    logs: Mapping[str, Sequence[float | None]],
    named: Sequence[Mapping[str, Config]],
) -> Iterator[tuple[int, float, float]]:
    """For each shape, families and sizes held out, logarithms of the highest speed-up that is
    estimated from those around it, and of what answers then: the config that is named, or BSP.
    `named`: by shape what may answer, by variant. `formulas`, of all shapes, choose among these."""
    data = times.data
    places = [logs_of(sizes, times.place) for sizes in times.sizes]
    number = {config: column for column, config in enumerate(times.configs)}
    us_by_formula = np.exp(np.nan_to_num(formulas.everywhere(times, times.sizes), nan=np.inf))
    for learned, judged in held_out(data):
        points = [(int(row), places[row]) for row in learned]
        for row in map(int, judged):
            shape, around = data.shapes[row], Around(places[row], points)
            for log, variant in Ranking(around, logs):
                listed = filter(None, (named[near].get(variant) for near in around.numbers))
                config = nearest(
                    (us_by_formula[row, number[one]], one)
                    for one in listed
                    if not data.why_invalid(shape, one)
                )
                if config is not None:
                    us = data.bsp_us(shape) if log <= 0 else data.time_us(shape, config)
                    if us is not None:
                        yield row, log, math.log(data.bsp_us(shape) / us)
                    break


def _error_between(times: Times, formulas: Formulas) -> float:
    """Error of a speed-up that is estimated between two measured sizes of a family: each size that
    has one below and one above is left out in turn, and the fused config that is then estimated to
    be the fastest is judged."""
    data = times.data
    missed = times.logs - formulas.logs(times, times.sizes)
    size = [size_of(shape) for shape in data.shapes]
    rows = sorted(range(len(size)), key=size.__getitem__)
    families = groups(rows, lambda row: data.shapes[row].layer)
    errors = []
    for family in families.values():
        for below, row, above in zip(family, family[1:], family[2:], strict=False):
            share = math.log(size[row] / size[below]) / math.log(size[above] / size[below])
            off = missed[row] - (1 - share) * missed[below] - share * missed[above]
            guessed = (times.logs[row] - off)[None]
            form, config = (
                int(fastest(guessed, kind[None])[0]) for kind in (times.is_bsp, ~times.is_bsp)
            )
            if form >= 0 and config >= 0:
                errors.append(float(off[form] - off[config]))
    return _spread(errors) if len(errors) >= LEAST_MEMBERS else UNKNOWN_ERROR


def _spread(errors: Sequence[float], common: float | None = None) -> float:
    """A standard deviation such that WIDE of them hold nine errors of ten, few wild ones counting
    no more than others; of few errors with so much weight of a common one as LEAST_MEMBERS have."""
    sizes = sorted(map(abs, errors))
    own = sizes[math.ceil(0.9 * len(sizes)) - 1] / WIDE if sizes else 0.0
    if common is not None:
        own = math.sqrt(
            (len(sizes) * own**2 + LEAST_MEMBERS * common**2) / (len(sizes) + LEAST_MEMBERS)
        )
    return max(round(own, 4), LEAST_ERROR)


def _grown(times: Times, configs: Sequence[Config], judged: Judged) -> Node:
    """The tree with the fewest leaves whose candidates lose little to all configs, by their
    formulas. `configs`: what its leaves number; `judged`: how formulas answer held out."""
    lattice = Lattice.of(times)
    for leaves in LEAVES:
        tree = lattice.tree(leaves)
        candidates = lattice.candidates(tree)
        if lattice.is_enough(tree, candidates):
            break
    leaves_by_end = _leaves(times, tree.apply(times.features), candidates, judged, configs)
    return plain_tree(names(times.data.op), lattice.features, tree, leaves_by_end)


def _summary(times: Times) -> Node | None:
    """The tree of the measured shapes themselves, where they are too few to answer for others by:
    each leaf names what loses least in it. None for one or two shapes."""
    if len(times.data.shapes) <= 2:
        return None
    allowed = [
        [times.data.allowed(shape, config) for config in times.configs]
        for shape in times.data.shapes
    ]
    known = [name for name in names(times.data.op) if name in times.data.shapes[0].coordinates()]
    plain = [names(times.data.op).index(name) for name in known]
    measured = Lattice(
        times.features[:, plain],
        np.where(allowed, times.logs, np.inf),
        np.zeros(len(times.configs), dtype=bool),
    )
    tree = measured.tree(SUMMARY_LEAVES, 1)
    candidates = {end: picked[:1] for end, picked in measured.candidates(tree).items()}
    ends = tree.apply(measured.features)
    leaves = _leaves(times, ends, candidates, Judged({}, {}), times.configs)
    return plain_tree(known, measured.features, tree, leaves)


def _leaves(
    times: Times,
    ends: np.ndarray,
    candidates: Mapping[int, Sequence[int]],
    judged: Judged,
    configs: Sequence[Config],
) -> dict[int, Leaf]:
    """What answers in each leaf, by scikit-learn's number of it. `ends` [shapes]: the leaf of each
    measured shape."""
    common = _spread(list(judged.errors.values()))
    number = [configs.index(config) for config in times.configs]
    leaves = {}
    for end, picked in candidates.items():
        members = np.flatnonzero(ends == end)
        errors = [judged.errors[int(row)] for row in members if int(row) in judged.errors]
        near = _spread_out(times.data, members)
        leaves[end] = Leaf(
            tuple(number[column] for column in picked), len(members), _spread(errors, common), near
        )
    return leaves


def _spread_out(data: Dataset, members: np.ndarray) -> tuple[Sizes, ...]:
    """Up to three measured shapes of a leaf: the smallest, one in the middle, the largest."""
    ordered = sorted(data.shapes[row].sizes_key for row in members)
    places = (0, len(ordered) // 2, -1) if ordered else ()
    return tuple(dict.fromkeys(ordered[place] for place in places))
