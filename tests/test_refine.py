"""Local refinement: neighbours by one knob, the way down by the model, and a tile with what is good
elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config
from tftune.tuner.search.local_refinement import (
    STARTS,
    around,
    best_of_tiles,
    descend,
    transplanted,
)
from tftune.tuner.search.pools import TILE, pool

SHAPE = AllGatherGemm(384, 3584, 8192, 2, "bf16", "m", "nk")
POOL = pool(SPACE, SHAPE, H200, "push", 60)
BEST = {
    "block_m": 128,
    "block_n": 128,
    "block_k": 64,
    "num_stages": 4,
    "num_warps": 8,
    "rows_per_flag": 64,
}


def hint(configs: Sequence[Config]) -> np.ndarray:
    return np.array(
        [sum(config[name] != value for name, value in BEST.items()) for config in configs],
        dtype=np.float64,
    )


def differing(one: Config, other: Config) -> set[str]:
    return {name for name, value in one.knobs if other[name] != value}


@pytest.mark.parametrize("config", POOL[:10])
def test_neighbours_are_possible_and_differ_in_one_knob_or_in_the_tile(config: Config) -> None:
    found = around(SPACE, SHAPE, H200, config)
    assert len(found) == len(set(found)) > 8 and config not in found
    for near in found:
        assert SPACE.why_invalid(SHAPE, near, H200) is None
        assert len(differing(config, near)) == 1 or differing(config, near) & set(TILE)
    assert set(around(SPACE, SHAPE, H200, config, repaired=False)) == {
        near for near in found if len(differing(config, near)) == 1
    }


def test_the_way_down_ends_where_no_neighbour_is_better() -> None:
    seen = descend(SPACE, SHAPE, H200, POOL[:2], hint)
    assert len(seen) == len(set(seen)) and set(POOL[:2]) <= set(seen)
    assert min(hint(seen)) < min(hint(POOL[:2]))
    assert descend(SPACE, SHAPE, H200, [], hint) == []


def test_starts_have_different_tiles_the_best_first() -> None:
    ranked = [POOL[number] for number in np.argsort(hint(POOL), kind="stable")]
    starts = best_of_tiles(ranked)
    assert starts[0] == ranked[0] and len(starts) == STARTS
    assert (
        len(
            {
                tuple(config[name] for name in TILE if name in dict(config.knobs))
                for config in starts
            }
        )
        == STARTS
    )


def test_every_tile_gets_what_is_good_elsewhere() -> None:
    ranked = [POOL[number] for number in np.argsort(hint(POOL), kind="stable")]
    made = transplanted(SPACE, SHAPE, H200, ranked)
    assert not [config for config in made if SPACE.why_invalid(SHAPE, config, H200)]
    both = [config for config in made if (config["block_m"], config["block_n"]) == (128, 128)]
    assert min(hint(both)) <= min(hint(ranked))
