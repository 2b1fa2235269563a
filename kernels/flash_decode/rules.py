"""What a config of flash_decode comes to at a shape, and the rules over that. Standard library
only."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import FLAGS_PER_SOURCE, MAILBOX_BYTES, Config, Rule, one_die_rule
from tftune.kernels.flash_decode import FlashDecode

TILE = 8192
"""Elements of fp32 that a program holds at a time while it adds up partial results, or sends
them."""
_LADDER = ("bsp", "gather", "no_wait", "fused", "fused_heads")
_FLAGGED = ("fused_heads", "persistent")
RESIDENT_VARIANTS = ("persistent", "persistent_ll")
"""Whose programs stay: each takes units of work in turn."""


def slices(shape: FlashDecode, config: Config) -> int:
    """Pieces of one group."""
    return int(-(-shape.group // config["heads_per_program"]))


def pieces(shape: FlashDecode, config: Config) -> int:
    """Pieces of heads that one rank adds up and sends."""
    return shape.batch * shape.kv_heads * slices(shape, config)


def units(shape: FlashDecode, config: Config) -> int:
    """Pieces of work: splits of every sequence for every KV head."""
    return int(shape.batch * shape.kv_heads * config["kv_splits"])


def pieces_per_flag(config: Config) -> int:
    """0 where one flag covers all pieces of a source, as in every variant without the knob."""
    return int(dict(config.knobs).get("heads_per_flag", 0) // config["heads_per_program"])


def _flags(shape: FlashDecode, config: Config) -> int:
    """Flags of one source. One covers all pieces where heads_per_flag is 0, and at least one piece
    where it is not."""
    if config["heads_per_flag"] == 0:
        return 1
    each = max(1, config["heads_per_flag"] // config["heads_per_program"])
    return int(-(-pieces(shape, config) // each))


def parts_bytes(shape: FlashDecode, config: Config) -> int:
    """Bytes of all splits' partial results."""
    word = 8 if config.variant == "persistent_ll" else 4
    return units(shape, config) * shape.group * (shape.head_dim + 1) * word


