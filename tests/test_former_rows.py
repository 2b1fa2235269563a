"""The rows that a search is told: of many files the shapes nearest to those asked for, and no line
of the others taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from stored import RUN, SHAPE, TRIALS, trial

from tftune.db.store import StoreError, read_rows, read_trials_of, write_rows
from tftune.db.target import Target
from tftune.db.trial import Failure, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.shape import Shape
from tftune.kernels.flash_decode import FlashDecode
from tftune.pipeline.bench_factory import former_rows, nearest

OP = "all_gather_gemm"
OTHER = replace(SHAPE, m=96, dtype="bf16", shard="m")
QUOTED = trial(7, outcome=Failure("crash", 'it said {"op":"x","shape":"m=1"}'), shape=OTHER)


def everything(rows: Mapping[Shape, int]) -> set[Shape]:
    return set(rows)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files, one of them compressed, that share shapes; each begins with a run."""
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl.xz"]
    for path, rows in zip(paths, ([*TRIALS[:3], QUOTED], TRIALS[3:]), strict=True):
        write_rows(path, [RUN], rows)
    return paths


def test_all_shapes_are_all_rows(files: list[Path]) -> None:
    """The rows of each shape are in the order of the files."""
    found = read_trials_of(files, everything)
    assert found == sorted(
        [*TRIALS, QUOTED], key=lambda row: [SHAPE, OTHER, TRIALS[4].shape].index(row.shape)
    )
    assert {row.id for path in files for row in read_rows(path)[1]} == {row.id for row in found}


def test_what_chooses_is_told_how_many_rows_each_shape_has(files: list[Path]) -> None:
    told = []

    def choose(rows: Mapping[Shape, int]) -> set[Shape]:
        told.append(dict(rows))
        return {OTHER}

    assert read_trials_of(files, choose) == [QUOTED]
    assert told == [{SHAPE: 5, OTHER: 1, TRIALS[4].shape: 1}]
    assert read_trials_of(files, lambda rows: set()) == [] == read_trials_of([], everything)


def test_a_line_of_another_shape_is_not_taken_apart(files: list[Path]) -> None:
    lines = files[0].read_text().splitlines()
    files[0].write_text("\n".join([*lines[:2], lines[2][:-1], *lines[3:]]) + "\n")
    assert read_trials_of(files, lambda rows: {OTHER}) == [QUOTED]
    then = "delete that line, then run the command again"
    with pytest.raises(StoreError, match=f"line 3 of {files[0]} is no whole row .*; {then}"):
        read_trials_of(files, everything)


@pytest.mark.parametrize(
    "shape", ["m=64", "m=x,n=8,k=8,world=1", "m=64,n=8,k=9,world=2", r"\ud800"]
)
def test_a_shape_that_is_none_is_named_with_its_line(files: list[Path], shape: str) -> None:
    files[0].write_text(files[0].read_text().replace(str(OTHER), shape))
    with pytest.raises(StoreError, match=rf"line 5 of {files[0]} is no whole row"):
        read_trials_of(files, lambda rows: set())


def rows_of(counts: Mapping[int, int]) -> dict[Shape, int]:
    """How many rows each M has."""
    return {replace(SHAPE, m=m): count for m, count in counts.items()}


@pytest.mark.parametrize(
    ("most", "count"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (16, 4), (99, 4)]
)
def test_the_nearest_shapes_come_first_until_they_have_enough_rows(
    most: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.pipeline.bench_factory.FORMER", most)
    there = rows_of({8: 4, 128: 4, 64: 4, 16: 4})
    assert [shape.m for shape in nearest(SHAPE, there)] == [64, 128, 16, 8][:count]  # type: ignore[attr-defined]


def test_another_size_is_nearer_than_another_layout() -> None:
    far, layout = replace(SHAPE, m=512), replace(SHAPE, b_layout="nk")
    assert list(nearest(SHAPE, {layout: 1, far: 1, SHAPE: 1})) == [SHAPE, far, layout]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with rows of 3 sizes on 8 H200, of which one was superseded, and of another
    operation; and of 8 MI300X."""
    folder = tmp_path / "trials/h200x8"
    folder.mkdir(parents=True)
    (tmp_path / "trials/mi300x8").mkdir()
    old = [trial(0, shape=replace(SHAPE, m=16)), trial(1)]
    new = [trial(2), trial(3, shape=replace(SHAPE, m=8192))]
    write_rows(folder / f"{OP}-1.jsonl.xz", [replace(RUN, role="superseded")], old)
    write_rows(folder / f"{OP}-2.jsonl", [RUN], new)
    decode = trial(4, shape=FlashDecode(1, 64, 8, 128, 4096, 8))
    write_rows(folder / "flash_decode-1.jsonl", [RUN], [decode])
    write_rows(tmp_path / "trials/mi300x8" / f"{OP}-1.jsonl", [RUN], [trial(5, target="mi300x8")])
    monkeypatch.setattr("tftune.db.committed.FOLDER", tmp_path / "trials")
    return tmp_path


def heard(*shapes: Shape, target: str = "h200x4") -> list[int]:
    """The numbers of the trials that a search of these shapes is told."""
    rows: list[Trial] = former_rows(shapes[0].op, Target.parse(target), shapes)
    return sorted(row.config["block_m"] - 16 for row in rows)


def test_a_search_is_told_the_nearest_rows_of_its_own_operation(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert heard(SHAPE) == [0, 1, 2, 3] and heard(FlashDecode(2, 64, 8, 128, 4096, 4)) == [4]
    monkeypatch.setattr("tftune.pipeline.bench_factory.FORMER", 1)
    assert heard(SHAPE) == [1, 2], "a shape is told whole"
    assert heard(AllGatherGemm(8, 3584, 8192, 4)) == [0] and heard(replace(SHAPE, m=4096)) == [3]


def test_a_search_hears_of_more_and_fewer_of_these_gpus(checkout: Path) -> None:
    assert heard(SHAPE, target="h200x8") == heard(SHAPE, target="h200x16") == [0, 1, 2, 3]
    assert heard(SHAPE, target="mi300x4") == heard(SHAPE, target="mi300x8") == [5]


def test_each_shape_of_a_search_is_told_its_own_nearest_rows_once(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.pipeline.bench_factory.FORMER", 1)
    assert heard(replace(SHAPE, m=8), replace(SHAPE, m=4096), replace(SHAPE, m=16)) == [0, 3]
