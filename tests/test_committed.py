"""What is committed holds together: rows, the artifacts trained from them, and the tables shown from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import speedup

from tftune.db.store import read_rows, write_rows
from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.fitting import choose, fit, sources
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.registry import operation
from tftune.kernels.source import kernel_hash
from tftune.machine import former_rows
from tftune.models.export import provenance
from tftune.models.packed import pack
from tftune.models.selector import SHIPPED, Selector, read_artifact

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "db/trials").glob("*/*.jsonl"))
ARTIFACTS = sorted(path for path in SHIPPED.glob("*.json") if not read_artifact(path).modelled)
MODELLED = sorted(set(SHIPPED.glob("*.json")) - set(ARTIFACTS))


@pytest.fixture(scope="module", params=FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def rows(request: pytest.FixtureRequest) -> list[Trial]:
    return read_rows(request.param)[1]


def test_there_are_rows_and_an_artifact() -> None:
    assert FILES and ARTIFACTS


def test_every_measured_row_was_checked_first(rows: list[Trial]) -> None:
    measured = [row for row in rows if isinstance(row.outcome, Measurement)]
    assert measured and all(row.bench == "node" for row in rows)
    for row in measured:
        assert isinstance(row.outcome, Measurement)
        assert row.outcome.check_error is not None, row
        assert row.outcome.check_error <= operation(row.op).module("reference").tolerance(row.shape), row  # type: ignore[arg-type]


def test_every_row_is_beside_bsp_and_of_its_own_machine(rows: list[Trial]) -> None:
    for row in rows:
        if isinstance(row.outcome, Measurement):
            assert len(row.outcome.bsp_samples_us) == len(row.outcome.samples_us)


def test_final_rows_are_of_the_installed_kernels(rows: list[Trial]) -> None:
    stale = {row.config.variant for row in rows if row.stage == "final" and row.kernel_hash != kernel_hash(row.op, row.config.variant)}
    assert stale == set(), "measure again, or say in docs/measured.md why older rows stay"


def test_a_file_stays_small() -> None:
    assert all(path.stat().st_size < 4e6 for path in FILES)


@pytest.mark.parametrize("path", ARTIFACTS, ids=lambda path: path.stem)
def test_a_shipped_artifact_is_measured_current_and_of_these_rows(path: Path) -> None:
    artifact, document = read_artifact(path), json.loads(path.read_text())
    assert artifact.bench == "node" and Selector(artifact).disabled() == {}
    files = [read_rows(file) for file in FILES if file.parent.name == artifact.target.name]
    runs, trials = [run for found, _ in files for run in found], [trial for _, found in files for trial in found]
    found = fit(choose(sources(trials, runs), artifact.op, artifact.target.name, "node", "db/trials"))
    again = provenance(found.datasets, found.evaluations, document["build"])
    assert (again.rows, again.rows_digest) == (document["rows"], document["rows_digest"])
    assert json.loads(json.dumps({mode: found.to_dict() for mode, found in found.evaluations.items()})) == document["held_out"]
    assert {mode: json.loads(json.dumps(pack(tree))) for mode, tree in found.trees.items()} == document["trees"]
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize("path", MODELLED, ids=lambda path: path.stem)
def test_a_modelled_artifact_says_so_and_answers_only_where_that_is_allowed(path: Path) -> None:
    artifact = read_artifact(path)
    shapes = operation(artifact.op).shape_sets["paper"](world=artifact.target.gpus)
    refused, served = Selector(artifact), Selector(artifact, allow_modelled=True)
    for shape in shapes:
        assert "modelled, not measured" in refused.select(shape).reason and refused.select(shape).config.variant == "bsp"
        assert served.select(shape).source in ("modelled", "fallback")
    assert {served.select(shape).config.variant == "bsp" for shape in shapes} == {True, False}, "it keeps BSP where its error could decide"


def test_the_readme_shows_these_rows() -> None:
    text = (ROOT / "README.md").read_text()
    shown = text.partition("--readme` -->\n")[2].partition("\n<!-- end of speedup -->")[0]
    assert shown == speedup.readme(), "run `python benchmarks/speedup.py --readme` and put what it prints between the markers"


@pytest.mark.parametrize(("asked", "heard"), [("mi300x4", {"mi300x8"}), ("mi300x8", {"mi300x8"}), ("h200x8", {"h200x2"})])
def test_a_scout_hears_of_winners_on_more_and_fewer_of_these_gpus(
    asked: str, heard: set[str], tmp_path: Path, make_rows: Callable[..., list[Trial]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for target in ("mi300x8", "h200x2"):
        (tmp_path / "trials" / target / "earlier").mkdir(parents=True)
        rows = make_rows((AllGatherGemm(16, 3584, 8192, 2),), target=target)
        write_rows(tmp_path / "trials" / target / "earlier" / "all_gather_gemm-1.jsonl", [], rows)
    monkeypatch.setattr("tftune.db.__file__", str(tmp_path / "__init__.py"))
    assert {trial.target for trial in former_rows("all_gather_gemm", Target.parse(asked))} == heard
