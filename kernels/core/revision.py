"""Which code a measured time is of: the revision of its variant. Standard library only.

Each variant declares an integer revision in its operation's space. Rows and artifacts carry it as
`r1`, `r2`, ... and are current while it is the same. Raise it when what runs changes in a way that
may change times: tests/test_revisions.py pins what runs and says when that happened. Renaming or
moving code does not change it.
"""

from __future__ import annotations

from functools import cache

from tftune.kernels.core.registry import operation

SOURCE_DIGESTS = {
    "all_gather_gemm": {
        "bsp": "b0a8abac7076",
        "pull": "df18eda9ba88",
        "staged": "82d9415e60e7",
        "push": "0236c5cfd494",
        "push_ce": "319595f48c41",
        "bsp_chunked": "e46aa1049c7e",
    },
    "flash_decode": {
        "bsp": "f7ce74d7166c",
        "gather": "57c32de506ea",
        "no_wait": "38f8209c41d3",
        "fused": "44a4a59f2fbf",
        "fused_heads": "058dfc08b88a",
        "persistent": "a9ad04ef8769",
        "persistent_ll": "42aa5c90cd7c",
    },
}
"""What rows carried before revisions were counted: twelve digits of a variant's source. These stand
for revision 1; any other digest is of earlier code."""


@cache
def installed(op: str, variant: str) -> str:
    """The revision of the installed variant; raises ValueError where there is none.

    >>> installed("all_gather_gemm", "push")
    'r1'
    """
    space = operation(op).space
    space.choices(variant)  # names the known variants
    return f"r{space.revisions.get(variant, 1)}"


def revision_of(op: str, variant: str, code: str) -> str:
    """The revision that a row or an artifact is of, as it says it; of earlier code, its own digits.

    >>> revision_of("all_gather_gemm", "push", "0236c5cfd494")
    'r1'
    """
    return "r1" if SOURCE_DIGESTS.get(op, {}).get(variant) == code else code
