"""Rows of benchmarks/rivals.py, as lines of JSON and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median

from tftune.db.trial import Failure, Measurement, Outcome, outcome_of, outcome_row, shape_of
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config

OP = "all_gather_gemm"
"""The operation of rows that name none."""


@dataclass(frozen=True)
class Row:
    """One candidate at one shape and mode. `name` is one of MEANINGS; samples are of the slowest
    rank, round by round, beside BSP's."""

    shape: Shape
    mode: str
    name: str
    config: Config | None
    outcome: Outcome

    def to_json(self) -> str:
        """One line, its keys and decimals those of the rows under db/trials."""
        row = {"op": self.shape.op, "shape": str(self.shape), "mode": self.mode, "name": self.name}
        config = self.config and self.config.to_dict()
        return json.dumps(row | {"config": config} | outcome_row(self.outcome))

    @classmethod
    def from_json(cls, line: str) -> Row:
        row = json.loads(line)
        shape, config = shape_of(row.get("op", OP), row["shape"]), row["config"]
        config = config and Config.from_dict(config)
        return cls(shape, row["mode"], row["name"], config, outcome_of(row))

    def __str__(self) -> str:
        outcome = self.outcome
        failed = isinstance(outcome, Failure)
        told = f"{outcome.kind}: {outcome.text}" if failed else f"{outcome.median_us:.1f} us"
        return f"{self.shape} {self.mode} {self.name}: {told}"


def measured(rows: Sequence[Row], name: str) -> dict[Shape, Measurement]:
    """What was measured of one candidate."""
    return {
        row.shape: row.outcome
        for row in rows
        if row.name == name and isinstance(row.outcome, Measurement)
    }


def ratios(rows: Sequence[Row], name: str) -> list[float]:
    """The time of `name` over tftune's, the median over their rounds, at each shape where both were
    measured."""
    ours, rivals = measured(rows, "tftune"), measured(rows, name)
    rounds = [(rivals[s].samples_us, ours[s].samples_us) for s in rivals if s in ours]
    return [median(a / b for a, b in zip(*pair, strict=True)) for pair in rounds]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: microseconds at each M, the kind of failure where there is no time; then what every
    failure says."""
    names = list(dict.fromkeys(row.name for row in rows))
    yield f"| M | {' | '.join(names)} |"
    yield "|---" * (1 + len(names)) + "|"
    for shape in dict.fromkeys(row.shape for row in rows):
        cells = {row.name: row.outcome for row in rows if row.shape == shape}
        told = [
            f"{cell.median_us:.1f}" if isinstance(cell, Measurement) else cell.kind
            for cell in map(cells.__getitem__, names)
        ]
        yield f"| {shape.m} | {' | '.join(told)} |"
    for row in rows:
        if isinstance(row.outcome, Failure):
            yield f"  {row.name} at M={row.shape.m}: {row.outcome.kind}: {row.outcome.text}"


def results(rows: Sequence[Row], **names: object) -> Iterator[str]:
    """A RESULT line for each candidate but tftune: the geometric mean of its time over tftune's,
    the least, its largest relative error, and where it has no time."""
    told = " ".join(f"{name}={value}" for name, value in names.items())
    for name in dict.fromkeys(row.name for row in rows if row.name != "tftune"):
        slowdowns = ratios(rows, name)
        failed = sum(isinstance(row.outcome, Failure) for row in rows if row.name == name)
        errors = [one.check_error or 0.0 for one in measured(rows, name).values()]
        times = ""
        if slowdowns:
            error, means = (
                max(errors),
                f"geomean={geometric_mean(slowdowns):.3f} least={min(slowdowns):.3f}",
            )
            times = f"{means} {error=:.2g} "
        yield f"RESULT rivals {told} rival={name} {times}shapes={len(slowdowns)} failed={failed}"


def show(rows: Sequence[Row], where: str) -> None:
    """A table and RESULT lines for each mode and family of shapes."""
    for (mode, *_), part in groups(rows, lambda row: (row.mode, *row.shape.family)).items():
        op = part[0].shape.op
        names = {name: value for name, value in part[0].shape.to_dict().items() if name != "m"}
        sizes = ", ".join(f"{name}={value}" for name, value in names.items())
        print(f"\n{op} on {where}, {mode}: {sizes}; microseconds\n")
        print("\n".join([*table(part), *results(part, op=op, target=where, mode=mode, **names)]))


def show_file(path: Path) -> None:
    """The tables of a file of rows."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    show([Row.from_json(line) for line in lines], json.loads(head)["run"]["target"])
