"""Who wins, by the rows that count."""

from __future__ import annotations

import wins

from tftune.db.trial import Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Choice, Config, Space

SPACE = Space(
    "all_gather_gemm",
    variants={
        "bsp": (Choice("form", ("plain", "other"), "form", "plain"),),
        "push": (Choice("tile", (16, 32, 64), "tile", 16), Choice("none", (0,), "nothing", 0)),
    },
    rules=(),
    defaults=lambda shape, chip=None: (),
)


def row(variant: str, us: float, m: int = 16, stage: str = "final", **knobs: int | str) -> Trial:
    outcome, shape = Measurement((us,), (10.0,)), AllGatherGemm(m, 512, 512, 2)
    config = Config(variant, **knobs)
    return Trial(shape, config, "graph", "h200x2", "node", "r", "r1", outcome, stage)


ROWS = [
    row("bsp", 10.0, form="plain"),
    row("push", 8.0, tile=16, none=0),
    row("push", 7.0, tile=32, none=0),
    row("push", 1.0, stage="search", tile=64, none=0),
    row("bsp", 10.0, m=32, form="plain"),
    row("push", 11.0, m=32, tile=64, none=0),
]


def test_the_highest_ratio_of_a_shape_wins_and_searches_do_not_count() -> None:
    winners, own = wins.best(ROWS), wins.best(ROWS, of_each_variant=True)
    assert [config for _, config in winners.values()] == [ROWS[2].config, ROWS[4].config]
    assert len(own) == 4 and ROWS[5].config in {config for _, config in own.values()}
    assert list(wins.table(SPACE, winners))[2:] == ["| h200x2, graph | 2 | 1 | 1 |"]
    assert list(wins.idle(SPACE, winners, own)) == [
        "bsp form: other: other",
        "push tile: 16, 64: 16",
        "push none: one value, 0",
    ]
