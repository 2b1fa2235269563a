"""What may vary in all_gather_gemm: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice, product
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.rules import (
    REGISTERED,
    RULES,
    copy_bytes,
    parts,
    steps,
    tiles,
    worth_registering,
)
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import BLOCKS, COPY_BYTES, LOADS, PIPELINE, STREAMS
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Choice, Config, Space

_TILE = (
    *BLOCKS,
    Choice(
        "split_k",
        (1, 2, 4, 8),
        "parts of K that programs compute side by side and add up: more programs where tiles are "
        "few",
        1,
    ),
    *PIPELINE,
)
_CDNA = (
    Choice(
        "xcds",
        (1, 8),
        "dies that programs are dealt to in turn; 8 gives each die of an MI300X neighbouring tiles",
        1,
        "several_dies",
    ),
    Choice(
        "waves_per_eu",
        (0, 2),
        "waves that registers must leave room for on each SIMD; 0 leaves it to the compiler",
        0,
        "occupancy_hint",
    ),
)
_SCHEDULE = Choice(
    "schedule",
    ("static", "dynamic"),
    "tiles by turn; or each as it is claimed, which lets communicating programs compute",
    "static",
)
_EXCHANGE = (
    _SCHEDULE,
    Choice("comm_programs", (8, 16, 32, 64), "programs that move data; the others compute", 16),
    Choice("rows_per_flag", (16, 64, 128, 512), "rows of A that one flag covers", 128),
    Choice("k_per_flag", (256, 512, 1024, 8192), "columns of A that one flag covers", 1024),
)
_ORDER = Choice(
    "order",
    ("chunk", "column", "group"),
    "what is sent first: a chunk to all peers; the first columns of all rows; or what the next "
    "peer needs of a group of tiles",
    "chunk",
)
_FORM = Choice(
    "form",
    (
        "gather_copy",
        "gather_copy_registered",
        "local_transpose",
        "local_transpose_registered",
        "gather_registered",
        "gather",
    ),
    "how the library builds the gathered A: gather then copy into place; transpose the shard, "
    "then gather in place; only gather; "
    "registered: it knows that memory beforehand, and copies straight into it (NCCL)",
    "gather_copy",
)
_STREAMS = replace(STREAMS, values=(1, 3))
_COPY_ROWS = (16, 64, 256, 512, 1024, 2048, 8192)
_FIRST_ROWS = (16, 64, 128, 256, 512, 1024, 2048, 8192)
_COPIES = (
    _SCHEDULE,
    Choice("comm_programs", (0,), "none: copy engines move data, and all programs compute", 0),
    Choice("rows_per_flag", _COPY_ROWS, "rows of A that one copy moves and one flag covers", 512),
    Choice("k_per_flag", (1 << 20,), "whole rows of a shard: a copy moves few long runs", 1 << 20),
    _STREAMS,
)
_CHUNKED = (
    Choice("first_rows", _FIRST_ROWS, "rows of a shard in the chunk that comes first", 512),
    Choice(
        "growth",
        (1, 7),
        "rows of each next chunk, in those of the one before it, whose GEMM hides its flight",
        7,
    ),
    _STREAMS,
)
CHUNK_BYTES = 1 << 17
"""What one flag of push best covers on H200: of 512 KB few programs copy at once, and 32 KB are too
little for a signal."""


@lru_cache(maxsize=16)
def defaults(shape: AllGatherGemm, chip: Chip | None = None) -> tuple[Config, ...]:
    """Every BSP form of this shape, then one sound config for each other variant, after the tiles
    that published kernels use, and on Hopper another of push, with the GEMM's own fastest tile; the
    copy engine's variants only where a chip's rules let them have this shape."""
    in_place = shape.shard == "m" or shape.world == 1
    forms = ["gather"] if in_place else ["local_transpose", "gather_copy"]
    if chip is not None and worth_registering(shape, chip):
        forms += [f"{form}{REGISTERED}" for form in forms]
    # The first is what ranks fall back to, whether they know their chip or not: the same for all.
    bsp = (Config("bsp", form=form) for form in forms)
    others = ("push", "push_ce", "bsp_chunked", "staged", "pull")
    return (*bsp, *chain.from_iterable(of_variant(shape, chip, name) for name in others))


def of_variant(shape: AllGatherGemm, chip: Chip | None, variant: str) -> tuple[Config, ...]:
    """Those of the `defaults` that are of this variant, no form of BSP."""
    if variant == "bsp_chunked":
        return _default_chunks(shape, chip)
    knobs = _default_knobs(shape, chip)
    # On Hopper descriptors are never slower (docs/notebook.md).
    described = partial(_where_possible, shape, chip, loads="descriptor")
    if variant == "push_ce":
        return tuple(map(described, _default_copies(shape, chip, knobs)))
    config = Config(variant, **knobs)
    if variant == "pull":
        in_place = knobs | dict(comm_programs=8, rows_per_flag=16)
        return (Config("pull", **in_place) if shape.on_heap else config,)
    if variant == "staged":
        return (described(config),)
    order = _default_order(shape, chip, config)
    first = _where_possible(shape, chip, described(config), order=order)
    return first, *_with_core_tile(shape, chip, first)


@lru_cache(maxsize=16)
def _default_knobs(shape: AllGatherGemm, chip: Chip | None) -> dict[str, Any]:
    """What the fused variants' defaults share; nobody changes it."""
    knobs = _default_tile(shape, chip) | _default_exchange(shape)
    return knobs | {"split_k": _default_split(shape, chip, knobs)}


