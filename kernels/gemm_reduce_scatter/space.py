"""What may vary in gemm_reduce_scatter: the variants, their knobs, the rules, and the configs to
try first. Standard library only."""

from __future__ import annotations

from functools import lru_cache

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import tile_rules
from tftune.kernels.core.partials import (
    KNOBS,
    SPLIT_BYTES,
    default,
    is_registered,
    rules,
    worth_registering,
)
from tftune.kernels.core.space import Choice, Config, Rule, Space
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

_FORM = Choice(
    "form",
    ("scatter", "scatter_registered"),
    "the library's reduce-scatter of the whole product; registered: it knows that memory "
    "beforehand",
    "scatter",
)
_FUSED = ("push", "pull")


def payload_bytes(shape: GemmReduceScatter) -> int:
    """Bytes of a generation that any config of this shape needs at most: the product in fp32, or
    all parts of a split one."""
    product = 4 * shape.m * shape.n
    return max(product, min(8 * product, SPLIT_BYTES))


RULES = (
    Rule(
        "NCCL alone registers buffers, and from a product of 4 MB on: a smaller one arrives no "
        "sooner",
        lambda s, c, chip: (
            not is_registered(c["form"]) or chip is None or worth_registering(s, chip)
        ),
        ("bsp",),
    ),
    *tile_rules(_FUSED),
    *(rule for variant in _FUSED for rule in rules(variant)),
)


@lru_cache(maxsize=16)
def defaults(shape: GemmReduceScatter, chip: Chip | None = None) -> tuple[Config, ...]:
    """Every BSP form of this shape, then push and pull with a sound tile."""
    known = chip is not None and worth_registering(shape, chip)
    forms = _FORM.values if known else _FORM.values[:1]
    return (
        *(Config("bsp", form=form) for form in forms),
        *(default(SPACE, shape, chip, variant) for variant in _FUSED),
    )


def likely_forms(shape: GemmReduceScatter, chip: Chip) -> tuple[Config, ...]:
    """BSP where nothing was measured."""
    return (Config("bsp", form="scatter"),)


SPACE = Space(
    op="gemm_reduce_scatter",
    revisions={"bsp": 1, "push": 1, "pull": 1},
    variants={"bsp": (_FORM,), "push": KNOBS, "pull": KNOBS},
    rules=RULES,
    defaults=defaults,
    likely_forms=likely_forms,
)
