"""What may vary where a GEMM's inner size is split over the ranks, and partial tiles are added up:
shared by the operations that do so (`kernels.device.gemm_reduce` is the device side). Standard
library only.

Shapes have m, n, `inner` (columns of A on one rank), world and element_bytes. Each variant sends a
tile to the owner of its rows or, one_shot, to every rank.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import BLOCKS, LOADS, PIPELINE, Knobs
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import FLAGS_PER_SOURCE, Choice, Config, Rule, Space

SPLIT = Choice(
    "split_k",
    (1, 2, 4, 8),
    "parts of a rank's K, each sent by itself and added up at the end: more programs where tiles "
    "are few",
    1,
)
FLAG = Choice("tiles_per_flag", (1, 4, 16), "tiles of one owner that one flag covers", 1)
WIRE = Choice(
    "wire",
    ("dtype", "fp32"),
    "what partial tiles are sent in; the dtype errs no more than the library, which rounds the "
    "same products and then each sum",
    "dtype",
)
KNOBS = (*BLOCKS, *PIPELINE, SPLIT, LOADS, FLAG, WIRE)
REGISTERED_BYTES = 1 << 22
"""Bytes of the product from which on registered buffers are tried, as all_gather_gemm does."""
SPLIT_BYTES = 1 << 24
"""The most bytes of all parts of a split product on one rank: what is larger has tiles enough."""
ROUTES = ("one_shot", "two_shot", "push", "pull", "relay")
"""Words of `kernels.device.gemm_reduce`, which says what each means."""
BANK_FLAGS = FLAGS_PER_SOURCE // 4
"""Flags of one phase. Both banks lie in that half of a source's flags which peers may set: a rank
may wait in the other half for its own signals while a peer is one call ahead."""


@cache
def route(variant: str) -> str:
    """Where a variant's partial tiles go: the one of ROUTES that its name begins with, else its
    name.

    >>> route("one_shot_ll"), route("push_ce"), route("vendor")
    ('one_shot', 'push', 'vendor')
    """
    return next((one for one in ROUTES if variant.startswith(one)), variant)


def owners(shape: Any, variant: str) -> int:
    """How many ranks share the rows: tiles are counted owner by owner. By one_shot all ranks add up
    all rows."""
    return 1 if route(variant) == "one_shot" else int(shape.world)


def owner_rows(shape: Any, owners: int) -> int:
    """Rows of one owner: rows that a rank adds up."""
    return int(shape.m) // owners


def spans(shape: Any, knobs: Knobs, owners: int) -> bool:
    """Whether one row tile holds the rows of every owner."""
    return owners > 1 and shape.m <= int(knobs["block_m"])


def owner_tiles(shape: Any, knobs: Knobs, owners: int) -> int:
    """Tiles that one bank of flags counts: those of one owner, or, where tiles span owners, all."""
    one = spans(shape, knobs, owners)
    row_tiles = 1 if one else -(-owner_rows(shape, owners) // int(knobs["block_m"]))
    return row_tiles * -(-int(shape.n) // int(knobs["block_n"]))


def flags(shape: Any, knobs: Knobs, owners: int) -> int:
    """Flags of one source."""
    return -(-owner_tiles(shape, knobs, owners) // int(knobs["tiles_per_flag"]))


def tiles(shape: Any, knobs: Knobs, owners: int) -> int:
    """Tiles of the GEMM."""
    turns = 1 if spans(shape, knobs, owners) else owners
    return turns * owner_tiles(shape, knobs, owners)


def slot_bytes(shape: Any, knobs: Knobs, owners: int) -> int:
    """Bytes of a slot: what one source sends to one owner, or one part of it."""
    element = 4 if knobs["wire"] == "fp32" else int(shape.element_bytes)
    return owner_rows(shape, owners) * int(shape.n) * element


def slots_bytes(shape: Any, knobs: Knobs, owners: int) -> int:
    """Bytes that a rank adds up: a slot for each source and part, of the rows of one owner."""
    return slot_bytes(shape, knobs, owners) * int(shape.world) * int(knobs["split_k"])


def outbox_bytes(shape: Any, knobs: Knobs) -> int:
    """Bytes of what a relay keeps for the other owners until it is forwarded."""
    return slots_bytes(shape, knobs, int(shape.world)) // int(shape.world) * (int(shape.world) - 1)


def is_registered(form: str) -> bool:
    """Whether the library knows BSP's buffers beforehand."""
    return form.endswith("_registered")


