"""The named sets of shapes: what follows a row-parallel projection in decoding and in prefill, and
sizes of a message from 4 KB to 64 MB. Standard library only."""

from __future__ import annotations

from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.engine_sizes import CAPTURED, TOKENS
from tftune.kernels.core.shape import HEAP, LOCAL

HIDDEN = (4096, 7168, 8192, 16_384)
"""Hidden sizes of Llama 3 8B, DeepSeek V3, Llama 3 70B and Llama 3 405B (config.json of each)."""
SMALLEST, LARGEST = 4 << 10, 64 << 20
"""Bytes of x."""


def engine(world: int = 8, dtype: str = "bf16", norm: str = "none") -> tuple[AllReduce, ...]:
    """Every hidden size with 1 to 8192 tokens, x being of 4 KB to 64 MB."""
    shapes = (AllReduce(m, n, world, dtype, norm) for n in HIDDEN for m in TOKENS)
    return tuple(shape for shape in shapes if SMALLEST <= shape.message_bytes <= LARGEST)


def decode(world: int = 8, dtype: str = "bf16", norm: str = "rms") -> tuple[AllReduce, ...]:
    """Every hidden size with 1 to 512 tokens, residual and norm included."""
    return tuple(AllReduce(m, n, world, dtype, norm) for n in HIDDEN for m in CAPTURED)


def odd(world: int = 8, dtype: str = "bf16", norm: str = "none") -> tuple[AllReduce, ...]:
    """Tokens and hidden sizes between those of `engine`."""
    return tuple(
        AllReduce(m, n, world, dtype, norm)
        for n in (2880, 5120, 12_288)
        for m in (3, 17, 60, 150, 333, 700)
    )


def heap(world: int = 8, dtype: str = "bf16", norm: str = "none") -> tuple[AllReduce, ...]:
    """Two hidden sizes of `engine`, each with x outside of the symmetric heap and in it: what
    reading x in place gains."""
    return tuple(
        AllReduce(m, n, world, dtype, norm, operands)
        for n in (4096, 8192)
        for m in (1, 24, 128, 512, 2048)
        for operands in (LOCAL, HEAP)
    )


SHAPE_SETS = {"engine": engine, "decode": decode, "odd": odd, "heap": heap}
