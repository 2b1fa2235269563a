"""The selector: it answers as the tree does, and BSP, with the reason, wherever the artifact does not apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from timeit import repeat
from typing import Any

import pytest

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.chips import H200
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models import selector as module
from tftune.models.dataset import load
from tftune.models.export import document, provenance
from tftune.models.features import names, vector
from tftune.models.packed import DEEPEST, unpack
from tftune.models.selector import Selector, digest, load_artifact, parse_artifact, read_artifact
from tftune.models.train import train
from tftune.models.tree import Leaf, Split, Tree

OP = "all_gather_gemm"
Rows = Callable[..., list[Trial]]
SHAPES = (*paper(), *paper(shard="m")[::3])
LARGE = AllGatherGemm(m=4096, n=3584, k=8192, world=8)


def made(rows: list[Trial], bench: str = "node") -> dict[str, Any]:
    dataset = load(rows, OP, "h200x8", "graph", bench)
    return document({"graph": train(dataset)}, provenance({"graph": dataset}, {}, {}))


def slower(trial: Trial) -> Trial:
    """Up to M = 8 all that is fused takes twice as long, so that BSP is the answer there."""
    found = trial.outcome
    assert isinstance(found, Measurement)
    if trial.config.variant == "bsp" or trial.shape.to_dict()["m"] > 8:
        return trial
    return replace(trial, outcome=replace(found, samples_us=tuple(2 * us for us in found.samples_us)))


@pytest.fixture(scope="module")
def content(make_rows: Rows) -> dict[str, Any]:
    return made([slower(trial) for trial in make_rows(SHAPES, bench="node")])


@pytest.fixture
def selector(content: dict[str, Any]) -> Selector:
    return Selector(parse_artifact(content))


def edited(content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The content with these changes, and with the digest that fits."""
    found = {**json.loads(json.dumps(content)), **changes}
    return found | {"sha256": digest(found)}


def test_it_answers_as_the_tree(content: dict[str, Any]) -> None:
    tree, variants = replace(unpack(content["trees"]["graph"]), own=()), set()
    selector = Selector(replace(parse_artifact(content), trees={"graph": tree}))
    for shape in SHAPES:
        leaf, steps = tree.walk(dict(zip(names(OP), vector(OP, shape), strict=True)))
        found = selector.select(shape)
        assert (found.config == leaf.config or leaf.abstains) and found.source == "measured" and found.reason == leaf.reason
        assert SPACE.why_invalid(shape, found.config) is None and selector.path(shape) == steps
        variants.add(found.config.variant)
    assert variants == {"bsp", "bsp_chunked", "push"}


def test_a_shape_of_its_own_is_answered_before_the_tree(content: dict[str, Any], selector: Selector) -> None:
    """One leaf abstains for two shapes, of which one is faster by push for sure."""
    tree = unpack(content["trees"]["graph"])
    assert tree.own
    for values, leaf in tree.own:
        shape = AllGatherGemm(*values)
        found = selector.select(shape)
        assert (found.config, found.reason, selector.path(shape)) == (leaf.config, leaf.reason, ("this very shape was measured",))
        assert tree.walk(dict(zip(names(OP), vector(OP, shape), strict=True)))[0].config != leaf.config


@pytest.mark.parametrize("shape", [[], [64], ["k"] * 7, [0, 3584, 8192, 8, "fp16", "k", "kn"], [64, 3584, 8192, 8, "fp8", "k", "kn"], None])
def test_a_shape_of_its_own_that_is_none_is_refused(content: dict[str, Any], shape: Any) -> None:
    trees = json.loads(json.dumps(content["trees"]))
    trees["graph"]["own"][0][0] = shape
    with pytest.raises(ValueError, match=r"the artifact (has an unexpected form|does not fit)"):
        parse_artifact(edited(content, trees=trees))


def test_the_second_answer_is_a_lookup(selector: Selector) -> None:
    assert selector.select(LARGE) is selector.select(replace(LARGE))
    assert min(repeat(lambda: selector.select(LARGE), number=1000, repeat=5)) / 1000 < 20e-6


