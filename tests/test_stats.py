"""The greedy cover."""

from __future__ import annotations

from tftune.tuner.search.stats import greedy_cover

TIMES = {"s": {"a": 1.0, "b": 1.02}, "m": {"b": 10.0, "c": 10.2}, "l": {"c": 5.0, "d": 9.0}}


def test_a_config_near_the_best_at_many_places_comes_first() -> None:
    assert greedy_cover(TIMES, limit=1) == ("b",)
    assert greedy_cover(TIMES, limit=9) == ("b", "c")


def test_without_tolerance_every_winner_is_needed() -> None:
    assert set(greedy_cover(TIMES, limit=9, tolerance=0)) == {"a", "b", "c"}


def test_the_limit_holds_and_nothing_covers_nothing() -> None:
    assert len(greedy_cover({place: {place: 1.0} for place in range(9)}, limit=4)) == 4
    assert greedy_cover({}, limit=4) == () == greedy_cover({"s": {}}, limit=4)


def test_of_two_that_cover_as_much_the_nearer_to_the_best_is_taken() -> None:
    assert greedy_cover({"s": {"a": 1.04, "b": 1.0}, "m": {"a": 1.0, "b": 1.01}}, limit=1) == ("b",)
