"""The space is countable, its defaults are possible, and it says why a config is not."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random

import pytest
from draws import draw
from hypothesis import given
from hypothesis import strategies as st

from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import CHIPS, H200, MI300X, Chip
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Choice, Config, Rule, Space
from tftune.kernels.flash_decode import FlashDecode

LARGE = AllGatherGemm(4096, 3584, 8192, 8)
DECODE = FlashDecode(1, 64, 8, 128, 8192, 8)
FUSED = tuple(variant for variant in SPACE.variants if variant != "bsp")
THIN = {"block_m": 64, "block_n": 32, "num_warps": 4}
BY_COPIES = {"push_ce", "bsp_chunked"}
"""Variants of the copy engine: a chip's rules keep them from calls whose copies would be small."""


def at(**changed: int | str) -> AllGatherGemm:
    """LARGE with other sizes."""
    return AllGatherGemm.from_dict(LARGE.to_dict() | changed)


def test_a_config_is_a_value() -> None:
    config = Config("push", block_n=256, block_m=128)
    same = Config("push", block_m=128, block_n=256)
    assert config == same and hash(config) == hash(same)
    assert eval(repr(config)) == config == Config.from_dict(config.to_dict())
    assert pickle.loads(pickle.dumps(config)) == config
    assert str(config) == "push(block_m=128, block_n=256)" and config["block_n"] == 256
    with pytest.raises(KeyError, match="no knob 'group_m'"):
        config["group_m"]


def test_every_choice_has_a_meaning_and_its_default() -> None:
    for choices in SPACE.variants.values():
        assert all(choice.meaning and choice.default in choice.values for choice in choices)
        assert len({choice.name for choice in choices}) == len(choices)
    with pytest.raises(ValueError, match=r"default 3 of block_m is not among its values \(1, 2\)"):
        Choice("block_m", (1, 2), "rows", 3)


