"""What a search is told before its first trial: an artifact's configs near a shape, of this target
or a relative, and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored import RUN, trial
from synthetic import (
    BSP,
    ENGINE,
    LARGE,
    LAYERS,
    OP,
    ROWS,
    SHAPES,
    SMALL,
    WEIGHTS,
    law,
    model,
    scaled,
    shape,
)

from tftune.confirm import relatives
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.artifact import Artifact, Mode
from tftune.models.layout import LayoutModel
from tftune.models.timeline.simulator import predict
from tftune.models.tree.tree import Leaf
from tftune.pipeline import seeds

OTHER = Config("push", **dict(SMALL.knobs) | {"num_stages": 4})
QUICK = tuple(0.5 * weight for weight in WEIGHTS[SMALL])
OFF = shape(40, 3072, 3072)
"""A shape of no measured family and size."""


def artifact(*models: LayoutModel, target: str = "h200x2") -> Artifact:
    found = models or (model(),)
    return Artifact(
        OP, Target.parse(target), "node", {"graph": Mode({each.layout: each for each in found}, {})}
    )


def named(asked: Shape, *found: Artifact, mode: str = "graph") -> list[Config]:
    return relatives.proposals(found)(asked, mode)


def test_what_may_answer_near_the_shape_comes_the_fastest_first_and_is_never_bsp() -> None:
    for asked in (shape(128), shape(200), shape(200, 3072, 3072), shape(1000, 3072, 3072)):
        found = named(asked, artifact())
        assert {*found} == {SMALL, LARGE} and (asked.m <= 200 or found == [LARGE, SMALL])
    for asked in (shape(32), shape(20), OFF):
        assert named(asked, artifact()) == [SMALL], "LARGE has 128 rows"
    quick = artifact(model(weights=WEIGHTS | {LARGE: QUICK}))
    assert named(shape(200), quick) == named(shape(128), quick) == [LARGE, SMALL]
    slow = model(weights=scaled(9, SMALL))
    assert named(OFF, artifact(slow)) == [SMALL], (
        "what a search may still improve, though BSP would be the answer"
    )


def test_where_nothing_is_known_nothing_is_named() -> None:
    assert named(OFF) == [] == named(OFF, artifact(), mode="eager")
    assert named(shape(1 << 20), artifact()) == [], "beyond what was measured"
    assert named(OFF, artifact(model(weights={BSP: WEIGHTS[BSP]}))) == []


def test_at_a_measured_shape_its_own_rows_come_before_what_formulas_say() -> None:
    """Only LARGE was kept at M = 8192 of this family; formulas name SMALL there, too."""
    found = model()
    kept = tuple(
        replace(known, times_us=tuple(pair for pair in known.times_us if pair[0] != 1))
        if known.sizes == (8192, 4096, 4096)
        else known
        for known in found.known
    )
    bsp, small, large = found.formulas
    formulas = (bsp, replace(small, weights=QUICK), large)
    favoured = replace(found, known=kept, formulas=formulas)
    assert named(shape(8192), artifact(favoured)) == [LARGE, SMALL]
    assert named(shape(8000, 3072, 3072), artifact(favoured)) == [SMALL, LARGE]


def test_at_most_four_are_named() -> None:
    tiles = [
        Config("push", **dict(SMALL.knobs) | {"num_stages": stages, "block_n": n})
        for stages in (2, 4)
        for n in (64, 128, 32)
    ]
    weights = WEIGHTS | {
        config: tuple((1 + 0.1 * n) * w for w in WEIGHTS[SMALL])
        for n, config in enumerate(tiles, 1)
    }
    for asked in (shape(32), OFF):
        times = {config: law(config, weights[config])(asked) for config in (SMALL, *tiles)}
        fastest = sorted(times, key=times.__getitem__)[: relatives.NAMED]
        assert len(times) == 7 and named(asked, artifact(model(weights=weights))) == fastest


def test_a_kernel_that_has_changed_since_still_names_its_configs() -> None:
    """A search measures them itself."""
    old = replace(model(), kernels=("", "0" * 12, "0" * 12))
    assert named(OFF, artifact(old)) == [SMALL]


def layouts(mapping: Mapping[Sequence[Any], Mapping[Config, Sequence[float]]]) -> list[LayoutModel]:
    return [
        model(
            [shape(m, n, k, layout) for n, k in LAYERS for m in ROWS],
            weights,
            root=Leaf(tuple(range(len(weights))), 30, 0.02, ()),
        )
        for layout, weights in mapping.items()
    ]


def test_another_layout_is_answered_by_the_one_that_is_most_like_it() -> None:
    half = {("fp16", "m", "nk", 4): {BSP: QUICK, OTHER: QUICK}}
    two = artifact(*layouts({ENGINE: {BSP: WEIGHTS[BSP], SMALL: WEIGHTS[SMALL]}} | half))
    for layout, expected in (
        (ENGINE, SMALL), (("fp16", "m", "nk", 4), OTHER), (("fp16", "m", "nk", 8), OTHER),
        (("bf16", "m", "kn", 2), SMALL),
        (("bf16", "m", "nk", 1), SMALL), (("fp16", "k", "kn", 4), OTHER),
    ):  # fmt: skip
        assert named(shape(40, 3072, 3072, layout), two) == [expected]


ALONG_K = ("fp16", "k", "nk", 2)


def along_k(weights: Mapping[Config, Sequence[float]]) -> LayoutModel:
    """The model of another sharding, where BSP's form is another one."""
    (found,) = layouts({ALONG_K: {Config("bsp", form="gather_copy"): WEIGHTS[BSP], **weights}})
    return found


