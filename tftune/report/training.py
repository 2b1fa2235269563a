"""What `tftune train` prints: a table of how each layout does on shapes held out, and, asked for,
what each learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tftune.models.layout import LayoutModel
from tftune.report.explain import model_text
from tftune.report.tables import BENCH_WORDS, lent_text

if TYPE_CHECKING:
    from tftune.models.evaluate import Evaluation
    from tftune.pipeline.training_job import Fit

HEAD = ["layout", "mode", "shapes", "other shapes", "regret", "always BSP", "slower than BSP"]
REGRET = (
    "regret: time of the answer over that of the fastest config known (geometric mean), on shapes "
    "held out of training; 1 is best"
)


def summary(fit: Fit) -> list[list[str]]:
    """A row under HEAD for each mode and layout: what answers for shapes that have no rows, and
    what that loses on shapes held out."""
    return [
        [model.title, name, str(len(model.known)), *_row(model, fit.evaluations[name])]
        for name, mode in fit.modes.items()
        for model in mode.layouts.values()
    ]


def _row(model: LayoutModel, evaluations: Mapping[str, Evaluation]) -> list[str]:
    spans = model.root is not None and model.spans
    answers = "tree" if spans else "between sizes only"
    if (held_out := evaluations.get(model.title)) is None:
        return [answers, "-", "-", "-"]
    score = held_out.selector
    always = held_out.rules["always BSP"].geomean_regret
    slower = f"{score.slower_than_bsp} of {held_out.shapes}"
    return [answers, f"{score.geomean_regret:.3f}", f"{always:.3f}", slower]


def details(fit: Fit) -> Iterator[str]:
    """What each layout learned: its tree, its regret and that of constant rules."""
    word = BENCH_WORDS[fit.source.bench]
    for name, mode in fit.modes.items():
        data = fit.datasets[name]
        yield (
            f"{data.op} on {data.target}, mode {name}: {len(data.shapes)} shapes, "
            f"{data.rows:,} rows, {word}"
        )
        for model in mode.layouts.values():
            yield from model_text(model, fit.evaluations[name].get(model.title), word)
        yield from (lent_text(data.op, one) for one in mode.lent.values())
        yield ""
