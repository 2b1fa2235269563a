"""The constant rules in use elsewhere, to stand beside the selector: each names a config for a shape without having measured it."""

from __future__ import annotations

from collections.abc import Callable

from tftune.db.target import Target
from tftune.kernels.distance import distance
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset
from tftune.models.features import names, vector

Rule = Callable[[Shape], Config]

PAPER_ROWS = 128
"""arXiv 2511.02168 pulls below this M and pushes from it on."""
SMALL_GFLOP = 100.0
"""Triton-distributed (pull request 166) leaves smaller GEMMs of one rank to the library."""
TOKENS = 4096
"""vLLM (pull request 52856) overlaps collective and GEMM from so many tokens on."""


def rules(seen: Dataset) -> dict[str, Rule]:
    """Each rule by name; it may use what was seen in training, and the strongest form of BSP of any shape. The config that a fused variant
    stands for is the operation's own default for the shape: what a library without a tuner does."""
    fused = [variant for variant in operation(seen.op).space.variants if variant != "bsp"]
    found = {"always BSP": seen.bsp} | {f"always {variant}": _default(seen, variant) for variant in fused}
    if "push" in fused:
        push = found["always push"]
        if "pull" in fused:
            found["the paper: pull below M=128, push above"] = _from(seen, "m", PAPER_ROWS, found["always pull"], push)
        found["Triton-distributed: BSP below 100 GFLOP, push above"] = _from(seen, "gflop", SMALL_GFLOP, seen.bsp, push)
        found["vLLM: BSP below 4096 tokens, push above"] = _from(seen, "m", TOKENS, seen.bsp, push)
    return {name: _possible(seen, rule) for name, rule in (found | {"nearest measured shape": _nearest(seen)}).items()}


def _possible(seen: Dataset, rule: Rule) -> Rule:
    """The rule where its config is possible, else BSP, as the selector itself answers."""
    return lambda shape: config if seen.why_invalid(shape, config := rule(shape)) is None else seen.bsp(shape)


def _default(seen: Dataset, variant: str) -> Rule:
    space, chip = operation(seen.op).space, Target.parse(seen.target).chip

    def rule(shape: Shape) -> Config:
        defaults = [space.complete(config) for config in space.defaults(shape, chip)]
        return next((config for config in defaults if config.variant == variant), defaults[0])

    return rule


def _from(seen: Dataset, feature: str, least: float, below: Rule, above: Rule) -> Rule:
    """One rule where a feature is below `least`, another from there on."""
    place = names(seen.op).index(feature)
    return lambda shape: (below if vector(seen.op, shape)[place] < least else above)(shape)


def _nearest(seen: Dataset) -> Rule:
    """The best config of the nearest shape in training, among those that were measured everywhere where there are such."""

    def rule(shape: Shape) -> Config:
        near = min(seen.shapes, key=lambda other: (distance(shape, other), other))
        everywhere = [config for config in seen.listed if config in seen.times_us[near]]
        return min([*everywhere, seen.bsp(near)] if everywhere else seen.times_us[near], key=lambda config: seen.times_us[near][config])

    return rule