def likely_forms(shape: AllGatherGemm, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured, captured. Registered buffers from 4 MB on, on two ranks,
    where they take 2 to 7 % less, and along M on four, where it is 5 % more to 8 % less, 1.5 % less
    in the mean of 47 shapes (2026-11-26). Along K two ranks copy after the gather, more ranks
    transpose before it: that takes 4 to 9 % less from M = 64 on, but 35 to 44 % more at M = 2 and
    4 (H200, 2026-11-22, docs/notebook.md)."""
    forms = ["gather"] if shape.shard == "m" else ["local_transpose", "gather_copy"]
    if shape.world == 2 or shape.m in (2, 3, 4):
        forms.reverse()
    if shape.world <= (4 if shape.shard == "m" else 2) and worth_registering(shape, chip):
        forms = [*(f"{form}{REGISTERED}" for form in forms), *forms]
    return tuple(Config("bsp", form=form) for form in forms)


def _where_possible(
    shape: AllGatherGemm, chip: Chip | None, config: Config, **knobs: Any
) -> Config:
    """The config with these knobs where the shape and the chip, if it is known, allow them."""
    changed = Config(config.variant, **dict(config.knobs) | knobs)
    return changed if chip is not None and SPACE.judge(changed, chip)(shape) is None else config


def _default_order(shape: AllGatherGemm, chip: Chip | None, config: Config) -> str:
    """All tiles at once want the first columns of every row; more of them the shard of one peer
    after another, if one peer can have all bandwidth, which private links do not give."""
    if chip is None or not chip.switched:
        return "chunk"
    return "column" if shape.shard == "m" and tiles(shape, config) <= chip.units else "group"


def _default_tile(shape: AllGatherGemm, chip: Chip | None) -> dict[str, int]:
    staged = chip is not None and chip.can.stage_in_registers
    block_m = max(16, min(128, power_of_two_from(shape.m)))
    block_n = min(256 if shape.m >= 1024 else 128, max(32, power_of_two_from(shape.n)))
    return dict(
        block_m=block_m,
        block_n=block_n,
        block_k=128 if staged and shape.m <= 32 and shape.shard_columns > 64 else 64,
        group_m=8 if shape.m > block_m else 1,
        num_warps=8 if block_m * block_n >= 64 * 128 else 4,
        num_stages=2 if staged else 3 if block_n == 256 else 5 if block_m <= 32 else 4,
        xcds=8 if chip is not None and chip.several_dies else 1,
    )


_CORE_TILES = tuple(
    dict(zip(("block_m", "block_n", "block_k", "num_stages", "num_warps"), values, strict=True))
    for values in (
        (64, 64, 128, 5, 4),
        (64, 128, 128, 4, 4),
        (128, 128, 64, 5, 4),
        (128, 256, 64, 3, 8),
    )
)
"""Tiles with which the GEMM alone is fastest on an H200 at M = 64 and 128, 256, 512 and 1024
(docs/notebook.md, "The core alone")."""


def _with_core_tile(shape: AllGatherGemm, chip: Chip | None, config: Config) -> list[Config]:
    """The config with the smallest of these tiles of which all run at once, where there is one:
    small tiles leave the pipeline room. A flag of 64 rows if such a chunk has at most 128 KB and
    every communicating program gets one; else of 16, 9 to 32 % faster at M up to 1024."""
    if chip is None or not chip.can.descriptors or shape.m < 64:
        return []
    columns = min(config["k_per_flag"], shape.shard_columns)
    chunks = -(-shape.shard_rows // 64) * -(-shape.shard_columns // columns) * (shape.world - 1)
    coarse = 64 * columns * shape.element_bytes <= CHUNK_BYTES and chunks >= config["comm_programs"]
    common = dict(split_k=1, rows_per_flag=64 if coarse else 16)
    own: dict[str, Any] = dict(config.knobs)
    for tile in _CORE_TILES:
        if tiles(shape, own | tile) <= chip.units - own["comm_programs"]:
            knobs = tile | common | dict(group_m=8 if shape.m > tile["block_m"] else 1)
            if (changed := _where_possible(shape, chip, config, **knobs)) != config:
                return [changed]
    return []


def _default_exchange(shape: AllGatherGemm) -> dict[str, int | str]:
    """Fine rows where there are few, so that every communicating program has some; along K whole
    shards, or parts that split_k can take."""
    rows = 16 if shape.m <= 128 else 64
    whole = 1024 if shape.shard_columns <= 1024 or shape.shard == "m" else 8192
    if shape.shard_columns <= 256:
        whole = 256
    return dict(
        schedule="static",
        comm_programs=8 if shape.m <= 32 else 16,
        rows_per_flag=rows if rows <= max(16, power_of_two_from(shape.shard_rows)) else 16,
        k_per_flag=whole if whole <= max(256, 4 * shape.shard_columns) else 1024,
    )


def _first_possible(
    shape: AllGatherGemm, chip: Chip | None, configs: Iterable[Config]
) -> tuple[Config, ...]:
    possible = (config for config in configs if SPACE.judge(config, chip)(shape) is None)
    return tuple(islice(possible, 1))


def _default_copies(
    shape: AllGatherGemm, chip: Chip | None, knobs: dict[str, Any]
) -> tuple[Config, ...]:
    """push's tile, and the fewest rows for each flag of which a copy moves a megabyte; or the most
    that there are."""
    of_tile = {choice.name: knobs[choice.name] for choice in _TILE if choice.name != "split_k"}
    large = [value for value in _COPY_ROWS if copy_bytes(shape, value) >= 4 * COPY_BYTES]
    configs = (
        Config("push_ce", **of_tile, rows_per_flag=value)
        for value in (*large, *reversed(_COPY_ROWS))
    )
    return _first_possible(shape, chip, configs)


def _default_chunks(shape: AllGatherGemm, chip: Chip | None) -> tuple[Config, ...]:
    """An eighth of the rows, then all others; along M the own rows hide the first chunk, which may
    be larger."""
    most = max(shape.m // 8 if shape.shard == "k" else 2 * shape.shard_rows // shape.world, 128)
    firsts = sorted(_FIRST_ROWS, key=lambda rows: (rows > most, abs(rows - most)))
    growths = (7, 1) if shape.shard == "k" else (1,)
    knobs = product(firsts, growths)
    configs = (Config("bsp_chunked", first_rows=rows, growth=growth) for rows, growth in knobs)
    return _first_possible(shape, chip, configs)


def _default_split(shape: AllGatherGemm, chip: Chip | None, knobs: dict[str, Any]) -> int:
    """As many parts as run at once, and as there are flags along K."""
    once = chip.units - knobs["comm_programs"] if chip is not None else 0
    configs = [Config("push", **knobs, split_k=split) for split in (2, 4, 8)]
    possible = [
        config["split_k"]
        for config in configs
        if config["split_k"] <= steps(shape, config) and parts(shape, config) <= once
    ]
    return max(possible, default=1)


SPACE = Space(
    op="all_gather_gemm",
    revisions={"bsp": 1, "pull": 1, "staged": 1, "push": 1, "push_ce": 1, "bsp_chunked": 1},
    variants={
        "bsp": (_FORM,),
        "pull": (*_TILE, *_EXCHANGE, replace(_ORDER, values=("chunk", "column")), *_CDNA),
        "staged": (*_TILE, LOADS, *_EXCHANGE, _ORDER, *_CDNA),
        "push": (*_TILE, LOADS, *_EXCHANGE, _ORDER, *_CDNA),
        "push_ce": (*_TILE, LOADS, *_COPIES, *_CDNA),
        "bsp_chunked": _CHUNKED,
    },
    rules=RULES,
    defaults=defaults,
    of_variant=of_variant,
    likely_forms=likely_forms,
)
