"""What may vary in gemm_all_reduce: the variants, their knobs, the rules, and the configs to try
first. Standard library only."""

from __future__ import annotations

from functools import lru_cache

from tftune.kernels.core.architecture import CUDA
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import tile_rules
from tftune.kernels.core.partials import KNOBS, SPLIT_BYTES, default, rules, slots_bytes
from tftune.kernels.core.space import Choice, Config, Rule, Space
from tftune.kernels.gemm_all_reduce import GemmAllReduce

_FORM = Choice(
    "form",
    ("library", "one_shot", "two_shot"),
    "whose all-reduce follows the vendor's GEMM: the library's, or torch's over symmetric memory, "
    "into which the GEMM then writes",
    "library",
)
_FUSED = ("one_shot", "two_shot")
ONE_SHOT_BYTES = 1 << 27
"""Of all slots of one_shot at most: each rank sends the whole product to every other."""


def payload_bytes(shape: GemmAllReduce) -> int:
    """Bytes of a generation that any config of this shape needs at most: the slots of one_shot, as
    far as it may be taken, or of two_shot in fp32 with the sums behind them."""
    product = shape.m * shape.n
    largest = 8 * 4 * product * shape.world  # 8 parts, in fp32
    one = max(min(largest, SPLIT_BYTES), min(4 * product * shape.world, ONE_SHOT_BYTES))
    two = max(4 * product, min(8 * 4 * product, SPLIT_BYTES)) + 2 * product + 16
    return max(one, two if shape.m % shape.world == 0 else 0)


def _symmetric_fits(shape: GemmAllReduce, chip: Chip | None) -> bool:
    cuda = chip is None or chip.can.backend == CUDA
    return cuda and shape.dtype == "bf16" and shape.world > 1


RULES = (
    Rule(
        "torch's all-reduces over symmetric memory need CUDA, bf16, and 2 ranks at least",
        lambda s, c, chip: c["form"] == "library" or _symmetric_fits(s, chip),
        ("bsp",),
    ),
    Rule(
        "torch's all-reduces over symmetric memory need rows of a multiple of 8 elements",
        lambda s, c, chip: c["form"] == "library" or s.n % 8 == 0,
        ("bsp",),
    ),
    Rule(
        "torch's two-shot all-reduce takes 2, 4 or 8 ranks",
        lambda s, c, chip: c["form"] != "two_shot" or s.world in (2, 4, 8),
        ("bsp",),
    ),
    Rule(
        "torch's two-shot all-reduce needs a C of a multiple of 8 elements for each rank",
        lambda s, c, chip: c["form"] != "two_shot" or s.m * s.n % (8 * s.world) == 0,
        ("bsp",),
    ),
    Rule(
        "all slots have at most 128 MB: take two_shot, which sends each row once",
        lambda s, c, chip: slots_bytes(s, c, 1) <= ONE_SHOT_BYTES,
        ("one_shot",),
        required=True,
    ),
    Rule(
        "m must be a multiple of the world: every rank adds up equally many rows",
        lambda s, c, chip: s.m % s.world == 0,
        ("two_shot",),
        required=True,
    ),
    *tile_rules(_FUSED),
    *(rule for variant in _FUSED for rule in rules(variant)),
)


@lru_cache(maxsize=16)
def defaults(shape: GemmAllReduce, chip: Chip | None = None) -> tuple[Config, ...]:
    """Every BSP form that runs here, the library's first; then the variants that can have this
    shape, with a sound tile."""
    forms = _FORM.values if chip is not None else ("library",)
    wanted = [
        *(Config("bsp", form=form) for form in forms),
        *(default(SPACE, shape, chip, variant) for variant in _FUSED),
    ]
    return tuple(each for each in wanted if SPACE.why_invalid(shape, each, chip) is None)


def likely_forms(shape: GemmAllReduce, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured."""
    return (Config("bsp", form="library"),)


SPACE = Space(
    op="gemm_all_reduce",
    revisions={"bsp": 1, "one_shot": 1, "two_shot": 1},
    variants={"bsp": (_FORM,), "one_shot": KNOBS, "two_shot": KNOBS},
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
)
