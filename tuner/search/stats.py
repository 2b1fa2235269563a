"""The few statistics that a search decides by: which times noise cannot tell apart, and which
configs cover many shapes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Place = TypeVar("Place", bound=Hashable)
Item = TypeVar("Item", bound=Hashable)


def greedy_cover(
    times: Mapping[Place, Mapping[Item, float]], limit: int, tolerance: float = 0.05
) -> tuple[Item, ...]:
    """At most `limit` items that cover most places: an item covers a place where its time is within
    `tolerance` of the best there.

    It counts places, since a search asks for a config that is nearly the best somewhere. What is
    lost in the mean, which an artifact asks for, `models.portfolio.greedy` lowers.

    `times` holds what was measured at each place; an item without a time there does not cover it.
    Each step takes the item that covers most places not yet covered; among equals the one that is
    nearest to the best there (Chvatal 1979 bounds the loss of such a choice), and of those the
    first by name, whatever the order of the rows: a search that is resumed chooses the same.

    >>> greedy_cover({"small": {"a": 1.0, "b": 1.04}, "large": {"b": 2.0, "c": 1.99}}, limit=2)
    ('b',)
    >>> greedy_cover({"small": {"b": 1.0, "a": 1.0}}, limit=1)
    ('a',)
    """
    regrets = {
        place: {item: time / min(items.values()) for item, time in items.items()}
        for place, items in times.items()
        if items
    }
    chosen: list[Item] = []
    while regrets and len(chosen) < limit:
        near: dict[Item, list[float]] = {}
        for items in regrets.values():
            for item, regret in items.items():
                if regret <= 1 + tolerance:
                    near.setdefault(item, []).append(regret)
        best = max(sorted(near, key=str), key=lambda item: (len(near[item]), -sum(near[item])))
        chosen.append(best)
        regrets = {
            place: items
            for place, items in regrets.items()
            if items.get(best, float("inf")) > 1 + tolerance
        }
    return tuple(chosen)
