"""Configs of a variant at random, the same for every shape."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tftune.kernels.core.chip import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Knob, Space


def draw(
    space: Space, shape: Shape, chip: Chip | None, variant: str, draws: int
) -> Iterator[Config]:
    """The possible configs, each once, among so many of a fixed random sequence of all knob
    values."""
    random, seen = Random(f"{space.op}/{variant}"), set[tuple[Knob, ...]]()
    choices = [choice.on(chip) for choice in space.choices(variant)]
    rules = [rule for rule in space.rules if rule.applies(variant)]
    for _ in range(draws):
        values = tuple(random.choice(choice.values) for choice in choices)
        knobs = {choice.name: value for choice, value in zip(choices, values, strict=True)}
        if values not in seen and all(rule.holds(shape, knobs, chip) for rule in rules):
            yield Config(variant, **knobs)
        seen.add(values)