def worth_registering(shape: Any, chip: Chip) -> bool:
    """Whether registered buffers are tried: by NCCL alone, from 4 MB on."""
    product = shape.m * shape.n * shape.element_bytes
    return bool(shape.world > 1 and chip.can.registered_buffers and product >= REGISTERED_BYTES)


def _tile_fits(shape: Any, knobs: Knobs, owners: int) -> bool:
    """A row tile lies within one owner's rows, or holds all rows of the call."""
    block_m = int(knobs["block_m"])
    return block_m <= max(16, power_of_two_from(owner_rows(shape, owners))) or (
        shape.m <= block_m <= max(16, power_of_two_from(shape.m))
    )


def row_rules(only: tuple[str, ...]) -> tuple[Rule, ...]:
    """How tiles may lie in the rows of one owner, for variants that share them alike."""

    def ranks(shape: Any) -> int:
        return owners(shape, only[0])

    return (
        Rule(
            "block_m must not exceed an owner's rows rounded up to a power of two, or must hold "
            "all rows of the call",
            lambda s, c, chip: _tile_fits(s, c, ranks(s)),
            only,
            required=True,
        ),
        Rule(
            "group_m must be 1 where there is one row tile of an owner",
            lambda s, c, chip: c["group_m"] == 1 or owner_rows(s, ranks(s)) > c["block_m"],
            only,
        ),
    )


def split_rules(only: tuple[str, ...]) -> tuple[Rule, ...]:
    """When more programs than tiles have work."""
    return (
        Rule(
            "split_k must leave each part at least one step of K",
            lambda s, c, chip: c["split_k"] * c["block_k"] <= max(s.inner, c["block_k"]),
            only,
        ),
        Rule(
            "split_k must be 1 where there is a whole tile for each program",
            lambda s, c, chip: (
                c["split_k"] == 1 or chip is None or tiles(s, c, owners(s, only[0])) <= chip.units
            ),
            only,
        ),
    )


def rules(only: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules of KNOBS for variants that share the rows alike."""

    def ranks(shape: Any) -> int:
        return owners(shape, only[0])

    return (
        *row_rules(only),
        *split_rules(only),
        Rule(
            "all parts of a split product have at most 16 MB: take a smaller split_k",
            lambda s, c, chip: c["split_k"] == 1 or slots_bytes(s, c, ranks(s)) <= SPLIT_BYTES,
            only,
            required=True,
        ),
        Rule(
            f"one source may have at most {BANK_FLAGS} flags: take larger tiles_per_flag or tiles",
            lambda s, c, chip: flags(s, c, ranks(s)) <= BANK_FLAGS,
            only,
            required=True,
        ),
        Rule(
            "tiles_per_flag must not exceed the tiles of an owner, unless it is 1",
            lambda s, c, chip: (
                c["tiles_per_flag"] == 1 or c["tiles_per_flag"] <= owner_tiles(s, c, ranks(s))
            ),
            only,
        ),
    )


def default_knobs(shape: Any, chip: Chip | None, variant: str) -> dict[str, Any]:
    """All rows in one tile where they are few; else a large tile of one owner's rows. As many parts
    of K as run at once."""
    staged = chip is not None and chip.can.stage_in_registers
    few, ranks = shape.m <= 128, owners(shape, variant)
    rows = shape.m if few else min(owner_rows(shape, ranks), 128)
    block_m = max(16, power_of_two_from(rows))
    wide = 256 if shape.m >= 1024 else 64 if few else 128
    block_n = min(wide, max(32, power_of_two_from(shape.n)))
    tile = dict(
        block_m=block_m,
        block_n=block_n,
        block_k=64,
        group_m=8 if owner_rows(shape, ranks) > block_m else 1,
        num_warps=8 if block_m * block_n >= 64 * 128 else 4,
        num_stages=2 if staged else 3 if block_n == 256 else 4,
    )
    units = chip.units if chip is not None else 1
    fitting = [
        split
        for split in (2, 4, 8)
        if split * tiles(shape, tile, ranks) <= units and split * tile["block_k"] <= shape.inner
    ]
    return tile | {"split_k": max(fitting, default=1)}


def default(space: Space, shape: Any, chip: Chip | None, variant: str, **own: Any) -> Config:
    """One sound config of a variant, by descriptors where the chip has them. `own`: knobs that
    other variants have not."""
    known = {choice.name for choice in space.choices(variant)}
    all_knobs = default_knobs(shape, chip, variant) | own
    knobs = {name: value for name, value in all_knobs.items() if name in known}
    config = Config(variant, **knobs)
    if chip is None:
        return config
    by_descriptor = Config(variant, **knobs, loads="descriptor")
    return by_descriptor if space.why_invalid(shape, by_descriptor, chip) is None else config
