"""Ranks that take different forms of one config: what `models.forms` and a rank's own facts rely
on. Every knob of `space.LOCAL_KNOBS` differs between ranks; the rest of the config is the same."""

from __future__ import annotations

import random

import pytest
from contract import Call, Case, scenario, wrong_calls

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.reference import RAGGED_SEED
from tftune.kernels.flash_decode.space import LOCAL_KNOBS, SPACE

VARIANTS = tuple(SPACE.variants)
SHAPES = (
    (3, 16, 4, 64, 96, "bf16", "all", 0),
    (2, 12, 12, 64, 128, "fp16", "heads", 16),
    (1, 24, 12, 128, 64, "bf16", "heads", 64),
)
"""Batch, heads, KV heads, head_dim, kv_len, dtype, output and page size."""


def local(shape: FlashDecode, variant: str, source: random.Random) -> list[dict[str, int]]:
    """The values of the local knobs that the rules allow, in random order."""
    every = [
        {"kv_splits": splits, "block_n": block}
        for splits in (1, 2, 4)
        for block in (32, 64, 128)
        if SPACE.why_invalid(shape, Config(variant, kv_splits=splits, block_n=block)) is None
    ]
    source.shuffle(every)
    return every


def cases(world: int, rank: int, seed: int, whole: bool = True) -> list[Case]:
    """What one rank calls: of every shape and variant three times, each rank with values of its
    own; not whole: one shape, once."""
    source, found = random.Random(seed), []
    for words in SHAPES[seed:] if whole else SHAPES[seed : seed + 1]:
        shape = FlashDecode(*words[:5], world, *words[5:])
        for variant in VARIANTS:
            every = local(shape, variant, source)
            for call in range(3 if whole else 1):
                found.append((shape, Config(variant, **every[(call + rank) % len(every)])))
    return found


def contract(workspace: Workspace, seed: int, whole: bool) -> dict[str, list[Call]]:
    found = cases(workspace.world, workspace.rank, seed, whole)
    return {"forms": scenario(workspace, found, cycle=(0, RAGGED_SEED, 2))}


def test_ranks_do_differ_in_every_local_knob() -> None:
    pairs = list(zip(cases(2, 0, 0), cases(2, 1, 0), strict=True))
    assert {mine[1].variant for mine, _ in pairs} == set(VARIANTS)
    for knob in LOCAL_KNOBS:
        unlike = {mine.variant for (_, mine), (_, other) in pairs if mine[knob] != other[knob]}
        assert unlike == set(VARIANTS), knob
    for (_, mine), (_, other) in pairs:
        assert mine.variant == other.variant
        assert dict(mine.knobs).keys() - LOCAL_KNOBS.keys() == set()


@pytest.mark.parametrize(
    ("world", "seed", "whole"),
    [
        (2, 0, False),
        pytest.param(2, 0, True, marks=pytest.mark.thorough),
        pytest.param(3, 1, False, marks=pytest.mark.thorough),
    ],
    ids=["2 ranks, one shape", "2 ranks, all", "3 ranks"],
)
def test_every_rank_may_take_a_form_of_its_own(world: int, seed: int, whole: bool) -> None:
    ran = emulated.run(world, contract, seed, whole, timeout_s=900)
    assert wrong_calls(ran) == []
    assert len(ran[0]["forms"]) == len(VARIANTS) * (3 * len(SHAPES) if whole else 1)
