"""merge_attention beside its contract: its defaults, what operands it takes, its operator."""

from __future__ import annotations

from typing import Any

import pytest

import tftune
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.space import Config
from tftune.kernels.merge_attention import MergeAttention, reference
from tftune.kernels.merge_attention.space import SPACE
from tftune.kernels.merge_attention.workloads import SHAPE_SETS
from tftune.models.selection import Selection

CONFIG = Config("one_shot", rows_per_piece=2, programs=8)


@pytest.mark.parametrize("chip", [H200, MI300X], ids=lambda chip: chip.name)
@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_every_shape_has_a_fused_default(world: int, chip: Any) -> None:
    for make in SHAPE_SETS.values():
        for shape in (*make(world=world), *make(world=world, output="all")):
            configs = SPACE.defaults(shape, chip)
            assert {SPACE.why_invalid(shape, one, chip) for one in configs} == {None}, shape
            assert {"bsp", "one_shot"} <= {config.variant for config in configs}, shape


def strided(workspace: Workspace) -> dict[str, Any]:
    """The result for o and lse as slices of larger tensors, beside that of copies; and what cannot
    be taken."""
    import torch

    shape = MergeAttention(3, 4, 64, 2)
    o, lse = reference.make_inputs(shape, workspace.rank, 0)
    wide = torch.zeros(3, 6, 72, dtype=o.dtype)[:, 1:5, :64]
    late = torch.zeros(4, 3).t()
    wide.copy_(o), late.copy_(lse)
    assert not wide.is_contiguous() and not late.is_contiguous()
    found: dict[str, Any] = {
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
    bad = {
        "columns apart": (torch.zeros(3, 4, 128, dtype=o.dtype)[:, :, ::2], lse),
        "off by an element": (torch.zeros(3 * 4 * 64 + 1, dtype=o.dtype)[1:].view(3, 4, 64), lse),
        "lse of other heads": (o, lse[:, :3]),
        "lse in half": (o, lse.half()),
        "two dimensions": (o[0], lse),
    }
    for name, (given, its_lse) in bad.items():
        try:
            tftune.ops.merge_attention(given, its_lse, workspace)
        except ValueError as error:
            found[name] = str(error)
    return found


def test_operands_may_have_strides_and_wrong_ones_are_named() -> None:
    found, _ = emulated.run(2, strided)
    assert found.pop("bsp") and found.pop("one_shot")
    assert "begin at a multiple of 16 bytes" in found["columns apart"]
    assert "begins 2 bytes behind" in found["off by an element"]
    assert found["lse of other heads"] == "lse is [3, 3] but must be [3, 4]"
    assert "lse is torch.float16" in found["lse in half"]
    assert found["two dimensions"] == "o must have 3 dimensions, not 2"


def layer(workspace: Workspace) -> dict[str, Any]:
    """The operator, eagerly and traced."""
    import torch

    o, lse = reference.make_inputs(MergeAttention(3, 4, 64, 2), workspace.rank, 0)
    told = Selection(CONFIG, "fallback", "as told")
    tftune.select_kernel = lambda shape, mode: told  # type: ignore[assignment]
    eager = tftune.ops.merge_attention(o, lse, workspace)

    def call(o: Any, lse: Any) -> Any:
        return tftune.ops.merge_attention(2 * o, lse, workspace) / 2

    traced = torch.compile(call, backend="aot_eager", fullgraph=True)(o, lse)
    given = (o, lse, workspace.handle, "heads", "e", "graph")
    torch.library.opcheck(torch.ops.tftune.merge_attention.default, given)
    return {"same": torch.equal(eager, traced), "size": tuple(eager.shape)}


def test_operator_is_traced() -> None:
    assert emulated.run(2, layer) == [{"same": True, "size": (3, 2, 64)}] * 2
