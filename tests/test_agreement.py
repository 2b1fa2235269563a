"""Eight processes that select: the same answer for 10,000 shapes, and BSP on all of them where one
is in doubt."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import forked_ranks
import stand_ins
from synthetic import exported

from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.models.artifact import digest

OP = "all_gather_gemm"
WORLD, BROKEN = 8, 5


def test_all_ranks_agree_or_all_refuse_alike(
    make_rows: Callable[..., list[Trial]], tmp_path: Path
) -> None:
    sound = exported(make_rows(paper(), bench="node"), tmp_path / "sound.json")
    content = json.loads(sound.read_text())
    (tmp_path / "edited.json").write_text(json.dumps(content | {"rows": 7}))
    (tmp_path / "cut.json").write_text(sound.read_text()[:-100])
    context = forked_ranks.context()
    with ProcessPoolExecutor(WORLD, mp_context=context) as pool:
        ranks = [
            pool.submit(stand_ins.asked, rank, WORLD, tmp_path, BROKEN) for rank in range(WORLD)
        ]
        first, *others = (rank.result(timeout=100) for rank in ranks)
    assert first["variant"] != "bsp" and {"bsp", first["variant"]} <= {*first["variants"]}
    assert [other == first for other in others] == [True] * (WORLD - 1)
    for name in ("edited", "cut", "failed"):
        assert first[name].config.variant == "bsp"
        assert first[name].reason.endswith("every rank selects BSP")
    mine, changed = content["sha256"][:12], digest(content | {"rows": 7})[:12]
    assert f"rank {BROKEN} has not loaded: " in first["edited"].reason
    assert f"the digest {changed}, not {mine}" in first["edited"].reason
    assert f"rank 0 has {{'{OP}': '{mine}'}}" in first["edited"].reason
    assert f"rank 0 has {{'{OP}': '{mine}'}}" in first["cut"].reason
    assert "cut off" in first["cut"].reason
    assert f"machine check of rank {BROKEN} says 'link 3 is slow'" in first["failed"].reason
