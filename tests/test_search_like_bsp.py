"""Where BSP has knobs, what makes it strong at a shape is tried in every other variant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.space import SPACE
from tftune.tuner.bench.benches import ModelBench
from tftune.tuner.search.search import search

SHAPE, TARGET = FlashDecode(4, 64, 8, 128, 4096, 4), Target.parse("h200x4")
FORMS = [config for config in SPACE.defaults(SHAPE, TARGET.chip) if config.variant == "bsp"]
BEST = next(
    form for form in FORMS if form["block_n"] == 128 and form["kv_splits"] != FORMS[0]["kv_splits"]
)
"""A form of BSP whose knobs no other variant has by default."""


@pytest.mark.parametrize("pool", [None, 1])
def test_the_knobs_of_the_strongest_bsp_are_tried_in_every_variant(
    tmp_path: Path, pool: int | None
) -> None:
    def predict(shape: Shape, config: Config, mode: str, chip: object) -> float:
        return (
            50.0
            if config == SPACE.complete(BEST)
            else 60.0 + config["kv_splits"] + config["block_n"] / 100
        )

    with Store.open(tmp_path / "rows.db") as store:
        search(
            "flash_decode",
            [SHAPE],
            ["graph"],
            ModelBench(TARGET, predict),
            store,
            effort="quick",
            pool=pool,
        )
        tried = {
            trial.config for trial in store.trials(op="flash_decode") if trial.stage == "search"
        }
    for variant in ("gather", "no_wait", "fused", "fused_heads", "persistent", "persistent_ll"):
        like = [
            c
            for c in tried
            if c.variant == variant and all(c[name] == value for name, value in BEST.knobs)
        ]
        assert like, (variant, BEST)
