"""Rows and models whose times follow known formulas, so that a test can say what must be
answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import mul
from pathlib import Path
from typing import Any

import stored

from tftune.db import target
from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.features import timing
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.models import lending
from tftune.models.artifact import Artifact, Lent, Mode
from tftune.models.dataset import Dataset, load
from tftune.models.export import document, provenance, write
from tftune.models.formula.formula import Formula
from tftune.models.layout import Known, LayoutModel
from tftune.models.selector import Selector
from tftune.models.tree.trainer import train_layout
from tftune.models.tree.tree import Leaf

OP, TARGET, WORLD = "all_gather_gemm", "h200x2", 2
CHIP = Target.parse(TARGET).chip
ENGINE = ("bf16", "m", "nk", WORLD)
"""The layout of serving engines: dtype, shard, b_layout, world."""
BSP, REGISTERED = Config("bsp", form="gather"), Config("bsp", form="gather_registered")
_PUSH = dict(group_m=1, num_stages=3, rows_per_flag=16, k_per_flag=1024)
SMALL = SPACE.complete(Config("push", block_m=16, block_n=64, num_warps=4, **_PUSH))
LARGE = SPACE.complete(Config("push", block_m=128, block_n=128, num_warps=8, **_PUSH))
"""Two tiles of push: possible from M = 1 on, and above M = 64."""
WEIGHTS: dict[Config, tuple[float, ...]] = {
    BSP: (20.0, 0.0, 12.0, 1.0, 1.2, 0.3, 0.0),
    SMALL: (8.0, 0.0, 0.6, 1.0, 1.0, 0.1, 0.0),
    LARGE: (12.0, 0.0, 4.5, 1.0, 1.0, 0.1, 0.0),
}
"""Weights of the operation's TERMS. SMALL wins up to M = 64 or so, then LARGE. From M = 512 on BSP
is faster than SMALL."""
ROWS = (8, 32, 128, 512, 2048, 8192)
LAYERS = ((2048, 2048), (4096, 4096), (8192, 4096), (4096, 8192), (8192, 8192))
"""(N, K)."""
Law = Callable[[Shape], float]


def shape(
    m: int, n: int = 4096, k: int = 4096, layout: Sequence[int | str] = ENGINE
) -> AllGatherGemm:
    dtype, shard, b_layout, world = layout
    return AllGatherGemm(m, n, k, int(world), str(dtype), str(shard), str(b_layout))


SHAPES = tuple(shape(m, n, k) for n, k in LAYERS for m in ROWS)


def law(config: Config, weights: Sequence[float] | None = None) -> Law:
    """The time of a config at a shape, to 0.01 us."""
    terms, each = timing(config, CHIP.units), weights or WEIGHTS[config]
    return lambda shape: round(sum(map(mul, each, terms(*shape.sizes_key))), 2)


LAWS: Mapping[Config, Law] = {config: law(config) for config in WEIGHTS}


def possible(shape: Shape, configs: Iterable[Config]) -> list[Config]:
    return [config for config in configs if SPACE.why_invalid(shape, config, CHIP) is None]


def measured(us: float, bsp_us: float) -> Measurement:
    """Nine rounds without noise."""
    return Measurement((us,) * 9, (bsp_us,) * 9, 1e-4)


def row(place: Shape, config: Config, outcome: Measurement, **changes: Any) -> Trial:
    """A row of a matrix on this target, by the installed kernel."""
    code = installed(place.op, config.variant)
    fields = {"target": TARGET, "run": "run", "revision": code, "stage": "matrix"} | changes
    return stored.row(place, config, outcome, **fields)


def rows(
    shapes: Iterable[Shape] = SHAPES,
    laws: Mapping[Config, Law] = LAWS,
    mode: str = "graph",
    bench: str = "node",
    stage: str = "matrix",
) -> list[Trial]:
    """Every possible config of these laws at every shape, beside the first, a form of BSP."""
    made = []
    for place in shapes:
        bsp_us = next(iter(laws.values()))(place)
        for config in possible(place, laws):
            found = measured(laws[config](place), bsp_us)
            made.append(row(place, config, found, mode=mode, bench=bench, stage=stage))
    return made


def decodes(count: int = 40, mode: str = "graph") -> list[Trial]:
    """Rows of flash_decode at so many shapes: persistent_ll takes 0.6 times BSP's time below 16K
    tokens, and 1.2 times from there on."""
    space, made = operation("flash_decode").space, []
    shapes = [
        FlashDecode(batch, 8 * group, 8, 128, 1500 << n, WORLD)
        for group in (4, 8)
        for batch in (1, 3, 8, 24)
        for n in range(6)
    ]
    for place in shapes[:count]:
        found = {
            config.variant: space.complete(config)
            for config in reversed(space.defaults(place, CHIP))
        }
        bsp_us = 20 + place.cache_bytes / 4e6
        for variant, us in (
            ("bsp", bsp_us),
            ("persistent_ll", bsp_us * (0.6 if place.kv_len < 16384 else 1.2)),
        ):
            made.append(row(place, found[variant], measured(us, bsp_us), mode=mode))
    return made


def dataset(
    trials: Sequence[Trial] | None = None, mode: str = "graph", bench: str = "node"
) -> Dataset:
    return load(rows() if trials is None else trials, OP, TARGET, mode, bench)


def learned(data: Dataset) -> Mode:
    """Every layout trained, and what they lend each other."""
    parts = data.by_layout()
    models = {layout: train_layout(part) for layout, part in parts.items()}
    return Mode(models, lending.lent(parts, models))


def content(
    trials: Sequence[Trial],
    build: Mapping[str, str] | None = None,
    held_out: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The document of an artifact of these rows, of every mode that they have."""
    first, modes = trials[0], sorted({trial.mode for trial in trials}, reverse=True)
    datasets = {mode: load(trials, first.op, first.target, mode, first.bench) for mode in modes}
    return document(
        {mode: learned(data) for mode, data in datasets.items()},
        provenance(datasets, held_out or {}, build or {}),
    )


