"""Shapes as a search is given them: by file, by named set or a part of it."""

from __future__ import annotations

import json
from pathlib import Path

from tftune.cli.shapes_file import read_shapes
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.core.registry import operation

OP = "all_gather_gemm"


def test_shapes_from_files_and_named_sets(tmp_path: Path) -> None:
    known = operation(OP)
    one = {"m": 1, "n": 8, "k": 8, "world": 2}
    listed = [one, "m=2,n=8,k=8,world=2", "paper:shard=m,dtype=bf16"]
    (tmp_path / "s.json").write_text(json.dumps(listed))
    (tmp_path / "s.yaml").write_text(
        "- {m: 1, n: 8, k: 8, world: 2}\n- m=2,n=8,k=8,world=2\n- paper:shard=m,dtype=bf16\n"
    )
    first, second = (AllGatherGemm(m, 8, 8, 2) for m in (1, 2))
    for name in ("s.json", "s.yaml"):
        found = read_shapes(known, [str(tmp_path / name)])
        assert found == [first, second, *paper(dtype="bf16", shard="m")]
    found = read_shapes(known, ["m=1,n=8,k=8,world=2; m=1,n=8,k=8,world=2", "paper:world=4"])
    assert found == [first, *paper(4)]


def test_a_part_of_a_named_set() -> None:
    known = operation(OP)
    assert read_shapes(known, ["paper:m=8192+16"], world=4) == [
        AllGatherGemm(16, 3584, 8192, 4),
        AllGatherGemm(8192, 3584, 8192, 4),
    ]
    assert read_shapes(known, ["llama3-70b:m=16+128,n=1280,shard=m"]) == [
        AllGatherGemm(m, 1280, 8192, 8, shard="m") for m in (16, 128)
    ]
