"""How `vendor` stands to all_reduce: the sum that follows its GEMM, as a shape and a config of that
operation. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tftune.kernels.all_reduce import GRANULE, AllReduce
from tftune.kernels.all_reduce import space as sums
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Choice, Config, Rule
from tftune.kernels.gemm_all_reduce import GemmAllReduce

KERNELS = tuple(variant for variant in sums.SPACE.variants if variant != "bsp")
WORDS_BYTES, ONE_SHOT_BYTES = (4 << 20, 1 << 19), (12 << 20, 2 << 20)
"""Bytes that one rank sends in one shot, up to which words are the fastest, and up to which one
shot is: on two ranks, and on more (all_reduce on 2x H100 and 2, 4 and 8 H200, captured,
`db/trials`; on more ranks, LL's words)."""
KNOBS = (
    Choice(
        "exchange", KERNELS, "the kernel of all_reduce that follows the vendor's GEMM", KERNELS[0]
    ),
    *sums.SPACE.variants[KERNELS[0]],
)


@lru_cache(maxsize=64)
def summed(shape: GemmAllReduce) -> AllReduce:
    """What the kernel adds up: the product of every rank. Raises ValueError where a row is no
    multiple of 8 elements."""
    return AllReduce(shape.m, shape.n, shape.world, shape.dtype)


def exchange(config: Config) -> Config:
    """The config of all_reduce that a complete config of `vendor` names.

    >>> exchange(Config("vendor", exchange="two_shot", parts=4))
    Config('two_shot', parts=4)
    """
    knobs = dict(config.knobs)
    kernel = str(knobs.pop("exchange"))
    kept = {choice.name for choice in sums.SPACE.variants[kernel]}
    return Config(kernel, **{name: value for name, value in knobs.items() if name in kept})


def payload_bytes(shape: GemmAllReduce) -> int:
    """Bytes of a generation that the kernel needs at most."""
    return sums.payload_bytes(summed(shape)) if _is_possible(shape) else 0


def defaults(shape: GemmAllReduce, chip: Chip | None) -> Iterator[Config]:
    """The configs of all_reduce to try first, behind a GEMM: that of the likeliest kernel first."""
    if not _is_possible(shape):
        return
    likely = _likeliest(shape)
    for kernel in sorted(KERNELS, key=lambda kernel: kernel != likely):
        for config in sums.of_variant(summed(shape), chip, kernel):
            yield Config("vendor", exchange=kernel, **dict(config.knobs))


def _is_possible(shape: GemmAllReduce) -> bool:
    return shape.world > 1 and shape.n % GRANULE == 0


def _likeliest(shape: GemmAllReduce) -> str:
    """The kernel that is the fastest at most sizes like this one."""
    sent, many = (shape.world - 1) * summed(shape).message_bytes, shape.world > 2
    if sent <= WORDS_BYTES[many]:
        return "one_shot_lamport"
    return "one_shot" if sent < ONE_SHOT_BYTES[many] else "two_shot"


def _rule(rule: Rule, kernels: tuple[str, ...]) -> Rule:
    """A rule of all_reduce, of the sum that follows the GEMM."""
    some = "" if kernels == KERNELS else f"with exchange={' or '.join(kernels)}: "
    return Rule(
        some + rule.sentence,
        lambda s, c, chip: c["exchange"] not in kernels or rule.holds(summed(s), c, chip),
        ("vendor",),
        rule.learned,
        rule.required,
    )


# Behind the operation's own: that there are ranks, and that rows are of whole words. `vendor` has
# no norm, so no roles.
RULES = (
    Rule(
        f"rows_per_flag must be 1 with exchange={' or '.join(sums.WORDS)}, which have no flags",
        lambda s, c, chip: c["exchange"] not in sums.WORDS or c["rows_per_flag"] == 1,
        ("vendor",),
    ),
    *(
        _rule(rule, tuple(kernel for kernel in KERNELS if rule.applies(kernel)))
        for rule in sums.RULES
        if rule is not sums.ROLES_RULE and any(rule.applies(kernel) for kernel in KERNELS)
    ),
)
