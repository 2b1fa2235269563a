"""What the formulas of `topology` say beside public runs of NCCL and RCCL on several nodes.

usage: python -m tftune.studies.nodes.published [--fit]

Nothing here is measured by tftune. The runs lie in published.json with their source: two to eight
nodes of eight GPUs, out of place, at 1 MB, 16 MB, 256 MB, 1 GB and 8 GB as far as reported
(of some runs one size alone). Sizes that a source calls faulty are left out. Sorted by
source and run, the first, third and so on fit SHARE, RING_HOP_US and TREE_HOP_US (`--fit`); the
others test them. Whoever wrote the formulas had read all the runs; only the fit did not see half.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import inf
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from tftune.studies.nodes import topology
from tftune.studies.nodes.topology import Nic, Topology

NODE_US = 19.3
"""Latency of a ring within a node: 8 H200 (kernels/core/chips.py), taken for all GPUs."""


@dataclass(frozen=True)
class Case:
    """One size of one run. `us`: the published time."""

    source: str
    run: str
    collective: str
    topology: Topology
    node_bytes_per_us: float
    """What the collective reaches within a node, where known: of an all-gather its ring's rate, of
    an all-reduce its size over its time."""
    size: int
    us: float
    fit: bool

    def modelled_us(self) -> float:
        if self.collective == "all_reduce":
            return topology.tree_all_reduce_us(self.topology, self.size, self.node_bytes_per_us)
        each = self.size / self.topology.world
        times = 2 if each >= 1 << 20 else 1
        return topology.ring_all_gather_us(
            self.topology, each, times * NODE_US, self.node_bytes_per_us
        )

    @property
    def error(self) -> float:
        return self.modelled_us() / self.us - 1


def cases() -> list[Case]:
    """All sizes of all runs, every second run for testing."""
    runs = json.loads(Path(__file__).with_suffix(".json").read_text())
    published = []
    for number, run in enumerate(sorted(runs, key=lambda run: (run["source"], run["run"]))):
        nic = Nic("public", run["nic_gb_s"] * 1e3, 0.0, inf, 0.0)
        fabric = Topology(run["nodes"], run["gpus"], nic, run["nics"])
        inside = (run["node_gb_s"] or inf) * 1e3
        names = (run["source"], run["run"], run["collective"])
        published += [
            Case(*names, fabric, inside, int(size), us, number % 2 == 0)
            for size, us in run["us"].items()
        ]
    return published


def median_error(found: list[Case]) -> float:
    return median(abs(case.error) for case in found)


def fit(found: list[Case]) -> tuple[float, float, float]:
    """The constants with the least mean error on these cases. A NIC of 50 GB/s reaches 48 at most
    (github.com/NVIDIA/nccl-tests/issues/290)."""
    shares = [0.86 + 0.01 * step for step in range(11)]
    grid = product(shares, range(4, 33, 4), range(3, 31, 3))

    def score(values: tuple[float, float, float]) -> float:
        constants: Any = dict(zip(("SHARE", "RING_HOP_US", "TREE_HOP_US"), values, strict=True))
        with mock.patch.multiple(topology, **constants):
            return sum(abs(case.error) for case in found) / len(found)

    return min(grid, key=score)


def table(found: list[Case]) -> Iterator[str]:
    heads = "source | run | collective | nodes | MB | published us | modelled us | error | used to"
    yield f"| {heads} |"
    yield "|---" * 9 + "|"
    for case in found:
        source = "/".join(case.source.split("/")[3:5])
        yield (
            f"| {source} | {case.run} | {case.collective} | {case.topology.nodes} | "
            f"{case.size / 2**20:.0f} | {case.us:.0f} | {case.modelled_us():.0f} | "
            f"{case.error:+.0%} | {'fit' if case.fit else 'test'} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", action="store_true", help="Fit the constants on their half.")
    published = cases()
    if parser.parse_args().fit:
        share, ring, tree = fit([case for case in published if case.fit])
        print(f"SHARE={share:.2f} RING_HOP_US={ring} TREE_HOP_US={tree}")
        return
    print("\n".join(table(published)))
    held = [case for case in published if not case.fit]
    print(f"\nRESULT multinode median_error={median_error(held):.3f} cases={len(held)}")


if __name__ == "__main__":
    main()
