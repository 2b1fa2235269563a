"""Which code a measured time is of: the revision of its variant. Standard library only.

Each variant declares an integer revision in its operation's space. Rows and artifacts carry it as
`r1`, `r2`, ... and are current while it is the same. Raise it when what runs changes in a way that
may change times: tests/test_revisions.py pins what runs and says when that happened. Renaming or
moving code does not change it.
"""

from __future__ import annotations

from functools import cache

from tftune.kernels.core.registry import operation


@cache
def installed(op: str, variant: str) -> str:
    """The revision of the installed variant; raises ValueError where there is none.

    >>> installed("all_gather_gemm", "push")
    'r1'
    """
    space = operation(op).space
    space.choices(variant)  # names the known variants
    return f"r{space.revisions.get(variant, 1)}"
