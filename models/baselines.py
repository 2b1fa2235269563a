"""The constant rules in use elsewhere: each names a config for a shape without a model of its time.
Standard library only.

They stand beside the selector in every report; and one of them ships where it loses less than the
tree on shapes held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.distance import distance
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.features import names, vector

Rule = Callable[[Shape], Config]
DefaultRule = Callable[[Shape], Config | None]
"""None where a variant has no default for a shape."""

NEAREST = "nearest measured shape"
PAPER_ROWS = 128
"""arXiv 2511.02168 pulls below this M and pushes from it on."""
SMALL_GFLOP = 100.0
"""Triton-distributed (pull request 166) leaves smaller GEMMs of one rank to the library."""
TOKENS = 4096
"""vLLM (pull request 52856) overlaps collective and GEMM from so many tokens on."""


def rules(op: str, chip: Chip, best: Mapping[Shape, Config], bsp: Rule) -> dict[str, Rule]:
    """Each rule by name. The config that a fused variant stands for is the operation's own default
    for the shape: what a library without a tuner does. `best`: the fastest config of each measured
    shape; `bsp`: the form of BSP where that is the answer."""
    fused = [variant for variant in operation(op).space.variants if variant != "bsp"]
    found: dict[str, DefaultRule] = {"always BSP": bsp} | {f"always {variant}": _default(op, chip, variant) for variant in fused}
    if "push" in fused:
        push = found["always push"]
        if "pull" in fused:
            found["the paper: pull below M=128, push above"] = _from(op, "m", PAPER_ROWS, found["always pull"], push)
        found["Triton-distributed: BSP below 100 GFLOP, push above"] = _from(op, "gflop", SMALL_GFLOP, bsp, push)
        found["vLLM: BSP below 4096 tokens, push above"] = _from(op, "m", TOKENS, bsp, push)
    if best:
        found[NEAREST] = _nearest(best)
    return {name: _possible(op, chip, rule, bsp) for name, rule in found.items()}


def _possible(op: str, chip: Chip, rule: DefaultRule, bsp: Rule) -> Rule:
    """The rule where its config is possible, else BSP, as the selector itself answers."""
    space = operation(op).space

    def possible(shape: Shape) -> Config:
        config = rule(shape)
        return config if config is not None and space.why_invalid(shape, config, chip) is None else bsp(shape)

    return possible


def _default(op: str, chip: Chip, variant: str) -> DefaultRule:
    recipe = Config(variant)
    return lambda shape: operation(op).space.concrete(shape, recipe, chip)


def _from(op: str, feature: str, least: float, below: DefaultRule, above: DefaultRule) -> DefaultRule:
    """One rule where a feature is below `least`, another from there on."""
    place = names(op).index(feature)
    return lambda shape: (below if vector(op, shape)[place] < least else above)(shape)


def _nearest(best: Mapping[Shape, Config]) -> Rule:
    """The fastest config of the nearest measured shape."""
    return lambda shape: best[min(best, key=lambda other: (distance(shape, other), other))]
