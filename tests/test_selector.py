"""The selector over what was trained: the tree answers as it is walked, and BSP, with the reason,
wherever an artifact does not apply."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import shipped
from synthetic import (
    BSP,
    LAWS,
    OP,
    SHAPES,
    SMALL,
    Law,
    content,
    model,
    rows,
    selector,
    shape,
)

from tftune.db.target import Machine
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.artifact import parse_artifact, read_artifact
from tftune.models.features import names, vector
from tftune.models.selector import Selector
from tftune.models.tree.tree import leaves_of, walk

UNSEEN = [
    shape(m, n, k)
    for n, k in ((3072, 3072), (6144, 5120), (7168, 8192))
    for m in (10, 50, 90, 250, 700, 1500, 3000, 7000)
]
TWINS = tuple(replace(place, dtype="fp16") for place in SHAPES[:6])


def tile(block_n: int, num_stages: int) -> Config:
    return SPACE.complete(
        Config("push", **dict(SMALL.knobs) | {"block_n": block_n, "num_stages": num_stages})
    )


CENTRES = dict(
    zip(
        [tile(n, stages) for stages in (2, 3, 4) for n in (32, 64, 128)][:7],
        (6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.5),
        strict=True,
    )
)
"""For each push, log2 of the M where it takes 0.6 of BSP's time. It takes more on either side, and
more than BSP at M = 8."""


def around(centre: float) -> Law:
    return lambda asked: round(
        LAWS[BSP](asked) * 0.6 * math.exp(0.06 * (math.log2(asked.m) - centre) ** 2), 2
    )  # type: ignore[attr-defined]


TILES: dict[Config, Law] = {BSP: LAWS[BSP]} | {
    config: around(centre) for config, centre in CENTRES.items()
}


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    """Seven tiles, each the fastest for some M, and BSP at M = 8; and a few rows of another
    layout."""
    return content([*rows(SHAPES, TILES), *rows(TWINS)])


@pytest.fixture
def trained(written: dict[str, Any]) -> Selector:
    return Selector(parse_artifact(written))


def test_it_answers_as_the_tree(trained: Selector) -> None:
    """For families that were never measured: by the config of the leaf that is the fastest by the
    laws of these rows, or near it. What speed-ups around them name is as near."""
    tree = trained.answerer(SHAPES[0], "graph").model  # type: ignore[union-attr]
    assert tree.root is not None and tree.spans and len(list(leaves_of(tree.root))) > 1
    by_tree = selector(replace(tree, gains=None))
    answers, ends = set(), set()
    for asked in UNSEEN:
        leaf, steps = walk(tree.root, dict(zip(names(OP), vector(OP, asked), strict=True)))
        found, around = by_tree.select(asked), trained.select(asked).config
        if around.variant != "bsp":
            assert TILES[around](asked) < 1.15 * min(each(asked) for each in TILES.values())
        config = (
            BSP if found.config.variant == "bsp" else found.config
        )  # other forms of BSP have no law
        assert (found.source, found.near) == ("interpolated", leaf.near)
        assert (by_tree.path(asked), by_tree.leaf(asked)) == (steps, leaf) and steps
        assert found.expected_us == pytest.approx(TILES[config](asked), rel=0.15)
        assert found.bsp_us == pytest.approx(LAWS[BSP](asked), rel=0.15)
        assert TILES[config](asked) < 1.15 * min(each(asked) for each in TILES.values())
        answers.add(config)
        ends.add(leaf)
    assert BSP in answers and len(answers) > 4 and len(ends) > 1


def test_the_second_answer_is_a_lookup(trained: Selector) -> None:
    """How fast it is, test_dispatch.py measures."""
    for asked in (SHAPES[3], shape(96), UNSEEN[3], shape(9000)):
        assert trained.select(asked) is trained.select(replace(asked))


def test_an_answer_is_said_as_json_values(trained: Selector) -> None:
    found = trained.select(UNSEEN[3])
    assert found.interval is not None and found.near
    told = json.loads(json.dumps(found.to_dict()))
    assert told["interval"] == [*found.interval]
    assert told["near"] == [[*sizes] for sizes in found.near]


@pytest.mark.parametrize(
    "changed",
    [{"world": 4}, {"shard": "k"}, {"b_layout": "kn"}, {"dtype": "fp16", "b_layout": "kn"}],
)
def test_what_was_never_measured_is_bsp_and_all_that_was_is_named(
    trained: Selector, changed: dict[str, Any]
) -> None:
    asked = replace(SHAPES[3], **changed)
    found = trained.select(asked)
    title = ",".join(f"{name}={value}" for name, value in asked.named(asked.layout).items())
    measured = "dtype=bf16,shard=m,b_layout=nk,world=2; dtype=fp16,shard=m,b_layout=nk,world=2"
    assert (
        found.reason == f"{title} was never measured for all_gather_gemm on h200x2; only {measured}"
    )
    assert (found.config.variant, found.source) == ("bsp", "fallback") and trained.path(asked) == ()
    assert SPACE.why_invalid(asked, found.config) is None


def test_an_operation_without_artifact(trained: Selector) -> None:
    found = Selector().select(SHAPES[3])
    then = "`tftune.warm_up` measures in place, and `tftune tune {}` writes an artifact"
    assert found.config.variant == "bsp"
    assert found.reason == f"there is no artifact for {OP}; {then.format(OP)}"
    other, op = trained.select(FlashDecode(1, 64, 8, 128, 8192, 2)), "flash_decode"
    assert other.config.variant == "bsp"
    assert other.reason == f"there is no artifact for {op}, only for {OP}; {then.format(op)}"


def test_times_of_a_kernel_without_a_hash_are_of_the_artifacts_or_of_none() -> None:
    """So that no fused config is served past the check of its source."""
    bare = selector(replace(model(), kernels=("", "", "")))
    assert bare.select(shape(32)).config == SMALL and bare.disabled() == {}
    for kernels, said in (({}, "none"), ({"push": "0" * 12}, "0" * 12)):
        found = Selector(replace(bare.artifacts[OP], document={"kernels": kernels}))
        assert found.select(shape(32)).config == BSP and list(found.disabled()) == [f"{OP}/push"]
        assert found.disabled()[f"{OP}/push"].endswith(f"and the artifact's times are of {said}")


def test_restricted_to_bsp_it_still_compares_its_machine(trained: Selector) -> None:
    machine = Machine("h200x2", "sm_90", {"triton": "3.6.0"})
    found = Selector(*trained.artifacts.values(), machine=machine).restricted("rank 3 differs")
    assert found.machine is machine
    for asked in (SHAPES[3], UNSEEN[3], shape(9000)):
        answer = found.select(asked)
        assert answer.config.variant == "bsp"
        assert answer.reason == "rank 3 differs"
        assert answer.source == "fallback"
    assert trained.select(SHAPES[3]).config.variant == "push"


def too_large(world: int, digits: int) -> list[Shape]:
    """As far as a shape is legal: 10**400 is no float, and Python prints no integer of more than
    4,300 digits."""
    large = replace(SHAPES[0], world=world, m=4096)
    decode = FlashDecode(1, 64, 8, 128, 8192, world)
    size = world * 10**digits
    found: list[Shape] = [
        *(replace(large, **{name: size}) for name in ("m", "n", "k")),
        replace(large, world=size, m=size),
    ]
    both = replace(decode, q_heads=size, kv_heads=size)
    return [*found, replace(decode, kv_len=size), replace(decode, batch=size), both]


def is_possible_bsp(selector: Selector, asked: Shape) -> bool:
    found = selector.select(asked)
    assert operation(asked.op).space.why_invalid(asked, found.config) is None
    return (found.config.variant, found.source, selector.path(asked)) == ("bsp", "fallback", ())


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_size_beyond_floats_is_bsp(trained: Selector, digits: int) -> None:
    shapes = too_large(2, digits)
    assert all(is_possible_bsp(asked, one) for one in shapes for asked in (trained, Selector()))
    assert trained.select(shapes[0]).reason.startswith("m of more than 63 bits is outside of ")


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("path", shipped.each())
def test_a_size_beyond_floats_is_bsp_by_every_shipped_artifact(path: Path, digits: int) -> None:
    artifact = read_artifact(path)
    for asked in too_large(artifact.target.gpus, digits):
        assert is_possible_bsp(Selector(artifact), asked)


@pytest.mark.parametrize("world", [33, 64])
def test_more_ranks_than_any_config_is_possible_for_are_bsp(trained: Selector, world: int) -> None:
    """The launcher says the sentence; a selector that raised would say it on the hot path."""
    asked = FlashDecode(1, 64 if world == 64 else 33, 8 if world == 64 else 33, 256, 8192, world)
    assert next(operation(asked.op).space.configs(asked), None) is None
    decode = replace(trained.artifacts[OP], op="flash_decode")
    for served in (Selector(), trained, Selector(decode)):
        assert served.select(asked).config.variant == "bsp"
