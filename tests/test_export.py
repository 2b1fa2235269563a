"""The artifact file: complete, canonical, written at once or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import learned

from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.models.artifact import FIELDS, SHIPPED, Mode, digest, read_artifact
from tftune.models.dataset import Dataset, load
from tftune.models.evaluate import evaluate
from tftune.models.export import Provenance, artifact_path, document, export, pack_mode, provenance
from tftune.models.selector import Selector

OP = "all_gather_gemm"
LAYOUT = ("fp16", "k", "kn", 8)
Rows = Callable[..., list[Trial]]


@pytest.fixture(scope="module")
def datasets(make_rows: Rows) -> dict[str, Dataset]:
    return {
        mode: load(make_rows(paper(), mode, bench="node"), OP, "h200x8", mode, "node")
        for mode in ("graph", "eager")
    }


@pytest.fixture(scope="module")
def modes(datasets: dict[str, Dataset]) -> dict[str, Mode]:
    return {mode: learned(dataset) for mode, dataset in datasets.items()}


@pytest.fixture(scope="module")
def origin(datasets: dict[str, Dataset], modes: dict[str, Mode]) -> Provenance:
    report = evaluate(datasets["graph"])
    assert report is not None
    reports = {"graph": {modes["graph"].layouts[LAYOUT].title: report.to_dict()}}
    return provenance(datasets, reports, {"triton": "3.6.0"})


def test_what_an_artifact_holds(
    modes: dict[str, Mode], origin: Provenance, datasets: dict[str, Dataset]
) -> None:
    found = document(modes, replace(origin, created="2026-11-21T00:00:00+00:00"))
    assert set(found) == set(FIELDS)
    assert found["arch"] == "sm_90"
    assert found["bench"] == "node"
    assert found["modelled"] is False
    assert found["created"][:10] == "2026-11-21"
    assert found["rows"] == sum(dataset.rows for dataset in datasets.values())
    assert found["space"] == SPACE.digest()
    (report,) = found["held_out"]["graph"].values()
    assert found["held_out"]["graph"].keys() == {"dtype=fp16,shard=k,b_layout=kn,world=8"}
    assert report["split"] == "family and m held out at once"
    assert found["kernels"].keys() == set(SPACE.variants)
    assert set(found["modes"]) == {"graph", "eager"}
    (layout,) = found["modes"]["graph"]["layouts"]
    assert layout["layout"] == {"dtype": "fp16", "shard": "k", "b_layout": "kn", "world": 8}
    assert [known[0] for known in layout["known"]] == [
        list(shape.sizes_key) for shape in sorted(paper())
    ]
    assert found["sha256"] == digest(found)


def test_written_and_read_again(tmp_path: Path, modes: dict[str, Mode], origin: Provenance) -> None:
    """Times keep four digits, so that what was read is written again as it was."""
    path = export(modes, tmp_path / "new/folder/artifact.json", origin)
    artifact, content = read_artifact(path), json.loads(path.read_text())
    packed = {mode: pack_mode(found) for mode, found in artifact.modes.items()}
    assert json.loads(json.dumps(packed)) == content["modes"]
    assert artifact.path == path and artifact.digest == content["sha256"] == digest(content)
    assert Selector(artifact).select(paper()[3]).source == "measured"
    assert artifact_path(OP, "h200x8") == SHIPPED / f"{OP}__h200x8.json"


def test_the_file_is_one_that_a_person_can_read_and_a_diff_can_show(
    tmp_path: Path, modes: dict[str, Mode], origin: Provenance
) -> None:
    """A line for each measured shape; and the same text for the same content."""
    origin = replace(origin, created="2026-11-21T00:00:00+00:00")
    one, other = (export(modes, tmp_path / f"{name}.json", origin).read_text() for name in "ab")
    assert one == other
    assert json.loads(one) == document(modes, origin)
    assert max(map(len, one.splitlines())) <= 400
    lines = [line.strip().rstrip(",") for line in one.splitlines()]
    for known in json.loads(one)["modes"]["graph"]["layouts"][0]["known"]:
        assert json.dumps(known, separators=(",", ":")) in lines


def test_modes_of_different_sources_or_machines(datasets: dict[str, Dataset]) -> None:
    edited = replace(datasets["eager"], kernels={**datasets["eager"].kernels, "push": "0" * 12})
    again = "run `tftune search all_gather_gemm --mode both` again"
    with pytest.raises(ValueError, match=f"different revisions of push .*{again}"):
        provenance(datasets | {"eager": edited}, {}, {})
    with pytest.raises(
        ValueError,
        match=r"on mi300x8 \(node\) and all_gather_gemm on h200x8 \(node\) are two artifacts",
    ):
        provenance(datasets | {"eager": replace(datasets["eager"], target="mi300x8")}, {}, {})
    with pytest.raises(ValueError, match="there is no dataset to export"):
        provenance({}, {}, {})
