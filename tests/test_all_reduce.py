"""all_reduce beside its contract: its sets and space, its host, and the whole way on the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from draws import draw
from fingerprint import host_trace
from lone import lone

from tftune import ops
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.all_reduce.limit import limit, part
from tftune.kernels.all_reduce.space import SPACE, TORCH, payload_bytes, shares
from tftune.kernels.all_reduce.workloads import SHAPE_SETS
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.space import FLAGS_PER_SOURCE, MAILBOX_BYTES, Config
from tftune.models.selection import Selection
from tftune.models.timeline.simulator import predict

LIBRARIES = ["library", *TORCH]


def every_shape(world: int) -> list[AllReduce]:
    return [
        shape
        for make in SHAPE_SETS.values()
        for norm in ("none", "rms")
        for shape in make(world=world, norm=norm)
    ]


def test_sets_hold_messages_of_4_kb_to_64_mb() -> None:
    sizes = [shape.message_bytes for shape in SHAPE_SETS["engine"]()]
    assert min(sizes) == 8 << 10 and max(sizes) == 64 << 20
    assert AllReduce(4, 32_768, 2).message_bytes == 4 * 32_768 * 2, "longer than a norm takes"
    assert {shape.n for shape in SHAPE_SETS["engine"]()} == {4096, 7168, 8192, 16_384}
    assert all(shape.normed and shape.m <= 512 for shape in SHAPE_SETS["decode"]())


@pytest.mark.parametrize("chip", [H200, MI300X], ids=lambda chip: chip.name)
@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_defaults_are_possible_and_of_every_variant(world: int, chip: Chip) -> None:
    """two_shot always; in one shot what fits the inbox; words what fits the mailbox of one die."""
    for shape in every_shape(world):
        found = SPACE.defaults(shape, chip)
        assert [SPACE.why_invalid(shape, config, chip) for config in found] == [None] * len(found)
        variants = [config.variant for config in found]
        assert variants[0] == "bsp" and "two_shot" in variants
        inbox = world * shape.message_bytes
        assert ("one_shot" in variants) == (world <= 2 or inbox <= 32 << 20)
        words = inbox if chip.can.coherent_stores else 2 * MAILBOX_BYTES
        assert ("one_shot_ll" in variants) == (2 * words <= MAILBOX_BYTES), shape
        assert ("one_shot_lamport" in variants) == (words <= MAILBOX_BYTES), shape


def test_many_rows_that_are_normalised_have_a_default_with_two_roles() -> None:
    """From 8 MB on, with at most 64 KB a flag; where flags suffice."""
    for chip in (H200, MI300X):
        for world, m, n, norm, rows in (
            (2, 1024, 4096, "rms", 4), (2, 8192, 4096, "rms", 8), (8, 8192, 8192, "rms", 4),
            (2, 1023, 4096, "rms", 0), (2, 8192, 4096, "none", 0), (2, 131_072, 16_384, "rms", 0),
        ):  # fmt: skip
            found = SPACE.defaults(shape := AllReduce(m, n, world, norm=norm), chip)
            assert [SPACE.why_invalid(shape, config, chip) for config in found] == [None] * len(
                found
            )
            roles = [config for config in found if config.knobs and ("roles", 2) in config.knobs]
            assert len(roles) == (rows > 0) and all(c["rows_per_flag"] <= rows for c in roles)


def test_what_a_config_stores_lies_within_its_generation_and_its_bank() -> None:
    """The pieces of all ranks in the inbox of two_shot, before its results; and its flags."""
    for world in (1, 2, 3, 8):
        for shape in every_shape(world)[::5]:
            for config in draw(SPACE, shape, H200, "two_shot", 200):
                piece = config["rows_per_flag"] * shape.n // config["parts"] * 2
                inbox = world * shares(shape, config) * piece
                assert inbox <= 2 * shape.message_bytes
                assert inbox + shape.message_bytes <= payload_bytes(shape)
                assert 2 * shares(shape, config) <= FLAGS_PER_SOURCE // 2
            if next(SPACE.configs(shape, None, ("one_shot",)), None) is not None:
                assert world * shape.message_bytes <= payload_bytes(shape)


@pytest.mark.parametrize(
    ("shape", "form", "chip", "why"),
    [
        (AllReduce(8, 4096, 1), "one_shot", H200, "one rank has nothing"),
        (AllReduce(8, 4096, 8, "fp16"), "two_shot", H200, "take bf16, not fp16"),
        (AllReduce(8, 4096, 3), "two_shot", H200, "2, 4 or 8 ranks"),
        (AllReduce(8, 4096, 8), "two_shot", MI300X, "made for NVIDIA"),
        (AllReduce(8192, 4096, 8), "one_shot", H200, "up to 4 MB"),
    ],
)
def test_a_form_that_torch_lacks_is_refused(
    shape: AllReduce, form: str, chip: Chip, why: str
) -> None:
    assert why in (SPACE.why_invalid(shape, Config("bsp", form=form), chip) or "")
    assert Config("bsp", form=form) not in SPACE.defaults(shape, chip)


def test_every_form_is_held_against_the_fused_variants() -> None:
    forms = [c["form"] for c in SPACE.defaults(AllReduce(8, 4096, 8), H200) if c.variant == "bsp"]
    assert forms == LIBRARIES
    assert SPACE.fallbacks(AllReduce(8, 4096, 8))[0]["form"] == "library"


def test_the_library_sums_once_and_the_norm_follows() -> None:
    shape = AllReduce(64, 8192, 8, norm="rms")
    kinds = {
        form: [line.split()[0] for line in host_trace(shape, Config("bsp", form=form), "sm_90")]
        for form in LIBRARIES
    }
    call = {
        "library": ["nccl", "launch"],
        "one_shot": ["symm_mem.one_shot_all_reduce_copy_out.default", "launch"],
        "two_shot": ["aten.copy_.default", "symm_mem.two_shot_all_reduce_out.default", "launch"],
    }
    made = {"library": []} | {form: ["symmetric"] for form in TORCH}
    assert kinds == {form: made[form] + call[form] * 2 for form in LIBRARIES}
    alone = host_trace(replace(shape, world=1), Config("bsp"), "sm_90")
    assert [line.split()[0] for line in alone] == ["launch"] * 2


def test_rates_bound_where_they_should() -> None:
    """64 MB are sent 2 * 7/8 times; on one rank x is read and written."""
    large = AllReduce(4096, 8192, 8)
    found = limit(large, H200)
    assert found.bound == "links"
    assert found.links == pytest.approx(7 / 4 * (64 << 20) / 309e3)
    normed = limit(replace(large, norm="rms"), H200)
    assert normed.memory == pytest.approx((4 * (64 << 20) + 16_384) / 4.25e6)
    assert part(large, H200) == "x_above_256_kb"
    assert part(AllReduce(16, 8192, 8), H200) == "x_to_256_kb"


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_the_model_is_above_the_limit_and_grows_with_the_rows(mode: str) -> None:
    for world in (2, 8):
        for variant in SPACE.variants:
            times = []
            for m in (1, 8, 512, 8192):
                shape = AllReduce(m, 4096, world, norm="rms")
                found = [c for c in SPACE.defaults(shape, H200) if c.variant == variant]
                if found:
                    times.append(predict(shape, found[0], mode, H200))
                    assert times[-1] >= 0.99 * limit(shape, H200).us, (shape, found[0])
            assert times == sorted(times) and len(times) >= 2


X, WEIGHT = torch.zeros(4, 64, dtype=torch.bfloat16), torch.ones(64).bfloat16()
NORMED = dict(residual=X, weight=WEIGHT)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (dict(x=X[:, :60].contiguous()), "n=60 must be a multiple of 8"),
        (dict(x=X.float()), "x is torch.float32"),
        (dict(x=X.view(2, 2, 64)), "x must have 2 dimensions, not 3"),
        (dict(residual=X), "residual and weight belong together"),
        (NORMED | dict(residual=X[:2]), r"residual is \[2, 64\] but must be \[4, 64\]"),
        (NORMED | dict(weight=WEIGHT.half()), "weight is torch.float16"),
        (dict(x=X.t()), "n=4 must be a multiple of 8"),
        (dict(out=X.new_empty(4, 32)), r"out is \[4, 32\] but must be \[4, 64\]"),
        (NORMED | dict(out=X.clone()), r"out is \[4, 64\] but must be \[2, 4, 64\]"),
        (NORMED | dict(eps=-1e-5), "eps=-1e-05 must be a finite number of at least 0"),
    ],
)
def test_operands_that_do_not_fit_are_named(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], sentence: str
) -> None:
    told = Selection(Config("one_shot", programs=8), "fallback", "told")
    monkeypatch.setattr("tftune.select_kernel", lambda *_: told)
    with pytest.raises(ValueError, match=sentence):
        ops.all_reduce(**{"x": X} | given, workspace=lone(1))
