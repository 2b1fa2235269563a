"""What BSP does more than a fused call, by operation: a module for each whose taxes can be
isolated. Standard library only."""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES = ("all_gather_gemm", "flash_decode", "gemm_all_reduce")


def of(op: str) -> Any:
    """The module of an operation; raises ValueError where it has no arms.

    >>> of("gemm_all_reduce").FUSED
    ('one_shot', 'two_shot')
    """
    if op not in NAMES:
        raise ValueError(
            f"{op} has no arms to isolate taxes; operations that have are {', '.join(NAMES)}"
        )
    return import_module(f"{__name__}.{op}")
