"""Every operation of tftune goes the whole way on the model: search, train, export, select, report.

`tests/test_outside_operation.py` has the same for an operation of another package.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tftune.kernels.core.registry import operation

SHAPES = {
    "all_gather_gemm": ("engine:n=7168,k=8192,m=32+1024+8192", "m=2000,n=7168,k=8192,world=8"),
    "flash_decode": (
        "llama3-70b:batch=1",
        "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=9000,world=8",
    ),
    "gemm_reduce_scatter": ("engine:n=8192,k=28672,m=32+512+4096", "m=800,n=8192,k=28672,world=8"),
    "gemm_all_reduce": ("engine:n=8192,k=28672,m=1+32+256", "m=16,n=8192,k=28672,world=8"),
    "flash_prefill": (
        "paper-gqa:q_heads=64,batch=1+4",
        "batch=1,q_heads=64,kv_heads=8,head_dim=128,seq_len=9000,dtype=fp16,causal=no",
    ),
    "all_reduce": ("engine:m=1+32+512,norm=rms", "m=96,n=8192,world=8,norm=rms"),
    "merge_attention": (
        "engine:heads=64,batch=1+16+128",
        "batch=20,heads=64,head_dim=128,world=8",
    ),
}
"""What is searched for each operation, and a shape asked for afterwards."""


SLOW = [pytest.param(op, marks=pytest.mark.thorough) for op in SHAPES if op[:5] != "gemm_"]


@pytest.mark.parametrize("op", ["gemm_reduce_scatter", "gemm_all_reduce", *SLOW])
def test_it_is_searched_trained_exported_selected_and_reported(
    op: str, tftune: Any, tmp_path: Path
) -> None:
    searched, asked = SHAPES[op]
    model = "--on model --target h200x8 --mode graph --effort quick --pool 40 --db t.db"
    found = tftune(f"search {op} --shapes {searched} {model}")
    assert found.code == 0 and f"{op} on h200x8, modelled" in found.out, found.err
    assert tftune(f"train {op} --db t.db --target h200x8").code == 0
    exported = tftune(f"export {op} --db t.db --target h200x8 --out a.json")
    assert exported.code == 0, exported.err
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["op"] == op and {*document["kernels"].values()} == {"r1"}
    answered = tftune(f"select {op} {asked} --artifact a.json --allow-modelled")
    assert answered.code == 0 and answered.out.partition("(")[0] in operation(op).space.variants
    assert tftune("report --db t.db --out report").code == 0
    assert any(op in page.read_text() for page in (tmp_path / "report").rglob("*.html"))
