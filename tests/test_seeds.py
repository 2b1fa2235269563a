"""What a search is told before its first trial: an artifact's configs near a shape, of this target or a relative, and rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from stored import RUN, trial

from tftune import seeds
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.selector import Artifact
from tftune.models.tree import Split, Tree, own_leaf

HERE = AllGatherGemm(40, 3584, 8192, 2)
SMALL, MIDDLE, LARGE, OWN, OTHER = (Config("push", block_m=value) for value in (16, 32, 64, 128, 256))
BSP = Config("bsp", form="gather_copy")


def artifact(target: str = "h200x2", *, config: Config = MIDDLE) -> Artifact:
    """A tree of M with three leaves; M = 64 of this layer has an answer of its own, and M = 32 of another layer."""
    below, here, above = (own_leaf(each, BSP, 1.2, "hash") for each in (SMALL, config, LARGE))
    root = Split("m", 20, below, Split("m", 50, here, above))
    measured = tuple((name, (8, 32, 64, 1024)) if name == "m" else (name, (value,)) for name, value in HERE.to_dict().items())
    own = (
        (replace(HERE, m=64).key[1:], own_leaf(OWN, BSP, 1.2, "hash")),
        (replace(HERE, m=32, n=512).key[1:], own_leaf(BSP, BSP, None, "hash")),
    )
    tree = Tree("all_gather_gemm", "graph", root, measured, own)
    return Artifact("all_gather_gemm", Target.parse(target), "node", {"graph": tree})


def test_the_answers_of_the_neighbours_come_first_then_the_leaves_below_and_above() -> None:
    assert seeds.shipped([artifact()])(HERE, "graph") == [OWN, MIDDLE, LARGE]
    assert seeds.shipped([artifact()])(replace(HERE, m=16), "graph") == [OWN, SMALL, MIDDLE]
    assert seeds.shipped([artifact()])(HERE, "eager") == [] == seeds.shipped([])(HERE, "graph")


def test_another_layout_is_answered_too_and_a_size_that_cannot_be_sharded_is_passed_over() -> None:
    engine = AllGatherGemm(42, 3584, 8192, 2, "bf16", "m", "nk")
    assert seeds.shipped([artifact()])(engine, "graph") == [OWN, MIDDLE, LARGE]
    thirds = AllGatherGemm(42, 3584, 8190, 3, shard="m")
    assert seeds.shipped([artifact()])(thirds, "graph") == [OWN, MIDDLE], "3 ranks cannot share 32 or 64 rows"


def test_several_artifacts_are_asked_in_turn() -> None:
    assert seeds.shipped([artifact(), artifact("h200x4", config=OTHER)])(HERE, "graph") == [OWN, MIDDLE, LARGE, OTHER]


def test_the_artifact_of_the_target_or_else_of_its_relatives() -> None:
    def names(target: str) -> list[str]:
        return [found.target.name for found in seeds.artifacts("all_gather_gemm", Target.parse(target))]

    assert names("h200x4") == ["h200x4"]
    assert names("h200x1") == ["h200x2", "h200x4", "h200x8"], "the nearest number of GPUs first"
    assert names("mi300x8") == [], "what ships is modelled"


@pytest.mark.parametrize("shape", [AllGatherGemm(40, 3584, 8192, 2, "bf16", "m", "nk"), FlashDecode(3, 64, 8, 128, 5000, 2)])
@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_what_ships_names_something_for_a_shape_off_the_grid(shape: Shape, mode: str) -> None:
    found = seeds.shipped(seeds.artifacts(shape.op, Target.parse("h200x2")))(shape, mode)
    assert found and all(config.variant != "bsp" for config in found)


def test_stored_rows_count_beside_the_committed_ones_and_modelled_ones_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed = [trial(1)]
    monkeypatch.setattr("tftune.machine.former_rows", lambda op, target: committed)
    with Store.open(tmp_path / "a.db", write=True) as store:
        store.add_run(RUN)
        for each in (trial(1), trial(2), trial(3, bench="model")):
            store.add_trial(each)
        known = seeds.knowledge("all_gather_gemm", Target.parse("h200x8"), store)
    assert [row.config for row in known.former] == [trial(1).config, trial(2).config]
    assert known.predict is not None and known.describe is not None
