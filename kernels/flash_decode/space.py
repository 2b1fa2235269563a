"""What may vary in flash_decode: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import FLAGS_PER_SOURCE, MAILBOX_BYTES, Choice, Config, Rule, Space
from tftune.kernels.flash_decode import FlashDecode

_SPLITS = (1, 2, 4, 8, 11, 16, 22, 25, 33, 38, 64, 76)
_ATTEND = (
    Choice(
        "kv_splits",
        _SPLITS,
        "parts of a sequence's cache on one rank that programs attend to side by side",
        16,
    ),
    Choice("block_n", (32, 64, 128, 256), "tokens that one program loads at a time", 64),
    Choice("num_warps", (4, 8), "warps (waves) of one program that attends", 4),
    Choice(
        "num_stages", (2, 3, 4, 5, 7), "depth of the software pipeline of the loop over tokens", 3
    ),
    Choice(
        "xcds",
        (1, 8),
        "dies over which programs are dealt in turn; each die gets splits of the same heads",
        1,
    ),
    Choice(
        "heads_per_program",
        (1, 2, 4, 8, 16),
        "heads of one group that a program adds up, sends and merges at a time",
        1,
    ),
)
_FLAGS = Choice(
    "heads_per_flag",
    (0, 1, 2, 4, 8, 16, 64),
    "heads that one flag covers, as many pieces as hold them; 0: all of a source",
    1,
)
_RESIDENTS = Choice(
    "programs_per_unit", (1, 2, 3), "programs on each SM or CU, all resident at once", 1
)
TILE = 8192
"""Elements of fp32 that a program holds at a time while it adds up partial results, or sends
them."""
LOCAL_KNOBS = {"kv_splits": (-2, -1, 0, 1, 2, 3), "block_n": (-1, 0, 1)}
"""What each rank may set for itself, with the doublings that are tried: how it splits its own
tokens touches no message and no flag."""
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
    return int(
        -(-pieces(shape, config) // max(1, config["heads_per_flag"] // config["heads_per_program"]))
    )


def parts_bytes(shape: FlashDecode, config: Config) -> int:
    """Bytes of all splits' partial results."""
    return (
        units(shape, config)
        * shape.group
        * (shape.head_dim + 1)
        * (8 if config.variant == "persistent_ll" else 4)
    )


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


def _stages(shape: FlashDecode, blocks: int, chip: Chip | None) -> int:
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
    Rule("persistent_ll must run on one die: what the programs of another die store without a "
         "fence may stay in that die's cache",
         lambda s, c, chip: chip is None or chip.can.coherent_stores,
         ("persistent_ll",), required=True),
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


_RULES_OF_BSP = tuple(rule for rule in RULES if rule.applies("bsp"))


