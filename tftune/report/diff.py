"""What differs between two artifacts: where they come from, and what they answer for the shapes
that either was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact
from tftune.models.compatibility import stamp
from tftune.models.selector import Selector
from tftune.verify import changes, measured_shapes

ORIGIN = ("op", "target", "arch", "bench", "rows", "rows_digest", "space", "created")


@dataclass(frozen=True)
class Answer:
    """One shape that the two answer otherwise."""

    shape: Shape
    mode: str
    one: Config
    other: Config

    def to_dict(self) -> dict[str, Any]:
        configs = {"one": self.one.to_dict(), "other": self.other.to_dict()}
        return {"shape": str(self.shape), "mode": self.mode, **configs}

    def __str__(self) -> str:
        return f"{self.shape} {self.mode}: {self.one} -> {self.other}"


@dataclass(frozen=True)
class Difference:
    """From one artifact to the other."""

    origin: list[str]
    """What is said of machine, build, kernels, rows and held-out scores, as in `rows 5983 ->
    6102`."""
    shapes: Mapping[str, int]
    """By mode: how many shapes were asked for."""
    answers: list[Answer]

    def to_dict(self) -> dict[str, Any]:
        answers = [answer.to_dict() for answer in self.answers]
        return {"origin": self.origin, "shapes": dict(self.shapes), "answers": answers}

    def sentences(self, most: int = 20) -> Iterator[str]:
        """In words, with so many of the other answers at most."""
        yield from self.origin or ["both come from the same rows, kernels and build"]
        for mode, count in self.shapes.items():
            changed = sum(answer.mode == mode for answer in self.answers)
            yield f"{mode}: {changed} of {count} measured shapes are answered otherwise"
        yield from (f"  {answer}" for answer in self.answers[:most])
        if len(self.answers) > most:
            yield f"  and {len(self.answers) - most} more; --json has them all"


def diff(one: Artifact, other: Artifact) -> Difference:
    """Raises ValueError for artifacts of two operations. Kernels as installed and this machine
    count for neither."""
    if one.op != other.op:
        raise ValueError(f"{one.op} and {other.op} are two operations; compare artifacts of one")
    shapes = {
        mode: dict.fromkeys((*measured_shapes(one, mode), *measured_shapes(other, mode)))
        for mode in dict.fromkeys((*one.modes, *other.modes))
    }
    asked = [Selector(each, allow_modelled=True, check_source=False) for each in (one, other)]
    answers = [
        Answer(s, mode, *(selector.select(s, mode).config for selector in asked))
        for mode, mode_shapes in shapes.items()
        for s in mode_shapes
    ]
    return Difference(
        [*_origin(one.document, other.document)],
        {mode: len(mode_shapes) for mode, mode_shapes in shapes.items()},
        [answer for answer in answers if answer.one != answer.other],
    )


def _origin(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    yield from (
        f"{name} {one[name]} -> {other[name]}" for name in ORIGIN if one[name] != other[name]
    )
    yield from changes(stamp(one), stamp(other))
    yield from (f"kernel {change}" for change in changes(one["kernels"], other["kernels"]))
    regrets = changes(_held_out(one), _held_out(other))
    yield from (f"held-out regret of {change}" for change in regrets)


def _held_out(document: Mapping[str, Any]) -> dict[str, float]:
    """The geometric mean of the regret on shapes held out, by mode and layout, as the artifact
    states it."""
    reports = document.get("held_out", {})
    return {
        f"{mode}, {title}": report["selector"]["geomean_regret"]
        for mode, each in reports.items()
        for title, report in each.items()
    }
