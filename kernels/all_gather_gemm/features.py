"""What the selector's tree may look at: named integers and ratios of a shape that a person can read. Standard library only."""

from __future__ import annotations

from collections.abc import Callable

from tftune.kernels.all_gather_gemm import AllGatherGemm

FEATURES: dict[str, tuple[str, Callable[[AllGatherGemm], float]]] = {
    "m": ("rows of C", lambda s: s.m),
    "n": ("columns of C on one rank", lambda s: s.n),
    "k": ("the inner size", lambda s: s.k),
    "world": ("ranks", lambda s: s.world),
    "shard_kb": ("kilobytes that one rank sends to each peer", lambda s: s.shard_bytes / 1024),
    "gflop": ("billions of operations on one rank", lambda s: s.flops / 1e9),
    "intensity": ("operations for each byte of A and B", lambda s: s.flops / (s.element_bytes * s.k * (s.m + s.n))),
    "shard_is_m": ("1 where A is sharded along M", lambda s: int(s.shard == "m")),
    "b_is_nk": ("1 where B is stored [N, K]", lambda s: int(s.b_layout == "nk")),
}
