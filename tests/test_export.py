"""The artifact file: complete, canonical, written at once or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import evaluate
from tftune.models.export import Provenance, artifact_path, document, export, provenance
from tftune.models.selector import FIELDS, digest, load_artifact, read_artifact
from tftune.models.train import train
from tftune.models.tree import Tree

OP = "all_gather_gemm"
Rows = Callable[..., list[Trial]]


@pytest.fixture(scope="module")
def datasets(make_rows: Rows) -> dict[str, Dataset]:
    return {mode: load(make_rows(paper(), mode, bench="node"), OP, "h200x8", mode, "node") for mode in ("graph", "eager")}


@pytest.fixture(scope="module")
def trees(datasets: dict[str, Dataset]) -> dict[str, Tree]:
    return {mode: train(dataset) for mode, dataset in datasets.items()}


@pytest.fixture(scope="module")
def origin(datasets: dict[str, Dataset]) -> Provenance:
    return provenance(datasets, {"graph": evaluate(datasets["graph"])}, {"triton": "3.6.0"})


def test_what_an_artifact_holds(trees: dict[str, Tree], origin: Provenance, datasets: dict[str, Dataset]) -> None:
    found = document(trees, replace(origin, created="2026-11-21T00:00:00+00:00"))
    assert set(found) == set(FIELDS)
    assert (found["arch"], found["bench"], found["modelled"], found["created"][:10]) == ("sm_90", "node", False, "2026-11-21")
    assert found["rows"] == sum(dataset.rows for dataset in datasets.values()) and found["space"] == SPACE.digest()
    assert found["held_out"]["graph"]["split"] == "one octave of m held out at a time"
    assert found["kernels"].keys() == set(SPACE.variants) and set(found["trees"]) == {"graph", "eager"}
    assert found["trees"]["graph"]["measured"]["world"] == [8] and found["sha256"] == digest(found)


def test_a_modelled_artifact_says_so(make_rows: Rows) -> None:
    dataset = load(make_rows(paper()), OP, "h200x8", "graph", "model")
    assert document({"graph": train(dataset)}, provenance({"graph": dataset}, {}, {}))["modelled"] is True


def test_written_and_read_again(tmp_path: Path, trees: dict[str, Tree], origin: Provenance) -> None:
    path = export(trees, tmp_path / "new/folder/artifact.json", origin)
    artifact = read_artifact(path)
    assert artifact.trees == trees and artifact.path == path and artifact.digest == json.loads(path.read_text())["sha256"]
    assert load_artifact(path).select(paper()[10]).source == "measured"


def test_the_usual_place() -> None:
    assert artifact_path(OP, "h200x8").parts[-3:] == ("models", "artifacts", "all_gather_gemm__h200x8.json")


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, trees: dict[str, Tree], origin: Provenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = export(trees, tmp_path / "artifact.json", origin)
    before = path.read_text()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(trees, path, replace(origin, rows=7))
    assert path.read_text() == before and sorted(tmp_path.iterdir()) == [path, path.with_suffix(".py")]


def test_a_place_that_cannot_be_written(tmp_path: Path, trees: dict[str, Tree], origin: Provenance) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot write the artifact .*file/a.json: .*; name another place with --out"):
        export(trees, tmp_path / "file/a.json", origin)


def test_modes_of_different_sources_or_machines(datasets: dict[str, Dataset]) -> None:
    edited = replace(datasets["eager"], kernels={**datasets["eager"].kernels, "push": "0" * 12})
    with pytest.raises(ValueError, match=r"different sources of push .*run `tftune search all_gather_gemm --mode both` again"):
        provenance({"graph": datasets["graph"], "eager": edited}, {}, {})
    with pytest.raises(ValueError, match=r"on mi300x8 \(node\) and all_gather_gemm on h200x8 \(node\) are two artifacts"):
        provenance({"graph": datasets["graph"], "eager": replace(datasets["eager"], target="mi300x8")}, {}, {})
    with pytest.raises(ValueError, match="there is no dataset to export"):
        provenance({}, {}, {})
