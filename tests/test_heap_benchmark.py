"""benchmarks/heap.py: gains of operands on the heap, from made rows."""

from __future__ import annotations

import heap

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.shape import HEAP, LOCAL
from tftune.kernels.core.space import Config


def row(operands: str, variant: str, us: float, bsp_us: float = 40.0, m: int = 64) -> Trial:
    shape = AllGatherGemm(m, 3584, 8192, 8, operands=operands)
    times = Measurement((us,) * 9, (bsp_us,) * 9, 1e-4)
    knobs = {} if variant == "bsp" else {"block_m": 16}
    return Trial(
        shape, Config(variant, **knobs), "graph", "h200x8", "node", "r1", "r1", times, "final",
        "2026-11-23",
    )  # fmt: skip


ROWS = [
    row(LOCAL, "pull", 32.0),
    row(LOCAL, "pull", 50.0),
    row(LOCAL, "push", 25.0),
    row(HEAP, "pull", 20.0),
    row(HEAP, "push", 50.0, bsp_us=80.0),  # a slow moment, for BSP as well
    row(LOCAL, "pull", 10.0, m=1),  # on the heap it was not measured
]


def test_a_gain_is_of_the_best_rows_beside_bsp() -> None:
    found = heap.pairs(ROWS)
    assert [(each.variant, round(each.gain, 3)) for each in found] == [
        ("best", 1.25),
        ("pull", 1.6),
        ("push", 1.0),
    ]
    assert {each.shape for each in found} == {AllGatherGemm(64, 3584, 8192, 8)}
    assert list(heap.table(found))[3] == (
        "| m=64,n=3584,k=8192,world=8 | graph | pull | 32.0 | 20.0 | 1.250 | 2.000 | 1.600 |"
    )
    assert list(heap.results("all_gather_gemm", found))[1] == (
        "RESULT heap op=all_gather_gemm target=h200x8 mode=graph variant=pull shapes=1 "
        "geomean=1.600"
    )


def test_rows_of_one_layout_show_nothing() -> None:
    assert heap.pairs(row for row in ROWS if not row.shape.on_heap) == []
