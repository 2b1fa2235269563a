"""The shapes and configs that the contract on real ranks goes through."""

from __future__ import annotations

import random
import re
from itertools import islice
from typing import Any

from draws import draw


def shapes_of(world: int) -> list[Any]:
    """The last has more tiles than there are SMs, so that copies, whose runs are odd there, find
    every one of them held. Two before it were refused once."""
    from tftune.kernels.all_gather_gemm import AllGatherGemm

    return [
        AllGatherGemm(1, 96, 64 * world, world),
        AllGatherGemm(7, 200, 72 * world, world, "bf16", b_layout="nk"),
        AllGatherGemm(129, 328, 37 * world, world),
        AllGatherGemm(513, 512, 1024 * world, world),
        AllGatherGemm(24 * world, 328, 520, world, shard="m"),
        AllGatherGemm(65 * world, 256, 1024, world, "bf16", "m", "nk"),
        AllGatherGemm(128 * world, 512, 1024, world, shard="m"),
        AllGatherGemm(24 * world, 200, 523, world, shard="m"),  # K that the ranks need not share
        AllGatherGemm(256, 331, 256 * world, world, "bf16", b_layout="nk"),  # any N by descriptor
        AllGatherGemm(1025, 3584, 517 * world, world),
    ]


def cases_of(world: int) -> list[tuple[Any, Any]]:
    """Every variant at every shape, with its default config and some random ones; and more parts of
    tiles than run at once."""
    from tftune.db.target import detect
    from tftune.kernels.all_gather_gemm.space import SPACE
    from tftune.kernels.core.space import Config

    pick, chip = random.Random(0), detect().chip
    cases = []
    for shape in shapes_of(world):
        cases += [(shape, config) for config in SPACE.defaults(shape, chip)]
        for variant in ("pull", "staged", "push"):
            drawn = list(islice(draw(SPACE, shape, chip, variant, 200_000), 8))
            cases += [(shape, config) for config in pick.sample(drawn, 2)]
        cases += [(shape, config) for config in small_copies(shape)]
    rounds = dict(block_m=64, block_n=64, split_k=4, num_warps=4, rows_per_flag=64, k_per_flag=256)
    cases += [
        (shapes_of(world)[3], SPACE.complete(Config(variant, **rounds)))
        for variant in ("pull", "staged", "push")
    ]
    return cases + other_operations(world)


def other_operations(world: int) -> list[tuple[Any, Any]]:
    """The other operations on the same workspace: few rows and many, whole tiles and tails, both
    outputs and layouts; ragged, paged, and with a norm."""
    from tftune.kernels.all_reduce import AllReduce
    from tftune.kernels.core.space import Config
    from tftune.kernels.flash_decode import FlashDecode
    from tftune.kernels.merge_attention import MergeAttention

    decodes = [
        FlashDecode(1, 64, 8, 128, 4096, world),
        FlashDecode(4, 96, 12, 128, 1000, world, "bf16"),
        FlashDecode(3, 8 * world, 2 * world, 64, 528, world, output="heads", page_size=16),
    ]
    reductions = [
        AllReduce(1, 8192, world),
        AllReduce(40, 7168, world, "fp16"),
        AllReduce(200, 4096, world),
        AllReduce(3, 2880, world, norm="rms"),
        AllReduce(65, 8192, world, "bf16", "rms"),
        AllReduce(24, 16_384, world, "bf16", "rms"),
    ]
    merges = [
        MergeAttention(1, 8 * world, 128, world),
        MergeAttention(24, 5 * world, 64, world, "fp16", base="2"),
        MergeAttention(7, 24, 256, world, "bf16", "all"),
        MergeAttention(200, 8 * world, 128, world),
    ]
    found = [*defaults_and_draws(decodes), *defaults_and_draws(reductions)]
    for m, n, parts in ((1000, 4096, 2), (777, 8192, 1)):
        roles = Config("two_shot", roles=2, rows_per_flag=16, parts=parts, programs=64, num_warps=8)
        found.append((AllReduce(m, n, world, norm="rms"), roles))
    return [*found, *gemm_reductions(world), *defaults_and_draws(merges)]


def defaults_and_draws(shapes: list[Any]) -> list[tuple[Any, Any]]:
    """Every variant of one operation with its default config and a random one."""
    from tftune.db.target import detect
    from tftune.kernels.core.registry import operation

    pick, chip, space = random.Random(0), detect().chip, operation(shapes[0].op).space
    cases = [(shape, config) for shape in shapes for config in space.defaults(shape, chip)]
    for shape in shapes:
        for name in space.variants:
            # More programs on a unit than its registers hold are refused when prepared.
            known = [
                config
                for config in space.configs(shape, chip, (name,))
                if config.to_dict().get("programs_per_unit", 1) == 1
            ]
            cases += [(shape, pick.choice(known))] if known else []
    return cases


def gemm_reductions(world: int) -> list[tuple[Any, Any]]:
    """Both GEMM reductions on the same workspace: every variant with its default config and a
    random one; few rows and many, whole tiles and tails, both layouts of B."""
    from tftune.db.target import detect
    from tftune.kernels.core.registry import operation

    pick, chip, cases = random.Random(0), detect().chip, []
    for name in ("gemm_reduce_scatter", "gemm_all_reduce"):
        op = operation(name)
        for words in (
            "m={8},n=1024,k={512}",
            "m={56},n=328,k={200},b_layout=kn",
            "m={512},n=512,k={256},dtype=fp16",
        ):
            shape = op.shape.parse(scaled(words, world) + f",world={world}")
            defaults = op.space.defaults(shape, chip)
            cases += [(shape, config) for config in defaults]
            for variant in dict.fromkeys(config.variant for config in defaults):
                drawn = list(draw(op.space, shape, chip, variant, 2000))
                cases.append((shape, pick.choice(drawn)))
    return cases


def scaled(words: str, world: int) -> str:
    """The words with each number in braces times the ranks.

    >>> scaled("m={8},n=72", 2)
    'm=16,n=72'
    """
    return re.sub(r"{(\d+)}", lambda found: str(int(found[1]) * world), words)


def small_copies(shape: Any) -> list[Any]:
    """The copy engine's variants with copies as small as these shapes have them, which a chip's
    rules refuse; several of each shard."""
    from tftune.kernels.all_gather_gemm.space import SPACE
    from tftune.kernels.core.space import Config

    defaults = [
        config
        for config in SPACE.defaults(shape, None)
        if config.variant in ("push_ce", "bsp_chunked")
    ]
    finer = [
        {"rows_per_flag": 64, "copy_streams": 3 if shape.world > 3 else 1},
        {"first_rows": 16, "growth": 7},
    ]
    configs = [
        Config.from_dict(config.to_dict() | knobs)
        for config, knobs in zip(defaults, finer, strict=True)
    ]
    return defaults + [config for config in configs if SPACE.why_invalid(shape, config) is None]
