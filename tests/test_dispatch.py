"""A selection stays cheap: benchmarks/dispatch.py within ten times the bars that it is held to on a
quiet machine."""

from __future__ import annotations

from pathlib import Path

import dispatch
import pytest
import shipped

from tftune.kernels.core.registry import operation
from tftune.models.artifact import read_artifact
from tftune.models.selector import Selector

BARS = {"memo_us": 0.3, "tree_us": 1.0, "fresh_us": 3.0, "p99_us": 5.0, "import_ms": 15.0}


@pytest.mark.drill  # alone, by the Makefile: beside others that compute, answers take a fifth more
def test_dispatch_is_within_ten_times_its_bars(capsys: pytest.CaptureFixture[str]) -> None:
    dispatch.main(["--calls", "2000"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("RESULT dispatch ")
    found = {name: float(value) for name, value in (pair.split("=") for pair in line.split()[2:])}
    assert {name: value for name, value in found.items() if value > 10 * BARS.get(name, 30)} == {}
    assert set(BARS) < set(found)


@pytest.mark.parametrize("path", shipped.each())
def test_first_answers_are_estimates_of_shapes_never_measured(path: Path) -> None:
    """What is timed as such: between measured sizes of a family, and in a family of which there are
    no rows."""
    artifact = read_artifact(path)
    model = dispatch.measured_most(artifact)
    selector = Selector(artifact, allow_modelled=True, check_source=False)
    family = dispatch.longest(model)
    known = {each.sizes for each in model.known}
    estimated = "modelled" if artifact.modelled else "interpolated"
    other = dispatch.unmeasured(model, family)
    assert family in dispatch.families(model) and other not in dispatch.families(model)
    for asked, source in ((family, estimated), (other, estimated if model.spans else "fallback")):
        shapes = [
            operation(model.op).shape(**fields) for fields in dispatch.shapes_of(model, asked, 300)
        ]
        sources = [
            selector.select(shape).source for shape in shapes if shape.sizes_key not in known
        ]
        assert (
            len({*shapes}) == len(shapes) > 30  # batches of merge_attention end at 64
            and len(sources) >= 0.9 * len(shapes)
            and {*sources} == {source}
        )
