"""`tftune verify`: a few answers are measured again, and an artifact is stamped only where they
hold; `tftune diff` of two artifacts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, Tftune, refused
from synthetic import exported

from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome, Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import read_artifact
from tftune.models.selector import Selector
from tftune.report.diff import diff
from tftune.verify import check, measured_shapes, samples

OP = "all_gather_gemm"
BUILD = {"driver": "580.1", "torch": "2.11.0", "triton": "3.6.0"}
SHAPES = (*paper(), *paper(dtype="bf16"))
"""Two layouts."""
TITLE = "dtype=fp16,shard=k,b_layout=kn,world=8"


@pytest.fixture(scope="module")
def rows(make_rows: Callable[..., list[Trial]]) -> list[Trial]:
    """Push wins, but for the smallest M, where pull alone was measured, and the greatest, where BSP
    was."""
    every = [*make_rows(SHAPES, "graph", bench="node"), *make_rows(paper(), "eager", bench="node")]
    least, most = paper()[0].m, paper()[-1].m
    only = {least: ("bsp", "pull"), most: ("bsp",)}
    return [
        row for row in every if row.config.variant in only.get(row.shape.m, (row.config.variant,))
    ]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def made(rows: list[Trial], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(rows, tmp_path_factory.mktemp("verify") / f"{OP}__h200x8.json", BUILD)


class Fake:
    """A node on which every fused config takes `ratio` of BSP's 100 us, but for those of some
    variants, which end otherwise."""

    def __init__(self, ratio: float, **otherwise: Outcome) -> None:
        self.ratio = ratio
        self.otherwise = otherwise
        self.asked = list[tuple[Shape, Config, str]]()
        self.closed = False

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        """Nothing to compile."""

    def measure(self, shape: Shape, config: Config, mode: str, baseline: Config | None) -> Outcome:
        self.asked.append((shape, config, mode))
        us = 100.0 if baseline is None else 100.0 * self.ratio
        return self.otherwise.get(config.variant) or Measurement((us,) * 9, (100.0,) * 9, 1e-4)

    def close(self) -> None:
        self.closed = True


def test_samples_are_measured_shapes_of_both_modes_that_a_fused_config_answers(made: Path) -> None:
    artifact = read_artifact(made)
    selector, picked = Selector(artifact), samples(artifact, 4)
    assert len(picked) == 4
    assert {sample.mode for sample in picked} == {"graph", "eager"}
    assert len(set(picked)) == 4
    assert {sample.shape.layout for sample in picked} == {shape.layout for shape in SHAPES}
    answers = {
        (mode, shape): selector.select(shape, mode)
        for mode in artifact.modes
        for shape in measured_shapes(artifact, mode)
    }
    fused = {
        (mode, shape, found.config)
        for (mode, shape), found in answers.items()
        if found.config.variant != "bsp"
    }
    every = samples(artifact, 99)
    assert {(sample.mode, sample.shape, sample.config) for sample in every} == fused
    assert len(every) == len(fused) < len(answers)
    for sample in every:
        found = answers[sample.mode, sample.shape]
        assert found.source == "measured"
        assert found.interval is not None
        assert sample.speedup_low == found.interval[0] > 1


def test_few_samples_are_spread_over_the_sizes_of_each_layout(made: Path) -> None:
    artifact = read_artifact(made)
    every, few = samples(artifact, 99), samples(artifact, 6)
    for mode, layout in {(sample.mode, sample.shape.layout) for sample in every}:
        mine = [sample for sample in every if (sample.mode, sample.shape.layout) == (mode, layout)]
        picked = [
            mine.index(sample)
            for sample in few
            if (sample.mode, sample.shape.layout) == (mode, layout)
        ]
        assert len(picked) == 2 and picked[1] - picked[0] >= len(mine) // 2


def test_a_sample_is_beside_the_fastest_form_of_bsp_there(made: Path, rows: list[Trial]) -> None:
    """A form as a row has it, never a variant without its knobs."""
    differ = 0
    for sample in samples(read_artifact(made), 99):
        forms = [
            row
            for row in rows
            if (row.mode, row.shape, row.config.variant) == (sample.mode, sample.shape, "bsp")
        ]
        times = {row.config: row.outcome.median_us for row in forms}  # type: ignore[union-attr]
        assert times[sample.bsp] == min(times.values())
        differ += times[sample.bsp] < max(times.values())
    assert differ > 10


def test_answers_of_changed_kernels_cannot_be_verified(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = read_artifact(made)
    every = {sample.config.variant for sample in samples(artifact, 99)}
    changed = next(iter(every))
    monkeypatch.setattr(
        "tftune.verify.installed",
        lambda op, variant: "0" * 12 if variant == changed else installed(op, variant),
    )
    assert every == {"pull", "push"}
    assert {sample.config.variant for sample in samples(artifact, 99)} == every - {changed}
    monkeypatch.setattr("tftune.verify.installed", lambda op, variant: "0" * 12)
    with pytest.raises(
        ValueError,
        match=r"no fused answer .* is of the kernels installed here; run `tftune search "
        r"all_gather_gemm`",
    ):
        samples(artifact, 4)


def test_the_measured_shapes_are_those_of_the_rows(made: Path) -> None:
    """The shapes of every layout, each once, and none of a mode that was never measured."""
    artifact = read_artifact(made)
    for mode, shapes in (("graph", SHAPES), ("eager", paper())):
        found = list(measured_shapes(artifact, mode))
        assert len(found) == len(shapes) and {*found} == {*shapes}
    assert (
        list(measured_shapes(replace(artifact, modes={"graph": artifact.modes["graph"]}), "eager"))
        == []
    )


@pytest.mark.parametrize(
    ("outcome", "holds", "verdict"),
    [
        (Measurement((50.0,) * 9, (100.0,) * 9), True, "holds"),
        (Measurement((80.0,) * 9, (100.0,) * 9), True, "slower than the 1.50 it was trained on"),
        (Measurement((101.0,) * 9, (100.0,) * 9), False, "slower than BSP"),
        (Failure("wrong", "relative error 0.1"), False, "failed (wrong): relative error 0.1"),
    ],
)
def test_what_a_sample_comes_to(made: Path, outcome: Outcome, holds: bool, verdict: str) -> None:
    (sample,) = samples(read_artifact(made), 1)
    (found,) = check(
        [replace(sample, speedup_low=1.5)], Fake(1.0, **{sample.config.variant: outcome})
    )  # type: ignore[arg-type]
    assert (found.holds, found.verdict) == (holds, verdict)
    assert found.to_dict()["verdict"] == verdict


def test_bsp_that_fails_fails_the_sample_and_the_budget_ends_it(made: Path) -> None:
    picked = samples(read_artifact(made), 4)
    failed = Failure("crash", "a rank died")
    assert [found.outcome for found in check(picked, Fake(0.5, bsp=failed))] == [failed] * 4  # type: ignore[arg-type]
    clock = iter((0.0, 10.0, 44.0, 46.0, 47.0))
    assert len(check(picked, Fake(0.5), lambda: next(clock))) == 2  # type: ignore[arg-type]


@pytest.fixture
def verify(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tftune: Tftune
) -> Callable[..., Ran]:
    """verify(bench, line): `tftune verify` on a copy of the artifact, this machine being 8 H200."""
    (tmp_path / made.name).write_text(made.read_text())
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: Target.parse("h200x8"))
    monkeypatch.setattr("tftune.db.target.build", lambda: BUILD | {"triton": "3.7.1"})

    def run(bench: Fake, line: str = "") -> Ran:
        monkeypatch.setattr(
            "tftune.tuner.bench.node.NodeBench", lambda target, payload_bytes: bench
        )
        return tftune(f"verify {OP} --artifact {tmp_path / made.name} {line}")

    return run


def test_an_artifact_that_holds_is_stamped_with_this_build(
    verify: Callable[..., Any], tmp_path: Path, made: Path
) -> None:
    bench, place = Fake(0.5), tmp_path / made.name
    code, out, _ = verify(bench, "--leaves 2")
    assert code == 0
    assert bench.closed
    assert "build: triton 3.6.0 -> 3.7.1" in out
    assert f"{place}: stamped with this build" in out
    assert len(bench.asked) == 4 and "2.00x" in out and "holds" in out
    artifact = read_artifact(place)
    assert artifact.document["verified"]["build"]["triton"] == "3.7.1"
    assert artifact.document["verified"]["leaves"] == 2
    assert artifact.document["build"] == BUILD
    before, new = read_artifact(made).document, {"verified", "sha256"}
    assert {name: artifact.document[name] for name in artifact.document.keys() - new} == {
        name: before[name] for name in before.keys() - new
    }
    assert artifact.modes == read_artifact(made).modes and artifact.digest != before["sha256"]


def test_an_artifact_that_does_not_hold_stays_as_it_is(
    verify: Callable[..., Any], tmp_path: Path, made: Path
) -> None:
    code, out, _ = verify(Fake(1.2), "--json")
    found = json.loads(out)
    assert code == 1
    assert found["stamped"] is None
    assert not any(check["holds"] for check in found["checks"])
    assert (tmp_path / made.name).read_text() == made.read_text()
    code, out, _ = verify(Fake(1.2), "--out other.json")
    assert code == 1
    assert "not stamped; run `tftune search all_gather_gemm`" in out
    assert not Path("other.json").exists()


def test_only_measured_times_of_this_machine_can_be_verified(
    verify: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: Target.parse("h200x4"))
    said = "measured times of all_gather_gemm on h200x8, and this machine is h200x4"
    assert refused(verify(Fake(0.5)), said)


def test_two_artifacts_differ_in_origin_and_answers(
    made: Path, tmp_path: Path, make_rows: Callable[..., list[Trial]]
) -> None:
    rows = [
        row for row in make_rows(paper(), bench="node") if row.config.variant in ("bsp", "pull")
    ]
    report = {"shapes": 14, "selector": {"geomean_regret": 1.25, "unknown": 0}}
    other = exported(
        rows, tmp_path / "b.json", BUILD | {"triton": "3.7.1"}, {"graph": {TITLE: report}}
    )
    found = diff(read_artifact(made), read_artifact(other))
    assert "triton 3.6.0 -> 3.7.1" in found.origin
    assert any(sentence.startswith("rows ") for sentence in found.origin)
    assert f"held-out regret of graph, {TITLE} None -> 1.25" in found.origin
    assert any(re.fullmatch(r"kernel push r1 -> None", sentence) for sentence in found.origin)
    assert found.shapes == {"graph": 28, "eager": 14}
    assert {answer.one.variant for answer in found.answers} >= {"push"}
    assert {a.other.variant for a in found.answers} <= {"bsp", "pull"}
    told = list(found.sentences(most=1))
    assert any(" of 14 measured shapes are answered otherwise" in line for line in told)
    assert "more; --json" in told[-1]
    same = diff(read_artifact(made), read_artifact(made))
    assert same.answers == []
    assert next(same.sentences()) == "both come from the same rows, kernels and build"


def test_the_command_diff_prints_both_forms(made: Path, tftune: Tftune) -> None:
    for options, said in (("", "0 of 14 measured shapes"), ("--json", '"answers": []')):
        ran = tftune(f"diff {made} {made} {options}")
        assert not ran.code and said in ran.out
