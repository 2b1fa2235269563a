"""A config of another shape is fitted to this one: possible always, near to what it was, cut for
this shape by the recipes."""

from __future__ import annotations

import random

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.tuner.search.pools import pool
from tftune.tuner.search.recipes import RECIPES, fitted, nearest

SPACE = operation("all_gather_gemm").space
SIXTEEN = SPACE.complete(Config(
    "push", block_m=16, block_n=64, block_k=128, group_m=8, split_k=1, num_warps=4, num_stages=4,
    loads="descriptor",
    comm_programs=8, rows_per_flag=16, k_per_flag=1024, order="group",
))  # fmt: skip
LARGE = SPACE.complete(Config(
    "push", block_m=128, block_n=256, block_k=64, group_m=8, split_k=1, num_warps=8, num_stages=3,
    loads="descriptor",
    comm_programs=16, rows_per_flag=64, k_per_flag=8192, order="group",
))  # fmt: skip


def engine(m: int, n: int = 3584) -> AllGatherGemm:
    return AllGatherGemm(m, n, 8192, 2, "bf16", "m", "nk")


@pytest.mark.parametrize(("m", "rows"), [(2, 16), (24, 32), (40, 64), (64, 64)])
def test_few_rows_take_one_tile(m: int, rows: int) -> None:
    """M = 24 in tiles of 16 rows reads B twice; that was 0.75 of BSP's speed on 2x H200."""
    assert {config["block_m"] for config in fitted(SPACE, engine(m), H200, SIXTEEN)} >= {rows}


def test_a_tile_is_cut_down_to_the_rows_that_there_are() -> None:
    assert LARGE["block_m"] == 128
    assert {config["block_m"] for config in fitted(SPACE, engine(40), H200, LARGE)} == {64}


def test_split_k_gives_every_unit_work_and_never_more_than_one_part() -> None:
    (*_, whole) = fitted(SPACE, engine(48), H200, LARGE)
    tiles = -(-48 // whole["block_m"]) * -(-3584 // whole["block_n"])
    assert whole["split_k"] == 8 and tiles * whole["split_k"] <= H200.units - whole["comm_programs"]


def test_splits_of_a_cache_balance_the_units() -> None:
    space, shape = operation("flash_decode").space, FlashDecode(3, 64, 8, 128, 5000, 2)
    one = space.complete(Config("persistent", kv_splits=1, block_n=64, num_stages=2))
    (*_, made) = fitted(space, shape, H200, one)
    assert made["kv_splits"] == 11, (
        "24 groups in 11 parts are 264 pieces, two for each of 132 units"
    )


def test_what_is_possible_and_cut_right_stays_as_it_is() -> None:
    shape = engine(1024)
    assert nearest(SPACE, shape, H200, LARGE) == LARGE == fitted(SPACE, shape, H200, LARGE)[0]


def test_the_tile_is_changed_last() -> None:
    """group_m must be 1 where there is one row tile: that is a step, and so would be a smaller
    tile."""
    config = Config("push", **dict(LARGE.knobs) | {"block_m": 64, "k_per_flag": 1024})
    found = nearest(SPACE, engine(40), H200, config)
    assert found == Config("push", **dict(config.knobs) | {"group_m": 1, "rows_per_flag": 16})


def test_a_knob_or_value_that_is_no_more_gives_nothing() -> None:
    for gone in (Config("push", block_m=48), Config("pulled")):
        assert fitted(SPACE, engine(40), H200, gone) == []


def test_a_variant_that_has_no_possible_config_gives_nothing() -> None:
    tiny = AllGatherGemm(1, 512, 512, 2)  # a shard is too small for copy engines
    copies = SPACE.complete(Config("push_ce"))
    assert fitted(SPACE, tiny, H200, copies) == []


@pytest.mark.parametrize("chip", [H200, MI300X])
@pytest.mark.parametrize(("op", "shapes"), [
    ("all_gather_gemm", (engine(2), engine(24, 1111 * 2), engine(3000),
                         AllGatherGemm(7, 513, 1024, 2), AllGatherGemm(8191, 96, 8192, 8))),
    ("flash_decode", (FlashDecode(1, 64, 8, 64, 17, 2), FlashDecode(24, 96, 12, 256, 40_000, 8))),
])  # fmt: skip
def test_whatever_is_fitted_is_possible(op: str, shapes: tuple[Shape, ...], chip: Chip) -> None:
    space, pick = operation(op).space, random.Random(0)
    given = [
        config
        for variant in space.variants
        for config in pool(space, shapes[-1], chip, variant, 30)
    ]
    for shape in shapes:
        for config in pick.sample(given, 25):
            for made in fitted(space, shape, chip, config):
                assert space.why_invalid(shape, made, chip) is None
                assert made.variant == config.variant


def test_recipes_name_knobs_of_their_operation_and_say_what_they_do() -> None:
    for recipe in RECIPES:
        variants = operation(recipe.op).space.variants.values()
        names = {choice.name for choices in variants for choice in choices}
        assert recipe.knob in names and len(recipe.value.__doc__ or "") > 20
