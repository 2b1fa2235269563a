"""Pools: every possible tile before any twice, the same for the same shape, all configs where there
are no more."""

from __future__ import annotations

import time
from collections import Counter
from itertools import count

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Choice, Config, Rule, Space
from tftune.kernels.flash_decode import FlashDecode
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.pools import TILE, pool

ENGINE = AllGatherGemm(384, 3584, 8192, 2, "bf16", "m", "nk")
DECODING = AllGatherGemm(2, 3584, 8192, 2, "bf16", "m", "nk")
DECODE = FlashDecode(3, 64, 8, 128, 5000, 2)


def tile(config: Config) -> tuple[object, ...]:
    return tuple(value for name, value in config.knobs if name in TILE)


@pytest.mark.parametrize("shape", [ENGINE, DECODING, DECODE])
@pytest.mark.parametrize("chip", [H200, MI300X])
def test_every_possible_tile_is_there_once_before_any_twice(shape: Shape, chip: Chip) -> None:
    space = operation(shape.op).space
    for variant in (
        ("push", "pull") if shape.op == "all_gather_gemm" else ("fused_heads", "persistent")
    ):
        found = pool(space, shape, chip, variant, 200)
        assert len(found) == len(set(found)) == 200
        assert not [config for config in found if space.why_invalid(shape, config, chip)]
        tiles = {tile(config) for config in found}
        assert len({tile(config) for config in found[: len(tiles)]}) == len(tiles)
        assert set(map(tile, pool(space, shape, chip, variant, 1500))) == tiles


def test_a_pool_is_the_beginning_of_a_larger_one_and_the_same_again() -> None:
    space = operation("all_gather_gemm").space
    large = pool(space, ENGINE, H200, "push", 300)
    assert pool(space, ENGINE, H200, "push", 60) == large[:60]
    assert pool(space, ENGINE, H200, "push", 300) == large


def test_shapes_of_one_layer_share_configs_that_both_allow() -> None:
    space = operation("all_gather_gemm").space
    other = AllGatherGemm(320, 3584, 8192, 2, "bf16", "m", "nk")
    here, there = (pool(space, shape, H200, "push", 100) for shape in (ENGINE, other))
    assert {tile(config) for config in here} == {tile(config) for config in there}
    assert len(set(here) & set(there)) > 80


def toy(sizes: int) -> tuple[Space, list[Config]]:
    """Half of all tiles are impossible, and of the last tile all but one config."""
    choices = (
        Choice("order", ("a", "b", "c"), "a word", "a"),
        Choice("block_m", tuple(range(1, sizes + 1)), "a size", 1),
        Choice("block_n", (1, 2), "a size", 1),
        Choice("stages", tuple(range(1, 9)), "a depth", 1),
    )
    rules = (
        Rule("one", lambda s, c, chip: (c["block_m"] + c["block_n"]) % 2 == 0),
        Rule(
            "two",
            lambda s, c, chip: c["block_m"] < sizes or (c["stages"] == 3 and c["order"] == "b"),
        ),
    )
    space = Space("toy", {"push": choices}, rules, lambda shape, chip: ())
    return space, list(space.configs(ENGINE, H200))


def test_all_configs_are_there_where_a_pool_is_large_enough() -> None:
    space, every = toy(6)
    found = pool(space, ENGINE, H200, "push", 1000)
    assert sorted(found) == sorted(every) and len(every) == 5 * 24 + 1
    counts = Counter(map(tile, pool(space, ENGINE, H200, "push", 60)))
    assert set(counts.values()) == {1, 11, 12}, "one config, and as many of each of the five others"


def test_a_rule_that_reads_another_knob_at_another_value_is_kept() -> None:
    """A rule may read a knob only where another has some value: the first configs do not show all
    that it reads."""
    choices = tuple(
        Choice(name, (0, 1, 2, 3), "a number", 0) for name in ("block_m", "early", "late")
    )
    odd = Rule("odd", lambda s, c, chip: c["early"] != 3 or c["late"] == c["block_m"])
    space = Space("toy", {"push": choices}, (odd,), lambda shape, chip: ())
    assert sorted(pool(space, ENGINE, H200, "push", 1000)) == sorted(space.configs(ENGINE, H200))


def test_a_pool_of_hundreds_of_a_space_of_hundreds_of_thousands_takes_less_than_a_second() -> None:
    space = operation("all_gather_gemm").space
    for shape in (DECODING, ENGINE):
        began = time.process_time()
        pool(space, shape, H200, "push", 320)
        assert (
            time.process_time() - began < 1.0
        )  # 0.1 s on an idle core; one draw in 300 was possible at M = 2


def test_a_pool_is_drawn_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    space, now = operation("all_gather_gemm").space, count()
    whole = pool(space, ENGINE, H200, "push", 300)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))
    assert pool(space, ENGINE, H200, "push", 10**7, until=100.0) == whole[:100]
    assert pool(space, ENGINE, H200, "push", 10**7, until=0.0) == []


def test_each_variant_has_its_share_of_the_time_for_drawing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space, now = operation("all_gather_gemm").space, count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))
    found = Counter(
        config.variant
        for config in Feasible.of(space, ENGINE, H200, ("pull", "push"), 10**7, until=200.0).configs
    )
    assert set(found) == {"pull", "push"} and all(90 <= many <= 110 for many in found.values())
