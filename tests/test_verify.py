"""`tftune verify`: a few leaves are measured again, and an artifact is stamped only where they hold; `tftune diff` of two artifacts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tftune import cli
from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.diff import diff
from tftune.kernels.all_gather_gemm import paper
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models import train as training
from tftune.models.dataset import load
from tftune.models.export import export, provenance
from tftune.models.selector import Selector, read_artifact
from tftune.models.train import train
from tftune.verify import check, grid, samples

OP = "all_gather_gemm"
BUILD = {"driver": "580.1", "torch": "2.11.0", "triton": "3.6.0"}


@pytest.fixture(scope="module")
def made(make_rows: Callable[..., list[Trial]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    datasets = {mode: load(make_rows(paper(), mode, bench="node"), OP, "h200x8", mode, "node") for mode in ("graph", "eager")}
    path = tmp_path_factory.mktemp("verify") / f"{OP}__h200x8.json"
    return export({mode: training._fitted(data) for mode, data in datasets.items()}, path, provenance(datasets, {}, BUILD))


class Fake:
    """A node on which every fused config takes `ratio` of BSP's 100 us, but for those of some variants, which end otherwise."""

    def __init__(self, ratio: float, **otherwise: Outcome) -> None:
        self.ratio, self.otherwise, self.asked, self.closed = ratio, otherwise, list[tuple[Shape, Config, str]](), False

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        """Nothing to compile."""

    def measure(self, shape: Shape, config: Config, mode: str, baseline: Config | None) -> Outcome:
        self.asked.append((shape, config, mode))
        us = 100.0 if baseline is None else 100.0 * self.ratio
        return self.otherwise.get(config.variant) or Measurement((us,) * 9, (100.0,) * 9, 1e-4)

    def close(self) -> None:
        self.closed = True


def test_samples_are_leaves_of_both_modes_with_a_shape_that_ends_there(made: Path) -> None:
    artifact = read_artifact(made)
    selector, picked = Selector(artifact), samples(artifact, 4)
    assert len(picked) == 4 and {sample.mode for sample in picked} == {"graph", "eager"} and len(set(picked)) == 4
    for sample in picked:
        found = selector.select(sample.shape, sample.mode)
        assert found.config == sample.leaf.config and found.config.variant != "bsp"
    fused = [leaf for tree in artifact.trees.values() for leaf in tree.leaves() if not leaf.abstains]
    assert {sample.leaf for sample in samples(artifact, 99)} == set(fused)


def test_leaves_that_answer_between_measured_shapes_alone_are_not_sampled(tmp_path: Path, make_rows: Callable[..., list[Trial]]) -> None:
    """What was never measured cannot have changed."""
    datasets = {mode: load(make_rows(paper(), mode, bench="node"), OP, "h200x8", mode, "node") for mode in ("graph", "eager")}
    file = export({mode: train(data) for mode, data in datasets.items()}, tmp_path / "grown.json", provenance(datasets, {}, BUILD))
    artifact = read_artifact(file)
    selector, fused = Selector(artifact), {leaf for tree in artifact.trees.values() for leaf in tree.leaves() if not leaf.abstains}
    ending = {selector.leaf(shape, mode) for mode, tree in artifact.trees.items() for shape in grid(tree)}
    assert {sample.leaf for sample in samples(artifact, 99)} == fused & ending != fused


