"""gather: the library's collective is replaced by a kernel that pushes; it ends when every rank's
messages have come, as a collective does.

Who owns a tile: see `launches`; the exchange takes pieces of this rank's messages, the last kernel
rows of the output. Who writes remotely: the exchange stores each piece into the inbox of every rank
that owns its heads. Which flag says ready: flag[source][0], set once a source has sent all; the
exchange waits for it, so that no later kernel has to.
"""

from __future__ import annotations

from tftune.kernels.flash_decode.variants.launches import Launch, exchange, local, merge


def gather(kv_splits: int) -> tuple[Launch, ...]:
    """The kernels of a call."""
    return (
        *local(kv_splits),
        Launch(exchange, {"WAIT": True}),
        Launch(merge, {"INBOX": True, "WAIT": False}),
    )
