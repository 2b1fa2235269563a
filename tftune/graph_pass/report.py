"""What the pass did with each collective of a graph, and why. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """One collective of one graph, replaced by an operator of tftune or left as it was.

    `operation`: what replaces it, or would have. `node`: the collective's name in the graph.
    `graph`: "inference", "forward" or "backward", and "training" where torch does not tell which.
    """

    operation: str
    node: str
    graph: str
    shape: str
    """As text; of a size that is symbolic the expression. Empty where no GEMM was matched."""
    replaced: bool
    reason: str
    expected_us: float | None = None
    """The operator's time, with what else it needs; for a symbolic M, where it gains the most."""
    bsp_us: float | None = None
    """The time of the library's collective and GEMM, for the same call."""

    @property
    def gain_us(self) -> float | None:
        """Expected microseconds that one call is faster; None where there are no times."""
        if self.expected_us is None or self.bsp_us is None:
            return None
        return self.bsp_us - self.expected_us

    def line(self) -> str:
        """The decision as one line of a table.

        >>> print(Decision("all_reduce", "sum", "backward", "m=8", True, "", 2, 3).line())
        replaced  all_reduce           backward   sum                         3.0 ->     2.0 us  m=8
        """
        times = (
            f"{self.bsp_us:7.1f} -> {self.expected_us:7.1f} us"
            if self.expected_us is not None and self.bsp_us is not None
            else " " * 21
        )
        head = f"{'replaced' if self.replaced else 'kept':8}  {self.operation:19}  {self.graph:9}"
        text = ": ".join(filter(None, (self.shape, self.reason)))
        return f"{head}  {self.node:24}{times}  {text}".rstrip()


def table(decisions: Iterable[Decision]) -> str:
    """One line for each decision, and their numbers at the end."""
    listed = tuple(decisions)
    replaced = sum(decision.replaced for decision in listed)
    counts = f"replaced={replaced} kept={len(listed) - replaced}"
    return "\n".join([*(decision.line() for decision in listed), counts])
