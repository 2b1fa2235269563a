"""Shapes that were refused without need run, and are right: K that the ranks do not divide where A
is sharded along M, and any N by tensor descriptors where B is stored [N, K]."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from contract import Call, scenario, wrong_calls
from draws import draw

from tftune.kernels.all_gather_gemm import AllGatherGemm, reference
from tftune.kernels.all_gather_gemm.host import _fused, kernel_sources
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config, Space
from tftune.kernels.runtime.compile import gpu_target

ALONG_M = (
    AllGatherGemm(33, 40, 65, 3, shard="m"),
    AllGatherGemm(48, 33, 128, 3, "bf16", "m", "nk"),
    AllGatherGemm(27, 36, 200, 3, "bf16", "m"),
)
"""Shapes of 3 ranks with 65, 128 and 200 columns."""
ANY_N = (
    AllGatherGemm(32, 33, 256, 2, b_layout="nk"),
    AllGatherGemm(32, 70, 256, 2, "bf16", b_layout="nk"),
    AllGatherGemm(64, 127, 128, 2, shard="m", b_layout="nk"),
)
COUNTS = 1, pytest.param(3, marks=pytest.mark.thorough)
"""Configs of each variant and shape."""
DESCRIPTOR = ("staged", "push", "push_ce")
SMALL = replace(H200, units=16)
WITHOUT_SIZES = tuple(rule for rule in SPACE.rules if "256 KB" not in rule.sentence)
"""Emulated shapes are too small for copy engines."""


def drawn(shape: AllGatherGemm, variant: str, loads: str | None) -> list[Config]:
    """Three random configs, of which `make test` takes the first, by these loads where given."""
    space = Space(SPACE.op, SPACE.variants, WITHOUT_SIZES, SPACE.defaults)
    found = list(draw(space, shape, SMALL if loads else None, variant, 20_000))
    fits = [config for config in found if loads in (None, dict(config.knobs).get("loads"))]
    assert fits, (shape, variant)
    return random.Random(0).sample(fits, min(3, len(fits)))


def along_m(workspace: Workspace, count: int) -> dict[str, list[Call]]:
    calls = [(s, c) for s in ALONG_M for v in SPACE.variants for c in drawn(s, v, None)[:count]]
    return {"along M": scenario(workspace, calls)}


def any_n(workspace: Workspace, count: int) -> dict[str, list[Call]]:
    calls = [(s, c) for s in ANY_N for v in DESCRIPTOR for c in drawn(s, v, "descriptor")[:count]]
    return {"any N": scenario(workspace, calls)}


@pytest.mark.parametrize("count", COUNTS)
def test_k_need_not_be_shared_where_a_is_sharded_along_m(count: int) -> None:
    ran = emulated.run(3, along_m, count, timeout_s=600)
    assert wrong_calls(ran) == []
    assert {call.config.variant for call in ran[0]["along M"]} == {*SPACE.variants}


def test_along_k_it_must_be() -> None:
    with pytest.raises(
        ValueError, match="k=65 must be divisible by world=3 where A is sharded along K"
    ):
        replace(ALONG_M[0], shard="k")
    assert AllGatherGemm.parse("m=16,n=40,k=65,world=8,shard=m").shard_columns == 65


@pytest.mark.parametrize("count", COUNTS)
def test_descriptors_take_any_n_where_rows_of_b_have_k_elements(count: int) -> None:
    """The interpreter asserts what TMA needs: rows that begin at multiples of 16 bytes."""
    ran = emulated.run(2, any_n, count, timeout_s=600)
    assert wrong_calls(ran) == []
    assert {call.config["loads"] for call in ran[0]["any N"]} == {"descriptor"}


def misaligned(workspace: Workspace) -> str:
    """What the interpreter says of a B [K, N] whose rows begin at any multiple of 2 bytes."""
    shape, config = replace(ANY_N[0], b_layout="kn"), drawn(ANY_N[0], "push", "descriptor")[0]
    a, b = reference.make_inputs(shape, workspace.rank, 0)
    try:
        _fused(shape, config, workspace, "tile")(a, b, reference.make_output(shape))
    except Exception as error:  # Triton's own class, around an AssertionError
        return str(error)
    return "it ran"


def test_the_interpreter_would_see_rows_that_are_not_aligned() -> None:
    """So that the test above could fail."""
    said = emulated.run(2, misaligned)
    assert all("stride must be 16-byte aligned" in text for text in said), said


def test_and_not_where_they_have_n() -> None:
    for n, layout, allowed in ((40, "kn", True), (36, "kn", False), (36, "nk", True)):
        shape = AllGatherGemm(256, n, 1024, 2, b_layout=layout)
        config = Config("push", block_m=64, block_n=32, num_warps=4, loads="descriptor")
        refused = SPACE.why_invalid(shape, config, H200) or ""
        assert ("descriptor loads need" in refused) != allowed, refused


@pytest.mark.parametrize("variant", DESCRIPTOR)
def test_such_kernels_compile_for_hopper(variant: str) -> None:
    for shape in ANY_N:
        config = drawn(shape, variant, "descriptor")[0]
        (kernel,) = kernel_sources(shape, config, H200)
        assert "cp.async.bulk.tensor" in kernel.compile(gpu_target("sm_90")).asm["ptx"]
