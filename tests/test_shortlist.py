"""The selector's shortlist: fused, valid, of this layout, of kernels as they are; and `confirm`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tftune.db.target import Machine, Target
from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.chips import H200
from tftune.kernels.source import kernel_hash
from tftune.kernels.space import Config
from tftune.models import selector as module
from tftune.models.selector import Artifact, Selection, Selector
from tftune.models.tree import Leaf, Split, Tree

OP = "all_gather_gemm"
SHAPE = AllGatherGemm(512, 3584, 8192, 8)
GATHER = Config("bsp", form="gather_copy")
TILES = {m: {"block_m": m, "block_n": 128, "num_warps": 8} for m in (32, 64, 128)}


def push(block_m: int, **knobs: Any) -> Config:
    return SPACE.complete(Config("push", **TILES[block_m], group_m=1, **knobs))


def leaf(config: Config, otherwise: Config | None = None, code: str = "") -> Leaf:
    hashed = code or kernel_hash(OP, config.variant)
    low = None if config.variant == "bsp" else 1.2
    return Leaf(config, GATHER, 1, 1.0, low, "made up", hashed, otherwise)


FIRST, SECOND, THIRD = push(64), push(128), push(32)
MEASURED: tuple[Any, ...] = (
    ("b_layout", ("kn",)), ("dtype", ("bf16", "fp16")), ("k", (8192,)), ("m", (64, 4096)),
    ("n", (3584,)), ("shard", ("k",)), ("world", (8,)),
)  # fmt: skip


def selector(*leaves: Leaf, own: Any = (), bench: str = "node", **more: Any) -> Selector:
    """A tree whose leaves split at M = 256 and 1024, and answers of single shapes."""
    node: Any = leaves[-1]
    for threshold, each in zip((1024.0, 256.0), reversed(leaves[:-1]), strict=False):
        node = Split("m", threshold, each, node)
    tree = Tree(OP, "graph", node, MEASURED, own)
    return Selector(Artifact(OP, Target.of(H200, 8), bench, {"graph": tree}), **more)


def test_the_leaf_comes_first_then_its_other_config_then_its_neighbours() -> None:
    found = selector(leaf(THIRD), leaf(FIRST, SECOND), leaf(push(64, num_stages=4)))
    assert found.shortlist(SHAPE) == (FIRST, SECOND, THIRD)
    assert found.shortlist(SHAPE, top=1) == (FIRST,)
    assert found.shortlist(SHAPE, top=9) == (FIRST, SECOND, THIRD, push(64, num_stages=4))
    assert found.shortlist(SHAPE, "eager") == () and found.shortlist(SHAPE, top=0) == ()


def test_bsp_is_never_on_it_and_a_leaf_that_abstains_hides_no_neighbour() -> None:
    assert selector(leaf(THIRD), leaf(GATHER), leaf(SECOND)).shortlist(SHAPE) == (THIRD, SECOND)


def test_what_is_impossible_for_the_shape_is_left_out() -> None:
    small = replace(SHAPE, m=64)
    fits = push(64, rows_per_flag=64)
    assert SPACE.why_invalid(small, SECOND, H200)
    assert selector(leaf(SECOND), leaf(fits)).shortlist(small) == (fits,)


def test_answers_of_measured_shapes_are_of_this_layout_alone_the_nearest_first() -> None:
    near, far = replace(SHAPE, m=640), replace(SHAPE, m=64)
    other = replace(SHAPE, dtype="bf16")
    answers = (far, THIRD), (other, push(64, num_stages=2)), (near, SECOND)
    own = tuple((shape.key[1:], leaf(config)) for shape, config in answers)
    assert selector(leaf(FIRST), own=own).shortlist(SHAPE) == (FIRST, SECOND, THIRD)


NOT_APPLIED = [{"bench": "model", "allow_modelled": True}, {"bsp_only": "ranks differ"}]


@pytest.mark.parametrize("changed", NOT_APPLIED)
def test_without_an_artifact_that_applies_it_is_empty(changed: dict[str, Any]) -> None:
    """Modelled times never ran: nobody knows whether such a config ends."""
    assert selector(leaf(FIRST)).shortlist(SHAPE) == (FIRST,)
    assert selector(leaf(FIRST), **changed).shortlist(SHAPE) == ()


def test_of_another_layout_or_kernel_it_is_empty() -> None:
    assert selector(leaf(FIRST)).shortlist(replace(SHAPE, shard="m")) == ()
    assert selector(leaf(FIRST, code="0123456789ab")).shortlist(SHAPE) == ()
    assert Selector().shortlist(SHAPE) == ()


def test_on_another_machine_it_is_empty() -> None:
    document = {"target": "h200x8", "arch": "sm_90", "op": OP, "build": {"triton": "3.6.0"}}
    found = selector(leaf(FIRST))
    artifact = replace(found.artifacts[OP], document=document | {"modelled": False})
    for build, expected in (({"triton": "3.6.1"}, (FIRST,)), ({"triton": "3.7.0"}, ())):
        machine = Machine("h200x8", "sm_90", build)
        assert Selector(artifact, machine=machine).shortlist(SHAPE) == expected


def test_of_the_rows_of_a_search_it_names_what_they_measured(
    make_rows: Callable[..., list[Trial]],
) -> None:
    from tftune.models.dataset import load
    from tftune.models.export import document, provenance
    from tftune.models.train import train

    rows = make_rows(tuple(replace(SHAPE, m=m) for m in (64, 256, 1024, 4096)), bench="node")
    dataset = load(rows, OP, "h200x8", "graph", "node")
    content = document({"graph": train(dataset)}, provenance({"graph": dataset}, {}, {}))
    found = Selector(module.parse_artifact(content))
    measured = {SPACE.complete(row.config) for row in rows}
    for m in (64, 96, 512, 1500):
        shortlist = found.shortlist(replace(SHAPE, m=m))
        assert shortlist and set(shortlist) <= measured
        assert found.select(replace(SHAPE, m=m)).config in (*shortlist, GATHER)


class TestConfirm:
    ANSWER = Selection(SECOND, "measured", "here")

    def test_it_answers_from_then_on_in_this_mode_and_for_this_shape(self) -> None:
        found = selector(leaf(FIRST))
        before = found.select(SHAPE)
        found.confirm(SHAPE, "graph", self.ANSWER)
        assert before.config == FIRST and found.select(replace(SHAPE)) is self.ANSWER
        assert found.select(SHAPE, "eager").config.variant == "bsp"
        assert found.select(replace(SHAPE, m=500)).config == FIRST

    def test_it_outlives_the_memo(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MEMO", 2)
        found = selector(leaf(FIRST))
        found.confirm(SHAPE, "graph", self.ANSWER)
        for m in range(600, 610):
            found.select(replace(SHAPE, m=m))
        assert found.select(SHAPE) is self.ANSWER

    def test_ranks_that_do_not_agree_forget_it(self) -> None:
        found = selector(leaf(FIRST))
        found.confirm(SHAPE, "graph", self.ANSWER)
        assert found.restricted("rank 1 differs").select(SHAPE).config.variant == "bsp"
