"""Other artifacts are swapped in at a step boundary on every rank, or on none; what a graph has
captured stays."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import forked_ranks
import pytest
import stand_ins

import tftune
from tftune.agreement import asked
from tftune.models.artifact import SHIPPED, digest
from tftune.models.selector import Selector

OP = "all_gather_gemm"
WORLD, LATE = 3, 1
OLD = json.loads((SHIPPED / f"{OP}__h200x8.json").read_text())


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The files old, new and cut in a folder; the digests of the first two."""
    new = OLD | {"created": "2030-01-01T00:00:00+00:00"}
    new |= {"sha256": digest(new)}
    for name, document in (("old", OLD), ("new", new)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "cut.json").write_text(json.dumps(new)[:-100])
    return {"old": OLD["sha256"][:6], "new": new["sha256"][:6]}


def test_every_rank_swaps_or_none_does(files: dict[str, str], tmp_path: Path) -> None:
    with ProcessPoolExecutor(WORLD, mp_context=forked_ranks.context()) as pool:
        ranks = [
            pool.submit(stand_ins.swapped, rank, WORLD, tmp_path, LATE) for rank in range(WORLD)
        ]
        found: list[dict[str, Any]] = [rank.result(timeout=100) for rank in ranks]
    variant = found[0]["first"].split()[0]
    old, new = (f"{variant} of {files[name]}" for name in ("old", "new"))
    for one in found:
        assert one["first"] == old and variant != "bsp"
        assert one["tries"] == dict.fromkeys(("none", "cut", "other"), (False, old))
        assert (one["done"], one["last"]) == (True, new)
        assert one["graph"] == old, "a captured graph keeps its kernels"
        assert one["nobody"] is False and len(one["logged"]) == one["logs"] == 3
        none, cut, other = one["logged"]
        assert f"rank {LATE} has nothing new; rank 0 has " in none
        assert f"rank {LATE} has not loaded: " in cut and "cut off" in cut
        assert f"rank {LATE} differs from rank 0 in artifacts" in other
        assert all(said.endswith("every rank keeps what it selects by") for said in one["logged"])


def test_a_swap_needs_torch_and_takes_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked("tftune.swap", Selector(), "a.json", None, None, False)
    assert (
        given == "not loaded: tftune.swap takes a selector, or a path, url or target to load, alone"
    )
    assert "is no selector" in str(asked("tftune.swap", "a", None, None, None, False))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    with pytest.raises(ImportError, match=r"^tftune\.swap needs torch\.distributed"):
        tftune.swap()
