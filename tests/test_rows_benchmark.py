"""Rows for the layers of public models: which shapes, and a short run on the model bench."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import rows

from tftune.kernels.core.registry import OPS


@pytest.mark.parametrize("world", [2, 4, 8])
def test_every_operation_of_engines_has_shapes_of_every_size(world: int) -> None:
    shapes = list(dict.fromkeys(rows.layers(world)))
    assert {shape.op for shape in shapes} == set(OPS) - {"flash_prefill"}
    for op, sizes in (
        ("gemm_all_reduce", {*rows.DECODE, *rows.PREFILL}),
        ("all_reduce", {1, 8192}),
    ):
        assert sizes <= {shape.to_dict()["m"] for shape in shapes if shape.op == op}
    assert all(shape.to_dict()["dtype"] == "bf16" for shape in shapes)
    normless = {s.m * s.n * 2 for s in shapes if s.op == "all_reduce" and s.norm == "none"}  # type: ignore[attr-defined]
    assert set(rows.PAYLOADS) <= normless


def test_a_run_goes_on_where_the_last_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "rows.py --world 2 --on model --target h200x2 --share 0.004 --seconds 1"
    monkeypatch.setattr(sys, "argv", words.split())
    told = []
    for _ in range(2):
        assert rows.main() == 0
        told.append(capsys.readouterr().out)
    measured = [
        re.search(r"asked=7 measured=(\d+) faster=\d+ geomean=1\.\d+", text) for text in told
    ]
    assert measured[0] and measured[1] and int(measured[0][1]) <= int(measured[1][1]) == 7
    assert "artifact: tftune-artifacts/" in told[0]
