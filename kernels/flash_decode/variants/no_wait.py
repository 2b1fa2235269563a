"""no_wait: as gather, but the exchange ends when this rank has sent; who merges waits.

Who owns a tile: see `launches`; the exchange takes pieces of this rank's messages, the last kernel
rows of the output. Who writes remotely: the exchange stores each piece into the inbox of every rank
that owns its heads. Which flag says ready: flag[source][0], set once a source has sent all; waited
for before the first row is merged.
"""

from __future__ import annotations

from tftune.kernels.flash_decode.variants.launches import Launch, exchange, local, merge


def no_wait(kv_splits: int) -> tuple[Launch, ...]:
    """The kernels of a call."""
    return (
        *local(kv_splits),
        Launch(exchange, {"WAIT": False}),
        Launch(merge, {"INBOX": True, "WAIT": True}),
    )
