"""benchmarks/serve.py: shapes as models have them, its figures, and all of it on emulated ranks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import serve
from launch import supervise

from tftune.db.store import Store, read_rows
from tftune.db.trial import Failure, Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config

SHAPE = AllGatherGemm(64, 512, 1024, 2, **serve.LAYOUT)
OTHER = replace(SHAPE, m=128)


def row(selected: float, bsp: float, **changes: Any) -> serve.Row:
    noise = (0.99, 1.0, 1.01) * 3
    base = {"selected": selected, "gather": bsp, "gather_registered": 1.5 * bsp}
    us = {name: tuple(time * part for part in noise) for name, time in base.items()}
    made = serve.Row("before", SHAPE, {"variant": "push"}, "measured", us, 1e-4, None)
    return replace(made, **changes)


@pytest.mark.parametrize("world", [2, 4, 8])
def test_shapes_are_drawn_as_engines_have_them(world: int) -> None:
    shapes = serve.drawn(60, 7, world)
    assert shapes == serve.drawn(60, 7, world) != serve.drawn(60, 8, world)
    assert len(set(shapes)) == 60
    assert {(s.dtype, s.shard, s.b_layout, s.world) for s in shapes} == {("bf16", "m", "nk", world)}
    assert sum(shape.m >= 1024 for shape in shapes) == 40
    assert all(shape.m % world == 0 and shape.m <= 16384 for shape in shapes)
    assert all(shape.n % 16 == 0 and shape.k % 16 == 0 for shape in shapes)
    known = set(serve.layers(world))
    inside = [(shape.n, shape.k) in known for shape in shapes]
    assert 10 < sum(inside) < 50, "some layers of models, and some between"
    assert sum(shape.m & (shape.m - 1) != 0 for shape in shapes) > 50, "hardly any power of two"


def test_shapes_that_are_given_have_the_engine_layout() -> None:
    one, other = serve.parsed("m=64,n=512,k=1024;m=8,n=16,k=32,dtype=fp16,shard=k", 2)
    assert one == SHAPE and other == AllGatherGemm(8, 16, 32, 2, "fp16", "k", "nk")


def test_a_row_is_held_against_the_strongest_form() -> None:
    found = row(8.0, 10.0, searched=1.3)
    assert found.bsp == "gather" and found.ratio == pytest.approx(1.25)
    assert found.regret == pytest.approx(1.04)
    content = json.loads(found.to_json())
    assert content["ratio"] == 1.25 and content["us"]["gather"] and content["regret"] == 1.04
    times = "| gather | 10.0 | 8.0 | 1.250 (1.250 to 1.250) | push | measured | 1.040 |"
    assert times in found.line()


def test_the_result_line() -> None:
    rows = [row(8.0, 10.0), row(10.0, 10.0, source="fallback"), row(10.0, 9.7, searched=1.1)]
    assert serve.result(rows, "h200x2") == (
        "RESULT serve target=h200x2 op=all_gather_gemm mode=graph phase=before shapes=3 "
        "geomean=1.066 worst=0.970 below_098=1 source=fallback:1+measured:2 error=1.0e-04 "
        "regret=1.134 searched=1"
    )


def test_the_best_known_is_the_newest_final_row_of_the_best_config(path: Path) -> None:
    def trial(block_m: int, us: float, second: int, **changes: Any) -> Trial:
        found = Measurement((us,) * 5, (12.0,) * 5)
        config = Config("push", block_m=block_m)
        created = f"2026-11-22T00:00:{second:02}"
        key = SHAPE, config, "graph", "h200x2", "node", "r", "k"
        return replace(Trial(*key, found, "final", created), **changes)

    with Store.open(path) as store:
        store.add_run(Run("r", "h200x2", "node", {}, "2026-11-22", {}))
        for each in (
            trial(64, 8.0, 1), trial(64, 10.0, 2), trial(32, 9.6, 1),
            trial(16, 5.0, 1, stage="search"),
            trial(16, 5.0, 1, mode="eager"), trial(128, 5.0, 1, outcome=Failure("hang", "late")),
            trial(16, 15.0, 1, shape=OTHER),
        ):  # fmt: skip
            store.add_trial(each)
    found = serve.best_known(str(path), [SHAPE, OTHER, replace(SHAPE, m=256)])
    assert found == {SHAPE: pytest.approx(1.25), OTHER: 1.0}
    assert serve.best_known(None, [SHAPE]) == {}


def emulated(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, serve.__file__, "--cpu", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_two_tiny_shapes_before_and_after_a_warm_up(tmp_path: Path) -> None:
    out, rows = tmp_path / "out.jsonl", tmp_path / "rows.jsonl"
    shapes = "m=8,n=48,k=64;m=24,n=40,k=72"
    words = ["--world", "2", "--warm-up", "--shapes", shapes, "--seconds", "110"]
    done = emulated(tmp_path, *words, "--out", out, "--rows", rows)
    assert done.returncode == 0, done.stderr
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    phases = [" ".join(line.split()[5:7]) for line in results]
    assert phases == ["phase=before shapes=2", "phase=after shapes=2"]
    assert "source=fallback:2" in results[0] and "source=measured:2" in results[1]
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [each["phase"] for each in written] == ["before", "before", "after", "after"]
    assert all(each["error"] == 0.0 for each in written)
    assert {trial.stage for trial in read_rows(rows)[1]} == {"warm_up"}


def test_no_shape_is_begun_when_the_time_is_nearly_over(tmp_path: Path) -> None:
    done = emulated(tmp_path, "--world", "1", "--shapes", "m=8,n=48,k=64", "--until", "1")
    assert done.returncode == 0, done.stderr
    assert "the time is nearly over after 0 shapes" in done.stdout
    assert "RESULT" not in done.stdout


def test_a_wrong_shape_is_refused(tmp_path: Path) -> None:
    for words, sentence in (
        (["--shapes", "m=7,n=48,k=64"], "m=7 must be divisible by world=2"),
        ([], "one of the arguments --shapes --random is required"),
    ):
        done = emulated(tmp_path, *words)
        assert done.returncode == 2 and sentence in done.stderr


def test_ranks_that_hang_or_fail_are_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    (sleeper := tmp_path / "sleeper.py").write_text("import time; time.sleep(60)")
    assert supervise(2, 0.5, [], sleeper) == 1 and time.monotonic() - began < 20
    sleeper.write_text("import sys; sys.exit(3 if sys.argv[-1] == '1' else 0)")
    assert supervise(2, 30.0, [], sleeper) == 1 and time.monotonic() - began < 20