def mailbox_bytes(shape: FlashDecode) -> int:
    """Bytes of one generation of the mailbox that all ranks' messages take as words, each message
    up to a multiple of 16 bytes."""
    rows = shape.batch * shape.own_heads
    return shape.world * 8 * (rows * shape.head_dim + -(-rows // 2) * 2)


def table_takes_stages(shape: FlashDecode, chip: Chip | None) -> bool:
    """Whether half of the pipeline's stages load entries of the block table: with pages, where
    loads are asynchronous copies. So the code that Triton 3.6 and 3.7 lower for sm_90 has it."""
    return shape.page_size > 0 and chip is not None and not chip.can.stage_in_registers


def blocks_on_the_way(shape: FlashDecode, num_stages: int, chip: Chip | None) -> int:
    """Blocks of keys, and as many of values, that a pipeline of so many stages keeps.

    >>> from tftune.kernels.core.chips import CHIPS
    >>> paged = FlashDecode(1, 64, 8, 128, 65536, 1, "bf16", "heads", page_size=16)
    >>> [blocks_on_the_way(paged, stages, CHIPS["h200"]) for stages in (2, 3, 4, 5, 7)]
    [1, 1, 1, 2, 3]
    """
    if table_takes_stages(shape, chip):
        return max(1, (num_stages - 1) // 2)
    return num_stages - 1


def stages(shape: FlashDecode, blocks: int, chip: Chip | None) -> int:
    """The fewest stages that keep so many blocks on the way."""
    return 2 * blocks + 1 if blocks > 1 and table_takes_stages(shape, chip) else blocks + 1


def _shared_bytes(shape: FlashDecode, config: Config, chip: Chip) -> int:
    """Blocks of keys and values that the pipeline keeps, with entries of the block table; on NVIDIA
    queries and weights, too."""
    blocks = blocks_on_the_way(shape, config["num_stages"], chip)
    token = 2 * shape.head_dim * shape.element_bytes + 4 * table_takes_stages(shape, chip)
    held = blocks * config["block_n"] * token
    return int(held + (8192 if chip.can.products_from_shared else 0))


def _resident_bytes(shape: FlashDecode, config: Config, chip: Chip) -> int:
    """The same of all programs of a unit. On NVIDIA each takes 1 KB more, which the chip's figure
    leaves out for one."""
    programs, reserved = config["programs_per_unit"], chip.can.reserved_shared_bytes
    return int(programs * _shared_bytes(shape, config, chip) + reserved * (programs - 1))


RULES = (
    Rule("num_stages=7 is for pages on NVIDIA, where the block table takes half of the stages",
         lambda s, c, chip: c["num_stages"] < 7 or (s.page_size > 0 if chip is None
                                                    else table_takes_stages(s, chip))),
    Rule("kv_splits must leave at least 16 tokens to each",
         lambda s, c, chip: c["kv_splits"] == 1 or 16 * c["kv_splits"] <= s.kv_len),
    Rule("kv_splits must not make more than 32 units of work for each of the chip's",
         lambda s, c, chip: chip is None or c["kv_splits"] == 1 or units(s, c) <= 32 * chip.units),
    Rule("block_n must not exceed the tokens of a split rounded up to a power of two, and 32 at "
         "least",
         lambda s, c, chip: c["block_n"]
             <= max(32, power_of_two_from(-(-s.kv_len // c["kv_splits"])))),
    Rule("8 warps must have at least 8 tokens of a block each (16 on CDNA)",
         lambda s, c, chip: (chip is None or c["num_warps"] == 4
                             or 32 * c["block_n"] >= 8 * chip.wave_size * c["num_warps"])),
    Rule("a thread may hold at most 128 elements of a block of keys: take fewer tokens or more "
         "warps",
         lambda s, c, chip: (chip is None
                             or c["block_n"] * s.head_dim
                             <= 128 * chip.wave_size * c["num_warps"])),
    Rule("the pipeline's blocks must fit the chip's shared memory: take fewer tokens, stages or "
         "programs",
         lambda s, c, chip: chip is None or _shared_bytes(s, c, chip) <= chip.shared_bytes,
         _LADDER),
    Rule("the pipelines of all programs of a unit must fit its shared memory: take fewer tokens, "
         "stages or programs",
         lambda s, c, chip: chip is None or _resident_bytes(s, c, chip) <= chip.shared_bytes,
         RESIDENT_VARIANTS),
    Rule("all programs of a unit may have at most 12 warps: their registers must fit",
         lambda s, c, chip: c["programs_per_unit"] * c["num_warps"] <= 12, RESIDENT_VARIANTS),
    # db/audits/mi300x8: all four audited kernels of this kind spill 92 bytes or more, and no other
    # does.
    Rule("where two waves share a SIMD a thread has 256 registers, and persistent would spill: "
         "take 4 warps, or a smaller block of keys",
         lambda s, c, chip: (chip is None or not chip.can.unified_registers or c["num_warps"] == 4
                             or c["block_n"] * s.head_dim < 32 * chip.wave_size * 8),
         ("persistent",), learned=True),
    # Triton 3.6 (docs/mi300x.md): from 65,536 on they spill 732 bytes or more where a program also
    # sends; below none does.
    Rule("kv_splits times heads_per_program times head_dim must be below 65,536 on CDNA: a "
         "program that adds up more spills",
         lambda s, c, chip: (chip is None or not chip.can.unified_registers
                             or c["kv_splits"] * c["heads_per_program"] * s.head_dim < 65_536),
         learned=True),
    # db/audits/mi300x8: with 4 waves such a kernel needs 66,560 bytes of 65,536; with 8, and with
    # larger heads, none needs more than its blocks.
    Rule("block_n=256 with head_dim=64 leaves 4 warps on CDNA 1 KB short of shared memory: take 8",
         lambda s, c, chip: (chip is None or not chip.can.unified_registers or c["num_warps"] == 8
                             or c["block_n"] < 256 or s.head_dim > 64),
         learned=True),
    Rule("programs_per_unit must be 1 where every unit has one piece of work at most",
         lambda s, c, chip: chip is None or c["programs_per_unit"] == 1
             or units(s, c) > chip.units, RESIDENT_VARIANTS),
    one_die_rule("persistent_ll"),
    Rule(f"the words of all ranks must fit the workspace's mailbox of {MAILBOX_BYTES >> 20} MB: "
         "take a variant with flags",
         lambda s, c, chip: mailbox_bytes(s) <= MAILBOX_BYTES, ("persistent_ll",)),
    Rule("kv_splits, rounded up to a power of two, times heads_per_program times head_dim must "
         f"be at most {TILE} elements: take fewer",
         lambda s, c, chip: (power_of_two_from(c["kv_splits"]) * c["heads_per_program"] * s.head_dim
                             <= TILE), ("persistent_ll",)),
    Rule("xcds must be 1 on a chip of one die",
         lambda s, c, chip: chip is None or c["xcds"] == 1 or chip.several_dies),
    Rule("heads_per_program must not exceed a group rounded up to a power of two",
         lambda s, c, chip: c["heads_per_program"] <= power_of_two_from(s.group)),
    Rule(f"heads_per_program for every rank must be at most {TILE} elements: take fewer heads",
         lambda s, c, chip: c["heads_per_program"] * s.head_dim * power_of_two_from(s.world)
             <= TILE),
    Rule("heads_per_flag must be 0 or at least heads_per_program",
         lambda s, c, chip: c["heads_per_flag"] == 0
             or c["heads_per_flag"] >= c["heads_per_program"], _FLAGGED),
    Rule("heads_per_flag must be less than all heads: 0 covers them",
         lambda s, c, chip: c["heads_per_flag"] == 0
             or c["heads_per_flag"] < s.batch * s.q_heads, _FLAGGED),
    # The second half of a source's flags is not for peers to set: see the rule of all_gather_gemm.
    Rule(f"one source may have at most {FLAGS_PER_SOURCE // 2} flags that peers set: take larger "
         "heads_per_flag",
         lambda s, c, chip: _flags(s, c) <= FLAGS_PER_SOURCE // 2, _FLAGGED),
)  # fmt: skip