def test_leaves_of_changed_kernels_cannot_be_verified(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tftune.verify.kernel_hash", lambda op, variant: "0" * 12)
    with pytest.raises(ValueError, match=r"no fused leaf .* is of the kernels installed here; run `tftune search all_gather_gemm`"):
        samples(read_artifact(made), 4)


def test_the_grid_leaves_out_what_is_no_shape(made: Path) -> None:
    measured = ("k", (64, 65)), ("m", (3, 4)), ("n", (8,)), ("shard", ("k", "m")), ("world", (2,))
    tree = replace(read_artifact(made).trees["graph"], measured=measured)
    along_k = ["m=3,n=8,k=64,world=2", "m=4,n=8,k=64,world=2"]
    along_m = ["m=4,n=8,k=64,world=2,shard=m", "m=4,n=8,k=65,world=2,shard=m"]
    assert sorted(str(shape) for shape in grid(tree)) == sorted(along_k + along_m)


@pytest.mark.parametrize(
    ("outcome", "holds", "verdict"),
    [
        (Measurement((50.0,) * 9, (100.0,) * 9), True, "holds"),
        (Measurement((80.0,) * 9, (100.0,) * 9), True, "slower than the 1.50 it was trained on"),
        (Measurement((101.0,) * 9, (100.0,) * 9), False, "slower than BSP"),
        (Failure("wrong", "relative error 0.1"), False, "failed (wrong): relative error 0.1"),
    ],
)
def test_what_a_leaf_comes_to(made: Path, outcome: Outcome, holds: bool, verdict: str) -> None:
    (sample,) = samples(read_artifact(made), 1)
    (found,) = check([replace(sample, leaf=replace(sample.leaf, speedup_low=1.5))], Fake(1.0, **{sample.leaf.config.variant: outcome}))  # type: ignore[arg-type]
    assert (found.holds, found.verdict) == (holds, verdict) and found.to_dict()["verdict"] == verdict


def test_bsp_that_fails_fails_the_leaf_and_the_budget_ends_it(made: Path) -> None:
    picked = samples(read_artifact(made), 4)
    failed = Failure("crash", "a rank died")
    assert [found.outcome for found in check(picked, Fake(0.5, bsp=failed))] == [failed] * 4  # type: ignore[arg-type]
    clock = iter((0.0, 10.0, 44.0, 46.0, 47.0))
    assert len(check(picked, Fake(0.5), lambda: next(clock))) == 2  # type: ignore[arg-type]


@pytest.fixture
def verify(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Any]]:
    """verify(bench, line): exit code, stdout, stderr of `tftune verify` on a copy of the artifact, this machine being 8 H200."""
    for name in (made, made.with_suffix(".py")):
        (tmp_path / name.name).write_text(name.read_text())
    monkeypatch.setattr("tftune.machine.detect", lambda: Target.parse("h200x8"))
    monkeypatch.setattr("tftune.db.target.build", lambda: BUILD | {"triton": "3.7.1"})

    def run(bench: Fake, line: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("tftune.tuner.node.NodeBench", lambda target, payload_bytes: bench)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(["verify", OP, "--artifact", str(tmp_path / made.name), *line.split()])
        return int(ended.value.code or 0), *capsys.readouterr()

    yield run


def test_an_artifact_that_holds_is_stamped_with_this_build(verify: Callable[..., Any], tmp_path: Path, made: Path) -> None:
    bench, place = Fake(0.5), tmp_path / made.name
    code, out, _ = verify(bench, "--leaves 2")
    assert code == 0 and bench.closed and "build: triton 3.6.0 -> 3.7.1" in out and f"{place}: stamped with this build" in out
    assert len(bench.asked) == 4 and "2.00x" in out and "holds" in out
    artifact = read_artifact(place)
    assert artifact.document["verified"]["build"]["triton"] == "3.7.1" and artifact.document["verified"]["leaves"] == 2
    assert artifact.document["build"] == BUILD and artifact.digest in place.with_suffix(".py").read_text()


def test_an_artifact_that_does_not_hold_stays_as_it_is(verify: Callable[..., Any], tmp_path: Path, made: Path) -> None:
    code, out, _ = verify(Fake(1.2), "--json")
    found = json.loads(out)
    assert code == 1 and found["stamped"] is None and not any(check["holds"] for check in found["checks"])
    assert (tmp_path / made.name).read_text() == made.read_text()
    code, out, _ = verify(Fake(1.2), "--out other.json")
    assert code == 1 and "not stamped; run `tftune search all_gather_gemm`" in out and not Path("other.json").exists()


def test_only_measured_times_of_this_machine_can_be_verified(verify: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tftune.machine.detect", lambda: Target.parse("h200x4"))
    code, out, err = verify(Fake(0.5))
    assert (code, out) == (2, "") and "measured times of all_gather_gemm on h200x8, and this machine is h200x4" in err


def test_two_artifacts_differ_in_origin_and_answers(made: Path, tmp_path: Path, make_rows: Callable[..., list[Trial]]) -> None:
    rows = [row for row in make_rows(paper(), bench="node") if row.config.variant in ("bsp", "pull")]
    dataset = load(rows, OP, "h200x8", "graph", "node")
    other = export({"graph": train(dataset)}, tmp_path / "b.json", provenance({"graph": dataset}, {}, BUILD | {"triton": "3.7.1"}))
    found = diff(read_artifact(made), read_artifact(other))
    assert "triton 3.6.0 -> 3.7.1" in found.origin and any(sentence.startswith("rows ") for sentence in found.origin)
    assert found.shapes == {"graph": 14, "eager": 14}
    assert {answer.one.variant for answer in found.answers} >= {"push"} and {a.other.variant for a in found.answers} <= {"bsp", "pull"}
    told = list(found.sentences(most=1))
    assert any(" of 14 shapes of the measured grids are answered otherwise" in line for line in told) and "more; --json" in told[-1]
    same = diff(read_artifact(made), read_artifact(made))
    assert same.answers == [] and next(same.sentences()) == "both come from the same rows, kernels and build"


def test_the_command_diff_prints_both_forms(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in (([], "0 of 14 shapes"), (["--json"], '"answers": []')):
        with pytest.raises(SystemExit) as ended:
            cli.main(["diff", str(made), str(made), *options])
        assert not ended.value.code and said in capsys.readouterr().out