def test_an_abstaining_leaf_takes_the_form_that_fits(content: dict[str, Any]) -> None:
    """One leaf for both shardings: its own BSP form fits only shapes sharded along K."""
    bsp = Config("bsp", form="local_transpose")
    tree = Tree(OP, "graph", Leaf(bsp, bsp, 2, 1.0, None, "BSP is measured to be the fastest", "x"), ())
    selector = Selector(replace(parse_artifact(content), trees={"graph": tree}))
    along_m = selector.select(replace(LARGE, shard="m"))
    assert selector.select(LARGE).config == bsp and along_m.config == Config("bsp", form="gather")
    assert along_m.source == "measured" and along_m.reason == "BSP is measured to be the fastest"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"world": 4}, "world=4 was never measured for all_gather_gemm on h200x8; only 8"),
        ({"dtype": "bf16"}, "dtype=bf16 was never measured for all_gather_gemm on h200x8; only fp16"),
        ({"b_layout": "nk"}, "b_layout=nk was never measured for all_gather_gemm on h200x8; only kn"),
    ],
)
def test_what_was_never_measured_is_bsp(selector: Selector, changed: dict[str, Any], reason: str) -> None:
    shape = replace(LARGE, **changed)
    found = selector.select(shape)
    assert found.config.variant == "bsp" and found.source == "fallback" and found.reason == reason
    assert SPACE.why_invalid(shape, found.config) is None and selector.path(shape) == ()


def test_a_mode_never_measured(selector: Selector) -> None:
    found = selector.select(LARGE, "eager")
    assert found.config.variant == "bsp" and found.reason.startswith("mode 'eager' was never measured")


def test_an_operation_without_artifact() -> None:
    found = Selector().select(LARGE)
    assert found.config.variant == "bsp" and "there is no artifact for all_gather_gemm; run `tftune search all_gather_gemm`" in found.reason


def test_modelled_times_are_served_only_when_allowed(make_rows: Rows) -> None:
    artifact = parse_artifact(made(make_rows(SHAPES), "model"))
    refused, served = ([Selector(artifact, allow_modelled=allowed).select(shape) for shape in SHAPES] for allowed in (False, True))
    for one in refused:
        assert one.config.variant == "bsp" and "modelled, not measured" in one.reason and one.source == "fallback"
    assert {one.source for one in served} == {"modelled"} and any(one.config.variant != "bsp" for one in served)
    assert all("predicted" in one.reason for one in served if one.config.variant != "bsp")


def test_a_stale_kernel_disables_exactly_its_leaves(content: dict[str, Any], selector: Selector) -> None:
    """Two fused leaves, pull below and push above; the source of push has changed since."""
    push = selector.select(LARGE).config
    assert push.variant == "push"
    leaf = next(leaf for leaf in unpack(content["trees"]["graph"]).leaves() if leaf.config == push)
    pull = replace(leaf, config=SPACE.complete(Config("pull")), kernel_hash=content["kernels"]["pull"])
    root = Split("m", 2048.0, pull, replace(leaf, kernel_hash="0" * 12))
    artifact = replace(parse_artifact(content), trees={"graph": Tree(OP, "graph", root, ())})
    stale, kept = Selector(artifact).select(LARGE), Selector(artifact).select(replace(LARGE, m=2048))
    assert stale.config == leaf.bsp and stale.source == "fallback" and "push has changed" in stale.reason and "0" * 12 in stale.reason
    assert kept.config == pull.config and kept.source == "measured"
    assert list(Selector(artifact).disabled()) == ["all_gather_gemm/push"] and selector.disabled() == {}
    assert Selector(artifact, check_source=False).select(LARGE).config == push


def test_a_config_that_breaks_a_rule_here_or_is_unknown(content: dict[str, Any], selector: Selector) -> None:
    push = selector.select(LARGE).config
    leaf = next(leaf for leaf in unpack(content["trees"]["graph"]).leaves() if leaf.config == push)
    for config, says in ((push, "block_m must not exceed M"), (Config("push", warp_speed=9), "has no knob 'warp_speed'")):
        artifact = replace(parse_artifact(content), trees={"graph": Tree(OP, "graph", replace(leaf, config=config), ())})
        found = Selector(artifact).select(replace(LARGE, m=1))
        assert found.config.variant == "bsp" and says in found.reason and found.source == "fallback"


