"""What may vary in gemm_reduce_scatter: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import LOADS, TILE, tile_rules
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import FLAGS_PER_SOURCE, Choice, Config, Rule, Space
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

_FORM = Choice(
    "form",
    ("scatter", "scatter_registered"),
    "the library's reduce-scatter of the whole product; registered: it knows that memory beforehand",
    "scatter",
)
_SPLIT = Choice(
    "split_k",
    (1, 2, 4, 8),
    "parts of a rank's K, each sent to the owner, who adds them: more programs where tiles are few",
    1,
)
_FLAG = Choice("tiles_per_flag", (1, 4, 16), "tiles of one owner that one flag covers", 1)
_WIRE = Choice(
    "wire",
    ("dtype", "fp32"),
    "what partial tiles are sent in; the dtype errs no more than the library, which rounds the same "
    "products and then each sum",
    "dtype",
)
_FUSED = ("push", "pull")
REGISTERED_BYTES = 1 << 22
"""Of the product, from which on registered buffers are tried, as all_gather_gemm does."""
SPLIT_BYTES = 1 << 24
"""Of all parts of a split product, at most: what is larger has tiles enough."""


def spans(shape: GemmReduceScatter, config: Config) -> bool:
    """Whether one row tile holds the rows of every owner."""
    return shape.world > 1 and shape.m <= int(config["block_m"])


def owner_tiles(shape: GemmReduceScatter, config: Config) -> int:
    """Tiles that one flag bank counts: those of one owner, or, where tiles span owners, all."""
    rows = 1 if spans(shape, config) else -(-shape.shard_rows // int(config["block_m"]))
    return rows * -(-shape.n // int(config["block_n"]))


def flags(shape: GemmReduceScatter, config: Config) -> int:
    """Flags of one source."""
    return -(-owner_tiles(shape, config) // int(config["tiles_per_flag"]))


def parts(shape: GemmReduceScatter, config: Config) -> int:
    """Pieces of work of the GEMM: parts of tiles."""
    owners = 1 if spans(shape, config) else shape.world
    return owners * owner_tiles(shape, config) * int(config["split_k"])


def wire_bytes(shape: GemmReduceScatter, config: Config) -> int:
    """Bytes of an element on its way."""
    return 4 if config["wire"] == "fp32" else shape.element_bytes


def slots_bytes(shape: GemmReduceScatter, config: Config) -> int:
    """Bytes of one generation: a slot for each source and part, of the rows of one owner."""
    return shape.m * shape.n * wire_bytes(shape, config) * int(config["split_k"])


def payload_bytes(shape: GemmReduceScatter) -> int:
    """Bytes of a generation that any config of this shape needs at most."""
    product = shape.m * shape.n * 4
    return max(product, min(8 * product, SPLIT_BYTES))


def is_registered(form: str) -> bool:
    """Whether the library knows BSP's buffers beforehand."""
    return form.endswith("_registered")


def _worth_registering(shape: GemmReduceScatter, chip: Chip) -> bool:
    product = shape.m * shape.n * shape.element_bytes
    return shape.world > 1 and chip.can.registered_buffers and product >= REGISTERED_BYTES


def _tile_fits(shape: GemmReduceScatter, config: Config) -> bool:
    """A row tile lies within one owner's rows, or holds all rows of the call."""
    block_m = int(config["block_m"])
    return block_m <= max(16, power_of_two_from(shape.shard_rows)) or (
        shape.m <= block_m <= max(16, power_of_two_from(shape.m))
    )