def test_a_layout_whose_ranks_cannot_share_the_shapes_rows_is_passed_over() -> None:
    """Sharded along K an odd M is possible; 2 ranks cannot share 41 rows. The layout next best is
    asked; for an even M the other."""
    odd, even = replace(OFF, m=41, shard="k"), replace(OFF, m=42, dtype="fp16", b_layout="kn")
    assert named(odd, artifact()) == []
    configs = relatives.proposals([artifact(model(), along_k({OTHER: WEIGHTS[SMALL]}))])
    for _ in range(2):
        assert configs(odd, "graph") == [OTHER] and configs(even, "graph") == [SMALL]
        assert configs(replace(odd, m=42, dtype="fp16"), "graph") == [OTHER]
    both = relatives.proposals([artifact()])
    thirds = AllGatherGemm(41, 3072, 3072, 1, "bf16", "m", "nk")
    assert [both(replace(thirds, m=m), "graph") for m in (41, 42, 41)] == [[], [SMALL], []], (
        "each size is asked for itself"
    )


def test_a_layout_that_names_nothing_leaves_it_to_the_next() -> None:
    """Few shapes of the likest layout were measured, and BSP won at all; or the shape lies outside
    of them."""
    asked = replace(OFF, shard="k", dtype="fp16")
    nothing, few = along_k({}), replace(along_k({OTHER: QUICK}), spans=False)
    assert named(asked, artifact(nothing)) == []
    assert named(asked, artifact(model(), nothing)) == [SMALL]
    assert named(asked, artifact(few)) == [] and named(asked, artifact(few, model())) == [SMALL]
    assert named(replace(shape(40), shard="k", dtype="fp16"), artifact(few, model())) == [OTHER], (
        "between two of its own"
    )


def test_several_artifacts_are_asked_in_turn_and_each_config_is_named_once() -> None:
    weights = {BSP: WEIGHTS[BSP], OTHER: QUICK, SMALL: WEIGHTS[SMALL]}
    second = artifact(model(weights=weights), target="h200x4")
    assert named(OFF, artifact(), second) == [SMALL, OTHER]
    assert named(OFF, second, artifact()) == [OTHER, SMALL]
    assert all(place.world == 2 for place in SHAPES)


def test_the_artifact_of_the_target_or_else_of_its_relatives() -> None:
    def names(target: str) -> list[str]:
        return [found.target.name for found in seeds.artifacts(OP, Target.parse(target))]

    assert names("h200x4") == ["h200x4"]
    assert names("h200x1") == ["h200x2", "h200x4", "h200x8", "h100x2"], "another chip is further"
    assert names("mi300x8") == [], "what ships is modelled"


def test_an_artifact_that_cannot_be_read_is_no_reason_not_to_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.models.artifact.SHIPPED", tmp_path)
    (tmp_path / f"{OP}__h200x2.json").write_text('{"schema": 3}')
    (tmp_path / f"{OP}__h200x4.json").write_text("{")
    assert seeds.artifacts(OP, Target.parse("h200x2")) == []


@pytest.mark.parametrize(
    "shape",
    [AllGatherGemm(40, 3584, 8192, 2, "bf16", "m", "nk"), FlashDecode(3, 64, 8, 128, 5000, 2)],
)
@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_what_ships_names_something_for_a_shape_off_the_grid(shape: Shape, mode: str) -> None:
    found = relatives.proposals(seeds.artifacts(shape.op, Target.parse("h200x2")))(shape, mode)
    assert found and all(config.variant != "bsp" for config in found)


@pytest.mark.parametrize("with_model", [True, False])
def test_stored_rows_count_beside_the_committed_ones_and_modelled_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_model: bool
) -> None:
    asked: list[Any] = []

    def committed(op: str, target: Target, shapes: Sequence[Shape]) -> list[Any]:
        asked.append((op, target.name, tuple(shapes)))
        return [trial(1)]

    monkeypatch.setattr("tftune.pipeline.bench_factory.former_rows", committed)
    with Store.open(tmp_path / "a.db", write=True) as store:
        store.add_run(RUN)
        for each in (trial(1), trial(2), trial(3, bench="model")):
            store.add_trial(each)
        known = seeds.knowledge(OP, Target.parse("h200x8"), [OFF], store, with_model=with_model)
    assert [row.config for row in known.former] == [trial(1).config, trial(2).config] and asked == [
        (OP, "h200x8", (OFF,))
    ]
    assert known.predict is (predict if with_model else None) and known.describe is not None
