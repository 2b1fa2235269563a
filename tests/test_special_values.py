"""Zeros of both signs, infinities and NaN travel as any other value: none of them says that a word
has not arrived, as in flashinfer #1136."""

from __future__ import annotations

import pytest
import torch

from tftune.kernels.all_reduce import host as reduce_host
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.merge_attention import host as merge_host

WORDS = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 2.0**-24, -65504.0, 1.0)


def reduced(workspace: Workspace, variant: str) -> list[torch.Tensor]:
    """Sums of rows of one value each, of which every other rank has -0.0, by calls of both
    generations and a third."""
    from test_contract_all_reduce import configured

    x = torch.tensor(WORDS).half().repeat_interleave(16).view(2, 64)
    if workspace.rank:
        x.fill_(-0.0)
    config = Config("bsp") if variant == "bsp" else configured(variant, parts=1, rows_per_flag=1)
    return [reduce_host.all_reduce(x, workspace, config).float() for _ in range(3)]


@pytest.mark.parametrize("variant", ["one_shot", "one_shot_ll", "two_shot"])
def test_sums_of_special_values_arrive(variant: str) -> None:
    expected = torch.tensor(WORDS).half().float().repeat_interleave(16).view(2, 64)
    for found in emulated.run(2, reduced, variant, timeout_s=120):
        for result in found:
            torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


def merged(workspace: Workspace, variant: str) -> list[torch.Tensor]:
    """Rows of special values on rank 0, which alone has tokens."""
    o = torch.tensor(WORDS).half().repeat_interleave(64).view(2, 4, 64)
    lse = torch.zeros(2, 4)
    if workspace.rank:
        o.fill_(-0.0)
        lse.fill_(-torch.inf)
    config = Config(variant, rows_per_piece=2, programs=8)
    call = merge_host.merge_attention
    return [call(o, lse, workspace, config, output="all").float() for _ in range(3)]


@pytest.mark.parametrize("variant", ["one_shot", "one_shot_ll"])
def test_outputs_of_special_values_are_merged(variant: str) -> None:
    expected = torch.tensor(WORDS).half().float().repeat_interleave(64).view(2, 4, 64)
    for found in emulated.run(2, merged, variant, timeout_s=120):
        for result in found:
            torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)
