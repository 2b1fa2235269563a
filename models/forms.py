"""Forms of a config: the same config with other values of the knobs that each rank may set for
itself. Standard library only.

Ranks must run the same variant with the same tiles and flags. How one rank splits its own part of
the work touches no other rank: `space.LOCAL_KNOBS` of an operation names those knobs, and a form
says by how many doublings each of them differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import log2
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config


@dataclass(frozen=True, order=True)
class Form:
    """Doublings of each local knob, in the order of `local_knobs`; all 0: the config itself.

    >>> str(Form("flash_decode", (2, -1)))
    'kv_splits x4, block_n x1/2'
    """

    op: str
    doublings: tuple[int, ...]

    def __str__(self) -> str:
        named = zip(local_knobs(self.op), self.doublings, strict=True)
        changed = [f"{name} x{_factor(steps)}" for name, steps in named if steps]
        return ", ".join(changed) or "as it is"

    @property
    def is_identity(self) -> bool:
        return not any(self.doublings)

    def applied(self, shape: Shape, config: Config, chip: Chip | None) -> Config:
        """The config with these knobs moved to the nearest values that the rules allow; the config
        itself where none of them is allowed."""
        return config if self.is_identity else _applied(self, shape, config, chip)


def local_knobs(op: str) -> Mapping[str, tuple[int, ...]]:
    """The knobs that each rank of an operation may set for itself, each with the doublings that are
    tried; empty where it has none."""
    knobs: Mapping[str, tuple[int, ...]] = getattr(operation(op).module("space"), "LOCAL_KNOBS", {})
    return knobs


def forms_of(op: str) -> tuple[Form, ...]:
    """Every form of an operation's configs, the config itself first. Raises ValueError where it has
    no local knob."""
    if not (knobs := local_knobs(op)):
        raise ValueError(f"{op} has no knobs that ranks may set apart: no facts change its config")
    every = (Form(op, steps) for steps in product(*knobs.values()))
    return tuple(sorted(every, key=lambda form: (not form.is_identity, form)))


def _factor(steps: int) -> str:
    return str(2**steps) if steps >= 0 else f"1/{2**-steps}"


@lru_cache(maxsize=1 << 14)
def _applied(form: Form, shape: Shape, config: Config, chip: Chip | None) -> Config:
    space = operation(form.op).space
    whole = dict(space.complete(config).knobs)
    values = {choice.name: choice.values for choice in space.choices(config.variant)}
    for knobs in _near(form, whole, values):
        candidate = Config(config.variant, **knobs)
        if space.why_invalid(shape, candidate, chip) is None:
            return candidate
    return config


def _near(
    form: Form, whole: Mapping[str, Any], values: Mapping[str, tuple[Any, ...]]
) -> Iterator[Mapping[str, Any]]:
    """The knobs with local ones near what the form asks for, the nearest first: a step too few
    rather than too many, and none that turns back beyond the config."""
    choices: list[list[tuple[float, str, int]]] = []
    for name, steps in zip(local_knobs(form.op), form.doublings, strict=True):
        own, asked = whole[name], log2(whole[name]) + steps
        reach = abs(steps) + 0.5
        between = [
            value
            for value in values[name]
            if (value - own) * steps > 0 and abs(log2(value / own)) <= reach
        ]
        choices.append([(abs(log2(value) - asked), name, value) for value in {own, *between}])
    for picked in sorted(
        product(*choices), key=lambda found: (sum(far for far, *_ in found), found)
    ):
        yield {**whole, **{name: value for _, name, value in picked}}
