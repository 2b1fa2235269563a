"""fused_heads: the kernels of fused, with flags for groups of heads, so that a head is merged once
its own partial results are there.

Who owns a tile: as in fused. Who writes remotely: as in fused. Which flag says ready:
flag[source][piece / pieces per flag], set once a source has sent those pieces; waited for by who
merges their heads.
"""

from __future__ import annotations

from tftune.kernels.flash_decode.variants.fused import fused
from tftune.kernels.flash_decode.variants.launches import Launch


def fused_heads(kv_splits: int) -> tuple[Launch, ...]:
    """The kernels of a call."""
    return fused(kv_splits)
