"""Items apart by what a function says of them. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")


def groups(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by what a function says of them, in the order in which that comes first."""
    by_key: dict[K, list[T]] = {}
    for item in items:
        by_key.setdefault(key(item), []).append(item)
    return by_key
