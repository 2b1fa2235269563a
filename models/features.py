"""What a tree may look at: the named features of an operation's shapes, as its folder declares them. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape


@lru_cache
def _features(op: str) -> Mapping[str, tuple[str, Callable[[Any], float]]]:
    declared: Mapping[str, tuple[str, Callable[[Any], float]]] = operation(op).module("features").FEATURES
    return declared


def names(op: str) -> tuple[str, ...]:
    """The features of an operation, in the order of `vector`; the first is the size that grows with the work of one call.

    >>> names("all_gather_gemm")[:4]
    ('m', 'n', 'k', 'world')
    """
    return tuple(_features(op))


def meanings(op: str) -> dict[str, str]:
    """What each feature is, in words."""
    return {name: meaning for name, (meaning, _) in _features(op).items()}


def vector(op: str, shape: Shape) -> tuple[float, ...]:
    """The features of one shape; raises ValueError where the shape belongs to another operation."""
    if shape.op != op:
        raise ValueError(f"the shape {shape} belongs to {shape.op}, not to {op}")
    return tuple(float(value(shape)) for _, value in _features(op).values())
