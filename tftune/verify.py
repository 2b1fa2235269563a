"""Do an artifact's times hold here and now? A few of its leaves are measured again; where they hold, the artifact says with which build."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from typing import Any

from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.source import kernel_hash
from tftune.models.plain import compiled
from tftune.models.selector import Artifact
from tftune.models.tree import Leaf, Tree
from tftune.models.validity import stamp
from tftune.tables import ratio_text
from tftune.tuner.benches import Bench

BUDGET_S = 45.0
"""No leaf is begun after this long, so that all of it takes less than a minute."""


@dataclass(frozen=True)
class Sample:
    """A fused leaf, and a shape in the middle of those it answers for."""

    mode: str
    shape: Shape
    leaf: Leaf


@dataclass(frozen=True)
class Check:
    """What a sample came to."""

    sample: Sample
    outcome: Outcome

    @property
    def holds(self) -> bool:
        """Whether the leaf's config still is no slower than BSP."""
        return isinstance(self.outcome, Measurement) and (self.outcome.speedup or 0.0) >= 1

    @property
    def verdict(self) -> str:
        """What changed since the artifact was made, in words."""
        if isinstance(self.outcome, Failure):
            return f"failed ({self.outcome.kind}): {self.outcome.text}"
        promised, (_, high) = self.sample.leaf.speedup_low or 1.0, self.outcome.speedup_interval or (0.0, 0.0)
        if not self.holds:
            return "slower than BSP"
        return f"slower than the {promised:.2f} it was trained on" if high < promised else "holds"

    def row(self) -> list[str]:
        """The cells of a table."""
        sample, found = self.sample, self.outcome
        ratio = (found.speedup or 0.0, *found.speedup_interval) if isinstance(found, Measurement) and found.speedup_interval else None
        promised = f"{sample.leaf.speedup_low or 1.0:.2f}x"
        return [str(sample.shape), sample.mode, sample.leaf.config.variant, promised, ratio_text(ratio), self.verdict]

    def to_dict(self) -> dict[str, Any]:
        found = self.outcome
        return {
            "shape": str(self.sample.shape), "mode": self.sample.mode, "config": self.sample.leaf.config.to_dict(), "holds": self.holds,
            "promised": self.sample.leaf.speedup_low, "speedup": found.speedup if isinstance(found, Measurement) else None,
            "verdict": self.verdict,
        }  # fmt: skip


HEAD = ["shape", "mode", "variant", "at least", "over BSP now", "verdict"]


def grid(tree: Tree) -> Iterator[Shape]:
    """The shapes of all values that were measured of each field; those that are no shapes are left out."""
    names, values = [name for name, _ in tree.measured], [seen for _, seen in tree.measured]
    for chosen in product(*values):
        try:
            yield operation(tree.op).shape.from_dict(dict(zip(names, chosen, strict=True)))
        except ValueError:  # M that the ranks cannot share, say
            continue


def samples(artifact: Artifact, count: int) -> list[Sample]:
    """So many fused leaves, by turns from each mode and spread over its tree; leaves of a kernel that has changed are left out.

    Raises ValueError where none is left: then there is nothing that measuring a few leaves could show.
    """
    found = [list(_samples(artifact, tree)) for tree in artifact.trees.values()]
    spread = [part[:: max(1, len(part) * len(found) // count)] for part in found]
    turns = [sample for turn in zip_longest(*spread) for sample in turn if sample is not None]
    if not turns:
        raise ValueError(
            f"no fused leaf of the artifact for {artifact.op} on {artifact.target} is of the kernels installed here; "
            f"run `tftune search {artifact.op}` and `tftune export {artifact.op}`"
        )
    return turns[:count]


def _samples(artifact: Artifact, tree: Tree) -> Iterator[Sample]:
    find, space, shapes = compiled(tree), operation(artifact.op).space, defaultdict[int | None, list[Shape]](list)
    for shape in grid(tree):
        shapes[find(shape)].append(shape)
    for number, leaf in enumerate(tree.answers()):
        if leaf.abstains or kernel_hash(artifact.op, leaf.config.variant) != leaf.kernel_hash:
            continue
        if fit := [shape for shape in shapes[number] if space.why_invalid(shape, leaf.config, artifact.target.chip) is None]:
            yield Sample(tree.mode, fit[len(fit) // 2], leaf)


def check(picked: Sequence[Sample], bench: Bench, clock: Callable[[], float] = time.monotonic) -> list[Check]:
    """Measure each sample beside the leaf's BSP form, as long as the budget lasts."""
    until, checks = clock() + BUDGET_S, []
    for sample in picked:
        bench.ahead(sample.shape, [sample.leaf.config])
    for sample in picked:
        if clock() < until:
            bsp = bench.measure(sample.shape, sample.leaf.bsp, sample.mode, None)
            failed = isinstance(bsp, Failure)
            outcome = bsp if failed else bench.measure(sample.shape, sample.leaf.config, sample.mode, sample.leaf.bsp)
            checks.append(Check(sample, outcome))
    return checks


def build_changes(document: Mapping[str, Any], build: Mapping[str, str]) -> list[str]:
    """What the machine has now beside what the artifact's times were known to hold for, as in `triton 3.6.0 -> 3.7.1`."""
    before = stamp(document)
    return [f"{n} {before.get(n)} -> {build.get(n)}" for n in sorted(before.keys() | build.keys()) if before.get(n) != build.get(n)]
