"""A config without knobs is a recipe: what its variant does by default, which follows the shape.
And the form of BSP where nothing was measured, held against every committed row."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import geometric_mean

import pytest
from synthetic import CHIP, TARGET, WORLD, decodes

from tftune.db.committed import files_of, read_trials
from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.merge_attention import MergeAttention
from tftune.models.dataset import load
from tftune.models.evaluate import selector_of
from tftune.models.tree.codec import pack_layout, unpack_layout
from tftune.models.tree.trainer import train_layout

DECODE = FlashDecode(6, 64, 8, 128, 5000, WORLD)
SHAPES = {
    "all_gather_gemm": AllGatherGemm(3000, 3584, 8192, 2, "bf16", "m", "nk"),
    "flash_decode": DECODE,
    "all_reduce": AllReduce(24, 7168, 4, norm="rms"),
    "flash_prefill": FlashPrefill(3, 24, 8, 128, 1500),
    "gemm_reduce_scatter": GemmReduceScatter(4096, 8192, 28672, 4),
    "gemm_all_reduce": GemmAllReduce(24, 8192, 28672, 4),
    "merge_attention": MergeAttention(24, 64, 128, 4),
}


@pytest.mark.parametrize("chip", [CHIP, H200, MI300X])
@pytest.mark.parametrize("op", OPS)
def test_a_recipe_names_the_default_of_its_variant(op: str, chip: Chip) -> None:
    space, shape = operation(op).space, SHAPES[op]
    listed = [space.complete(config) for config in space.defaults(shape, chip)]
    for variant in {*space.variants} - {"bsp"}:
        named = space.concrete(shape, Config(variant), chip)
        assert named == next((one for one in listed if one.variant == variant), None)
        assert named is None or space.concrete(shape, named, chip) is named
    assert space.concrete(shape, Config("bsp"), chip) == space.complete(
        space.fallbacks(shape, chip)[0]
    )


@pytest.mark.parametrize(("m", "n"), [(1001, 1000), (1024, 4100), (4, 4100)])
def test_bsp_s_recipe_is_possible_at_odd_sizes(m: int, n: int) -> None:
    space, shape = operation("gemm_all_reduce").space, GemmAllReduce(m, n, 4096, 2)
    form = space.concrete(shape, Config("bsp"), H200)
    assert form is not None and space.why_invalid(shape, form, H200) is None


def test_a_variant_without_a_default_has_no_recipe() -> None:
    """Copies of 4 rows are too small for copy engines."""
    space, shape = operation("all_gather_gemm").space, AllGatherGemm(8, 3584, 8192, 2)
    assert "push_ce" not in {config.variant for config in space.defaults(shape, CHIP)}
    assert space.concrete(shape, Config("push_ce"), CHIP) is None
    assert set(space.recipes(shape, ("push", "push_ce"), CHIP)) == {"push"}


def test_a_layout_answers_with_the_default_of_the_shape_that_is_asked() -> None:
    """Splits of the cache follow batch and length: what was the fastest at one shape is slow at the
    next."""
    data = load(decodes(48), "flash_decode", TARGET, "graph", "node")
    model = train_layout(data)
    assert {Config("bsp"), Config("persistent_ll")} <= set(model.configs)
    space = operation("flash_decode").space
    for again in (model, unpack_layout("flash_decode", "graph", pack_layout(model))):
        selector = selector_of(data, again)
        short, long = (
            selector.select(shape, "graph") for shape in (DECODE, replace(DECODE, kv_len=40_000))
        )
        assert short.config == space.concrete(DECODE, Config("persistent_ll"), CHIP)
        assert short.source == "interpolated"
        assert short.speedup == pytest.approx(1 / 0.6, rel=0.1)
        assert long.config == space.concrete(replace(DECODE, kv_len=40_000), Config("bsp"), CHIP)
        assert selector.shortlist(DECODE)[0] == short.config


@pytest.mark.parametrize("target", ["h100x2", "h200x1", "h200x2", "h200x4", "h200x8"])
def test_decoding_by_bsp_takes_the_form_that_was_the_fastest_or_nearly(
    target: str,
) -> None:
    """The fastest of the forms of BSP that were measured beside each other. The deep default alone
    was up to 1.34 times as slow."""
    rows = read_trials(files_of("flash_decode", target))
    data = load(rows, "flash_decode", target, "graph", "node")
    space = operation("flash_decode").space
    chip = Target.parse(target).chip
    lost = []
    for shape in data.shapes:
        us = data.time_us(shape, Config("bsp"))
        if us is not None:
            assert space.complete(space.fallbacks(shape, chip)[0]).variant == "bsp"
            lost.append(us / data.bsp_us(shape))
    assert len(lost) >= 30 and geometric_mean(lost) < 1.015 and max(lost) < 1.13
    assert all(math.isfinite(value) and value >= 1.0 for value in lost)


def test_a_shortlist_names_no_config_twice() -> None:
    """A recipe and the config that it names have the same time."""
    data = load(decodes(48), "flash_decode", TARGET, "graph", "node")
    selector = selector_of(data, train_layout(data))
    for shape in (data.shapes[0], data.shapes[-1], DECODE):
        listed = selector.shortlist(shape, "graph", 8)
        assert len(listed) == len(set(listed)) > 0 and all(config.knobs for config in listed)
