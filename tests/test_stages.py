"""benchmarks/stages.py on emulated ranks and made times: which stages are left out, and what the
RESULT line says of them."""

from __future__ import annotations

import pytest
import stages

from tftune.db.target import Target
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

SHAPE = GemmReduceScatter(32, 32, 64, 2, "fp16")


def test_every_arm_has_a_time_and_the_fused_ones_are_checked() -> None:
    """The table is of all arms; emulated times say nothing."""
    config = stages.chosen(SHAPE, Target.parse("h200x2"), None, "push")
    found = stages.stages(SHAPE, config, Target.parse("h200x2"), emulated=True, rounds=2)
    assert list(found) == list(stages.MEANINGS)
    assert all(isinstance(us, float) and us > 0 for us in found.values())


def test_the_share_that_is_hidden_is_of_the_shorter_stage() -> None:
    found: dict[str, float | str] = {
        "bsp": 150.0,
        "gemm": 100.0,
        "collective": 40.0,
        "fused": 110.0,
        "alone": "a rule",
    }
    first, _, _, *rows, result = stages.report(SHAPE, Config("push"), "h200x2", found)
    assert first == f"{SHAPE} on h200x2, graph: {Config('push')}"
    assert rows[-1].startswith("| alone | a rule | ") and len(rows) == 5
    assert result == (
        "RESULT stages op=gemm_reduce_scatter target=h200x2 m=32 n=32 k=64 world=2 dtype=fp16 "
        "bsp_us=150.0 gemm_us=100.0 collective_us=40.0 fused_us=110.0 hidden=0.75"
    )


def test_stages_compute_the_product_and_the_sum_alone() -> None:
    """The GEMM leaves c as it is; the collective never reads a or b."""
    import torch

    class Workspace:
        device, group = "cpu", None

    a, b, c = torch.ones(32, 32).half(), torch.ones(32, 32).half(), torch.full((16, 32), 7.0)
    call = stages.gemm(SHAPE, Workspace)
    call(a, b, c)
    assert bool((c == 7).all())
    product = dict(zip(call.__code__.co_freevars, call.__closure__ or (), strict=True))["product"]
    assert bool((product.cell_contents == 32).all())


def test_a_config_that_is_not_there_is_refused() -> None:
    words = ["gemm_reduce_scatter", str(SHAPE), "--emulated", "--variant", "pusher"]
    with pytest.raises(SystemExit, match="no default of variant pusher at m=32,"):
        stages.main(words)
