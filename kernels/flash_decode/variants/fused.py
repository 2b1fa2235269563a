"""fused: the kernel that adds up the splits pushes what it has added up; the partial result of this
rank never goes to memory whole.

Who owns a tile: see `launches`; the second kernel takes pieces, the last one rows of the output.
Who writes remotely: the second kernel stores each piece into the inbox of every rank that owns its
heads. Which flag says ready: flag[source][0], set once a source has sent all; waited for before the
first row is merged.
"""

from __future__ import annotations

from tftune.kernels.flash_decode.variants.launches import Launch, attend_units, combine, merge


def fused(kv_splits: int) -> tuple[Launch, ...]:
    """The kernels of a call, however many the splits."""
    return (
        Launch(attend_units, {"INTO_MESSAGES": False}),
        Launch(combine, {"SEND": True}),
        Launch(merge, {"INBOX": True, "WAIT": True}),
    )