def test_an_absent_knob_is_its_default() -> None:
    whole = SPACE.complete(Config("push", block_m=64))
    assert whole["block_m"] == 64 and whole["rows_per_flag"] == 128
    assert SPACE.complete(whole) == whole
    assert {name for name, _ in whole.knobs} == {one.name for one in SPACE.choices("push")}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (Config("fetch"), r"no variant 'fetch'; it has bsp, pull, staged, push, push_ce, bsp_ch"),
        (Config("push", tile=1), r"push has no knob 'tile'; it has block_m, block_n"),
        (Config("push", block_m=17), r"block_m=17 of all_gather_gemm/push is not one of \(16, 32"),
    ],
)
def test_mistakes_list_what_is_known(config: Config, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SPACE.why_invalid(LARGE, config)


@pytest.mark.parametrize(
    ("shape", "config", "chip", "sentence"),
    [
        (LARGE, Config("bsp", form="gather"), None, "gather needs it sharded along M"),
        (at(shard="m"), Config("bsp", form="gather_copy"), None, "need A sharded along K"),
        (at(m=16), Config("push", block_m=32), None, "block_m must not exceed M"),
        (at(n=32), Config("push", block_n=64), None, "block_n must not exceed N"),
        (at(m=256, shard="m"), Config("pull", block_m=64), None, "rows_per_flag must not exceed"),
        (at(k=512), Config("pull"), None, "k_per_flag must not exceed"),
        (at(k=512), Config("pull", k_per_flag=256, block_k=128), None, "block_k must not exceed"),
        (at(m=1 << 20), Config("push", rows_per_flag=16, k_per_flag=256), None,
            "at most 8192 flags"),
        (at(m=8192, k=53_248), Config("push", rows_per_flag=16, k_per_flag=256), None,
            "that peers set"),
        (at(m=128), Config("push"), None, "group_m must be 1"),
        (LARGE, Config("push", block_m=16, block_n=32), H200, "at least 8 accumulators"),
        (LARGE, Config("push", block_m=256, block_n=256), H200, "at most 128 fp32 accumulators"),
        (LARGE, Config("push", block_k=128), MI300X, "must fit the chip's shared memory"),
        (LARGE, Config("push", comm_programs=64), H200, None),
        (LARGE, Config("push"), MI300X, None),
        (LARGE, Config("push", xcds=8), MI300X, None),
        (LARGE, Config("push", xcds=8), None, None),
        (LARGE, Config("push", xcds=8), H200, "xcds needs several dies, which h200 lacks"),
        (LARGE, Config("push", xcds=8, schedule="dynamic"), MI300X,
            "xcds must be 1 where programs claim tiles"),
        (LARGE, Config("push", loads="descriptor"), MI300X,
            "loads needs descriptors, which mi300x lacks"),
        (at(m=256, n=36), Config("push", **THIN, loads="descriptor"), H200,
            "descriptor loads need"),
        (at(m=256, n=36, b_layout="nk"), Config("push", **THIN, loads="descriptor"), H200, None),
        (at(m=256, n=40), Config("push", **THIN, loads="descriptor"), H200, None),
        (at(m=512), Config("push", split_k=2), H200, None),
        (at(m=512), Config("push", block_m=64, split_k=2), H200,
            "split_k must be 1 where there is a whole tile"),
        (LARGE, Config("push_ce", rows_per_flag=64), H200, "a copy must move at least 256 KB"),
        (LARGE, Config("push_ce", rows_per_flag=64), None, "at most 16 copies"),
        (LARGE, Config("push_ce", rows_per_flag=256), MI300X, None),
        (at(m=64, world=2), Config("bsp_chunked", first_rows=64, growth=1), H200,
            "at least 128 rows of C"),
        (at(m=256), Config("bsp_chunked", growth=1), None, "first_rows must not exceed"),
        (LARGE, Config("bsp_chunked", first_rows=128, growth=1), None, "at most 16 chunks"),
        (LARGE, Config("bsp_chunked", first_rows=2048), None, "no chunk could be larger"),
        (at(world=2), Config("bsp_chunked", copy_streams=3), None, "fewer than the ranks"),
        (LARGE, Config("bsp_chunked"), H200, None),
        (FlashDecode(1, 8, 8, 128, 32, 2), Config("bsp", kv_splits=4, block_n=32), None,
            "at least 16 tokens"),
        (FlashDecode(16, 96, 12, 128, 65536, 8), Config("fused", kv_splits=38), H200,
            "more than 32 units of work"),
        (DECODE, Config("fused", kv_splits=64, block_n=256), None, "block_n must not exceed"),
        (DECODE, Config("fused", block_n=32, num_warps=8), H200, "8 warps must have"),
        (DECODE, Config("fused", block_n=256), H200, "a thread may hold"),
        (DECODE, Config("fused", block_n=128, num_stages=5), H200,
            "must fit the chip's shared memory"),
        (DECODE, Config("persistent", block_n=128, kv_splits=33, programs_per_unit=2), H200,
            "of all programs of a unit must fit"),
        (DECODE,
            Config("persistent", kv_splits=33, num_warps=8, programs_per_unit=2, num_stages=2),
            H200, "at most 12 warps"),
        (DECODE, Config("persistent", programs_per_unit=2, num_stages=2), H200,
            "programs_per_unit must be 1"),
        (DECODE, Config("fused", xcds=8), H200, "a chip of one die"),
        (DECODE, Config("fused", heads_per_program=16), None, "must not exceed a group"),
        (FlashDecode(1, 16, 1, 256, 8192, 8), Config("fused", heads_per_program=8), None,
            "at most 8192 elements"),
        (DECODE, Config("fused_heads", heads_per_program=2, heads_per_flag=1), None,
            "0 or at least heads_per_program"),
        (DECODE, Config("fused_heads", heads_per_flag=64), None, "less than all heads"),
        (FlashDecode(1024, 16, 1, 64, 64, 2), Config("persistent", kv_splits=1, heads_per_flag=1),
            None, "at most 8192 flags"),
        (DECODE, Config("persistent"), H200, None),
    ],
)  # fmt: skip
def test_rules_answer_with_their_sentence(
    shape: Shape, config: Config, chip: Chip | None, sentence: str | None
) -> None:
    found = operation(shape.op).space.why_invalid(shape, config, chip)
    assert found is None if sentence is None else found is not None and sentence in found


def test_every_rule_refuses_something_and_not_everything() -> None:
    """A rule that holds for everything, or for nothing, is a mistake in the rule."""
    tried = [
        AllGatherGemm(m, n, k, 8, shard=shard)
        for m in (8, 128, 1 << 20)
        for n in (32, 3584)
        for k in (512, 8192)
        for shard in "km"
    ]
    tried += [AllGatherGemm(128, 3584, 8192, 2), AllGatherGemm(32, 4096, 1 << 21, 2, shard="m")]
    tried += [AllGatherGemm(128, 3584, 8192, 2, operands="heap")]
    free = Space(SPACE.op, SPACE.variants, (), SPACE.defaults)
    every = {
        variant: [c for chip in (MI300X, H200) for c in draw(free, LARGE, chip, variant, 1500)]
        for variant in SPACE.variants
    }
    chips = replace(H200, units=16), replace(H200, units=100), MI300X
    for rule in SPACE.rules:
        concerned = [one for variant in every if rule.applies(variant) for one in every[variant]]
        answers = (rule.holds(s, c, chip) for c in concerned for s in tried for chip in chips)
        first = next(answers)
        assert any(answer != first for answer in answers), rule.sentence


def sharded(m: int, n: int, k: int, world: int, shard: str) -> AllGatherGemm:
    return AllGatherGemm(m * world if shard == "m" else m, n, k * world, world, shard=shard)


ANY_SHAPE = st.builds(
    sharded,
    st.integers(1, 9000),
    st.integers(1, 5000),
    st.integers(1, 2000),
    st.integers(2, 8),
    st.sampled_from("km"),
)


@given(st.sampled_from(sorted(CHIPS)), ANY_SHAPE)
def test_defaults_are_possible(chip: str, shape: AllGatherGemm) -> None:
    for known in (None, CHIPS[chip]):
        defaults = SPACE.defaults(shape, known)
        found = {config.variant for config in defaults} | (BY_COPIES if known else set())
        assert found == set(SPACE.variants)
        assert {SPACE.why_invalid(shape, config, known) for config in defaults} == {None}


@pytest.mark.parametrize(
    ("m", "tile"), [(64, (64, 64)), (128, (64, 64)), (256, (64, 128)), (512, (128, 128))]
)
def test_a_default_has_the_smallest_tile_of_which_all_run_at_once(
    m: int, tile: tuple[int, int]
) -> None:
    """On Hopper, where it is not the first default's; on CDNA, whose LDS holds less of a pipeline,
    never."""

    def pushed(shape: AllGatherGemm, chip: Chip) -> list[Config]:
        return [config for config in SPACE.defaults(shape, chip) if config.variant == "push"]

    for world in (2, 8):
        first, core = pushed(at(m=m, world=world), H200)
        assert (core["block_m"], core["block_n"]) == tile and core["num_stages"] >= 4
        assert core != first and len(pushed(at(m=m, world=world), MI300X)) == 1
    assert len(pushed(at(m=32, world=2), H200)) == 1


@given(
    st.integers(0, 1 << 30),
    st.integers(0, 12),
    st.integers(1, 14),
    st.sampled_from([2, 4, 8]),
    st.sampled_from("km"),
    st.sampled_from([None, *CHIPS]),
)
def test_a_config_is_judged_for_many_shapes_as_for_one(
    seed: int, m: int, n: int, world: int, shard: str, chip: str | None
) -> None:
    """Where rules that do not look at the shape are asked once, the sentence stays that of the
    first broken rule, but for those."""
    on, pick = CHIPS.get(chip or ""), Random(seed)
    shape = AllGatherGemm(2**m * world, 2**n, 1056 * world, world, shard=shard)
    for variant, choices in SPACE.variants.items():
        config = Config(variant, **{choice.name: pick.choice(choice.values) for choice in choices})
        assert SPACE.judge(config, on)(shape) == SPACE.why_invalid(shape, config, on)


def test_the_paper_set_has_configs_on_every_chip() -> None:
    for chip in CHIPS.values():
        for shape in paper()[::6]:
            found = {one for one in SPACE.variants if any(SPACE.configs(shape, chip, (one,)))}
            assert found | BY_COPIES == set(SPACE.variants)
            assert (found >= BY_COPIES) == (shape.m >= 512), (shape, found & BY_COPIES)


def test_the_digest_follows_the_values() -> None:
    changed = dict(SPACE.variants) | {"bsp": (Choice("form", ("gather",), "one", "gather"),)}
    assert len(SPACE.digest()) == 12
    assert replace(SPACE, variants=changed).digest() != SPACE.digest()
    assert replace(SPACE, rules=()).digest() == SPACE.digest()


def test_a_rule_without_variants_applies_to_all() -> None:
    rule = Rule("x", lambda s, c, chip: True)
    assert rule.applies("bsp") and not replace(rule, variants=FUSED).applies("bsp")


def test_operations_are_listed() -> None:
    found = operation("all_gather_gemm")
    assert found.space is SPACE and found.shape is AllGatherGemm
    with pytest.raises(ValueError, match=f"'softmax'; the operations are {', '.join(OPS)}"):
        operation("softmax")


@pytest.mark.parametrize("op", ["gemm_all_reduce", "merge_attention"])
def test_words_are_for_one_die(op: str) -> None:
    space, shape = operation(op).space, operation(op).shape.parse(operation(op).shape.example())
    (words,) = (one for one in space.defaults(shape, H200) if one.variant == "one_shot_ll")
    assert "one die" in (space.why_refused(shape, words, MI300X) or "")
    assert "one_shot_ll" not in {one.variant for one in space.defaults(shape, MI300X)}


def test_peers_never_set_the_flags_that_a_rank_keeps_for_itself() -> None:
    """A peer one call ahead, in `push`, would release a wait of `staged` for what this rank has not
    pulled yet."""
    pytest.importorskip("triton")
    from tftune.kernels.comm.symmetric import READY_FLAGS

    shape = AllGatherGemm(16 * READY_FLAGS.value, 64, 1024, 4)
    for variant in ("pull", "staged", "push"):
        whole, quarter = (
            SPACE.why_invalid(
                shape, Config(variant, block_n=64, rows_per_flag=16, k_per_flag=columns)
            )
            for columns in (1024, 256)
        )
        assert whole is None and (quarter is None or "that peers set" in quarter)
    beyond = AllGatherGemm(16 * READY_FLAGS.value + 1, 64, 1024, 4)
    assert SPACE.why_invalid(beyond, Config("push", block_n=64, rows_per_flag=16, k_per_flag=256))