@lru_cache(maxsize=16)
def defaults(shape: FlashDecode, chip: Chip | None = None) -> tuple[Config, ...]:
    """The likely forms of BSP, then one sound config for each other variant."""
    splits, on = _default_splits(shape, chip), 16 if chip is None else chip.units
    staged = chip is not None and chip.can.stage_in_registers
    xcds = 8 if chip is not None and chip.several_dies else 1
    block_n = min(
        64 if shape.head_dim <= 128 else 32, max(32, power_of_two_from(-(-shape.kv_len // splits)))
    )
    deep = 2 if staged else _stages(shape, 3 if shape.head_dim <= 128 else 2, chip)
    heads = _default_heads(shape, on)
    knobs = dict(kv_splits=splits, block_n=block_n, num_warps=4, num_stages=deep, xcds=xcds)
    knobs |= dict(heads_per_program=heads)
    residents = 2 if units(shape, Config("gather", **knobs)) > on else 1
    whole = power_of_two_from(-(-shape.kv_len // splits)) >= 128
    if table_takes_stages(shape, chip) and residents == 1 and whole and shape.head_dim <= 128:
        # A tile of twice the tokens asks the table half as often: 72.6 us for 64K tokens in pages
        # of 16, against 94.3 with 64 tokens and 7 stages (persistent_ll, one H200, 2026-11-24).
        knobs |= _wide(shape, knobs, chip)
    # Where programs outnumber the units, those that wait hide each other's loads: the shallow
    # pipeline lets more of them in (measured).
    shallow = knobs | ({"num_stages": 2} if residents > 1 else {})
    ladder = [Config(variant, **shallow) for variant in ("gather", "no_wait", "fused")]
    flags = {"heads_per_flag": knobs["heads_per_program"]}
    last = [
        Config("fused_heads", **shallow | flags),
        Config("persistent", **knobs | flags, programs_per_unit=residents),
    ]
    few = max(
        1, min(knobs["heads_per_program"], TILE // (power_of_two_from(splits) * shape.head_dim))
    )
    words = Config(
        "persistent_ll", **knobs | {"heads_per_program": few}, programs_per_unit=residents
    )
    possible = all(
        rule.holds(shape, words, chip) for rule in RULES if rule.applies("persistent_ll")
    )
    return (*_bsp_forms(shape, chip, knobs, on), *ladder, *last, *([words] if possible else []))


def _bsp_forms(
    shape: FlashDecode, chip: Chip | None, knobs: dict[str, int], on: int
) -> list[Config]:
    """The default knobs with other splits that come within a third of the least time, and shallow,
    deep and wide pipelines: what is held against the other variants must not lack what these may
    choose. The default is the first."""
    splits = [
        number
        for number in _possible_splits(shape, on)
        if _busiest(shape, number, on) <= 4 / 3 * _busiest(shape, knobs["kv_splits"], on)
    ]
    narrow = {"block_n": min(knobs["block_n"], 64)}
    pipelines = [{}, narrow | {"num_stages": 2}, _wide(shape, knobs, chip)]
    if table_takes_stages(shape, chip):
        pipelines.append(narrow | {"num_stages": _stages(shape, 2, chip)})
    near = sorted(splits, key=lambda number: abs(number - knobs["kv_splits"]))[:3]
    forms = [
        Config("bsp", **knobs | {"kv_splits": number} | pipeline)
        for number in near
        for pipeline in pipelines
    ]
    return [form for form in dict.fromkeys(forms) if _is_sound(shape, form, chip)]


def _wide(shape: FlashDecode, knobs: dict[str, int], chip: Chip | None) -> dict[str, int]:
    """A tile of 128 tokens, with two blocks on the way where the pipeline holds as many."""
    return {"block_n": 128, "num_stages": min(knobs["num_stages"], _stages(shape, 2, chip))}


CROWDED = 4
"""Programs for each of the chip's units from which on the pipeline's depth makes no difference."""
RESIDENT = 3
"""Programs of a shallow pipeline (two stages) that one unit holds at once; of a deep or a wide one
it holds one."""
FILLED = 0.83
"""The least share of the programs that may be resident, of shallow programs."""
COVERED, FULL = 0.5, 0.9
"""The least and the most share of the units that one wave of wide programs fills: below they are
too few, above deep ones do as well."""
SHORT = 8192
"""Tokens up to which sequences that need not be split stay whole."""


def likely_forms(shape: FlashDecode, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured: the form that keeps most loads in flight, then the defaults.

    Wide: tiles of 128 tokens, three stages, one program on a unit. Shallow: two stages, RESIDENT
    programs on a unit. The default is deep: four stages of 64 tokens. Captured, another form than
    the deep one takes up to 20 % less on 1, 2, 4 and 8 H200 (2026-11-23).
    """
    forms = [config for config in defaults(shape, chip) if config.variant == "bsp"]
    if not forms or forms[0]["num_stages"] == 2:
        return tuple(forms)
    found = [form for form in _in_flight(shape, forms[0], chip) if _is_sound(shape, form, chip)]
    return tuple(dict.fromkeys([*found, *forms]))


def _is_sound(shape: FlashDecode, form: Config, chip: Chip | None) -> bool:
    return all(rule.holds(shape, form, chip) for rule in _RULES_OF_BSP)


def _in_flight(shape: FlashDecode, first: Config, chip: Chip) -> Iterator[Config]:
    """The forms that keep more loads in flight than the default, the likeliest first."""
    on, groups, knobs = chip.units, shape.batch * shape.kv_heads, dict(first.knobs)
    possible = _possible_splits(shape, on)

    def form(splits: int, block_n: int, blocks: int) -> Config:
        """With so many blocks on the way."""
        depth = {"num_stages": _stages(shape, blocks, chip)}
        return Config("bsp", **knobs | {"kv_splits": splits, "block_n": block_n} | depth)

    programs = units(shape, first)
    if programs <= on:
        if COVERED * on <= programs <= FULL * on:
            yield form(first["kv_splits"], 128, 2)
        return
    one_wave = max(
        (splits for splits in possible if COVERED * on <= groups * splits <= on), default=0
    )
    if one_wave == 1 and shape.kv_len <= SHORT:
        yield form(1, 128, 2)
    if programs <= CROWDED * on:
        yield from (
            form(splits, 64, 1)
            for splits in possible
            if FILLED * RESIDENT * on <= groups * splits <= RESIDENT * on
        )
        if groups > on:
            yield form(1, 64, 2) if shape.kv_len <= SHORT else form(1, 128, 2)
    elif one_wave and programs < 2 * CROWDED * on:
        yield form(one_wave, 128, 2)


def _busiest(shape: FlashDecode, splits: int, on: int) -> float:
    """Tokens that the busiest of so many programs attends to; each split costs as much as 64 of
    them."""
    return float(
        -(-shape.batch * shape.kv_heads * splits // on) * (-(-shape.kv_len // splits) + 64)
    )


def _possible_splits(shape: FlashDecode, on: int) -> list[int]:
    groups = shape.batch * shape.kv_heads
    return [
        splits
        for splits in _SPLITS
        if splits == 1 or (16 * splits <= shape.kv_len and groups * splits <= 32 * on)
    ]


def _default_splits(shape: FlashDecode, chip: Chip | None) -> int:
    """The fewest splits that come within 2 % of the least time of the busiest program."""
    on = 16 if chip is None else chip.units
    possible = _possible_splits(shape, on)
    least = min(_busiest(shape, splits, on) for splits in possible)
    return next(splits for splits in possible if _busiest(shape, splits, on) <= 1.02 * least)


def _default_heads(shape: FlashDecode, on: int) -> int:
    """As few heads as leave none of so many programs more than one piece, as far as a group and a
    program's tile go."""
    most = min(
        power_of_two_from(shape.group), TILE // (shape.head_dim * power_of_two_from(shape.world))
    )
    return next(
        (
            heads
            for heads in (1, 2, 4, 8)
            if heads == most or shape.batch * shape.q_heads <= heads * on
        ),
        most,
    )


SPACE = Space(
    op="flash_decode",
    revisions={
        "bsp": 1,
        "gather": 1,
        "no_wait": 1,
        "fused": 1,
        "fused_heads": 1,
        "persistent": 1,
        "persistent_ll": 1,
    },
    variants={name: _ATTEND for name in ("bsp", "gather", "no_wait", "fused")}
    | {
        "fused_heads": (*_ATTEND, _FLAGS),
        "persistent": (*_ATTEND, _FLAGS, _RESIDENTS),
        "persistent_ll": (*_ATTEND, _RESIDENTS),
    },
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
)


def complete_knobs(config: Config) -> dict[str, Any]:
    """The knobs of a config, absent ones at their defaults, without asking whether they are
    known."""
    return {choice.name: choice.default for choice in SPACE.variants[config.variant]} | dict(
        config.knobs
    )
