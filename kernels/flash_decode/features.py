"""What the selector's tree may look at: named integers and ratios of a shape that a person can read. Standard library only."""

from __future__ import annotations

from collections.abc import Callable

from tftune.kernels.flash_decode import FlashDecode

FEATURES: dict[str, tuple[str, Callable[[FlashDecode], float]]] = {
    "batch": ("sequences", lambda s: s.batch),
    "q_heads": ("query heads", lambda s: s.q_heads),
    "group": ("query heads that share one KV head", lambda s: s.group),
    "head_dim": ("elements of one head", lambda s: s.head_dim),
    "kv_len": ("tokens of one sequence on one rank", lambda s: s.kv_len),
    "world": ("ranks", lambda s: s.world),
    "cache_mb": ("megabytes of keys and values that one rank reads", lambda s: s.cache_bytes / 2**20),
    "groups": ("batch times KV heads: what can be attended to side by side before a sequence is split", lambda s: s.batch * s.kv_heads),
    "message_kb": ("kilobytes that one rank sends to each peer", lambda s: s.message_bytes / 1024),
    "output_is_heads": ("1 where each rank gets its own heads", lambda s: int(s.output == "heads")),
    "page_size": ("tokens of a page, 0 where a cache is contiguous", lambda s: s.page_size),
}
