"""What a tree may look at: the named features of an operation's shapes, as its folder declares
them. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config


@lru_cache
def _features(op: str) -> Mapping[str, tuple[str, Callable[[Any], float]]]:
    declared: Mapping[str, tuple[str, Callable[[Any], float]]] = (
        operation(op).module("features").FEATURES
    )
    return declared


def names(op: str) -> tuple[str, ...]:
    """The features of an operation, in the order of `vector`; the first is the size that grows with
    the work of one call.

    >>> names("all_gather_gemm")[:4]
    ('m', 'n', 'k', 'world')
    """
    return tuple(_features(op))


def vector(op: str, shape: Shape) -> tuple[float, ...]:
    """The features of one shape; raises ValueError where the shape belongs to another operation."""
    if shape.op != op:
        raise ValueError(f"the shape {shape} belongs to {shape.op}, not to {op}")
    return tuple(float(value(shape)) for _, value in _features(op).values())


def pair_vector(shape: Shape, config: Config, chip: Chip) -> tuple[float, ...]:
    """Numbers of one shape with one fused config: its sizes, what the operation says of the pair,
    its variant, and its knobs, words by their place among the values; -1 where the variant lacks a
    knob."""
    op = operation(shape.op)
    declared: Mapping[str, tuple[str, Callable[[Any, Config, Chip], float]]] = getattr(
        op.module("features"), "PAIR_FEATURES", {}
    )
    knobs = dict(op.space.complete(config).knobs)
    own = {choice.name: choice.values for choice in op.space.choices(config.variant)}
    every = dict.fromkeys(
        choice.name for choices in op.space.variants.values() for choice in choices
    )
    values = [-1 if name not in knobs else _number(knobs[name], own[name]) for name in every]
    variant = list(op.space.variants).index(config.variant)
    of_pair = (float(value(shape, config, chip)) for _, value in declared.values())
    return (*vector(shape.op, shape), *of_pair, variant, *values)


def _number(value: int | str, values: Sequence[int | str]) -> int:
    return values.index(value) if isinstance(value, str) else value
