"""flash_decode without a GPU: its shape, its space, its sets, what its host function refuses, and
the model's opinion of it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from lone import lone

from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.space import MAILBOX_BYTES, Config
from tftune.kernels.flash_decode import FlashDecode, rules
from tftune.kernels.flash_decode.features import FEATURES
from tftune.kernels.flash_decode.rules import mailbox_bytes
from tftune.kernels.flash_decode.space import SPACE
from tftune.kernels.flash_decode.workloads import CALLS, MODELS, SHAPE_SETS
from tftune.models.timeline.simulator import predict

TARGET = FlashDecode(1, 64, 8, 128, 8192, 8)
LONG = FlashDecode(1, 96, 12, 128, 262_144, 8)


def test_a_shape_reads_as_it_is_written() -> None:
    shape = FlashDecode(4, 96, 12, 128, 1024, 8, "bf16", "heads", 16)
    assert FlashDecode.parse(str(shape)) == shape and str(TARGET).endswith("world=8")
    assert FlashDecode.parse(f"{TARGET},page_size=0") == TARGET
    assert FlashDecode(16, 96, 12, 128, 256 << 10, 8) in SHAPE_SETS["paper"]()


def test_bytes_are_those_of_the_tensors() -> None:
    assert TARGET.cache_bytes == 2 * 8192 * 8 * 128 * 2
    rows = FlashDecode(3, 12, 12, 64, 8, 4, output="heads")
    assert rows.own_heads == 3 and rows.message_bytes == 4 * (9 * 64 + 12)


@pytest.mark.parametrize("chip", [H200, MI300X, None])
def test_defaults_are_possible_for_every_shape_of_the_sets_and_small_ones(
    chip: Chip | None,
) -> None:
    shapes = [
        FlashDecode(3, group * 2, 2, dim, length, 4)
        for dim, group, length in product((64, 256), (1, 12, 16), (1, 7, 100))
    ]
    for make, world in product(SHAPE_SETS.values(), (2, 8)):
        shapes += [replace(s, output="heads") for s in make(world=world) if s.q_heads % world == 0]
    for shape in shapes:
        defaults = SPACE.defaults(shape, chip)
        words = chip is not MI300X and mailbox_bytes(shape) <= MAILBOX_BYTES
        variants = set(SPACE.variants) - (set() if words else {"persistent_ll"})
        assert {config.variant for config in defaults} == variants
        assert {SPACE.why_invalid(shape, one, chip) for one in defaults} == {None}, shape


def test_defaults_fill_the_chip() -> None:
    """12 KV heads in 11 splits are as many programs as H200 has units; a batch of 192 sequences and
    heads needs few splits."""
    chosen = {
        batch: SPACE.defaults(FlashDecode(batch, 96, 12, 128, 8192, 8), H200)[-1]["kv_splits"]
        for batch in (1, 16)
    }
    assert chosen[1] * 12 == H200.units and chosen[16] <= 4


def test_bsp_has_the_splits_and_pipelines_that_the_others_start_from() -> None:
    defaults = SPACE.defaults(TARGET, H200)
    forms = [config for config in defaults if config.variant == "bsp"]
    assert len(forms) > 4 and dict(forms[0].knobs).items() <= dict(defaults[-1].knobs).items()


@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_models_are_called_as_decode_context_parallelism_calls_them(world: int) -> None:
    """Heads from the public configs, batches from 1 to 256 with odd ones, no length a power of two
    but where a context is one; a model whose heads the ranks cannot share is left out."""
    shapes = SHAPE_SETS["engine"](world=world)
    assert {(s.dtype, s.output, s.page_size) for s in shapes} == {("bf16", "heads", 16)}
    heads = {(q, kv) for q, kv in MODELS.values() if q % world == 0}
    assert {(s.q_heads, s.kv_heads) for s in shapes} == heads
    assert len(set(shapes)) == len(shapes) == len(heads) * len(CALLS)
    assert {s.batch for s in shapes} == {1, 3, 24, 96, 256}
    assert all(0 <= s.kv_len * world - tokens < 16 * world
               for s, (_, tokens) in zip(shapes, CALLS * len(heads), strict=True))  # fmt: skip
    bare = SHAPE_SETS["engine"](world=world, dtype="fp16", output="all", page_size=0)
    assert {(s.dtype, s.output, s.page_size) for s in bare} == {("fp16", "all", 0)}
    assert len({(s.q_heads, s.kv_heads) for s in bare}) == len(MODELS)


@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_layouts_are_every_head_dim_output_and_page_size_once(world: int) -> None:
    shapes = SHAPE_SETS["layouts"](world=world)
    kinds = [(s.head_dim, s.output, s.page_size) for s in shapes]
    assert len(set(kinds)) == len(kinds) == 18
    assert all(s.batch % 2 for s in shapes)
    assert not set(shapes) & set(SHAPE_SETS["engine"](world=world))


def test_features_tell_every_pair_of_shapes_apart() -> None:
    shapes = [s for make in SHAPE_SETS.values() for s in make()]
    found = {tuple(read(shape) for _, read in FEATURES.values()) for shape in shapes}
    assert len(found) == len(set(shapes))


@pytest.mark.parametrize("chip", [H200, MI300X])
@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_the_model_orders_the_ladder_where_the_cache_is_short_and_not_where_it_is_long(
    chip: Chip, mode: str
) -> None:
    def best(shape: FlashDecode, variant: str) -> float:
        found = [config for config in SPACE.defaults(shape, chip) if config.variant == variant]
        return min(predict(shape, config, mode, chip) for config in found)

    ladder = [best(TARGET, name) for name in ("bsp", "no_wait", "fused", "persistent")]
    assert ladder == sorted(ladder, reverse=True) and ladder[0] > 1.4 * ladder[-1]
    assert best(LONG, "bsp") < 1.3 * best(LONG, "persistent")
    assert best(LONG, "persistent") > LONG.cache_bytes / chip.rates.hbm_bytes_per_us


@pytest.mark.parametrize(("heads_per_flag", "flags"), [(0, 1), (1, 32), (2, 32), (4, 16), (64, 1)])
def test_flags_of_a_source_are_counted_whichever_rule_is_asked_first(
    heads_per_flag: int, flags: int
) -> None:
    """TARGET has 32 pieces of 2 heads; a flag covers one piece at least."""
    knobs = {"heads_per_flag": heads_per_flag, "heads_per_program": 2}
    assert rules._flags(TARGET, Config("persistent", **knobs)) == flags
    (rule,) = (rule for rule in SPACE.rules if "flags that peers set" in rule.sentence)
    assert rule.holds(TARGET, knobs, None)


def operands(**changes: Any) -> tuple[Any, ...]:
    import torch

    sizes = dict(q=(2, 8, 64), k=(2, 32, 2, 64), v=(2, 32, 2, 64)) | {
        name: size for name, size in changes.items() if name in "qkv"
    }
    q, k, v = (
        torch.zeros(sizes[name], dtype=changes.get("dtype", torch.float16)) for name in "qkv"
    )
    counted = changes.get("counted", torch.int32)
    return q, k, v, torch.zeros(changes.get("lengths", 2), dtype=counted)


def refused(*arguments: Any, **options: Any) -> str:
    from tftune.ops import flash_decode

    with pytest.raises(ValueError) as caught:
        flash_decode(*arguments, lone(), **options)
    return str(caught.value)


def test_operands_that_do_not_fit_are_refused() -> None:
    import torch

    assert "q is torch.float32" in refused(*operands(dtype=torch.float32))
    assert "v is [2, 16, 2, 64] but must be [2, 32, 2, 64]" in refused(*operands(v=(2, 16, 2, 64)))
    assert "k is [3, 32, 2, 64] but must be [2, 32, 2, 64]" in refused(*operands(k=(3, 32, 2, 64)))
    assert "lengths is [3] but must be [2]" in refused(*operands(lengths=3))
    assert "lengths is torch.int64" in refused(*operands(counted=torch.int64))
    assert "q and k must have 3 and 4 dimensions, not 3 and 3" in refused(*operands(k=(2, 32, 128)))
    table = torch.zeros(3, 4, dtype=torch.int32)
    assert "table is [3, 4] but must be [2, 4]" in refused(*operands(), table=table)
    for flat in (table[0, 0], table[0]):
        assert f"table must have 2 dimensions, not {flat.dim()}" in refused(*operands(), table=flat)
    assert "q_heads=7 must be divisible by world=2" in refused(
        *operands(q=(2, 7, 64), k=(2, 32, 7, 64), v=(2, 32, 7, 64)), output="heads"
    )


@pytest.mark.parametrize(("registers", "shared", "programs", "refusal"), [
    (170, 8192, 3 * 304, "registers of 3 programs"), (168, 8192, 3 * 304, None),
    (258, 8192, 2 * 304, "registers of 2 programs"),
    (256, 8192, 2 * 304, None), (300, 8192, 304, None),
    (128, 40_960, 2 * 304, "shared memory of 2 programs"), (128, 40_960, 304, None),
])  # fmt: skip
def test_programs_that_an_mi300x_cannot_hold_at_once_are_refused(
    registers: int, shared: int, programs: int, refusal: str | None
) -> None:
    """The programs have 4 waves each, on 304 CUs."""
    from triton.runtime.errors import OutOfResources

    from tftune.kernels.runtime.residence import check_residence

    compiled = SimpleNamespace(n_regs=registers, metadata=SimpleNamespace(shared=shared))
    with pytest.raises(OutOfResources, match=refusal) if refusal else nullcontext():
        check_residence(compiled, programs, 4, lone(8, arch="hip", units=304))
