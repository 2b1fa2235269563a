"""benchmarks/core.py on one emulated rank: it holds the core against the library, and refuses one
that computes something else."""

from __future__ import annotations

import time

import core
import pytest

from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config


def test_a_small_core_is_right_and_timed_beside_the_library() -> None:
    head, *rows, result = core.report(
        core.SMALL, Target.parse("h200x1"), time.monotonic() + 60, cpu=True
    )
    assert head.startswith("| M | torch.matmul, us | the core, us |") and [
        row.split("|")[1].strip() for row in rows
    ] == ["4", "20"]
    assert result.startswith(
        "RESULT core chip=h200 n=40 k=2048 dtype=fp16 matmul_over_core="
    ) and result.endswith("shapes=2 of=2")


def test_without_time_nothing_is_measured_and_that_is_said() -> None:
    _, result = core.report(core.SMALL, Target.parse("h200x1"), time.monotonic() - 1, cpu=True)
    assert result.endswith("matmul_over_core=nan shapes=0 of=2")


@pytest.mark.parametrize("m", [1, 64, 1024])
def test_all_that_is_tried_is_possible_and_none_twice(m: int) -> None:
    shape = AllGatherGemm(m, 3584, 8192, 1)
    found = core.candidates(shape, H200)
    assert len(found) == len(set(found)) > 50 and not [
        config for config in found if SPACE.why_invalid(shape, config, H200)
    ]


def test_a_wrong_core_is_refused() -> None:
    class Wrong(core.CoreRank):
        def __init__(self) -> None:
            pass

        def prepare(self, shape: object, config: object, fault: str | None = None) -> None:
            pass

        def check(
            self, shape: object, config: object, fault: str | None = None
        ) -> tuple[float, float]:
            return float("nan"), 1e-3

    with pytest.raises(
        ValueError,
        match=r"push\(\) is wrong at m=4,n=40,k=2048,world=1: error=nan is above "
        r"tolerance=1.00e-03",
    ):
        Wrong().beside(core.SMALL[0], [Config("push")])