def test_where_the_config_does_not_fit_the_other_one_of_its_leaf_answers(content: dict[str, Any], selector: Selector) -> None:
    push = selector.select(LARGE).config
    leaf = next(leaf for leaf in unpack(content["trees"]["graph"]).leaves() if leaf.config == push)
    small = next(c for c in SPACE.defaults(replace(LARGE, m=1), H200) if c.variant == "push")
    artifact = replace(parse_artifact(content), trees={"graph": Tree(OP, "graph", replace(leaf, otherwise=SPACE.complete(small)), ())})
    found = Selector(artifact).select(replace(LARGE, m=1))
    assert (found.config, found.source) == (SPACE.complete(small), "measured")
    assert "does not fit" in found.reason and "block_m must not exceed M" in found.reason and "the next best nearby" in found.reason
    assert Selector(artifact).select(LARGE).config == push
    neither = replace(artifact, trees={"graph": Tree(OP, "graph", replace(leaf, otherwise=push), ())})
    assert Selector(neither).select(replace(LARGE, m=1)).config.variant == "bsp"


@pytest.mark.parametrize("number", [-1, 99, "0", None, 1.0])
def test_a_leaf_that_names_no_config_of_the_table_is_refused(content: dict[str, Any], number: object) -> None:
    tree = json.loads(json.dumps(content["trees"]["graph"]))
    at = tree["root"]
    while isinstance(at[0], str):
        at = at[2]
    for place in (0, 1, -1):  # the config, the BSP form, the reason
        kept, at[place] = at[place], number
        with pytest.raises(ValueError, match="a leaf names entry"):
            parse_artifact({**content, "trees": {"graph": tree}})
        at[place] = kept
    parse_artifact({**content, "trees": {"graph": tree}})


def test_restricted_to_bsp(selector: Selector) -> None:
    found = selector.restricted("rank 3 differs").select(LARGE)
    assert found.config.variant == "bsp" and found.reason == "rank 3 differs" and selector.select(LARGE).config.variant == "push"


def broken(tmp_path: Path, text: str) -> str:
    path = tmp_path / "artifact.json"
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        load_artifact(path)
    assert str(path) in str(raised.value)
    return str(raised.value)


def test_a_sound_file_loads(tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "artifact.json"
    path.write_text(json.dumps(content))
    assert read_artifact(path).digest == content["sha256"] and load_artifact(str(path)).select(LARGE).config.variant == "push"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read the artifact .*none.json: No such file.*run `tftune export`"):
        load_artifact(tmp_path / "none.json")


def test_a_truncated_file(tmp_path: Path, content: dict[str, Any]) -> None:
    assert "is no JSON, or was cut off" in broken(tmp_path, json.dumps(content)[:-100])


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "artifact.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is no JSON, or was cut off"):
        load_artifact(tmp_path / "artifact.json")


def test_brackets_without_end(tmp_path: Path) -> None:
    for text in ("[" * 100_000, f'{{"schema": 3, "op": {"[" * 100_000}'):
        assert "is nested deeper than any artifact; run `tftune export`" in broken(tmp_path, text)


def test_an_edited_file(tmp_path: Path, content: dict[str, Any]) -> None:
    assert "was edited: its content has the digest" in broken(tmp_path, json.dumps({**content, "rows": 1}))


def test_a_newer_and_an_older_schema(tmp_path: Path, content: dict[str, Any]) -> None:
    assert "has schema 99, and this tftune reads schema 3; upgrade tftune" in broken(tmp_path, json.dumps(edited(content, schema=99)))
    assert "has schema 0, and this tftune reads schema 3; run `tftune export` again" in broken(
        tmp_path, json.dumps(edited(content, schema=0))
    )


def test_an_artifact_of_an_unknown_operation_target_or_feature(tmp_path: Path, content: dict[str, Any]) -> None:
    unknown = json.loads(json.dumps(content["trees"]).replace('["m", ', '["moon", '))
    assert "no operation 'softmax'; the operations are all_gather_gemm, flash_decode" in broken(
        tmp_path, json.dumps(edited(content, op="softmax"))
    )
    assert "'abacus' is no target" in broken(tmp_path, json.dumps(edited(content, target="abacus")))
    assert "asks for the feature 'moon'" in broken(tmp_path, json.dumps(edited(content, trees=unknown)))


