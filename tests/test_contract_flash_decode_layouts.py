"""The contract of flash_decode over what engines call: both dtypes, pages of 16 and 64 tokens, both
outputs, every head_dim, groups of 1 to 16, odd batches, lengths from 0.

Shapes are drawn at random with a seed: every mix of dtype, pages, output and head_dim once, all
else as it falls. A wrong call is reported with its shape, config and seed. Then mutants of what
only pages, own heads and empty sequences show.
"""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from contract import Call, Case, scenario, wrong_calls
from refusal import refuse, wrong

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import HEAD_DIMS, FlashDecode
from tftune.kernels.flash_decode.reference import RAGGED_SEED
from tftune.kernels.flash_decode.space import SPACE

VARIANTS = tuple(SPACE.variants)
GROUPS = tuple(range(1, 17))
BATCHES, OWN_KV_HEADS = (1, 3, 5), (1, 2)
PAGES = 3
"""The most pages of one sequence on one rank."""


def drawn(world: int, seed: int) -> list[FlashDecode]:
    """A shape of every mix of dtype, page size, output and head_dim, small enough to be emulated;
    together they have all groups."""
    source, found = random.Random(seed), []
    groups = random.Random(seed).sample(GROUPS, len(GROUPS))
    mixes = product(("fp16", "bf16"), (0, 16, 64), ("all", "heads"), HEAD_DIMS)
    for number, (dtype, page, output, head_dim) in enumerate(mixes):
        group = groups[number % len(groups)]
        kv_heads = source.choice(OWN_KV_HEADS)
        if output == "heads" and kv_heads * group % world:
            kv_heads *= world
        pages = source.randint(1, 1 if page == 64 else PAGES)
        kv_len = page * pages if page else source.choice((1, 17, 33))
        batch = source.choice(BATCHES)
        found.append(
            FlashDecode(
                batch, kv_heads * group, kv_heads, head_dim, kv_len, world, dtype, output, page
            )
        )
    return found


def configured(shape: FlashDecode, variant: str, source: random.Random) -> Config:
    """A random config that the rules allow. 16 tokens or fewer have one split."""
    choices = {choice.name: choice.values for choice in SPACE.choices(variant)}
    while True:
        knobs = {name: source.choice(values) for name, values in choices.items()}
        knobs |= {"kv_splits": source.choice((1, 2, 4)), "block_n": source.choice((32, 64))}
        config = Config(variant, **knobs)
        if SPACE.why_invalid(shape, config, None) is None:
            return config


def cases(world: int, seed: int, whole: bool) -> list[Case]:
    """Every drawn shape with every variant, or with one variant in turn."""
    source = random.Random(seed)
    return [
        (shape, configured(shape, variant, source))
        for number, shape in enumerate(drawn(world, seed))
        for variant in (VARIANTS if whole else (VARIANTS[number % len(VARIANTS)],))
    ]


def contract(workspace: Workspace, seed: int, whole: bool, step: int) -> dict[str, list[Call]]:
    """Every so many cases on ragged lengths, then, of the same config, on full ones."""
    found = cases(workspace.world, seed, whole)[::step]
    return {"drawn": scenario(workspace, found, cycle=(RAGGED_SEED, 0, 2, RAGGED_SEED))}


def test_draws_cover_what_engines_call() -> None:
    """Which mixes, groups, batches and lengths there are, of each of the seeds below."""
    for world, seed in ((2, 0), (3, 1), (4, 2)):
        shapes = drawn(world, seed)
        mixes = {(s.dtype, s.page_size, s.output, s.head_dim) for s in shapes}
        assert len(mixes) == 36 and {s.group for s in shapes} == set(GROUPS)
        assert {s.batch for s in shapes} == set(BATCHES)
        assert {config.variant for _, config in cases(world, seed, False)} == set(VARIANTS)


@pytest.mark.parametrize(
    ("world", "seed", "whole", "step"),
    [
        (2, 0, False, 5),
        pytest.param(2, 0, True, 1, marks=pytest.mark.thorough),
        pytest.param(3, 1, False, 1, marks=pytest.mark.thorough),
        pytest.param(4, 2, False, 1, marks=pytest.mark.thorough),
    ],
    ids=["2 ranks, some", "2 ranks, every variant", "3 ranks", "4 ranks"],
)
def test_every_drawn_call_is_right(world: int, seed: int, whole: bool, step: int) -> None:
    assert wrong_calls(emulated.run(world, contract, seed, whole, step, timeout_s=1800)) == []


TABLE = "batch_index, tl.int64) * (kv_len // PAGE)"
OWNER = "heads // OWN == ranks[:, None]"
EMPTY = 'base = tl.where(higher == float("-inf"), 0.0, higher)'
MUTANTS = {
    "the next sequence's pages": wrong(
        ("attention", TABLE, TABLE.replace("batch_index", "batch_index // 2"))
    ),
    "the page before": wrong(
        ("attention", "+ tokens // PAGE", "+ tl.maximum(tokens // PAGE - 1, 0)")
    ),
    "the token before in its page": wrong(
        ("attention", "PAGE + tokens % PAGE", "PAGE + tl.maximum(tokens % PAGE - 1, 0)")
    ),
    "pages past the length": wrong(
        ("attention", "minimum(begin + each, length)", "minimum(begin + each, kv_len)")
    ),
    "another owner's heads": wrong(
        ("attention", OWNER, "(heads // OWN + 1) % peers.WORLD == ranks[:, None]")
    ),
    "no token at all": wrong(("attention", EMPTY, "base = higher")),
}


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """The second of two calls is ragged, with sequences of no token."""
    shape = FlashDecode(3, 9, 3, 64, 48, world, "bf16", "heads", 16)
    knobs = dict(kv_splits=2, block_n=32, heads_per_program=1, heads_per_flag=1)
    return {"small": [(shape, Config(variant, **knobs))] * 2}


@pytest.mark.thorough
def test_mutants_of_pages_owners_and_empty_sequences_are_refused(tmp_path: Path) -> None:
    refuse(tmp_path, {"persistent": MUTANTS}, calls_of_a_trial, ("small",))
