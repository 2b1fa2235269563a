"""Which configs a space lists, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import CHIPS, H200, Chip
from tftune.kernels.core.space import Choice, Config, Knob


def _by_hand(variant: str, shape: AllGatherGemm, chip: Chip) -> Iterator[Config]:
    """Every value with every other, each held against every rule: millions."""
    choices = [choice.on(chip) for choice in SPACE.choices(variant)]
    names = [choice.name for choice in choices]
    rules = [rule.holds for rule in SPACE.rules if rule.applies(variant)]
    for values in product(*(choice.values for choice in choices)):
        knobs = dict(zip(names, values, strict=True))
        if all(holds(shape, knobs, chip) for holds in rules):
            yield Config(variant, **knobs)


@pytest.mark.parametrize(
    "variants",
    [("bsp", "pull"), pytest.param(tuple(SPACE.variants), marks=pytest.mark.thorough)],
    ids=["two", "all"],
)
def test_configs_are_the_possible_ones_in_a_fixed_order(variants: tuple[str, ...]) -> None:
    shape = AllGatherGemm(16, 64, 8192, 8)
    found = list(SPACE.configs(shape, H200))
    assert len(set(found)) == len(found)
    by_hand = [config for variant in variants for config in _by_hand(variant, shape, H200)]
    assert [config for config in found if config.variant in variants] == by_hand
    assert list(SPACE.configs(shape, H200, variants)) == by_hand
    assert [config for config in found[::29] if SPACE.why_invalid(shape, config, H200)] == []
    assert {SPACE.complete(default) for default in SPACE.defaults(shape, H200)} <= {*found}


def _two(choice: Choice) -> tuple[Knob, ...]:
    """In their order, the default and the value that is furthest from it."""
    far = choice.values[0 if choice.values.index(choice.default) > len(choice.values) // 2 else -1]
    return tuple(value for value in choice.values if value in (far, choice.default))


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
@pytest.mark.parametrize(
    "shape",
    [
        AllGatherGemm(256, 3584, 8192, 8),
        AllGatherGemm(2048, 3584, 8192, 8),
        AllGatherGemm(4096, 512, 4096, 4, shard="m"),
    ],
    ids=str,
)
def test_configs_are_those_without_a_reason_against_them(shape: AllGatherGemm, chip: Chip) -> None:
    """Every knob has its default and another value."""
    two = {
        variant: tuple(replace(choice, values=_two(choice)) for choice in choices)
        for variant, choices in SPACE.variants.items()
    }
    space = replace(SPACE, variants=two)
    found = list(space.configs(shape, chip))
    every = replace(space, rules=()).configs(shape, chip)
    assert found == [config for config in every if SPACE.why_invalid(shape, config, chip) is None]
    assert len(found) > 20 and {"bsp", "push"} <= {config.variant for config in found}


@pytest.mark.parametrize("shard", ["k", "m"])
@pytest.mark.parametrize("world", [2, 8])
def test_ranks_fall_back_to_one_form_whether_they_know_their_chip_or_not(
    world: int, shard: str
) -> None:
    """Forms of BSP exchange A in different layouts: ranks that chose differently would compute
    nonsense."""
    for shape in paper(world, shard=shard):
        assert len({SPACE.defaults(shape, chip)[0] for chip in (None, *CHIPS.values())}) == 1, shape