RULES = (
    Rule("NCCL alone registers buffers, and from a product of 4 MB on: a smaller one arrives no sooner",
         lambda s, c, chip: not is_registered(c["form"]) or chip is None or _worth_registering(s, chip), ("bsp",)),
    Rule("block_m must not exceed an owner's rows rounded up to a power of two, or must hold all rows of the call",
         lambda s, c, chip: _tile_fits(s, c), _FUSED, required=True),
    *tile_rules(_FUSED),
    Rule("group_m must be 1 where there is one row tile of an owner",
         lambda s, c, chip: c["group_m"] == 1 or s.shard_rows > c["block_m"], _FUSED),
    Rule("split_k must leave each part at least one step of K",
         lambda s, c, chip: c["split_k"] * c["block_k"] <= max(s.inner, c["block_k"]), _FUSED),
    Rule("all parts of a split product have at most 16 MB: take a smaller split_k",
         lambda s, c, chip: c["split_k"] == 1 or slots_bytes(s, c) <= SPLIT_BYTES, _FUSED, required=True),
    Rule("split_k must be 1 where there is a whole tile for each program",
         lambda s, c, chip: c["split_k"] == 1 or chip is None or parts(s, c) // c["split_k"] <= chip.units, _FUSED),
    Rule(f"one source may have at most {FLAGS_PER_SOURCE // 2} flags: take larger tiles_per_flag or tiles",
         lambda s, c, chip: flags(s, c) <= FLAGS_PER_SOURCE // 2, _FUSED, required=True),
    Rule("tiles_per_flag must not exceed the tiles of an owner, unless it is 1",
         lambda s, c, chip: c["tiles_per_flag"] == 1 or c["tiles_per_flag"] <= owner_tiles(s, c), _FUSED),
)  # fmt: skip


@lru_cache(maxsize=16)
def defaults(shape: GemmReduceScatter, chip: Chip | None = None) -> tuple[Config, ...]:
    """Every BSP form of this shape, then push and pull with a sound tile."""
    forms = ["scatter"]
    if chip is not None and _worth_registering(shape, chip):
        forms.append("scatter_registered")
    knobs = _default_tile(shape, chip)
    return (
        *(Config("bsp", form=form) for form in forms),
        *(_by_descriptor(shape, chip, Config(variant, **knobs)) for variant in _FUSED),
    )


def likely_forms(shape: GemmReduceScatter, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured."""
    return (Config("bsp", form="scatter"),)


def _by_descriptor(shape: GemmReduceScatter, chip: Chip | None, config: Config) -> Config:
    changed = Config(config.variant, **dict(config.knobs) | {"loads": "descriptor"})
    possible = chip is not None and SPACE.why_invalid(shape, changed, chip) is None
    return changed if possible else config


def _default_tile(shape: GemmReduceScatter, chip: Chip | None) -> dict[str, Any]:
    """All rows in one tile where they are few; else a large tile of one owner's rows."""
    staged = chip is not None and chip.can.stage_in_registers
    few = shape.m <= 128
    block_m = max(16, power_of_two_from(shape.m if few else min(shape.shard_rows, 128)))
    block_n = min(
        256 if shape.m >= 1024 else 64 if few else 128, max(32, power_of_two_from(shape.n))
    )
    tile = dict(
        block_m=block_m,
        block_n=block_n,
        block_k=64,
        group_m=8 if shape.shard_rows > block_m else 1,
        num_warps=8 if block_m * block_n >= 64 * 128 else 4,
        num_stages=2 if staged else 3 if block_n == 256 else 4,
    )
    units = chip.units if chip is not None else 1
    splits = [Config("push", **tile, split_k=split) for split in (2, 4, 8)]
    fitting = [
        config["split_k"]
        for config in splits
        if parts(shape, config) <= units and config["split_k"] * tile["block_k"] <= shape.inner
    ]
    return tile | {"split_k": max(fitting, default=1)}


SPACE = Space(
    op="gemm_reduce_scatter",
    revisions={"bsp": 1, "push": 1, "pull": 1},
    variants={
        "bsp": (_FORM,),
        "push": (*TILE, _SPLIT, LOADS, _FLAG, _WIRE),
        "pull": (*TILE, _SPLIT, LOADS, _FLAG, _WIRE),
    },
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
)
