"""merge_attention beside its contract: its defaults, and what operands it takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from lone import lone

import tftune
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.space import Config
from tftune.kernels.merge_attention import MergeAttention, reference
from tftune.kernels.merge_attention.space import SPACE
from tftune.kernels.merge_attention.workloads import SHAPE_SETS

CONFIG = Config("one_shot", rows_per_piece=2, programs=8)


@pytest.mark.parametrize("chip", [H200, MI300X], ids=lambda chip: chip.name)
@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_every_shape_has_a_fused_default(world: int, chip: Any) -> None:
    for make in SHAPE_SETS.values():
        for shape in (*make(world=world), *make(world=world, output="all")):
            configs = SPACE.defaults(shape, chip)
            assert {SPACE.why_invalid(shape, one, chip) for one in configs} == {None}, shape
            assert {"bsp", "one_shot"} <= {config.variant for config in configs}, shape


def strided(workspace: Workspace) -> dict[str, bool]:
    """Whether the result for o and lse as slices of larger tensors is that of copies."""
    shape = MergeAttention(3, 4, 64, 2)
    o, lse = reference.make_inputs(shape, workspace.rank, 0)
    wide = torch.zeros(3, 6, 72, dtype=o.dtype)[:, 1:5, :64]
    late = torch.zeros(4, 3).t()
    wide.copy_(o), late.copy_(lse)
    assert not wide.is_contiguous() and not late.is_contiguous()
    return {
        variant: torch.equal(
            *(
                tftune.ops.operators.MERGE_ATTENTION.call(
                    given, workspace, ("heads", "e"), "graph", None, config=config
                )
                for given in ((o, lse), (wide, late))
            )
        )
        for variant, config in (("bsp", Config("bsp")), ("one_shot", CONFIG))
    }


def test_operands_may_have_strides() -> None:
    assert emulated.run(2, strided) == [{"bsp": True, "one_shot": True}] * 2


ROWS, LSE = torch.zeros(3, 4, 64).half(), torch.zeros(3, 4)


@pytest.mark.parametrize(
    ("o", "lse", "sentence"),
    [
        (torch.zeros(3, 4, 128).half()[:, :, ::2], LSE, "begin at a multiple of 16 bytes"),
        (torch.zeros(3 * 4 * 64 + 1).half()[1:].view(3, 4, 64), LSE, "begins 2 bytes behind"),
        (ROWS, LSE[:, :3], r"lse is \[3, 3\] but must be \[3, 4\]$"),
        (ROWS, LSE.half(), "lse is torch.float16"),
        (ROWS[0], LSE, "^o must have 3 dimensions, not 2$"),
    ],
)
def test_wrong_operands_are_named(o: torch.Tensor, lse: torch.Tensor, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        tftune.ops.merge_attention(o, lse, lone())
