"""Graphs drawn at random through `tftune.compile_pass`: it never raises, changes no number, and
reports every collective."""

from __future__ import annotations

import random
from collections import Counter

import drawn_graphs
import lock_step
import pytest
import told
import torch
from pass_graphs import workspace
from torch.fx import GraphModule

import tftune
from tftune.graph_pass import flight
from tftune.graph_pass.inductor import CompilePass
from tftune.graph_pass.matching import GATHER
from tftune.kernels.comm.workspace import Workspace

__all__ = ["workspace"]
FASTER = (None, None, {"all_reduce": (5.0, 10.0)}, {"gemm_all_reduce": (5.0, 10.0)})
"""What the selector says is faster: everything, or one operation alone."""


def unreported(module: GraphModule, pass_: CompilePass, before: dict[str, object]) -> set[str]:
    """Collectives that were there and have no decision; but for gathers of one tensor, which are
    one."""
    left = {node.name for node in module.graph.nodes}
    gathers = Counter(args for args in before.values() if args is not None)
    said = {decision.node for decision in pass_.report}
    separate = any("GEMMs of a gather" in decision.reason for decision in pass_.report)
    return {
        name
        for name, args in before.items()
        if name not in said
        and not (args is not None and name not in left and (gathers[args] > 1 or separate))
    }


def one(seed: int, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """One graph with the pass and without; the operations that replaced something."""
    monkeypatch.setattr(tftune, "select_kernel", told.select(random.Random(seed).choice(FASTER)))
    module = drawn_graphs.Drawn(seed).module()
    inputs = drawn_graphs.values(module, seed)
    expected = lock_step.run(module, inputs)
    before = {
        node.name: node.args if node.target is GATHER else None
        for node in module.graph.nodes
        if flight.is_collective(node)
    }
    pass_ = CompilePass("0", workspace)
    pass_(module.graph, True)
    module.graph.lint()
    failures = [d.reason for d in pass_.report if "failed" in d.reason]
    assert not failures, (seed, failures)
    assert not unreported(module, pass_, before), seed
    for got, exact in zip(lock_step.run(module, inputs), expected, strict=True):
        for a, b in zip(got, exact, strict=True):
            assert a.shape == b.shape and a.dtype is b.dtype, seed
            torch.testing.assert_close(
                a, b, rtol=2e-2, atol=2e-2, equal_nan=True, msg=lambda text: f"{seed}: {text}"
            )
    return Counter(decision.operation for decision in pass_.report if decision.replaced)


@pytest.mark.parametrize(
    "seeds", [range(120), pytest.param(range(120, 3300), marks=pytest.mark.thorough)]
)
def test_graphs_drawn_at_random(
    seeds: range, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced: Counter[str] = Counter()
    for seed in seeds:
        replaced += one(seed, workspace, monkeypatch)
    assert min(replaced[name] for name in lock_step.KERNELS) >= len(seeds) // 40, replaced
