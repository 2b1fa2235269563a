"""TFTUNE_OFF=1: BSP everywhere, whatever artifacts or a cache say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tftune
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.models.selection import Selection

SHAPE = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
SMALL = tftune.AllReduce(4, 64, 2)


def test_off_answers_bsp_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tftune.load(target="h200x8").select(SHAPE).config.variant == "push"
    monkeypatch.setenv("TFTUNE_OFF", "1")
    off = tftune.load(target="h200x8")
    assert off.select(SHAPE).config.variant == "bsp"
    assert "TFTUNE_OFF=1 is set" in off.select(SHAPE).reason


def test_off_outlasts_what_was_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what a warm-up remembers of an earlier start."""
    fused = tftune.load(target="h200x8").select(SHAPE)
    monkeypatch.setenv("TFTUNE_OFF", "1")
    off = tftune.load(target="h200x8")
    off.confirm(SHAPE, "graph", Selection(fused.config, "measured", "remembered"))
    assert off.select(SHAPE).config.variant == "bsp"


def served(workspace: Workspace, alone: bool, folder: str) -> tuple[str, str, str]:
    """What this rank answers, with a fused config remembered, where one rank or all are off."""
    os.environ["TFTUNE_CACHE"] = folder
    if workspace.rank == 0 or not alone:
        os.environ["TFTUNE_OFF"] = "1"
    tftune.use(tftune.Selector())
    bound = tftune.bind(workspace.group)
    answer = tftune.warm_up([SMALL], workspace, budget_s=0.01)[SMALL]
    pass_ = tftune.compile_pass(workspace.group, workspace=workspace)
    return str(bound.bsp_only), answer.config.variant, str(pass_.why_idle)


@pytest.mark.parametrize("alone", [False, True])
def test_ranks_that_are_off_run_bsp_together(tmp_path: Path, alone: bool) -> None:
    found = emulated.run(2, served, alone, str(tmp_path), timeout_s=200)
    assert len(set(found)) == 1 and found[0][1] == "bsp"
    said = "rank 1 differs from rank 0" if alone else "TFTUNE_OFF=1 is set"
    assert said in found[0][0] and said in found[0][2]