def exported(
    trials: Sequence[Trial],
    path: Path,
    build: Mapping[str, str] | None = None,
    held_out: Mapping[str, Any] | None = None,
) -> Path:
    """The file of such a document; of the build of this process, if none is given."""
    return write(content(trials, target.build() if build is None else build, held_out), path)


def known(place: Shape, configs: Sequence[Config], laws: Mapping[Config, Law] = LAWS) -> Known:
    """A measured shape as an artifact has it; its fastest config answers."""
    may = possible(place, configs)
    times = {n: laws[config](place) for n, config in enumerate(configs) if config in may}
    best = min(times, key=times.__getitem__)
    ratio = (
        min(us for number, us in times.items() if configs[number].variant == "bsp") / times[best]
    )
    interval = None if configs[best].variant == "bsp" else (ratio, ratio)
    return Known(place.sizes_key, best, interval, tuple(times.items()))


def model(
    shapes: Sequence[Shape] = SHAPES,
    weights: Mapping[Config, Sequence[float]] = WEIGHTS,
    leaf_error: float = 0.02,
    **changes: Any,
) -> LayoutModel:
    """What an artifact says of a layout whose formulas are exact: nothing is fitted, and the tree
    is one leaf of all configs."""
    configs, laws = tuple(weights), {config: law(config, each) for config, each in weights.items()}
    leaf = Leaf(tuple(range(len(configs))), len(shapes), leaf_error, (shapes[0].sizes_key,))
    fields = {
        "op": OP, "mode": "graph", "layout": shapes[0].layout, "configs": configs,
        "kernels": tuple(
            "" if config.variant == "bsp" else installed(OP, config.variant) for config in configs
        ),
        "formulas": tuple(_formula(shapes, config, each) for config, each in weights.items()),
        "known": tuple(known(place, configs, laws) for place in shapes), "root": leaf,
        "spans": True, "error": 0.01,
    }  # fmt: skip
    return LayoutModel(**fields | changes)


def _formula(shapes: Sequence[Shape], config: Config, weights: Sequence[float]) -> Formula:
    sizes = [getattr(place, place.SIZE) for place in shapes if possible(place, [config])]
    return Formula(tuple(weights), (), min(sizes), max(sizes))


def scaled(
    factor: float, *configs: Config, weights: Mapping[Config, tuple[float, ...]] = WEIGHTS
) -> dict[Config, tuple[float, ...]]:
    """The weights, of which these configs take so many times as long."""
    return {
        config: tuple(factor * weight for weight in each) if config in configs else each
        for config, each in weights.items()
    }


def stale(model: LayoutModel, *configs: Config) -> LayoutModel:
    """Its times of these configs are of another source than is installed."""
    codes = zip(model.configs, model.kernels, strict=True)
    kernels = tuple("0" * 12 if config in configs else code for config, code in codes)
    return replace(model, kernels=kernels)


def selector(
    *models: LayoutModel, bench: str = "node", lent: Sequence[Lent] = (), **more: Any
) -> Selector:
    """The production path over such models, of one mode or of two; kernels as installed."""
    modes = {
        mode: Mode(
            {each.layout: each for each in models if each.mode == mode},
            {one.layout: one for one in lent},
        )
        for mode in dict.fromkeys(each.mode for each in models)
    }
    kernels = {variant: installed(OP, variant) for variant in SPACE.variants}
    return Selector(Artifact(OP, Target.parse(TARGET), bench, modes, {"kernels": kernels}), **more)
