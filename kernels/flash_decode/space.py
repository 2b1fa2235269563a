"""What may vary in flash_decode: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Choice, Config, Space
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.rules import RULES, TILE, stages, table_takes_stages, units

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
LOCAL_KNOBS = {"kv_splits": (-2, -1, 0, 1, 2, 3), "block_n": (-1, 0, 1)}
"""What each rank may set for itself, with the doublings that are tried: how it splits its own
tokens touches no message and no flag."""


@lru_cache(maxsize=16)
def defaults(shape: FlashDecode, chip: Chip | None = None) -> tuple[Config, ...]:
    """The likely forms of BSP, then one sound config for each other variant."""
    splits, on = _default_splits(shape, chip), 16 if chip is None else chip.units
    staged = chip is not None and chip.can.stage_in_registers
    xcds = 8 if chip is not None and chip.several_dies else 1
    block_n = min(
        64 if shape.head_dim <= 128 else 32, max(32, power_of_two_from(-(-shape.kv_len // splits)))
    )
    deep = 2 if staged else stages(shape, 3 if shape.head_dim <= 128 else 2, chip)
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
    if SPACE.why_invalid(shape, words, chip) is None:
        last.append(words)
    return (*_bsp_forms(shape, chip, knobs, on), *ladder, *last)


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
        pipelines.append(narrow | {"num_stages": stages(shape, 2, chip)})
    near = sorted(splits, key=lambda number: abs(number - knobs["kv_splits"]))[:3]
    forms = [
        Config("bsp", **knobs | {"kv_splits": number} | pipeline)
        for number in near
        for pipeline in pipelines
    ]
    return [form for form in dict.fromkeys(forms) if SPACE.why_invalid(shape, form, chip) is None]


def _wide(shape: FlashDecode, knobs: dict[str, int], chip: Chip | None) -> dict[str, int]:
    """A tile of 128 tokens, with two blocks on the way where the pipeline holds as many."""
    return {"block_n": 128, "num_stages": min(knobs["num_stages"], stages(shape, 2, chip))}


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
    candidates = _in_flight(shape, forms[0], chip)
    sound = [form for form in candidates if SPACE.why_invalid(shape, form, chip) is None]
    return tuple(dict.fromkeys([*sound, *forms]))


def _in_flight(shape: FlashDecode, first: Config, chip: Chip) -> Iterator[Config]:
    """The forms that keep more loads in flight than the default, the likeliest first."""
    on, groups, knobs = chip.units, shape.batch * shape.kv_heads, dict(first.knobs)
    possible = _possible_splits(shape, on)

    def form(splits: int, block_n: int, blocks: int) -> Config:
        """With so many blocks on the way."""
        depth = {"num_stages": stages(shape, blocks, chip)}
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
            few = groups <= RESIDENT * on  # more are shallow, so that none waits for a second wave
            small = not few and shape.head_dim <= 64  # all are resident with two blocks of 64
            wide = shape.kv_len > SHORT and not small
            yield form(1, 128, 2) if wide else form(1, 64, 2 if few or small else 1)
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
    held = TILE // (shape.head_dim * power_of_two_from(shape.world))
    most, all_heads = min(power_of_two_from(shape.group), held), shape.batch * shape.q_heads
    enough = (heads for heads in (1, 2, 4, 8) if heads == most or all_heads <= heads * on)
    return next(enough, most)


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
