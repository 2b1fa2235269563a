"""Are caches really cold when a config is timed? A streaming copy through the same rotation, graph
and clock must run at memory speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.tuner.bench import clock

ROUNDS = 5
CACHE_SHARE = 3
"""One copy reads and writes a third of the last-level cache together: it fits there well, and lasts
longer than a launch."""
MARGIN = 1.1
"""A cold copy may look this much faster than the chip's memory: what it wrote last need not be in
memory yet."""
DROP = 0.95
"""A cold copy reaches less than this share of the warm rate; a cold copy that is not slower than
this was not cold, or the launch hides both."""


@dataclass(frozen=True)
class CopyRates:
    """Bytes per microsecond that a streaming copy reads and writes, launches included, medians over
    rounds."""

    cold: float
    """Operands rotate as they do for a config."""
    warm: float
    """The same copy again and again, on operands that fit the last-level cache."""

    @property
    def gb_s(self) -> dict[str, float]:
        """As stored with a run."""
        return {"cold": round(self.cold / 1e3, 1), "warm": round(self.warm / 1e3, 1)}

    @classmethod
    def of_gb_s(cls, stored: dict[str, float]) -> CopyRates:
        return cls(stored["cold"] * 1e3, stored["warm"] * 1e3)

    def why_not_cold(self, chip: Chip) -> str | None:
        """A sentence where times of this world may be those of warm caches, or where this test
        could not have seen it; else None. Where nothing is known of the chip's memory rate, the two
        copies alone decide."""
        memory = chip.constant("hbm_bytes_per_us")
        if memory is not None and self.cold > MARGIN * memory:
            return (
                f"caches are not cold: a rotated copy reached {self.cold / 1e3:.0f} GB/s, and the "
                f"memory of {chip.name} gives "
                f"{memory / 1e3:.0f}; raise cache_bytes in kernels/core/chips.py and search again"
            )
        if self.cold > DROP * self.warm:
            return (
                f"cold caches are not proven: a rotated copy reached {self.cold / 1e3:.0f} GB/s "
                "and one that fits the cache "
                f"{self.warm / 1e3:.0f}; see that nobody else uses the GPUs and that cache_bytes "
                "in kernels/core/chips.py is right"
            )
        return None


def copy_rates(cache_bytes: int, device: Any, start_together: Callable[[], None]) -> CopyRates:
    """Time the copy on this rank. Collective; about 10 ms by its bytes, and memory for four times
    the last-level cache.

    The copy negates: an elementwise kernel on the compute units, since a plain copy may go to a
    copy engine, past the cache.
    """
    import torch

    def copy(a: Any, b: Any, c: Any) -> None:
        torch.neg(a, out=c)

    bytes_per_call = cache_bytes // CACHE_SHARE
    sizes = (clock.copies(bytes_per_call, cache_bytes), bytes_per_call // 2 // 4)
    data = torch.ones((2, *sizes), dtype=torch.float32, device=device)
    rotated = [(source, None, result) for source, result in zip(*data, strict=True)]
    copy(*rotated[0])  # whatever is set up by a first call must not be captured
    graphs = [
        clock.GraphCall(copy, operands) for operands in (rotated, rotated[-1:] * len(rotated))
    ]
    cold, warm = clock.graph_rounds(graphs, ROUNDS, start_together, list)
    return CopyRates(bytes_per_call / median(cold), bytes_per_call / median(warm))
