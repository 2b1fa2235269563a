"""The sets of models hold the sizes of the models: with the layers that are not gathered they add
up to the published parameters."""

from __future__ import annotations

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.workloads import (
    DEEPSEEK_V3,
    GRID,
    LLAMA3_70B,
    LLAMA3_405B,
    MODELS,
    ROWS,
    SHAPE_SETS,
    Projection,
    grid,
)


def weights(projections: tuple[Projection, ...]) -> dict[str, int]:
    return {projection.name: projection.columns * projection.k for projection in projections}


@pytest.mark.parametrize(
    ("projections", "layers", "hidden", "parameters"),
    [(LLAMA3_70B, 80, 8192, 70_553_706_496), (LLAMA3_405B, 126, 16384, 405_853_388_800)],
    ids=["70b", "405b"],
)
def test_llama_has_its_parameters(
    projections: tuple[Projection, ...], layers: int, hidden: int, parameters: int
) -> None:
    """Beside the gathered ones a layer has the attention output, hidden x hidden, and MLP down,
    half of gate and up; the vocabulary is there twice, as embedding and as head; there are two
    norms in a layer, and one at the end."""
    found = weights(projections)
    layer = found["qkv"] + hidden * hidden + found["gate_up"] * 3 // 2
    assert layers * layer + 2 * found["lm_head"] + (2 * layers + 1) * hidden == parameters


def test_deepseek_v3_has_its_parameters() -> None:
    """61 layers, 3 of them dense; 58 with a router over 256 experts beside the shared one, each
    expert of its size."""
    found, hidden = weights(DEEPSEEK_V3), 7168
    attention = hidden * (1536 + 512 + 64) + found["q_up"] + found["kv_up"] + 128 * 128 * hidden
    dense = found["gate_up of the dense layers"] * 3 // 2
    experts = found["gate_up of the shared expert"] * 3 // 2 * (1 + 256) + 256 * hidden
    assert round((61 * attention + 3 * dense + 58 * experts + 2 * found["lm_head"]) / 1e9) == 671


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_the_ranks_together_have_every_column_at_every_m(name: str, world: int) -> None:
    shapes = SHAPE_SETS[name](world=world)
    assert [(s.m, s.n * world, s.k) for s in shapes] == [
        (m, p.columns, p.k) for p in MODELS[name] for m in ROWS
    ]
    assert {s.world for s in shapes} == {world} and len(set(shapes)) == len(shapes)


def test_options_reach_every_shape() -> None:
    shapes = SHAPE_SETS["deepseek-v3"](world=4, dtype="bf16", shard="m", b_layout="nk")
    assert {(s.world, s.dtype, s.shard, s.b_layout) for s in shapes} == {(4, "bf16", "m", "nk")}
    assert SHAPE_SETS["llama3-70b"]()[0] == AllGatherGemm(16, 1280, 8192, 8)


def test_columns_that_cannot_be_split_are_refused() -> None:
    with pytest.raises(ValueError, match="the 24576 columns of q_up must be divisible by world=5"):
        SHAPE_SETS["deepseek-v3"](world=5)


def test_the_grid_has_rows_that_the_ranks_can_share() -> None:
    assert {shape.family for shape in grid(8)} >= {AllGatherGemm(16, 3584, 8192, 8).family}
    assert len(grid(8)) > len(grid(8, shard="m")) > 0


@pytest.mark.parametrize("pair", GRID)
def test_each_pair_of_the_grid_has_a_neighbour(pair: tuple[int, int]) -> None:
    """One held out is to be told from the others: each has a pair within two doublings of N and one
    of K."""
    others = [other for other in GRID if other != pair]
    assert any(
        pair[0] / 4 <= n <= 4 * pair[0] and pair[1] / 2 <= k <= 2 * pair[1] for n, k in others
    )