@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"schema": "1"}'])
def test_json_of_something_else(tmp_path: Path, text: str) -> None:
    assert "is no artifact of tftune" in broken(tmp_path, text)


def test_missing_parts(tmp_path: Path, content: dict[str, Any]) -> None:
    without = {name: value for name, value in content.items() if name != "held_out"}
    assert "lacks 'held_out'" in broken(tmp_path, json.dumps(edited(without)))
    assert "lacks 'configs'" in broken(tmp_path, json.dumps(edited(content, trees={"graph": {"op": OP, "mode": "graph"}})))
    for root in ({}, [], 3, ["m", 1.0]):
        assert "unexpected form" in broken(
            tmp_path, json.dumps(edited(content, trees={"graph": {**content["trees"]["graph"], "root": root}}))
        )
    assert "unexpected form" in broken(tmp_path, json.dumps(edited(content, trees=["graph"])))


def rooted(content: dict[str, Any], root: Callable[[Callable[..., list[Any]]], Any]) -> dict[str, Any]:
    """The content with another root, of leaves that name a variant's first config, their BSP form and perhaps another config."""
    trees = json.loads(json.dumps(content["trees"]))
    variants = [group["variant"] for group in trees["graph"]["configs"] for _ in group["values"]]

    def leaf(config: str, bsp: str = "bsp", other: str | None = None) -> list[Any]:
        return [variants.index(config), variants.index(bsp), other and variants.index(other), 1, 1.0, None, 0]

    trees["graph"]["root"] = root(leaf)
    return edited(content, trees=trees)


def chain(splits: int, below: bool) -> Callable[[Callable[..., list[Any]]], Any]:
    """A root of so many splits, each of which is a side of the one before."""

    def root(leaf: Callable[..., list[Any]]) -> Any:
        at = leaf("push")
        for number in range(splits):
            at = ["m", float(number), at, leaf("bsp")] if below else ["m", float(number), leaf("bsp"), at]
        return at

    return root


@pytest.mark.parametrize("below", [True, False])
def test_a_tree_may_be_so_deep_and_no_deeper(tmp_path: Path, content: dict[str, Any], below: bool) -> None:
    deepest = Selector(parse_artifact(rooted(content, chain(DEEPEST, below))))
    assert deepest.select(LARGE).reason and len(deepest.path(LARGE)) == (1 if below else DEEPEST)
    for splits in (DEEPEST + 1, 101, 200):
        said = broken(tmp_path, json.dumps(rooted(content, chain(splits, below))))
        assert "does not fit this tftune: its tree has more than 64 splits on the way to a leaf" in said


