"""The constant rules in use elsewhere: each names a config for a shape without a model of its time.
Standard library only.

They stand beside the selector in every report. None of them answers: a rule has no margin over
BSP.
"""

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

Rival = tuple[str, str, float, str, str]
"""An operation's `features.RIVALS`: title, feature, its bound, the variant below it, the variant
from it on."""

NEAREST = "nearest measured shape"


def rules(op: str, chip: Chip, best: Mapping[Shape, Config], bsp: Rule) -> dict[str, Rule]:
    """Each rule by name. The config that a fused variant stands for is the operation's own default
    for the shape: what a library without a tuner does. `best`: the fastest config of each measured
    shape; `bsp`: the form of BSP where that is the answer."""
    fused = [variant for variant in operation(op).space.variants if variant != "bsp"]
    rule_of: dict[str, DefaultRule] = {"always BSP": bsp} | {
        f"always {variant}": _default(op, chip, variant) for variant in fused
    }
    always = {"bsp": bsp} | {variant: rule_of[f"always {variant}"] for variant in fused}
    known: tuple[Rival, ...] = getattr(operation(op).module("features"), "RIVALS", ())
    for title, feature, least, below, above in known:
        if {below, above} <= always.keys():
            rule_of[title] = _from(op, feature, least, always[below], always[above])
    if best:
        rule_of[NEAREST] = _nearest(best)
    return {name: _possible(op, chip, rule, bsp) for name, rule in rule_of.items()}


def _possible(op: str, chip: Chip, rule: DefaultRule, bsp: Rule) -> Rule:
    """The rule where its config is possible, else BSP, as the selector itself answers."""
    space = operation(op).space

    def possible(shape: Shape) -> Config:
        config = rule(shape)
        if config is None or space.why_invalid(shape, config, chip) is not None:
            return bsp(shape)
        return config

    return possible


def _default(op: str, chip: Chip, variant: str) -> DefaultRule:
    recipe = Config(variant)
    return lambda shape: operation(op).space.concrete(shape, recipe, chip)


def _from(
    op: str, feature: str, least: float, below: DefaultRule, above: DefaultRule
) -> DefaultRule:
    """One rule where a feature is below `least`, another from there on."""
    place = names(op).index(feature)
    return lambda shape: (below if vector(op, shape)[place] < least else above)(shape)


def _nearest(best: Mapping[Shape, Config]) -> Rule:
    """The fastest config of the nearest measured shape."""
    return lambda shape: best[min(best, key=lambda other: (distance(shape, other), other))]
