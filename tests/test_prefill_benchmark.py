"""benchmarks/prefill.py: its shapes are possible, and it prints what an emulated rank measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import prefill
import pytest

from tftune.cli import app as cli
from tftune.db.target import Target
from tftune.kernels.core.chips import H200
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.flash_prefill.space import SPACE
from tftune.tuner.bench.node import Deadlines, NodeBench, Rounds
from tftune.tuner.search.search import EFFORTS, Effort

SHAPE = "batch=1,q_heads=2,kv_heads=1,head_dim=64,seq_len=40,dtype=fp16"


def test_every_shape_is_one_and_its_operands_fit() -> None:
    shapes = [FlashPrefill.parse(words) for words in prefill.SHAPES]
    assert len(set(shapes)) == len(shapes) == 12
    assert all(shape.local_bytes < 3 << 30 for shape in shapes)
    assert all(len(SPACE.defaults(shape, H200)) >= 4 for shape in shapes)
    assert "--budget 480s" in " ".join(prefill.search("a.db", 500, 60))


@pytest.mark.thorough
def test_what_an_emulated_rank_measured_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library by its own pick, and the kernel, both right; times say nothing of speed."""

    def bench(target: Target, payload_bytes: int, **options: Any) -> NodeBench:
        return NodeBench(
            target, 1 << 20, emulated=True, deadlines=Deadlines(check=60.0), rounds=Rounds(2, 2, 5)
        )

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: Target.parse("h200x1"))
    monkeypatch.setattr("tftune.tuner.bench.node.NodeBench", bench)
    monkeypatch.setattr("tftune.db.target.build", lambda: {"triton": "3.7.1"})
    monkeypatch.setitem(EFFORTS, "quick", Effort(5, 1, "for tests"))
    line = f"search flash_prefill --shapes {SHAPE} --mode graph --effort quick --pool 2 --db t.db"
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    assert not ended.value.code
    capsys.readouterr()
    assert prefill.main(["t.db", "--show"]) == 0
    said = capsys.readouterr().out
    (row,) = [text for text in said.splitlines() if text.startswith("| batch=1,q_heads=2")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    backends, kernel = cells[1:5], cells[5]
    assert float(backends[0]) > 0 and float(kernel) > 0 and "flash(" in cells[-1]
    ratio = min(map(float, _numbers(backends))) / float(kernel)
    assert float(cells[8]) == pytest.approx(ratio, rel=0.1, abs=0.006)  # printed to 0.01
    assert "RESULT prefill target=h200x1 shapes=1" in said


def _numbers(cells: list[str]) -> list[str]:
    return [cell for cell in cells if cell != "-"]