REPORT = {"shapes": 9, "selector": {"geomean_regret": 1.1, "unknown": 2}, "groups": {LARGE.layer: [1.1, 1.2]}}
STAMP = {"at": "2026-11-22", "build": {"triton": "3.6.0"}, "leaves": 4}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("held_out", {"graph": 5}), ("held_out", {"graph": REPORT | {"shapes": None}}), ("held_out", {"graph": {"shapes": 9}}),
        ("held_out", {"graph": REPORT | {"selector": {"geomean_regret": "1.1", "unknown": 2}}}),
        ("held_out", {"graph": REPORT | {"groups": [1.1]}}), ("held_out", {"graph": REPORT | {"groups": {"n=1": [1.1]}}}),
        ("verified", {}), ("verified", None), ("verified", {"at": "2026-11-22"}), ("verified", STAMP | {"build": {"triton": 3}}),
        ("build", {"triton": 3.6}), ("kernels", {"push": None}), ("bench", "moon"), ("modelled", True),
    ],
)  # fmt: skip
def test_a_field_that_commands_read_later_has_its_form(content: dict[str, Any], field: str, value: Any) -> None:
    parse_artifact(edited(content, held_out={"graph": REPORT}, verified=STAMP))
    with pytest.raises(ValueError, match=rf"the artifact has an unexpected form \({field} is .*run `tftune export` to write it again"):
        parse_artifact(edited(content, **{field: value}))


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        ({"m": [1, 10**400]}, "it holds an integer of 1329 bits, and sizes have 63 at most"),
        ({"m": [1 << 63, 1 << 63]}, "it holds an integer of 64 bits"),
        ({"m": ...}, "its tree of mode 'graph' does not say at which m it was measured"),
        ({"LEAST": [1]}, "it says that 'LEAST' was measured"),
    ],
)
def test_what_was_measured_bounds_every_size(content: dict[str, Any], measured: dict[str, Any], says: str) -> None:
    trees = json.loads(json.dumps(content["trees"]))
    found = trees["graph"]["measured"] | measured
    trees["graph"]["measured"] = {name: seen for name, seen in found.items() if seen is not ...}
    with pytest.raises(ValueError, match=says):
        parse_artifact(edited(content, trees=trees))


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_size_beyond_floats_is_bsp(selector: Selector, digits: int) -> None:
    """As far as a shape is legal: 10**400 is no float, and Python prints no integer of more than 4,300 digits."""
    decode, size = FlashDecode(1, 64, 8, 128, 8192, 8), 10**digits
    shapes: list[Shape] = [*(replace(LARGE, **{name: size}) for name in ("m", "n", "k")), replace(LARGE, world=size, k=size)]
    shapes += [replace(decode, kv_len=size), replace(decode, batch=size), replace(decode, q_heads=size, kv_heads=size)]
    shipped = Selector(*(read_artifact(path) for path in module.SHIPPED.glob("*__h200x8.json")))
    for shape in shapes:
        for asked in (selector, shipped, Selector()):
            found = asked.select(shape)
            assert (found.config.variant, found.source) == ("bsp", "fallback") and asked.path(shape) == ()
            assert operation(shape.op).space.why_invalid(shape, found.config) is None
    assert "m of more than 63 bits is far from what was measured" in selector.select(shapes[0]).reason


def test_more_ranks_than_any_config_is_possible_for_are_bsp() -> None:
    """The launcher says the sentence; a selector that raised would say it on the hot path."""
    shape = FlashDecode(1, 64, 8, 256, 8192, 64)
    assert next(operation(shape.op).space.configs(shape), None) is None
    assert Selector().select(shape).config.variant == "bsp"


def test_a_leaf_names_no_fused_config_past_its_kernels_hash(content: dict[str, Any]) -> None:
    parse_artifact(rooted(content, lambda leaf: leaf("push", other="push")))
    with pytest.raises(ValueError, match="a leaf falls back to 'push' where it must name a form of BSP"):
        parse_artifact(rooted(content, lambda leaf: leaf("bsp", bsp="push")))
    with pytest.raises(ValueError, match="a leaf of 'push' names 'bsp_chunked' for shapes that its config does not fit"):
        parse_artifact(rooted(content, lambda leaf: leaf("push", other="bsp_chunked")))


def test_a_variant_whose_name_no_file_can_have_is_bsp(content: dict[str, Any], selector: Selector) -> None:
    push = selector.leaf(LARGE)
    assert push is not None
    tree = Tree(OP, "graph", replace(push, config=Config("x" * 300)), ())
    assert Selector(replace(parse_artifact(content), trees={"graph": tree})).select(LARGE).config.variant == "bsp"


def test_every_shipped_artifact_loads() -> None:
    for path in module.SHIPPED.glob("*.json"):
        artifact = read_artifact(path)
        assert path.stem == f"{artifact.op}__{artifact.target}"


def test_a_size_far_beyond_what_was_measured_is_bsp(selector: Selector) -> None:
    for name, size in (("m", 1 << 20), ("n", 64), ("k", 1024)):
        shape = AllGatherGemm.from_dict({"m": 64, "n": 3584, "k": 8192, "world": 8, name: size})
        found = selector.select(shape)
        assert found.source == "fallback" and found.config.variant == "bsp"
        assert f"{name}={size} is far from what was measured" in found.reason
    assert selector.select(AllGatherGemm(64, 3584, 4096, 8)).source == "measured"
