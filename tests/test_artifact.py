"""Reading an artifact: a sound file says what was written, and a damaged or foreign one is refused
with a sentence that names it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import shipped
from synthetic import BSP, ENGINE, LARGE, OP, SHAPES, SMALL, content, model, rows, selector, shape

from tftune.kernels.core.space import Config
from tftune.models.artifact import FIELDS, Artifact, digest, parse_artifact, read_artifact
from tftune.models.selector import Selector
from tftune.models.tree.codec import pack_layout, unpack_layout
from tftune.models.tree.tree import DEEPEST, Leaf, Node, Split, leaves_of, pack

HALF = ("fp16", "m", "nk", 2)
PLACES = tuple(replace(place, dtype="fp16") for place in SHAPES[:12])


@pytest.fixture(scope="module")
def sound() -> dict[str, Any]:
    """Two modes, two layouts, of which one is lent the other's answers."""
    return content([*rows(), *rows(PLACES), *rows(SHAPES[:6], mode="eager")], {"triton": "3.6.0"})


def edited(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The document with these changes, and with the digest that fits; a field that is `...` is left
    out."""
    every = json.loads(json.dumps(document)) | changes
    found = {name: value for name, value in every.items() if value is not ...}
    return found | {"sha256": digest(found)}


def broken(tmp_path: Path, text: str | bytes) -> str:
    """What is said of a file that is refused."""
    path = tmp_path / "artifact.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError) as raised:
        read_artifact(path)
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)
    return str(raised.value)


def test_a_sound_file_says_what_was_written(tmp_path: Path, sound: dict[str, Any]) -> None:
    path = tmp_path / "artifact.json"
    path.write_text(json.dumps(sound))
    found = read_artifact(path)
    assert found.digest == sound["sha256"]
    assert found.path == path
    assert found.op == OP
    assert str(found.target) == "h200x2"
    assert found.bench == "node"
    assert {mode: set(each.layouts) for mode, each in found.modes.items()} == {
        "graph": {ENGINE, HALF},
        "eager": {ENGINE},
    }
    assert set(found.modes["graph"].lent) == {HALF} and len(list(found.models())) == 3
    assert Selector(found).select(SHAPES[1]).config == SMALL
    with pytest.raises(ValueError, match="was not read from a file"):
        _ = parse_artifact(sound).file


def test_a_packed_layout_answers_as_the_one_that_was_trained() -> None:
    """Times keep four digits, weights five."""
    exact = model()
    again = unpack_layout(OP, "graph", json.loads(json.dumps(pack_layout(exact))))
    assert again == unpack_layout(OP, "graph", json.loads(json.dumps(pack_layout(again))))
    assert (again.configs, again.kernels, again.root, again.layout, again.error) == (
        exact.configs, exact.kernels, exact.root, exact.layout, exact.error,
    )  # fmt: skip
    one, other = selector(exact), selector(again)
    for asked in (
        *SHAPES,
        shape(20),
        shape(700, 8192, 4096),
        shape(64, 3072, 3072),
        shape(6000, 3072, 8192),
        shape(9000),
    ):
        found, told = one.select(asked), other.select(asked)
        assert (found.config, found.source, found.near) == (told.config, told.source, told.near)
        assert told.expected_us == (
            found.expected_us and pytest.approx(found.expected_us, rel=1e-3)
        )


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"cannot read the artifact .*none.json: No such file.*run `tftune export`"
    ):
        read_artifact(tmp_path / "none.json")


def test_a_file_that_was_cut_off_or_is_no_text(tmp_path: Path, sound: dict[str, Any]) -> None:
    text = json.dumps(sound)
    parts = [text[: int(share * len(text))] for share in (0.0, 0.1, 0.5, 0.9, 0.999)]
    for part in (*parts, b"\xff\xfe\x00"):
        assert "is no JSON, or was cut off" in broken(tmp_path, part)


def test_brackets_without_end(tmp_path: Path) -> None:
    for text in ("[" * 100_000, f'{{"schema": 4, "op": {"[" * 100_000}'):
        assert "is nested deeper than any artifact; run `tftune export`" in broken(tmp_path, text)


@pytest.mark.parametrize("text", ["[]", "{}", "3", "null", '{"schema": "1"}', '{"schema": null}'])
def test_json_of_something_else(tmp_path: Path, text: str) -> None:
    assert "is no artifact of tftune" in broken(tmp_path, text)


@pytest.mark.parametrize(
    "change", [{"rows": 1}, {"created": "tomorrow"}, {"sha256": "0" * 64}, {"sha256": None}]
)
def test_an_edited_file(tmp_path: Path, sound: dict[str, Any], change: dict[str, Any]) -> None:
    assert "was edited: its content has the digest" in broken(tmp_path, json.dumps(sound | change))


def test_a_newer_and_an_older_schema(tmp_path: Path, sound: dict[str, Any]) -> None:
    assert "has schema 99, and this tftune reads schema 4; upgrade tftune" in broken(
        tmp_path, json.dumps(edited(sound, schema=99))
    )
    assert "has schema 3, and this tftune reads schema 4; run `tftune export` again" in broken(
        tmp_path, json.dumps(edited(sound, schema=3))
    )


@pytest.mark.parametrize("field", sorted(FIELDS.keys() - {"schema", "sha256"}))
def test_every_field_must_be_there_and_of_its_kind(
    tmp_path: Path, sound: dict[str, Any], field: str
) -> None:
    assert f"lacks '{field}'" in broken(tmp_path, json.dumps(edited(sound, **{field: ...})))
    assert f"unexpected form ({field} is None)" in broken(
        tmp_path, json.dumps(edited(sound, **{field: None}))
    )


REPORT = {
    "shapes": 9,
    "selector": {"geomean_regret": 1.1, "unknown": 2},
    "groups": {"n=1,k=2": [1.1, 1.2]},
}
WORDS_FOR_NUMBERS = {"geomean_regret": "1.1", "unknown": 2}
STAMP = {"at": "2026-11-22", "build": {"triton": "3.6.0"}, "leaves": 4}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("held_out", {"graph": 5}), ("held_out", {"graph": REPORT}),
        ("held_out", {"graph": {"dtype=bf16": REPORT | {"shapes": None}}}),
        ("held_out", {"graph": {"x": {"shapes": 9}}}),
        ("held_out", {"graph": {"x": REPORT | {"groups": [1.1]}}}),
        ("held_out", {"graph": {"x": REPORT | {"selector": WORDS_FOR_NUMBERS}}}),
        ("held_out", {"graph": {"x": REPORT | {"groups": {"n=1": [1.1]}}}}),
        ("verified", {}), ("verified", None), ("verified", {"at": "2026-11-22"}),
        ("verified", STAMP | {"build": {"triton": 3}}),
        ("build", {"triton": 3.6}), ("kernels", {"push": None}), ("bench", "moon"),
        ("modelled", True),
    ],
)  # fmt: skip
def test_a_field_that_commands_read_later_has_its_form(
    sound: dict[str, Any], field: str, value: Any
) -> None:
    parse_artifact(edited(sound, held_out={"graph": {"x": REPORT}}, verified=STAMP))
    said = rf"the artifact has an unexpected form \({field} is "
    with pytest.raises(ValueError, match=f"{said}.*run `tftune export` to write it again"):
        parse_artifact(edited(sound, **{field: value}))


def test_an_artifact_of_an_unknown_operation_target_mode_or_feature(
    tmp_path: Path, sound: dict[str, Any]
) -> None:
    for change, said in (
        (
            {"op": "softmax"},
            "no operation 'softmax'; the operations are all_gather_gemm, flash_decode",
        ),
        ({"target": "abacus"}, "'abacus' is no target"),
        (
            {"modes": {"jit": sound["modes"]["graph"]}},
            "it answers in mode 'jit'; the modes are graph, eager",
        ),
        (
            {"op": "flash_decode"},
            "a layout says dtype, shard, b_layout, world where one of flash_decode has dtype, "
            "output",
        ),
    ):
        assert said in broken(tmp_path, json.dumps(edited(sound, **change)))


def layout_with(document: dict[str, Any], *path: Any) -> dict[str, Any]:
    """The document with the last value at the place of its first layout that the others lead to;
    `...` leaves out what is there."""
    found = json.loads(json.dumps(document))
    part = found["modes"]["graph"]["layouts"][0]
    *way, last, value = path
    for name in way:
        part = part[name]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return edited(found)


@pytest.mark.parametrize(
    "part", ["layout", "configs", "formulas", "known", "tree", "spans", "error"]
)
def test_every_part_of_a_layout_must_be_there(
    tmp_path: Path, sound: dict[str, Any], part: str
) -> None:
    assert f"lacks '{part}'" in broken(tmp_path, json.dumps(layout_with(sound, part, ...)))


LEAF: list[Any] = [[0, 1], 3, 0.1, [[8, 2048, 2048]]]
BAD: list[tuple[tuple[Any, ...], str]] = [
    (("layout", "dtype", "fp8"), "its layout has dtype='fp8'"),
    (("layout", "world", "2"), "its layout has world='2'"),
    (("layout", "page_size", 2), "says dtype, shard, b_layout, world, page_size where"),
    (("known", 0, 0, [8, 2048, 2048, 1]), "has 4 sizes of 3"),
    (("known", 0, 0, []), "has 0 sizes of 3"),
    (("known", 0, 0, [8, 2048, "2048"]), "a measured shape is [[8, 2048, '2048']"),
    (("known", 0, 0, [8.0, 2048, 2048]), "a measured shape is [[8.0, "),
    (("known", 0, 0, None), "a measured shape is [None"),
    (("known", 0, 0, [-8, 2048, 2048]), "m=-8 must be an integer of at least 1"),
    (("known", 0, 0, [7, 2048, 2048]), "m=7 must be divisible by world=2"),
    (("known", 0, 1, 99), "names configs beyond"),
    (("known", 0, 1, 2), "names configs beyond"),  # the best has no time
    (("known", 0, 1, "0"), "a measured shape is"),
    (("known", 0, 1, 1.0), "a measured shape is"),
    (("known", 0, 1, None), "a measured shape is"),
    (("known", 0, 3, [0, 9.0, 1]), "a measured shape is"),
    (("known", 0, 3, [0, 9.0, 1, 8.0, 99, 1.0]), "names configs beyond"),
    (("known", 0, 3, [0, 0.0, 1, 8.0]), "has a time that is not positive"),
    (("known", 0, 3, 1, math.nan), "has a time that is not positive"),
    (("known", 0, 3, 1, math.inf), "or none that a kernel takes"),
    (("known", 0, 3, 1, 1e-300), "or none that a kernel takes"),
    (("known", 0, 3, [1, 8.0]), "names configs beyond"),  # no time of BSP
    (("known", []), "no shape of dtype=bf16,shard=m,b_layout=nk,world=2 was measured"),
    (("known", 0, 2, [1.0]), "unexpected form"),
    (("known", 3), "unexpected form"),
    (("known", 0, 0, [1 << 63, 1, 1]), "an integer of 64 bits, and sizes have 63 at most"),
    (("formulas", 2, ...), "2 formulas of 3 configs must each have 7 weights"),
    (("formulas", 0, 0, 6, ...), "3 formulas of 3 configs must each have 7 weights"),
    (("formulas", 0, 3), "a formula is 3"),
    (("formulas", 0, 2, 10**400), "it holds an integer of 1329 bits"),
    (("formulas", 0, 0, 0, 1e300), "has a weight above"),
    (("formulas", 1, 0, 0, -1e300), "has a weight above"),
    (("formulas", 0, 1, [1e3] * 10), "bends times by more than e to the power of 50"),
    (("formulas", 0, 1, [0.0] * 9 + [-1e3]), "bends times by more than"),
    (("formulas", 0, 1, [0.1]), "has 1 bends, and may have none or 10"),
    (("formulas", 0, 1, [0.0] * 11), "has 11 bends, and may have none or 10"),
    (("configs", 0, "variant", 7), "variant=7 must be printable text"),
    (("configs", 0, "values", [[]]), "does not fit"),
    (("configs", 0, "kernel", None), "bsp has the kernel None"),
    (("error", math.nan), "is nan, and may be 0 to 50"),
    (("error", -0.1), "is -0.1, and may be"),
    (("error", 1e4), "is 10000.0, and may be"),
    (("error", math.inf), "is inf, and may be"),
    (("tree", [[0, 99], *LEAF[1:]]), "a leaf names configs (0, 99) of 3"),
    (("tree", [[-1], *LEAF[1:]]), "a branch of the tree is"),
    (("tree", [["0"], *LEAF[1:]]), "a branch of the tree is"),
    (("tree", [[1.0], *LEAF[1:]]), "a branch of the tree is"),
    (("tree", [*LEAF[:2], 1e4, []]), "is 10000.0, and may be"),
    (("tree", ["m", 1.0, LEAF, [*LEAF[:2], -1.0, []]]), "is -1.0, and may be"),
    (("tree", ["m", 1.0, LEAF, {}]), "a branch of the tree is {}"),
    (("tree", ["m", "1", LEAF, LEAF]), "a branch of the tree is"),
    (("tree", ["m", math.inf, LEAF, LEAF]), "the threshold of 'm' is inf"),
    (("tree", ["moon", 1.0, LEAF, LEAF]), "asks for the feature 'moon'; there are m, n, k"),
    (("tree", ["m) or print(1", 1.0, LEAF, LEAF]), "its tree asks for the feature"),
]


@pytest.mark.parametrize(("path", "said"), BAD, ids=[f"{path[:-1]} {said}" for path, said in BAD])
def test_a_damaged_layout_is_refused(
    tmp_path: Path, sound: dict[str, Any], path: tuple[Any, ...], said: str
) -> None:
    """On loading, since no selection raises: not for the logarithm of a time that is 0 either."""
    found = broken(tmp_path, json.dumps(layout_with(sound, *path)))
    assert said in found and ("unexpected form" in found or "does not fit this tftune" in found)


@pytest.mark.parametrize("value", [0, "wide"])
def test_a_knob_that_no_time_can_be_computed_with_is_refused_and_a_value_unknown_here_is_not(
    sound: dict[str, Any], value: Any
) -> None:
    groups = sound["modes"]["graph"]["layouts"][0]["configs"]
    number = next(number for number, group in enumerate(groups) if "block_m" in group["knobs"])
    knobs, first = groups[number]["knobs"], groups[number]["values"][0]
    place = "configs", number, "values", 0, knobs.index("block_m")
    with pytest.raises(ValueError, match="does not fit this tftune: push has knobs that give no"):
        parse_artifact(layout_with(sound, *place, value))
    named = Config(groups[number]["variant"], **dict(zip(knobs, first, strict=True)))
    old, newer = (
        Selector(parse_artifact(one), check_source=False)
        for one in (sound, layout_with(sound, *place, 96))
    )
    places = [asked for asked in SHAPES if old.select(asked).config == named]
    assert places
    for asked in places:
        assert dict(newer.select(asked).config.knobs).get("block_m") != 96


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"of": ["fp16", "k", "kn", 8]}, "by ('fp16', 'k', 'kn', 8), which it does not have"),
        ({"of": 3}, "unexpected form"),
        ({"error": "wide"}, "does not fit this tftune"),
        ({"error": math.nan}, "with an error of nan"),
        ({"error": 1e4}, "with an error of 10000.0"),
        ({"layout": ["fp16"]}, "does not fit"),
        ({"layout": ["fp16", "m", "nk", "2"]}, "its layout has world='2'"),
        ({"layout": ["fp8", "m", "nk", 2]}, "its layout has dtype='fp8'"),
        ({"pairs": None}, "unexpected form"),
    ],
)
def test_a_damaged_loan_is_refused(
    tmp_path: Path, sound: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    document = json.loads(json.dumps(sound))
    document["modes"]["graph"]["lent"][0] |= changes
    assert said in broken(tmp_path, json.dumps(edited(document)))


def chain(splits: int, below: bool) -> Node:
    """So many splits, each of which is a side of the one before."""
    leaf = Leaf((0, 1), 1, 0.02, ())
    at: Node = leaf
    for number in range(splits):
        at = Split("m", float(number), at, leaf) if below else Split("m", float(number), leaf, at)
    return at


@pytest.mark.parametrize("below", [True, False])
def test_a_tree_may_be_so_deep_and_no_deeper(
    tmp_path: Path, sound: dict[str, Any], below: bool
) -> None:
    deepest = Selector(parse_artifact(layout_with(sound, "tree", pack(chain(DEEPEST, below)))))
    asked = shape(4096, 3072, 3072)
    assert deepest.select(asked).reason and len(deepest.path(asked)) == (1 if below else DEEPEST)
    for splits in (DEEPEST + 1, 101, 200):
        document = layout_with(sound, "tree", pack(chain(splits, below)))
        said = f"its tree has more than {DEEPEST} splits on the way to a leaf"
        assert f"does not fit this tftune: {said}" in broken(tmp_path, json.dumps(document))


def test_a_config_of_a_knob_that_is_no_more_never_answers(sound: dict[str, Any]) -> None:
    """As a newer tftune may have it: the rest of the layout answers."""
    other = json.loads(json.dumps(sound).replace('"split_k"', '"warp_speed"'))
    found = Selector(parse_artifact(edited(other)), check_source=False)
    for asked in (SHAPES[1], shape(20), shape(64, 3072, 3072)):
        answer = found.select(asked)
        assert answer.config == BSP and "has no knob 'warp_speed'" in answer.reason


def test_a_variant_whose_name_no_file_can_have_is_bsp() -> None:
    odd = replace(
        model(), configs=(BSP, SMALL.from_dict(SMALL.to_dict() | {"variant": "x" * 300}), LARGE)
    )
    assert selector(odd).select(SHAPES[1]).config in (BSP, LARGE)


@pytest.mark.parametrize("path", shipped.each())
def test_every_shipped_artifact_loads_and_names_what_exists(path: Path) -> None:
    artifact: Artifact = read_artifact(path)
    assert path.stem == f"{artifact.op}__{artifact.target}" and Selector(artifact).disabled() == {}
    for each in artifact.models():
        bsp = {number for number, config in enumerate(each.configs) if config.variant == "bsp"}
        leaves = leaves_of(each.root) if each.root is not None and each.spans else ()
        assert all(bsp & set(leaf.candidates) for leaf in leaves)
